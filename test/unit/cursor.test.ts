import { describe, expect, test } from 'vitest';
import { Cursor } from '../../src/broadcast/cursor.ts';
import { type CursorState, noState } from '../../src/broadcast/cursor-state.ts';
import { Mux } from '../../src/broadcast/mux.ts';
import { type CursorOptions, POLICIES } from '../../src/broadcast/policies.ts';
import { OVERFLOWS, type Overflow } from '../../src/watch/overflow.ts';
import { LOSSY, policiesWith } from '../policies.ts';
import { event, events, id, ids, range, readAll, type TestEvent, turn } from './support.ts';

/** The engine with its lid off: chunks of 16. */
class Rig {
  readonly mux: Mux<TestEvent>;
  asked = 0;

  constructor(keyOf: (of: TestEvent) => string = (of) => `${of.object.id % 3}`) {
    this.mux = new Mux({
      capacity: 16,
      incoming: 25,
      keyOf: (of) => {
        this.asked++;
        return keyOf(of);
      },
    });
  }

  watch(overflow: Overflow, capacity = 16, more: Partial<CursorOptions<TestEvent>> = {}): Cursor<TestEvent> {
    const cursor = new Cursor(this.mux.all, {
      policy: POLICIES[overflow],
      capacity,
      filter: undefined,
      onGap: undefined,
      ...more,
    });
    cursor.join([], { place: 0 });
    return cursor;
  }

  publish(from: number, to: number): number {
    return events(from, to).filter((one) => this.mux.accept(one)).length;
  }

  /** What is held for anybody. */
  get held(): Record<'needs' | 'stored' | 'retained' | 'due' | 'gated' | 'links', number> {
    const { log, laggards, gate, chain } = this.mux.all as unknown as {
      log: { needs: number; chunks: ({ events: unknown[] } | undefined)[]; retained: number | { value: number } };
      laggards: { sets: Map<number, Row> };
      gate: { members: Row };
      chain: { links: unknown[] };
    };
    return {
      needs: log.needs,
      stored: log.chunks.reduce((sum, chunk) => sum + (chunk?.events.length ?? 0), 0),
      retained: typeof log.retained === 'number' ? log.retained : log.retained.value,
      due: [...laggards.sets.values()].reduce((sum, set) => sum + length(set), 0),
      gated: length(gate.members),
      links: chain.links.length,
    };
  }
}

interface Row {
  readonly first: { readonly after: Row['first'] } | undefined;
}

function length(row: Row): number {
  let count = 0;
  for (let member = row.first; member !== undefined; member = member.after) count++;
  return count;
}

/** What a watcher has set aside. */
function extraOf(cursor: Cursor<TestEvent>): CursorState<TestEvent> {
  return (cursor as unknown as { state: CursorState<TestEvent> }).state;
}

function setAside(cursor: Cursor<TestEvent>): unknown {
  return (extraOf(cursor).kept as unknown as { events: unknown }).events;
}

const NOTHING = { needs: 0, stored: 0, retained: 0, due: 0, gated: 0, links: 0 };

describe('a laggard', () => {
  test.each(['drop-newest', 'disconnect'] as const)("'%s' needs nothing from the log until it is read", (overflow) => {
    const rig = new Rig();
    const cursor = rig.watch(overflow);
    rig.publish(0, 31);
    expect(rig.held).toMatchObject({ needs: 1, due: 1 });
    rig.publish(31, 200);
    expect(rig.held).toEqual(NOTHING);
    expect(cursor.queued).toBe(16);
    expect(rig.held).toMatchObject({ needs: 1, due: 1 });
    rig.publish(200, 300);
    expect(rig.held).toEqual(NOTHING);
    expect(cursor.dropped).toBe(284);
    cursor.stop();
    expect(rig.held).toEqual(NOTHING);
  });

  test("'drop-oldest' needs the last events, up to its capacity", () => {
    const rig = new Rig();
    const cursor = rig.watch('drop-oldest', 20);
    rig.publish(0, 1000);
    expect(rig.held).toMatchObject({ needs: 1, due: 0, retained: 20 });
    expect(rig.held.stored).toBeLessThanOrEqual(20 + 2 * 16);
    expect(rig.held.stored).toBeGreaterThanOrEqual(20);
    expect(cursor.queued).toBe(20);
    expect(rig.held).toMatchObject({ needs: 1, due: 1, retained: 0 });
    expect(ids(readAll(cursor))).toEqual(range(980, 1000));
    expect(rig.held.stored).toBeLessThanOrEqual(16);
  });

  test("'drop-oldest' with nothing set aside takes no memory of its own", () => {
    const rig = new Rig();
    const cursor = rig.watch('drop-oldest');
    rig.publish(0, 200);
    expect(rig.held).toMatchObject({ needs: 1, due: 0 });
    expect(extraOf(cursor)).toBe(noState());
  });

  test("'drop-oldest' discards what it had set aside once its whole queue is in the log's last events", () => {
    const rig = new Rig();
    const cursor = rig.watch('drop-oldest');
    rig.publish(0, 20);
    expect(cursor.queued).toBe(16);
    expect(extraOf(cursor).kept.length).toBe(16);
    rig.publish(20, 200);
    expect(rig.held).toMatchObject({ needs: 1, due: 0 });
    expect(extraOf(cursor).kept.length).toBe(0);
    expect(ids(readAll(cursor))).toEqual(range(184, 200));
  });

  test('watchers in step share one array of events that they set aside', () => {
    const rig = new Rig();
    const [a, b] = [rig.watch('drop-newest'), rig.watch('disconnect')];
    rig.publish(0, 200);
    expect(setAside(a)).toEqual(events(0, 16));
    expect(setAside(b)).toBe(setAside(a));
  });

  test('watchers in step share one array of what they have not read when they are stopped', () => {
    const rig = new Rig();
    const [a, b] = [rig.watch('drop-newest'), rig.watch('wait')];
    rig.publish(0, 5);
    a.stop();
    b.stop();
    expect(setAside(b)).toBe(setAside(a));
    expect([ids(readAll(a)), ids(readAll(b))]).toEqual([range(0, 5), range(0, 5)]);
  });

  test("'coalesce' shares one fold with all others at its position, and needs the log only until it is folded", () => {
    const rig = new Rig();
    const cursors = [rig.watch('coalesce'), rig.watch('coalesce')];
    rig.publish(0, 1000);
    expect(rig.held).toMatchObject({ needs: 1, due: 0, links: 1, retained: 0 });
    expect(rig.held.stored).toBeLessThan(16);
    expect(cursors[0]!.queued).toBe(3);
    expect(rig.held).toMatchObject({ needs: 2, due: 1, links: 1 });
    expect(cursors[1]!.queued).toBe(3);
    expect(rig.held).toMatchObject({ needs: 2, due: 2, links: 0 });
    expect(cursors.map((cursor) => cursor.dropped)).toEqual([997, 997]);
  });

  test("'coalesce' does not share what it had folded before with one that has read it", () => {
    const rig = new Rig((of) => (of.object.id < 3 ? `${of.object.id}` : 'k'));
    const [looked, read] = [rig.watch('coalesce'), rig.watch('coalesce')];
    rig.publish(0, 3);
    expect([looked.queued, readAll(read).length]).toEqual([3, 3]);
    rig.publish(3, 100);
    expect(rig.held).toMatchObject({ due: 0, links: 1 });
    expect([looked.queued, looked.dropped]).toEqual([4, 96]);
    expect([ids(readAll(read)), read.dropped]).toEqual([[99], 96]);
  });

  test("'coalesce' shares its next fold, although it has folded, and been read, before", () => {
    const rig = new Rig();
    const cursors = [rig.watch('coalesce'), rig.watch('coalesce')];
    rig.publish(0, 5);
    expect(cursors.map((cursor) => ids(readAll(cursor)))).toEqual([
      [3, 4, 2],
      [3, 4, 2],
    ]);
    rig.publish(5, 100);
    expect(rig.held).toMatchObject({ due: 0, links: 1 });
    expect(cursors.map(({ queued, dropped }) => [queued, dropped])).toEqual([
      [3, 94],
      [3, 94],
    ]);
    expect(rig.asked).toBe(2 * 5 + (96 - 5) + 2 * (100 - 96)); // each asks about the first and last ones by itself
  });

  test("'coalesce' is cut when the changes that are folded for it have too many keys, however few it has of its own", () => {
    const rig = new Rig((of) => `${of.object.id < 40 ? 'k' : of.object.id}`);
    const cursor = rig.watch('coalesce');
    rig.publish(0, 300);
    expect(rig.held).toMatchObject({ due: 0, links: 1 });
    expect([cursor.stopped, cursor.queued, cursor.dropped]).toEqual([true, 0, 300]);
    expect(cursor.tryNext()).toMatchObject({ type: 'ERROR', object: { code: 410, details: { missed: 300 } } });
  });

  test("'coalesce' counts an object that came and went, as long as it is not told to forget it", () => {
    const rig = new Rig((of) => of.object.metadata.name);
    const cursor = rig.watch('coalesce', 1);
    for (const type of ['ADDED', 'DELETED']) rig.mux.accept(event(0, type, 'a'));
    expect([cursor.queued, cursor.stopped]).toEqual([0, false]);
    rig.mux.accept(event(1, 'ADDED', 'b'));
    expect(cursor.stopped).toBe(true);
  });

  test("'coalesce' that has been cut needs nothing", () => {
    const rig = new Rig((of) => `${of.object.id}`);
    const cursor = rig.watch('coalesce', 5);
    rig.publish(0, 10);
    expect(cursor.stopped).toBe(true);
    rig.publish(10, 500);
    expect(rig.held).toEqual(NOTHING);
    expect(rig.asked).toBe(6);
    expect(cursor.dropped).toBe(500);
  });

  test("'wait' keeps its position, and is at the gate", () => {
    const rig = new Rig();
    const cursor = rig.watch('wait');
    expect(rig.publish(0, 100)).toBe(16 + 25);
    expect(rig.held).toMatchObject({ needs: 1 + 25, due: 0, gated: 1, stored: 41 }); // 25 events wait
    expect(cursor.queued).toBe(16);
  });

  test.each(policiesWith({ waits: false }))("'%s' with a filter keeps its position, and has seen each event", (overflow) => {
    const rig = new Rig();
    let asked = 0;
    const cursor = rig.watch(overflow, 16, { filter: () => ++asked > 0 });
    rig.publish(0, 1000);
    expect(rig.held).toMatchObject({ needs: 1, due: 1 });
    expect(rig.held.stored).toBeLessThanOrEqual(16 + 3 * 16);
    expect(asked).toBeGreaterThan(900);
    expect(cursor.queued + cursor.dropped).toBe(1000);
  });

  test.each(['drop-newest', 'disconnect'] as const)("'%s' whose counts are read needs no more, either", (overflow) => {
    const rig = new Rig();
    const cursor = rig.watch(overflow, 64);
    for (let at = 0; at < 400; at++) {
      rig.publish(at, at + 1);
      if (at % 50 === 49) expect(cursor.queued).toBe(Math.min(64, at + 1));
      expect(extraOf(cursor).kept.length + rig.held.stored).toBeLessThanOrEqual(64 + 2 * 16);
    }
  });

  test.each(LOSSY)(
    "'%s' with a filter needs no more of the log than its queue has room for, rounded up to chunks",
    (overflow) => {
      const rig = new Rig();
      const cursor = rig.watch(overflow, 64, { filter: () => true });
      for (let at = 0; at < 400; at++) {
        rig.publish(at, at + 1);
        expect(extraOf(cursor).kept.length + rig.held.stored).toBeLessThanOrEqual(64 + 2 * 16);
      }
      expect(cursor.queued).toBe(64);
    },
  );

  test.each(policiesWith({ waits: false }))(
    "'%s' with pending reads is not one: it gets the events that it was promised",
    async (overflow) => {
      const rig = new Rig();
      const cursor = rig.watch(overflow, 1);
      const reads = [cursor.next(), cursor.next()];
      rig.publish(0, 100);
      expect(rig.held.due).toBe(1);
      expect((await Promise.all(reads)).map(({ value }) => id(value))).toEqual([0, 1]);
      if (overflow === 'drop-oldest') expect(ids(readAll(cursor))).toEqual([99]);
      if (overflow === 'drop-newest') expect(ids(readAll(cursor))).toEqual([2]);
    },
  );

  test("'drop-oldest' that was looked at keeps the event that a pending read was promised", async () => {
    const rig = new Rig();
    const cursor = rig.watch('drop-oldest', 1);
    const read = cursor.next();
    rig.publish(0, 3);
    expect(cursor.stopped).toBe(false); // which decides on the events so far
    rig.publish(3, 100);
    expect(id((await read).value)).toBe(0);
    expect(ids(readAll(cursor))).toEqual([99]);
  });

  test.each(['wait', 'drop-newest'] as const)("'%s' with a filter is not woken if it has no pending read", (overflow) => {
    const rig = new Rig();
    const cursor = rig.watch(overflow, 1, { filter: ({ object }) => object.id % 2 === 0 });
    expect(rig.publish(0, 26)).toBe(26);
    expect(cursor.queued).toBe(1);
    expect(cursor.isWaiting).toBe(false);
  });

  test('a watcher that reads along is not one', () => {
    const rig = new Rig();
    const cursor = rig.watch('drop-newest', 40);
    for (let i = 0; i < 500; i++) {
      rig.publish(i, i + 1);
      expect(id(cursor.tryNext())).toBe(i);
    }
    expect(rig.held).toMatchObject({ needs: 1, due: 1 });
    expect(rig.held.stored).toBeLessThanOrEqual(16);
    expect(cursor.dropped).toBe(0);
  });
});

describe('reads directly from the log', () => {
  /** A watcher that has read, and has had nothing to decide since. */
  async function inStep(
    rig: Rig,
    overflow: Overflow,
    capacity = 16,
    more: Partial<CursorOptions<TestEvent>> = {},
  ): Promise<Cursor<TestEvent>> {
    const cursor = rig.watch(overflow, capacity, more);
    const first = cursor.next();
    rig.publish(0, 1);
    expect(id((await first).value)).toBe(0);
    return cursor;
  }

  test('set nothing aside, and retain nothing that was read', async () => {
    const rig = new Rig();
    const cursor = await inStep(rig, 'wait');
    for (let i = 1; i < 100; i += 2) {
      const waits = cursor.next();
      rig.publish(i, i + 2);
      expect([id((await waits).value), id((await cursor.next()).value)]).toEqual([i, i + 1]);
    }
    expect(cursor.tryNext()).toBeUndefined();
    expect(extraOf(cursor)).toBe(noState());
    expect(rig.held.stored).toBeLessThanOrEqual(16);
    cursor.stop();
    expect(rig.held).toEqual(NOTHING);
  });

  test('do not overtake a pending read', async () => {
    const rig = new Rig();
    const cursor = await inStep(rig, 'wait');
    for (const [from, late] of [
      [1, () => cursor.next()],
      [3, () => cursor.nextBatch()],
    ] as const) {
      const waits = cursor.next();
      rig.publish(from, from + 2);
      const behind = late();
      expect(id((await waits).value)).toBe(from);
      expect([(await behind).value].flat()).toEqual([event(from + 1)]);
    }
  });

  test('a batch is everything that is queued, and is not the end', async () => {
    const rig = new Rig();
    const cursor = await inStep(rig, 'wait');
    rig.publish(1, 4);
    expect(await cursor.nextBatch()).toEqual({ done: false, value: events(1, 4) });
  });

  test('watchers in step get the same batch, directly from the log or not', async () => {
    const rig = new Rig();
    const cursors = [rig.watch('wait'), rig.watch('drop-oldest')];
    rig.publish(0, 5);
    const [a, b] = cursors.map((cursor) => cursor.tryBatch());
    expect(a).toEqual(events(0, 5));
    expect(b).toBe(a);
    rig.publish(5, 8);
    const [c, d] = await Promise.all(cursors.map((cursor) => cursor.nextBatch()));
    expect(c?.value).toEqual(events(5, 8));
    expect(d?.value).toBe(c?.value);
  });

  test('watchers in step get the same batch, though others with an empty queue are looked at and stopped', () => {
    const rig = new Rig();
    const [first, second, none] = [rig.watch('wait'), rig.watch('wait'), rig.watch('drop-newest', 0)];
    rig.publish(0, 5);
    const batch = first.tryBatch();
    expect(none.dropped).toBe(5);
    expect(first.sizeOfQueue(() => 1)).toBe(0);
    first.stop();
    expect(second.sizeOfQueue(() => 1)).toBe(5);
    expect(second.tryBatch()).toBe(batch);
    expect(extraOf(first)).toBe(noState());
  });

  test('of the watcher that head waits for let head move on', async () => {
    const rig = new Rig();
    const cursor = await inStep(rig, 'wait', 3);
    rig.publish(1, 20);
    expect(rig.mux.log.head).toBe(4);
    void cursor.next();
    expect(rig.mux.log.head).toBe(5);
    void cursor.nextBatch();
    expect(rig.mux.log.head).toBe(8);
  });

  test('a batch that has waited takes what the queue held, not what arrived when it was full', async () => {
    const rig = new Rig();
    const cursor = await inStep(rig, 'drop-newest', 2);
    const read = cursor.nextBatch();
    rig.publish(1, 10);
    expect(ids((await read).value ?? [])).toEqual([1, 2, 3]);
    expect(cursor.dropped).toBe(6);
  });

  test('do not happen while there is a gap to report', async () => {
    const rig = new Rig();
    const gaps: number[] = [];
    const cursor = await inStep(rig, 'drop-newest', 2, { onGap: (missed) => gaps.push(missed) });
    rig.publish(1, 6);
    expect([id((await cursor.next()).value), id((await cursor.next()).value)]).toEqual([1, 2]);
    rig.publish(6, 7);
    expect(gaps).toEqual([]);
    expect(id((await cursor.next()).value)).toBe(6);
    expect(gaps).toEqual([3]);
  });
});

describe('an aborted shutdown', () => {
  test('enters the chunks that head has reached: a watcher that has overflowed leaves the log, others stay', () => {
    const rig = new Rig();
    rig.watch('wait');
    const behind = rig.watch('drop-newest', 16); // due at 32
    expect(rig.publish(0, 31)).toBe(31);
    const near = rig.watch('drop-newest'); // due later
    expect(rig.publish(31, 41)).toBe(10);
    expect(rig.held).toMatchObject({ needs: 3 + 25, due: 2 });
    rig.mux.closing = true;
    rig.mux.force();
    expect(rig.mux.log).toMatchObject({ head: 41, end: 41 });
    expect(rig.held).toMatchObject({ needs: 2, due: 1 });
    expect(behind).toMatchObject({ queued: 16, dropped: 25 });
    expect(near).toMatchObject({ queued: 10, dropped: 0 });
  });
});

describe('leaving', () => {
  const leaves: [string, (cursor: Cursor<TestEvent>) => unknown][] = [
    ['stop', (cursor) => cursor.stop()],
    ['return', (cursor) => cursor.return()],
    ['an error', (cursor) => cursor.fail(new Error('x'))],
    ['twice', (cursor) => [cursor.stop(), cursor.fail(new Error('x')), cursor.return()]],
  ];
  for (const overflow of OVERFLOWS)
    for (const count of [0, 3, 16, 17, 200])
      test.each(leaves)(`'${overflow}' after ${count} events, by %s: retains nothing`, (_name, leave) => {
        const rig = new Rig();
        const cursors = [rig.watch(overflow), rig.watch(overflow)];
        rig.publish(0, count);
        leave(cursors[0]!);
        expect(rig.mux.watchers).toBe(1);
        rig.publish(count, count + 40);
        leave(cursors[1]!);
        expect(rig.mux.watchers).toBe(0);
        expect(rig.held).toEqual(NOTHING);
        for (const cursor of cursors) expect(cursor.stopped).toBe(true);
      });

  test.each(OVERFLOWS)("'%s': retains nothing after it was read to the end", (overflow) => {
    const rig = new Rig();
    const cursor = rig.watch(overflow);
    rig.publish(0, 3);
    rig.mux.closing = true;
    rig.mux.pump();
    expect(rig.mux).toMatchObject({ closed: true, watchers: 1 });
    expect(readAll(cursor)).toHaveLength(3);
    expect(rig.mux.watchers).toBe(0);
    expect(rig.held).toEqual(NOTHING);
  });

  test('a failure is reported once, after the queued events; a second one is not', async () => {
    const rig = new Rig();
    const cursor = rig.watch('wait');
    cursor.fail(new Error('first'));
    cursor.fail(new Error('second'));
    await expect(cursor.next()).rejects.toEqual(new Error('first'));
    expect((await cursor.next()).done).toBe(true);
  });

  test('a failure reaches a pending read', async () => {
    const rig = new Rig();
    const cursor = rig.watch('wait');
    const reads = [cursor.next(), cursor.next()];
    cursor.fail(new Error('x'));
    await expect(reads[0]).rejects.toEqual(new Error('x'));
    expect((await reads[1])?.done).toBe(true);
  });
});

describe('counts', () => {
  test("'drop-oldest': events that were set aside and then dropped make one gap", () => {
    const rig = new Rig();
    const gaps: number[] = [];
    const cursor = rig.watch('drop-oldest', 16, { onGap: (missed) => gaps.push(missed) });
    rig.publish(0, 20);
    expect(cursor).toMatchObject({ queued: 16, dropped: 4 });
    rig.publish(20, 120);
    expect(cursor).toMatchObject({ queued: 16, dropped: 104 });
    expect(ids(readAll(cursor))).toEqual(range(104, 120));
    expect(gaps).toEqual([104]);
  });

  test("'drop-oldest': the same, if it was looked at as a laggard in between", () => {
    const rig = new Rig();
    const gaps: number[] = [];
    const cursor = rig.watch('drop-oldest', 5, { onGap: (missed) => gaps.push(missed) });
    for (const [from, to] of [
      [0, 70],
      [70, 75],
      [75, 79],
      [79, 200],
    ] as const) {
      rig.publish(from, to);
      expect(cursor).toMatchObject({ queued: 5, dropped: to - 5 });
    }
    rig.publish(200, 203);
    expect(ids(readAll(cursor))).toEqual(range(198, 203));
    expect(gaps).toEqual([198]);
  });

  test('a pending read keeps its claim on the oldest event', async () => {
    const rig = new Rig();
    const cursor = rig.watch('drop-oldest', 2);
    const read = cursor.next();
    rig.publish(0, 10);
    expect(id((await read).value)).toBe(0);
    expect(ids(readAll(cursor))).toEqual([8, 9]);
    expect(cursor.dropped).toBe(7);
  });

  test("laggards of 'coalesce' at different positions: each counts what it did not get", () => {
    const rig = new Rig((of) => `${of.object.id}`);
    const small = rig.watch('coalesce', 20);
    rig.publish(0, 48);
    const large = rig.watch('coalesce', 200);
    rig.publish(48, 148);
    expect(small).toMatchObject({ queued: 0, dropped: 148, stopped: true });
    expect(large).toMatchObject({ queued: 100, dropped: 0, stopped: false });
  });

  test("'coalesce': too many keys only together with its own", () => {
    const names = (of: TestEvent): string => (of.object.id < 16 ? `a${of.object.id}` : `b${of.object.id % 4}`);
    for (const [capacity, cut] of [
      [19, true],
      [20, false],
    ] as const) {
      const rig = new Rig(names);
      const cursor = rig.watch('coalesce', capacity);
      rig.publish(0, 16);
      expect(cursor.queued).toBe(16);
      const other = rig.watch('coalesce', 1000);
      rig.publish(16, 200);
      expect(cursor.stopped).toBe(cut);
      expect(cursor).toMatchObject(cut ? { queued: 0, dropped: 200 } : { queued: 20, dropped: 180 });
      expect(other).toMatchObject({ queued: 4, dropped: 180 });
    }
  });

  test("'coalesce': a watcher with too many keys in one stretch gets nothing of a later one with few", () => {
    const rig = new Rig(({ object }) => (object.id < 48 ? 'k' : object.id < 96 ? `n${object.id % 10}` : 'z'));
    const [small, large] = [rig.watch('coalesce', 5), rig.watch('coalesce', 40)];
    rig.publish(0, 80);
    const later = rig.watch('coalesce', 40);
    rig.publish(80, 300);
    expect(rig.held).toMatchObject({ links: 3, due: 0 });
    expect(small).toMatchObject({ queued: 0, dropped: 300, stopped: true });
    expect(small.tryNext()).toMatchObject({ type: 'ERROR', object: { details: { missed: 300 } } });
    expect(small.tryNext()).toBeUndefined();
    expect(large).toMatchObject({ queued: 12, dropped: 288, stopped: false });
    expect(later).toMatchObject({ queued: 11, dropped: 209, stopped: false });
  });

  test.each([
    ['goes on', -1],
    ['throws in the same stretch, later', 140],
    ['throws in a later stretch', 280],
  ])("'coalesce': a small laggard among large ones has too many keys, before keyOf %s", (_name, bad) => {
    const rig = new Rig((of) => {
      if (of.object.id === bad) throw new Error('no key');
      return of.object.id < 100 ? 'k' : `n${of.object.id % 10}`;
    });
    const [small, large] = [rig.watch('coalesce', 5), rig.watch('coalesce', 40)];
    rig.publish(0, 100);
    const later = rig.watch('coalesce', 40);
    rig.publish(100, 300);
    expect(small).toMatchObject({ queued: 0, dropped: 300, stopped: true });
    expect(small.tryNext()).toMatchObject({ type: 'ERROR', object: { details: { missed: 300 } } });
    expect(large).toMatchObject({ queued: 11, dropped: (bad < 0 ? 300 : bad) - 11, stopped: bad >= 0 });
    expect(later).toMatchObject({ queued: 10, dropped: (bad < 0 ? 300 : bad) - 110, stopped: bad >= 0 });
    expect(readAllButErrors(large)).toHaveLength(11);
    if (bad >= 0) expect(() => large.tryNext()).not.toThrow();
  });
});

function readAllButErrors(cursor: Cursor<TestEvent>): TestEvent[] {
  const read: TestEvent[] = [];
  try {
    for (let one = cursor.tryNext(); one !== undefined; one = cursor.tryNext()) read.push(one);
  } catch (error) {
    expect(error).toEqual(new Error('no key'));
  }
  return read;
}

test.each([0, 1, 2, 17])(
  'a filter is called with the first event after the watch was created, even if that is number %i',
  (first) => {
    const rig = new Rig();
    rig.publish(0, first);
    const cursor = rig.watch('wait', 16, { filter: () => true });
    rig.publish(first, first + 2);
    expect(ids(readAll(cursor))).toEqual([first, first + 1]);
  },
);

describe('the gate asks a filter', () => {
  test('only for a watcher that may be full', () => {
    const rig = new Rig();
    let asked = 0;
    const cursor = rig.watch('wait', 10, { filter: () => ++asked > 0 });
    rig.publish(0, 5);
    expect(cursor.bound()).toBe(10);
    rig.publish(5, 10);
    expect(asked).toBe(0);
    rig.publish(10, 11);
    expect(asked).toBeGreaterThan(0);
    expect(cursor.queued).toBe(10);
  });

  test('not for a watcher without one, however full', () => {
    const rig = new Rig();
    const cursor = rig.watch('wait', 0);
    rig.publish(0, 3);
    expect(cursor.bound()).toBe(0);
    expect(cursor.queued).toBe(0);
    expect(extraOf(cursor)).toBe(noState());
  });

  test('not with undistributed events, if rejected events have made room', () => {
    const rig = new Rig();
    const asked: number[] = [];
    rig.watch('wait', 2);
    const cursor = rig.watch('wait', 2, { filter: (of) => asked.push(of.object.id) < 0 });
    rig.publish(0, 5);
    expect(rig.mux.log).toMatchObject({ head: 2, end: 5 });
    expect(cursor.bound()).toBe(4);
    expect(asked).toEqual([0, 1]);
  });

  test('with undistributed events, as long as they are rejected', () => {
    const rig = new Rig();
    const asked: number[] = [];
    const filter = (of: TestEvent): boolean => asked.push(of.object.id) > 0 && of.object.id % 10 === 0;
    const cursor = rig.watch('wait', 1, { filter });
    expect(rig.publish(0, 100)).toBe(11 + 24);
    expect(asked).toEqual(range(0, 11));
    expect(rig.mux.log).toMatchObject({ head: 10, end: 35 });
    expect(ids(readAll(cursor))).toEqual([0, 10, 20, 30]);
    expect(asked).toEqual(range(0, 35));
  });
});

describe('waking', () => {
  test('a batch is served at the end of the turn, with all its events', async () => {
    const rig = new Rig();
    const cursor = rig.watch('wait');
    const read = cursor.nextBatch();
    rig.publish(0, 3);
    expect(cursor.isWaiting).toBe(true);
    expect(ids((await read).value ?? [])).toEqual([0, 1, 2]);
    expect(cursor.isWaiting).toBe(false);
  });

  test('a few that all wait for one event are served by the publisher, whose turn ends before they run', async () => {
    const rig = new Rig();
    const cursors = range(0, 16).map(() => rig.watch('wait'));
    const got: number[] = [];
    for (const cursor of cursors) void cursor.next().then(({ value }) => got.push(id(value) ?? -1));
    rig.publish(0, 10);
    expect(cursors.map((cursor) => cursor.isWaiting)).not.toContain(true);
    expect(rig.held.stored).toBe(9);
    expect(got).toEqual([]);
    await turn();
    expect(got).toEqual(cursors.map(() => 0));
    for (const cursor of cursors) expect(ids(readAll(cursor))).toEqual(range(1, 10));
  });

  test('an event that a few have got at once is stored nowhere, in whatever chunk', async () => {
    const rig = new Rig();
    const cursor = rig.watch('drop-newest', 16);
    rig.publish(0, 10);
    expect(ids(readAll(cursor))).toEqual(range(0, 10));
    for (let next = 10; next < 100; next++) {
      const read = cursor.next();
      rig.publish(next, next + 1);
      expect(id((await read).value)).toBe(next);
      expect(rig.held).toMatchObject({ needs: 1, stored: 0, due: 1 });
    }
    rig.publish(100, 200);
    expect(rig.held).toEqual(NOTHING);
    expect(cursor).toMatchObject({ queued: 16, dropped: 84 });
    expect(ids(readAll(cursor))).toEqual(range(100, 116));
  });

  test.each<[string, (cursor: Cursor<TestEvent>) => unknown, Partial<CursorOptions<TestEvent>>]>([
    ['does not read', () => undefined, {}],
    ['reads a batch', (cursor) => cursor.nextBatch(), {}],
    ['has a filter', (cursor) => cursor.next(), { filter: () => true }],
    ['has two pending reads', (cursor) => [cursor.next(), cursor.next()], {}],
    ['folds', (cursor) => cursor.next(), { policy: POLICIES.coalesce }],
  ])('the publisher serves one beside another that %s, and not that one', async (_what, read, options) => {
    const rig = new Rig();
    const other = rig.watch('wait', 16, options);
    read(other);
    const { isWaiting } = other;
    const cursor = rig.watch('wait');
    const first = cursor.next();
    rig.publish(0, 1);
    expect([cursor.isWaiting, other.isWaiting]).toEqual([false, isWaiting]);
    expect(rig.held.stored).toBe(1);
    rig.publish(1, 2);
    expect(id((await first).value)).toBe(0);
    expect(ids(readAll(cursor))).toEqual([1]);
  });

  test('the publisher serves nobody if there are many', async () => {
    const rig = new Rig();
    const cursors = range(0, 17).map(() => rig.watch('wait'));
    const reads = cursors.map((cursor) => cursor.next());
    rig.publish(0, 2);
    expect(cursors.map((cursor) => cursor.isWaiting)).not.toContain(false);
    expect((await Promise.all(reads)).map(({ value }) => id(value))).toEqual(cursors.map(() => 0));
    for (const cursor of cursors) expect(ids(readAll(cursor))).toEqual([1]);
  });

  test('a pending read whose filter rejects everything continues to wait', async () => {
    const rig = new Rig();
    const cursor = rig.watch('wait', 1, { filter: () => false });
    void cursor.next();
    rig.publish(0, 50);
    await turn();
    expect(cursor).toMatchObject({ isWaiting: true, waiting: 1, queued: 0 });
  });
});
