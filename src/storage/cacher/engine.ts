/** What all scopes of a cacher share: its collection, its watches, and their waiting. */
import { type KubernetesObject, keyOf as keyOfObject } from '../../cache/object.ts';
import { compareVersions as compareDecimals, type VersionComparator } from '../../cache/versions.ts';
import { whenAborted } from '../../watch/abort.ts';
import { type Clock, systemClock } from '../../watch/clock.ts';
import { callable, checkOptions, namesOf, type Wholes, wholeNumbers } from '../../watch/errors.ts';
import { Failures } from '../../watch/failures.ts';
import { Collection } from '../collection/collection.ts';
import type { ListSource } from '../collection/lists.ts';
import { type Watches, WatchGroups } from '../collection/watches.ts';
import type { Pending } from '../life.ts';
import type { CacherStats, FieldFunctions, Storage } from '../storage.ts';
import { encoded } from '../values.ts';
import { CacherFeed } from './feed.ts';
import { Freshness, Readiness } from './freshness.ts';
import { type Upstream, upstreamOf } from './upstream.ts';

/** How many changes are never dropped for their age. Upstream: `defaultLowerBoundCapacity`. */
const LEAST = 100;

/** An object takes about twice the size of its JSON (measured: 29 KB for a Pod of 14.5 KB), and its bytes are kept, too. */
const EXPANSION = 3;

/** About how many bytes of memory an object takes. Encodes it if that has not been done. */
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

export class Engine<T extends KubernetesObject> implements ListSource<T> {
  readonly storage: Storage<T>;
  readonly upstream: Upstream<T>;
  readonly settings: CacherSettings<T>;
  readonly collection: Collection<T>;
  readonly readiness: Readiness;
  readonly freshness: Freshness;
  readonly watchGroups: WatchGroups<T>;
  readonly watches: Watches<T>;
  readonly compareVersions: VersionComparator;
  readonly #feed: CacherFeed<T>;
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
    this.#feed = new CacherFeed(this);
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
    // The storage may not say whether it has given it.
    return this.pending.until(this.freshness.reach(version, signal), signal);
  }

  /** Ends everything, and resolves when nothing is running any more. */
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

/** Options of a {@link Cacher}. */
export interface CacherOptions<T extends KubernetesObject = KubernetesObject> {
  /**
   * Only for a storage of your own that has no `backing`, and so does not report keys: returns the key of an object, which must
   * be the one under which it was created. A `create` or `update` under another one is refused with INVALID_ARGUMENT, and nothing
   * is written. Default: `<namespace>/<name>`, or the name for an object without a namespace.
   */
  readonly keyOf?: ((object: T) => string) | undefined;
  /** Fields that selectors may use in addition to `metadata.name` and `metadata.namespace`. Each is indexed. */
  readonly fields?: FieldFunctions<T> | undefined;
  /** Number of past changes to keep, for watches and for lists of past states; default 100,000. */
  readonly windowItems?: number | undefined;
  /** How many bytes these may take, including their objects and the objects' JSON; default 256 MiB. */
  readonly windowBytes?: number | undefined;
  /** How long these are kept, in milliseconds; default 75,000. The last 100 are kept regardless of age. */
  readonly windowMs?: number | undefined;
  /**
   * How many revisions of the whole storage it goes back when it starts, so that its window has the changes that clients of
   * another cacher may not have seen yet; default 10,000. 0: it starts with the current state. If the storage no longer has that
   * many, it goes back less far; if it cannot catch up within four times `freshnessTimeoutMs`, not at all. Requires versions that
   * are decimal numbers.
   */
  readonly pastRevisions?: number | undefined;
  /** How long a read may wait for the version that it needs, in milliseconds; default 3,000. */
  readonly freshnessTimeoutMs?: number | undefined;
  /** How often the storage is asked for progress while a read waits, in milliseconds; default 100. */
  readonly progressMs?: number | undefined;
  /** How often a watch that allows BOOKMARKs gets one, if the version is new, in milliseconds; default 60,000. */
  readonly bookmarkMs?: number | undefined;
  /** The most open watches; further ones are refused with 429. Default 100,000. */
  readonly maxWatches?: number | undefined;
  /** The longest delay after the first failure of the storage, in milliseconds; each further one doubles it. Default 100. */
  readonly minRetryMs?: number | undefined;
  /** The longest delay, in milliseconds; default 30,000. Each delay is random, up to the longest at that time. */
  readonly maxRetryMs?: number | undefined;
  /** How to compare versions. Default `compareVersions`: Kubernetes' decimal numbers. */
  readonly compareVersions?: VersionComparator | undefined;
  /**
   * Called with every failure of the storage, or of a function in `fields`. What it throws is ignored. Default: `console.error`,
   * once per kind, and when the storage works again.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Source of time. Default: the host's. */
  readonly clock?: Clock | undefined;
  /** Source of jitter: a number from 0 to below 1. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** The options with their defaults. */
type CacherSettings<T extends KubernetesObject> = {
  readonly [Name in Exclude<keyof CacherOptions<T>, 'onError'>]-?: NonNullable<CacherOptions<T>[Name]>;
} & { readonly failures: Failures };

const NUMBERS = {
  windowItems: [100_000],
  windowBytes: [256 * 1024 * 1024],
  windowMs: [75_000, 1],
  pastRevisions: [10_000],
  freshnessTimeoutMs: [3_000, 1],
  progressMs: [100, 1],
  bookmarkMs: [60_000, 1],
  maxWatches: [100_000],
  minRetryMs: [100, 1],
  maxRetryMs: [30_000, 1],
} satisfies Wholes<string>;

const NAMES = [...namesOf(NUMBERS), ...(['keyOf', 'fields', 'compareVersions', 'onError', 'clock', 'random'] as const)] as const;

/** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option. */
export function toSettings<T extends KubernetesObject>(options: CacherOptions<T>): CacherSettings<T> {
  const { keyOf, fields = {}, compareVersions, onError, clock = systemClock, random } = checkOptions(options, NAMES);
  for (const [name, field] of Object.entries(fields)) callable(`fields.${name}`, field);
  return {
    ...wholeNumbers(options, NUMBERS),
    keyOf: callable('keyOf', keyOf) ?? keyOfObject,
    fields,
    compareVersions: callable('compareVersions', compareVersions) ?? compareDecimals,
    failures: new Failures('cacher', { onError, clock }),
    clock,
    random: callable('random', random) ?? Math.random,
  };
}
