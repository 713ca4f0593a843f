// User code that shuts the broadcaster down, or aborts a shutdown, while it is being called.
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { done, event, events, fate, ids, readAll, type TestEvent, turn } from './support.ts';

describe('shutting down from inside a filter or keyOf', () => {
  test('shutting down delivers all accepted events', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    let closed: Promise<void> | undefined;
    const watch = broadcaster.watch({
      filter: () => {
        closed ??= broadcaster.shutdown();
        return true;
      },
    });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(ids(readAll(watch))).toEqual([0, 1, 2]);
    await closed;
    expect(await watch.next()).toEqual(done);
    expect(thrown(() => broadcaster.tryPublish(event(9)))).toBe(true);
  });

  test('aborting the shutdown from a filter, and looking: the event in question is judged after the filter', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 10 });
    const seen: number[] = [];
    const watch: Watch<TestEvent> = broadcaster.watch({
      filter: (one) => {
        if (one.object.id === 1) {
          void broadcaster.shutdown({ signal: AbortSignal.abort() }).catch(() => {});
          seen.push(watch.queued, watch.dropped);
        }
        return true;
      },
    });
    for (const one of events(0, 2)) broadcaster.tryPublish(one); // full: it is asked about 1 before that is distributed
    expect(seen).toEqual([1, 0]);
    expect(watch).toMatchObject({ queued: 1, dropped: 1 });
  });

  test('during a prefix: shutting down ends the watch that is being created', async () => {
    const broadcaster = new Broadcaster<TestEvent>();
    const { signal } = new AbortController();
    const watch = broadcaster.watch({
      prefix: events(0, 2),
      signal,
      filter: () => {
        void broadcaster.shutdown();
        return true;
      },
    });
    expect(watch.stopped).toBe(true);
    expect(ids(readAll(watch))).toEqual([0, 1]);
    expect(await watch.next()).toEqual(done);
    expect(broadcaster.watchers).toBe(0);
  });

  test('a shutdown from inside a filter, during a shutdown: both settle', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1 });
    const inner: ReturnType<typeof fate<void>>[] = [];
    const watch = broadcaster.watch({
      filter: () => {
        inner.push(fate(broadcaster.shutdown()));
        return true;
      },
    });
    void watch.next();
    broadcaster.tryPublish(event(0));
    await broadcaster.shutdown();
    await turn();
    expect(inner.length).toBeGreaterThan(0);
    expect(inner.every(({ state }) => state === 'resolved')).toBe(true);
  });

  test.each(['gate', 'advance'] as const)('aborting from user code while a waiting publish is admitted (%s)', async (where) => {
    let armed = false;
    const giveUp = (): void => {
      if (!armed) return;
      armed = false;
      void broadcaster.shutdown({ signal: AbortSignal.abort(new Error('enough')) }).catch(() => {});
    };
    const keyOf = (one: TestEvent): string => {
      if (where === 'advance') giveUp();
      return one.object.metadata.name;
    };
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 0, keyOf });
    const filter = (): boolean => {
      if (where === 'gate') giveUp();
      return true;
    };
    const watch = broadcaster.watch({ filter });
    if (where === 'advance') broadcaster.watch({ overflow: 'coalesce' });
    const publishes = events(0, 40).map((one) => fate(broadcaster.publish(one)));
    const read: TestEvent[] = [];
    for (let i = 0; i < 40; i++) {
      if (i === 10) armed = true;
      const one = watch.tryNext();
      if (one !== undefined) read.push(one);
    }
    await broadcaster.shutdown();
    await turn();
    // What was accepted was distributed, in order; what was refused was not: no publish is both.
    const accepted = publishes.filter(({ state }) => state === 'resolved').length;
    expect(publishes.map(({ state }) => state)).toEqual(publishes.map((_, at) => (at < accepted ? 'resolved' : 'rejected')));
    expect(accepted).toBeGreaterThan(10);
    expect(read.length + watch.queued + watch.dropped).toBe(accepted);
  });

  test('aborting first distributes all accepted events: a watcher stopped by user code then has lost all', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1 });
    const stalled = broadcaster.watch({ capacity: 0 });
    const filter = (): boolean => {
      stalled.stop();
      return true;
    };
    const other = broadcaster.watch({ capacity: 0, overflow: 'disconnect', filter });
    void other.next();
    for (const one of events(0, 17)) broadcaster.tryPublish(one);
    await broadcaster.shutdown({ signal: AbortSignal.abort() }).catch(() => {});
    expect([stalled.dropped, stalled.queued]).toEqual([17, 0]);
  });
});

function thrown(code: () => unknown): boolean {
  try {
    code();
  } catch (error) {
    return isWatchError(error, 'CLOSED');
  }
  return false;
}
