/**
 * Which state a list reads, and which part of it. Upstream: `ShouldDelegateList` and `GetList` of the cacher.
 *
 * | asked for | read |
 * |---|---|
 * | no version | the state, once it has all earlier writes; from elsewhere if that takes too long |
 * | 0 | the state as it is; all of it, whatever `limit` says |
 * | a version, with `NotOlderThan`, or with neither match nor `limit` | the state, once it has that version; or 410, or 504 |
 * | a version, with `Exact`, or with `limit` and no match | the state as it was at that version; from elsewhere if it is gone |
 * | `continue` | the same at the version of the first page; 410 with another `continue` if that is gone everywhere |
 *
 * A list is read in pieces from a copy of the state, which costs next to nothing. Undoing changes of the log makes a past one.
 */
import type { List, ListOptions } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { isPromise } from '../../watch/abort.ts';
import { isWatchError, refusalCode } from '../../watch/errors.ts';
import { type Soon, through } from '../../watch/fair-queue.ts';
import { continueAfter, encodeContinue, type ListPlan, planList } from '../requests.ts';
import { expired, expiredContinue } from '../statuses.ts';
import type { StateEntry } from './change-log.ts';
import type { Collection } from './collection.ts';
import type { SortedMap } from './sorted-map.ts';
import type { Selection } from './view.ts';

/** Objects of one version in the order of their keys: a selection, and perhaps more. */
export interface ListedState<T extends KubernetesObject> {
  readonly resourceVersion: string;
  readonly entries: Iterable<Pick<StateEntry<T>, 'key' | 'object'>>;
  /** How many of them there are from a key on; undefined: count them. */
  readonly count?: ((from: string) => number) | undefined;
  /** False: `count` is only a lower bound. Default true. */
  readonly isCounted?: boolean | undefined;
}

/** Which part of a state is wanted. */
export interface ListedPart {
  /** Where it begins, relative to the prefix. Default: at the first key. */
  readonly start?: string | undefined;
  /** This many entries, plus one, are enough if the rest is counted. 0, the default: all. */
  readonly limit?: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Where the state of a collection comes from, and how new it is. */
export interface ListSource<T extends KubernetesObject> {
  /** Waits until requests can be answered. Throws, or rejects, if they cannot. */
  ready(signal: AbortSignal | undefined): Soon<void>;
  /**
   * Waits until the state has everything written before this call. Resolves to its version, or a slightly older one. 504 if it
   * takes too long.
   */
  newest(signal: AbortSignal | undefined): Soon<string>;
  /**
   * Waits until the state has a client's version. Throws, or rejects, with 410 if it will never come, 504 if it takes too long.
   */
  reach(version: string, signal: AbortSignal | undefined): Soon<void>;
  /** The same collection in the storage behind, at a version; default: its newest. Absent: there is no such storage. */
  readonly elsewhere?: ((version: string | undefined, part: ListedPart) => Promise<ListedState<T>>) | undefined;
}

/** What a list asks for. */
interface Request<T extends KubernetesObject> {
  readonly collection: Collection<T>;
  readonly source: ListSource<T>;
  readonly selection: Selection<T>;
  readonly plan: ListPlan;
  /** Where a page begins, relative to the prefix. */
  readonly start: string;
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
}

export function listOf<T extends KubernetesObject>(
  { collection, source }: Pick<Request<T>, 'collection' | 'source'>,
  selection: Selection<T>,
  options: ListOptions,
): Soon<List<T>> {
  const plan = planList(options);
  const { limit = 0, signal } = options;
  // Any state, that is `0`: not exact, not at least a version, not a further page, and not the newest.
  const isAny = !!options.resourceVersion && plan.exact === undefined && plan.atLeast === undefined && !plan.from;
  const request = { collection, source, selection, plan, start: plan.from?.start ?? '', limit: isAny ? 0 : limit, signal };
  const version = plan.from ? plan.from.revision : plan.exact;
  if (version !== undefined) return past(version, request);
  if (isAny) return present(request);
  const fresh = plan.atLeast === undefined ? source.newest(signal) : source.reach(plan.atLeast, signal);
  return isPromise(fresh) ? afterwards(fresh, request) : present(request);
}

async function afterwards<T extends KubernetesObject>(fresh: Promise<unknown>, request: Request<T>): Promise<List<T>> {
  const { plan, source } = request;
  try {
    await fresh;
  } catch (error) {
    if (plan.atLeast !== undefined || !source.elsewhere || !isLate(error)) throw error;
    return pageOf(await source.elsewhere(undefined, partOf(request)), request);
  }
  return present(request);
}

/** The current state: its version and the copy that is read are taken in one step. */
function present<T extends KubernetesObject>(request: Request<T>): Soon<List<T>> {
  const { collection, selection, start, limit, signal } = request;
  const { version: resourceVersion } = collection;
  if (limit > 0 || start !== '') return pageOf(stateOf(resourceVersion, collection.candidates(selection), request), request);
  const items = collection.select(selection, signal);
  return isPromise(items) ? items.then((read) => ({ items: read, resourceVersion })) : { items, resourceVersion };
}

async function past<T extends KubernetesObject>(version: string, request: Request<T>): Promise<List<T>> {
  const { collection, source, plan, start, signal } = request;
  let state: ListedState<T>;
  try {
    await source.reach(version, signal);
    const kept = await collection.snapshotAt(version, signal);
    if (kept) state = stateOf(version, kept, request);
    else if (source.elsewhere) state = await source.elsewhere(version, partOf(request));
    else throw expired(version, collection.log.base);
  } catch (error) {
    if (!plan.from || !isWatchError(error, 'REFUSED') || error.status?.code !== 410) throw error;
    throw expiredContinue(encodeContinue({ revision: undefined, start }));
  }
  return pageOf(state, request);
}

/** Selecting is done here, so a page of a selection may need all objects. */
function partOf<T extends KubernetesObject>({ selection, start, limit, signal }: Request<T>): ListedPart {
  return { start, limit: selection.isWhole ? limit : 0, signal };
}

function stateOf<T extends KubernetesObject>(
  resourceVersion: string,
  entries: SortedMap<StateEntry<T>>,
  { selection: { prefix }, start }: Request<T>,
): ListedState<T> {
  return { resourceVersion, entries: entries.values(prefix, prefix + start), count: (from) => entries.count(prefix, from) };
}

function pageOf<T extends KubernetesObject>(
  { resourceVersion, entries, count, isCounted = true }: ListedState<T>,
  { selection, start, limit, signal }: Request<T>,
): Soon<List<T>> {
  const from = selection.prefix + start;
  const items: T[] = [];
  let last = '';
  let left = 0;
  const visit = ({ key, object }: Pick<StateEntry<T>, 'key' | 'object'>): boolean => {
    if (key < from || !selection.matches(key, object)) return true;
    if (limit > 0 && items.length === limit) {
      left += count ? count(key) : 1;
      return !count && selection.isWhole;
    }
    items.push(object);
    last = key;
    return true;
  };
  const made = (): List<T> => {
    if (left === 0) return { items, resourceVersion };
    const token = continueAfter(last.slice(selection.prefix.length), { revision: resourceVersion });
    return { items, resourceVersion, continue: token, ...(selection.isWhole && isCounted && { remainingItemCount: left }) };
  };
  return through(entries, visit, { signal })?.then(made) ?? made();
}

/** Whether the error says that a version did not come in time. */
export function isLate(error: unknown): boolean {
  return refusalCode(error) === 504;
}
