// A queue of `coalesce` that only the number of objects limits: what comes and goes must leave nothing in it.
import { describe, expect, test } from 'vitest';
import type { BroadcastWatch } from '../../src/broadcast/broadcast-watch.ts';
import { Broadcaster, UNLIMITED } from '../../src/broadcast/broadcaster.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { event, ids, range, readAll, type TestEvent } from './support.ts';

/** What is held for a watch: events of the log, and keys of its folds. */
function held(watch: Watch<unknown>): { stored: number; keys: number } {
  const { view } = watch as BroadcastWatch<TestEvent>;
  const { chunks } = view.log as unknown as { chunks: ({ events: unknown[] } | undefined)[] };
  const { links } = view.chain as unknown as { links: { fold: { sections: Map<unknown, unknown>[] } }[] };
  return {
    stored: chunks.reduce((sum, chunk) => sum + (chunk?.events.length ?? 0), 0),
    keys: links.flatMap(({ fold }) => fold.sections).reduce((sum, section) => sum + section.size, 0),
  };
}

const comeAndGo = (broadcaster: Pick<Broadcaster<TestEvent>, 'tryPublish'>, count: number): void => {
  for (let at = 0; at < count; at++) for (const type of ['ADDED', 'DELETED']) broadcaster.tryPublish(event(at, type, `k${at}`));
};

describe('without a limit', () => {
  test('a watcher that lags is folded soon, and forgets what has come to nothing', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: UNLIMITED, overflow: 'coalesce' });
    const watch = broadcaster.watch();
    comeAndGo(broadcaster, 5_000);
    expect(held(watch).stored).toBeLessThanOrEqual(256 + 2 * 256);
    expect(held(watch).keys).toBe(0);
    expect([watch.queued, watch.dropped]).toEqual([0, 10_000]);
    for (const id of range(0, 3)) broadcaster.tryPublish(event(id, 'ADDED'));
    expect(ids(readAll(watch))).toEqual([0, 1, 2]);
  });

  test('one that reads gets everything, folded only if it does not', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: UNLIMITED, overflow: 'coalesce' });
    const watch = broadcaster.watch();
    for (let at = 0; at < 600; at++) {
      broadcaster.tryPublish(event(at, 'MODIFIED', 'one key'));
      expect(ids(readAll(watch))).toEqual([at]);
    }
    expect(watch.dropped).toBe(0);
  });
});

test('with a limit, a watcher is folded when its queue may be full, and not before', () => {
  const broadcaster = new Broadcaster<TestEvent>({ capacity: 2_000, overflow: 'coalesce' });
  const watch = broadcaster.watch();
  comeAndGo(broadcaster, 950);
  expect(held(watch).stored).toBe(1_900);
  comeAndGo(broadcaster, 950);
  expect(held(watch).stored).toBeLessThan(1_900);
  expect([watch.queued, watch.dropped]).toEqual([0, 3_800]);
});
