/**
 * The entry point `watchmux/cache`: a live copy of a collection, from Kubernetes or your own. Runs in browsers and Node.
 *
 *     ListWatcher ---> Reflector ---> Informer: Store and Indexer, handlers, watches
 *                          '--------> queue of deltas
 */

export { LabelSelector, parseLabelSelector } from '../selectors/label-selector.ts';
export { isWatchError, WatchError, type WatchErrorCode } from '../watch/errors.ts';
export { INITIAL_EVENTS_END, isInitialEventsEnd, type ObjectEvent, type Status } from '../watch/event.ts';
export type { Watch } from '../watch/watch.ts';
export { createListWatcher } from './http/http-list-watcher.ts';
export type { ListWatcherOptions } from './http/means.ts';
export { InformerFactory, type InformerFactoryOptions, type InformerSource } from './informer/factory.ts';
export { fromHub, type HubConnectOptions } from './informer/from-hub.ts';
export type { Handler, HandlerOptions, HandlerOverflow, HandlerRegistration } from './informer/handler.ts';
export { Informer } from './informer/informer.ts';
export { type Listed, Lister, type ListerOptions, type NamespaceLister } from './informer/lister.ts';
export type {
  HandlerFailure,
  InformerFailure,
  InformerOptions,
  InformerState,
  InformerStore,
  InformerWatchOptions,
  ObjectFailure,
  StopOptions,
} from './informer/options.ts';
export { type ChangeEvent, type UntilWithSyncOptions, untilWithSync } from './informer/until-with-sync.ts';
export type { AtLeastOptions } from './informer/versions.ts';
export type {
  List,
  ListOptions,
  ListWatcher,
  ListWatchOptions,
  ObjectLookup,
  ReflectorStore,
  ResourceVersionMatch,
} from './list-watcher.ts';
export { type KubernetesObject, keyOf, type ObjectMeta, splitKey } from './object.ts';
export { type ListAllOptions, listAll, type WholeList } from './pager.ts';
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
} from './queues/delta.ts';
export { isDeletedFinalStateUnknown } from './queues/delta.ts';
export { DeltaFifo, type DeltaFifoOptions } from './queues/delta-fifo.ts';
export type { DeltaQueueOptions, ProcessDeltas } from './queues/delta-queue.ts';
export { RealFifo, type RealFifoOptions } from './queues/real-fifo.ts';
export type {
  ReflectorFailure,
  ReflectorFailureKind,
  ReflectorOptions,
  ReflectorPhase,
  ReflectorState,
  RetryOptions,
} from './reflector/options.ts';
export { Reflector } from './reflector/reflector.ts';
export { RetryWatcher, type RetryWatcherOptions } from './reflector/retry-watcher.ts';
export { type UntilCondition, type UntilOptions, type UntilSource, until } from './reflector/until.ts';
export type {
  DeleteCollectionOptions,
  DeleteOptions,
  FieldValidation,
  GetOptions,
  ObjectOptions,
  PatchOptions,
  PatchType,
  ResourceClient,
  ResourceType,
  Scale,
  SubresourceClient,
  SubresourceOf,
  WriteOptions,
} from './resource-client.ts';
export { Indexer, type IndexerOptions, type Indexers } from './store/indexer.ts';
export type { IndexFunction } from './store/object-index.ts';
export { type FailedChange, Store, type StoreChange, type StoreListOptions, type StoreOptions } from './store/store.ts';
export { compareVersions, type VersionComparator } from './version.ts';
