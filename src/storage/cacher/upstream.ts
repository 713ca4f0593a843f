/**
 * What a cacher follows. If there is a backend under its storage, its changes carry their keys. From any other storage, it takes
 * lists and watches, and derives the keys from the objects.
 *
 *     storage.backing ---> backend: range, changesAfter ---.
 *                                                           '---> entries, then batches of changes with their keys ---> feed.ts
 *     another storage ---> list, watch, keyOf(object) -----'
 */
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import { listAll } from '../../cache/pager.ts';
import { whenAborted } from '../../watch/abort.ts';
import { isWatchError, WatchError } from '../../watch/errors.ts';
import type { BookmarkEvent, ErrorEvent } from '../../watch/event.ts';
import { Parts } from '../backed-lists.ts';
import type { Backend, Backing, Changes } from '../backend.ts';
import type { StateEntry } from '../collection/change-log.ts';
import type { ListedPart, ListedState } from '../collection/lists.ts';
import type { ChangeEvent, Storage, StorageEvent } from '../storage.ts';

/** For a storage without a backend, which reads its lists in parts itself. Upstream: `storageWatchListPageSize`. */
const PAGE_SIZE = 10_000;

/** A change of one key. */
export interface KeyedChange<T> {
  readonly key: string;
  readonly version: string;
  /** The new object; undefined after a deletion. */
  readonly object: T | undefined;
}

export type UpstreamEvent<T> = KeyedChange<T> | BookmarkEvent | ErrorEvent;

/** Delivers events until it is stopped or fails. */
export interface UpstreamWatch<T> {
  batches(): AsyncIterable<readonly UpstreamEvent<T>[]>;
  stop(): void;
}

export interface Upstream<T extends KubernetesObject> {
  /** The key of an object, if the storage does not report keys. */
  readonly keyOf?: ((object: T) => string) | undefined;
  /** The objects at a version; default: the newest. May return more than the wanted part. */
  list(version: string | undefined, part: ListedPart): Promise<UpstreamList<T>>;
  /** The changes after a version. */
  watch(version: string, terms: WatchTerms<T>): Promise<UpstreamWatch<T>>;
  /** Makes the open watch report the current version. */
  requestProgress(): Promise<void>;
}

interface UpstreamList<T extends KubernetesObject> extends ListedState<T> {
  readonly entries: readonly Pick<StateEntry<T>, 'key' | 'object'>[];
  /** Which life of the data this is, if the backend says. */
  readonly life?: unknown;
}

interface WatchTerms<T> {
  readonly signal: AbortSignal;
  /** The object that the follower has under a key. */
  readonly stateOf: (key: string) => T | undefined;
  /** The `life` of the list that it continues. */
  readonly life: unknown;
}

export function upstreamOf<T extends KubernetesObject>(storage: Storage<T>, keyOf: (object: T) => string): Upstream<T> {
  return storage.backing ? new BackendUpstream(storage.backing) : new StorageUpstream(storage, keyOf);
}

class BackendUpstream<T extends KubernetesObject> implements Upstream<T> {
  readonly #backend: Backend;
  readonly #prefix: string;
  #changes: Changes<T> | undefined;

  constructor({ backend, prefix }: Backing) {
    this.#backend = backend;
    this.#prefix = prefix;
  }

  async list(version: string | undefined, { start, limit = 0, signal }: ListedPart): ReturnType<Upstream<T>['list']> {
    const plan = { exact: version, atLeast: undefined, from: start ? { revision: version, start } : undefined };
    const most = limit === 0 ? Infinity : limit + 1;
    const parts = new Parts<T>(this.#backend, { prefix: this.#prefix, plan, signal });
    const entries: { key: string; object: T }[] = [];
    for (;;) {
      const { entries: read, revision, left, isLeftCounted: isCounted, life } = await parts.next(most - entries.length);
      for (const entry of read) {
        const loading = entry.load?.(signal);
        if (loading) await loading;
        entries.push({ key: this.#own(entry.key), object: entry.object });
      }
      if (left === 0) return { entries, resourceVersion: revision, life };
      // The last entry is the first one of the next page.
      if (entries.length === most) return { entries, resourceVersion: revision, life, count: () => left + 1, isCounted };
    }
  }

  async watch(version: string, { signal, life }: Pick<WatchTerms<T>, 'signal' | 'life'>): Promise<UpstreamWatch<T>> {
    const changes = this.#backend.changesAfter<T>(version, { prefix: this.#prefix, previous: false, life });
    const stop = endOf(signal, () => changes.close());
    try {
      await changes.open();
    } catch (error) {
      stop();
      throw error;
    }
    this.#changes = changes;
    return { stop, batches: () => this.#batches(changes, signal) };
  }

  async *#batches(changes: Changes<T>, signal: AbortSignal): AsyncGenerator<readonly UpstreamEvent<T>[], undefined> {
    for (;;) {
      const events: UpstreamEvent<T>[] = [];
      let failed: { readonly error: unknown } | undefined;
      try {
        const batch = changes.poll() ?? (await changes.next());
        if (!batch) return;
        for (const change of batch.changes) {
          const loading = change.load?.(signal);
          if (loading) await loading;
          signal.throwIfAborted();
          events.push({ key: this.#own(change.key), version: change.revision, object: change.object });
        }
        if (batch.progress !== undefined) {
          events.push({ type: 'BOOKMARK', object: { metadata: { resourceVersion: batch.progress } } });
        }
      } catch (error) {
        failed = { error };
      }
      // Changes before a value that cannot be read are delivered.
      const status = failed && (isWatchError(failed.error, 'REFUSED') ? failed.error.status : undefined);
      if (status) events.push({ type: 'ERROR', object: status });
      if (events.length > 0) yield events;
      if (status) return;
      if (failed) throw failed.error;
    }
  }

  async requestProgress(): Promise<void> {
    this.#changes?.requestProgress();
  }

  #own(key: string): string {
    return key.slice(this.#prefix.length);
  }
}

/** Calls `end` when the signal aborts, or when the returned function is called. A user's own storage may ignore signals. */
function endOf(signal: AbortSignal, end: () => void): () => void {
  const leave = whenAborted(signal, end);
  return () => {
    leave();
    end();
  };
}

class StorageUpstream<T extends KubernetesObject> implements Upstream<T> {
  readonly keyOf: (object: T) => string;
  readonly #storage: Storage<T>;

  constructor(storage: Storage<T>, keyOf: (object: T) => string) {
    this.#storage = storage;
    this.keyOf = keyOf;
  }

  async list(version: string | undefined, { signal }: ListedPart): ReturnType<Upstream<T>['list']> {
    const exact = version === undefined ? {} : { resourceVersion: version, resourceVersionMatch: 'Exact' as const };
    const { items, resourceVersion } = await listAll(this.#storage, { ...exact, pageSize: PAGE_SIZE, signal });
    return { entries: items.map((object) => ({ key: this.keyOf(object), object })), resourceVersion };
  }

  async watch(
    resourceVersion: string,
    { signal, stateOf: previousOf }: Pick<WatchTerms<T>, 'signal' | 'stateOf'>,
  ): Promise<UpstreamWatch<T>> {
    const watch = await this.#storage.watch({ resourceVersion, allowWatchBookmarks: true, previousOf, signal });
    const keyed = (event: ChangeEvent<T>): KeyedChange<T> => new OwnKeyedChange(event, this.keyOf);
    const told = (event: StorageEvent<T>): UpstreamEvent<T> =>
      event.type === 'BOOKMARK' || event.type === 'ERROR' ? event : keyed(event);
    const stop = endOf(signal, () => void watch.return());
    const batches = watch.batches();
    const next = (): Promise<IteratorResult<readonly UpstreamEvent<T>[], undefined>> =>
      batches.next().then((read) => (read.done ? read : { done: false, value: read.value.map(told) }));
    return { stop, batches: () => ({ [Symbol.asyncIterator]: () => ({ next }) }) };
  }

  requestProgress(): Promise<void> {
    return this.#storage.requestProgress();
  }
}

/** A change whose key is derived from its object, when the change is taken, so that a wrong key is an error of this change. */
class OwnKeyedChange<T extends KubernetesObject> implements KeyedChange<T> {
  readonly version: string;
  readonly object: T | undefined;
  readonly #event: ChangeEvent<T>;
  readonly #keyOf: (object: T) => string;

  constructor(event: ChangeEvent<T>, keyOf: (object: T) => string) {
    this.version = versionOf(event.object);
    this.object = event.type === 'DELETED' ? undefined : event.object;
    this.#event = event;
    this.#keyOf = keyOf;
  }

  get key(): string {
    const { object, previous } = this.#event;
    const key = this.#keyOf(object);
    const before = previous ? this.#keyOf(previous) : key;
    if (before === key) return key;
    throw new WatchError('INVALID_FRAME', `the key changed from ${before} to ${key}: keyOf is wrong`);
  }
}

/** A past state, and the version that must be reached before it can be used. */
interface Past<T extends KubernetesObject> extends UpstreamList<T> {
  readonly goal: string;
}

interface PastOptions {
  /** The most revisions to go back from the newest. */
  readonly revisions: number;
  readonly signal: AbortSignal;
}

const STEP = 4;

/**
 * Where a cacher begins: not at the current state, but some revisions earlier, so that its window has the changes that clients of
 * another cacher may not have seen yet.
 *
 *     storage   ... 9,000 ...................... 19,000
 *                   ^ the list, exactly then     ^ `goal`: the newest when it was asked
 *                     '------- as changes -------'      from here on the cacher answers requests
 *
 * A storage that skips revisions says which one that was (`pastVersion`); for others, it is computed. The storage may no longer
 * have that revision, and does not say which ones it has. So the next attempt goes back a quarter as far, and so on: a few cheap
 * requests give a window of at least a quarter of what the storage keeps.
 *
 * Undefined if there is no such state, or if the storage cannot list it.
 */
export async function listPast<T extends KubernetesObject>(
  { storage, upstream }: { readonly storage: Storage<T>; readonly upstream: Upstream<T> },
  { revisions, signal }: PastOptions,
): Promise<Past<T> | undefined> {
  if (revisions === 0) return undefined;
  const goal = await storage.currentVersion({ signal });
  const newest = Number(goal);
  // Other versions cannot be computed with.
  if (!/^\d+$/.test(goal) || !Number.isSafeInteger(newest)) return undefined;
  for (let back = Math.min(revisions, newest - 1); back > 0; back = Math.floor(back / STEP)) {
    const version = (await storage.pastVersion?.(back)) ?? `${newest - back}`;
    try {
      return { ...(await upstream.list(version, { signal })), goal };
    } catch (error) {
      if (!isWatchError(error, 'REFUSED')) throw error;
      // Another refusal may concern only the past. If not, the list that follows fails as well.
      if (error.status?.code !== 410) return undefined;
    }
  }
  return undefined;
}
