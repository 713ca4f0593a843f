// Certificates made on the spot, so that no private key is in the repository, and no test needs openssl.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

export interface Certified {
  readonly cert: string;
  readonly key: string;
}

const OID = { commonName: '550403', ecdsaWithSha256: '2a8648ce3d040302', basicConstraints: '551d13', altName: '551d11' };

/** One value of ASN.1, in DER. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const { length: size } = body;
  // The shortest form: Go takes no other.
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}
const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const octets = (body: Buffer): Buffer => der(0x04, body);
const bits = (body: Buffer): Buffer => der(0x03, Buffer.from([0]), body);
const nameOf = (name: string): Buffer => sequence(der(0x31, sequence(oid(OID.commonName), der(0x0c, Buffer.from(name)))));
const extension = (id: string, value: Buffer): Buffer => sequence(oid(id), octets(value));

let serial = 0;

function certificate(
  name: string,
  issuer: { name: string; key: KeyObject } | undefined,
  extensions: Buffer,
): Certified & { own: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const by = issuer ?? { name, key: privateKey };
  const algorithm = sequence(oid(OID.ecdsaWithSha256));
  const tbs = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.from([++serial])),
    algorithm,
    nameOf(by.name),
    sequence(...['200101000000Z', '491231235959Z'].map((time) => der(0x17, Buffer.from(time)))),
    nameOf(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(extensions)),
  );
  const whole = sequence(tbs, algorithm, bits(sign('sha256', tbs, by.key)));
  const cert = `-----BEGIN CERTIFICATE-----\n${whole.toString('base64').replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, own: privateKey };
}

/** A certificate authority, a server at 127.0.0.1, also called cluster.example and hooks.n.svc, and what makes clients. */
export function certify(): { ca: string; server: Certified; client: (name: string) => Certified } {
  const isAuthority = extension(OID.basicConstraints, sequence(der(0x01, Buffer.from([255]))));
  const authority = certificate('test authority', undefined, isAuthority);
  const by = { name: 'test authority', key: authority.own };
  const names = ['cluster.example', 'hooks.n.svc'].map((name) => der(0x82, Buffer.from(name)));
  const at = extension(OID.altName, sequence(der(0x87, Buffer.from([127, 0, 0, 1])), ...names));
  const not = extension(OID.basicConstraints, sequence());
  return { ca: authority.cert, server: certificate('server', by, at), client: (name) => certificate(name, by, not) };
}
