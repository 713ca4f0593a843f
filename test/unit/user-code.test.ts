import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { done, event, events, fate, id, ids, range, readAll, type TestEvent, turn } from './support.ts';

const POLICIES = ['wait', 'drop-newest', 'drop-oldest', 'disconnect', 'coalesce'] as const;

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

  test('watching gives what comes after', async () => {
    const broadcaster = new Broadcaster<TestEvent>();
    const watch = broadcaster.watch();
    let late: Watch<TestEvent> | undefined;
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
      (watch: Watch<TestEvent>) => watch.stop(),
      (watch: Watch<TestEvent>) => watch.return(),
      (_watch: Watch<TestEvent>, broadcaster: Broadcaster<TestEvent>) => broadcaster.shutdown(),
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
  test.each(POLICIES)("'%s': publishing keeps one order for all, and terminates", (overflow) => {
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

  test('publishing from a full watcher: the gate asks, and what is published meanwhile comes before', () => {
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

  test.each(POLICIES)("'%s': stopping its own watch leaves what it let pass before", (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    const watch: Watch<TestEvent> = broadcaster.watch({
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

  test.each(POLICIES)("'%s': stopping its own watch at an event that it rejects: that is no loss", (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    const watch: Watch<TestEvent> = broadcaster.watch({
      overflow,
      filter: (one) => {
        if (one.object.id === 2) watch.stop();
        return one.object.id !== 2;
      },
    });
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    expect(watch).toMatchObject({ queued: 2, dropped: 0, stopped: true });
  });

  test.each(POLICIES)("'%s': returning its own watch discards it all, exactly counted", async (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    const watch: Watch<TestEvent> = broadcaster.watch({
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

  test('a full waiting watcher that stops inside its filter lets the publisher go on', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 0 });
    const watch: Watch<TestEvent> = broadcaster.watch({
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

  test('stopping who holds the others up, and publishing right then: nothing is refused, and all keep their order', async () => {
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

  test('leaving while the filter looks ahead for a full queue opens the gate', () => {
    for (const leave of ['stop', 'return'] as const) {
      const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 1 });
      const watch: Watch<TestEvent> = broadcaster.watch({
        filter: (one) => {
          if (one.object.id === 1) void watch[leave]();
          return true;
        },
      });
      for (const one of events(0, 10)) expect(broadcaster.tryPublish(one)).toBe(true);
      expect(broadcaster.watchers).toBe(0);
    }
  });

  test('shutting down delivers what was accepted', async () => {
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

  test('giving up when it is asked ahead, and looking: the event that it is asked about is judged once it has answered', () => {
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

  test('on a prefix: what it publishes comes after the prefix or not at all, and never between', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    const watch = broadcaster.watch({
      prefix: events(0, 3),
      filter: (one) => one.object.id > 50 || broadcaster.tryPublish(event(99)),
    });
    broadcaster.tryPublish(event(60));
    expect(ids(readAll(watch))).toEqual([0, 1, 2, 60]);
  });

  test('on a prefix: shutting down ends the watch that is being made', async () => {
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

  test('reading its own watch waits in line', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    let inner: ReturnType<typeof fate<IteratorResult<TestEvent, undefined>>> | undefined;
    const watch: Watch<TestEvent> = broadcaster.watch({
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

  test('a read that user code makes while another only looks is served in this turn', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 10 });
    let inner: ReturnType<typeof fate<IteratorResult<TestEvent, undefined>>> | undefined;
    const watch: Watch<TestEvent> = broadcaster.watch({
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

  test('watching, stopping another, returning another: nobody else is harmed', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 2, incoming: 10 });
    const others = [broadcaster.watch(), broadcaster.watch(), broadcaster.watch()];
    const made: Watch<TestEvent>[] = [];
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

describe('from inside an onGap', () => {
  const act: [string, (watch: Watch<TestEvent>, broadcaster: Broadcaster<TestEvent>) => unknown, number[]][] = [
    ['publish', (_watch, broadcaster) => broadcaster.tryPublish(event(50)), [3, 4]],
    ['tryNext', (watch) => expect(watch.tryNext()).toBeUndefined(), [3, 4]],
    ['stop', (watch) => watch.stop(), [3, 4]],
    ['shutdown', (_watch, broadcaster) => broadcaster.shutdown(), [3, 4]],
    ['watch', (_watch, broadcaster) => broadcaster.watch(), [3, 4]],
  ];
  test.each(act)('%s: order is kept, and the gap is told of once', (_name, code, expected) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 2, overflow: 'drop-newest' });
    let gaps = 0;
    const watch: Watch<TestEvent> = broadcaster.watch({
      onGap: () => {
        gaps++;
        code(watch, broadcaster);
      },
    });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(readAll(watch)).toHaveLength(2);
    for (const one of events(3, 5)) broadcaster.tryPublish(one);
    expect(ids(readAll(watch)).slice(0, 2)).toEqual(expected);
    expect(gaps).toBe(1);
  });

  test.each(['drop-newest', 'drop-oldest'] as const)(
    'publishing (%s): a read that waited has its event, and is no room for another',
    async (overflow) => {
      const broadcaster = new Broadcaster<TestEvent>({ capacity: 0, overflow });
      const looks: number[] = [];
      const watch: Watch<TestEvent> = broadcaster.watch({
        onGap: () => {
          broadcaster.tryPublish(event(2));
          looks.push(watch.queued);
        },
      });
      broadcaster.tryPublish(event(0));
      const read = watch.next();
      broadcaster.tryPublish(event(1));
      expect(id((await read).value)).toBe(1);
      expect(looks).toEqual([0]);
      expect(watch).toMatchObject({ queued: 0, dropped: 2 });
    },
  );

  test('return: the event behind the gap is discarded, and the read hears of the end', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-oldest' });
    const watch: Watch<TestEvent> = broadcaster.watch({ onGap: () => void watch.return() });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(await watch.next()).toEqual(done);
    expect(watch).toMatchObject({ stopped: true, queued: 0, dropped: 3 });
  });

  test('publishing what makes the filter return: what a batch had of it by then is discarded, and counted', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-newest' });
    const watch: Watch<TestEvent> = broadcaster.watch({
      filter: (one) => {
        if (id(one) === 4) void watch.return();
        return true;
      },
      onGap: () => {
        for (const one of events(3, 5)) broadcaster.tryPublish(one);
      },
    });
    for (const one of events(0, 2)) broadcaster.tryPublish(one);
    expect(watch.tryNext()).toEqual(event(0));
    const batch = watch.batches().next();
    broadcaster.tryPublish(event(2));
    expect(await batch).toEqual(done);
    expect(watch.dropped).toBe(4);
  });

  test('with drop-oldest, publishing so much that the queue turns over: the event behind the gap goes out all the same, and the next gap is told of', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-oldest' });
    const gaps: number[] = [];
    const watch = broadcaster.watch({
      onGap: (missed) => {
        gaps.push(missed);
        if (gaps.length === 1) for (const one of events(10, 40)) broadcaster.tryPublish(one);
      },
    });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(ids(readAll(watch))).toEqual([2, 39]);
    expect(gaps).toEqual([2, 29]);
    expect(watch.dropped).toBe(31);
  });
});

describe('from inside keyOf', () => {
  test('publishing and stopping keep order, and terminate', () => {
    let more = 0;
    const broadcaster: Broadcaster<TestEvent> = new Broadcaster<TestEvent>({
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
    let watch: Watch<TestEvent> | undefined;
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
  function lagging(at: number, code: (broadcaster: Broadcaster<TestEvent>) => void): Broadcaster<TestEvent> {
    let left = 1;
    const broadcaster: Broadcaster<TestEvent> = new Broadcaster<TestEvent>({
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

  test('publishing at the end of what lags so far keeps order: the folds of nested chunks wait for their turn', () => {
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

  test('reading a laggard while laggards are folded loses nothing', () => {
    const got: TestEvent[] = [];
    const broadcaster: Broadcaster<TestEvent> = lagging(80, () => got.push(...readAll(a)));
    const [a, b] = [broadcaster.watch(), broadcaster.watch()];
    for (const one of events(0, 200)) broadcaster.tryPublish(one);
    got.push(...readAll(a));
    expect(got.length + a.dropped).toBe(200);
    expect(b).toMatchObject({ queued: 3, dropped: 197 });
    expect(ids(got.slice(-3)).sort()).toEqual([197, 198, 199]);
    expect(ids(readAll(b)).sort()).toEqual([197, 198, 199]);
  });

  test.each(['stop', 'return'] as const)('%s of all laggards while they are folded lets go of them', (leave) => {
    const broadcaster: Broadcaster<TestEvent> = lagging(80, () => {
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

  test('who falls behind while others are folded does not join them in the middle', () => {
    const broadcaster = lagging(80, (own) => {
      for (const one of events(1000, 1050)) own.tryPublish(one);
    });
    broadcaster.watch();
    for (const one of events(0, 88)) broadcaster.tryPublish(one);
    const late = broadcaster.watch(); // it is due in a chunk that the events from inside keyOf enter
    for (const one of events(88, 200)) broadcaster.tryPublish(one);
    expect(late).toMatchObject({ queued: 3, dropped: 50 + 112 - 3 });
  });

  test('who has gone on, by what keyOf has published, past where others are folded does not join them there', () => {
    let asked = 0;
    const broadcaster: Broadcaster<TestEvent> = new Broadcaster<TestEvent>({
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

  test('a filter that publishes while laggards are judged brings nobody an event twice', () => {
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
});

function thrown(code: () => unknown): boolean {
  try {
    code();
  } catch (error) {
    return isWatchError(error, 'CLOSED');
  }
  return false;
}
