/**
 * A watch of a storage over a backend: the state, if it is asked for, then the changes, as events. It reads only when its
 * consumer does, so a slow consumer holds up nobody: the backend keeps its place, and reads the past again for it.
 *
 *     [ parts of the list at 7 ] ---> BOOKMARK 7 ---> changes after 7, BOOKMARKs of progress ---> ERROR, or stop
 *
 * For a watch with a selector, a change means that an object enters, changes, leaves, or none of these. To decide, it needs the
 * previous object. A consumer that keeps the state can supply it: then the backend need not read it for every change, or even
 * have it.
 *
 *     delivered, and taken by the consumer      delivered since its last wait     the next change
 *     [ previousOf(key) ]                       [ #since ]                        ^ what was before it?
 */
import type { KubernetesObject } from '../cache/object.ts';
import { whenAborted } from '../watch/abort.ts';
import { isWatchError, whyOf } from '../watch/errors.ts';
import { type BookmarkEvent, INITIAL_EVENTS_END, type Status, toStatus } from '../watch/event.ts';
import { type Pace, requestPace, setPace } from '../watch/fair-queue.ts';
import { type PullSource, PullWatch } from '../watch/pull-watch.ts';
import { NONE } from '../watch/reader.ts';
import type { Watch } from '../watch/watch.ts';
import { type ListPart, type OpenWatch, Parts, type ScopeSettings } from './backed-lists.ts';
import type { Change, ChangeBatch, Changes, Entry } from './backend.ts';
import type { WatchPlan } from './requests.ts';
import { refused } from './statuses.ts';
import type { StorageEvent } from './storage.ts';
import { atVersion } from './values.ts';

/** What a watch delivers. */
interface WatchOpening<T> {
  readonly prefix: string;
  readonly plan: WatchPlan;
  readonly selects: ((object: T) => boolean) | undefined;
  /** Returns the consumer's current object under a key, in place of the backend's. */
  readonly previousOf: ((key: string) => T | undefined) | undefined;
}

/** Opens a watch. It ends with its signal, at its timeout, and with the storage. */
export async function openWatch<T extends KubernetesObject>(
  shared: ScopeSettings,
  opening: WatchOpening<T>,
  { signal, timeoutMs }: { signal: AbortSignal | undefined; timeoutMs: number },
): Promise<Watch<StorageEvent<T>>> {
  let watch: BackedWatch<T> | undefined;
  let stopClock: (() => void) | undefined;
  let leave = (): void => {};
  const onAbort = (): void => (watch ? watch.stop() : source.cancel(signal?.reason));
  const onEnd = (): void => {
    stopClock?.();
    shared.watches.delete(entry);
    leave();
  };
  const source = new BackedEvents<T>(shared, { ...opening, onEnd, pace: requestPace(signal) });
  const entry: OpenWatch = { prefix: opening.prefix, requestProgress: () => source.requestProgress(), stop: onAbort };
  shared.watches.add(entry);
  leave = whenAborted(signal, onAbort);
  try {
    await source.open();
    shared.pending.check(signal);
  } catch (error) {
    source.cancel();
    shared.pending.check(signal);
    throw error;
  }
  watch = new BackedWatch<T>(source);
  const opened = watch;
  if (timeoutMs > 0) stopClock = shared.clock.schedule(timeoutMs, () => opened.stop());
  return watch;
}

/** The events of a watch. Only what is next to deliver is decoded. */
export class BackedEvents<T extends KubernetesObject> implements PullSource<StorageEvent<T>> {
  readonly #shared: ScopeSettings;
  readonly #options: WatchOpening<T> & { readonly onEnd: () => void };
  readonly #abort: AbortController = new AbortController();
  /** Whether the consumer keeps the state, so that `previousOf` is asked. It lacks the objects that a selector hides. */
  readonly #isAsked: boolean;
  /** What has been delivered since the consumer last waited, by key. */
  readonly #since: Map<string, T | undefined> = new Map();
  /** What waits, in reverse order. Delivered entries are dropped, as large ones have been decoded. */
  #waiting: (Entry<T> | Change<T>)[] = [];
  /** The last of those that was delivered. */
  #last: Entry<T> | Change<T> | undefined;
  /** The event that follows it. */
  #then: StorageEvent<T> | undefined;
  /** The rest of the state. */
  #parts: Parts<T> | undefined;
  #changes: Changes<T> | undefined;
  /** Pending while the next entry, which is large, is being decoded. */
  #loading: Promise<void> | undefined;
  #owesProgress: boolean = false;
  #over: boolean = false;

  constructor(
    shared: ScopeSettings,
    options: WatchOpening<T> & { readonly onEnd: () => void; readonly pace?: Pace | undefined },
  ) {
    const { pace } = options;
    if (pace) setPace(this.#abort.signal, pace);
    this.#shared = shared;
    this.#options = options;
    this.#isAsked = options.previousOf !== undefined && options.selects === undefined;
  }

  /** Reads the first part of the state, or begins to follow changes. Rejects if that is refused. */
  async open(): Promise<void> {
    // Nobody would close a watch that opened after its end.
    this.#abort.signal.throwIfAborted();
    const { prefix, plan } = this.#options;
    if (plan.after !== undefined) {
      this.#changes = this.#changesAfter(plan.after);
      await this.#changes.open();
      return;
    }
    const read = { exact: undefined, atLeast: plan.atLeast, from: undefined };
    this.#parts = new Parts(this.#shared.backend, { prefix, plan: read, signal: this.#abort.signal });
    this.#took(await this.#parts.next(Infinity));
  }

  async pull(): Promise<IteratorResult<StorageEvent<T>, undefined>> {
    // The consumer has applied all that was delivered.
    if (this.#since.size > 0) this.#since.clear();
    for (;;) {
      const value = this.poll();
      if (value) return { done: false, value };
      if (this.#over || this.#abort.signal.aborted) return { done: true, value: undefined };
      try {
        if (this.#loading) {
          await this.#loading;
          this.#abort.signal.throwIfAborted();
        } else if (this.#parts) this.#took(await this.#parts.next(Infinity));
        else this.#told(await this.#changes?.next());
      } catch (error) {
        this.#abort.signal.throwIfAborted();
        this.#fail(error);
      }
    }
  }

  poll(): StorageEvent<T> | undefined {
    for (;;) {
      for (let next = this.#waiting.at(-1); next; next = this.#waiting.at(-1)) {
        this.#loading = next.load?.(this.#abort.signal);
        // It rejects when the watch ends, and there may be no reader by then.
        this.#loading?.catch(() => {});
        if (this.#loading) return undefined;
        const event = this.#delivered();
        if (event) return event;
      }
      const then = this.#then;
      this.#then = undefined;
      if (then) return then;
      if (this.#over || this.#parts) return undefined;
      try {
        const batch = this.#changes?.poll();
        if (!batch) return undefined;
        this.#told(batch);
      } catch (error) {
        this.#fail(error);
      }
    }
  }

  get isLoading(): boolean {
    return this.#loading !== undefined;
  }

  /**
   * The undelivered events of the last delivered event's revision: a caller that resumes after that revision misses none of them.
   */
  rest(): StorageEvent<T>[] {
    const events: StorageEvent<T>[] = [];
    // After a part of the state come no changes.
    const last = this.#last as Change<T> | undefined;
    for (let next = this.#waiting.at(-1); next && isChange(next); next = this.#waiting.at(-1)) {
      if (next.revision !== last?.revision) break;
      const event = this.#delivered();
      if (event) events.push(event);
    }
    return events;
  }

  /** Ends the watch: settles pending reads, and ends those of the backend. */
  cancel(reason?: unknown): void {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort(reason);
    this.#changes?.close();
    this.#options.onEnd();
  }

  requestProgress(): void {
    if (!this.#options.plan.bookmarks || this.#over) return;
    if (this.#changes) this.#changes.requestProgress();
    else this.#owesProgress = true;
  }

  #changesAfter(revision: string, life?: unknown): Changes<T> {
    const { prefix } = this.#options;
    return this.#shared.backend.changesAfter<T>(revision, { prefix, previous: !this.#isAsked, life });
  }

  #took({ entries, left, revision, life }: ListPart<T>): void {
    this.#put(entries);
    if (left > 0) return;
    this.#parts = undefined;
    // As in `open`.
    if (this.#abort.signal.aborted) return;
    if (this.#options.plan.marksEnd) this.#then = toBookmark(revision, { [INITIAL_EVENTS_END]: 'true' });
    this.#changes = this.#changesAfter(revision, life);
    if (this.#owesProgress) this.#changes.requestProgress();
  }

  #told(batch: ChangeBatch<T> | undefined): void {
    if (!batch) return;
    this.#put(batch.changes);
    if (batch.progress !== undefined && this.#options.plan.bookmarks) this.#then = toBookmark(batch.progress);
  }

  #put(waiting: readonly (Entry<T> | Change<T>)[]): void {
    this.#waiting = waiting.toReversed();
    this.#last = undefined;
  }

  /** The event of the next entry, if there is one. */
  #delivered(): StorageEvent<T> | undefined {
    const { selects } = this.#options;
    const waiting = this.#waiting.pop() as Entry<T> | Change<T>;
    this.#last = waiting;
    try {
      if (isChange(waiting)) return this.#eventOf(waiting);
      const { object } = waiting;
      return !selects || selects(object) ? { type: 'ADDED', object } : undefined;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** The event of a change; undefined if neither the previous nor the new object is selected. */
  #eventOf(change: Change<T>): StorageEvent<T> | undefined {
    const { selects } = this.#options;
    const { object } = change;
    const previous = change.type === 'ADDED' ? undefined : this.#previousOf(change);
    if (this.#isAsked) this.#since.set(change.key, object);
    const is = object !== undefined && (!selects || selects(object));
    const was = previous !== undefined && (!selects || selects(previous));
    if (is) {
      if (was) return { type: 'MODIFIED', object, previous };
      return previous === undefined ? { type: 'ADDED', object } : { type: 'ADDED', object, previous };
    }
    return was ? { type: 'DELETED', object: atVersion(previous, change.revision), previous } : undefined;
  }

  /** @throws {WatchError} REFUSED with code 500 if the consumer should have it, but does not. */
  #previousOf(change: Change<T>): T | undefined {
    if (!this.#isAsked) return change.previous;
    const { key, revision } = change;
    const own = key.slice(this.#options.prefix.length);
    const object = this.#since.has(key) ? this.#since.get(key) : this.#options.previousOf?.(own);
    if (object !== undefined) return object;
    throw refused(500, 'InternalError', `previousOf has nothing under ${JSON.stringify(own)}, which changed at ${revision}`);
  }

  /** Delivers an ERROR, the last event. */
  #fail(error: unknown): void {
    this.#over = true;
    this.#changes?.close();
    // Watchers are not told what the backend refuses to its own storage.
    if (isWatchError(error, 'REFUSED') && error.cause !== undefined) this.#shared.onError(error);
    this.#put([]);
    this.#then = { type: 'ERROR', object: statusOf(error) };
  }
}

/** The watch of a source. If it is stopped in the middle of a revision, it still delivers the rest of that. */
class BackedWatch<T extends KubernetesObject> extends PullWatch<StorageEvent<T>> {
  readonly #source: BackedEvents<T>;
  /** In reverse order: a deletion by prefix in etcd may produce any number. */
  #rest: StorageEvent<T>[] = [];

  constructor(source: BackedEvents<T>) {
    super(source);
    this.#source = source;
  }

  override get queued(): number {
    return super.queued + this.#rest.length;
  }

  protected override get drained(): boolean {
    return super.drained && this.#rest.length === 0;
  }

  protected override take(): StorageEvent<T> | typeof NONE {
    if (this.#rest.length === 0 || this.held !== NONE) return super.take();
    return this.#rest.pop() as StorageEvent<T>;
  }

  protected override end(): void {
    // While it waits for more, the last revision has been delivered.
    if (!this.stopped && (!this.pulling || this.#source.isLoading)) this.#rest = this.#source.rest().reverse();
    super.end();
  }

  protected override discard(): void {
    this.wasted(this.#rest.length);
    this.#rest = [];
    super.discard();
  }
}

function isChange<T>(waiting: Entry<T> | Change<T>): waiting is Change<T> {
  return 'type' in waiting;
}

function toBookmark(revision: string, annotations?: Readonly<Record<string, string>>): BookmarkEvent {
  return { type: 'BOOKMARK', object: { metadata: { resourceVersion: revision, ...(annotations && { annotations }) } } };
}

function statusOf(error: unknown): Status {
  if (isWatchError(error) && error.status) return error.status;
  const message = whyOf(error);
  return toStatus({ code: 500, reason: 'InternalError', message });
}
