import { describe, expect, test } from 'vitest';
import { Broadcaster, type Overflow } from '../../src/broadcast/broadcaster.ts';
import { isErrorEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { policiesWith } from '../policies.ts';
import { done, event, events, id, ids, range, readAll, type TestBroadcaster, type TestEvent } from './support.ts';

const CAPACITIES = [0, 1, 2, 3, 40, 1_000_000];
const COUNTS = [1, 2, 3, 4, 15, 16, 17, 33, 300];
const CASES = CAPACITIES.flatMap((capacity) => COUNTS.map((count) => [capacity, count] as const));

function publish(broadcaster: TestBroadcaster, of: readonly TestEvent[]): number {
  return of.filter((one) => broadcaster.tryPublish(one)).length;
}

/** What a cut watch says last. */
function missed(of: TestEvent | undefined): number | undefined {
  if (of === undefined || !isErrorEvent(of)) return undefined;
  expect(of.object).toMatchObject({ code: 410, reason: 'Expired', status: 'Failure' });
  expect(of.object.message).toContain(`${of.object.details?.missed} events were lost`);
  return of.object.details?.missed;
}

describe('nobody reads: what remains of the events in a queue of a given capacity', () => {
  test.each(CASES)("'wait', capacity %i, %i events: the first ones, and publish is refused", (capacity, count) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity, incoming: 0 });
    const watch = broadcaster.watch();
    const accepted = publish(broadcaster, events(0, count));
    expect(accepted).toBe(Math.min(capacity, count));
    expect(watch).toMatchObject({ queued: accepted, dropped: 0, stopped: false });
    expect(ids(readAll(watch))).toEqual(range(0, accepted));
  });

  test.each(CASES)("'drop-newest', capacity %i, %i events: the first ones", (capacity, count) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity, overflow: 'drop-newest' });
    const watch = broadcaster.watch();
    expect(publish(broadcaster, events(0, count))).toBe(count);
    const kept = Math.min(capacity, count);
    expect(watch).toMatchObject({ queued: kept, dropped: count - kept, stopped: false });
    expect(ids(readAll(watch))).toEqual(range(0, kept));
  });

  test.each(CASES)("'drop-oldest', capacity %i, %i events: the last ones", (capacity, count) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity, overflow: 'drop-oldest' });
    const watch = broadcaster.watch();
    expect(publish(broadcaster, events(0, count))).toBe(count);
    const kept = Math.min(capacity, count);
    expect(watch).toMatchObject({ queued: kept, dropped: count - kept, stopped: false });
    expect(ids(readAll(watch))).toEqual(range(count - kept, count));
  });

  test.each(CASES)("'disconnect', capacity %i, %i events: the first ones, then one ERROR, then done", async (capacity, count) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity, overflow: 'disconnect' });
    const watch = broadcaster.watch();
    expect(publish(broadcaster, events(0, count))).toBe(count);
    const kept = Math.min(capacity, count);
    const cut = count > capacity;
    expect(watch).toMatchObject({ queued: kept, dropped: count - kept, stopped: cut });
    expect(broadcaster.watchers).toBe(1);
    const read = readAll(watch);
    expect(ids(read.slice(0, kept))).toEqual(range(0, kept));
    expect(read.slice(kept).map(missed)).toEqual(cut ? [count - kept] : []);
    expect(broadcaster.watchers).toBe(cut ? 0 : 1);
    if (cut) expect(await watch.next()).toEqual(done);
  });

  test.each(CASES)("'coalesce', capacity %i, %i events of a key each: all, or one ERROR, then done", async (capacity, count) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity, overflow: 'coalesce' });
    const watch = broadcaster.watch();
    expect(publish(broadcaster, events(0, count))).toBe(count);
    const cut = count > capacity;
    expect(watch).toMatchObject({ queued: cut ? 0 : count, dropped: cut ? count : 0, stopped: cut });
    const read = readAll(watch);
    if (!cut) expect(ids(read)).toEqual(range(0, count));
    else expect(read.map(missed)).toEqual([count]);
    expect(broadcaster.watchers).toBe(cut ? 0 : 1);
    if (cut) expect(await watch.next()).toEqual(done);
  });

  test.each(CASES)("'coalesce', capacity %i, %i events of one key: the last one, or one ERROR", (capacity, count) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity, overflow: 'coalesce' });
    const watch = broadcaster.watch();
    for (let i = 0; i < count; i++) broadcaster.tryPublish(event(i, 'MODIFIED', 'k'));
    expect(watch).toMatchObject({ queued: capacity && 1, dropped: capacity === 0 ? count : count - 1, stopped: capacity === 0 });
    const read = readAll(watch);
    expect(read.map((one) => missed(one) ?? id(one))).toEqual([capacity === 0 ? count : count - 1]);
  });

  test('policies on one broadcaster do not affect each other', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 2, incoming: 0 });
    const watches = {
      wait: broadcaster.watch({ capacity: 100 }),
      newest: broadcaster.watch({ overflow: 'drop-newest' }),
      oldest: broadcaster.watch({ overflow: 'drop-oldest', capacity: 3 }),
      none: broadcaster.watch({ overflow: 'drop-oldest', capacity: 0 }),
      cut: broadcaster.watch({ overflow: 'disconnect', capacity: 1 }),
      folded: broadcaster.watch({ overflow: 'coalesce', capacity: 100 }),
    };
    expect(publish(broadcaster, events(0, 150))).toBe(100);
    expect(ids(readAll(watches.newest))).toEqual([0, 1]);
    expect(ids(readAll(watches.oldest))).toEqual([97, 98, 99]);
    expect(ids(readAll(watches.none))).toEqual([]);
    expect(ids(readAll(watches.folded))).toEqual(range(0, 100));
    const cut = readAll(watches.cut);
    expect([id(cut[0]), missed(cut[1]), cut.length]).toEqual([0, 99, 2]);
    expect(ids(readAll(watches.wait))).toEqual(range(0, 100));
    expect(Object.values(watches).map((watch) => watch.dropped)).toEqual([0, 98, 97, 100, 99, 0]);
  });
});

describe('after a full queue was read', () => {
  test.each(['drop-newest', 'drop-oldest'] as const)("'%s' continues, any number of times", (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 5, overflow });
    const gaps: number[] = [];
    const watch = broadcaster.watch({ onGap: (count) => gaps.push(count) });
    let next = 0;
    const expected: number[] = [];
    for (const count of [3, 12, 5, 40, 1, 90]) {
      publish(broadcaster, events(next, next + count));
      const kept = Math.min(5, count);
      expected.push(...(overflow === 'drop-newest' ? range(next, next + kept) : range(next + count - kept, next + count)));
      next += count;
      expect(ids(readAll(watch))).toEqual(expected.splice(0));
    }
    expect(watch.dropped).toBe(next - 24);
    expect(gaps).toEqual(overflow === 'drop-newest' ? [7, 35] : [7, 35, 85]);
  });

  test("'coalesce' continues: a key that was read starts over", () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'coalesce' });
    const watch = broadcaster.watch();
    for (const count of [1, 15, 16, 40, 2, 100]) {
      for (let i = 0; i < count; i++) broadcaster.tryPublish(event(i, i === 0 ? 'ADDED' : 'MODIFIED', 'k'));
      expect(readAll(watch)).toEqual([event(count - 1, 'ADDED', 'k')]);
    }
    expect(watch.dropped).toBe(174 - 6);
  });

  test("'coalesce' as a laggard: counts missed events until the ERROR is delivered", () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 3, overflow: 'coalesce' });
    const [early, late] = [broadcaster.watch(), broadcaster.watch()];
    publish(broadcaster, events(0, 100));
    expect(readAll(early).map(missed)).toEqual([100]);
    publish(broadcaster, events(100, 150));
    expect(late).toMatchObject({ queued: 0, dropped: 150, stopped: true });
    publish(broadcaster, events(150, 200));
    expect(readAll(late).map(missed)).toEqual([200]);
    expect(early).toMatchObject({ queued: 0, dropped: 100 });
  });

  test("'disconnect': counts missed events until the ERROR is delivered", () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'disconnect' });
    const watch = broadcaster.watch();
    publish(broadcaster, events(0, 40));
    expect(id(watch.tryNext())).toBe(0);
    publish(broadcaster, events(40, 60));
    expect(watch).toMatchObject({ queued: 0, dropped: 59, stopped: true });
    expect(readAll(watch).map(missed)).toEqual([59]);
    publish(broadcaster, events(60, 70));
    expect(watch.dropped).toBe(59);
    expect(watch.tryNext()).toBeUndefined();
  });
});

describe('coalesce', () => {
  const coalesce = (capacity = 10): { broadcaster: TestBroadcaster; watch: ReturnType<TestBroadcaster['watch']> } => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity, overflow: 'coalesce' });
    return { broadcaster, watch: broadcaster.watch() };
  };

  test.each([
    ['ADDED MODIFIED', ['ADDED']],
    ['ADDED DELETED', []],
    ['MODIFIED DELETED', ['DELETED']],
    ['DELETED ADDED', ['MODIFIED']],
    ['ADDED DELETED ADDED', ['ADDED']],
    ['placed cancelled', ['cancelled']],
    ['BOOKMARK MODIFIED BOOKMARK', ['MODIFIED', 'BOOKMARK']],
    ['ERROR MODIFIED ERROR', ['ERROR', 'MODIFIED', 'ERROR']],
  ])('%s is delivered as %j, near and far behind', (types, expected) => {
    for (const ballast of [0, 40]) {
      const { broadcaster, watch } = coalesce(5);
      for (let i = 0; i < ballast; i++) broadcaster.tryPublish(event(i, 'MODIFIED', 'ballast'));
      for (const [i, type] of types.split(' ').entries()) broadcaster.tryPublish(event(100 + i, type, 'k'));
      for (let i = 0; i < ballast; i++) broadcaster.tryPublish(event(i, 'MODIFIED', 'ballast'));
      const read = readAll(watch).filter((one) => one.object.metadata.name === 'k');
      expect(read.map((one) => one.type)).toEqual(expected);
    }
  });

  test('keys are in the order of their first unseen change, and pending reads get events unchanged', async () => {
    const { broadcaster, watch } = coalesce();
    const reads = [watch.next(), watch.next()];
    for (const [i, name] of ['a', 'a', 'b', 'a', 'b', 'c'].entries()) broadcaster.tryPublish(event(i, 'MODIFIED', name));
    expect((await Promise.all(reads)).map((read) => id(read.value))).toEqual([0, 1]);
    expect(watch).toMatchObject({ queued: 3, dropped: 1 });
    expect(ids(readAll(watch))).toEqual([4, 3, 5]);
  });

  test('keys whose changes cancel out count toward the capacity until they are read past', () => {
    const { broadcaster, watch } = coalesce(2);
    for (const name of ['a', 'b']) for (const type of ['ADDED', 'DELETED']) broadcaster.tryPublish(event(0, type, name));
    expect(watch).toMatchObject({ queued: 0, dropped: 4, stopped: false });
    broadcaster.tryPublish(event(1, 'ADDED', 'c'));
    expect(watch).toMatchObject({ queued: 0, dropped: 5, stopped: true });
    expect(readAll(watch).map(missed)).toEqual([5]);
  });

  test('reading past them makes room', () => {
    const { broadcaster, watch } = coalesce(1);
    for (const type of ['ADDED', 'DELETED']) broadcaster.tryPublish(event(0, type, 'a'));
    expect(watch.tryNext()).toBeUndefined();
    broadcaster.tryPublish(event(1, 'ADDED', 'b'));
    expect(ids(readAll(watch))).toEqual([1]);
  });

  test('a keyOf that throws ends only that watch, after its earlier events', async () => {
    const keyOf = (of: TestEvent): string => {
      if (of.type === 'BAD') throw new Error('no key');
      return of.object.metadata.name;
    };
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 4, overflow: 'coalesce', keyOf });
    const [folds, waits] = [broadcaster.watch(), broadcaster.watch({ overflow: 'wait' })];
    publish(broadcaster, [event(1), event(2, 'BAD'), event(3)]);
    expect(folds.stopped).toBe(true);
    expect(id((await folds.next()).value)).toBe(1);
    await expect(folds.next()).rejects.toEqual(new Error('no key'));
    expect(await folds.next()).toEqual(done);
    expect(ids(readAll(waits))).toEqual([1, 2, 3]);
    expect(broadcaster.watchers).toBe(1);
  });

  test('a keyOf that throws far behind ends the lagging watches after the earlier events, with exact counts', async () => {
    let bad = 70;
    const keyOf = (of: TestEvent): string => {
      if (of.object.id === bad) throw new Error('no key');
      return of.object.id % 2 === 0 ? 'even' : 'odd';
    };
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 4, overflow: 'coalesce', keyOf });
    const [a, b, small] = [broadcaster.watch(), broadcaster.watch(), broadcaster.watch({ capacity: 1 })];
    publish(broadcaster, events(0, 100));
    bad = -1;
    const fresh = broadcaster.watch();
    publish(broadcaster, events(100, 200));
    expect(a).toMatchObject({ queued: 2, dropped: 68, stopped: true });
    expect([id(b.tryNext()), id(b.tryNext())]).toEqual([68, 69]);
    expect(() => b.tryNext()).toThrow('no key');
    expect(await b.next()).toEqual(done);
    expect(b).toMatchObject({ queued: 0, dropped: 68, stopped: true });
    expect(await a.return()).toEqual(done);
    expect(a.dropped).toBe(70);
    expect(readAll(small).map(missed)).toEqual([200]); // it had overflowed before
    expect(ids(readAll(fresh))).toEqual([198, 199]);
    expect(broadcaster.watchers).toBe(1);
  });

  test('a thousand laggards at one position cost one keyOf call per event once they are judged', () => {
    let asked = 0;
    const keyOf = (of: TestEvent): string => {
      asked++;
      return `${of.object.id % 7}`;
    };
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 16, overflow: 'coalesce', keyOf });
    const watches = Array.from({ length: 1000 }, () => broadcaster.watch());
    publish(broadcaster, events(0, 64));
    asked = 0;
    publish(broadcaster, events(64, 64 + 1600));
    expect(asked).toBe(1600);
    for (const watch of [watches[0], watches[999]]) {
      expect(watch).toMatchObject({ queued: 7, dropped: 1664 - 7 });
    }
  });

  test('a thousand watchers that fall behind together cost one keyOf call per event, and none sees what another reads', () => {
    let asked = 0;
    const keyOf = (of: TestEvent): string => {
      asked++;
      return `${of.object.id % 7}`;
    };
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 16, overflow: 'coalesce', keyOf });
    const early = broadcaster.watch();
    publish(broadcaster, [event(-1)]);
    const watches = Array.from({ length: 1000 }, () => broadcaster.watch());
    const [small, filtered] = [broadcaster.watch({ capacity: 3 }), broadcaster.watch({ filter: () => true })];
    asked = 0;
    publish(broadcaster, events(0, 70));
    expect(watches[0]).toMatchObject({ queued: 7, dropped: 70 - 7 });
    expect(id(watches[1]?.tryNext())).toBe(63);
    // Once for all, and once for each who has something else: who came before, who holds less, who has a filter.
    expect(asked).toBeLessThan(5 * 70);
    for (const watch of [watches[0], watches[2], watches[999], filtered])
      expect(ids(readAll(watch as NonNullable<typeof watch>))).toEqual(range(63, 70));
    expect(ids(readAll(watches[1] as NonNullable<(typeof watches)[1]>))).toEqual(range(64, 70));
    expect(early).toMatchObject({ queued: 8, dropped: 71 - 8 });
    expect(readAll(small).map(missed)).toEqual([70]);
    // They fall behind together once more, and what they dropped before stays counted.
    publish(broadcaster, events(70, 140));
    expect(watches[3]).toMatchObject({ queued: 7, dropped: 140 - 7 });
    expect(watches[0]).toMatchObject({ queued: 7, dropped: 140 - 14 });
    expect(ids(readAll(watches[0] as NonNullable<(typeof watches)[0]>))).toEqual(range(133, 140));
  });

  test('a watcher that is already cut, and falls behind with others, has lost everything', () => {
    const keyOf = (of: TestEvent): string => `${of.object.id % 7}`;
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 16, overflow: 'coalesce', keyOf });
    const small = broadcaster.watch({ capacity: 3 });
    publish(broadcaster, events(0, 100));
    const others = [broadcaster.watch(), broadcaster.watch()];
    expect(small.dropped).toBe(100); // it stands where they do, now
    publish(broadcaster, events(100, 200));
    for (const other of others) expect(other).toMatchObject({ queued: 7, dropped: 100 - 7 });
    expect(small.dropped).toBe(200);
    expect(readAll(small).map(missed)).toEqual([200]);
  });

  test('laggards that fell behind at different positions have each seen every change since', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'coalesce' });
    const watches: ReturnType<typeof broadcaster.watch>[] = [];
    for (let i = 0; i < 200; i++) {
      if (i % 20 === 0) watches.push(broadcaster.watch());
      broadcaster.tryPublish(event(i, 'MODIFIED', 'k'));
    }
    const order = [3, 0, 9, 5, 1, 2, 4, 8, 6, 7];
    for (const [nth, at] of order.entries()) {
      expect(watches[at]).toMatchObject({ queued: 1, dropped: 199 - at * 20 + nth });
      expect(ids(readAll(watches[at]!))).toEqual([199 + nth]);
      broadcaster.tryPublish(event(200 + nth, 'MODIFIED', 'k'));
    }
  });
});

describe('exact counts with a filter: rejected events take no room and are not losses', () => {
  const even = (of: TestEvent): boolean => of.object.id % 2 === 0;
  const kept: Readonly<Record<Exclude<Overflow, 'wait' | 'coalesce'>, readonly number[]>> = {
    'drop-newest': [0, 2, 4],
    'drop-oldest': [94, 96, 98],
    disconnect: [0, 2, 4],
  };
  test.each(policiesWith<keyof typeof kept>({ waits: false, folds: false }))("'%s'", (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 3, overflow });
    const watch = broadcaster.watch({ filter: even });
    publish(broadcaster, events(0, 100));
    expect(watch).toMatchObject({ queued: 3, dropped: 47 });
    const read = readAll(watch);
    expect(ids(read.slice(0, 3))).toEqual(kept[overflow]);
    expect(read.slice(3).map(missed)).toEqual(overflow === 'disconnect' ? [47] : []);
  });

  test("'coalesce'", () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 50, overflow: 'coalesce' });
    const watch = broadcaster.watch({ filter: even });
    publish(broadcaster, events(0, 100));
    expect(watch).toMatchObject({ queued: 50, dropped: 0, stopped: false });
    publish(broadcaster, events(100, 102));
    expect(watch).toMatchObject({ queued: 0, dropped: 51, stopped: true });
  });

  test("'wait': a full watcher lets rejected events pass before they are distributed", () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 1 });
    const watch = broadcaster.watch({ filter: even });
    const accepted = ids(events(0, 6).filter((one) => broadcaster.tryPublish(one)));
    expect(accepted).toEqual([0, 1, 2]); // 1 passed, 2 waits in the incoming queue
    expect(watch.queued).toBe(1);
    expect(id(watch.tryNext())).toBe(0);
    expect(broadcaster.tryPublish(event(3))).toBe(true);
    expect(broadcaster.tryPublish(event(5))).toBe(true);
    expect(broadcaster.tryPublish(event(6))).toBe(true);
    expect(broadcaster.tryPublish(event(7))).toBe(false);
    expect(ids(readAll(watch))).toEqual([2, 6]);
  });

  test('a filter is called once per event, in order, whoever triggers it', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 2, incoming: 3 });
    for (const overflow of OVERFLOWS) {
      const asked: number[] = [];
      const filter = (of: TestEvent): boolean => asked.push(of.object.id) > 0 && even(of);
      const own = new Broadcaster<TestEvent>({ capacity: 2, incoming: 3, overflow });
      const watch = own.watch({ filter });
      for (const one of events(0, 100)) {
        own.tryPublish(one);
        if (one.object.id % 10 === 0) expect(watch.queued + watch.dropped).toBeGreaterThan(0);
        if (one.object.id % 30 === 0) watch.tryNext();
      }
      readAll(watch);
      expect(asked).toEqual([...new Set(asked)].sort((a, b) => a - b));
    }
    expect(broadcaster.watchers).toBe(0);
  });
});

describe('onGap', () => {
  /** Events and gaps as they come. */
  function recorded(
    overflow: Overflow,
    capacity = 2,
  ): { broadcaster: TestBroadcaster; watch: ReturnType<TestBroadcaster['watch']>; gaps: number[] } {
    const broadcaster = new Broadcaster<TestEvent>({ capacity, overflow });
    const gaps: number[] = [];
    return { broadcaster, gaps, watch: broadcaster.watch({ onGap: (count) => gaps.push(count) }) };
  }

  test('is called right before the first event after the gap, not earlier', () => {
    const { broadcaster, watch, gaps } = recorded('drop-newest');
    publish(broadcaster, events(0, 5));
    expect([id(watch.tryNext()), gaps]).toEqual([0, []]);
    publish(broadcaster, events(5, 6));
    expect([id(watch.tryNext()), gaps]).toEqual([1, []]);
    expect(watch.queued).toBe(1);
    expect(gaps).toEqual([]);
    expect([id(watch.tryNext()), gaps]).toEqual([5, [3]]);
    publish(broadcaster, events(6, 7));
    expect([id(watch.tryNext()), gaps]).toEqual([6, [3]]);
  });

  test("with 'drop-oldest', it is called at once", () => {
    const { broadcaster, watch, gaps } = recorded('drop-oldest');
    publish(broadcaster, events(0, 5));
    expect(gaps).toEqual([]);
    expect([id(watch.tryNext()), gaps]).toEqual([3, [3]]);
    expect([id(watch.tryNext()), gaps]).toEqual([4, [3]]);
  });

  test('a batch ends before a gap', async () => {
    const { broadcaster, watch, gaps } = recorded('drop-newest', 3);
    const batches = watch.batches();
    publish(broadcaster, events(0, 5));
    watch.tryNext();
    publish(broadcaster, events(5, 6));
    expect(ids((await batches.next()).value ?? [])).toEqual([1, 2]);
    expect(gaps).toEqual([]);
    expect(ids((await batches.next()).value ?? [])).toEqual([5]);
    expect(gaps).toEqual([2]);
  });

  test('without onGap, a batch is everything that is queued, whatever was lost in between', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 3, overflow: 'drop-newest' });
    const watch = broadcaster.watch();
    const batches = watch.batches();
    publish(broadcaster, events(0, 5));
    watch.tryNext();
    publish(broadcaster, events(5, 6));
    expect([watch.queued, watch.dropped]).toEqual([3, 2]);
    expect(ids((await batches.next()).value ?? [])).toEqual([1, 2, 5]);
  });

  test('without onGap, a batch that has waited is everything that is queued, too', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-oldest' });
    const watch = broadcaster.watch();
    const batch = watch.batches().next();
    publish(broadcaster, events(0, 3));
    expect(ids((await batch).value ?? [])).toEqual([0, 2]);
    expect([watch.queued, watch.dropped]).toEqual([0, 1]);
  });

  test('a gap at the very end is reported only by the count', async () => {
    const { broadcaster, watch, gaps } = recorded('drop-newest');
    publish(broadcaster, events(0, 5));
    await broadcaster.shutdown();
    expect(ids(readAll(watch))).toEqual([0, 1]);
    expect(gaps).toEqual([]);
    expect(watch.dropped).toBe(3);
  });

  test('if it throws, only this watch ends with the error; the event after the gap is not delivered', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-oldest' });
    const watch = broadcaster.watch({
      onGap: () => {
        throw new Error('no gaps');
      },
    });
    const other = broadcaster.watch();
    publish(broadcaster, events(0, 3));
    await expect(watch.next()).rejects.toEqual(new Error('no gaps'));
    expect(await watch.next()).toEqual(done);
    expect(watch).toMatchObject({ stopped: true, queued: 0, dropped: 3 });
    expect(broadcaster.watchers).toBe(1);
    expect(ids(readAll(other))).toEqual([2]);
  });

  test('a pending read reports the gap', async () => {
    const { broadcaster, watch, gaps } = recorded('drop-newest', 0);
    publish(broadcaster, events(0, 3));
    const read = watch.next();
    publish(broadcaster, events(3, 5));
    expect(gaps).toEqual([]);
    expect(id((await read).value)).toBe(3);
    expect(gaps).toEqual([3]);
    expect(watch.dropped).toBe(4);
  });

  test('reports a gap of many lost events, far behind', () => {
    const { broadcaster, watch, gaps } = recorded('drop-newest', 20);
    publish(broadcaster, events(0, 500));
    expect(ids(readAll(watch))).toEqual(range(0, 20));
    publish(broadcaster, events(500, 510));
    expect(ids(readAll(watch))).toEqual(range(500, 510));
    expect(gaps).toEqual([480]);
  });
});
