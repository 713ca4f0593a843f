// Reentrant user code: in the keyOf of `coalesce`.
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { done, event, events, ids, range, readAll, type TestBroadcaster, type TestEvent, type TestWatch } from './support.ts';

describe('from inside a filter', () => {
  test('a read does not get a change before an older one of its key', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 5 });
    const reads: Promise<unknown>[] = [];
    const watch: TestWatch = broadcaster.watch({
      overflow: 'coalesce',
      filter: ({ object }): boolean => object.id !== 1 || reads.push(watch.next()) > 0,
    });
    for (const at of [0, 1]) broadcaster.tryPublish(event(at, 'MODIFIED', 'k'));
    expect(watch.tryNext()).toMatchObject({ object: { id: 1 } });
    expect(watch.dropped).toBe(1);
    broadcaster.tryPublish(event(2, 'MODIFIED', 'k'));
    expect(await reads[0]).toMatchObject({ value: { object: { id: 2 } } });
  });
});

describe('from inside keyOf', () => {
  test('publishing and stopping keep order, and terminate', () => {
    let more = 0;
    const broadcaster: TestBroadcaster = new Broadcaster<TestEvent>({
      capacity: 100,
      overflow: 'coalesce',
      keyOf: (one) => {
        if (more++ < 40) broadcaster.tryPublish(event(100 + more));
        return `${one.object.id}`;
      },
    });
    const watch = broadcaster.watch();
    broadcaster.tryPublish(event(0));
    const got = ids(readAll(watch));
    expect(got).toEqual([0, ...range(101, 141)]);
  });

  test.each([1, 100])('returning the watch that folds ends it, with nothing left to read (%i events)', async (count) => {
    let watch: TestWatch | undefined;
    const broadcaster = new Broadcaster<TestEvent>({
      capacity: 4,
      overflow: 'coalesce',
      keyOf: () => {
        void watch?.return();
        return 'k';
      },
    });
    watch = broadcaster.watch();
    const other = broadcaster.watch();
    for (const one of events(0, count)) broadcaster.tryPublish(one);
    expect(watch.tryNext()).toBeUndefined();
    expect(watch).toMatchObject({ stopped: true, queued: 0 });
    expect(await watch.next()).toEqual(done);
    expect(broadcaster.watchers).toBe(1);
    expect(ids(readAll(other))).toEqual([count - 1]);
  });

  /** A broadcaster with laggards whose keyOf calls `code` once, at one event. */
  function lagging(at: number, code: (broadcaster: TestBroadcaster) => void): TestBroadcaster {
    let left = 1;
    const broadcaster: TestBroadcaster = new Broadcaster<TestEvent>({
      capacity: 16,
      overflow: 'coalesce',
      keyOf: (one) => {
        if (one.object.id === at && left-- > 0) code(broadcaster);
        return `${one.object.id % 3}`;
      },
    });
    return broadcaster;
  }

  test('publishing while laggards are folded keeps order', () => {
    const broadcaster = lagging(80, (own) => {
      for (const one of events(1000, 1050)) own.tryPublish(one);
    });
    const all = broadcaster.watch({ overflow: 'wait', capacity: 1000 });
    const watches = [broadcaster.watch(), broadcaster.watch()];
    for (const one of events(0, 200)) broadcaster.tryPublish(one);
    const order = ids(readAll(all));
    expect(order).toHaveLength(250);
    for (const watch of watches) {
      expect(watch).toMatchObject({ queued: 3, dropped: 247 });
      const last = [0, 1, 2].map((key) => order.filter((one) => one % 3 === key).at(-1));
      expect(ids(readAll(watch)).sort()).toEqual(last.sort());
    }
  });

  test('publishing at the end of what is folded so far keeps order: folds of nested chunks wait for their turn', () => {
    const broadcaster = lagging(195, (own) => {
      for (const one of events(1000, 1060)) own.tryPublish(one);
    });
    const all = broadcaster.watch({ overflow: 'wait', capacity: 1000 });
    const watches = [broadcaster.watch(), broadcaster.watch()];
    for (const one of events(0, 210)) broadcaster.tryPublish(one);
    const order = ids(readAll(all));
    for (const watch of watches) {
      const last = [0, 1, 2].map((key) => order.filter((one) => one % 3 === key).at(-1));
      expect(ids(readAll(watch)).sort()).toEqual(last.sort());
    }
  });

  test('an event whose key is being computed, and events that keyOf publishes meanwhile, fold in their order', () => {
    let left = 1;
    const broadcaster: TestBroadcaster = new Broadcaster<TestEvent>({
      capacity: 16,
      overflow: 'coalesce',
      keyOf: ({ object }) => {
        if (object.id === 195 && left-- > 0) for (const one of events(1000, 1060)) broadcaster.tryPublish(one);
        return object.id === 195 || object.id === 1000 ? 'both' : 'others';
      },
    });
    const watches = [broadcaster.watch(), broadcaster.watch()];
    for (const one of events(0, 210)) broadcaster.tryPublish(one);
    for (const watch of watches) expect(ids(readAll(watch))).toEqual([209, 1000]);
  });

  test('reading a laggard while laggards are folded loses nothing', () => {
    const got: TestEvent[] = [];
    const broadcaster: TestBroadcaster = lagging(80, () => got.push(...readAll(a)));
    const [a, b] = [broadcaster.watch(), broadcaster.watch()];
    for (const one of events(0, 200)) broadcaster.tryPublish(one);
    got.push(...readAll(a));
    expect(got.length + a.dropped).toBe(200);
    expect(b).toMatchObject({ queued: 3, dropped: 197 });
    expect(ids(got.slice(-3)).sort()).toEqual([197, 198, 199]);
    expect(ids(readAll(b)).sort()).toEqual([197, 198, 199]);
  });

  test.each(['stop', 'return'] as const)('%s of all laggards while they are folded releases them', (leave) => {
    const broadcaster: TestBroadcaster = lagging(80, () => {
      for (const watch of watches) void watch[leave]();
    });
    const watches = [broadcaster.watch(), broadcaster.watch()];
    for (const one of events(0, 200)) broadcaster.tryPublish(one);
    expect(broadcaster.watchers).toBe(0);
    for (const watch of watches) {
      expect(readAll(watch)).toHaveLength(leave === 'stop' ? 3 : 0);
      expect(watch.stopped).toBe(true);
    }
    const fresh = broadcaster.watch();
    for (const one of events(0, 200)) broadcaster.tryPublish(one);
    expect(fresh).toMatchObject({ queued: 3, dropped: 197 });
  });

  test('a watcher that falls behind while others are folded does not join them halfway', () => {
    const broadcaster = lagging(80, (own) => {
      for (const one of events(1000, 1050)) own.tryPublish(one);
    });
    broadcaster.watch();
    for (const one of events(0, 88)) broadcaster.tryPublish(one);
    const late = broadcaster.watch(); // it is due in a chunk that the events from inside keyOf enter
    for (const one of events(88, 200)) broadcaster.tryPublish(one);
    expect(late).toMatchObject({ queued: 3, dropped: 50 + 112 - 3 });
  });

  test('a watcher that moved past the fold, through what keyOf has published, does not join there', () => {
    let asked = 0;
    const broadcaster: TestBroadcaster = new Broadcaster<TestEvent>({
      capacity: 16,
      overflow: 'coalesce',
      keyOf: (one) => {
        // First for those who lag, then for the one who is about to.
        if (one.object.id === 110 && ++asked === 2) broadcaster.tryPublish(event(1000));
        return `${one.object.id % 3}`;
      },
    });
    broadcaster.watch();
    for (const one of events(0, 88)) broadcaster.tryPublish(one);
    const late = broadcaster.watch();
    for (const one of events(88, 200)) broadcaster.tryPublish(one);
    expect(asked).toBeGreaterThan(1);
    expect(late).toMatchObject({ queued: 3, dropped: 1 + 112 - 3 });
  });

  test('a filter that publishes while laggards are judged delivers no event twice', () => {
    const broadcaster = new Broadcaster<TestEvent>({
      capacity: 16,
      overflow: 'coalesce',
      keyOf: (one) => `${one.object.id % 3}`,
    });
    let more = 5;
    broadcaster.watch({ overflow: 'drop-newest', filter: () => more-- > 0 && broadcaster.tryPublish(event(1000 + more)) });
    const watches = [broadcaster.watch(), broadcaster.watch()];
    for (const one of events(0, 150)) broadcaster.tryPublish(one);
    for (const watch of watches) expect(watch).toMatchObject({ queued: 3, dropped: 152 });
  });

  test('a filter that reads a watcher that has just fallen behind, and publishes, skips nothing for the next one', () => {
    const keyOf = ({ object }: TestEvent): string => (object.id < 1000 ? `${object.id % 3}` : 'new');
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 16, overflow: 'coalesce', keyOf });
    const first = broadcaster.watch();
    let more = 1;
    const filter = (): boolean => {
      if (more-- > 0) {
        readAll(first);
        broadcaster.tryPublish(event(1000));
      }
      return false;
    };
    broadcaster.watch({ overflow: 'drop-newest', filter });
    const next = broadcaster.watch();
    for (const one of events(0, 60)) broadcaster.tryPublish(one);
    expect(next).toMatchObject({ queued: 4, dropped: 57 });
    expect(ids(readAll(next)).sort((a, b) => a - b)).toEqual([57, 58, 59, 1000]);
    expect(ids(readAll(first)).sort((a, b) => a - b)).toEqual([57, 58, 59, 1000]);
  });
});
