import { describe, expect, it } from 'vitest';
import type { History, Step } from '../../src/testing/checkers/history.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { accept, counts, cut, end, gap, history, oneAhead, publish, read, readAmid, verdicts, watch } from './build.ts';

type One = Step<WatchEvent>;
const shutdown: One = { step: 'shutdown' };
const closed: One = { step: 'closed' };
const stop: One = { step: 'stop', watcher: 'w' };

/** Broken stories, and all that the checkers say of each: what is another guarantee's business, a checker leaves to it. */
const stories: Record<string, [string, History<WatchEvent>, string[]][]> = {
  disconnect: [
    [
      'cuts though there is room',
      history(watch('w', 'disconnect', 2), accept('a', 'b', 'c'), read('w', 'a', cut(2)), end('w')),
      ['Exact for w at b: expected it kept, as there was room for 2, seen it lost behind 1'],
    ],
    [
      'cuts though there is room, and got what was on its way as it began',
      history(publish('a'), watch('w', 'disconnect', 2), accept('a', 'b', 'c'), read('w', 'a', cut(2)), end('w')),
      ['Exact for w at b: expected it kept, as there was room for 2, seen it lost behind 1'],
    ],
    [
      'cuts though there is room, and another is on its way as it stops',
      history(
        watch('w', 'disconnect', 2),
        accept('a', 'b', 'c'),
        publish('d'),
        stop,
        accept('d'),
        read('w', 'a', cut(2)),
        end('w'),
      ),
      ['Exact for w at b: expected it kept, as there was room for 2, seen it lost behind 1'],
    ],
    [
      'goes on after a loss',
      history(watch('w', 'disconnect', 1), accept('a', 'b'), read('w', 'a'), accept('c'), readAmid('w', [gap('w', 1)], 'c')),
      ['Exact for w at c: expected nothing after a loss but one ERROR event, seen this event'],
    ],
    [
      'cuts without a loss, and goes on',
      history(watch('w', 'disconnect', 2), accept('a'), read('w', 'a'), read('w', cut(1)), accept('b'), read('w', 'b')),
      [
        'Exact for w at b: expected nothing after a loss but one ERROR event, seen this event',
        'Counted for w at ERROR: expected no cut, as nothing was lost, seen 1',
      ],
    ],
    [
      'ends without an ERROR',
      history(watch('w', 'disconnect', 1), accept('a', 'b'), read('w', 'a'), shutdown, closed, end('w')),
      ['Exact for w at b: expected an ERROR event (410) at its loss, seen the end without one'],
    ],
    [
      'fails by an error of someone else instead',
      history(watch('w', 'disconnect', 1), accept('a', 'b'), read('w', 'a'), end('w', 'x'), end('w')),
      ['Isolated for w: expected it to fail only by its own code, seen an error of someone else'],
    ],
    [
      'counts what came after the cut',
      history(watch('w', 'disconnect', 1), accept('a', 'b'), read('w', 'a', cut(2)), accept('c'), end('w')),
      ['Counted for w at ERROR: expected details.missed of 1, seen 2'],
    ],
    [
      'counts what was not there, on its way or lost',
      history(watch('w', 'disconnect', 1), accept('a', 'b'), publish('c'), read('w', 'a', cut(7)), accept('c'), end('w')),
      ['Counted for w at ERROR: expected details.missed of 1 to 2, seen 7'],
    ],
  ],
  'in the end': [
    [
      'a drop was counted before it happened',
      history(watch('w', 'disconnect', 1), accept('a'), counts('w', 1, 1), accept('b'), read('w', 'a', cut(1))),
      ['Counted for w: expected 1 in all, seen 0 delivered + 1 dropped + 1 queued = 2'],
    ],
    [
      'more was queued than there was, what was on its way included',
      history(publish('a'), watch('w', 'wait', 9), accept('a'), counts('w', 3, 0)),
      ['Counted for w: expected 0 to 1 in all, seen 0 delivered + 0 dropped + 3 queued = 3'],
    ],
    [
      'an event was delivered twice',
      history(watch('w', 'wait', 9), accept('a'), read('w', 'a', 'a')),
      ['Unique for w at a: expected it once, seen it again'],
    ],
    [
      'an event was accepted after a shutdown, with which the history begins',
      history(shutdown, closed, publish('a'), accept('a')),
      ['Drained at a: expected it refused after shutdown, seen it accepted'],
    ],
    [
      'less than all is queued after the shutdown',
      history(watch('w', 'wait', 9), accept('a', 'b'), shutdown, closed, counts('w', 1, 0)),
      [
        'Counted for w: expected 2 in all, seen 0 delivered + 0 dropped + 1 queued = 1',
        'Drained for w: expected all 2 accepted events, seen 0 delivered, 1 queued',
      ],
    ],
    [
      'less than all was delivered after the shutdown',
      history(watch('w', 'wait', 9), accept('a', 'b'), shutdown, closed, read('w', 'a'), end('w')),
      [
        'Complete for w at b: expected it to be delivered, seen it missing',
        'Exact for w at b: expected it kept, by wait, seen it lost',
        'Drained for w: expected all 2 accepted events, seen 1 delivered, 0 queued',
      ],
    ],
    [
      'a wait watcher lost its last event while another one held up the shutdown',
      oneAhead(watch('v', 'wait', 1), watch('w', 'wait', 9), accept('a', 'b'), shutdown, read('w', 'a'), end('w')),
      [
        'Complete for w at b: expected it to be delivered, seen it missing',
        'Exact for w at b: expected it kept, as there was room for 9, seen it lost behind 1',
        'Drained for w: expected all 2 accepted events, seen 1 delivered, 0 queued',
      ],
    ],
    [
      'a watcher that drops lost its last event, though there was room, while another one held up the shutdown',
      oneAhead(watch('v', 'wait', 1), watch('w', 'drop-newest', 9), accept('a', 'b'), shutdown, read('w', 'a'), end('w')),
      ['Exact for w at b: expected it kept, as there was room for 9, seen it lost behind 1'],
    ],
    [
      'drop-oldest lost its only event',
      history(watch('w', 'drop-oldest', 1), accept('a'), shutdown, closed, end('w')),
      [
        'Exact for w at a: expected it lost only to 1 newer ones, seen 0 newer',
        'Eager for w at a: expected it first, seen nothing',
      ],
    ],
    [
      'a watch ended without a shutdown, which is no business of Drained',
      history(watch('w', 'wait', 9), accept('a'), end('w')),
      [
        'Complete for w at a: expected it to be delivered, seen it missing',
        'Exact for w at a: expected it kept, by wait, seen it lost',
        'Isolated for w: expected it to end only by itself or by shutdown, seen its end',
        'Eager for w at a: expected it first, seen nothing',
      ],
    ],
  ],
};

describe.each(Object.entries(stories))('%s', (_, cases) => {
  it.each(cases)('%s', (__, story, expected) => {
    expect(verdicts(story)).toEqual(expected);
  });
});
