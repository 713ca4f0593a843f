import { describe, expect, it } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { RULES } from '../../src/testing/checkers/history.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { policiesWith } from '../policies.ts';
import { type Fate, fate, turn } from './support.ts';

const event = (object: number): { type: string; object: unknown } => ({ type: 'a', object });

describe('a reentrant filter', () => {
  it('a filter that publishes while the gate asks it cannot get past a full watcher (Complete)', async () => {
    const broadcaster = new Broadcaster({ incoming: 0 });
    let inner: boolean | undefined;
    const watch = broadcaster.watch({
      capacity: 1,
      filter: () => {
        inner ??= broadcaster.tryPublish(event(2));
        return true;
      },
    });
    broadcaster.tryPublish(event(0));
    expect(broadcaster.tryPublish(event(1))).toBe(false);
    expect(inner).toBe(false);
    expect({ queued: watch.queued, dropped: watch.dropped }).toEqual({ queued: 1, dropped: 0 });
  });

  it('nor past another full watcher', async () => {
    const broadcaster = new Broadcaster({ incoming: 0, maxPending: 0 });
    const filter = ({ object }: { object: unknown }): boolean => {
      if (typeof object === 'number') broadcaster.publish(event(object + 100)).catch(() => {});
      return true;
    };
    const first = broadcaster.watch({ capacity: 0, filter });
    const second = broadcaster.watch({ capacity: 0 });
    const reads = [first.next(), second.next()];
    broadcaster.tryPublish(event(0));
    expect(broadcaster.tryPublish(event(1))).toBe(false);
    await Promise.all(reads);
    void first.next();
    expect(broadcaster.tryPublish(event(2))).toBe(false);
    expect({ first: first.dropped, second: second.dropped }).toEqual({ first: 0, second: 0 });
  });

  it('what such a filter publishes is accepted as soon as there is room, without another read', async () => {
    const broadcaster = new Broadcaster({ incoming: 0 });
    let inner: Promise<void> | undefined;
    const watch = broadcaster.watch({
      capacity: 2,
      filter: ({ object }) => {
        inner ??= broadcaster.publish(event(9));
        return object === 1 || object === 9;
      },
    });
    for (const object of [0, 1, 2]) void broadcaster.publish(event(object));
    await inner;
    expect(watch.queued).toBe(2);
    expect([watch.tryNext(), watch.tryNext()]).toEqual([event(1), event(9)]);
  });

  it('nor does it need a read that finds something: the one that called the filter may find nothing', async () => {
    const broadcaster = new Broadcaster({ incoming: 0, capacity: 1 });
    let inner: Fate<void> | undefined;
    const watch = broadcaster.watch({
      filter: ({ object }) => {
        inner ??= fate(broadcaster.publish(event(1)));
        return object === 1;
      },
    });
    broadcaster.tryPublish(event(0));
    expect([watch.tryNext(), inner]).toEqual([undefined, { state: 'pending' }]);
    await turn();
    expect(inner).toMatchObject({ state: 'resolved' });
    expect(watch.tryNext()).toEqual(event(1));
  });

  it('nor is anything left behind if it took the room of the publish that asked', async () => {
    const broadcaster = new Broadcaster({ incoming: 1, capacity: 2 });
    let inner: Fate<void> | undefined;
    const watch = broadcaster.watch({
      filter: ({ object }) => {
        inner ??= fate(broadcaster.publish(event(9)));
        return object === 0;
      },
    });
    const outer = [0, 1, 2].map((object) => fate(broadcaster.publish(event(object))));
    await turn();
    expect([...outer, inner]).toMatchObject(Array.from({ length: 4 }, () => ({ state: 'resolved' })));
    const late = broadcaster.watch();
    expect(broadcaster.tryPublish(event(3))).toBe(true);
    expect([late.queued, watch.queued]).toEqual([1, 1]);
  });

  it('a tryPublish whose room was taken leaves the other event to be distributed', () => {
    const broadcaster = new Broadcaster({ incoming: 1, capacity: 2 });
    let inner: boolean | undefined;
    const all = broadcaster.watch({ overflow: 'drop-newest' });
    broadcaster.watch({
      filter: ({ object }) => {
        inner ??= broadcaster.tryPublish(event(9));
        return object === 0;
      },
    });
    expect([0, 1, 2].map((object) => broadcaster.tryPublish(event(object)))).toEqual([true, true, false]);
    expect([inner, all.queued, all.dropped]).toEqual([true, 2, 1]);
  });

  it('a publish that waits for a full watcher is not forgotten when a filter reads that watcher', async () => {
    const broadcaster = new Broadcaster({ incoming: 0, capacity: 1 });
    const full = broadcaster.watch();
    const watch = broadcaster.watch({ filter: () => full.tryNext() === undefined });
    broadcaster.tryPublish(event(0));
    const waiting = fate(broadcaster.publish(event(1)));
    expect([watch.tryNext(), waiting]).toEqual([undefined, { state: 'pending' }]);
    await turn();
    expect(waiting).toMatchObject({ state: 'resolved' });
  });

  it('a filter that stops its own full watch affects nobody else (Isolated)', async () => {
    const broadcaster = new Broadcaster();
    const other = broadcaster.watch({ overflow: 'drop-newest', capacity: 1_000 });
    for (let i = 0; i < 63; i++) broadcaster.tryPublish(event(i));
    const watch: Watch<unknown> = broadcaster.watch({
      capacity: 0,
      filter: () => {
        watch.stop();
        return false;
      },
    });
    for (let i = 63; i < 70; i++) broadcaster.tryPublish(event(i));
    const got = Array.from({ length: 70 }, () => other.tryNext()?.object);
    expect(got).toEqual(Array.from({ length: 70 }, (_, i) => i));
  });

  it('a filter that returns its own watch loses the current event once (Counted)', () => {
    const broadcaster = new Broadcaster();
    const watch: Watch<unknown> = broadcaster.watch({
      filter: () => {
        void watch.return();
        return true;
      },
    });
    broadcaster.tryPublish(event(0));
    expect({ queued: watch.queued, dropped: watch.dropped, stopped: watch.stopped }).toEqual({
      queued: 0,
      dropped: 1,
      stopped: true,
    });
  });

  it('an event is not lost in a shutdown by the filter that is called with it (Drained)', async () => {
    const broadcaster = new Broadcaster({ incoming: 0 });
    const watch = broadcaster.watch({
      capacity: 0,
      filter: () => {
        void broadcaster.shutdown();
        return true;
      },
    });
    const read = watch.next();
    broadcaster.tryPublish(event(0));
    const refused = broadcaster.publish(event(1)); // asks the filter about the first
    expect(await read).toEqual({ done: false, value: event(0) });
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    expect(watch.dropped).toBe(0);
    await expect(refused).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it.each(['disconnect', 'coalesce'] as const)(
    'a read by the filter of a watch that is cut waits until all events are counted (Counted): %s',
    async (overflow) => {
      const broadcaster = new Broadcaster<{ type: string; object: unknown }>();
      let read: Fate<unknown> | undefined;
      const watch: Watch<{ type: string; object: unknown }> = broadcaster.watch({
        ...{ overflow, capacity: 0 },
        filter: ({ object }) => {
          if (object === 2) read = fate(watch.next());
          return true;
        },
      });
      for (let object = 0; object < 5; object++)
        broadcaster.tryPublish({ type: 'ADDED', object: { metadata: { name: `${object}` } } });
      broadcaster.tryPublish(event(2));
      broadcaster.tryPublish({ type: 'ADDED', object: { metadata: { name: '6' } } });
      expect(watch.dropped).toBe(7);
      await turn();
      expect(read?.value).toMatchObject({ done: false, value: { type: 'ERROR', object: { details: { missed: 7 } } } });
      expect([await watch.next(), watch.dropped]).toEqual([{ done: true, value: undefined }, 7]);
    },
  );

  const losing = policiesWith({ waits: false, folds: false });
  it.each(losing.flatMap((overflow) => [0, 1, 2].map((capacity) => [overflow, capacity] as const)))(
    'a read by a filter makes no room for what was distributed before it (Exact, Bounded): %s, capacity %d',
    async (overflow, capacity) => {
      // Three events are distributed, and then the filter, which is asked about the second, reads.
      const received = RULES[overflow].dropsOldest ? [1, 2, 3].slice(3 - capacity) : [1, 2, 3].slice(0, capacity);
      const dropped = 3 - capacity;
      const broadcaster = new Broadcaster<{ type: string; object: unknown }>();
      const reads: Fate<IteratorResult<unknown>>[] = [];
      const watch: Watch<{ type: string; object: unknown }> = broadcaster.watch({
        ...{ overflow, capacity },
        filter: ({ object }) => {
          if (object === 2) reads.push(fate(watch.next()), fate(watch.next()));
          return true;
        },
      });
      for (let object = 1; object <= 3; object++) broadcaster.tryPublish(event(object));
      expect([watch.dropped, watch.queued]).toEqual([dropped, 0]);
      await turn();
      const got = reads.flatMap(({ value }) => (value?.value as { object: unknown } | undefined)?.object ?? []);
      expect(got.filter((object) => typeof object === 'number')).toEqual(received); // and the ERROR of `disconnect`
      expect(watch.dropped).toBe(dropped);
    },
  );

  it.each(losing)('a batch that a filter reads makes room for all that it takes, at once (Exact): %s', async (overflow) => {
    const { cutsAtLoss, dropsOldest } = RULES[overflow];
    const broadcaster = new Broadcaster<{ type: string; object: unknown }>();
    let read: Fate<IteratorResult<readonly unknown[]>> | undefined;
    const watch: Watch<{ type: string; object: unknown }> = broadcaster.watch({
      ...{ overflow, capacity: 3 },
      filter: ({ object }) => {
        if (object === 3) read = fate(watch.batches().next());
        return object !== 3;
      },
    });
    for (const object of [0, 1, 2, 3]) broadcaster.tryPublish(event(object));
    expect(watch.stopped).toBe(false); // asks the filter
    for (const object of [4, 5, 6, 7]) broadcaster.tryPublish(event(object));
    expect([watch.queued, watch.dropped]).toEqual([3, 1]);
    await turn();
    expect(read?.value?.value).toEqual([0, 1, 2].map(event));
    expect([watch.tryNext(), watch.tryNext(), watch.tryNext()]).toEqual((dropsOldest ? [5, 6, 7] : [4, 5, 6]).map(event));
    expect(watch.stopped).toBe(cutsAtLoss);
  });

  it('what a filter tries to read at once is not decided yet', () => {
    const broadcaster = new Broadcaster<{ type: string; object: unknown }>();
    const tried: unknown[] = [];
    const watch: Watch<{ type: string; object: unknown }> = broadcaster.watch({
      ...{ overflow: 'drop-newest', capacity: 1 },
      filter: () => {
        tried.push(watch.tryNext());
        return true;
      },
    });
    for (let object = 1; object <= 3; object++) broadcaster.tryPublish(event(object));
    expect([watch.tryNext(), watch.tryNext(), watch.dropped]).toEqual([event(1), undefined, 2]);
    expect(tried).toEqual([undefined, undefined, undefined]);
  });

  it('a signal aborted by a filter during the prefix stops the watch', async () => {
    const broadcaster = new Broadcaster();
    const abort = new AbortController();
    const filter = (): boolean => {
      abort.abort();
      return true;
    };
    const watch = broadcaster.watch({ prefix: [event(0)], filter, signal: abort.signal });
    expect(watch.stopped).toBe(true);
    broadcaster.tryPublish(event(1));
    expect(await watch.next()).toEqual({ done: false, value: event(0) });
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    expect(broadcaster.watchers).toBe(0);
  });
});
