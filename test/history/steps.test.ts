// A step that does not exist, as a test without types may write it: passed over, it would hide what went wrong.
import { expect, test } from 'vitest';
import {
  CHECKERS,
  checkCacheHistory,
  checkConsistent,
  checkFair,
  checkFolded,
  checkHistory,
  checkSerial,
  checkTold,
} from '../../src/testing/index.ts';

type Check = (history: never) => unknown;
const checks: readonly (readonly [string, Check])[] = [
  ['checkHistory', checkHistory],
  ...Object.entries(CHECKERS),
  ...Object.entries({ checkCacheHistory, checkConsistent, checkFair, checkFolded, checkSerial, checkTold }),
];

test.each(checks)('%s refuses steps that do not exist', (_name, check) => {
  const run = (steps: unknown) => () => check({ steps } as never);
  expect(run([])).not.toThrow();
  expect(run([{ step: 'ad', key: 'a' }])).toThrow(/^steps\[0\]\.step: expected one of .*, got "ad"$/);
  for (const step of [{ step: 'toString' }, undefined, null, {}, 1]) expect(run([step])).toThrow(/^steps\[0\]\.step: /);
  for (const steps of [undefined, null, {}, 'steps']) expect(run(steps)).toThrow(/^steps: expected an array of steps, got /);
});

test('a policy that does not exist is refused, too', () => {
  const steps = [{ step: 'watch', watcher: 'w', options: { capacity: 1, overflow: 'drop' } }];
  expect(() => checkHistory({ steps } as never)).toThrow(/^steps\[0\]\.options\.overflow: expected one of .*, got "drop"$/);
});
