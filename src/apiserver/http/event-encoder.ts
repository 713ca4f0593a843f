/**
 * The wire form of the events of one kind. An event's bytes are spliced from those of its object, once in a turn for any number
 * of watchers; watchers that read the same batch share the bytes of the whole batch. They are not kept in addition to the
 * object's: a window of events would be twice as large.
 *
 *     object ---> encoded(object) ----.
 *                                     v
 *     {"type":"ADDED","object": <these bytes> }      once per event and turn      --.
 *                                                                                    v
 *     batch of a view ---> [ envelope, envelope, ... ] ---> slice of 256 KiB in a form: once per batch and form
 */
import { Envelope } from '../../bridge/events/envelope.ts';
import { type Form, SLICE_BYTES, type Slice, toSlice } from '../../bridge/events/forms.ts';
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import { encoded } from '../../storage/values.ts';
import type { StorageEvent } from '../../storage/storage.ts';
import type { BookmarkEvent, ChangeType } from '../../watch/event.ts';
import { nextTurn } from '../../watch/turn.ts';
import type { ResourceInfo } from '../resource-info.ts';

/** Makes the wire form of events, for one stream or for several. */
export interface EventEncoder {
  /** The bytes of some events of a batch, from `from` on. */
  slice(batch: readonly StorageEvent<KubernetesObject>[], from: number, form: Form): Slice;
}

/** What has been made of a batch so far. */
interface Made {
  /** The last slice that was asked for: five hundred watchers in step ask for the same one. */
  last: Slice | undefined;
  lastForm: Form | undefined;
  lastFrom: number;
  /** All of them, once there are several. */
  slices: Map<Form, Map<number, Slice>> | undefined;
}

/** Events as they are, for all streams of a kind. */
export class PlainEvents implements EventEncoder {
  private readonly info: Pick<ResourceInfo, 'apiVersion' | 'kind'>;
  private readonly batches: WeakMap<object, Made> = new WeakMap();
  /** What was made in this turn, for watchers of other selections. */
  private readonly envelopes: Map<StorageEvent<KubernetesObject>, Envelope> = new Map();

  constructor(info: Pick<ResourceInfo, 'apiVersion' | 'kind'>) {
    this.info = info;
  }

  slice(batch: readonly StorageEvent<KubernetesObject>[], from: number, form: Form): Slice {
    let made = this.batches.get(batch);
    if (made === undefined) {
      made = { last: undefined, lastForm: undefined, lastFrom: 0, slices: undefined };
      this.batches.set(batch, made);
    }
    if (made.last !== undefined && made.lastForm === form && made.lastFrom === from) return made.last;
    made.slices ??= new Map();
    const slices = remembered(made.slices, form, () => new Map<number, Slice>());
    const slice = remembered(slices, from, () => this.make(batch, from, form));
    Object.assign(made, { last: slice, lastForm: form, lastFrom: from });
    return slice;
  }

  private make(batch: readonly StorageEvent<KubernetesObject>[], from: number, form: Form): Slice {
    const envelopes: Envelope[] = [];
    let bytes = 0;
    for (let at = from; at < batch.length && bytes <= SLICE_BYTES; at++) {
      const envelope = this.envelope(batch[at] as StorageEvent<KubernetesObject>);
      envelopes.push(envelope);
      bytes += envelope.bytes.length;
    }
    const slice = toSlice(envelopes, 0, form);
    return { ...slice, to: from + slice.to };
  }

  private envelope(event: StorageEvent<KubernetesObject>): Envelope {
    if (event.type === 'BOOKMARK') return bookmarkEnvelope(event, this.info);
    if (event.type === 'ERROR') return errorEnvelope(event);
    const { envelopes } = this;
    const known = envelopes.get(event);
    if (known !== undefined) return known;
    if (envelopes.size === 0) nextTurn(() => envelopes.clear());
    const envelope = objectEnvelope(event.type, event.object);
    envelopes.set(event, envelope);
    return envelope;
  }
}

const encoder = new TextEncoder();
const heads: Map<string, Uint8Array> = new Map();

/** The envelope of an object in an event of a type, made from existing bytes. */
function objectEnvelope(type: ChangeType, object: KubernetesObject): Envelope {
  const head = remembered(heads, type, () => encoder.encode(`{"type":"${type}","object":`));
  const bytes = encoded(object);
  const whole = new Uint8Array(head.length + bytes.length + 1);
  whole.set(head);
  whole.set(bytes, head.length);
  whole[whole.length - 1] = BRACE;
  return new Envelope({ type, object }, { sequence: 0, bytes: whole, id: versionOf(object) || undefined });
}

const BRACE = 0x7d;

/** A BOOKMARK has the kind of the watched resource: otherwise typed clients could not read it. */
function bookmarkEnvelope({ object }: BookmarkEvent, { apiVersion, kind }: Pick<ResourceInfo, 'apiVersion' | 'kind'>): Envelope {
  const { metadata } = object;
  const told = { kind, apiVersion, metadata };
  return new Envelope({ type: 'BOOKMARK', object: told }, { sequence: 0, id: metadata.resourceVersion });
}

/** An ERROR: nothing comes after it. */
export function errorEnvelope(event: { readonly type: 'ERROR'; readonly object: object }): Envelope {
  return new Envelope(event, { sequence: 0 });
}

/** The value under a key of a map; if there is none, it is made now. */
function remembered<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = make();
  map.set(key, value);
  return value;
}
