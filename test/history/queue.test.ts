import { describe, expect, it } from 'vitest';
import { checkExact } from '../../src/testing/checkers/check-exact.ts';
import { type Checker, checkBounded, checkCounted } from '../../src/testing/checkers/checkers.ts';
import type { History } from '../../src/testing/checkers/history.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { accept, ask, counts, cut, end, ev, gap, gets, history, read, WORDED, watch } from './build.ts';

const closed = { step: 'closed' } as const;
const stop = { step: 'stop', watcher: 'w' } as const;
const even = (event: WatchEvent): boolean => Number((event.object as { name: string }).name.slice(1)) % 2 === 0;
type Case = [string, Checker, History<WatchEvent>];

const ADDED = ev('a1', 'ADDED');
const GONE = ev('a3', 'DELETED');

describe('histories that pass', () => {
  const cases: Case[] = [
    [
      'Exact: drop-newest keeps the first',
      checkExact,
      history(watch('w', 'drop-newest', 2), accept('a', 'b', 'c'), read('w', 'a', 'b'), accept('d'), read('w', 'd')),
    ],
    [
      'Exact: drop-oldest keeps the last',
      checkExact,
      history(watch('w', 'drop-oldest', 2), accept('a', 'b', 'c'), read('w', 'b', 'c')),
    ],
    [
      'Exact: a read that waits is room',
      checkExact,
      history(watch('w', 'drop-newest', 0), ask('w', 801), accept('a', 'b'), gets('w', 801, 'a'), closed, end('w')),
    ],
    [
      'Exact: disconnect',
      checkExact,
      history(watch('w', 'disconnect', 1), accept('a', 'b', 'c'), read('w', 'a', cut(2)), end('w')),
    ],
    [
      'Exact: disconnect, cut by what was on its way as the watch began',
      checkExact,
      history(
        [
          { step: 'publish', event: ev('a') },
          { step: 'publish', event: ev('b') },
        ],
        watch('w', 'disconnect', 1),
        accept('a', 'b'),
        read('w', 'a'),
        accept('c'),
        read('w', cut(2)),
        end('w'),
      ),
    ],
    [
      'Exact: published from inside another, and got by nobody yet',
      checkExact,
      history(
        watch('v', 'wait', 0),
        watch('w', 'drop-newest', 9),
        [
          { step: 'publish', event: ev('a') },
          { step: 'publish', event: ev('b') },
        ],
        accept('b', 'a'),
        read('w', 'a'),
      ),
    ],
    [
      'Exact: net change',
      checkExact,
      history(watch('w', 'coalesce', 9), accept(ADDED, ev('a2')), read('w', { type: 'ADDED', object: ev('a2').object })),
    ],
    ['Exact: came and went', checkExact, history(watch('w', 'coalesce', 9), accept(ADDED, GONE), closed, end('w'))],
    [
      'Counted: delivered, dropped, queued',
      checkCounted,
      history(watch('w', 'drop-newest', 2), accept('a', 'b', 'c'), read('w', 'a'), counts('w', 1, 1)),
    ],
    [
      'Counted: before it is read, and after',
      checkCounted,
      history(watch('w', 'wait', 9), accept('a'), counts('w', 1, 0), accept('b'), read('w', 'a'), counts('w', 1, 0)),
    ],
    [
      'Counted: after the filter',
      checkCounted,
      history(watch('w', 'wait', 9, { filter: even }), accept('a1', 'a2', 'a4'), read('w', 'a2'), counts('w', 1, 0)),
    ],
    [
      'Counted: a gap before its event',
      checkCounted,
      history(
        watch('w', 'drop-newest', 1),
        accept('a', 'b', 'c'),
        read('w', 'a'),
        accept('d'),
        ask('w', 802),
        gap('w', 2),
        gets('w', 802, 'd'),
      ),
    ],
    [
      'Counted: cut with its number',
      checkCounted,
      history(watch('w', 'disconnect', 1), accept('a', 'b', 'c'), read('w', 'a', cut(2)), counts('w', 0, 2)),
    ],
    [
      'Bounded: full',
      checkBounded,
      history(watch('w', 'drop-newest', 2), accept('a', 'b'), counts('w', 2, 0), read('w', 'a', 'b')),
    ],
  ];
  it.each(cases)('%s', (_, check, steps) => {
    expect(check(steps)?.message).toBeUndefined();
  });
});

describe('histories that must fail', () => {
  const cases: Case[] = [
    [
      'Exact: lost with room for one',
      checkExact,
      history(watch('w', 'drop-newest', 2), accept('a', 'b', 'c'), read('w', 'a', 'c')),
    ],
    ['Exact: one kept too many', checkExact, history(watch('w', 'drop-newest', 1), accept('a', 'b'), read('w', 'a', 'b'))],
    [
      'Exact: the last is missing at the end',
      checkExact,
      history(watch('w', 'drop-newest', 2), accept('a', 'b'), closed, read('w', 'a'), end('w')),
    ],
    [
      'Exact: drop-oldest drops the newest',
      checkExact,
      history(watch('w', 'drop-oldest', 1), accept('a', 'b'), read('w', 'a'), accept('c'), read('w', 'c')),
    ],
    [
      'Exact: drop-oldest drops one too many',
      checkExact,
      history(watch('w', 'drop-oldest', 2), accept('a', 'b', 'c'), read('w', 'c')),
    ],
    [
      'Exact: a read that waited is passed over',
      checkExact,
      history(watch('w', 'drop-newest', 0), ask('w', 811), accept('a', 'b'), gets('w', 811, 'b')),
    ],
    ['Exact: an event after stop', checkExact, history(watch('w', 'drop-newest', 9), stop, accept('a'), read('w', 'a'))],
    [
      'Exact: what the filter rejects',
      checkExact,
      history(watch('w', 'wait', 9, { filter: even }), accept('a1'), read('w', 'a1')),
    ],
    [
      'Exact: on after a loss with disconnect',
      checkExact,
      history(watch('w', 'disconnect', 1), accept('a', 'b'), read('w', 'a'), accept('c'), read('w', 'c')),
    ],
    [
      'Exact: cut without an ERROR',
      checkExact,
      history(watch('w', 'disconnect', 1), accept('a', 'b'), closed, read('w', 'a'), end('w')),
    ],
    [
      'Exact: an event after the cut',
      checkExact,
      history(watch('w', 'disconnect', 1), accept('a', 'b'), read('w', 'a', cut(1)), accept('c'), read('w', 'c')),
    ],
    ['Exact: MODIFIED of something new', checkExact, history(watch('w', 'coalesce', 9), accept(ADDED, 'a2'), read('w', 'a2'))],
    ['Exact: a stale state', checkExact, history(watch('w', 'coalesce', 9), accept('a1', 'a2'), read('w', 'a1'))],
    ['Exact: what came and went', checkExact, history(watch('w', 'coalesce', 9), accept(ADDED, GONE), read('w', GONE))],
    [
      'Exact: a change never told',
      checkExact,
      history(watch('w', 'coalesce', 9), accept('a1', 'b1'), closed, read('w', 'a1'), end('w')),
    ],
    [
      'Exact: cut with room for the keys',
      checkExact,
      history(watch('w', 'coalesce', 2), accept('a1', 'a2', 'b1'), read('w', cut(3)), end('w')),
    ],
    [
      'Counted: one too few',
      checkCounted,
      history(watch('w', 'drop-newest', 2), accept('a', 'b', 'c'), read('w', 'a'), counts('w', 1, 0)),
    ],
    [
      'Counted: what is read later, and was not queued',
      checkCounted,
      history(watch('w', 'wait', 9), accept('a'), counts('w', 0, 0), read('w', 'a')),
    ],
    [
      'Counted: what was not there yet',
      checkCounted,
      history(watch('w', 'wait', 9), accept('a'), counts('w', 2, 0), accept('b')),
    ],
    ['Exact: lost by wait', checkExact, history(watch('w', 'wait', 1), accept('a', 'b', 'c'), read('w', 'a', 'c'))],
    [
      'Counted: one too many',
      checkCounted,
      history(watch('w', 'drop-newest', 2), accept('a', 'b', 'c'), read('w', 'a'), counts('w', 2, 1)),
    ],
    [
      'Counted: what the filter rejects',
      checkCounted,
      history(watch('w', 'wait', 9, { filter: even }), accept('a1', 'a2'), counts('w', 2, 0)),
    ],
    [
      'Counted: a gap of one too few',
      checkCounted,
      history(
        watch('w', 'drop-newest', 1),
        accept('a', 'b', 'c'),
        read('w', 'a'),
        accept('d'),
        ask('w', 812),
        gap('w', 1),
        gets('w', 812, 'd'),
      ),
    ],
    [
      'Counted: a gap of one too many',
      checkCounted,
      history(
        watch('w', 'drop-newest', 1),
        accept('a', 'b'),
        read('w', 'a'),
        accept('d'),
        ask('w', 813),
        gap('w', 2),
        gets('w', 813, 'd'),
      ),
    ],
    [
      'Counted: a gap told late',
      checkCounted,
      history(watch('w', 'drop-newest', 1), accept('a', 'b'), read('w', 'a'), accept('d'), read('w', 'd'), gap('w', 1)),
    ],
    [
      'Counted: a gap told early',
      checkCounted,
      history(watch('w', 'drop-newest', 1), accept('a', 'b'), gap('w', 1), read('w', 'a'), accept('d'), read('w', 'd')),
    ],
    [
      'Counted: a gap never told',
      checkCounted,
      history(watch('w', 'drop-newest', 1), accept('a', 'b'), read('w', 'a'), accept('d'), read('w', 'd')),
    ],
    [
      'Counted: a gap that is none',
      checkCounted,
      history(watch('w', 'wait', 9), accept('a'), ask('w', 814), gap('w', 1), gets('w', 814, 'a')),
    ],
    [
      'Counted: cut with one too few',
      checkCounted,
      history(watch('w', 'disconnect', 1), accept('a', 'b', 'c'), read('w', 'a', cut(1))),
    ],
    [
      'Counted: cut with one too many',
      checkCounted,
      history(watch('w', 'disconnect', 1), accept('a', 'b', 'c'), read('w', 'a', cut(3))),
    ],
    [
      'Counted: cut by fewer keys than it may hold',
      checkCounted,
      history(watch('w', 'coalesce', 2), accept('a', 'b', 'c'), read('w', cut(2))),
    ],
    [
      'Bounded: a queue of one too many',
      checkBounded,
      history(watch('w', 'drop-oldest', 2), accept('a', 'b', 'c'), counts('w', 3, 0)),
    ],
    ['Bounded: held though full', checkBounded, history(watch('w', 'drop-newest', 1), accept('a', 'b'), read('w', 'a', 'b'))],
    [
      'Bounded: accepted though full',
      checkBounded,
      history(watch('w', 'wait', 1), accept('a', 'b'), read('w', 'a'), read('w', 'b')),
    ],
    ['Bounded: held without a queue', checkBounded, history(watch('w', 'drop-newest', 0), accept('a'), read('w', 'a'))],
    ['Bounded: more keys than capacity', checkBounded, history(watch('w', 'coalesce', 1), accept('a', 'b'), counts('w', 2, 0))],
  ];
  it.each(cases)('%s', (title, check, steps) => {
    const violation = check(steps);
    expect(violation?.message).toMatch(WORDED);
    expect(violation).toMatchObject({ guarantee: title.split(':')[0], watcher: 'w' });
  });
});
