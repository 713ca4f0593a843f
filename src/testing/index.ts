/** The entry point `watchmux/testing`: tools for testing consumers of watches. Works with any test runner. */

export { checkDrained, checkIsolated, checkSettled } from './check-ends.ts';
export { checkExact } from './check-exact.ts';
export { checkComplete, checkEager, checkOrdered, checkUnique } from './check-order.ts';
export { checkBounded, checkCounted } from './check-queue.ts';
export { checkSerial, type QueueHistory, type QueueStep } from './check-serial.ts';
export {
  type Connection,
  checkResumable,
  checkTransitional,
  type ResumeHistory,
  type TransitionHistory,
} from './check-streams.ts';
export { CHECKERS, type Checker, checkHistory } from './checkers.ts';
export { WATCH_CONTRACT } from './contract.ts';
export type { ContractCase, ContractTrait, WatchSubject } from './contract-case.ts';
export { FakeClock } from './fake-clock.ts';
export { FakeListWatcher, type FakeListWatcherOptions, type FakeRequest } from './fake-list-watcher.ts';
export {
  FakeWatcher,
  type FakeWatcherOptions,
  type MockFunctions,
  MockWatcher,
  type ObjectOfType,
  RaceFreeFakeWatcher,
} from './fakes.ts';
export { GUARANTEES, type GuaranteeName, type Violation } from './guarantees.ts';
export type { History, Step, WatcherOptions } from './history.ts';
export { HistoryRecorder, type HistoryRecorderOptions, type RecordedWatchOptions } from './history-recorder.ts';
export {
  LIST_WATCHER_CONTRACT,
  type ListWatcherCase,
  type ListWatcherSubject,
  type ListWatcherTrait,
} from './list-watcher-contract.ts';
