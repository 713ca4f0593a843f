import { checkOptions, invalid, isWatchError, requireMethod, WatchError, wholeNumber } from '../watch/errors.ts';
import type { List, ListOptions, ListWatcher } from './list-watcher.ts';

/** Options of {@link listAll}: those of a list, of which a pager sets two itself. */
export interface ListAllOptions extends Omit<ListOptions, 'limit' | 'continue'> {
  /** Number of items per request; a whole number, default 500. 0: all. */
  readonly pageSize?: number | undefined;
  /** Number of pages after which it gives up, because a server may never end; a whole number >= 1, default 10,000. */
  readonly maxPages?: number | undefined;
  /** Number of objects, over all pages, after which it gives up; a whole number >= 1. Default: no limit. */
  readonly maxObjects?: number | undefined;
  /**
   * Number of bytes, over all pages, after which it gives up, if the source reports them; a whole number >= 1, default 1 GiB
   * (1,073,741,824).
   */
  readonly maxTotalListBytes?: number | undefined;
}

/** A whole list. */
export interface WholeList<T> extends Omit<List<T>, 'continue' | 'remainingItemCount' | 'bytes'> {
  /** Whether the server sent more than one page. */
  readonly paged: boolean;
}

const PAGE_SIZE = 500;
const MAX_PAGES = 10_000;
export const MAX_TOTAL_LIST_BYTES = 1_073_741_824;

/**
 * Lists a collection page by page, and resolves with all of it. If the version of the pages expires before the last one (410), it
 * starts over once, without pages. Upstream: `pager.ListPager`.
 *
 * @throws {WatchError} (rejects) what `list` rejects with; OVERLOADED with `limit` after `maxPages`, `maxObjects` or
 * `maxTotalListBytes`; INVALID_FRAME if the server repeats a `continue`, or sends a page although the whole list was asked for;
 * INVALID_ARGUMENT for an invalid option, and for a list without `items`.
 */
export async function listAll<T>(source: ListWatcher<T>, options: ListAllOptions = {}): Promise<WholeList<T>> {
  const {
    pageSize = PAGE_SIZE,
    maxPages = MAX_PAGES,
    maxObjects = Number.MAX_SAFE_INTEGER,
    maxTotalListBytes = MAX_TOTAL_LIST_BYTES,
    ...selection
  } = checkOptions(options, NAMES);
  requireMethod('source', source, 'list', 'a ListWatcher');
  wholeNumber('pageSize', pageSize);
  wholeNumber('maxPages', maxPages, 1);
  wholeNumber('maxObjects', maxObjects, 1);
  wholeNumber('maxTotalListBytes', maxTotalListBytes, 1);
  return readAll(source, { selection, pageSize, maxPages, maxObjects, maxTotalListBytes });
}

/** Options of {@link listAll} that were checked. */
interface Pages<T> {
  readonly selection: Omit<ListOptions, 'limit' | 'continue'>;
  readonly pageSize: number;
  readonly maxPages?: number;
  readonly maxObjects: number;
  readonly maxTotalListBytes: number;
  readonly prepare?: Prepare<T> | undefined;
}

/** The same as {@link listAll}, for callers that have checked its options. */
export async function readAll<T>(source: ListWatcher<T>, options: Pages<T>): Promise<WholeList<T>> {
  const { selection, pageSize: limit, maxPages = MAX_PAGES, maxObjects, maxTotalListBytes, prepare } = options;
  let pages = 1;
  let objects = 0;
  let bytes = 0;
  const check = (page: List<T>): void => {
    if (page.continue) pages++; // there is one more
    objects += page.items.length;
    bytes += page.bytes ?? 0;
    checkTotal('maxPages', pages, maxPages);
    checkTotal('maxObjects', objects, maxObjects);
    checkTotal('maxTotalListBytes', bytes, maxTotalListBytes);
  };
  const list = (asked: ListOptions): Promise<List<T>> => preparedList(source, asked, prepare);
  const first = await list({ ...selection, limit });
  check(first);
  if (!first.continue) return { items: first.items, resourceVersion: first.resourceVersion, paged: false };
  // The token says at which version the list is; the server refuses both.
  const { resourceVersion: _version, resourceVersionMatch: _match, ...rest } = selection;
  const items = [...first.items];
  let token: string | undefined = first.continue;
  let seen = token;
  while (token) {
    let page: List<T>;
    try {
      page = await list({ ...rest, limit, continue: token });
    } catch (error) {
      if (!isWatchError(error, 'REFUSED') || error.status?.code !== 410) throw error;
      const whole = await list(selection);
      if (whole.continue) throw new WatchError('INVALID_FRAME', 'the server sent a page instead of the whole list');
      objects = bytes = 0;
      check(whole);
      return { items: whole.items, resourceVersion: whole.resourceVersion, paged: true };
    }
    const next = page.continue;
    if (next && (next === token || next === seen)) throw new WatchError('INVALID_FRAME', 'the server repeated a continue token');
    check(page);
    for (const item of page.items) items.push(item);
    token = next;
    // A cycle of any length comes back to a token that is remembered long enough (Brent).
    if (token && (pages & (pages - 1)) === 0) seen = token;
  }
  return { items, resourceVersion: first.resourceVersion, paged: true };
}

/** Throws OVERLOADED if an amount exceeds its limit. */
export function checkTotal(name: string, amount: number, limit: number): void {
  if (amount > limit) throw new WatchError('OVERLOADED', `the list has more than ${name} (${limit})`, { limit });
}

const NAMES = [
  'pageSize',
  'maxPages',
  'maxObjects',
  'maxTotalListBytes',
  'resourceVersion',
  'resourceVersionMatch',
  'labelSelector',
  'fieldSelector',
  'timeoutSeconds',
  'signal',
] as const;

/**
 * How a reflector gets a list's objects as its store's `prepare` returns them, without holding the whole list as it was sent.
 *
 * A source of this package that reads a list item by item takes `prepare` as a second parameter of `list`. That is not part of
 * `ListWatcher`: code that wraps a source handles objects, and must not see a store's version of them. So the method is marked,
 * not the source: a method that is overridden, bound or replaced gets only options, and its items are prepared afterwards.
 */

/** Called with each object as soon as it has arrived; the result takes its place. */
export type Prepare<T> = (object: T) => T;

interface PreparingSource<T> extends ListWatcher<T> {
  list(options?: ListOptions, prepare?: Prepare<T>): Promise<List<T>>;
}

const METHODS: WeakSet<object> = new WeakSet<object>();

/**
 * Marks the `list` of a class: it takes a {@link Prepare} after the options, and then all items of its result are prepared. Called by
 * the constructor: in a static block, it would keep classes in bundles that do not use them.
 */
export function takesPrepare<T>(list: PreparingSource<T>['list']): void {
  METHODS.add(list);
}

/** Lists, with every item prepared: as it arrives, if the source can. */
export async function preparedList<T>(
  source: ListWatcher<T>,
  options: ListOptions,
  prepare: Prepare<T> | undefined,
): Promise<List<T>> {
  if (prepare && METHODS.has(source.list)) return (source as PreparingSource<T>).list(options, prepare);
  const list = await source.list(options);
  if (!Array.isArray((list as Partial<List<T>> | undefined | null)?.items))
    throw invalid('list', list, '{ items, resourceVersion }');
  options.signal?.throwIfAborted(); // for a source that ignores signals: neither this page nor another is wanted
  return prepareItems(list, prepare);
}

export function prepareItems<T>(list: List<T>, prepare: Prepare<T> | undefined): List<T> {
  // Of its members, `bytes` need not be enumerable.
  return prepare ? { ...list, bytes: list.bytes, items: list.items.map((item) => prepare(item)) } : list;
}
