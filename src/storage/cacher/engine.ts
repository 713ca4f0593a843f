/** What all scopes of a cacher share: its state and log, its watches, and what they wait for. */

import type { ListWatchOptions } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { VersionComparator } from '../../cache/versions.ts';
import { isPromise, whenAborted } from '../../watch/abort.ts';
import type { BookmarkEvent } from '../../watch/event.ts';
import { paceOf } from '../../watch/fair-queue.ts';
import { Pending } from '../memory/pending.ts';
import { parseVersion, planWatch } from '../selection.ts';
import { expired, tooManyRequests } from '../statuses.ts';
import type { FieldFunctions, Storage } from '../storage.ts';
import type { CacheWatch, CacheWatchHost } from './cache-watch.ts';
import { Core, type JoinOptions } from './core.ts';
import { Feed } from './feed.ts';
import { Freshness } from './freshness.ts';
import type { CacherSettings, CacherStats } from './options.ts';
import { Readiness } from './readiness.ts';
import { Schedule } from './schedule.ts';
import { FieldReader, type Selection } from './selection.ts';

/** The last BOOKMARK comes this long before a watch ends. */
const BEFORE_END_MS = 2_000;

/** What a watch begins with, and the version that the cache must have reached before. */
interface StartPlan extends JoinOptions {
  /** `newest`: what the storage has now. Undefined: any. */
  readonly required: string | 'newest' | undefined;
}

export class Engine<T extends KubernetesObject> implements CacheWatchHost<T> {
  readonly storage: Storage<T>;
  readonly settings: CacherSettings<T>;
  readonly core: Core<T>;
  readonly readiness: Readiness;
  readonly freshness: Freshness;
  readonly pending: Pending = new Pending();
  readonly compareVersions: VersionComparator;
  readonly #feed: Feed<T>;
  readonly #schedule: Schedule;
  readonly #watches: Set<CacheWatch<T>> = new Set();
  readonly #readers: WeakMap<object, Map<string, FieldReader<never>>> = new WeakMap();
  readonly #abort: AbortController = new AbortController();
  readonly #running: Promise<void>;
  #joining: number = 0;
  #fellBehind: number = 0;

  constructor(storage: Storage<T>, settings: CacherSettings<T>) {
    const { clock, random, compareVersions } = settings;
    this.storage = storage;
    this.settings = settings;
    this.compareVersions = compareVersions;
    this.core = new Core(settings);
    this.readiness = new Readiness({ now: () => clock.now(), random });
    this.freshness = new Freshness({
      ...settings,
      version: () => this.core.version || '0',
      requestProgress: () => storage.requestProgress(),
      currentVersion: async () => storage.currentVersion({ signal: this.#abort.signal }),
      hasGiven: storage.hasGiven && (async (version) => (storage as Required<Storage<T>>).hasGiven(version)),
    });
    this.#schedule = new Schedule(clock);
    this.#feed = new Feed(this);
    this.#running = this.#feed.run(this.#abort.signal);
  }

  get start(): number {
    return this.core.history.start;
  }

  get place(): number {
    return this.core.place;
  }

  get bookmark(): BookmarkEvent {
    return this.core.bookmark;
  }

  get stats(): CacherStats {
    const { readiness, core, freshness } = this;
    const { length, bytes, base } = core.history;
    return {
      phase: readiness.phase,
      ...(readiness.error !== undefined && { error: readiness.error }),
      generation: readiness.generation,
      resourceVersion: core.version,
      objects: core.size,
      changes: core.place,
      window: { items: length, bytes, since: base },
      watches: this.#watches.size,
      views: core.views,
      fellBehind: this.#fellBehind,
      gaps: this.#feed.gaps,
      waiting: freshness.waiting,
    };
  }

  /**
   * The reader of these fields for objects below a prefix: scopes with the same fields and prefix share it, and thereby its
   * indexes.
   */
  readerOf<U extends KubernetesObject>(fields: FieldFunctions<U>, prefix: string): FieldReader<U> {
    let readers = this.#readers.get(fields);
    if (!readers) {
      readers = new Map();
      this.#readers.set(fields, readers);
    }
    const reader =
      readers.get(prefix) ??
      new FieldReader(fields, { prefix, onError: (error) => this.settings.failures.failed('a field', error) });
    readers.set(prefix, reader);
    return reader as unknown as FieldReader<U>;
  }

  /** Resolves when the cache can be read. Waits only while it is becoming ready for the first time. */
  async ready(signal: AbortSignal | undefined): Promise<void> {
    this.pending.check(signal);
    if (this.readiness.isStarting) await this.#started(signal);
    this.readiness.check();
  }

  #started(signal: AbortSignal | undefined): Promise<void> {
    const { clock, freshnessTimeoutMs } = this.settings;
    return new Promise((resolve, reject) => {
      const done = (): void => {
        cancel();
        forget();
        leave();
        if (signal?.aborted) reject(signal.reason);
        else resolve();
      };
      const cancel = clock.schedule(freshnessTimeoutMs, done);
      const forget = this.readiness.onChange(done);
      const leave = whenAborted(signal, done);
    });
  }

  /** Starts a watch. */
  async watch(selection: Selection<T>, options: ListWatchOptions, storage: Storage<T>): Promise<CacheWatch<T>> {
    const { signal } = options;
    const { required, ...plan } = startOf(options);
    await this.ready(signal);
    let { after } = plan;
    if (required === 'newest') {
      const version = await this.pending.until(storage.currentVersion({ signal }), signal);
      await this.freshness.wait(version, signal);
      if (!plan.initial) after = version;
    } else if (required !== undefined) await this.freshness.reach(required, signal);
    // The caller may have given up in the meantime.
    this.pending.check(signal);
    this.readiness.check();
    const { maxWatches } = this.settings;
    if (this.#watches.size + this.#joining >= maxWatches)
      throw tooManyRequests(`there are already ${maxWatches} watches (maxWatches)`, 1);
    const until = <R>(promise: Promise<R>): Promise<R> => this.pending.until(promise, signal);
    const joined = this.core.join(selection, { ...plan, after, until, pace: paceOf(signal) }, this);
    if (!joined) throw expired(after as string, this.core.history.base);
    const watch = isPromise(joined) ? await this.#joined(joined, signal) : joined;
    this.#opened(watch, options);
    return watch;
  }

  /** Those that wait for their state count as open. */
  async #joined(joining: Promise<CacheWatch<T>>, signal: AbortSignal | undefined): Promise<CacheWatch<T>> {
    this.#joining++;
    const watch = await joining.finally(() => this.#joining--);
    try {
      this.pending.check(signal);
    } catch (error) {
      void watch.return();
      throw error;
    }
    return watch;
  }

  #opened(watch: CacheWatch<T>, { signal, timeoutSeconds, sendInitialEvents, allowWatchBookmarks }: ListWatchOptions): void {
    const nowMs = this.settings.clock.now();
    this.#watches.add(watch);
    if (timeoutSeconds) watch.deadlineMs = Math.ceil(nowMs + timeoutSeconds * 1000);
    watch.bookmarks = allowWatchBookmarks ?? sendInitialEvents ?? false;
    this.#plan(watch, nowMs);
    if (signal) watch.onLeave = whenAborted(signal, () => watch.stop());
  }

  /** Schedules when a watch is due next: for a BOOKMARK, or for its end. */
  #plan(watch: CacheWatch<T>, nowMs: number): void {
    const { bookmarks } = watch;
    const deadlineMs = watch.deadlineMs || Infinity;
    const bookmarkMs = Math.min(nowMs + this.settings.bookmarkMs, deadlineMs - BEFORE_END_MS);
    const dueMs = bookmarks && bookmarkMs > nowMs ? bookmarkMs : deadlineMs;
    if (dueMs < Infinity) this.#schedule.add(watch, dueMs);
  }

  due(watch: CacheWatch<T>, nowMs: number): void {
    if (watch.deadlineMs > 0 && nowMs >= watch.deadlineMs) {
      watch.stop();
      return;
    }
    this.#plan(watch, nowMs);
    if (watch.bookmarks) watch.owe();
  }

  left(watch: CacheWatch<T>): void {
    this.#watches.delete(watch);
    this.#schedule.remove(watch);
    this.core.left(watch.view);
  }

  /** Makes every watch that allows BOOKMARKs deliver the cache's version, whether it has changed or not. */
  oweAll(): void {
    for (const watch of this.#watches) if (watch.bookmarks) watch.owe(true);
  }

  fellBehind(): void {
    this.#fellBehind++;
  }

  /** Ends everything, and resolves when nothing runs any more. */
  async close(): Promise<void> {
    this.readiness.stop();
    this.#abort.abort();
    this.pending.close();
    this.freshness.close();
    this.core.end();
    for (const watch of this.#watches) watch.stop();
    this.#schedule.clear();
    await this.#running;
  }
}

/** What a watch begins with. Upstream: the table of `GetCacheIntervalForRequest` and `getWatchCacheResourceVersion`. */
function startOf(options: ListWatchOptions): StartPlan {
  const { after, atLeast, marksEnd } = planWatch(options);
  const isAny = !!options.resourceVersion && parseVersion(options.resourceVersion) === undefined;
  if (after !== undefined) return { initial: false, mark: false, after, required: after };
  if (marksEnd) return { initial: true, mark: true, required: atLeast ?? (isAny ? undefined : 'newest') };
  // Only an explicit false leaves out the state.
  if (options.sendInitialEvents === false) return { initial: false, mark: false, required: isAny ? undefined : 'newest' };
  // Without a version any state will do, unless the match excludes an old one.
  const isFresh = options.resourceVersionMatch === 'NotOlderThan' && !isAny;
  return { initial: true, mark: false, required: isFresh ? 'newest' : undefined };
}
