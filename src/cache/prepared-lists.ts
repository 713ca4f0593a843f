/**
 * How a reflector gets what its store's `prepare` makes of a list's objects, without the whole list in memory as it was sent.
 *
 * A source of this package that reads a list item by item takes `prepare` as a second parameter of `list`. That is no part of
 * `ListWatcher`: whoever wraps a source handles objects, and must not meet what a store has made of them. So it is the method that
 * is marked, not the source: one that is overridden, bound or replaced gets options alone, and its items are prepared afterwards.
 */
import type { List, ListOptions, ListWatcher } from './list-watcher.ts';

/** Called with each object as soon as it has come; the result takes its place. */
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

/** Lists, with every item prepared: as it comes, if the source can. */
export async function preparedList<T>(
  source: ListWatcher<T>,
  options: ListOptions,
  prepare: Prepare<T> | undefined,
): Promise<List<T>> {
  if (prepare && METHODS.has(source.list)) return (source as PreparingSource<T>).list(options, prepare);
  return prepareItems(await source.list(options), prepare);
}

/** The same list, with every item prepared. */
export function prepareItems<T>(list: List<T>, prepare: Prepare<T> | undefined): List<T> {
  // Of its members, `bytes` need not be enumerable.
  return prepare ? { ...list, bytes: list.bytes, items: list.items.map((item) => prepare(item)) } : list;
}
