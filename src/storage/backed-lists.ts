/**
 * Lists of a backend, read in parts so that no answer gets too long, all at the revision of the first part.
 *
 *     [prefix, end) at 7:   a b c d | e f g h i j | k ...       a part has about as many objects as fit into 8 MiB
 *
 * With a selector, parts are read until the page is full. Upstream: `GetList` of storage/etcd3.
 */
import type { List } from '../cache/list-watcher.ts';
import type { KubernetesObject } from '../cache/object.ts';
import { compareDecimals } from '../cache/versions.ts';
import type { Clock } from '../watch/clock.ts';
import { isWatchError, refusalCode, type WatchError } from '../watch/errors.ts';
import type { Backend, Entry } from './backend.ts';
import type { Pending } from './life.ts';
import { continueAfter, encodeContinue, type ListPlan } from './requests.ts';
import { expiredContinue, foreign } from './statuses.ts';

/** What all scopes of one storage share. */
export interface ScopeSettings {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly random: () => number;
  readonly onError: (error: unknown) => void;
  /** Waits for anything but the backend. */
  readonly pending: Pending;
  readonly watches: Set<OpenWatch>;
}

/** A watch, as the storage sees it. */
export interface OpenWatch {
  readonly prefix: string;
  requestProgress(): void;
  stop(): void;
}

/** @throws {WatchError} 410 if the state is older than the requested version, which then did not come from this storage. */
export function checkReached(revision: string, atLeast: string | undefined): void {
  if (atLeast !== undefined && compareDecimals(revision, atLeast) < 0) throw foreign(atLeast, revision);
}

const PART_BYTES = 8_388_608;
const FIRST_PART = 500;
const MAX_PART = 10_000;
/** How often a list is started if its revision is compacted in the meantime. */
const MAX_ATTEMPTS = 3;

export interface PartOptions {
  readonly prefix: string;
  readonly plan: ListPlan;
  /** Any state will do, even an old one. */
  readonly anyState?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ListPart<T> {
  readonly entries: readonly Entry<T>[];
  /** The revision of all parts. */
  readonly revision: string;
  /** How many keys follow. */
  readonly left: number;
  /** False: `left` is only a lower bound. */
  readonly isLeftCounted: boolean;
  readonly life: unknown;
}

/** Reads a range part by part. */
export class Parts<T extends KubernetesObject> {
  readonly #backend: Backend;
  readonly #options: PartOptions;
  #from: string;
  #after: Entry<T> | undefined;
  #revision: string | undefined;
  #size: number = FIRST_PART;

  constructor(backend: Backend, options: PartOptions) {
    const { prefix, plan } = options;
    this.#backend = backend;
    this.#options = options;
    this.#from = prefix + (plan.from?.start ?? '');
    this.#revision = plan.from?.revision ?? plan.exact;
  }

  /** The next part, of at most `limit` entries. Do not call it once nothing is left. */
  async next(limit: number): Promise<ListPart<T>> {
    const { prefix, plan, anyState, signal } = this.#options;
    const revision = this.#revision;
    const request = {
      prefix,
      from: this.#from,
      after: this.#after,
      limit: Math.min(limit, this.#size),
      revision,
      anyState,
      signal,
    };
    const {
      entries,
      left,
      bytes,
      isLeftCounted = true,
      ...state
    } = await this.#backend.range<T>(request).catch((error: unknown) => {
      throw plan.from && refusalCode(error) === 410 ? this.#lostPlace() : error;
    });
    if (revision === undefined) checkReached(state.revision, plan.atLeast);
    this.#revision ??= state.revision;
    this.#after = entries.at(-1) ?? this.#after;
    const size = Math.floor((PART_BYTES * entries.length) / Math.max(bytes, 1));
    this.#size = Math.min(Math.max(size, 1), MAX_PART, Math.max(this.#size * 4, FIRST_PART));
    return { entries, revision: this.#revision, left, isLeftCounted, life: state.life };
  }

  #lostPlace(): WatchError {
    const start = this.#after ? `${this.#after.key}\0` : this.#from;
    return expiredContinue(encodeContinue({ revision: undefined, start: start.slice(this.#options.prefix.length) }));
  }
}

/** Which objects to list, and how many. */
interface PageOptions<T> extends PartOptions {
  /** 0: all of them. */
  readonly limit: number;
  /** Absent: all of them. */
  readonly selects: ((object: T) => boolean) | undefined;
}

/** Reads a list, or one page of it. If its revision is compacted, and was not requested, starts again at the newest. */
export async function readList<T extends KubernetesObject>(backend: Backend, options: PageOptions<T>): Promise<List<T>> {
  const { exact, from } = options.plan;
  const isAsked = (exact ?? from?.revision) !== undefined;
  for (let attempts = 1; ; attempts++) {
    try {
      return await readPage(backend, options);
    } catch (error) {
      if (isAsked || attempts === MAX_ATTEMPTS || !isWatchError(error, 'REFUSED') || error.status?.code !== 410) throw error;
    }
  }
}

async function readPage<T extends KubernetesObject>(backend: Backend, options: PageOptions<T>): Promise<List<T>> {
  const { prefix, limit, selects, signal } = options;
  const parts = new Parts<T>(backend, options);
  const items: T[] = [];
  for (;;) {
    const wanted = limit === 0 ? Infinity : limit - items.length;
    const { entries, revision, left, isLeftCounted } = await parts.next(selects ? MAX_PART : wanted);
    for (const [at, entry] of entries.entries()) {
      const loading = entry.load?.(signal);
      if (loading) await loading;
      const { object } = entry;
      if (selects && !selects(object)) continue;
      items.push(object);
      if (items.length !== limit) continue;
      const rest = left + entries.length - at - 1;
      if (rest === 0) break;
      const next = continueAfter(entry.key.slice(prefix.length), { revision });
      const isCounted = !selects && isLeftCounted;
      return { items, resourceVersion: revision, continue: next, ...(isCounted && { remainingItemCount: rest }) };
    }
    if (left === 0) return { items, resourceVersion: revision };
  }
}
