/**
 * The open watches of a collection that belong together, because the same owner opens and ends them: the storage itself, or a
 * server in front of it. Handles their limits, BOOKMARKs and ends.
 */
import type { List, ListOptions, ListWatchOptions } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { VersionComparator } from '../../cache/versions.ts';
import { isPromise, whenAborted } from '../../watch/abort.ts';
import type { Clock } from '../../watch/clock.ts';
import { checkOptions, wholeNumber } from '../../watch/errors.ts';
import { paceOf } from '../../watch/fair-queue.ts';
import { Timetable } from '../../watch/timetable.ts';
import type { Watch } from '../../watch/watch.ts';
import { Pending } from '../life.ts';
import { LIST_NAMES, parseVersion, planWatch, WATCH_NAMES } from '../requests.ts';
import { expired, tooManyRequests } from '../statuses.ts';
import type { CacherStats, ServedOptions, StorageEvent, StorageWatchOptions } from '../storage.ts';
import type { Collection, JoinOptions } from './collection.ts';
import { type ListSource, listOf } from './lists.ts';
import type { Part } from './router.ts';
import { type FieldReader, Selection } from './view.ts';
import type { CollectionWatch, Progress, WatchHost } from './watch.ts';

/** The last BOOKMARK comes this long before a watch ends. */
const BEFORE_END_MS = 2_000;
/**
 * The most that a watch is called late: those due within this time are called together. Upstream: `watcherBookmarkTimeBuckets`.
 */
const GRAIN_MS = 250;

interface WatchesOptions {
  readonly clock: Clock;
  /** How often a watch that allows BOOKMARKs gets one, if the version is new. */
  readonly bookmarkMs: number;
  /** Further ones are refused. */
  readonly maxWatches: number;
  /** What waits, and ends with the watches. */
  readonly pending: Pending;
}

/** What a watch begins with, and the version that the state must reach first. */
interface StartPlan extends JoinOptions {
  /** `newest`: everything written so far. Undefined: any. */
  readonly required: string | 'newest' | undefined;
}

export class Watches<T extends KubernetesObject> implements WatchHost<T> {
  readonly compareVersions: VersionComparator;
  /** Watches that got a 410 because they were too slow. */
  behind: number = 0;
  readonly #collection: Collection<T>;
  readonly #source: ListSource<T>;
  readonly #options: WatchesOptions;
  /** When watches are due, for a BOOKMARK or for their end. */
  readonly #schedule: Timetable<CollectionWatch<T>>;
  readonly #open: Set<CollectionWatch<T>> = new Set();
  #joining: number = 0;

  constructor({ collection, source }: { collection: Collection<T>; source: ListSource<T> }, options: WatchesOptions) {
    this.#collection = collection;
    this.#source = source;
    this.#options = options;
    this.compareVersions = collection.compareVersions;
    this.#schedule = new Timetable(options.clock, (watch, nowMs) => this.#due(watch, nowMs), { grainMs: GRAIN_MS });
  }

  get size(): number {
    return this.#open.size;
  }

  /** How many different selections they have. Looks at every watch. */
  get views(): number {
    return new Set(Array.from(this.#open, ({ view }) => view)).size;
  }

  get pending(): Pending {
    return this.#options.pending;
  }

  get start(): number {
    return this.#collection.log.start;
  }

  get place(): number {
    return this.#collection.place;
  }

  get progress(): Progress {
    return this.#collection.progress;
  }

  async open(selection: Selection<T>, options: ListWatchOptions): Promise<CollectionWatch<T>> {
    const { signal } = options;
    const { pending, maxWatches } = this.#options;
    const { required, ...plan } = startOf(options);
    const ready = this.#source.ready(signal);
    if (isPromise(ready)) await ready;
    let { after } = plan;
    if (required === 'newest') {
      const newest = this.#source.newest(signal);
      const version = isPromise(newest) ? await newest : newest;
      if (!plan.initial) after = version;
    } else if (required !== undefined) {
      const reached = this.#source.reach(required, signal);
      if (isPromise(reached)) await reached;
    }
    // The caller may have given up in the meantime.
    const again = this.#source.ready(signal);
    if (isPromise(again)) await again;
    if (this.#open.size + this.#joining >= maxWatches)
      throw tooManyRequests(`there are already ${maxWatches} watches (maxWatches)`, 1);
    const until = <R>(promise: Promise<R>): Promise<R> => pending.until(promise, signal);
    const joined = this.#collection.join(selection, { ...plan, after, until, pace: paceOf(signal) }, this);
    if (!joined) throw expired(after as string, this.#collection.log.base);
    const watch = isPromise(joined) ? await this.#joined(joined, signal) : joined;
    this.#opened(watch, options);
    return watch;
  }

  /** Watches that wait for their state count as open. */
  async #joined(joining: Promise<CollectionWatch<T>>, signal: AbortSignal | undefined): Promise<CollectionWatch<T>> {
    this.#joining++;
    const watch = await joining.finally(() => this.#joining--);
    try {
      this.#options.pending.check(signal);
    } catch (error) {
      void watch.return();
      throw error;
    }
    return watch;
  }

  #opened(watch: CollectionWatch<T>, { signal, timeoutSeconds, sendInitialEvents, allowWatchBookmarks }: ListWatchOptions): void {
    const nowMs = this.#options.clock.now();
    this.#open.add(watch);
    if (timeoutSeconds) watch.deadlineMs = Math.ceil(nowMs + timeoutSeconds * 1000);
    watch.bookmarks = allowWatchBookmarks ?? sendInitialEvents ?? false;
    this.#plan(watch, nowMs);
    if (signal) watch.onLeave = whenAborted(signal, () => watch.stop());
  }

  /** Schedules when a watch is due next: for a BOOKMARK, or for its end. */
  #plan(watch: CollectionWatch<T>, nowMs: number): void {
    const { bookmarks } = watch;
    const deadlineMs = watch.deadlineMs || Infinity;
    const bookmarkMs = Math.min(nowMs + this.#options.bookmarkMs, deadlineMs - BEFORE_END_MS);
    const dueMs = bookmarks && bookmarkMs > nowMs ? bookmarkMs : deadlineMs;
    this.#schedule.at(watch, dueMs);
  }

  #due(watch: CollectionWatch<T>, nowMs: number): void {
    if (watch.stopped) return;
    if (watch.deadlineMs > 0 && nowMs >= watch.deadlineMs) {
      watch.stop();
      return;
    }
    this.#plan(watch, nowMs);
    if (watch.bookmarks) watch.bookmark();
  }

  left(watch: CollectionWatch<T>): void {
    this.#open.delete(watch);
    this.#schedule.remove(watch);
    this.#collection.left(watch.view);
  }

  fellBehind(): void {
    this.behind++;
  }

  /** Makes every watch below a prefix that allows BOOKMARKs deliver the version, even if it has not changed. */
  requestProgress(prefix: string): void {
    for (const watch of this.#open) if (watch.bookmarks && watch.view.selection.prefix.startsWith(prefix)) watch.bookmark(true);
  }

  /** Ends all of them, and everything that waits. */
  close(): void {
    this.#options.pending.close();
    for (const watch of this.#open) watch.stop();
    this.#schedule.clear();
  }
}

/** All watches of a collection: those of the storage, and those of each server in front of it. */
export class WatchGroups<T extends KubernetesObject> {
  readonly #parts: { readonly collection: Collection<T>; readonly source: ListSource<T> };
  readonly #clock: Clock;
  readonly #groups: Set<Watches<T>> = new Set();
  #closed: boolean = false;

  constructor(parts: { readonly collection: Collection<T>; readonly source: ListSource<T> }, clock: Clock) {
    this.#parts = parts;
    this.#clock = clock;
  }

  /** Number of open watches. */
  get size(): number {
    let open = 0;
    for (const { size } of this.#groups) open += size;
    return open;
  }

  /** Watches that are opened and ended together. */
  add({ bookmarkMs = Infinity, maxWatches = Infinity, clock = this.#clock }: ServedOptions): Watches<T> {
    const watches = new Watches(this.#parts, { bookmarkMs, maxWatches, clock, pending: new Pending() });
    if (this.#closed) watches.close();
    else this.#groups.add(watches);
    return watches;
  }

  end(watches: Watches<T>): void {
    this.#groups.delete(watches);
    watches.close();
  }

  requestProgress(prefix: string): void {
    for (const watches of this.#groups) watches.requestProgress(prefix);
  }

  /** Ends everything that waits, and refuses later calls. */
  refuse(): void {
    this.#closed = true;
    for (const { pending } of this.#groups) pending.close();
  }

  /** Ends all of them. */
  close(): void {
    this.refuse();
    for (const watches of this.#groups) watches.close();
  }
}

/** The statistics of a part that a server serves. */
export function partStats<T extends KubernetesObject>(
  { collection, watches, prefix }: { readonly collection: Collection<T>; readonly watches: Watches<T>; readonly prefix: string },
  { changes }: Part<T>,
): Omit<CacherStats, 'phase' | 'error' | 'generation' | 'gaps' | 'waiting'> {
  const { length: items, bytes, base: since } = collection.log;
  return {
    ...{ resourceVersion: collection.version, objects: collection.count(prefix), changes },
    window: { items, bytes, since },
    ...{ watches: watches.size, views: watches.views, fellBehind: watches.behind },
  };
}

/** What a watch begins with. Upstream: the table of `GetCacheIntervalForRequest` and `getWatchCacheResourceVersion`. */
function startOf(options: ListWatchOptions): StartPlan {
  const { after, atLeast, marksEnd } = planWatch(options);
  const isAny = !!options.resourceVersion && parseVersion(options.resourceVersion) === undefined;
  if (after !== undefined) return { initial: false, mark: false, after, required: after };
  if (marksEnd) return { initial: true, mark: true, required: atLeast ?? (isAny ? undefined : 'newest') };
  // Only an explicit false omits the state.
  if (options.sendInitialEvents === false) return { initial: false, mark: false, required: isAny ? undefined : 'newest' };
  // Without a version, any state will do, unless the match excludes an old one.
  const isFresh = options.resourceVersionMatch === 'NotOlderThan' && !isAny;
  return { initial: true, mark: false, required: isFresh ? 'newest' : undefined };
}

/** A part of a collection, and what it needs to answer. */
export interface ScopeParts<T extends KubernetesObject> {
  readonly collection: Collection<T>;
  readonly source: ListSource<T>;
  readonly watches: Watches<T>;
  readonly prefix: string;
  readonly reader: FieldReader<T>;
}

/** The part of a collection whose keys begin with a prefix: the reads that every storage with a collection answers from it. */
export class CollectionScope<T extends KubernetesObject> {
  protected readonly parts: ScopeParts<T>;

  constructor(parts: ScopeParts<T>) {
    this.parts = parts;
  }

  protected get pending(): Pending {
    return this.parts.watches.pending;
  }

  async list(options: ListOptions = {}): Promise<List<T>> {
    const { limit = 0, signal } = checkOptions(options, LIST_NAMES);
    const { source } = this.parts;
    this.pending.check(signal);
    wholeNumber('limit', limit);
    const selection = this.#select(options);
    const ready = source.ready(signal);
    if (isPromise(ready)) await ready;
    const list = listOf(this.parts, selection, options);
    return isPromise(list) ? await this.pending.until(list, signal) : list;
  }

  async watch(options: StorageWatchOptions<T> = {}): Promise<Watch<StorageEvent<T>>> {
    const { timeoutSeconds = 0, signal } = checkOptions(options, WATCH_NAMES);
    this.pending.check(signal);
    wholeNumber('timeoutSeconds', timeoutSeconds);
    const watch = await this.parts.watches.open(this.#select(options), options);
    // A watch that was abandoned while it was opened is returned to nobody.
    if (signal?.aborted) void watch.return();
    signal?.throwIfAborted();
    return watch;
  }

  /** Does nothing: the whole is closed, not a part of it. */
  async close(): Promise<void> {}

  #select({ labelSelector, fieldSelector }: ListOptions): Selection<T> {
    const { prefix, reader } = this.parts;
    return new Selection(reader, { prefix, labelSelector, fieldSelector });
  }
}
