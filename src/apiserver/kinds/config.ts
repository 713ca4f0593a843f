/** Keys and values: ConfigMaps, and Secrets, whose values are bytes. */
import type { KubernetesObject } from '../../cache/object.ts';
import { comparing } from '../../storage/json.ts';
import { isRecord, tried } from '../../watch/errors.ts';
import { inPieces, STRIDE, type Work } from '../../watch/fair-queue.ts';
import type { FieldCause, ResourceDefinition } from '../definition.ts';
import { ours, telling } from '../validation/causes.ts';
import { dataKeyFaults } from '../validation/formats.ts';
import { utf8Bytes } from '../verbs/metadata.ts';
import { base64Bytes, fromBase64 } from './base64.ts';
import { AGE, finalizersOf, required } from './common.ts';

/** Upstream: `v1.ConfigMap`. */
export interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>> | undefined;
  readonly binaryData?: Readonly<Record<string, string>> | undefined;
  readonly immutable?: boolean | undefined;
}

/** Upstream: `v1.Secret`. */
export interface Secret extends KubernetesObject {
  /** In base64. */
  readonly data?: Readonly<Record<string, string>> | undefined;
  /** The same as text, for writing only: reads have it in `data`. */
  readonly stringData?: Readonly<Record<string, string>> | undefined;
  /** Default `Opaque`. Cannot be changed. */
  readonly type?: string | undefined;
  readonly immutable?: boolean | undefined;
}

/** The limit for all values of an object together. Upstream: `v1.MaxSecretSize`. */
const MAX_DATA_BYTES = 2 ** 20;

const countOf = (...maps: readonly (object | undefined)[]): number =>
  maps.reduce((sum, map) => sum + Object.keys(map ?? {}).length, 0);

/** `configmaps` of `v1`. */
export const CONFIG_MAPS: ResourceDefinition<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  shortNames: ['cm'],
  columns: [
    {
      name: 'Data',
      type: 'integer',
      description: 'The number of keys.',
      value: ({ data, binaryData }) => countOf(data, binaryData),
    },
    AGE,
  ],
  // There may be sixty thousand values.
  validate: ours((object, old) => inPieces(causesOfMap(object, old))),
};

/** Upstream: `ValidateConfigMap`, `ValidateConfigMapUpdate`. */
function* causesOfMap(object: ConfigMap, old: ConfigMap | undefined): Work<FieldCause[]> {
  const { data, binaryData } = object;
  const causes = [...(yield* keysOf({ data, binaryData }, '[]')), ...finalizersOf(object)];
  return [...causes, ...(yield* frozen(object, old, ['data', 'binaryData']))];
}

/** `secrets` of `v1`. */
export const SECRETS: ResourceDefinition<Secret> = {
  group: '',
  version: 'v1',
  plural: 'secrets',
  kind: 'Secret',
  fields: { type: ({ type = '' }) => type },
  columns: [
    { name: 'Type', type: 'string', description: 'What the data are for.', value: ({ type = '' }) => type },
    { name: 'Data', type: 'integer', description: 'The number of keys.', value: ({ data }) => countOf(data) },
    AGE,
  ],
  validate: telling((object: Secret, old: Secret | undefined) => inPieces(causesOfSecret(object, old)), pairWarnings),
};

/** Upstream: `ValidateSecret`, `ValidateSecretUpdate`. */
function* causesOfSecret(object: Secret, old: Secret | undefined): Work<FieldCause[]> {
  const causes: FieldCause[] = [];
  const { type = '' } = object;
  if (old !== undefined && type !== (old.type ?? '')) {
    causes.push({ field: 'type', message: `Invalid value: ${JSON.stringify(type.slice(0, 300))}: field is immutable` });
  }
  causes.push(...(yield* frozen(object, old, ['data'])));
  causes.push(...(yield* keysOf({ data: object.data }, 'data')), ...finalizersOf(object));
  return [...causes, ...(yield* contentOf(object))];
}

const SERVICE_ACCOUNT = 'kubernetes.io/service-account.name';

/** The keys that well-known types must have. */
function* contentOf({ type, data = {}, metadata }: Secret): Work<FieldCause[]> {
  const missing = (...keys: readonly string[]): FieldCause[] =>
    keys.filter((key) => !Object.hasOwn(data, key)).map((key) => required(`data[${key}]`));
  switch (type) {
    case 'kubernetes.io/service-account-token':
      return metadata?.annotations?.[SERVICE_ACCOUNT] ? [] : [required(`metadata.annotations[${SERVICE_ACCOUNT}]`)];
    case 'kubernetes.io/dockercfg':
      return yield* jsonOf(data, '.dockercfg');
    case 'kubernetes.io/dockerconfigjson':
      return yield* jsonOf(data, '.dockerconfigjson');
    case 'kubernetes.io/basic-auth': {
      const absent = missing('username', 'password');
      return absent.length === 2 ? absent : [];
    }
    case 'kubernetes.io/ssh-auth':
      return data['ssh-privatekey'] ? [] : [required('data[ssh-privatekey]')];
    case 'kubernetes.io/tls':
      return missing('tls.crt', 'tls.key');
    default:
      return [];
  }
}

/** What is told of a certificate and a key that are not in PEM; what is in them is not read. Upstream: `tls.X509KeyPair`. */
function* pairWarnings({ type, data = {} }: Secret): Work<readonly string[]> {
  if (type !== 'kubernetes.io/tls') return [];
  const found = yield* blocksOf(data['tls.crt']);
  if (!found.includes('CERTIFICATE')) {
    const why = 'failed to find certificate PEM data in certificate input, but did find a private key';
    return told(found, { of: 'certificate', other: 'PRIVATE KEY', swapped: `${why}; PEM inputs may have been switched` });
  }
  const keys = yield* blocksOf(data['tls.key']);
  const swapped = 'found a certificate rather than a key in the PEM for the private key';
  return keys.some((type) => /^(.* )?PRIVATE KEY$/.test(type)) ? [] : told(keys, { of: 'key', other: 'CERTIFICATE', swapped });
}

function told(types: readonly string[], { of, other, swapped }: Readonly<Record<'of' | 'other' | 'swapped', string>>): string[] {
  if (types.length === 0) return [`tls: failed to find any PEM data in ${of} input`];
  const isOther = types.length === 1 && types[0]?.endsWith(other);
  return [`tls: ${isOther ? swapped : `no ${of} among the PEM blocks of the ${of} input`}`];
}

/** The types of the PEM blocks of a value. */
function* blocksOf(value: string = ''): Work<string[]> {
  const text = utf8.decode(yield* fromBase64(value));
  yield;
  const types: string[] = [];
  let begun = '';
  for (const [, edge, type = ''] of text.matchAll(/^-----(BEGIN|END) ((?:(?!-----).){1,64})-----[ \t\r]*$/gm)) {
    if (edge === 'END' && type === begun) types.push(type);
    begun = edge === 'BEGIN' ? type : '';
  }
  return types;
}

/** With a byte order mark, a text is not JSON. */
const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

function* jsonOf(data: Readonly<Record<string, string>>, key: string): Work<FieldCause[]> {
  if (!Object.hasOwn(data, key)) return [required(`data[${key}]`)];
  const bytes = yield* fromBase64(data[key] as string);
  yield;
  const value: unknown = tried(() => JSON.parse(utf8.decode(bytes)));
  if (value === null || isRecord(value)) return [];
  return [{ field: `data[${key}]`, message: 'Invalid value: "<secret contents redacted>": expected a JSON object' }];
}

/** What is wrong with keys, and with the size of all values. `whole` is the field that is too long. */
function* keysOf(
  maps: { readonly data: Secret['data']; readonly binaryData?: Secret['data'] },
  whole: string,
): Work<FieldCause[]> {
  const causes: FieldCause[] = [];
  const { binaryData = {} } = maps;
  let bytes = 0;
  for (const [field, values = {}] of Object.entries(maps)) {
    for (const [at, key] of Object.keys(values).entries()) {
      if (at % STRIDE === STRIDE - 1) yield;
      const value = values[key] as string;
      // A ConfigMap's `data` are texts.
      bytes += field === 'data' && whole === '[]' ? utf8Bytes(value) : base64Bytes(value);
      const add = (problem: string): number =>
        causes.push({ field: `${field}[${key}]`, message: `Invalid value: ${JSON.stringify(key)}: ${problem}` });
      for (const problem of dataKeyFaults(key)) add(problem);
      if (field === 'data' && Object.hasOwn(binaryData, key)) add('duplicate of key present in binaryData');
    }
  }
  if (bytes > MAX_DATA_BYTES) {
    const message = `Too long: may not be more than ${MAX_DATA_BYTES} bytes`;
    causes.push({ field: whole, message, reason: 'FieldValueTooLong' });
  }
  return causes;
}

/** Changes of immutable data. */
function* frozen<T extends Secret & ConfigMap>(
  object: T,
  old: T | undefined,
  maps: readonly ('data' | 'binaryData')[],
): Work<FieldCause[]> {
  if (old?.immutable !== true) return [];
  const causes: FieldCause[] = [];
  const message = 'Forbidden: field is immutable when `immutable` is set';
  const add = (field: string): number => causes.push({ field, message, reason: 'FieldValueForbidden' });
  if (object.immutable !== true) add('immutable');
  for (const name of maps) if (!(yield* comparing(object[name] ?? {}, old[name] ?? {}))) add(name);
  return causes;
}
