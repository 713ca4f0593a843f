import { Broadcaster } from '../broadcast/broadcaster.ts';
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../cache/list-watcher.ts';
import { type KubernetesObject, keyOf } from '../cache/object.ts';
import { compareVersions } from '../cache/version.ts';
import { WatchError, wholeNumber } from '../watch/errors.ts';
import { INITIAL_EVENTS_END, type ObjectEvent, type Status, type StatusDetails, toStatus } from '../watch/event.ts';
import { done } from '../watch/iteration.ts';
import { known } from '../watch/options.ts';
import { fromAsyncIterable } from '../watch/pull-watch.ts';
import type { Watch } from '../watch/watch.ts';

/** Options of a {@link FakeListWatcher}. */
export interface FakeListWatcherOptions<T> {
  /** The objects it begins with, all at the first version; default none. */
  objects?: Iterable<T> | undefined;
  /** The number of past changes from which watches can resume; a whole number >= 0, default 1,000. */
  history?: number | undefined;
  /** The number of events that a watch holds for a reader; default 10,000. One that falls behind is told 410. */
  capacity?: number | undefined;
}

/** A request that a {@link FakeListWatcher} got. */
export type FakeRequest =
  | { readonly verb: 'list'; readonly options: ListOptions }
  | { readonly verb: 'watch'; readonly options: ListWatchOptions };

interface Page<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

/** How many unfinished lists it remembers. */
const MAX_PAGES = 100;
/** How many requests it records. */
const MAX_REQUESTS = 10_000;

/**
 * A collection in memory that can be listed and watched as a kube-apiserver's can: versions are numbers, lists have pages, watches
 * resume, begin with initial events, and end with 410 when their version is too old. A test changes the collection, and makes
 * requests and watches fail:
 *
 *     const source = new FakeListWatcher<Pod>({ objects: [pod] });
 *     source.modify(newer);                                    // every open watch gets it
 *     source.cut();                                            // every connection breaks
 *     source.failWatch(FakeListWatcher.refusal(429, 'TooManyRequests', { retryAfterSeconds: 1 }), 2);
 *
 * Upstream: `FakeControllerSource`, whose `ResetWatch` is `cut` and `expire`.
 */
export class FakeListWatcher<T extends KubernetesObject = KubernetesObject> implements ListWatcher<T> {
  /** The requests so far, up to 10,000. */
  readonly requests: FakeRequest[] = [];
  readonly #objects: Map<string, T> = new Map();
  readonly #history: { readonly version: number; readonly event: ObjectEvent<T> }[] = [];
  readonly #limit: number;
  readonly #capacity: number;
  readonly #pages: Map<string, Page<T>> = new Map();
  readonly #failures: Record<FakeRequest['verb'], unknown[]> = { list: [], watch: [] };
  #version: number = 1;
  /** Watches can resume from this version on. */
  #oldest: number = 1;
  #live: Broadcaster<ObjectEvent<T>>;
  #cutAfter: number = Number.POSITIVE_INFINITY;
  #held: Promise<void> | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option, and for an object without a name. */
  constructor(options: FakeListWatcherOptions<T> = {}) {
    const { objects = [], history = 1_000, capacity = 10_000 } = known(options, ['objects', 'history', 'capacity']);
    this.#limit = wholeNumber('history', history);
    this.#capacity = wholeNumber('capacity', capacity, 1);
    for (const object of objects) this.#objects.set(keyOf(object), this.#versioned(object));
    this.#live = this.#newLive();
  }

  /** An error as a server's refusal makes it, for {@link failList} and {@link failWatch}. */
  static refusal(code: number, reason: string, details?: StatusDetails): WatchError {
    return new WatchError('REFUSED', `${code} ${reason}`, { status: toStatus({ code, reason, message: reason, details }) });
  }

  /** The version of the last change. */
  get resourceVersion(): string {
    return `${this.#version}`;
  }

  /** The number of watches that have not ended. */
  get openWatches(): number {
    return this.#live.watchers;
  }

  /** Adds an object, or changes it if there is one with its key. Returns it with its new version. */
  add(object: T): T {
    const key = keyOf(object);
    const type = this.#objects.has(key) ? 'MODIFIED' : 'ADDED';
    this.#version++;
    const stored = this.#versioned(object);
    this.#objects.set(key, stored);
    this.#publish({ type, object: stored });
    return stored;
  }

  /** The same as `add`. */
  modify(object: T): T {
    return this.add(object);
  }

  /** Deletes the object with this one's key. Returns its last state with the version of the deletion; undefined if there is none. */
  delete(object: KubernetesObject): T | undefined {
    const key = keyOf(object);
    const last = this.#objects.get(key);
    if (!last) return undefined;
    this.#objects.delete(key);
    this.#version++;
    const gone = this.#versioned(last);
    this.#publish({ type: 'DELETED', object: gone });
    return gone;
  }

  /** Sends a BOOKMARK of the current version to every watch that allows it. */
  bookmark(): void {
    this.#live.tryPublish(this.#toBookmark());
  }

  /** The next `times` lists reject with this error. Without an error, those that are still to fail do not. */
  failList(error?: unknown, times: number = 1): void {
    this.#fail('list', error, times);
  }

  /** The next `times` watches reject with this error. Without an error, those that are still to fail do not. */
  failWatch(error?: unknown, times: number = 1): void {
    this.#fail('watch', error, times);
  }

  /** Ends every open watch, as a connection that breaks: what it has got stays readable, what comes later it does not get. */
  cut(): void {
    void this.#live.shutdown();
    this.#live = this.#newLive();
  }

  /** Every watch that is opened from now on ends after this many events; Infinity, the default: none does. */
  cutAfter(events: number): void {
    this.#cutAfter = events;
  }

  /** Ends every open watch with this ERROR. */
  sendError(status: Status): void {
    this.#live.tryPublish({ type: 'ERROR', object: status });
    this.cut();
  }

  /** Forgets what came before the current version: a watch from an earlier one, and an unfinished list, get 410. */
  expire(): void {
    this.#history.length = 0;
    this.#pages.clear();
    this.#oldest = this.#version;
  }

  /** Requests that are made from now on wait until the returned function is called, or their signal aborts. */
  hold(): () => void {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#held = held;
    return () => {
      if (this.#held === held) this.#held = undefined;
      release();
    };
  }

  async list(options: ListOptions = {}): Promise<List<T>> {
    await this.#admit({ verb: 'list', options });
    const { limit = 0, continue: token, resourceVersion = '', resourceVersionMatch } = options;
    const page =
      token === undefined || token === '' ? this.#firstPage(resourceVersion, resourceVersionMatch) : this.#pages.get(token);
    if (!page) throw FakeListWatcher.refusal(410, 'Expired');
    const { items } = page;
    if (limit === 0 || items.length <= limit) return page;
    const next = `${page.resourceVersion}.${items.length - limit}.${this.requests.length}`;
    this.#pages.set(next, { ...page, items: items.slice(limit) });
    for (const [oldest] of this.#pages) if (this.#pages.size > MAX_PAGES) this.#pages.delete(oldest);
    return { ...page, items: items.slice(0, limit), continue: next, remainingItemCount: items.length - limit };
  }

  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<T>>> {
    await this.#admit({ verb: 'watch', options });
    const { resourceVersion = '', sendInitialEvents = false, allowWatchBookmarks = sendInitialEvents, signal } = options;
    if (sendInitialEvents && !allowWatchBookmarks) throw FakeListWatcher.refusal(422, 'Invalid');
    this.#checkReached(resourceVersion);
    const prefix = this.#begin(resourceVersion, sendInitialEvents);
    if (!prefix) return fromAsyncIterable(oneEvent<T>(FakeListWatcher.refusal(410, 'Expired').status as Status));
    const filter = ({ type }: ObjectEvent<T>): boolean => type !== 'BOOKMARK' || allowWatchBookmarks;
    const watch = this.#live.watch({ prefix, filter, signal });
    return this.#cutAfter === Number.POSITIVE_INFINITY ? watch : shortened(watch, this.#cutAfter);
  }

  /** What a watch begins with; undefined if its version is too old. */
  #begin(resourceVersion: string, sendInitialEvents: boolean): ObjectEvent<T>[] | undefined {
    const state = (): ObjectEvent<T>[] => Array.from(this.#objects.values(), (object) => ({ type: 'ADDED', object }));
    if (sendInitialEvents) return [...state(), this.#toBookmark({ [INITIAL_EVENTS_END]: 'true' })];
    if (resourceVersion === '' || resourceVersion === '0') return state();
    const from = Number(resourceVersion);
    if (from < this.#oldest) return undefined;
    return this.#history.filter(({ version }) => version > from).map(({ event }) => event);
  }

  #firstPage(resourceVersion: string, match: ListOptions['resourceVersionMatch']): Page<T> | undefined {
    this.#checkReached(resourceVersion);
    if (match === 'Exact' && resourceVersion !== this.resourceVersion) return undefined;
    return { items: [...this.#objects.values()], resourceVersion: this.resourceVersion };
  }

  /** Refuses a version that is yet to come, as a kube-apiserver does. */
  #checkReached(resourceVersion: string): void {
    if (resourceVersion === '' || compareVersions(resourceVersion, this.resourceVersion) <= 0) return;
    const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
    throw FakeListWatcher.refusal(504, 'Timeout', { causes, retryAfterSeconds: 1 });
  }

  async #admit(request: FakeRequest): Promise<void> {
    const { verb, options } = request;
    const { signal, labelSelector, fieldSelector } = options;
    signal?.throwIfAborted();
    if (this.requests.length < MAX_REQUESTS) this.requests.push(request);
    // To ignore them would be to answer another question.
    if (labelSelector || fieldSelector) throw new WatchError('INVALID_ARGUMENT', 'a FakeListWatcher knows no selectors');
    if (this.#held) await released(this.#held, signal);
    signal?.throwIfAborted();
    if (this.#failures[verb].length > 0) throw this.#failures[verb].shift();
  }

  #fail(verb: FakeRequest['verb'], error: unknown, times: number): void {
    this.#failures[verb] = error === undefined ? [] : Array.from({ length: wholeNumber('times', times) }, () => error);
  }

  #publish(event: ObjectEvent<T>): void {
    this.#history.push({ version: this.#version, event });
    while (this.#history.length > this.#limit) this.#oldest = (this.#history.shift() as { version: number }).version;
    this.#live.tryPublish(event);
  }

  #versioned(object: T): T {
    return { ...object, metadata: { ...object.metadata, resourceVersion: this.resourceVersion } };
  }

  #toBookmark(annotations?: Readonly<Record<string, string>>): ObjectEvent<T> {
    return { type: 'BOOKMARK', object: { metadata: { resourceVersion: this.resourceVersion, annotations } } };
  }

  #newLive(): Broadcaster<ObjectEvent<T>> {
    return new Broadcaster<ObjectEvent<T>>({ capacity: this.#capacity, overflow: 'disconnect' });
  }
}

/** Resolves with `held`, or as soon as the signal aborts. */
function released(held: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const leave = (): void => {
      signal?.removeEventListener('abort', leave);
      resolve();
    };
    signal?.addEventListener('abort', leave, { once: true });
    void held.then(leave);
  });
}

/** One ERROR, then the end. */
async function* oneEvent<T>(object: Status): AsyncGenerator<ObjectEvent<T>, undefined> {
  yield { type: 'ERROR', object };
}

/** The first events of a watch, which then ends. */
function shortened<E>(watch: Watch<E>, events: number): Watch<E> {
  let left = events;
  return fromAsyncIterable<E>({
    next: () => {
      if (left-- > 0) return watch.next();
      watch.stop();
      return Promise.resolve(done());
    },
    return: () => watch.return(),
  });
}
