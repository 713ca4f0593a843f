/**
 * Kubernetes' own kinds that a server can serve besides those of its program, such as the ones that kubectl can create at once.
 */
import type { KubernetesObject } from '../cache/object.ts';
import { comparing } from '../storage/json.ts';
import { badRequest } from '../storage/statuses.ts';
import { inPieces, paceOf, STRIDE, type Work } from '../watch/fair-queue.ts';
import type { FieldCause, PrinterColumn, ResourceDefinition } from './definition.ts';
import { faultOfLabel, utf8Bytes } from './verbs/names.ts';

/** Upstream: `v1.ConfigMap`. */
export interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>> | undefined;
  readonly binaryData?: Readonly<Record<string, string>> | undefined;
  readonly immutable?: boolean | undefined;
}

/** Upstream: `v1.Namespace`. */
export interface Namespace extends KubernetesObject {
  readonly spec?: { readonly finalizers?: readonly string[] | undefined } | undefined;
  readonly status?: { readonly phase?: string | undefined } | undefined;
}

/** The limit for all of a ConfigMap's values together. Upstream: `v1.MaxSecretSize`. */
const MAX_DATA_BYTES = 2 ** 20;
const MAX_KEY_CHARS = 253;

/** The last column of most kinds. */
export const AGE: PrinterColumn = {
  name: 'Age',
  type: 'date',
  description: 'CreationTimestamp is the time on the server when this object was created.',
  value: ({ metadata }) => metadata?.creationTimestamp as string | undefined,
};

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
      value: ({ data, binaryData }) => Object.keys(data ?? {}).length + Object.keys(binaryData ?? {}).length,
    },
    AGE,
  ],
  // There may be sixty thousand values.
  validate: (object, old) => inPieces(causesIn(object, old), { pace: paceOf(undefined) }),
};

function* causesIn(object: ConfigMap, old: ConfigMap | undefined): Work<FieldCause[]> {
  yield* checkForm(object);
  return [...(yield* keysOf(object)), ...(yield* frozen(object, old)), ...finalizersOf(object)];
}

/**
 * `namespaces` of `v1`. If a server serves them, objects can be created only in a namespace that exists; `default` always does.
 * If it does not, every namespace exists.
 */
export const NAMESPACES: ResourceDefinition<Namespace> = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  shortNames: ['ns'],
  namespaced: false,
  validate: ({ metadata }) => {
    const fault = faultOfLabel(metadata?.name ?? '');
    return fault === undefined ? undefined : [{ field: 'metadata.name', message: fault }];
  },
  columns: [
    {
      name: 'Status',
      type: 'string',
      description: 'Whether it is being deleted.',
      value: ({ metadata, status }) => status?.phase ?? (metadata?.deletionTimestamp === undefined ? 'Active' : 'Terminating'),
    },
    AGE,
  ],
};

/** Refuses what cannot be read as a ConfigMap. Upstream never validates values of a wrong type: decoding fails before. */
function* checkForm({ data, binaryData, immutable }: ConfigMap): Work<void> {
  const isText = (value: unknown): boolean => typeof value === 'string';
  const isBase64 = (value: unknown): boolean =>
    isText(value) && /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(String(value));
  if (!(yield* areAll(data, isText))) throw unreadable('data: expected an object of strings');
  if (!(yield* areAll(binaryData, isBase64))) throw unreadable('binaryData: expected base64');
  if (!['undefined', 'boolean'].includes(typeof (immutable ?? undefined))) throw unreadable('immutable: expected true or false');
}

function* areAll(values: unknown, are: (value: unknown) => boolean): Work<boolean> {
  if (values === undefined || values === null) return true;
  if (typeof values !== 'object' || Array.isArray(values)) return false;
  for (const [at, key] of Object.keys(values).entries()) {
    if (at % STRIDE === STRIDE - 1) yield;
    if (!are((values as Readonly<Record<string, unknown>>)[key])) return false;
  }
  return true;
}

function unreadable(why: string): Error {
  return badRequest(`ConfigMap in version "v1" cannot be handled as a ConfigMap: ${why}`);
}

/** Upstream: `ValidateConfigMap`. */
function* keysOf(object: ConfigMap): Work<FieldCause[]> {
  const [data, binaryData] = [object.data ?? {}, object.binaryData ?? {}];
  const causes: FieldCause[] = [];
  let bytes = 0;
  for (const [field, values] of Object.entries({ data, binaryData })) {
    for (const [at, key] of Object.keys(values).entries()) {
      if (at % STRIDE === STRIDE - 1) yield;
      const value = values[key] as string;
      bytes += field === 'data' ? utf8Bytes(value) : Math.floor((value.length * 3) / 4);
      const problem = keyProblem(key);
      if (problem !== undefined) {
        causes.push({ field: `${field}[${key}]`, message: `Invalid value: ${JSON.stringify(key)}: ${problem}` });
      }
      if (field === 'data' && Object.hasOwn(binaryData, key)) {
        causes.push({
          field: `data[${key}]`,
          message: `Invalid value: ${JSON.stringify(key)}: duplicate of key present in binaryData`,
        });
      }
    }
  }
  if (bytes > MAX_DATA_BYTES) {
    causes.push({ field: '[]', message: `Too long: may not be more than ${MAX_DATA_BYTES} bytes`, reason: 'FieldValueTooLong' });
  }
  return causes;
}

function keyProblem(key: string): string | undefined {
  if (key.length > MAX_KEY_CHARS) return `must be no more than ${MAX_KEY_CHARS} characters`;
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
    const regex = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
    return `${regex} (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`;
  }
  if (key === '.') return "must not be '.'";
  if (key === '..') return "must not be '..'";
  return key.startsWith('..') ? "must not start with '..'" : undefined;
}

/** Custom resources may have others; Kubernetes' own kinds may not. Upstream: `validateFinalizerName` of core. */
function finalizersOf({ metadata }: ConfigMap): FieldCause[] {
  const wrong = 'name is neither a standard finalizer name nor is it fully qualified';
  return (metadata?.finalizers ?? []).flatMap((name, at) =>
    name.includes('/') || STANDARD_FINALIZERS.includes(name)
      ? []
      : [{ field: `metadata.finalizers[${at}]`, message: `Invalid value: ${JSON.stringify(name)}: ${wrong}` }],
  );
}

const STANDARD_FINALIZERS: readonly string[] = ['kubernetes', 'orphan', 'foregroundDeletion'];

/** Upstream: `ValidateConfigMapUpdate`. */
function* frozen(object: ConfigMap, old: ConfigMap | undefined): Work<FieldCause[]> {
  if (old?.immutable !== true) return [];
  const causes: FieldCause[] = [];
  const message = 'Forbidden: field is immutable when `immutable` is set';
  const add = (field: string): number => causes.push({ field, message, reason: 'FieldValueForbidden' });
  if (object.immutable !== true) add('immutable');
  if (!(yield* comparing(object.data ?? {}, old.data ?? {}))) add('data');
  if (!(yield* comparing(object.binaryData ?? {}, old.binaryData ?? {}))) add('binaryData');
  return causes;
}
