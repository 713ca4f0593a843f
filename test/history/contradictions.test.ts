// What a watch says twice must agree: its events with those published, its counts with its gaps and its end.
import { expect, it } from 'vitest';
import type { History } from '../../src/testing/checkers/history.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { accept, ask, counts, cut, end, ev, gap, gets, history, publish, read, readAmid, verdicts, watch } from './build.ts';

const returned = { step: 'return', watcher: 'w' } as const;

it.each<[string, History<WatchEvent>, string]>([
  [
    'an event has another type than the one that was published',
    history(watch('w', 'wait', 2), accept('a'), read('w', { ...ev('a'), type: 'DELETED' })),
    'Exact for w at a: expected it as it was published, seen another type',
  ],
  [
    'a read that waits gets nothing',
    history(watch('w', 'wait', 2), ask('w', 901, 'batch'), gets('w', 901)),
    'Exact for w: expected an event or the end for each read that waits, seen nothing by batch',
  ],
  [
    'something is queued after the end',
    history(watch('w', 'drop-newest', 2), accept('a'), returned, counts('w', 1, 0)),
    'Counted for w: expected 0 queued, or more before the end, seen 1 queued',
  ],
  [
    'fewer are dropped than before',
    history(watch('w', 'drop-newest', 0), publish('a'), counts('w', 0, 1), counts('w', 0, 0), accept('a')),
    'Counted for w: expected no less than 1 dropped, seen 0 dropped',
  ],
  [
    'a gap is told by a policy that has none',
    history(watch('w', 'coalesce', 2), accept('a'), readAmid('w', [gap('w', 1)], 'a')),
    'Counted for w: expected no gap, seen a gap of 1 told',
  ],
  [
    'a gap is told before an event that it is not before, by a watch that is returned later',
    history(watch('w', 'drop-newest', 2), accept('a', 'b'), readAmid('w', [gap('w', 1)], 'a'), read('w', 'b'), returned),
    'Counted for w: expected no gap, seen a gap of 1 told',
  ],
  [
    'a cut counts more than there was',
    history(watch('w', 'coalesce', 1), accept('a', 'b'), read('w', cut(3))),
    'Counted for w at ERROR: expected details.missed of 2, seen 3',
  ],
  [
    'a change is delivered before one of another key, which came before it',
    history(watch('w', 'coalesce', 2), accept('a', 'b', 'c'), read('w', 'b'), read('w', 'a')),
    'Exact for w at b: expected it behind a key that changed before it, seen it first',
  ],
  [
    'a second error is told',
    history(watch('w', 'wait', 2), end('w', 'one'), end('w', 'two')),
    'Drained for w: expected one error, before the end, seen another one',
  ],
  [
    'an error is told after the end',
    history(watch('w', 'wait', 2), returned, end('w'), end('w', 'late')),
    'Drained for w: expected one error, before the end, seen it after the end',
  ],
])('it is wrong if %s', (_, story, expected) => {
  expect(verdicts(story)).toContain(expected);
});
