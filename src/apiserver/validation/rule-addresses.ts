/** IP addresses and networks in rules. Upstream: `ip.go` and `cidr.go` of `apiserver/pkg/cel/library`, Go's `net/netip`. */

import { groupsOf } from '../../bridge/hub/admission/connection-slots.ts';
import { tried } from '../../watch/errors.ts';
import { hasFormat } from './formats.ts';
import { type Keyed, spend } from './rule-cost.ts';

const quoted = (text: string): string => JSON.stringify(text);
/** No address is longer. */
const MAX_CHARS = 64;

/** An address of either family as a number; undefined if it is not an address. */
function parsed(text: string): { readonly family: 4 | 6; readonly bits: bigint } | undefined {
  if (text.length > MAX_CHARS) return undefined;
  if (!text.includes(':')) {
    if (!hasFormat('ipv4', text) || /(^|\.)0\d/.test(text)) return undefined;
    return { family: 4, bits: ofFour(text) };
  }
  if (!hasFormat('ipv6', text)) return undefined;
  const groups = groupsOf(text);
  return groups && { family: 6, bits: groups.reduce((all, group) => (all << 16n) | BigInt(group), 0n) };
}

const ofFour = (text: string): bigint => text.split('.').reduce((all, part) => (all << 8n) | BigInt(part), 0n);

/** An address, as a number. */
export class Ip implements Keyed {
  static readonly type: string = 'net.IP';
  readonly family: 4 | 6;
  readonly bits: bigint;

  constructor(family: 4 | 6, bits: bigint) {
    this.family = family;
    this.bits = bits;
  }

  static of(text: string): Ip {
    spend(1 + text.length / 32);
    const why = `IP Address ${quoted(text)} parse error during conversion from string: ParseAddr(${quoted(text)}): unable to parse IP`;
    const [address = '', ...zone] = text.split('%');
    const made = parsed(address);
    if (made === undefined) throw new Error(why);
    if (zone.length > 0) throw new Error(made.family === 6 ? `IP address ${quoted(text)} with zone value is not allowed` : why);
    if (isMapped(made.bits)) throw new Error(mappedText(text));
    return new Ip(made.family, made.bits);
  }

  get key(): string {
    return `ip${this}`;
  }

  /** In its canonical form: the longest run of zeros is left out. */
  toString(): string {
    const { family, bits } = this;
    if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 0xffn).join('.');
    const groups = Array.from({ length: 8 }, (_, at) => (bits >> BigInt(112 - at * 16)) & 0xffffn);
    let [from, most] = [0, 1];
    for (let at = 0, zeros = 0; at < 8; at++) {
      zeros = groups[at] === 0n ? zeros + 1 : 0;
      if (zeros > most) [from, most] = [at - zeros + 1, zeros];
    }
    const text = (some: readonly bigint[]): string => some.map((group) => group.toString(16)).join(':');
    return most === 1 ? text(groups) : `${text(groups.slice(0, from))}::${text(groups.slice(from + most))}`;
  }

  /** Whether its first `length` bits are those of the prefix. */
  starts(prefix: bigint, length: number): boolean {
    return this.bits >> BigInt((this.family === 4 ? 32 : 128) - length) === prefix;
  }
}

const isMapped = (bits: bigint): boolean => bits >> 32n === 0xffffn;
const mappedText = (text: string): string => `IPv4-mapped IPv6 address ${quoted(text)} is not allowed`;

/** A network, with the address that it was written with. */
export class Cidr implements Keyed {
  static readonly type: string = 'net.CIDR';
  readonly ip: Ip;
  readonly length: number;

  constructor(ip: Ip, length: number) {
    this.ip = ip;
    this.length = length;
  }

  static of(text: string): Cidr {
    spend(1 + text.length / 32);
    const slash = text.lastIndexOf('/');
    const refused = (why: string): Error => {
      const parse = 'network address parse error during conversion from string: ';
      return new Error(`${parse}${parse}netip.ParsePrefix(${quoted(text)}): ${why}`);
    };
    if (slash < 0) throw refused("no '/'");
    const [address, bits] = [text.slice(0, slash), text.slice(slash + 1)];
    const made = parsed(address.split('%')[0] as string);
    if (made === undefined) throw refused(`ParseAddr(${quoted(address)}): unable to parse IP`);
    if (address.includes('%')) throw refused('IPv6 zones cannot be present in a prefix');
    if (!/^(?:0|[1-9]\d{0,9})$/.test(bits)) throw refused(`bad bits after slash: ${quoted(bits)}`);
    if (Number(bits) > (made.family === 4 ? 32 : 128)) throw refused('prefix length out of range');
    if (isMapped(made.bits)) throw new Error(`network address parse error during conversion from string: ${mappedText(text)}`);
    return new Cidr(new Ip(made.family, made.bits), Number(bits));
  }

  get key(): string {
    return `cidr${this}`;
  }

  toString(): string {
    return `${this.ip}/${this.length}`;
  }

  /** Its first bits. */
  get #prefix(): bigint {
    return this.ip.bits >> BigInt(this.#rest);
  }

  get #rest(): number {
    return (this.ip.family === 4 ? 32 : 128) - this.length;
  }

  masked(): Cidr {
    return new Cidr(new Ip(this.ip.family, this.#prefix << BigInt(this.#rest)), this.length);
  }

  has(ip: Ip): boolean {
    return ip.family === this.ip.family && ip.starts(this.#prefix, this.length);
  }

  hasAllOf(other: Cidr): boolean {
    return this.length <= other.length && this.has(other.ip);
  }
}

const isV4 = ({ family }: Ip): boolean => family === 4;
const isUnspecified = ({ bits }: Ip): boolean => bits === 0n;
const isLoopback = (ip: Ip): boolean => (isV4(ip) ? ip.starts(127n, 8) : ip.bits === 1n);
const isLinkLocal = (ip: Ip): boolean => (isV4(ip) ? ip.starts(0xa9fen, 16) : ip.starts(0x3fan, 10));
const isMulticast = (ip: Ip): boolean => (isV4(ip) ? ip.starts(14n, 4) : ip.starts(255n, 8));
const isLinkLocalMulticast = (ip: Ip): boolean =>
  isV4(ip) ? ip.starts(0xe00000n, 24) : ip.starts(255n, 8) && ((ip.bits >> 112n) & 15n) === 2n;
const isGlobal = (ip: Ip): boolean =>
  !(isUnspecified(ip) || isLoopback(ip) || isMulticast(ip) || isLinkLocal(ip)) && !(isV4(ip) && ip.bits === 0xffffffffn);

/** By signature. */
export const ADDRESS_FUNCTIONS: Readonly<Record<string, (...args: never[]) => unknown>> = {
  'isIP(string): bool': (text: string) => tried(() => Ip.of(text)) !== undefined,
  'ip(string): net.IP': (text: string) => Ip.of(text),
  'kubernetes.IPs.isCanonical(string): bool': (_: unknown, text: string) => String(Ip.of(text)) === text,
  'string(net.IP): string': (ip: Ip) => String(ip),
  'net.IP.family(): int': ({ family }: Ip) => BigInt(family),
  'net.IP.isUnspecified(): bool': isUnspecified,
  'net.IP.isLoopback(): bool': isLoopback,
  'net.IP.isLinkLocalMulticast(): bool': isLinkLocalMulticast,
  'net.IP.isLinkLocalUnicast(): bool': isLinkLocal,
  'net.IP.isGlobalUnicast(): bool': isGlobal,
  'isCIDR(string): bool': (text: string) => tried(() => Cidr.of(text)) !== undefined,
  'cidr(string): net.CIDR': (text: string) => Cidr.of(text),
  'string(net.CIDR): string': (cidr: Cidr) => String(cidr),
  'net.CIDR.ip(): net.IP': ({ ip }: Cidr) => ip,
  'net.CIDR.prefixLength(): int': ({ length }: Cidr) => BigInt(length),
  'net.CIDR.masked(): net.CIDR': (cidr: Cidr) => cidr.masked(),
  'net.CIDR.containsIP(string): bool': (cidr: Cidr, text: string) => cidr.has(Ip.of(text)),
  'net.CIDR.containsIP(net.IP): bool': (cidr: Cidr, ip: Ip) => cidr.has(ip),
  'net.CIDR.containsCIDR(string): bool': (cidr: Cidr, text: string) => cidr.hasAllOf(Cidr.of(text)),
  'net.CIDR.containsCIDR(net.CIDR): bool': (cidr: Cidr, other: Cidr) => cidr.hasAllOf(other),
};
