/**
 * The built-in kinds in protobuf: client-go's typed clients, and so `kubectl create configmap`, have sent nothing else since
 * 1.35, and do not try JSON when they are refused. Objects of other kinds are sent as JSON by every client. Answers are in JSON,
 * which these clients also accept. Upstream: `generated.proto` of `meta/v1`, `core/v1` and `coordination/v1`, and
 * `runtime.Unknown`.
 */
import { badRequest } from '../../storage/statuses.ts';
import { type Field, type MessageKind, readMessage } from './wire.ts';

/** The media type. */
export const PROTOBUF: string = 'application/vnd.kubernetes.protobuf';

/** Zero seconds stand for Go's zero time, which is no time. */
const TIME: MessageKind = {
  fields: { 1: ['seconds', 'number'] },
  finish: ({ seconds = 0 }) => {
    const time = new Date(Number(seconds) * 1_000);
    return seconds === 0 || Number.isNaN(time.getTime()) ? undefined : time.toISOString().replace('.000Z', 'Z');
  },
};

/** With microseconds, always six digits. No Lease is from the year 10,000. */
const MICRO_TIME: MessageKind = {
  fields: { 1: ['seconds', 'number'], 2: ['nanos', 'number'] },
  finish: ({ seconds = 0, nanos = 0 }) => {
    if (seconds === 0 && nanos === 0) return undefined;
    const time = new Date(Number(seconds) * 1_000);
    const micros = Math.floor(Number(nanos) / 1_000);
    if (!(time.getTime() >= YEAR_0 && time.getTime() < YEAR_10_000 && micros >= 0 && micros < 1_000_000)) {
      throw badRequest('the body is not protobuf of this kind: a time is out of range');
    }
    return `${time.toISOString().slice(0, 19)}.${String(micros).padStart(6, '0')}Z`;
  },
};
const YEAR_0 = Date.parse('0000-01-01T00:00:00Z');
const YEAR_10_000 = Date.UTC(10_000, 0);

const OWNER_REFERENCE: MessageKind = {
  fields: {
    ...{ 1: ['kind', 'text'], 3: ['name', 'text'], 4: ['uid', 'text'], 5: ['apiVersion', 'text'] },
    ...{ 6: ['controller', 'flag'], 7: ['blockOwnerDeletion', 'flag'] },
  },
};

const METADATA: MessageKind = {
  fields: {
    ...{ 1: ['name', 'text'], 2: ['generateName', 'text'], 3: ['namespace', 'text'], 5: ['uid', 'text'] },
    ...{ 6: ['resourceVersion', 'text'], 7: ['generation', 'number'], 8: ['creationTimestamp', TIME] },
    ...{ 9: ['deletionTimestamp', TIME], 10: ['deletionGracePeriodSeconds', 'number'] },
    ...{ 11: ['labels', 'text', 'map'], 12: ['annotations', 'text', 'map'] },
    ...{ 13: ['ownerReferences', OWNER_REFERENCE, 'list'], 14: ['finalizers', 'text', 'list'] },
  },
  finish: plain,
};

const metadata: Field = ['metadata', METADATA];

const KINDS: Readonly<Record<string, MessageKind>> = {
  'v1/ConfigMap': {
    fields: { 1: metadata, 2: ['data', 'text', 'map'], 3: ['binaryData', 'base64', 'map'], 4: ['immutable', 'flag'] },
  },
  'v1/Namespace': {
    fields: {
      1: metadata,
      2: ['spec', { fields: { 1: ['finalizers', 'text', 'list'] } }],
      3: ['status', { fields: { 1: ['phase', 'text'] }, finish: plain }],
    },
  },
  'coordination.k8s.io/v1/Lease': {
    fields: {
      1: metadata,
      2: [
        'spec',
        {
          fields: {
            ...{ 1: ['holderIdentity', 'text'], 2: ['leaseDurationSeconds', 'number'] },
            ...{ 3: ['acquireTime', MICRO_TIME], 4: ['renewTime', MICRO_TIME], 5: ['leaseTransitions', 'number'] },
          },
        },
      ],
    },
  },
};

/** The options of a deletion, of any kind. */
const DELETE_OPTIONS: MessageKind = {
  fields: {
    1: ['gracePeriodSeconds', 'number'],
    2: ['preconditions', { fields: { 1: ['uid', 'text'], 2: ['resourceVersion', 'text'] } }],
    4: ['propagationPolicy', 'text'],
    5: ['dryRun', 'text', 'list'],
  },
};

const TYPE: MessageKind = { fields: { 1: ['apiVersion', 'text'], 2: ['kind', 'text'] } };
const MAGIC = [0x6b, 0x38, 0x73, 0x00] as const;

/** A kind, as a definition names it. */
interface NamedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

const nameOf = ({ group, version, kind }: NamedKind): string => `${group === '' ? '' : `${group}/`}${version}/${kind}`;

/** Whether objects of a kind may be sent in protobuf. */
export function hasProtobuf(kind: NamedKind): boolean {
  return Object.hasOwn(KINDS, nameOf(kind));
}

/** Reads an object. Throws 400. */
export function readProtobuf(bytes: Uint8Array, kind: NamedKind): unknown {
  return readEnvelope(bytes, KINDS[nameOf(kind)] as MessageKind);
}

/** Reads the options of a deletion. Throws 400. */
export function readDeleteOptions(bytes: Uint8Array): unknown {
  return readEnvelope(bytes, DELETE_OPTIONS);
}

/** Reads an envelope, which names the kind and contains the object. */
function readEnvelope(bytes: Uint8Array, kind: MessageKind): object {
  if (!MAGIC.every((byte, at) => bytes[at] === byte))
    throw badRequest('the body is not protobuf of Kubernetes: it begins differently');
  const envelope: MessageKind = { fields: { 1: ['type', TYPE], 2: ['object', kind] } };
  const { type, object } = readMessage(bytes.subarray(MAGIC.length), envelope) as { type?: object; object?: object };
  return { ...type, ...object };
}

/** Without empty values: protobuf cannot distinguish an empty text from a missing one. */
function plain(message: Record<string, unknown>): unknown {
  return Object.fromEntries(Object.entries(message).filter(([, value]) => value !== '' && value !== 0 && value !== undefined));
}
