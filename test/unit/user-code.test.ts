// Reentrant user code: in a consumer, and in a filter.
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import {
  done,
  event,
  events,
  fate,
  id,
  ids,
  range,
  readAll,
  type TestBroadcaster,
  type TestEvent,
  type TestWatch,
  turn,
} from './support.ts';

describe('from inside a consumer', () => {
  test('publishing keeps order, and terminates', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1 });
    const [a, b] = [broadcaster.watch(), broadcaster.watch()];
    const got: number[][] = [[], []];
    const first = (async () => {
      for await (const one of a) {
        got[0]!.push(one.object.id);
        if (one.object.id < 20) void broadcaster.publish(event(one.object.id + 1));
      }
    })();
    const second = (async () => {
      for await (const one of b) got[1]!.push(one.object.id);
    })();
    await broadcaster.publish(event(0));
    for (let i = 0; i < 20; i++) await turn();
    await broadcaster.shutdown();
    await Promise.all([first, second]);
    expect(got).toEqual([range(0, 21), range(0, 21)]);
  });

  test('watching delivers later events only', async () => {
    const broadcaster = new Broadcaster<TestEvent>();
    const watch = broadcaster.watch();
    let late: TestWatch | undefined;
    const reading = (async () => {
      for await (const _ of watch) late ??= broadcaster.watch();
    })();
    broadcaster.tryPublish(event(0));
    broadcaster.tryPublish(event(1));
    await turn();
    broadcaster.tryPublish(event(2));
    await broadcaster.shutdown();
    await reading;
    expect(ids(readAll(late!))).toEqual([2]);
  });

  test('stopping, returning and shutting down let everyone end', async () => {
    for (const act of [
      (watch: TestWatch) => watch.stop(),
      (watch: TestWatch) => watch.return(),
      (_watch: TestWatch, broadcaster: TestBroadcaster) => broadcaster.shutdown(),
    ]) {
      const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 1 });
      const watch = broadcaster.watch();
      const reading = (async () => {
        let count = 0;
        for await (const _ of watch) {
          count++;
          void act(watch, broadcaster);
        }
        return count;
      })();
      const publishes = events(0, 5).map((one) => broadcaster.publish(one).catch(() => {}));
      expect(await reading).toBeGreaterThan(0);
      await Promise.all(publishes);
      await broadcaster.shutdown();
      expect(broadcaster.watchers).toBe(0);
    }
  });
});

describe('from inside a filter', () => {
  test.each(OVERFLOWS)("'%s': publishing keeps one order for all, and terminates", (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 100, incoming: 100 });
    let published = 3;
    const filter = (): boolean => {
      if (published < 30) broadcaster.tryPublish(event(published++));
      return true;
    };
    const watch = broadcaster.watch({ overflow, filter });
    const plain = broadcaster.watch();
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    const got = ids(readAll(watch));
    expect(got).toEqual(range(0, 30));
    expect(ids(readAll(plain))).toEqual(got);
  });

  test('publishing from a full watcher: the gate calls the filter, and events published by it come first', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 10 });
    const plain = broadcaster.watch({ capacity: 100 });
    let extra = 100;
    const watch = broadcaster.watch({
      filter: (one) => {
        if (one.object.id < 100) broadcaster.tryPublish(event(extra++));
        return true;
      },
    });
    for (const one of events(0, 4)) broadcaster.tryPublish(one);
    const got: number[] = [];
    for (let i = 0; i < 20; i++) got.push(...ids(readAll(watch)));
    expect(ids(readAll(plain))).toEqual(got);
    expect(got.slice().sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 100, 101, 102, 103]);
  });

  test.each(OVERFLOWS)("'%s': stopping its own watch keeps what it accepted before", (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    const watch: TestWatch = broadcaster.watch({
      overflow,
      filter: (one) => {
        if (one.object.id === 2) watch.stop();
        return true;
      },
    });
    for (const one of events(0, 5)) expect(broadcaster.tryPublish(one)).toBe(true);
    expect(watch).toMatchObject({ queued: 2, dropped: 1, stopped: true });
    expect(ids(readAll(watch))).toEqual([0, 1]);
    expect(broadcaster.watchers).toBe(0);
  });

  test.each(OVERFLOWS)("'%s': stopping its own watch at an event that it rejects: that is not a loss", (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    const watch: TestWatch = broadcaster.watch({
      overflow,
      filter: (one) => {
        if (one.object.id === 2) watch.stop();
        return one.object.id !== 2;
      },
    });
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    expect(watch).toMatchObject({ queued: 2, dropped: 0, stopped: true });
  });

  test.each(OVERFLOWS)("'%s': returning its own watch discards everything, with exact counts", async (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    const watch: TestWatch = broadcaster.watch({
      overflow,
      filter: (one) => {
        if (one.object.id === 2) void watch.return();
        return one.object.id !== 1;
      },
    });
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    expect(await watch.next()).toEqual(done);
    expect(watch).toMatchObject({ queued: 0, dropped: 2, stopped: true });
    expect(broadcaster.watchers).toBe(0);
  });

  test('a full waiting watcher that stops inside its filter lets the publisher continue', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 0 });
    const watch: TestWatch = broadcaster.watch({
      filter: (one) => {
        if (one.object.id === 1) watch.stop();
        return true;
      },
    });
    const accepted = events(0, 5).filter((one) => broadcaster.tryPublish(one));
    expect(ids(accepted)).toEqual([0]); // nothing is asked before an event has its place
    watch.tryNext();
    expect(broadcaster.tryPublish(event(1))).toBe(true);
    expect(watch.queued).toBe(0);
    expect(broadcaster.watchers).toBe(0);
    for (const one of events(2, 9)) expect(broadcaster.tryPublish(one)).toBe(true);
  });

  test('stopping the watcher that blocks the others, and publishing at once: nothing is refused, order is kept', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ incoming: 2 });
    const witness = broadcaster.watch({ overflow: 'drop-newest' });
    const stalled = broadcaster.watch({ capacity: 0 });
    const accepted: boolean[] = [];
    const watch = broadcaster.watch({
      overflow: 'drop-newest',
      filter: (one) => {
        stalled.stop();
        if (id(one) === 0) accepted.push(broadcaster.tryPublish(event(4)));
        return true;
      },
    });
    const reads = [stalled.next(), watch.next()];
    for (const one of events(0, 3)) expect(broadcaster.tryPublish(one)).toBe(true);
    const pending = broadcaster.publish(event(3));
    await Promise.all([pending, ...reads]);
    expect(accepted).toEqual([true]);
    expect(ids(readAll(witness))).toEqual(range(0, 5));
  });

  test('leaving while the filter is called in advance for a full queue opens the gate', () => {
    for (const leave of ['stop', 'return'] as const) {
      const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 1 });
      const watch: TestWatch = broadcaster.watch({
        filter: (one) => {
          if (one.object.id === 1) void watch[leave]();
          return true;
        },
      });
      for (const one of events(0, 10)) expect(broadcaster.tryPublish(one)).toBe(true);
      expect(broadcaster.watchers).toBe(0);
    }
  });

  test('during a prefix: what it publishes comes after the prefix or not at all, and never in between', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    const watch = broadcaster.watch({
      prefix: events(0, 3),
      filter: (one) => one.object.id > 50 || broadcaster.tryPublish(event(99)),
    });
    broadcaster.tryPublish(event(60));
    expect(ids(readAll(watch))).toEqual([0, 1, 2, 60]);
  });

  test('reading its own watch waits in line', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    let inner: ReturnType<typeof fate<Awaited<ReturnType<TestWatch['next']>>>> | undefined;
    const watch: TestWatch = broadcaster.watch({
      filter: () => {
        inner ??= fate(watch.next());
        return true;
      },
    });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(id((await watch.next()).value)).toBe(0);
    await turn();
    expect(id(inner?.value?.value as TestEvent)).toBe(1);
    expect(ids(readAll(watch))).toEqual([2]);
  });

  test('a read that user code starts while another one only looks is served in this turn', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    let inner: ReturnType<typeof fate<Awaited<ReturnType<TestWatch['next']>>>> | undefined;
    const watch: TestWatch = broadcaster.watch({
      filter: () => {
        inner ??= fate(watch.next());
        return true;
      },
    });
    broadcaster.tryPublish(event(0));
    expect(watch.stopped).toBe(false); // only looks
    await turn();
    expect(id(inner?.value?.value as TestEvent)).toBe(0);
  });

  test('watching, stopping another, returning another: nobody else is affected', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 2, incoming: 10 });
    const others = [broadcaster.watch(), broadcaster.watch(), broadcaster.watch()];
    const made: TestWatch[] = [];
    const watch = broadcaster.watch({
      filter: (one) => {
        if (one.object.id === 0) others[0]!.stop();
        if (one.object.id === 1) void others[1]!.return();
        made.push(broadcaster.watch());
        return true;
      },
    });
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    expect(ids(readAll(watch))).toEqual([0, 1]);
    for (let i = 0; i < 5; i++) for (const each of [watch, others[2]!, ...made]) readAll(each);
    expect(ids(readAll(others[0]!))).toEqual([0, 1]);
    expect(readAll(others[1]!)).toEqual([]);
    expect(broadcaster.watchers).toBe(2 + made.length);
    expect(made).toHaveLength(5);
  });
});
