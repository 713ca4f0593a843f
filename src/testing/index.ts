/** Door `watchmux/testing`: what tests of watch consumers need, free of any test runner. */

export { FakeClock } from './fake-clock.ts';
export {
  FakeWatcher,
  type FakeWatcherOptions,
  type MockFunctions,
  MockWatcher,
  type ObjectOfType,
  RaceFreeFakeWatcher,
} from './fakes.ts';
