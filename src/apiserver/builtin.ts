/**
 * Kubernetes' own kinds that a server can serve besides those of its program, such as the ones that kubectl can create at once.
 */

import type { KubernetesObject } from '../cache/object.ts';
import { comparing } from '../storage/json.ts';
import { badRequest } from '../storage/statuses.ts';
import { isRecord } from '../watch/errors.ts';
import { inPieces, paceOf, STRIDE, type Work } from '../watch/fair-queue.ts';
import type { FieldCause, PrinterColumn, ResourceDefinition } from './definition.ts';
import { faultOfLabel, utf8Bytes } from './verbs/metadata.ts';

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
  if (!(yield* areAll(data, isText))) throw unreadable('ConfigMap', 'data: expected an object of strings');
  if (!(yield* areAll(binaryData, isBase64))) throw unreadable('ConfigMap', 'binaryData: expected base64');
  if (!['undefined', 'boolean'].includes(typeof (immutable ?? undefined)))
    throw unreadable('ConfigMap', 'immutable: expected true or false');
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

function unreadable(kind: string, why: string): Error {
  return badRequest(`${kind} in version "v1" cannot be handled as a ${kind}: ${why}`);
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

/** Leases, by which programs agree on which of them leads: client-go's leader election needs nothing else from a server. */

/** Upstream: `coordination.v1.Lease`. */
export interface Lease extends KubernetesObject {
  readonly spec?: LeaseSpec | undefined;
}

/** Upstream: `coordination.v1.LeaseSpec`. */
export interface LeaseSpec {
  /** Empty or absent: nobody holds it. */
  readonly holderIdentity?: string | undefined;
  /** How long others wait after `renewTime` before they take the lease. */
  readonly leaseDurationSeconds?: number | undefined;
  /** With microseconds, such as `2026-01-02T03:04:05.000006Z`. */
  readonly acquireTime?: string | undefined;
  readonly renewTime?: string | undefined;
  /** How often the holder has changed. */
  readonly leaseTransitions?: number | undefined;
}

/** `leases` of `coordination.k8s.io/v1`. */
export const LEASES: ResourceDefinition<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  columns: [
    { name: 'Holder', type: 'string', description: 'The current holder.', value: ({ spec }) => spec?.holderIdentity },
    AGE as NonNullable<ResourceDefinition<Lease>['columns']>[number],
  ],
  validate: ({ spec }) => {
    checkLease(spec);
    return causesOf(spec ?? {});
  },
};

const MAX_INT32 = 2 ** 31 - 1;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[-+]\d\d:\d\d)$/;

const isText = (value: unknown): boolean => typeof value === 'string';
const isCount = (value: unknown): boolean => Number.isInteger(value) && Math.abs(value as number) <= MAX_INT32;
const isTime = (value: unknown): boolean =>
  isText(value) && TIME.test(value as string) && !Number.isNaN(Date.parse(value as string));

const FORM: { readonly [Name in keyof LeaseSpec]-?: readonly [(value: unknown) => boolean, expected: string] } = {
  holderIdentity: [isText, 'a text'],
  leaseDurationSeconds: [isCount, 'a whole number'],
  acquireTime: [isTime, 'a time'],
  renewTime: [isTime, 'a time'],
  leaseTransitions: [isCount, 'a whole number'],
};

/** Refuses what cannot be read as a Lease: no typed client could. */
function checkLease(spec: unknown): void {
  if (spec === undefined || spec === null) return;
  if (!isRecord(spec)) throw unreadable('Lease', 'spec: expected an object');
  for (const [name, [fits, expected]] of Object.entries(FORM)) {
    const value = spec[name] ?? undefined;
    if (value !== undefined && !fits(value)) throw unreadable('Lease', `spec.${name}: expected ${expected}`);
  }
}

/** Upstream: `ValidateLeaseSpec`. */
function causesOf({ leaseDurationSeconds, leaseTransitions }: LeaseSpec): FieldCause[] {
  const causes: FieldCause[] = [];
  if ((leaseDurationSeconds ?? 1) <= 0) {
    const message = `Invalid value: ${leaseDurationSeconds}: must be greater than 0`;
    causes.push({ field: 'spec.leaseDurationSeconds', message });
  }
  if ((leaseTransitions ?? 0) < 0) {
    const message = `Invalid value: ${leaseTransitions}: must be greater than or equal to 0`;
    causes.push({ field: 'spec.leaseTransitions', message });
  }
  return causes;
}
