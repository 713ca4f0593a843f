/**
 * Which state a list reads, and which part of it. Upstream: `ShouldDelegateList` and `GetList` of the cacher.
 *
 * | asked for | read |
 * |---|---|
 * | no version | the cache, once it has the version that the storage has now; from the storage if that takes too long |
 * | 0 | the cache as it is; all of it, whatever `limit` says |
 * | a version, with `NotOlderThan`, or with neither match nor `limit` | the cache, once it has that version; or 410, or 504 |
 * | a version, with `Exact`, or with `limit` and no match | the cache as it was at that version; from the storage if it is gone |
 * | `continue` | the same at the version of the first page; 410 with another `continue` if the storage has dropped it as well |
 *
 * A list is read in pieces from a copy of the state, which costs next to nothing. A past one is made by undoing changes of the log.
 */
import type { List, ListOptions } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { listAll } from '../../cache/pager.ts';
import { isPromise } from '../../watch/abort.ts';
import { isWatchError } from '../../watch/errors.ts';
import { paceOf, through } from '../../watch/fair-queue.ts';
import { continueAfter, encodeContinue } from '../continue.ts';
import { type ListPlan, planList } from '../selection.ts';
import { expiredContinue } from '../statuses.ts';
import type { Storage } from '../storage.ts';
import { Entry } from './change.ts';
import type { Core } from './core.ts';
import { type Freshness, isLate } from './freshness.ts';
import type { Selection } from './selection.ts';
import type { SortedMap } from './sorted-map.ts';

/** What a list needs from its cacher. */
export interface ListSource<T extends KubernetesObject> {
  readonly core: Core<T>;
  readonly freshness: Freshness;
  /** The key of an object, with the prefix. */
  readonly keyOf: (object: T) => string;
  /** The part of the storage that has the selection's prefix. */
  readonly storage: Storage<T>;
}

/** What a list asks for. */
interface Request<T extends KubernetesObject> {
  readonly selection: Selection<T>;
  readonly plan: ListPlan;
  /** Where a page begins, relative to the prefix. */
  readonly start: string;
  readonly limit: number;
  /** Whether any state will do. */
  readonly isAny: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Objects of one version in the order of their keys, including those of `selection`. */
interface State<T extends KubernetesObject> {
  readonly resourceVersion: string;
  readonly entries: Iterable<Entry<T>>;
  /** How many of them there are from a key on; undefined: count them. */
  readonly count?: ((from: string) => number) | undefined;
}

export async function listFrom<T extends KubernetesObject>(
  source: ListSource<T>,
  selection: Selection<T>,
  options: ListOptions,
): Promise<List<T>> {
  const plan = planList(options);
  const isAny = !!options.resourceVersion && plan.exact === undefined && plan.atLeast === undefined && !plan.from;
  const { limit = 0, signal } = options;
  const request = { selection, plan, start: plan.from?.start ?? '', limit: isAny ? 0 : limit, isAny, signal };
  const version = plan.from ? plan.from.revision : plan.exact;
  if (version !== undefined) return pageOf(await past(source, version, request), request);
  return await newest(source, request);
}

/** A list of the newest state, or of any that is new enough. */
async function newest<T extends KubernetesObject>(source: ListSource<T>, request: Request<T>): Promise<List<T>> {
  const { core, freshness, storage } = source;
  const { selection, plan, start, limit, isAny, signal } = request;
  if (plan.atLeast !== undefined) await freshness.reach(plan.atLeast, signal);
  else if (!isAny) {
    const version = await storage.currentVersion({ signal });
    const late = await freshness.wait(version, signal).then(() => false, isLate);
    if (late) return pageOf(await stored(source, undefined, request), request);
  }
  // The version and the state that is read are taken in one step.
  const resourceVersion = core.version;
  if (limit === 0 && start === '') {
    const items = core.select(selection, signal);
    return { items: isPromise(items) ? await items : items, resourceVersion };
  }
  return pageOf(stateOf(resourceVersion, core.candidates(selection), request), request);
}

/** The state at a version. */
async function past<T extends KubernetesObject>(source: ListSource<T>, version: string, request: Request<T>): Promise<State<T>> {
  const { core, freshness } = source;
  const { plan, start, signal } = request;
  try {
    await freshness.reach(version, signal);
    const kept = core.snapshotAt(version, signal);
    const snapshot = isPromise(kept) ? await kept : kept;
    if (snapshot) return stateOf(version, snapshot, request);
    return await stored(source, version, request);
  } catch (error) {
    if (!plan.from || !isWatchError(error, 'REFUSED') || error.status?.code !== 410) throw error;
    throw expiredContinue(encodeContinue({ revision: undefined, start }));
  }
}

function stateOf<T extends KubernetesObject>(
  resourceVersion: string,
  entries: SortedMap<Entry<T>>,
  { selection: { prefix }, start }: Request<T>,
): State<T> {
  return { resourceVersion, entries: entries.values(prefix, prefix + start), count: (from) => entries.count(prefix, from) };
}

/** All objects with the prefix, as the storage has them. It does not know the fields of the cacher, so it cannot select. */
async function stored<T extends KubernetesObject>(
  { storage, keyOf }: ListSource<T>,
  resourceVersion: string | undefined,
  { signal }: Request<T>,
): Promise<State<T>> {
  const exact = resourceVersion === undefined ? {} : { resourceVersion, resourceVersionMatch: 'Exact' as const };
  const list = await listAll(storage, { ...exact, pageSize: 0, signal });
  return { resourceVersion: list.resourceVersion, entries: list.items.map((object) => new Entry(keyOf(object), object, -1)) };
}

function pageOf<T extends KubernetesObject>(
  state: State<T>,
  { selection, start, limit, signal }: Request<T>,
): List<T> | Promise<List<T>> {
  const { resourceVersion, entries, count } = state;
  const from = selection.prefix + start;
  const items: T[] = [];
  let last = '';
  let left = 0;
  const visit = ({ key, object }: Entry<T>): boolean => {
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
    return { items, resourceVersion, continue: token, ...(selection.isWhole && { remainingItemCount: left }) };
  };
  return through(entries, visit, { pace: paceOf(signal), signal })?.then(made) ?? made();
}
