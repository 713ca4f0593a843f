/**
 * The entry point `watchmux/react`: the state that a source's events add up to, in components. Needs React 18 or 19.
 *
 *     const { items, ready } = useCollection<Order>('/watch', { sort: (a, b) => a.total - b.total });
 *     const { status } = useConnection('/watch');
 *
 * - **Shared**: components that use the same source with the same connection options share one connection. It is closed a
 *   moment after the last of them has left, so neither Strict Mode nor a change of the page reconnects.
 * - **Whole**: after a restart of the server, the old state stays until the new one is complete.
 * - **Quiet**: a component renders when what it shows has changed, and at most once per `flushIntervalMs`. Objects that have not
 *   changed keep their identity, so rows with `memo` do not render.
 * - **Loud**: errors of your functions are thrown where the component renders, for an error boundary.
 *
 * On a server, components render the initial state, and nothing connects.
 */
import { useMemo, useRef, useSyncExternalStore } from 'react';
import type {
  Collection,
  CollectionOptions,
  CollectionSource,
  ConnectionState,
  EventStore,
  Folded,
  Items,
  SharedOptions,
  Source,
  Store,
  StoreOptions,
  ViewOptions,
} from '../bridge/client.ts';
import { toCollection, toStore } from '../bridge/client.ts';
import type { WatchEvent } from '../watch/event.ts';

export type { ConnectionState, ConnectionStatus } from '../bridge/client.ts';

/**
 * Folds the events of a source into a state; see `toStore`. The source is a URL, a function, an informer, or a store created
 * outside with `toStore`.
 *
 * Only a different source, or different connection options, start over: `initial` and `reduce` are those of the first render.
 * Functions are the same only if they are the same object, so define functions that are a source or a connection option outside
 * of components: 50 new ones in as many renders are an error.
 *
 * @throws The error of `reduce`.
 */
export function useWatch<S>(store: EventStore<S>): Folded<S>;
export function useWatch<E extends WatchEvent, S>(source: Source<E>, options: StoreOptions<E, S>): Folded<S>;
export function useWatch<E extends WatchEvent, S>(source: Source<E> | EventStore<S>, options?: StoreOptions<E, S>): Folded<S> {
  const made = isStore<EventStore<S>>(source) ? source : toStore(source, options as StoreOptions<E, S>);
  return useSnapshot(useMade(made));
}

/**
 * The objects of a source that `selector` lets through, in order; see `toCollection`. The source is a URL, a function, an
 * informer, or a collection created outside with `toCollection`, of which this is another view.
 *
 * `selector`, `sort` and `limit` may change at any time. As long as they are the same functions, only what has changed is compared;
 * otherwise, the view is rebuilt when the component renders. `key` is that of the first render.
 *
 * @throws The error of `key`, `selector` or `sort`.
 */
export function useCollection<T>(collection: Collection<T>, options?: ViewOptions<T>): Items<T>;
export function useCollection<T>(source: CollectionSource<T>, options?: CollectionOptions<T>): Items<T>;
export function useCollection<T>(source: CollectionSource<T> | Collection<T>, options: CollectionOptions<T> = {}): Items<T> {
  const { selector, sort, limit, ...others } = options;
  const all = useMade(isStore<Collection<T>>(source) ? source : toCollection<T>(source, others));
  const isWhole = !selector && !sort && limit === undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `isWhole` depends on the other three
  const shown = useMemo(() => (isWhole ? all : all.view({ selector, sort, limit })), [all, selector, sort, limit]);
  return useSnapshot(shown);
}

/** A store or a collection. */
type Connected = Pick<EventStore<unknown>, 'connection' | 'key'> & { readonly getSnapshot: () => unknown };

/**
 * The state of a connection, for people: of the one that other components share for this source with the same connection
 * options, or else of its own. Renders only when that changes.
 */
export function useConnection(source: Source<WatchEvent> | Connected, options?: SharedOptions<WatchEvent>): ConnectionState {
  const { connection } = useMade(isStore<Connected>(source) ? source : toStore(source, options));
  return useSyncExternalStore(connection.subscribe, connection.getSnapshot, connection.getServerSnapshot);
}

function isStore<Made>(source: unknown): source is Made {
  return typeof source === 'object' && source !== null && 'getSnapshot' in source;
}

/** How many consecutive renders may each have a new function, with nothing else different. */
const MAX_OTHERS = 50;

/**
 * What a render creates costs nothing until it is subscribed to. The first one stays until the source changes. A new function
 * in each render would connect endlessly, so that is an error.
 */
function useMade<Made extends { readonly key: string }>(made: Made): Made {
  const { current: seen } = useRef({ key: '', shape: '', others: 0 });
  const { key } = made;
  const shape = key.replace(/#\d+/g, '#');
  seen.others = seen.key !== key && seen.shape === shape ? seen.others + 1 : 0;
  Object.assign(seen, { key, shape });
  if (seen.others > MAX_OTHERS)
    throw new TypeError('the source is a new function in each render: define it outside the component');
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another source starts over
  return useMemo(() => made, [made.key]);
}

function useSnapshot<Snapshot extends { readonly error?: unknown }>(store: Store<Snapshot>): Snapshot {
  const snapshot = useSyncExternalStore(store.subscribe, store.getSnapshot, store.getServerSnapshot);
  if ('error' in snapshot) throw snapshot.error;
  return snapshot;
}
