/**
 * The entry point `watchmux/cache`: a live copy of a collection, for Kubernetes and for anyone's own. Runs in browsers and Node.
 *
 *     ListWatcher ---> queue of deltas ---> Store, Indexer
 */

export { INITIAL_EVENTS_END, isInitialEventsEnd } from '../watch/event.ts';
export type {
  BookmarkDelta,
  DeletedDelta,
  DeletedFinalStateUnknown,
  Delta,
  KnownObjects,
  RealDelta,
  ReplacedAllDelta,
  StateDelta,
  SyncAllDelta,
} from './delta.ts';
export { isDeletedFinalStateUnknown } from './delta.ts';
export { DeltaFifo, type DeltaFifoOptions } from './delta-fifo.ts';
export type { DeltaQueueOptions, ProcessDeltas } from './delta-queue.ts';
export { createListWatcher, type ListWatcherOptions } from './http-list-watcher.ts';
export { Indexer, type IndexerOptions, type Indexers } from './indexer.ts';
export type {
  List,
  ListOptions,
  ListWatcher,
  ListWatchOptions,
  ReflectorStore,
  ResourceVersionMatch,
} from './list-watcher.ts';
export { type KubernetesObject, keyOf, type ObjectMeta, splitKey } from './object.ts';
export type { IndexFunction } from './object-index.ts';
export { type ListAllOptions, listAll, type WholeList } from './pager.ts';
export { RealFifo, type RealFifoOptions } from './real-fifo.ts';
export { type FailedChange, Store, type StoreChange, type StoreListOptions, type StoreOptions } from './store.ts';
export { compareVersions, type VersionComparator } from './version.ts';
