import { describe, expect, it } from 'vitest';
import { type Checker, checkComplete, checkEager, checkOrdered, checkUnique } from '../../src/testing/checkers/checkers.ts';
import type { History } from '../../src/testing/checkers/history.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { accept, ask, counts, end, ev, gets, history, publish, read, WORDED, watch } from './build.ts';

const closed = { step: 'closed' } as const;
const gaveUp = { step: 'gave-up' } as const;
const shutdown = { step: 'shutdown' } as const;
const stop = { step: 'stop', watcher: 'w' } as const;
const returns = { step: 'return', watcher: 'w' } as const;
/** The call of a read returned, after something else had happened. */
const returned = (number: number) => ({ step: 'asked', watcher: 'w', read: number }) as const;
const failure: WatchEvent = { type: 'ERROR', object: { name: 'failure' } };
type Case = [string, Checker, History<WatchEvent>];

describe('histories that pass', () => {
  const cases: Case[] = [
    ['Ordered: all, in order', checkOrdered, history(watch('w', 'wait', 9), accept('a', 'b'), read('w', 'a'), read('w', 'b'))],
    ['Ordered: with holes', checkOrdered, history(watch('w', 'drop-newest', 9), accept('a', 'b', 'c'), read('w', 'a', 'c'))],
    [
      'Ordered: keys overtake with coalesce',
      checkOrdered,
      history(watch('w', 'coalesce', 9), accept('a1', 'b1', 'a2'), read('w', 'a2', 'b1')),
    ],
    [
      'Ordered: reads count in the order of their calls',
      checkOrdered,
      history(watch('w', 'wait', 9), ask('w', 901), ask('w', 902), accept('a', 'b'), gets('w', 902, 'b'), gets('w', 901, 'a')),
    ],
    [
      'Ordered: a read that an onGap began during the call of another, before it',
      checkOrdered,
      history(
        ...[watch('w', 'wait', 9), ask('w', 901), ask('w', 902), returned(901)],
        ...[accept('a', 'b'), gets('w', 902, 'a'), gets('w', 901, 'b')],
      ),
    ],
    [
      'Ordered: two reads, one within the other, do not tell another watcher what was published first',
      checkOrdered,
      history(
        ...[watch('w', 'wait', 9), watch('v', 'wait', 9), ask('v', 901), ask('v', 902), { ...returned(901), watcher: 'v' }],
        ...[publish('a', 'b'), accept('a', 'b'), gets('v', 902, 'a'), gets('v', 901, 'b'), read('w', 'a'), read('w', 'b')],
      ),
    ],
    [
      'Unique: once to each of two',
      checkUnique,
      history(watch('v', 'wait', 9), watch('w', 'wait', 9), accept('a'), read('v', 'a'), read('w', 'a')),
    ],
    [
      'Complete: to the end',
      checkComplete,
      history(watch('w', 'wait', 9), accept('a', 'b'), closed, read('w', 'a', 'b'), end('w')),
    ],
    [
      'Complete: what return discards',
      checkComplete,
      history(watch('w', 'wait', 9), accept('a', 'b'), read('w', 'a'), returns, end('w'), counts('w', 0, 1)),
    ],
    [
      'Complete: a drop is no business of wait',
      checkComplete,
      history(watch('w', 'drop-newest', 1), accept('a', 'b', 'c'), read('w', 'a', 'c')),
    ],
    [
      'Complete: the tail, as the shutdown was given up',
      checkComplete,
      history(watch('w', 'wait', 9), accept('a', 'b'), shutdown, gaveUp, closed, read('w', 'a'), end('w')),
    ],
    ['Eager: from watch() on', checkEager, history(accept('a'), watch('w', 'wait', 9), accept('b'), read('w', 'b'))],
    [
      'Eager: pushed out before the first read',
      checkEager,
      history(watch('w', 'drop-oldest', 1), accept('a', 'b'), read('w', 'b')),
    ],
    ['Eager: prefix first', checkEager, history(watch('w', 'wait', 9, { prefix: [ev('p')] }), accept('a'), read('w', 'p', 'a'))],
  ];
  it.each(cases)('%s', (_, check, steps) => {
    expect(check(steps)?.message).toBeUndefined();
  });
});

describe('histories that must fail', () => {
  const cases: Case[] = [
    [
      'Ordered: a read that came after the call of another, before it',
      checkOrdered,
      history(
        ...[watch('w', 'wait', 9), ask('w', 901), returned(901), ask('w', 902)],
        ...[accept('a', 'b'), gets('w', 902, 'a'), gets('w', 901, 'b')],
      ),
    ],
    ['Ordered: two swapped', checkOrdered, history(watch('w', 'wait', 9), accept('a', 'b'), read('w', 'b'), read('w', 'a'))],
    [
      'Ordered: two swapped in a batch',
      checkOrdered,
      history(watch('w', 'wait', 9), accept('a', 'b', 'c'), read('w', 'a', 'c', 'b')),
    ],
    [
      'Ordered: prefix behind the stream',
      checkOrdered,
      history(watch('w', 'wait', 9, { prefix: [ev('p')] }), accept('a'), read('w', 'a', 'p')),
    ],
    ['Ordered: an event of nobody', checkOrdered, history(watch('w', 'wait', 9), accept('a'), read('w', 'a', 'ghost'))],
    [
      'Ordered: one key swapped with coalesce',
      checkOrdered,
      history(watch('w', 'coalesce', 9), accept('a1', 'a2'), read('w', 'a2', 'a1')),
    ],
    [
      'Ordered: a key overtakes an ERROR with coalesce',
      checkOrdered,
      history(watch('w', 'coalesce', 9), accept('a1', failure, 'b1'), read('w', 'a1', 'b1', failure)),
    ],
    [
      'Ordered: an ERROR overtakes a key with coalesce',
      checkOrdered,
      history(watch('w', 'coalesce', 9), accept('a1', failure), read('w', failure, 'a1')),
    ],
    [
      'Ordered: a later read is served first',
      checkOrdered,
      history(watch('w', 'wait', 9), ask('w', 911), ask('w', 912), accept('a', 'b'), gets('w', 912, 'a'), gets('w', 911, 'b')),
    ],
    ['Unique: the same again', checkUnique, history(watch('w', 'wait', 9), accept('a', 'b'), read('w', 'a'), read('w', 'a'))],
    ['Unique: twice in a batch', checkUnique, history(watch('w', 'wait', 9), accept('a'), read('w', 'a', 'a'))],
    [
      'Unique: again, much later',
      checkUnique,
      history(watch('w', 'wait', 9), accept('a', 'b', 'c'), read('w', 'a', 'b', 'c', 'a')),
    ],
    ['Complete: one in the middle', checkComplete, history(watch('w', 'wait', 9), accept('a', 'b', 'c'), read('w', 'a', 'c'))],
    ['Complete: the first', checkComplete, history(watch('w', 'wait', 9), accept('a', 'b'), read('w', 'b'))],
    ['Complete: the last', checkComplete, history(watch('w', 'wait', 9), accept('a', 'b'), closed, read('w', 'a'), end('w'))],
    [
      'Complete: what was queued at stop',
      checkComplete,
      history(watch('w', 'wait', 9), accept('a', 'b'), stop, read('w', 'a'), end('w')),
    ],
    ['Complete: a drop that is counted', checkComplete, history(watch('w', 'wait', 1), accept('a', 'b'), counts('w', 1, 1))],
    [
      'Complete: one before another, though the shutdown was given up',
      checkComplete,
      history(watch('w', 'wait', 9), accept('a', 'b'), shutdown, gaveUp, closed, read('w', 'b'), end('w')),
    ],
    ['Eager: pushed out where nothing is', checkEager, history(watch('w', 'drop-newest', 1), accept('a', 'b'), read('w', 'b'))],
    [
      'Eager: pushed out by what came when it was read',
      checkEager,
      history(watch('w', 'drop-oldest', 2), accept('a', 'b'), read('w', 'b'), accept('c'), read('w', 'c')),
    ],
    ['Eager: one from before', checkEager, history(accept('a'), watch('w', 'wait', 9), accept('b'), read('w', 'a', 'b'))],
    ['Eager: the first is lost', checkEager, history(watch('w', 'drop-newest', 2), accept('a', 'b'), read('w', 'b'))],
    ['Eager: pushed out by one too few', checkEager, history(watch('w', 'drop-oldest', 2), accept('a', 'b'), read('w', 'b'))],
    ['Eager: nothing at all', checkEager, history(watch('w', 'disconnect', 2), accept('a'), closed, end('w'))],
  ];
  it.each(cases)('%s', (title, check, steps) => {
    const violation = check(steps);
    expect(violation?.message).toMatch(WORDED);
    expect(violation).toMatchObject({ guarantee: title.split(':')[0], watcher: 'w' });
  });
});
