/** What all scopes of a cacher share: its collection, its watches, and what they wait for. */
import type { KubernetesObject } from '../../cache/object.ts';
import type { VersionComparator } from '../../cache/versions.ts';
import { whenAborted } from '../../watch/abort.ts';
import { Collection } from '../collection/collection.ts';
import type { Source } from '../collection/lists.ts';
import { type Watches, WatchGroups } from '../collection/watches.ts';
import type { Pending } from '../pending.ts';
import type { CacherStats, Storage } from '../storage.ts';
import { encoded } from '../values.ts';
import { Feed } from './feed.ts';
import { Freshness, Readiness } from './freshness.ts';
import type { CacherSettings } from './options.ts';
import { type Upstream, upstreamOf } from './upstream.ts';

/** Changes that are never dropped for their age. Upstream: `defaultLowerBoundCapacity`. */
const LEAST = 100;

/** An object takes about twice the size of its JSON (measured: a Pod of 14.5 KB takes 29 KB), and its bytes are kept beside it. */
const EXPANSION = 3;

/** About how many bytes of memory an object takes. Makes its JSON if there is none yet. */
function sizeOf(object: object): number {
  return encoded(object).byteLength * EXPANSION;
}

export function collectionOf<T extends KubernetesObject>(settings: CacherSettings<T>): Collection<T> {
  const { clock, compareVersions, failures, windowItems: maxItems, windowBytes: maxBytes, windowMs: maxAgeMs } = settings;
  return new Collection<T>({
    ...{ limits: { maxItems, maxBytes, maxAgeMs, minItems: LEAST }, compareVersions, clock },
    costOf: ({ object }, before, isKept) => sizeOf(object) + (before && !isKept ? sizeOf(before.object) : 0),
    onFieldError: (error) => failures.failed('a field', error),
  });
}

export class Engine<T extends KubernetesObject> implements Source<T> {
  readonly storage: Storage<T>;
  readonly upstream: Upstream<T>;
  readonly settings: CacherSettings<T>;
  readonly collection: Collection<T>;
  readonly readiness: Readiness;
  readonly freshness: Freshness;
  readonly watchGroups: WatchGroups<T>;
  readonly watches: Watches<T>;
  readonly compareVersions: VersionComparator;
  readonly #feed: Feed<T>;
  readonly #abort: AbortController = new AbortController();
  readonly #running: Promise<void>;

  constructor(storage: Storage<T>, settings: CacherSettings<T>) {
    const { clock, random, compareVersions } = settings;
    this.storage = storage;
    this.settings = settings;
    this.upstream = upstreamOf(storage, settings.keyOf);
    this.compareVersions = compareVersions;
    this.collection = collectionOf(settings);
    this.collection.part('');
    const { bookmarkMs, maxWatches } = settings;
    this.watchGroups = new WatchGroups({ collection: this.collection, source: this }, clock);
    this.watches = this.watchGroups.add({ bookmarkMs, maxWatches });
    this.readiness = new Readiness({ now: () => clock.now(), random });
    this.freshness = new Freshness({
      ...settings,
      version: () => this.collection.version || '0',
      requestProgress: () => this.upstream.requestProgress(),
      currentVersion: async () => storage.currentVersion({ signal: this.#abort.signal }),
      hasGiven: storage.hasGiven && (async (version) => (storage as Required<Storage<T>>).hasGiven(version)),
    });
    this.#feed = new Feed(this);
    this.#running = this.#feed.run(this.#abort.signal);
  }

  get pending(): Pending {
    return this.watches.pending;
  }

  get stats(): CacherStats {
    const { readiness, collection, freshness, watches, watchGroups } = this;
    const { length, bytes, base } = collection.log;
    return {
      phase: readiness.phase,
      ...(readiness.error !== undefined && { error: readiness.error }),
      generation: readiness.generation,
      resourceVersion: collection.version,
      objects: collection.size,
      changes: collection.place,
      window: { items: length, bytes, since: base },
      watches: watchGroups.size,
      views: collection.views,
      fellBehind: watches.behind,
      gaps: this.#feed.gaps,
      waiting: freshness.waiting,
    };
  }

  /** Resolves when the cache can be read. Waits only while it is becoming ready for the first time. */
  ready(signal: AbortSignal | undefined): void | Promise<void> {
    this.pending.check(signal);
    if (this.readiness.isStarting) return this.#started(signal).then(() => this.readiness.check());
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

  async newest(signal: AbortSignal | undefined): Promise<string> {
    const version = await this.pending.until(this.storage.currentVersion({ signal }), signal);
    await this.freshness.wait(version, signal);
    return version;
  }

  reach(version: string, signal: AbortSignal | undefined): Promise<void> {
    return this.freshness.reach(version, signal);
  }

  /** Ends everything, and resolves when nothing runs any more. */
  async close(): Promise<void> {
    this.readiness.stop();
    this.#abort.abort();
    this.watchGroups.refuse();
    this.freshness.close();
    this.collection.end();
    this.watchGroups.close();
    await this.#running;
  }
}
