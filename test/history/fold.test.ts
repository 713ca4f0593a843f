import { describe, expect, it } from 'vitest';
import type { History, Step } from '../../src/testing/checkers/history.ts';
import { toStatus, type WatchEvent } from '../../src/watch/event.ts';
import { accept, ask, counts, cut, end, ev, gets, history, oneAhead, publish, read, verdicts, watch } from './build.ts';

type One = Step<WatchEvent>;
const shutdown: One = { step: 'shutdown' };
const closed: One = { step: 'closed' };
const stop: One = { step: 'stop', watcher: 'w' };
const w = watch('w', 'coalesce', 9);
const added = ev('a1', 'ADDED');
const deleted = ev('a3', 'DELETED');
const moved = ev('a4', 'moved');
const failure: WatchEvent = { type: 'ERROR', object: toStatus({ code: 500, reason: 'InternalError', message: 'of its source' }) };
const nameless: WatchEvent = { type: 'BOOKMARK', object: { metadata: { resourceVersion: '7' } } };
const initialEnd: WatchEvent = {
  type: 'BOOKMARK',
  object: { metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } },
};
const [mark, newer] = [ev('a8', 'BOOKMARK'), ev('a9', 'BOOKMARK')];

/** Two reads, of which the second one was called during the first one. */
const nested = (outer: WatchEvent | string, inner: WatchEvent | string): One[] => [
  ...[ask('w', 901), ask('w', 902), { step: 'asked', watcher: 'w', read: 901 } as const],
  ...[gets('w', 902, inner), gets('w', 901, outer)],
];

/** Whole stories of a `coalesce` watcher, in which no checker may find anything. */
const whole: [string, History<WatchEvent>][] = [
  ['a key has changes that nobody has read yet', history(w, accept('a1', 'b1'), read('w', 'a1'), counts('w', 1, 0))],
  ['a key changes again after it was read', history(w, accept('a1'), read('w', 'a1'), accept('a2'), read('w', 'a2'))],
  ['an object goes after it was read', history(w, accept(added), read('w', added), accept(deleted), read('w', deleted))],
  [
    'an object that was there is deleted and comes back, which is MODIFIED',
    history(w, accept('a2', deleted, added), read('w', { ...added, type: 'MODIFIED' })),
  ],
  [
    'a key came and went before another one was read, so that its next change is the first',
    history(w, accept(added, deleted, 'b1'), read('w', 'b1'), accept('a4'), read('w', 'a4')),
  ],
  [
    'what was on its way as the watch began may have come before',
    history(publish(added), w, accept(added, 'a2'), read('w', 'a2')),
  ],
  [
    'what is on its way as the watch stops may undo a change, even if another one follows',
    history(w, accept(added), publish(deleted, 'a4'), stop, accept(deleted, 'a4'), end('w')),
  ],
  [
    'what another watcher held up until the stop is not owed',
    oneAhead(watch('v', 'wait', 1), w, accept('a1', 'b1'), stop, read('w', 'a1'), end('w')),
  ],
  ['an own type has no other net type', history(w, accept(moved), read('w', moved))],
  ['an own type follows an ADDED', history(w, accept(added, moved), read('w', moved))],
  [
    'it is cut by more keys than it holds',
    history(watch('w', 'coalesce', 1), accept('a1', 'a2', 'b1', 'b2'), read('w', cut(4)), end('w')),
  ],
  [
    'an object without a name, for which no key is known, ends the watch',
    history(w, accept('a1', { type: 'MODIFIED', object: {} }, 'b1'), read('w', 'a1'), end('w', 'INVALID_ARGUMENT')),
  ],
  ['a BOOKMARK and an ERROR need no name', history(w, accept(nameless, failure), read('w', nameless), read('w', failure))],
  ['a BOOKMARK is no change of the object that it names', history(w, accept('a1', mark, 'a3'), read('w', 'a3'), read('w', mark))],
  [
    'a key has changed on both sides of an ERROR',
    history(w, accept('a1', 'a2', failure, 'a3', 'a4'), read('w', 'a2', failure, 'a4'), shutdown, closed, end('w')),
  ],
  [
    'it is cut by more keys than it holds, because a key counts again after an ERROR',
    history(watch('w', 'coalesce', 2), accept('a1', failure, 'a2'), read('w', cut(3)), end('w')),
  ],
  ['a filter reads during a read, and is served first', history(w, accept('a1', 'b1'), nested('b1', 'a1'))],
  ['a filter reads during a read, and is served after it', history(w, accept('a1', 'b1'), nested('a1', 'b1'))],
  [
    'a filter reads during a read what changed first, and then again',
    history(w, accept('a1', 'b1', 'a2'), nested('b1', 'a2'), counts('w', 0, 1)),
  ],
  [
    'a filter reads the next change of a key that came and went before another one was read',
    history(w, accept(added, deleted, 'c1'), read('w', 'c1'), accept('b1', 'a4'), nested('b1', 'a4')),
  ],
  [
    'a filter reads what a key is behind an ERROR that the read around it gets',
    history(w, accept('a1', failure, 'a2'), read('w', 'a1'), nested(failure, 'a2')),
  ],
  [
    'a filter reads the last change of a key, of which the read around it gets the one before',
    history(w, accept('a1'), nested('a2', 'a1').slice(0, 4), accept('a2'), gets('w', 901, 'a2')),
  ],
  [
    'a BOOKMARK replaces the one before',
    history(w, accept(mark, 'a1', newer), read('w', 'a1', newer), shutdown, closed, end('w')),
  ],
  ['a BOOKMARK covers what came and went', history(w, accept(added, mark, deleted), read('w', mark), shutdown, closed, end('w'))],
  [
    'the BOOKMARK that ends the initial events replaces none',
    history(w, accept('a1', mark, initialEnd, newer), read('w', 'a1', initialEnd, newer), shutdown, closed, end('w')),
  ],
];

describe('coalesce keeps every guarantee when', () => {
  it.each(whole)('%s', (_, story) => {
    expect(verdicts(story)).toEqual([]);
  });
});

const broken: [string, History<WatchEvent>, string[]][] = [
  [
    'a read by a filter, during another one, gets a state from before the latest',
    history(w, accept('a1', 'a2', 'b1'), nested('b1', 'a1')),
    ['Exact for w at a1: expected the latest state of its key, seen one from before it'],
  ],
  [
    'a read by a filter gets a change that was published once the read around it had settled, and that one gets a later key',
    history(w, accept('b1', mark), nested(mark, 'b1').slice(0, 3), gets('w', 901, mark), accept('a1'), gets('w', 902, 'a1')),
    ['Exact for w at a8: expected it after MODIFIED, seen it before'],
  ],
  [
    'a key is folded across an ERROR',
    history(w, accept('a1', failure, 'a2'), read('w', 'a2', failure), shutdown, closed, end('w')),
    ['Ordered for w at ERROR: expected it before number 2, seen number 1 behind it'],
  ],
  [
    'an ERROR overtakes a change',
    history(w, accept('a1', failure), read('w', failure, 'a1'), shutdown, closed, end('w')),
    [
      'Ordered for w at a1: expected it before number 1, seen number 0 behind it',
      'Exact for w at ERROR: expected it after MODIFIED, seen it before',
    ],
  ],
  [
    'it passes on what was never published',
    history(w, accept('a1'), read('w', 'ghost', 'a1')),
    ['Ordered for w at ghost: expected an event that was published, seen an event that was never accepted'],
  ],
  [
    'a change is told again',
    history(w, accept('a1'), read('w', 'a1', 'a1')),
    [
      'Unique for w at a1: expected it once, seen it again',
      'Exact for w at a1: expected the net change of nothing, seen MODIFIED',
    ],
  ],
  [
    'ADDED and MODIFIED are told as MODIFIED',
    history(w, accept(added, 'a2'), read('w', 'a2')),
    ['Exact for w at a2: expected the net change of ADDED, MODIFIED, seen MODIFIED'],
  ],
  [
    'DELETED and ADDED are told as ADDED',
    history(w, accept(deleted, added), read('w', added)),
    ['Exact for w at a1: expected the net change of DELETED, ADDED, seen ADDED'],
  ],
  [
    'an object that was there is deleted and comes back, which is told as ADDED',
    history(w, accept('a2', deleted, added), read('w', added)),
    ['Exact for w at a1: expected the net change of MODIFIED, DELETED, ADDED, seen ADDED'],
  ],
  [
    'a change is never told, though another one of its key was on its way as it stopped',
    history(w, accept('a1'), publish('a2'), stop, accept('a2'), end('w')),
    ['Exact for w at a1: expected the net change of MODIFIED, MODIFIED, seen nothing'],
  ],
  [
    'a change is never told, though its key came and went before it',
    history(w, accept(added, deleted, 'a4'), shutdown, closed, end('w')),
    ['Exact for w at a1: expected the net change of ADDED, DELETED, MODIFIED, seen nothing'],
  ],
  [
    'its last event is lost while another watcher holds up the shutdown',
    oneAhead(watch('v', 'wait', 1), w, accept('a1', 'b1'), shutdown, read('w', 'a1'), end('w')),
    ['Exact for w at b1: expected the net change of MODIFIED, seen nothing'],
  ],
  [
    'it delivers more keys than it holds',
    history(watch('w', 'coalesce', 1), accept('a1', 'b1'), read('w', 'a1', 'b1')),
    ['Bounded for w at b1: expected at most 1 in the queue, seen 2'],
  ],
  [
    'an ADDED is told only as the DELETED behind it',
    history(w, accept(added, deleted), read('w', deleted)),
    ['Exact for w at a3: expected the net change of ADDED, DELETED, seen DELETED'],
  ],
  [
    'it is cut with room for the keys that changed since the last read',
    history(watch('w', 'coalesce', 2), accept('a1', 'b1'), read('w', 'a1', 'b1'), accept('c1'), read('w', cut(3)), end('w')),
    ['Exact for w at ERROR: expected it cut only by more than 2 keys, seen 1 keys'],
  ],
  [
    'it is cut by a key that came later',
    history(watch('w', 'coalesce', 1), accept('a1'), read('w', cut(2)), accept('b1'), end('w')),
    ['Exact for w at ERROR: expected it cut only by more than 1 keys, seen 1 keys'],
  ],
  [
    'it is cut by BOOKMARKs, of which it keeps one',
    history(watch('w', 'coalesce', 2), accept('a1', mark, newer), read('w', cut(3)), end('w')),
    ['Exact for w at ERROR: expected it cut only by more than 2 keys, seen 2 keys'],
  ],
  [
    'it counts less than it holds when it is cut',
    history(watch('w', 'coalesce', 2), accept('a1', 'b1', 'c1'), read('w', cut(2)), end('w')),
    ['Counted for w at ERROR: expected details.missed of at least 3, seen 2'],
  ],
  [
    'the last BOOKMARK is lost',
    history(w, accept('a1', mark), read('w', 'a1'), shutdown, closed, end('w')),
    ['Exact for w at a8: expected the net change of BOOKMARK, seen nothing'],
  ],
  [
    'an ERROR of its source is lost',
    history(w, accept('a1', failure), read('w', 'a1'), shutdown, closed, end('w')),
    ['Exact for w at ERROR: expected the net change of ERROR, seen nothing'],
  ],
  [
    'the BOOKMARK that ends the initial events is lost',
    history(w, accept('a1', initialEnd, mark), read('w', 'a1', mark), shutdown, closed, end('w')),
    ['Exact for w at a8: expected it after BOOKMARK, seen it before'],
  ],
  [
    'an old BOOKMARK comes though there is a newer one',
    history(w, accept(mark, newer), read('w', mark), read('w', newer)),
    ['Exact for w at a8: expected the latest state of its key, seen one from before it'],
  ],
  [
    'a BOOKMARK overtakes a change that it covers',
    history(w, accept('b1', mark), read('w', mark), read('w', 'b1')),
    ['Exact for w at a8: expected it after MODIFIED, seen it before'],
  ],
  [
    'a BOOKMARK overtakes a change that is undone later',
    history(w, accept(added, mark), read('w', mark), accept(deleted), shutdown, closed, end('w')),
    ['Exact for w at a8: expected it after ADDED, seen it before'],
  ],
  [
    'a BOOKMARK overtakes a change of the object that it names',
    history(w, accept('a1', mark), read('w', mark), read('w', 'a1')),
    ['Exact for w at a8: expected it after MODIFIED, seen it before'],
  ],
];

describe('coalesce breaks a guarantee when', () => {
  it.each(broken)('%s', (_, story, expected) => {
    expect(verdicts(story)).toEqual(expected);
  });
});
