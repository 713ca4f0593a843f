import { isWatchError, WatchError, wholeNumber } from '../watch/errors.ts';
import { known } from '../watch/options.ts';
import type { List, ListOptions, ListWatcher } from './list-watcher.ts';

/** Options of {@link listAll}: those of a list, of which a pager sets two itself. */
export interface ListAllOptions extends Omit<ListOptions, 'limit' | 'continue'> {
  /** Number of items to ask for at once; a whole number, default 500. 0: all. */
  readonly pageSize?: number | undefined;
  /** Number of pages after which it gives up, because a server may never end; a whole number >= 1, default 10,000. */
  readonly maxPages?: number | undefined;
}

/** A whole list. */
export interface WholeList<T> extends Omit<List<T>, 'continue' | 'remainingItemCount'> {
  /** Whether the server has sent more than one page. */
  readonly paged: boolean;
}

const PAGE_SIZE = 500;
const MAX_PAGES = 10_000;

/**
 * Lists a collection page by page, and resolves with all of it. If the past that the pages are made of expires on the way (410),
 * it starts over once, without pages. Upstream: `pager.ListPager`.
 *
 * @throws {WatchError} (rejects) what `list` rejects with; OVERLOADED with `limit` after `maxPages`; INVALID_FRAME if the server
 * sends the same `continue` twice in a row, or a page where all was asked for; INVALID_ARGUMENT for an invalid option.
 */
export async function listAll<T>(source: ListWatcher<T>, options: ListAllOptions = {}): Promise<WholeList<T>> {
  const { pageSize = PAGE_SIZE, maxPages = MAX_PAGES, ...selection } = known(options, NAMES);
  const limit = wholeNumber('pageSize', pageSize);
  wholeNumber('maxPages', maxPages, 1);
  const first = await source.list({ ...selection, limit });
  if (!first.continue) return { items: first.items, resourceVersion: first.resourceVersion, paged: false };
  // The token says at which version the list is; the server refuses both.
  const { resourceVersion: _version, resourceVersionMatch: _match, ...rest } = selection;
  const items = [...first.items];
  let token: string | undefined = first.continue;
  for (let pages = 1; token; pages++) {
    if (pages >= maxPages)
      throw new WatchError('OVERLOADED', `the list has more than maxPages (${maxPages})`, { limit: maxPages });
    let page: List<T>;
    try {
      page = await source.list({ ...rest, limit, continue: token });
    } catch (error) {
      if (!isWatchError(error, 'REFUSED') || error.status?.code !== 410) throw error;
      const whole = await source.list(selection);
      if (whole.continue) throw new WatchError('INVALID_FRAME', 'the server has sent a page where a whole list was asked for');
      return { items: whole.items, resourceVersion: whole.resourceVersion, paged: true };
    }
    if (page.continue === token) throw new WatchError('INVALID_FRAME', 'the server has sent the same continue twice');
    for (const item of page.items) items.push(item);
    token = page.continue;
  }
  return { items, resourceVersion: first.resourceVersion, paged: true };
}

const NAMES = [
  ...(['pageSize', 'maxPages', 'resourceVersion', 'resourceVersionMatch'] as const),
  ...(['labelSelector', 'fieldSelector', 'timeoutSeconds', 'signal'] as const),
] as const;
