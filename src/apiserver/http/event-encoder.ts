/**
 * The wire form of the events of one kind. An event's bytes are spliced from those of its object, once per turn for any number of
 * watchers; watchers that read the same batch share the bytes of the whole batch. They are not kept besides the object's: a
 * window of events would be twice as large.
 *
 *     object ---> encoded(object) ----.
 *                                     v
 *     {"type":"ADDED","object": <these bytes> }      once per event and turn      --.
 *                                                                                    v
 *     batch of a view ---> [ envelope, envelope, ... ] ---> slice of 256 KiB in a form: once per batch and form
 */
import { Envelope } from '../../bridge/events/envelope.ts';
import { type Form, SLICE_BYTES, type Slice, toSlice } from '../../bridge/events/forms.ts';
import { toMark } from '../../bridge/transport/http-head.ts';
import type { List } from '../../cache/list-watcher.ts';
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import type { ChangeEvent, StorageEvent } from '../../storage/storage.ts';
import { encoded, encoding, isLarge, isReady } from '../../storage/values.ts';
import { isPromise } from '../../watch/abort.ts';
import { type BookmarkEvent, type ChangeType, isErrorEvent, isInitialEventsEnd } from '../../watch/event.ts';
import { atOnce, inPieces, type Pace, PIECE_MS, type Work } from '../../watch/fair-queue.ts';
import { nextTurn } from '../../watch/turn.ts';
import type { ResourceInfo } from '../resource-info.ts';
import type { SeenKind } from '../subresources.ts';

/** Makes the wire form of events, for one stream or for several. */
export interface EventEncoder {
  /** Await this before `slice` with the same `from`: encodes a large first event in pieces. Undefined: nothing to await. */
  prepare(batch: readonly StorageEvent<KubernetesObject>[], from: number, pace: Pace): Promise<void> | undefined;
  /** The bytes of some events of a batch, from `from` on. */
  slice(batch: readonly StorageEvent<KubernetesObject>[], from: number, form: Form): Slice;
}

/** One way to show objects. */
export interface Presentation {
  /** The headers of an answer that is an object or a list. */
  readonly headers: Readonly<Record<string, string>>;
  /** The media type of a watch. Default JSON. */
  readonly watchContentType?: string;
  /** Makes the body of an answer that is one object. */
  readonly writing: (kind: SeenKind, object: KubernetesObject) => Work<Uint8Array>;
  /** Does in pieces the slow work that a list needs before it is shown. */
  readonly prepareList?: (info: ResourceInfo, list: List<KubernetesObject>) => Work<void>;
  /** The body of an answer that is a list, in pieces, which are taken one by one as there is room for them. */
  list(info: ResourceInfo, list: List<KubernetesObject>): Iterable<Uint8Array>;
  events(info: ResourceInfo): EventEncoder;
}

/** What has been encoded of a batch so far. */
interface Made {
  /** The last slice that was asked for: watchers that keep pace all ask for the same one. */
  last: Slice | undefined;
  lastForm: Form | undefined;
  lastFrom: number;
  /** All of them, once there are several. */
  slices: Map<Form, Map<number, Slice>> | undefined;
}

/** How events look on the wire. */
export interface EventWire {
  readonly object: (type: ChangeType, object: KubernetesObject) => Envelope;
  /** Makes the bytes of an object for {@link object}; undefined if they exist. */
  readonly making: (object: KubernetesObject) => Work<unknown> | undefined;
  readonly bookmark: (event: BookmarkEvent, info: Pick<ResourceInfo, 'apiVersion' | 'kind'>) => Envelope;
  readonly error: (event: { readonly type: 'ERROR'; readonly object: object }) => Envelope;
  readonly form: (form: Form) => Form;
}

type Show = (object: KubernetesObject) => Work<KubernetesObject>;

/** Whether this is a change of an object that takes long to encode. */
export function isLargeChange(event: StorageEvent<KubernetesObject> | undefined): event is ChangeEvent<KubernetesObject> {
  return event !== undefined && event.type !== 'BOOKMARK' && event.type !== 'ERROR' && isLarge(event.object);
}

/** Events of whole objects, for all streams of a kind. */
export class PlainEvents implements EventEncoder {
  private readonly info: Pick<ResourceInfo, 'apiVersion' | 'kind'>;
  private readonly wire: EventWire;
  private readonly show: Show | undefined;
  private readonly batches: WeakMap<object, Made> = new WeakMap();
  /** The envelopes made in this turn, for watchers with other selectors. */
  private readonly envelopes: Map<StorageEvent<KubernetesObject>, Envelope> = new Map();
  /** Large objects whose bytes are being made, for all streams. */
  private readonly making: Map<KubernetesObject, Promise<void>> = new Map();

  /** `show`: how objects are shown; default as they are. */
  constructor(
    info: Pick<ResourceInfo, 'apiVersion' | 'kind'>,
    { wire = JSON_WIRE, show }: { readonly wire?: EventWire; readonly show?: Show | undefined } = {},
  ) {
    this.info = info;
    this.wire = wire;
    this.show = show;
  }

  prepare(batch: readonly StorageEvent<KubernetesObject>[], from: number): Promise<void> | undefined {
    const event = batch[from];
    if (!isLargeChange(event)) return undefined;
    const { object } = event;
    const known = this.making.get(object);
    if (known !== undefined) return known;
    const work = inPieces(this.work(object));
    if (!isPromise(work)) return undefined;
    const making = work.finally(() => this.making.delete(object));
    this.making.set(object, making);
    return making;
  }

  private *work(object: KubernetesObject): Work<void> {
    const making = this.wire.making(this.show ? yield* this.show(object) : object);
    if (making) yield* making;
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
    const slice = remembered(slices, from, () =>
      sliceOf(batch, from, { form: this.wire.form(form), toEnvelope: this.toEnvelope, isSlow: this.show !== undefined }),
    );
    Object.assign(made, { last: slice, lastForm: form, lastFrom: from });
    return slice;
  }

  private readonly toEnvelope = (event: StorageEvent<KubernetesObject>): Envelope => {
    if (event.type === 'BOOKMARK') return this.wire.bookmark(event, this.info);
    if (event.type === 'ERROR') return this.wire.error(event);
    const { envelopes, show } = this;
    const known = envelopes.get(event);
    if (known !== undefined) return known;
    if (envelopes.size === 0) nextTurn(() => envelopes.clear());
    const envelope = this.wire.object(event.type, show ? atOnce(show(event.object)) : event.object);
    envelopes.set(event, envelope);
    return envelope;
  };
}

/** How events are made into bytes. */
interface SliceTerms {
  readonly form: Form;
  readonly toEnvelope: (event: StorageEvent<KubernetesObject>) => Envelope;
  /** Whether objects take long to show, because they are stored in another version or shown in another form. */
  readonly isSlow: boolean;
}

/** The bytes of some events: no more than a slice takes, as a batch may be a whole collection. */
export function sliceOf(
  batch: readonly StorageEvent<KubernetesObject>[],
  from: number,
  { form, toEnvelope, isSlow }: SliceTerms,
): Slice {
  const envelopes: Envelope[] = [];
  let bytes = 0;
  const untilMs = isSlow ? performance.now() + PIECE_MS : Number.POSITIVE_INFINITY;
  const isLate = (): boolean => isSlow && envelopes.length > 0 && performance.now() >= untilMs;
  for (let at = from; at < batch.length && bytes <= SLICE_BYTES && !isLate(); at++) {
    // It has been prepared only if it is the first.
    if (at > from && isLargeChange(batch[at])) break;
    const envelope = toEnvelope(batch[at] as StorageEvent<KubernetesObject>);
    envelopes.push(envelope);
    bytes += envelope.bytes.length;
  }
  const slice = toSlice(envelopes, 0, form);
  return { ...slice, to: from + slice.to };
}

const encoder = new TextEncoder();
const heads: Map<string, Uint8Array> = new Map();

/** The envelope of an object in an event of a type, made from existing bytes. */
function objectEnvelope(type: ChangeType, object: KubernetesObject): Envelope {
  const head = remembered(heads, type, () => encoder.encode(`{"type":"${type}","object":`));
  const bytes = encoded(object);
  // From Node's pool: a thousand separate buffers for one slice would cost 50 ms of allocation and collection.
  const whole = Buffer.allocUnsafe(head.length + bytes.length + 1);
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

const JSON_WIRE: EventWire = {
  making: (object) => (isReady(object) ? undefined : encoding(object, true)),
  ...{ object: objectEnvelope, bookmark: bookmarkEnvelope, error: (event) => new Envelope(event, { sequence: 0 }) },
  form: (form) => form,
};

/** The value under a key of a map; if there is none, it is made now. */
function remembered<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = make();
  map.set(key, value);
  return value;
}

/**
 * The positions that a watch over Server-Sent Events sends. Its client reconnects by itself and resumes after the last `id:`, so
 * an id is sent only where nothing would be missed:
 *
 *     state:      ADDED ADDED ADDED          in the order of keys, not of versions: no ids
 *     its end:    BOOKMARK                   id: the version of the state
 *     afterwards: ADDED MODIFIED DELETED     id: the version of each
 *     too old:    ERROR 410                  id: empty, so that the next attempt has no version and starts over
 *
 * A client that has not asked for BOOKMARKs still gets their ids, in messages without data, which a page does not see.
 */

type Batch = readonly StorageEvent<KubernetesObject>[];

/** The events of one stream, with the positions from which its client can resume. */
export class EventStream implements EventEncoder {
  private readonly encoder: EventEncoder;
  private readonly bookmarks: boolean;
  private inState: boolean;
  /** The batch that is being sent, and the part of it that belongs to the state. */
  private batch: Batch | undefined = undefined;
  private part: Batch = [];

  /** `state`: the watch begins with it. `bookmarks`: the client has asked for them. */
  constructor(encoder: EventEncoder, { state, bookmarks }: { state: boolean; bookmarks: boolean }) {
    this.encoder = encoder;
    this.bookmarks = bookmarks;
    this.inState = state;
  }

  prepare(batch: Batch, from: number, pace: Pace): Promise<void> | undefined {
    return this.encoder.prepare(batch, from, pace);
  }

  slice(batch: Batch, from: number, form: Form): Slice {
    if (!this.inState) return this.encoder.slice(batch, from, formOf(form, this.bookmarks ? LIVE : QUIET_LIVE));
    if (batch !== this.batch) {
      const end = batch.findIndex(isInitialEventsEnd);
      this.batch = batch;
      // The batch itself is shared with other watches, and so are its bytes.
      this.part = end < 0 || end === batch.length - 1 ? batch : batch.slice(0, end + 1);
    }
    const { part } = this;
    const slice = this.encoder.slice(part, from, formOf(form, this.bookmarks ? STATE : QUIET_STATE));
    const last = part[part.length - 1];
    if (slice.to === part.length && last !== undefined && isInitialEventsEnd(last)) {
      this.inState = false;
      this.batch = undefined;
      this.part = [];
    }
    return slice;
  }
}

/** How events are written: whether each has its id, and whether a BOOKMARK is sent as an event. */
interface Manner {
  readonly ids: boolean;
  readonly bookmarks: boolean;
  /** One for each form of a transport: streams of one form share their bytes. */
  readonly forms: WeakMap<Form, Form>;
}

const STATE: Manner = { ids: false, bookmarks: true, forms: new WeakMap() };
const LIVE: Manner = { ids: true, bookmarks: true, forms: new WeakMap() };
const QUIET_STATE: Manner = { ids: false, bookmarks: false, forms: new WeakMap() };
const QUIET_LIVE: Manner = { ids: true, bookmarks: false, forms: new WeakMap() };

function formOf(form: Form, manner: Manner): Form {
  const known = manner.forms.get(form) ?? toForm(form, manner);
  manner.forms.set(form, known);
  return known;
}

function toForm(form: Form, { ids, bookmarks }: Manner): Form {
  const markOf = ({ type, id }: Envelope): Uint8Array | undefined =>
    bookmarks || type !== 'BOOKMARK' ? undefined : encoder.encode(toMark(id ?? ''));
  const shown = (envelope: Envelope): Envelope => {
    const { type } = envelope;
    if (isErrorEvent(envelope) && envelope.object.code === 410) return withId(envelope, '');
    return ids || type === 'BOOKMARK' ? envelope : withId(envelope, undefined);
  };
  return {
    chunked: form.chunked,
    size: (envelope) => markOf(envelope)?.length ?? form.size(shown(envelope)),
    put(envelope, to, at) {
      const mark = markOf(envelope);
      if (mark === undefined) return form.put(shown(envelope), to, at);
      to.set(mark, at);
      return at + mark.length;
    },
  };
}

function withId(envelope: Envelope, id: string | undefined): Envelope {
  if (envelope.id === id) return envelope;
  return new Envelope(envelope, { sequence: envelope.sequence, bytes: envelope.bytes, id });
}
