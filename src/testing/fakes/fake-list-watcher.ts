import { Broadcaster } from '../../broadcast/broadcaster.ts';
import { filterTransitions } from '../../broadcast/filter.ts';
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { compareVersions } from '../../cache/version.ts';
import type { SelectionPredicate } from '../../selectors/index.ts';
import { whenAborted } from '../../watch/abort.ts';
import type { Clock } from '../../watch/clock.ts';
import { requireMethod, wholeNumber } from '../../watch/errors.ts';
import { INITIAL_EVENTS_END, type ObjectEvent, type Status } from '../../watch/event.ts';
import { checkOptions } from '../../watch/options.ts';
import { fromAsyncIterable } from '../../watch/pull-watch.ts';
import type { Watch } from '../../watch/watch.ts';
import { FakeCollection } from './fake-collection.ts';
import { expired, FakeFaults } from './fake-faults.ts';
import { type FakePage, FakePages } from './fake-pages.ts';
import { checkMatch, predicateOf, refusal } from './fake-selection.ts';

/** Options of a {@link FakeListWatcher}. */
export interface FakeListWatcherOptions<T> {
  /** The objects it begins with, all at the first version; default none. */
  objects?: Iterable<T> | undefined;
  /** The number of past changes from which watches can resume; a whole number >= 0, default 1,000. */
  history?: number | undefined;
  /** The number of events that a watch holds for its reader; default 10,000. One that falls further behind gets a 410. */
  capacity?: number | undefined;
  /** The version at which it begins, a decimal number; default `1`. Real ones may be larger than 2^53. */
  firstVersion?: string | undefined;
  /** Whether lists ignore `limit`, like a kube-apiserver that serves version `0` from its cache; default false. */
  ignoreLimit?: boolean | undefined;
  /** The clock for `delay` and `timeoutSeconds`; without it, `timeoutSeconds` is ignored. */
  clock?: Clock | undefined;
}

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
  /** What half-open connections read from: nothing is published there. */
  #dead: Broadcaster<ObjectEvent<T>>[] = [];
  /** Cancels the timer of each watch that ends in time. */
  readonly #timers: Set<() => void> = new Set();

  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option, and for an object without a name. */
  constructor(options: FakeListWatcherOptions<T> = {}) {
    const {
      objects = [],
      history = 1_000,
      capacity = 10_000,
      firstVersion = '1',
      ignoreLimit = false,
      clock,
    } = checkOptions(options, [...(['objects', 'history', 'capacity', 'firstVersion', 'ignoreLimit', 'clock'] as const)]);
    if (clock !== undefined) requireMethod('clock', clock, 'schedule', 'a Clock');
    super(clock);
    compareVersions(firstVersion, '1');
    this.#clock = clock;
    this.#ignoreLimit = ignoreLimit;
    this.#capacity = wholeNumber('capacity', capacity, 1);
    this.#collection = new FakeCollection(objects, { history: wholeNumber('history', history), firstVersion });
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
   * such a list has another `continue`, which continues at the newest version.
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
