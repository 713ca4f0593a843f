import { describe, expect, it } from 'vitest';
import { CACHE_CHECKERS } from '../../src/testing/checkers/cache/cache-checkers.ts';
import {
  CHECKERS,
  type Checker,
  checkDrained,
  checkHistory,
  checkIsolated,
  checkSettled,
} from '../../src/testing/checkers/checkers.ts';
import { GUARANTEES, type History, type Step } from '../../src/testing/checkers/history.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { accept, ask, counts, end, ev, history, read, WORDED, watch } from './build.ts';

type One = Step<WatchEvent>;
const shutdown: One = { step: 'shutdown' };
const closed: One = { step: 'closed' };
const stop: One = { step: 'stop', watcher: 'w' };
const threw: One = { step: 'threw', watcher: 'w', error: 'x' };
const left = (timers: number, listeners: number): One => ({ step: 'leftovers', timers, listeners });
const publish = (name: string): One => ({ step: 'publish', event: ev(name) });
const refused = (name: string, code: string): One => ({ step: 'refused', event: ev(name), code });
type Case = [string, Checker, History<WatchEvent>];

describe('histories that pass', () => {
  const cases: Case[] = [
    ['Isolated: fails by its own code', checkIsolated, history(watch('w', 'wait', 9), threw, end('w', 'x'))],
    [
      'Isolated: held up by a wait watcher',
      checkIsolated,
      history(watch('w', 'wait', 0), publish('a'), refused('a', 'OVERLOADED')),
    ],
    [
      'Isolated: refused after shutdown',
      checkIsolated,
      history(watch('w', 'drop-newest', 1), shutdown, closed, publish('a'), refused('a', 'CLOSED')),
    ],
    [
      'Isolated: held up by a wait watcher that left later',
      checkIsolated,
      history(watch('w', 'wait', 0), publish('a'), stop, refused('a', 'OVERLOADED')),
    ],
    [
      'Isolated: refused as a shutdown came in between',
      checkIsolated,
      history(watch('w', 'drop-newest', 1), publish('a'), shutdown, closed, refused('a', 'CLOSED')),
    ],
    [
      'Drained: nobody has looked since the shutdown',
      checkDrained,
      history(watch('w', 'wait', 9), accept('a'), counts('w', 1, 0), accept('b'), shutdown, closed),
    ],
    [
      'Drained: all, then the end',
      checkDrained,
      history(watch('w', 'wait', 9), accept('a'), shutdown, closed, read('w', 'a'), end('w')),
    ],
    [
      'Drained: all, still queued',
      checkDrained,
      history(watch('w', 'wait', 9), accept('a'), shutdown, closed, counts('w', 1, 0)),
    ],
    [
      'Settled: nothing left',
      checkSettled,
      history(watch('w', 'wait', 9), publish('a'), accept('a'), shutdown, closed, read('w', 'a'), end('w'), left(0, 0)),
    ],
    ['Settled: a read may pend before the end', checkSettled, history(watch('w', 'wait', 9), ask('w', 701))],
    ['Settled: held up by a wait watcher', checkSettled, history(watch('w', 'wait', 0), publish('a'), shutdown)],
  ];
  it.each(cases)('%s', (_, check, steps) => {
    expect(check(steps)?.message).toBeUndefined();
  });

  it('none violates any other guarantee', () => {
    for (const [, , steps] of cases) expect(checkHistory(steps)).toEqual([]);
  });
});

describe('histories that must fail', () => {
  const cases: Case[] = [
    [
      'Isolated: an error of someone else',
      checkIsolated,
      history(watch('v', 'wait', 9), watch('w', 'wait', 9), threw, end('v', 'x')),
    ],
    ['Isolated: ends as another one stops', checkIsolated, history(watch('v', 'wait', 9), watch('w', 'wait', 9), stop, end('v'))],
    [
      'Isolated: a publisher hears of a filter',
      checkIsolated,
      history(watch('w', 'wait', 9), publish('a'), refused('a', 'Error: x')),
    ],
    [
      'Isolated: held up by a watcher that drops',
      checkIsolated,
      history(watch('w', 'drop-newest', 0), publish('a'), refused('a', 'FULL')),
    ],
    [
      'Isolated: held up by a wait watcher that is gone',
      checkIsolated,
      history(watch('w', 'wait', 0), stop, publish('a'), refused('a', 'OVERLOADED')),
    ],
    [
      'Isolated: held up by a watcher that drops, before a shutdown',
      checkIsolated,
      history(watch('w', 'drop-newest', 0), publish('a'), shutdown, refused('a', 'FULL')),
    ],
    [
      'Isolated: held up by a wait watcher that came later',
      checkIsolated,
      history(publish('a'), watch('w', 'wait', 0), refused('a', 'OVERLOADED')),
    ],
    [
      'Drained: the last is lost',
      checkDrained,
      history(watch('w', 'wait', 9), accept('a', 'b'), shutdown, closed, read('w', 'a'), end('w')),
    ],
    [
      'Drained: the last is not queued',
      checkDrained,
      history(watch('w', 'wait', 9), accept('a', 'b'), shutdown, closed, counts('w', 1, 0)),
    ],
    ['Drained: accepted after shutdown', checkDrained, history(watch('w', 'wait', 9), shutdown, publish('a'), accept('a'))],
    [
      'Drained: an event after the end',
      checkDrained,
      history(watch('w', 'wait', 9), accept('a'), shutdown, closed, end('w'), read('w', 'a')),
    ],
    ['Settled: a read pends after stop', checkSettled, history(watch('w', 'wait', 9), ask('w', 711), stop)],
    ['Settled: a read pends after shutdown', checkSettled, history(watch('w', 'wait', 9), shutdown, closed, ask('w', 712))],
    ['Settled: the second of two reads pends', checkSettled, history(watch('w', 'wait', 9), ask('w', 713), end('w'))],
    ['Settled: a publish pends', checkSettled, history(watch('w', 'wait', 0), publish('a'), shutdown, closed)],
    ['Settled: a shutdown pends', checkSettled, history(watch('w', 'drop-newest', 0), shutdown)],
    ['Settled: a timer runs', checkSettled, history(watch('w', 'wait', 0), stop, left(1, 0))],
    ['Settled: a listener stays', checkSettled, history(watch('w', 'wait', 0), stop, left(0, 1))],
  ];
  it.each(cases)('%s', (title, check, steps) => {
    expect(check(steps)).toMatchObject({ guarantee: title.split(':')[0], message: expect.stringMatching(WORDED) });
  });
});

describe('the guarantees', () => {
  it('are one sentence each, and all except those of other streams have a checker for histories', () => {
    for (const sentence of Object.values(GUARANTEES)) expect(sentence).toMatch(/^[A-Z`].*\.$/);
    const checked = [
      ...Object.keys(CHECKERS),
      ...Object.keys(CACHE_CHECKERS),
      'Resumable',
      'Transitional',
      'Serial',
      'Linearizable',
      'Fair',
      'Owned',
    ];
    expect(checked.sort()).toEqual(Object.keys(GUARANTEES).sort());
  });

  it('hold in an empty history', () => {
    expect(checkHistory(history())).toEqual([]);
  });
});
