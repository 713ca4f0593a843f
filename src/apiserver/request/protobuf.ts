/**
 * Reads protobuf by a description of its fields. Unknown fields are skipped, as protobuf demands. Every length is checked against
 * the bytes that are there, and messages are nested no deeper than their descriptions.
 */
import { badRequest } from '../../storage/statuses.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';

/** The type of a field: a value, or a message. A list has each occurrence of it; a map is a list of keys and values. */
type FieldKind = 'text' | 'base64' | 'number' | 'flag' | MessageKind;
type Field = readonly [name: string, kind: FieldKind] | readonly [name: string, kind: FieldKind, many: 'list' | 'map'];

/** The fields of a message by their numbers, and the conversion of the result. */
interface MessageKind {
  readonly fields: Readonly<Record<number, Field>>;
  readonly finish?: ((message: Record<string, unknown>) => unknown) | undefined;
}

const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5] as const;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads a message. Throws 400 for invalid bytes. */
function* readMessage(bytes: Uint8Array, kind: MessageKind, steps: Steps): Work<unknown> {
  const message: Record<string, unknown> = {};
  const reader = new Reader(bytes);
  while (reader.more) {
    if (++steps.count % STRIDE === 0) yield;
    const tag = reader.varint();
    const [number, wire] = [Math.floor(tag / 8), tag % 8];
    if (number < 1) throw broken('a field has no number');
    const field = Object.hasOwn(kind.fields, number) ? kind.fields[number] : undefined;
    if (field === undefined) reader.skip(wire);
    else put(message, field, yield* readField(reader, wire, { field, steps }));
  }
  return kind.finish ? kind.finish(message) : message;
}

/** How many fields of all messages have been read. */
interface Steps {
  count: number;
}

function* readField(
  reader: Reader,
  wire: number,
  { field: [name, kind, many], steps }: { readonly field: Field; readonly steps: Steps },
): Work<unknown> {
  const numeric = kind === 'number' || kind === 'flag';
  if (wire !== (numeric ? VARINT : BYTES)) throw broken(`${name} has another type`);
  if (kind === 'number') return reader.varint();
  if (kind === 'flag') return reader.varint() !== 0;
  const bytes = reader.bytes();
  if (many === 'map') return yield* readMessage(bytes, { fields: { 1: ['key', 'text'], 2: ['value', kind] } }, steps);
  if (kind === 'base64') return yield* toBase64(bytes);
  return kind === 'text' ? toText(bytes) : yield* readMessage(bytes, kind, steps);
}

function put(message: Record<string, unknown>, [name, kind, many]: Field, value: unknown): void {
  if (many === undefined) {
    // A zero time has no value.
    if (value !== undefined) message[name] = value;
  } else if (many === 'list') {
    const list = (message[name] ?? []) as unknown[];
    list.push(value);
    message[name] = list;
  } else {
    const values = (message[name] ?? {}) as Record<string, unknown>;
    const { key = '', value: own = kind === 'text' || kind === 'base64' ? '' : undefined } = value as {
      key?: string;
      value?: unknown;
    };
    // A key may be `__proto__`.
    Object.defineProperty(values, key, { value: own, enumerable: true, configurable: true, writable: true });
    message[name] = values;
  }
}

function toText(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw broken('a text is not UTF-8');
  }
}

/** In parts, because a call takes a limited number of arguments. Not with Buffer, which other hosts lack. */
function* toBase64(bytes: Uint8Array): Work<string> {
  let text = '';
  for (let at = 0; at < bytes.length; at += PART_BYTES) {
    if (at > 0) yield;
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + PART_BYTES)));
  }
  return text;
}

/** Whole groups of three bytes, so that the texts of the parts can be joined. */
const PART_BYTES = 8_190;

class Reader {
  readonly #bytes: Uint8Array;
  #at: number = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get more(): boolean {
    return this.#at < this.#bytes.length;
  }

  /** A signed integer of 64 bits, in two halves. Beyond 2^53 it is not exact. */
  varint(): number {
    let [low, high] = [0, 0];
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw broken('it ends within a number');
      const bits = byte & 127;
      if (shift < 32) low |= bits << shift;
      if (shift > 25) high |= shift < 32 ? bits >> (32 - shift) : bits << (shift - 32);
      if (byte < 128) return high * 2 ** 32 + (low >>> 0);
    }
    throw broken('a number is too long');
  }

  bytes(): Uint8Array {
    const length = this.varint();
    if (length < 0 || length > this.#bytes.length - this.#at) throw broken('it ends within a value');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  skip(wire: number): void {
    if (wire === VARINT) this.varint();
    else if (wire === BYTES) this.bytes();
    else if (wire === FIXED64) this.#at += 8;
    else if (wire === FIXED32) this.#at += 4;
    else throw broken('it has an unknown type of value');
    if (this.#at > this.#bytes.length) throw broken('it ends within a value');
  }
}

function broken(why: string): Error {
  return badRequest(`the body is not protobuf of this kind: ${why}`);
}

/**
 * The built-in kinds in protobuf: client-go's typed clients, and so `kubectl create configmap`, have sent nothing else since
 * 1.35, and do not try JSON when they are refused. Objects of other kinds are sent as JSON by every client. Answers are in JSON,
 * which these clients also accept. Upstream: `generated.proto` of `meta/v1`, `core/v1` and `coordination/v1`, and
 * `runtime.Unknown`.
 */

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
    3: ['orphanDependents', 'flag'],
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
export function readProtobuf(bytes: Uint8Array, kind: NamedKind): Work<unknown> {
  return readEnvelope(bytes, KINDS[nameOf(kind)] as MessageKind);
}

/** Reads the options of a deletion. Throws 400. */
export function readDeleteOptions(bytes: Uint8Array): Work<unknown> {
  return readEnvelope(bytes, DELETE_OPTIONS);
}

/** Reads an envelope, which names the kind and contains the object. */
function* readEnvelope(bytes: Uint8Array, kind: MessageKind): Work<object> {
  if (!MAGIC.every((byte, at) => bytes[at] === byte))
    throw badRequest('the body is not protobuf of Kubernetes: it begins differently');
  const envelope: MessageKind = { fields: { 1: ['type', TYPE], 2: ['object', kind] } };
  const message = yield* readMessage(bytes.subarray(MAGIC.length), envelope, { count: 0 });
  const { type, object } = message as { type?: object; object?: object };
  return { ...type, ...object };
}

/** Without empty values: protobuf cannot distinguish an empty text from a missing one. */
function plain(message: Record<string, unknown>): unknown {
  return Object.fromEntries(Object.entries(message).filter(([, value]) => value !== '' && value !== 0 && value !== undefined));
}
