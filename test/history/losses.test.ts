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
const stop: One = { step: 'stop', watcher: 'w' };
const stopInFilter: One = { step: 'stop', watcher: 'w', inFilter: true };
const failed500: WatchEvent = { type: 'ERROR', object: toStatus({ code: 500, reason: 'InternalError', message: 'of nobody' }) };

const throws = (event: WatchEvent): boolean => {
  if (event === ev('b')) throw new Error('filter');
  return true;
};

/** Broken stories, and all that the checkers say of each: what is another guarantee's business, a checker leaves to it. */
const stories: Record<string, [string, History<WatchEvent>, string[]][]> = {
  'events that are not owed': [
    [
      'take no room',
      history(watch('w', 'drop-newest', 1), accept('a'), read('w', 'ghost', 'a')),
      ['Ordered for w at ghost: expected an event that was published, seen an event that was never accepted'],
    ],
    [
      'are no reason to lose another',
      history(watch('w', 'drop-newest', 1), accept('a', 'b'), readAmid('w', [gap('w', 1)], 'ghost', 'b')),
      [
        'Ordered for w at ghost: expected an event that was published, seen an event that was never accepted',
        'Exact for w at a: expected it kept, as there was room for 1, seen it lost behind 0',
        'Eager for w at a: expected it first, seen b first',
      ],
    ],
    [
      'are not the same one twice',
      history(watch('w', 'wait', 9), read('w', 'ghost', 'phantom')),
      ['Ordered for w at ghost: expected an event that was published, seen an event that was never accepted'],
    ],
    [
      'may be older than the watch',
      history(accept('a'), watch('w', 'wait', 9), accept('b'), read('w', 'b', 'a')),
      ['Eager for w at a: expected only events from after watch(), seen an event from before watch()'],
    ],
    [
      'may come after the filter threw',
      history(watch('w', 'wait', 9, { filter: throws }), accept('a', 'b', 'c'), read('w', 'a'), read('w', 'c')),
      [
        'Exact for w at c: expected only events that its array would hold, seen an event from after stop, or that the filter rejects',
      ],
    ],
    [
      'may be an ERROR where nothing is cut',
      history(watch('w', 'drop-newest', 9), accept('a'), read('w', 'a', cut(1))),
      ['Ordered for w at ERROR: expected an event that was published, seen an event that was never accepted'],
    ],
    [
      'may be an ERROR that is no cut',
      history(watch('w', 'disconnect', 9), accept('a'), read('w', 'a', failed500)),
      ['Ordered for w at ERROR: expected an event that was published, seen an event that was never accepted'],
    ],
    [
      'are no cut',
      history(watch('w', 'disconnect', 9), accept('a'), read('w', 'a', 'ghost')),
      ['Ordered for w at ghost: expected an event that was published, seen an event that was never accepted'],
    ],
  ],
  'an event is': [
    [
      'lost by the second of two watchers',
      history(watch('v', 'drop-newest', 9), watch('w', 'drop-newest', 9), accept('a', 'b'), read('v', 'a', 'b'), read('w', 'b')),
      [
        'Exact for w at a: expected it kept, as there was room for 9, seen it lost behind 0',
        'Counted for w at b: expected a gap of 1 told before it, seen 0 told by then',
        'Eager for w at a: expected it first, seen b first',
      ],
    ],
    [
      'lost though what was before it had been read',
      history(watch('w', 'drop-newest', 1), accept('a'), read('w', 'a'), accept('b', 'c'), readAmid('w', [gap('w', 1)], 'c')),
      ['Exact for w at b: expected it kept, as there was room for 1, seen it lost behind 0'],
    ],
    [
      'lost though what was before it went to a read that waited',
      history(watch('w', 'drop-newest', 1), readAmid('w', accept('a', 'b'), 'a'), accept('c'), readAmid('w', [gap('w', 1)], 'c')),
      ['Exact for w at b: expected it kept, as there was room for 1, seen it lost behind 0'],
    ],
    [
      'lost though a batch had taken what was before it',
      history(watch('w', 'drop-newest', 1), accept('a'), [ask('w', 1, 'batch'), ...accept('b'), gets('w', 1, 'a')], accept('c'), [
        ask('w', 2),
        gap('w', 1),
        gets('w', 2, 'c'),
      ]),
      ['Exact for w at b: expected it kept, as there was room for 1, seen it lost behind 0'],
    ],
    [
      'lost by wait, as it was full',
      history(watch('w', 'wait', 1), accept('a', 'b'), read('w', 'a'), accept('c'), readAmid('w', [gap('w', 1)], 'c')),
      [
        'Complete for w at b: expected it to be delivered, seen it missing',
        'Exact for w at b: expected it kept, by wait, seen it lost',
      ],
    ],
    [
      'pushed out by what came after the next was read',
      history(watch('w', 'drop-oldest', 2), accept('a', 'b'), readAmid('w', [gap('w', 1)], 'b'), accept('c'), read('w', 'c')),
      [
        'Exact for w at a: expected it lost only to 2 newer ones, seen 1 newer',
        'Eager for w at a: expected it first, seen b first',
      ],
    ],
    [
      'pushed out by what went to the read that waited',
      history(watch('w', 'drop-oldest', 1), publish('a'), readAmid('w', [...accept('a', 'b'), gap('w', 1)], 'b')),
      [
        'Exact for w at a: expected it lost only to 1 newer ones, seen 0 newer',
        'Eager for w at a: expected it first, seen b first',
      ],
    ],
    [
      'lost from the prefix',
      history(watch('w', 'wait', 9, { prefix: [ev('p')] }), accept('a'), readAmid('w', [gap('w', 1)], 'a')),
      [
        'Complete for w at p: expected it to be delivered, seen it missing',
        'Exact for w at p: expected it kept, by wait, seen it lost',
        'Eager for w at p: expected it first, seen a first',
      ],
    ],
    [
      'lost before the filter stopped the watch',
      history(watch('w', 'drop-newest', 9, { filter: () => true }), accept('a', 'b', 'c'), [
        ask('w', 1),
        gets('w', 1, 'a'),
        ask('w', 2),
        stopInFilter,
        gap('w', 1),
        gets('w', 2, 'c'),
        counts('w', 0, 0),
      ]),
      [
        'Exact for w at b: expected it kept, as there was room for 9, seen it lost behind 1',
        'Counted for w: expected 3 in all, seen 2 delivered + 0 dropped + 0 queued = 2',
      ],
    ],
    [
      'kept beyond the capacity, by a read of which only the outcome is known',
      history(watch('w', 'drop-newest', 1), accept('a', 'b'), gets('w', 1, 'a', 'b')),
      [
        'Exact for w at b: expected it lost, as there was no room, seen it kept as number 2 of 1',
        'Bounded for w at b: expected at most 1 in the queue, seen 2',
      ],
    ],
    [
      'kept beyond the capacity, beside a wait watcher',
      oneAhead(watch('v', 'wait', 9), watch('w', 'drop-newest', 1), accept('a', 'b', 'c'), read('w', 'a', 'b')),
      [
        'Exact for w at b: expected it lost, as there was no room, seen it kept as number 2 of 1',
        'Bounded for w at b: expected at most 1 in the queue, seen 2',
      ],
    ],
    [
      'kept beyond the capacity, as the watch stopped',
      oneAhead(watch('w', 'wait', 1), accept('a', 'b'), publish('c'), stop, accept('c'), read('w', 'a', 'b', 'c'), end('w')),
      ['Bounded for w at c: expected at most 2 unread, seen 3'],
    ],
  ],
};

describe.each(Object.entries(stories))('%s', (_, cases) => {
  it.each(cases)('%s', (__, story, expected) => {
    expect(verdicts(story)).toEqual(expected);
  });
});
