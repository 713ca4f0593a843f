import { Broadcaster } from '../../broadcast/broadcaster.ts';
import { filterTransitions } from '../../broadcast/filter.ts';
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../../cache/list-watcher.ts';
import { type KubernetesObject, keyOf } from '../../cache/object.ts';
import { compareVersions } from '../../cache/versions.ts';
import type { SelectionPredicate } from '../../selectors/predicate.ts';
import { whenAborted } from '../../watch/abort.ts';
import type { Clock } from '../../watch/clock.ts';
import { checkOptions, namesOf, WatchError, type Wholes, wholeNumbers } from '../../watch/errors.ts';
import { INITIAL_EVENTS_END, type ObjectEvent, type Status, toStatus } from '../../watch/event.ts';
import { fromAsyncIterable } from '../../watch/pull-watch.ts';
import type { Watch } from '../../watch/watch.ts';
import { checkMatch, expired, FakeFaults, predicateOf, refusal } from './fake-faults.ts';

/** Options of a {@link FakeListWatcher}. */
export interface FakeListWatcherOptions<T> {
  /** The objects it begins with, all at the first version; default none. */
  objects?: Iterable<T> | undefined;
  /** The number of past changes from which watches can resume; a whole number >= 0, default 1,000. */
  history?: number | undefined;
  /** The number of events that a watch holds for its reader; default 10,000. A reader that falls further behind gets a 410. */
  capacity?: number | undefined;
  /** The version at which it begins, a decimal number; default `1`. Real ones may be larger than 2^53. */
  firstVersion?: string | undefined;
  /** Whether lists ignore `limit`, like a kube-apiserver that serves version `0` from its cache; default false. */
  ignoreLimit?: boolean | undefined;
  /** The clock for `delay` and `timeoutSeconds`; without it, `timeoutSeconds` is ignored. */
  clock?: Clock | undefined;
}

const LIMITS = { history: [1_000], capacity: [10_000, 1] } satisfies Wholes<string>;
const NAMES = ['objects', ...namesOf(LIMITS), 'firstVersion', 'ignoreLimit', 'clock'] as const;

/**
 * A collection in memory that can be listed and watched like a kube-apiserver's: versions are numbers, lists have pages, watches
 * resume, begin with initial events, and end with 410 when their version is too old; selectors work, and an object that starts or
 * stops matching is ADDED or DELETED. A test changes the collection, and makes requests and watches fail:
 *
 *     const source = new FakeListWatcher<Pod>({ objects: [pod] });
 *     source.modify(newer);                                    // every open watch gets it
 *     source.cut();                                            // every connection breaks
 *     source.failWatch(FakeListWatcher.refusal(429, 'TooManyRequests', { retryAfterSeconds: 1 }), 2);
 *
 * Upstream: `FakeControllerSource`, whose `ResetWatch` is `cut` and `expire`.
 */
export class FakeListWatcher<T extends KubernetesObject = KubernetesObject> extends FakeFaults implements ListWatcher<T> {
  readonly #collection: FakeCollection<T>;
  readonly #capacity: number;
  readonly #ignoreLimit: boolean;
  readonly #clock: Clock | undefined;
  readonly #pages: FakePages<T> = new FakePages();
  #live: Broadcaster<ObjectEvent<T>>;
  /** What half-open connections read from; nothing is published to it. */
  #dead: Broadcaster<ObjectEvent<T>>[] = [];
  /** Cancel the timers of watches with `timeoutSeconds`. */
  readonly #timers: Set<() => void> = new Set();

  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option, and for an object without a name. */
  constructor(options: FakeListWatcherOptions<T> = {}) {
    const { objects = [], firstVersion = '1', ignoreLimit = false, clock } = checkOptions(options, NAMES);
    const { history, capacity } = wholeNumbers(options, LIMITS);
    super(clock);
    compareVersions(firstVersion, '1');
    this.#clock = clock;
    this.#ignoreLimit = ignoreLimit;
    this.#capacity = capacity;
    this.#collection = new FakeCollection(objects, { history, firstVersion });
    this.#live = this.#newLive();
  }

  /** The version of the last change. */
  get resourceVersion(): string {
    return this.#collection.version;
  }

  /** The oldest version from which watches can resume. */
  get oldestVersion(): string {
    return this.#collection.oldest;
  }

  /** Its objects, in the order of their keys. */
  get objects(): readonly T[] {
    return this.#pageAt().items.map(([, object]) => object);
  }

  /** The number of watches that have not ended. */
  get openWatches(): number {
    return this.#dead.reduce((sum, { watchers }) => sum + watchers, this.#live.watchers);
  }

  /** Adds an object, or changes it if there is one with its key. Returns it with its new version. */
  add(object: T): T {
    const { event } = this.#collection.put(object);
    this.#live.tryPublish(event);
    return event.object as T;
  }

  /** The same as `add`. */
  modify(object: T): T {
    return this.add(object);
  }

  /** Deletes the object with this one's key. Returns its last state with the version of the deletion; undefined if there is none. */
  delete(object: KubernetesObject): T | undefined {
    const event = this.#collection.remove(object)?.event;
    if (event) this.#live.tryPublish(event);
    return event?.object as T | undefined;
  }

  /** Sends a BOOKMARK with the current version to every watch that allows it. */
  bookmark(): void {
    this.#live.tryPublish(toBookmark(this.resourceVersion));
  }

  /** Ends every open watch, as if its connection broke: events that it has received stay readable, and no more follow. */
  cut(): void {
    for (const live of [this.#live, ...this.#dead]) void live.shutdown();
    for (const cancel of this.#timers) cancel();
    this.#dead = [];
    this.#live = this.#newLive();
  }

  /** Makes every open watch silent, as if the other side had vanished: it gets no event and no end, until `cut`. */
  halfOpen(): void {
    this.#dead.push(this.#live);
    this.#live = this.#newLive();
  }

  /** Ends every open watch with this ERROR. */
  sendError(status: Status): void {
    this.#live.tryPublish({ type: 'ERROR', object: status });
    this.cut();
  }

  /**
   * Drops everything before the current version: a watch from an earlier one, and an unfinished list, get a 410. The Status for
   * such a list has a new `continue`, which continues at the newest version.
   */
  expire(): void {
    this.#collection.expire();
    this.#pages.expire();
  }

  async list(options: ListOptions = {}): Promise<List<T>> {
    await this.admit({ verb: 'list', options });
    checkMatch(options);
    const predicate = predicateOf<T>(options);
    const { limit = 0, continue: token } = options;
    const page = token ? this.#pages.take(token, this.#pageAt()) : this.#firstPage(options);
    const items = predicate.isEmpty ? page.items : page.items.filter(([, object]) => predicate.matches(object));
    return this.#pages.cut({ ...page, items }, { limit: this.#ignoreLimit ? 0 : limit });
  }

  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<T>>> {
    await this.admit({ verb: 'watch', options });
    const { resourceVersion = '', sendInitialEvents = false, allowWatchBookmarks = sendInitialEvents, signal } = options;
    if (sendInitialEvents && !allowWatchBookmarks) throw refusal(422, 'Invalid');
    if (options.resourceVersionMatch === 'Exact') throw refusal(422, 'Invalid');
    this.#checkReached(resourceVersion);
    const predicate = predicateOf<T>(options);
    const defect = this.nextDefect();
    const prefix = this.#begin(options);
    if (!prefix) return fromAsyncIterable(oneEvent<T>(expired()));
    const filter = (event: ObjectEvent<T>): boolean => this.#concerns(event, { predicate, allowWatchBookmarks });
    const live = defect === 'silent' ? this.#newDead() : this.#live;
    const watch = live.watch({ prefix: defect === 'silent' ? [] : prefix, filter, signal });
    this.#endInTime(watch, options);
    return this.served(predicate.isEmpty ? watch : this.#selected(watch, predicate), defect);
  }

  /** What a watch begins with; undefined if its version is too old. */
  #begin({ resourceVersion = '', sendInitialEvents }: ListWatchOptions): ObjectEvent<T>[] | undefined {
    const { items } = this.#pageAt();
    const state = items.map(([, object]): ObjectEvent<T> => ({ type: 'ADDED', object }));
    if (sendInitialEvents) return [...state, toBookmark(this.resourceVersion, this.endAnnotation)];
    if (resourceVersion === '' || resourceVersion === '0') return sendInitialEvents === false ? [] : state;
    const missed = this.#collection.after(resourceVersion);
    return missed && this.marksStart ? [toBookmark(resourceVersion), ...missed] : missed;
  }

  /** Whether a watch with this predicate gets an event, possibly of another type. */
  #concerns(
    event: ObjectEvent<T>,
    { predicate, allowWatchBookmarks }: { predicate: SelectionPredicate<T>; allowWatchBookmarks: boolean },
  ): boolean {
    if (event.type === 'BOOKMARK') return allowWatchBookmarks;
    if (event.type === 'ERROR' || predicate.isEmpty) return true;
    const previous = this.#collection.previousOf(event);
    return predicate.matches(event.object) || (previous !== undefined && predicate.matches(previous));
  }

  /** What enters the selection is ADDED; what leaves it is DELETED, with its last content and the version of the change. */
  #selected(watch: Watch<ObjectEvent<T>>, predicate: SelectionPredicate<T>): Watch<ObjectEvent<T>> {
    return filterTransitions<ObjectEvent<T>>(watch, (object) => predicate.matches(object as T), {
      previousOf: (event) => this.#collection.previousOf(event) as never,
    });
  }

  #endInTime(watch: Watch<ObjectEvent<T>>, { timeoutSeconds, signal }: ListWatchOptions): void {
    if (!this.#clock || timeoutSeconds === undefined) return;
    const [stop, leave] = [watch.stop.bind(watch), watch.return.bind(watch)];
    const timer = this.#clock.schedule(timeoutSeconds * 1000, () => watch.stop());
    const cancel = (): void => {
      timer();
      forget();
      this.#timers.delete(cancel);
    };
    const forget = whenAborted(signal, cancel);
    this.#timers.add(cancel);
    watch.stop = () => {
      cancel();
      stop();
    };
    watch.return = () => {
      cancel();
      return leave();
    };
  }

  #firstPage(options: ListOptions): FakePage<T> {
    const { resourceVersion = '', resourceVersionMatch, limit = 0 } = options;
    this.#checkReached(resourceVersion);
    const version = resourceVersion === '0' ? '' : resourceVersion;
    // A kube-apiserver has always answered a page of a version with exactly that version.
    const exact = resourceVersionMatch === 'Exact' || (resourceVersionMatch === undefined && limit > 0);
    return version !== '' && exact ? this.#pageAt(version) : this.#pageAt();
  }

  #pageAt(version: string = this.resourceVersion): FakePage<T> {
    const items = this.#collection.at(version);
    if (!items) throw refusal(410, 'Expired');
    return { items, resourceVersion: version };
  }

  /** Refuses a version that does not exist yet, as a kube-apiserver does. */
  #checkReached(resourceVersion: string): void {
    if (resourceVersion === '' || compareVersions(resourceVersion, this.resourceVersion) <= 0) return;
    const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
    throw refusal(504, 'Timeout', { causes, retryAfterSeconds: 1 });
  }

  #newLive(): Broadcaster<ObjectEvent<T>> {
    return new Broadcaster<ObjectEvent<T>>({ capacity: this.#capacity, overflow: 'disconnect' });
  }

  #newDead(): Broadcaster<ObjectEvent<T>> {
    const dead = this.#newLive();
    this.#dead.push(dead);
    return dead;
  }
}

function toBookmark(resourceVersion: string, end?: string): ObjectEvent<never> {
  const annotations = end === undefined ? undefined : { [INITIAL_EVENTS_END]: end };
  return { type: 'BOOKMARK', object: { metadata: { resourceVersion, annotations } } };
}

/** One ERROR, then the end. */
async function* oneEvent<T>(object: Status): AsyncGenerator<ObjectEvent<T>, undefined> {
  yield { type: 'ERROR', object };
}

/** What happened to one object of a {@link FakeCollection}. */
interface FakeChange<T> {
  readonly version: string;
  readonly key: string;
  readonly event: ObjectEvent<T>;
  /** The object as it was before; undefined if there was none. */
  readonly previous: T | undefined;
}

/**
 * Objects by key, each with the version of its last change, and the last changes, as many as `history` says. The state at a past
 * version is the current one with the later changes undone.
 */
class FakeCollection<T extends KubernetesObject> {
  readonly #objects: Map<string, T> = new Map();
  readonly #changes: FakeChange<T>[] = [];
  readonly #previous: WeakMap<object, T> = new WeakMap();
  readonly #history: number;
  #version: string;
  #oldest: string;

  constructor(objects: Iterable<T>, { history, firstVersion }: { history: number; firstVersion: string }) {
    this.#history = history;
    this.#version = firstVersion;
    this.#oldest = firstVersion;
    for (const object of objects) this.#objects.set(keyOf(object), this.#versioned(object));
  }

  /** The version of the last change. */
  get version(): string {
    return this.#version;
  }

  /** The oldest version from which the past is known. */
  get oldest(): string {
    return this.#oldest;
  }

  put(object: T): FakeChange<T> {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    this.#advance();
    const stored = this.#versioned(object);
    this.#objects.set(key, stored);
    return this.#remember({ key, previous, event: { type: previous ? 'MODIFIED' : 'ADDED', object: stored } });
  }

  remove(object: KubernetesObject): FakeChange<T> | undefined {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (!previous) return undefined;
    this.#objects.delete(key);
    this.#advance();
    return this.#remember({ key, previous, event: { type: 'DELETED', object: this.#versioned(previous) } });
  }

  /** Forgets what came before the current version. */
  expire(): void {
    this.#changes.length = 0;
    this.#oldest = this.#version;
  }

  /** The objects at a version, by key, in the order of their keys; undefined if that version is no longer known. */
  at(version: string = this.#version): [string, T][] | undefined {
    if (compareVersions(version, this.#oldest) < 0) return undefined;
    const objects = new Map(this.#objects);
    for (let i = this.#changes.length - 1; i >= 0; i--) {
      const change = this.#changes[i] as FakeChange<T>;
      if (compareVersions(change.version, version) <= 0) break;
      if (change.previous) objects.set(change.key, change.previous);
      else objects.delete(change.key);
    }
    return [...objects].sort(([one], [other]) => (one < other ? -1 : 1));
  }

  /** What happened after a version; undefined if that is no longer known. */
  after(version: string): ObjectEvent<T>[] | undefined {
    if (compareVersions(version, this.#oldest) < 0) return undefined;
    return this.#changes.filter((change) => compareVersions(change.version, version) > 0).map(({ event }) => event);
  }

  /** What an object was before this event; undefined if there was none. */
  previousOf(event: ObjectEvent<T>): T | undefined {
    return this.#previous.get(event);
  }

  #advance(): void {
    this.#version = `${BigInt(this.#version) + 1n}`;
  }

  #remember(change: Omit<FakeChange<T>, 'version'>): FakeChange<T> {
    const whole = { ...change, version: this.#version };
    if (change.previous) this.#previous.set(change.event, change.previous);
    this.#changes.push(whole);
    while (this.#changes.length > this.#history) this.#oldest = (this.#changes.shift() as FakeChange<T>).version;
    return whole;
  }

  #versioned(object: T): T {
    return { ...object, metadata: { ...object.metadata, resourceVersion: this.#version } };
  }
}

/** A list at one version, or what is left of it. */
interface FakePage<T> {
  /** By key, in the order of the keys. */
  readonly items: readonly (readonly [key: string, object: T])[];
  readonly resourceVersion: string;
}

/** What a token refers to: what comes after a key, at an old version (`page`), at none (`gone`), or at the newest one (`now`). */
interface Rest<T> {
  readonly after: string;
  readonly at: FakePage<T> | 'gone' | 'now';
}

/** How many unfinished lists it remembers. */
const MAX_PAGES = 100;

/**
 * The rests of lists that were served in part, by their `continue`. They are dropped together with the past: a request with such
 * a token is refused with 410, and gets a new one in the Status, with which the list continues at the newest version.
 */
class FakePages<T> {
  readonly #rests: Map<string, Rest<T>> = new Map();
  #made: number = 0;

  /** The first `limit` items, and a token for those that are left. */
  cut({ items, resourceVersion }: FakePage<T>, { limit }: { limit: number }): List<T> {
    const objects = items.slice(0, limit || items.length).map(([, object]) => object);
    if (objects.length === items.length) return { items: objects, resourceVersion };
    const [after] = items[limit - 1] as readonly [string, T];
    const token = this.#keep({ after, at: { items: items.slice(limit), resourceVersion } });
    return { items: objects, resourceVersion, continue: token, remainingItemCount: items.length - limit };
  }

  /** The rest that a token refers to; `now` is the newest state. */
  take(token: string, now: FakePage<T>): FakePage<T> {
    const rest = this.#rests.get(token);
    if (!rest) throw tokenExpired();
    const { after, at } = rest;
    if (at === 'gone') throw tokenExpired(this.#keep({ after, at: 'now' }));
    return at === 'now' ? { ...now, items: now.items.filter(([key]) => key > after) } : at;
  }

  /** Forgets the versions of all rests. */
  expire(): void {
    for (const [token, { after }] of this.#rests) this.#rests.set(token, { after, at: 'gone' });
  }

  #keep(rest: Rest<T>): string {
    const token = `${++this.#made}.${rest.after}`;
    this.#rests.set(token, rest);
    for (const [oldest] of this.#rests) if (this.#rests.size > MAX_PAGES) this.#rests.delete(oldest);
    return token;
  }
}

function tokenExpired(token?: string): WatchError {
  const message = 'The provided continue parameter is too old';
  const status = toStatus({ code: 410, reason: 'Expired', message });
  return new WatchError('REFUSED', '410 Expired', { status: { ...status, metadata: token ? { continue: token } : {} } });
}
