/** The entry point `watchmux/testing`: tools for testing consumers of watches. Works with any test runner. */

export {
  CACHE_CHECKERS,
  type CacheChecker,
  checkCacheHistory,
  checkConsistent,
  checkConvergent,
  checkFresh,
  checkMonotonic,
  checkSynced,
} from './checkers/cache/cache-checkers.ts';
export type {
  CacheHistory,
  CacheState,
  CacheStep,
  HandlerStep,
  RequestStep,
  SourceStep,
  StoreStep,
} from './checkers/cache/cache-history.ts';
export { checkFolded } from './checkers/cache/check-folded.ts';
export { checkTold } from './checkers/cache/check-told.ts';
export { checkExact } from './checkers/check-exact.ts';
export { checkFair, type WorkHistory, type WorkStep } from './checkers/check-fair.ts';
export { checkLinearizable, type StorageHistory, type StorageRequest } from './checkers/check-linearizable.ts';
export { checkOwned, type OwnedHistory, type OwnedStep } from './checkers/check-owned.ts';
export { checkSerial, type QueueHistory, type QueueStep } from './checkers/check-serial.ts';
export {
  type Connection,
  checkResumable,
  checkTransitional,
  type ResumeHistory,
  type TransitionHistory,
} from './checkers/check-streams.ts';
export {
  CHECKERS,
  type Checker,
  checkBounded,
  checkComplete,
  checkCounted,
  checkDrained,
  checkEager,
  checkHistory,
  checkIsolated,
  checkOrdered,
  checkSettled,
  checkUnique,
} from './checkers/checkers.ts';
export type { History, Step, WatcherOptions } from './checkers/history.ts';
export { type CacheGuaranteeName, GUARANTEES, type GuaranteeName, type Violation } from './checkers/history.ts';
export { BACKEND_CONTRACT, type BackendCase, type BackendSubject, type BackendTrait } from './contracts/backend-contract.ts';
export type { ContractCase, ContractTrait, WatchSubject } from './contracts/contract.ts';
export { WATCH_CONTRACT } from './contracts/contract.ts';
export { LIST_WATCHER_CONTRACT } from './contracts/list-watcher-contract.ts';
export type { ListWatcherCase, ListWatcherSubject, ListWatcherTrait } from './contracts/list-watcher-streams.ts';
export type { StorageCase, StorageSubject, StorageTrait, StoredThing } from './contracts/storage-case.ts';
export { STORAGE_CONTRACT } from './contracts/storage-contract.ts';
export { FakeClock } from './fakes/fake-clock.ts';
export type { FakeRequest } from './fakes/fake-faults.ts';
export { FakeListWatcher, type FakeListWatcherOptions } from './fakes/fake-list-watcher.ts';
export { FakeSource } from './fakes/fake-source.ts';
export {
  FakeWatcher,
  type FakeWatcherOptions,
  type MockFunctions,
  MockWatcher,
  type ObjectOfType,
  RaceFreeFakeWatcher,
} from './fakes/fakes.ts';
export {
  CacheRecorder,
  type CacheRecorderOptions,
  type ChangeableSource,
  type RecordableCache,
  type RecordableRegistration,
  type RecordedHandler,
} from './recorder/cache-recorder.ts';
export { HistoryRecorder, type HistoryRecorderOptions, type RecordedWatchOptions } from './recorder/history-recorder.ts';
