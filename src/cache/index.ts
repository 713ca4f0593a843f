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
export type { ListWatcherOptions } from './http/exchange.ts';
export { createListWatcher } from './http/http-list-watcher.ts';
export { InformerFactory, type InformerFactoryOptions, type InformerSource } from './informer/factory.ts';
export { fromHub, type HubConnectOptions } from './informer/from-hub.ts';
export { Informer } from './informer/informer.ts';
export type {
  Handler,
  HandlerFailure,
  HandlerOptions,
  HandlerOverflow,
  HandlerRegistration,
  InformerFailure,
  InformerOptions,
  InformerState,
  InformerStore,
  InformerWatchOptions,
  ObjectFailure,
  RefreshOptions,
  StopOptions,
} from './informer/informer-options.ts';
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
export { DeltaFifo, type DeltaFifoOptions, RealFifo, type RealFifoOptions } from './queues/delta-fifo.ts';
export type { DeltaQueueOptions, ProcessDeltas } from './queues/delta-queue.ts';
export { Reflector } from './reflector/reflector.ts';
export type {
  ReflectorFailure,
  ReflectorFailureKind,
  ReflectorOptions,
  ReflectorPhase,
  ReflectorState,
  RetryOptions,
} from './reflector/reflector-options.ts';
export { RetryWatcher, type RetryWatcherOptions } from './reflector/retry-watcher.ts';
export type {
  DeleteCollectionOptions,
  DeleteOptions,
  FieldValidation,
  GetOptions,
  GroupVersionKind,
  KindOptions,
  ObjectOptions,
  PatchOptions,
  PatchType,
  ResourceClient,
  ResourceSource,
  ResourceType,
  Scale,
  SubresourceClient,
  SubresourceOf,
  WriteOptions,
} from './resource-client.ts';
export {
  Indexer,
  type IndexerOptions,
  type Indexers,
  type IndexFunction,
  type Listed,
  Lister,
  type ListerOptions,
  type NamespaceLister,
} from './store/indexer.ts';
export {
  type BookmarkDelta,
  type DeletedDelta,
  type DeletedFinalStateUnknown,
  type Delta,
  type FailedChange,
  isDeletedFinalStateUnknown,
  type KnownObjects,
  type RealDelta,
  type ReplacedAllDelta,
  type StateDelta,
  Store,
  type StoreChange,
  type StoreListOptions,
  type StoreOptions,
  type SyncAllDelta,
} from './store/store.ts';
export {
  type ChangeEvent,
  type UntilCondition,
  type UntilOptions,
  type UntilSource,
  type UntilWithSyncOptions,
  until,
  untilWithSync,
} from './until.ts';
export { type AtLeastOptions, compareVersions, type VersionComparator } from './versions.ts';
