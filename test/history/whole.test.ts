import { describe, expect, it } from 'vitest';
import type { History, Step } from '../../src/testing/checkers/history.ts';
import { toStatus, type WatchEvent } from '../../src/watch/event.ts';
import {
  accept,
  ask,
  counts,
  cut,
  end,
  ev,
  gap,
  gets,
  history,
  oneAhead,
  publish,
  read,
  readAmid,
  verdicts,
  watch,
} from './build.ts';

type One = Step<WatchEvent>;
const shutdown: One = { step: 'shutdown' };
const closed: One = { step: 'closed' };
const gaveUp: One = { step: 'gave-up' };
const stop: One = { step: 'stop', watcher: 'w' };
const stopInFilter: One = { step: 'stop', watcher: 'w', inFilter: true };
const stopped: One = { step: 'stopped', watcher: 'w' };
const asked = (number: number): One => ({ step: 'asked', watcher: 'w', read: number });
const notA = (event: WatchEvent): boolean => event !== ev('a');
const own410: WatchEvent = { type: 'ERROR', object: toStatus({ code: 410, reason: 'Expired', message: 'of its publisher' }) };
const throws = (event: WatchEvent): boolean => {
  if (event === ev('b')) throw new Error('filter');
  return true;
};

/** Whole stories, in which no checker may find anything. */
const stories: Record<string, [string, History<WatchEvent>][]> = {
  'as the watch begins': [
    [
      'an event on its way then is not owed',
      history(publish('a'), watch('w', 'wait', 9), accept('a'), shutdown, closed, end('w')),
    ],
    [
      'an event on its way then may be a gap',
      history(publish('a'), watch('w', 'drop-newest', 0), accept('a'), readAmid('w', [...accept('b'), gap('w', 1)], 'b')),
    ],
    [
      'a watch without a queue loses what comes before its first read',
      history(watch('w', 'drop-newest', 0), accept('a'), readAmid('w', [...accept('b'), gap('w', 1)], 'b')),
    ],
    [
      'an event on its way then may have come before, and so leaves no gap',
      history(publish('a'), watch('w', 'drop-newest', 1), accept('a', 'b'), read('w', 'b')),
    ],
    [
      'a filter would throw at an event on its way then, which came before',
      history(publish('b'), watch('w', 'wait', 9, { filter: throws }), accept('b', 'c'), read('w', 'c'), counts('w', 0, 0)),
    ],
    [
      'a filter throws at an event on its way then, which ends the watch',
      history(publish('b'), watch('w', 'wait', 9, { filter: throws }), accept('b', 'c'), end('w', 'filter'), counts('w', 0, 1)),
    ],
    [
      'a filter that is asked about the prefix aborts the watch',
      history(
        stopInFilter,
        watch('w', 'wait', 9, { prefix: [ev('p')], filter: () => true }),
        accept('a'),
        read('w', 'p'),
        end('w'),
        shutdown,
        closed,
      ),
    ],
  ],
  'while a read waits': [
    ['its event needs no queue', history(watch('w', 'drop-newest', 0), readAmid('w', accept('a'), 'a'))],
    [
      'its event is neither delivered nor queued for a while',
      history(watch('w', 'wait', 9), readAmid('w', [...accept('a'), counts('w', 0, 0)], 'a')),
    ],
    [
      'gaps of later reads are told before an earlier one is seen to settle',
      history(
        watch('w', 'drop-newest', 0),
        [ask('w', 1), ...accept('a', 'b')],
        [ask('w', 2), ...accept('c', 'd')],
        [ask('w', 3), gap('w', 1), asked(3), ...accept('e'), gap('w', 1)],
        [gets('w', 1, 'a'), gets('w', 2, 'c'), gets('w', 3, 'e')],
      ),
    ],
    [
      'drop-oldest pushes out what its batch has not taken yet',
      history(watch('w', 'drop-oldest', 1), ask('w', 4, 'batch'), accept('a', 'b', 'c'), gap('w', 1), gets('w', 4, 'a', 'c')),
    ],
  ],
  'user code inside a read': [
    [
      'a filter publishes during tryNext',
      history(
        watch('w', 'drop-newest', 1, { filter: notA }),
        accept('a'),
        [ask('w', 1, 'tryNext'), ...accept('b', 'c'), gets('w', 1, 'b')],
        accept('d'),
        [ask('w', 2), gap('w', 1), gets('w', 2, 'd')],
      ),
    ],
    [
      'a filter publishes during next',
      history(
        watch('w', 'drop-newest', 1, { filter: notA }),
        accept('a'),
        [ask('w', 1), ...accept('b', 'c'), asked(1), gets('w', 1, 'b')],
        accept('d'),
        [ask('w', 2), gap('w', 1), gets('w', 2, 'd')],
      ),
    ],
    [
      'an onGap publishes, and so widens the gap',
      history(watch('w', 'drop-oldest', 1), accept('a', 'b'), [
        ask('w', 1),
        gap('w', 1),
        ...accept('c'),
        gap('w', 1),
        asked(1),
        gets('w', 1, 'c'),
      ]),
    ],
    [
      'a filter stops its watch: what it has not seen is not lost',
      history(watch('w', 'wait', 9, { filter: () => true }), accept('a', 'b'), read('w', 'a'), ask('w', 999), stopInFilter, [
        { step: 'end', watcher: 'w', read: 999 },
      ]),
    ],
    [
      'a filter throws, which only its end tells',
      history(watch('w', 'wait', 9, { filter: throws }), accept('a', 'b'), read('w', 'a'), end('w', 'filter')),
    ],
  ],
  'while a stop runs user code': [
    [
      'an event that it publishes may be delivered',
      history(watch('w', 'wait', 9), stop, publish('a'), accept('a'), stopped, read('w', 'a'), end('w')),
    ],
    [
      'or not, even if a later one is',
      history(watch('w', 'wait', 9), stop, accept('a', 'b'), stopped, read('w', 'b'), end('w'), counts('w', 0, 0)),
    ],
    [
      'a filter returns its watch: what it has not seen is neither queued nor lost',
      history(
        watch('w', 'wait', 9, { filter: () => true }),
        accept('a', 'b'),
        read('w', 'a'),
        [ask('w', 997), { step: 'return', watcher: 'w', inFilter: true }, { step: 'end', watcher: 'w', read: 997 }],
        counts('w', 0, 0),
      ),
    ],
    [
      'a filter stops a watch that folds: what it has not seen is no change',
      history(
        watch('w', 'coalesce', 9, { filter: () => true }),
        accept('a1', 'b1'),
        read('w', 'a1'),
        ask('w', 998),
        stopInFilter,
        [{ step: 'end', watcher: 'w', read: 998 }],
      ),
    ],
  ],
  'at the end': [
    [
      'a watch that was cut loses what comes before it has read so, though there would be room',
      history(watch('w', 'disconnect', 1), accept('a', 'b'), read('w', 'a'), accept('c'), read('w', cut(2)), end('w')),
    ],
    [
      'one of two watchers holds up a publisher',
      history(watch('v', 'drop-newest', 9), watch('w', 'wait', 0), publish('a'), [
        { step: 'refused', event: ev('a'), code: 'OVERLOADED' },
      ]),
    ],
    [
      'what was not distributed when the shutdown was given up is lost',
      oneAhead(watch('w', 'wait', 1), accept('a', 'b'), shutdown, gaveUp, read('w', 'a'), end('w')),
    ],
    [
      'the same, with a second call that resolves',
      oneAhead(watch('w', 'wait', 1), accept('a', 'b'), shutdown, gaveUp, closed, read('w', 'a'), end('w')),
    ],
    ['nothing was distributed by then', oneAhead(watch('w', 'wait', 0), accept('a'), shutdown, gaveUp, end('w'))],
    [
      'one of two watchers holds up the shutdown',
      history(watch('v', 'drop-newest', 9), watch('w', 'wait', 0), publish('a'), shutdown),
    ],
    [
      'a publisher is refused after the shutdown, whatever it is told',
      history(watch('w', 'drop-newest', 1), shutdown, closed, publish('a'), [{ step: 'refused', event: ev('a'), code: 'FULL' }]),
    ],
    [
      'an event that another watcher held up until the stop pushes nothing out',
      oneAhead(
        [watch('v', 'wait', 1), watch('w', 'drop-oldest', 1)],
        [...accept('a', 'b'), stop],
        [...read('v', 'a'), ...accept('c')],
        [...read('w', 'a'), ...end('w')],
      ),
    ],
    [
      'an ERROR of its publisher, with code 410, cuts nothing',
      history(watch('w', 'disconnect', 9), accept(own410, 'a'), read('w', own410), read('w', 'a'), shutdown, closed, end('w')),
    ],
  ],
};

describe.each(Object.entries(stories))('%s', (_, cases) => {
  it.each(cases)('%s', (__, story) => {
    expect(verdicts(story)).toEqual([]);
  });
});
