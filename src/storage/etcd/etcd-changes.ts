/**
 * The changes of a range, over as many Watch calls as it takes: after a cut, it resumes where the last one ended, at any member.
 *
 *     connect ---> read ---> read ---> cut ---> wait ---> connect ---> read ...
 *        '-- 1. ask etcd as a whole for its revision and term
 *            2. open a call at the member that answered, from the cursor on
 *
 * The first step keeps a watch away from members that have lost contact with the others, and shows whether etcd still has the
 * past that this watch has seen: if its revision or its term went back, or the last change is not the same, it was started with
 * other data. Then nothing can be resumed, and the watch ends with 410.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import type { Backoff } from '../../watch/backoff.ts';
import type { Clock } from '../../watch/clock.ts';
import type { WatchError } from '../../watch/errors.ts';
import type { Change, ChangeBatch, Changes, ChangesOptions, Entry } from '../backend.ts';
import { behind, toBytes, toText } from '../keys.ts';
import { expired, foreign, unavailable } from '../statuses.ts';
import { both, StoredEntry } from '../stored-entry.ts';
import { encoded, encodedBytes, LARGE_BYTES, spliceOf } from '../values.ts';
import {
  type CallStream,
  CODE,
  type Failure,
  isCompacted,
  isFuture,
  isPassing,
  isStaleToken,
  type Read,
  toError,
} from './wire/call-stream.ts';
import { type Channel, WATCH } from './wire/channel.ts';
import {
  type Header,
  type KeyEvent,
  type KeyValue,
  type RangeRequest,
  type RangeResponse,
  readWatch,
  type WatchResponse,
  writeWatchCreate,
  writeWatchProgress,
} from './wire/messages.ts';

/** How long to wait before a progress request is repeated: etcd does not answer it while it has events to send. */
const PROGRESS_MS = 200;
const MAX_PROGRESS_MS = 10_000;

/** How a call is made, and its name in errors. */
export interface CallContext {
  readonly what: string;
  readonly signal?: AbortSignal | undefined;
}

/** The calls of the backend that changes use. */
export interface EtcdCalls {
  readonly settings: { readonly clock: Clock };
  readonly channel: Channel;
  readonly recent: RecentObjects;
  head(context: CallContext): Promise<Header>;
  tryRange(request: RangeRequest, context: CallContext): Promise<RangeResponse | Failure>;
  read<R>(answer: Uint8Array, reading: (bytes: Uint8Array) => R, what: string): R;
  check(signal: AbortSignal | undefined): void;
  left(changes: object): void;
}

/** A change that etcd still has if its data is the same. The key is a copy, so as not to keep a whole response in memory. */
interface KnownChange {
  readonly key: Uint8Array;
  readonly revision: bigint;
  readonly deleted: boolean;
}

/** Which life of etcd's data a state is from. */
export interface EtcdLife {
  readonly header: Header;
  /** Its newest change: after a restore, revisions are issued again, and everything else may look as before. */
  readonly newest: KnownChange | undefined;
}

/** The newest change of these keys, or of the earlier ones. */
export function newestOf(kvs: readonly KeyValue[], before: KnownChange | undefined): KnownChange | undefined {
  let newest: KeyValue | undefined;
  for (const kv of kvs) if (kv.modRevision > (newest?.modRevision ?? before?.revision ?? 0n)) newest = kv;
  return newest ? { key: newest.key.slice(), revision: newest.modRevision, deleted: false } : before;
}

export class EtcdChanges<T extends KubernetesObject> implements Changes<T> {
  readonly #backend: EtcdCalls;
  readonly #abort: AbortController = new AbortController();
  readonly #context: CallContext & { readonly signal: AbortSignal };
  readonly #options: ChangesOptions;
  readonly #cursor: WatchCursor;
  readonly #backoff: Backoff;
  /** What etcd last said about itself. */
  #head: Pick<Header, 'clusterId' | 'term'> | undefined;
  #link: { readonly call: CallStream; readonly leave: () => void } | undefined;
  /** The last change that was delivered, or else the newest one of the initial state. */
  #last: KnownChange | undefined;
  #isNew: boolean = true;
  #owesProgress: boolean = false;
  #progressMs: number = PROGRESS_MS;
  #stopClock: (() => void) | undefined;

  /** Everything up to `after` is known. */
  constructor(backend: EtcdCalls, after: string, options: ChangesOptions) {
    this.#backend = backend;
    this.#options = options;
    const life = options.life as EtcdLife | undefined;
    this.#head = life?.header;
    this.#last = life?.newest;
    this.#cursor = new WatchCursor(BigInt(after));
    this.#context = { what: `watch ${options.prefix}`, signal: this.#abort.signal };
    this.#backoff = backend.channel.backoff();
  }

  /** Opens the first call. Rejects if etcd refuses it, or cannot be reached within the time of a request. */
  async open(): Promise<void> {
    const head = await this.#backend.head(this.#context);
    const { revision } = this.#cursor;
    if (head.revision < revision) throw foreign(`${revision}`, `${head.revision}`);
    if (this.#isOther(head)) throw this.#replaced(head);
    this.#head = head;
    this.#isNew = false;
    this.#call();
  }

  async next(): Promise<ChangeBatch<T> | undefined> {
    try {
      for (;;) {
        if (this.#abort.signal.aborted) return undefined;
        const link = this.#link;
        const batch = link ? this.#take(await link.call.read()) : await this.#reconnect();
        if (batch) return batch;
      }
    } catch (error) {
      if (this.#abort.signal.aborted) return undefined;
      throw error;
    }
  }

  poll(): ChangeBatch<T> | undefined {
    for (;;) {
      const read = this.#link?.call.poll();
      const batch = read && this.#take(read);
      if (batch || !read) return batch;
    }
  }

  requestProgress(): void {
    // If this has ended already, nobody would stop the timer.
    if (this.#abort.signal.aborted) return;
    this.#owesProgress = true;
    // A new caller does not inherit the long delay of an earlier one during an outage.
    if (this.#progressMs > 2 * PROGRESS_MS) this.#stopAsking();
    this.#progressMs = PROGRESS_MS;
    if (!this.#stopClock) this.#askProgress();
  }

  close(): void {
    this.#abort.abort();
    this.#stopAsking();
    this.#owesProgress = false;
    this.#link?.call.cancel();
    this.#link = undefined;
    this.#backend.left(this);
  }

  #stopAsking(): void {
    this.#stopClock?.();
    this.#stopClock = undefined;
  }

  #askProgress(): void {
    this.#stopClock = undefined;
    if (!this.#owesProgress) return;
    // Without an open call, the next one asks.
    this.#link?.call.write(writeWatchProgress());
    this.#stopClock = this.#backend.settings.clock.schedule(this.#progressMs, () => this.#askProgress());
    this.#progressMs = Math.min(this.#progressMs * 2, MAX_PROGRESS_MS);
  }

  #call(): void {
    // If it was ended in the meantime, nothing would end a later call.
    if (this.#abort.signal.aborted) return;
    const opened = this.#backend.channel.stream(WATCH);
    if ('failure' in opened) return;
    const { prefix, previous } = this.#options;
    const key = toBytes(prefix);
    opened.call.write(writeWatchCreate({ key, end: behind(key), startRevision: this.#cursor.resume(), previous }));
    this.#link = opened;
    if (this.#owesProgress) opened.call.write(writeWatchProgress());
  }

  /** Resumes at the cursor, after a wait. Throws if that can never succeed. */
  async #reconnect(): Promise<undefined> {
    const waitMs = this.#isNew ? 0 : this.#backoff.failed({});
    if (waitMs > 0) await this.#backend.channel.wait(waitMs, this.#abort.signal);
    const isFirst = this.#isNew;
    this.#isNew = false;
    let head: Header;
    try {
      head = await this.#backend.head(this.#context);
      if (!isFirst && !(await this.#isKnown())) throw this.#replaced(head);
    } catch (error) {
      this.#backend.check(this.#abort.signal);
      if ((error as WatchError).code === 'TIMEOUT') return;
      throw error;
    }
    if (this.#isOther(head) || head.revision < this.#cursor.revision) throw this.#replaced(head);
    this.#head = head;
    this.#call();
  }

  /** Whether this is another etcd than before, or the same one with older data. */
  #isOther({ clusterId, term }: Header): boolean {
    return this.#head !== undefined && (clusterId !== this.#head.clusterId || term < this.#head.term);
  }

  /** Whether etcd still has the last change that it delivered, or has compacted it. */
  async #isKnown(): Promise<boolean> {
    if (!this.#last) return true;
    const { key, revision, deleted } = this.#last;
    const range = await this.#backend.tryRange({ key, revision }, this.#context);
    if ('kvs' in range) return range.kvs[0]?.modRevision === (deleted ? undefined : revision);
    if (isFuture(range)) return false;
    if (isCompacted(range)) return true;
    throw toError(range, this.#context);
  }

  #replaced({ revision }: Header): WatchError {
    return expired(`${this.#cursor.revision}`, `etcd was started with other data, now at ${revision}`);
  }

  /** The new part of a message, if there is any. */
  #take(read: Read): ChangeBatch<T> | undefined {
    if ('ended' in read) return this.#lost(read.ended);
    const response = this.#backend.read(read.message, readWatch, this.#context.what);
    if (response.canceled) return this.#cancelled(response);
    if (response.created) return undefined;
    this.#backoff.healthy();
    const last = response.events.at(-1);
    if (last) {
      this.#last = { key: last.kv.key.slice(), revision: last.kv.modRevision, deleted: last.deleted };
      const events = this.#cursor.events(response);
      const { recent } = this.#backend;
      return events.length > 0 ? { changes: events.map((event) => new EtcdChange<T>(event, recent)) } : undefined;
    }
    if (!this.#cursor.progress(response.header.revision)) return undefined;
    this.#owesProgress = false;
    return { changes: [], progress: `${response.header.revision}` };
  }

  /** The call is over. Usually, another one can go on. */
  #lost(failure: Failure | undefined): undefined {
    this.#drop();
    if (failure === undefined || isPassing(failure) || !isRefusal(failure)) return;
    if (!isStaleToken(failure)) throw toError(failure, this.#context);
    this.#backend.channel.forgetToken();
  }

  #cancelled({ compactRevision, cancelReason }: WatchResponse): undefined {
    this.#drop();
    if (compactRevision > 0n) throw expired(`${this.#cursor.revision}`, `${compactRevision}`);
    if (cancelReason.includes('permission denied')) throw unavailable(`${this.#context.what}: ${cancelReason}`);
    if (cancelReason.includes('auth')) this.#backend.channel.forgetToken();
  }

  #drop(): void {
    this.#link?.leave();
    this.#link?.call.cancel();
    this.#link = undefined;
  }
}

/** Whether retrying will not help. Broken connections are reported in many ways. */
function isRefusal({ code, error }: Failure): boolean {
  return error !== undefined || code === CODE.permissionDenied || code === CODE.unauthenticated || code === CODE.invalidArgument;
}

/** An entry of etcd. Key and value are decoded when they are needed. */
export class EtcdEntry<T extends KubernetesObject> extends StoredEntry<T> {
  readonly kv: KeyValue;
  /** Only in the last entry of a part: the newest change up to here. */
  readonly newest: KnownChange | undefined;

  constructor(kv: KeyValue, newest?: KnownChange) {
    super();
    this.kv = kv;
    this.newest = newest;
  }

  get key(): string {
    return toText(this.kv.key);
  }

  get revision(): string {
    return `${this.kv.modRevision}`;
  }

  protected get value(): Uint8Array {
    return this.kv.value;
  }
}

class EtcdChange<T extends KubernetesObject> implements Change<T> {
  readonly type: Change<T>['type'];
  readonly #event: KeyEvent;
  readonly #recent: RecentObjects;
  #now: Entry<KubernetesObject> | undefined;
  #before: Entry<KubernetesObject> | undefined;

  constructor(event: KeyEvent, recent: RecentObjects) {
    const { deleted, kv } = event;
    this.type = deleted ? 'DELETED' : kv.createRevision === kv.modRevision ? 'ADDED' : 'MODIFIED';
    this.#event = event;
    this.#recent = recent;
  }

  get key(): string {
    return toText(this.#event.kv.key);
  }

  get revision(): string {
    return `${this.#event.kv.modRevision}`;
  }

  get object(): T | undefined {
    return this.type === 'DELETED' ? undefined : this.#shared(this.#event.kv, this.#now);
  }

  /** Etcd leaves out a previous value that has been compacted. */
  get previous(): T | undefined {
    if (this.type === 'ADDED') return undefined;
    const { previous, kv } = this.#event;
    if (previous && previous.modRevision !== 0n) return this.#shared(previous, this.#before);
    throw expired(`${kv.modRevision - 1n}`, 'the previous value has been compacted');
  }

  load(): Promise<void> | undefined {
    const { deleted, kv, previous } = this.#event;
    if (!deleted) this.#now ??= this.#recent.loading(kv);
    if (previous) this.#before ??= this.#recent.loading(previous);
    return both(this.#now?.load?.(), this.#before?.load?.());
  }

  /** There is one object for a key and a revision, whether it comes from a write or a watch. */
  #shared(kv: KeyValue, loaded: Entry<KubernetesObject> | undefined): T {
    const known = loaded ? undefined : this.#recent.find(kv);
    if (known !== undefined) return known as T;
    const { object } = loaded ?? new EtcdEntry<T>(kv);
    this.#recent.add(kv.modRevision, object);
    return object as T;
  }
}

/**
 * The position of a watch of etcd: which events have come, and where to resume after a cut. Pure: responses in, new events out.
 *
 *     revision   5 5 | 6 | 7 7 7          what etcd has, with start 5
 *     responses  [5 5 6 7 ...][... 7 7]   the first is a fragment: more of its last revision may follow
 *     given out   5 5 6         7 7 7     a revision is given out as a whole: one can resume after its number
 *                          ^ cut here: go on at 7, and leave out the first event of 7, which has come
 *
 * The header of a response with events says what the member has, not what was sent, so it is ignored. That of a response without
 * events, which is progress, says that everything up to it was sent.
 *
 * Invariants
 * - Every event of a revision up to `revision` has been given out. Of the next one, the first events may be in `#partial`.
 * - `revision` never goes back. No event is given out twice.
 */
export class WatchCursor {
  #revision: bigint;
  /** The events so far of a revision that is not complete yet. */
  #partial: KeyEvent[] = [];
  /** How many of its events come again after a cut. */
  #again: number = 0;

  /** Everything up to this revision has been given out. */
  constructor(revision: bigint) {
    this.#revision = revision;
  }

  get revision(): bigint {
    return this.#revision;
  }

  /** Returns the revision to resume at, where the next events begin. */
  resume(): bigint {
    this.#again = this.#partial.length;
    return this.#revision + 1n;
  }

  /** Takes a response with events, and returns the new ones, in complete revisions. */
  events({ events, fragment }: Pick<WatchResponse, 'events' | 'fragment'>): KeyEvent[] {
    const whole: KeyEvent[] = [];
    for (const event of events) {
      const { modRevision } = event.kv;
      if (modRevision <= this.#revision) continue;
      if (this.#partial[0]?.kv.modRevision !== modRevision) whole.push(...this.#complete(modRevision - 1n));
      if (this.#again > 0) this.#again--;
      else this.#partial.push(event);
    }
    const last = events.at(-1);
    if (last && !fragment) whole.push(...this.#complete(last.kv.modRevision));
    return whole;
  }

  /** Takes a response without events. Returns whether it says anything new. */
  progress(revision: bigint): boolean {
    if (revision < this.#revision) return false;
    this.#complete(revision);
    return true;
  }

  #complete(revision: bigint): readonly KeyEvent[] {
    if (revision < this.#revision) return [];
    const whole = this.#partial;
    this.#revision = revision;
    this.#partial = [];
    this.#again = 0;
    return whole;
  }
}

/** The limit for the total size of the objects' JSON. */
const MAX_BYTES = 4_194_304;

/**
 * Objects that were just written or delivered, by revision. A write comes back in a watch, and the object that a watch has
 * delivered is the previous one of the next change: neither has to be decoded again, and a cache shares the bytes of the answer
 * to the write.
 *
 *     update ---> etcd ---> answer ---> object at 7 ----.
 *                  '------> watch: 7 { ... } -----------+---> the same object
 *
 * Bytes are compared with those that etcd sends: another etcd, or one that was started with other data, may have something else
 * at a revision.
 */
export class RecentObjects {
  readonly #objects: Map<bigint, object> = new Map();
  /** Values that are being decoded. */
  readonly #loading: Map<bigint, EtcdEntry<KubernetesObject>> = new Map();
  #bytes: number = 0;

  /** Keeps an encoded object, as long as there is room for it and for later ones. */
  add(revision: bigint, object: object): void {
    const bytes = encodedBytes(object);
    if (bytes === undefined || this.#objects.has(revision)) return;
    this.#objects.set(revision, object);
    this.#bytes += bytes;
    for (const [oldest, each] of this.#objects) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#objects.delete(oldest);
      this.#bytes -= encodedBytes(each) ?? 0;
    }
  }

  /** The object that a value contains, if it is known. */
  find(kv: KeyValue): object | undefined {
    const object = this.#objects.get(kv.modRevision);
    return object !== undefined && isEncodingOf(encoded(object), kv) ? object : undefined;
  }

  /** The entry of a large value: with its object, if that is known, or one that all who load it at the same time share. */
  loading(kv: KeyValue): Entry<KubernetesObject> | undefined {
    const { modRevision, value } = kv;
    if (value.length <= LARGE_BYTES) return undefined;
    const object = this.find(kv);
    if (object) return { key: toText(kv.key), object };
    const known = this.#loading.get(modRevision);
    if (known && Buffer.compare(known.kv.value, value) === 0) return known;
    const entry = new EtcdEntry<KubernetesObject>(kv);
    this.#loading.set(modRevision, entry);
    void entry.load()?.then(() => this.#loading.delete(modRevision));
    return entry;
  }

  clear(): void {
    this.#objects.clear();
    this.#bytes = 0;
  }
}

/** Whether these bytes are the encoding of this value at its revision. */
function isEncodingOf(bytes: Uint8Array, { value, modRevision }: KeyValue): boolean {
  const { head, start } = spliceOf(value, `${modRevision}`);
  const { length } = start;
  if (bytes.length - head.length !== value.length - length) return false;
  if (Buffer.compare(value.subarray(0, length), start) !== 0) return false;
  return Buffer.compare(bytes.subarray(head.length), value.subarray(length)) === 0;
}
