/** What has once failed in the engine, all of it under attack: user code that comes back in, odd numbers, odd moments. */
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { Cursor } from '../../src/broadcast/cursor.ts';
import { Gate } from '../../src/broadcast/gate.ts';
import { Kept } from '../../src/broadcast/kept.ts';
import { Largest } from '../../src/broadcast/largest.ts';
import { EventLog } from '../../src/broadcast/log.ts';
import { Mux } from '../../src/broadcast/mux.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { collectedUntil, event, events, fate, gated, ids, NO_GC, readAll, type TestEvent, turn } from './support.ts';

describe('what attacks have found', () => {
  test('a full wait watcher whose filter throws ends, and pins nothing: it does not hold the gate open', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 5 });
    broadcaster.watch({
      filter: ({ object }) => {
        if (object.id === 2) throw new Error('two');
        return true;
      },
    });
    const other = broadcaster.watch({ overflow: 'drop-newest', capacity: 1_000 });
    for (const one of events(0, 500)) broadcaster.tryPublish(one);
    // Before: the filter's watch stayed for ever, and everything was kept for it.
    expect(broadcaster.watchers).toBe(2);
    expect(other.queued).toBe(1);
    const unfiltered = new Broadcaster<TestEvent>({ capacity: 1, incoming: 5 });
    const watch = unfiltered.watch({
      filter: ({ object }) => {
        if (object.id === 1) throw new Error('one');
        return true;
      },
    });
    for (const one of events(0, 500)) unfiltered.tryPublish(one);
    expect(unfiltered.watchers).toBe(0);
    expect(ids(readAllBut(watch, 'one'))).toEqual([0]);
  });

  test('an onGap that publishes with drop-oldest terminates: the event that it is told about is out of the queue', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-oldest' });
    let told = 0;
    const watch = broadcaster.watch({
      onGap: () => {
        if (++told > 50) throw new Error('no end');
        broadcaster.tryPublish(event(100 + told));
      },
    });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(watch.tryNext()?.object.id).toBe(2);
    expect(told).toBe(1);
    expect(ids(readAll(watch))).toEqual([101]);
  });

  test('an onGap that returns its watch, and one that throws: the event in hand is lost, and counted', async () => {
    for (const how of ['return', 'throw'] as const) {
      const broadcaster = new Broadcaster<TestEvent>({ capacity: 2, overflow: 'drop-oldest' });
      const watch = broadcaster.watch({
        onGap: () => {
          if (how === 'throw') throw new Error('told');
          void watch.return();
        },
      });
      for (const one of events(0, 5)) broadcaster.tryPublish(one);
      if (how === 'throw') await expect(watch.next()).rejects.toThrow('told');
      else expect(await watch.next()).toEqual({ done: true, value: undefined });
      expect({ dropped: watch.dropped, queued: watch.queued }).toEqual({ dropped: 5, queued: 0 });
    }
  });

  test('an onGap that stops its watch: what is queued stays readable, the event in hand too', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 2, overflow: 'drop-oldest' });
    const watch = broadcaster.watch({ onGap: () => watch.stop() });
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    expect(ids(readAll(watch))).toEqual([3, 4]);
    expect(watch.dropped).toBe(3);
  });

  test('a shutdown from inside a filter, in the middle of a shutdown: both settle', async () => {
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

  test('when the broadcaster has shut down, every watch has ended, read or not', async () => {
    const broadcaster = new Broadcaster<TestEvent>();
    broadcaster.watch();
    broadcaster.tryPublish(event(0));
    expect(broadcaster.watchers).toBe(1);
    await broadcaster.shutdown();
    expect(broadcaster.watchers).toBe(0);
  });

  test('dropping the oldest behind reads that wait moves those few, not all that stand behind', () => {
    const kept = new Kept<number>();
    for (let i = 0; i < 5; i++) kept.push(i, 0);
    const events = (kept as unknown as { events: unknown[] }).events;
    const behind = events.slice(2);
    expect(kept.drop(1)).toBe(0);
    expect(events).toEqual([undefined, 0, ...behind]);
    expect([kept.gap, kept.shift(), kept.gap, kept.shift()]).toEqual([0, 0, 1, 2]);
  });

  test('the largest of very many numbers', () => {
    const largest = new Largest();
    for (let i = 0; i < 200_000; i++) largest.add(i);
    largest.add(199_999);
    largest.remove(199_999);
    expect(largest.value).toBe(199_999);
    largest.remove(199_999);
    expect(largest.value).toBe(199_998);
    largest.remove(5);
    expect(largest.value).toBe(199_998);
    const one = new Largest();
    one.add(7);
    one.remove(7);
    expect(one.value).toBe(0);
  });

  test('a gate whose members change begins its round anew', () => {
    const gate = new Gate();
    const round = (): unknown => (gate as unknown as { asked: unknown }).asked;
    const member = gated(() => 10);
    const full = gated(() => 0);
    gate.add(member);
    gate.add(full);
    expect(gate.open(0)).toBe(false);
    expect(round()).toBeDefined();
    gate.remove(full);
    expect(round()).toBeUndefined();
    expect(gate.open(5)).toBe(true);
    expect(round()).toBeUndefined();
    gate.add(full);
    expect(gate.open(5)).toBe(false);
    gate.add(gated(() => 20));
    expect(round()).toBeUndefined();
    expect(gate.open(5)).toBe(false);
  });

  test('a long row of chunks lets go of its first ones without moving the rest each time', () => {
    const log = new EventLog<number>(1);
    const chunks = (): unknown[] => (log as unknown as { chunks: unknown[] }).chunks;
    log.stand(0);
    for (let i = 0; i < 16 * 100; i++) {
      log.append(i);
      log.step();
    }
    const row = chunks();
    log.move(0, 16 * 10);
    expect(chunks()).toBe(row);
    expect(row.slice(0, 10)).toEqual(new Array(10).fill(undefined));
    log.move(16 * 10, 16 * 60);
    expect(chunks()).toHaveLength(41);
    expect([log.at(16 * 60), log.at(16 * 100 - 1), log.chunkOf(16 * 60)]).toEqual([960, 1599, 60]);
  });

  test('a watch that failed while its reads waited is served, though another leaves the park before', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 0, incoming: 0 });
    const other = broadcaster.watch({ capacity: 5, filter: () => false });
    const watch = broadcaster.watch({
      capacity: 5,
      overflow: 'drop-newest',
      filter: ({ object }) => {
        if (object.id === 16) throw new Error('sixteen');
        return object.id > 0;
      },
    });
    void other.next();
    const reads = [fate(watch.next()), fate(watch.next())];
    for (const one of events(0, 32)) broadcaster.tryPublish(one);
    other.stop();
    await turn();
    expect(reads.map(({ value }) => value?.value?.object.id)).toEqual([1, 2]);
    expect(ids(readAllBut(watch, 'sixteen'))).toEqual([3, 4, 5, 6, 7]);
  });

  test('those who left with a read that waited are not kept in the park', async () => {
    const mux = new Mux<TestEvent>({ capacity: 1, incoming: 0, keyOf: String });
    const parked = (): unknown[] => {
      const { row, count } = mux.park as unknown as { row: unknown[]; count: number };
      return row.slice(0, count);
    };
    const options = { capacity: 1, overflow: 'drop-newest', filter: undefined, onGap: undefined } as const;
    const cursors = Array.from({ length: 4 }, () => new Cursor<TestEvent>(mux, options));
    for (const cursor of cursors) {
      cursor.join([]);
      void cursor.next();
    }
    expect(parked()).toHaveLength(4);
    void cursors[0]?.return();
    cursors[1]?.stop();
    await turn();
    expect(parked()).toEqual(cursors.slice(2));
  });

  test('a read from inside onGap does not overtake the batch that is being taken, whoever shuts down', async () => {
    const broadcaster = new Broadcaster<TestEvent>();
    let inner: Promise<IteratorResult<TestEvent, undefined>> | undefined;
    const onGap = (): void => {
      inner = watch.next();
      void broadcaster.shutdown();
    };
    const watch = broadcaster.watch({ capacity: 5, overflow: 'drop-newest', onGap });
    for (const one of events(0, 7)) broadcaster.tryPublish(one); // 5 and 6 are lost
    for (let i = 0; i < 5; i++) watch.tryNext();
    broadcaster.tryPublish(event(7));
    expect(watch.queued).toBe(1); // 7 is set aside with its gap, what follows stays in the log
    for (const one of events(8, 11)) broadcaster.tryPublish(one);
    expect(ids((await watch.batches().next()).value ?? [])).toEqual([7, 8, 9, 10]);
    expect(await inner).toMatchObject({ done: true });
  });

  test.each(['gate', 'advance'] as const)(
    'giving up from user code while a publish that waits is admitted (%s)',
    async (where) => {
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
    },
  );

  test('giving up distributes all that was accepted before it asks anyone: who is stopped by that has lost every event', async () => {
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

  test('an array that was shared is let go when half of it was read', () => {
    const kept = new Kept<number>();
    const stretch = Array.from({ length: 100 }, (_, i) => i);
    kept.adopt(stretch);
    for (let i = 0; i < 99; i++) expect(kept.shift()).toBe(i);
    expect((kept as unknown as { events: unknown[] }).events.length).toBeLessThan(64);
    expect(stretch).toHaveLength(100);
    expect(kept.shift()).toBe(99);
  });
});

/** In a frame of its own, so that no stack slot keeps it alive. */
function readOnly(broadcaster: Broadcaster<TestEvent>, how: 'next' | 'batch'): Promise<IteratorResult<unknown, undefined>> {
  const watch = broadcaster.watch();
  return how === 'next' ? watch.next() : watch.batches().next();
}

/** A producer that is done, and one watch of its that nobody reads. */
function shutDownAndForget(): { watch: Watch<TestEvent>; closed: Promise<void> } {
  const broadcaster = new Broadcaster<TestEvent>({ capacity: 4, incoming: 100 });
  broadcaster.watch();
  const watch = broadcaster.watch();
  for (const one of events(0, 20)) broadcaster.tryPublish(one);
  return { watch, closed: broadcaster.shutdown() };
}

/** A member that was the least of a round. */
function leaveGate(gate: Gate): WeakRef<object> {
  let at = 1;
  const [first, least] = [gated(() => at), gated(() => 2)];
  gate.add(first);
  gate.add(least);
  expect(gate.open(1)).toBe(false);
  at = 3;
  expect(gate.open(1)).toBe(true);
  gate.remove(first);
  gate.remove(least);
  return new WeakRef(least);
}

function forgetAll(how: 'read' | 'closure'): WeakRef<object> {
  const broadcaster = new Broadcaster<TestEvent>({ overflow: 'drop-newest', capacity: 10 });
  if (how === 'read') {
    void (async () => {
      for await (const _ of broadcaster.watch());
    })();
  } else {
    const watch = broadcaster.watch({ onGap: () => watch.queued });
  }
  for (const one of events(0, 200)) broadcaster.tryPublish(one);
  return new WeakRef(broadcaster);
}

describe.skipIf(globalThis.gc === undefined)(`what attacks have found, with garbage collection${NO_GC}`, () => {
  test.each(['next', 'batch'] as const)(
    'a watch of which only a read is left (%s) is not forgotten: the read gets its event',
    async (how) => {
      const broadcaster = new Broadcaster<TestEvent>();
      const read = fate(readOnly(broadcaster, how));
      let rounds = 0;
      await collectedUntil(() => ++rounds > 10);
      expect([read.state, broadcaster.watchers]).toEqual(['pending', 1]);
      broadcaster.tryPublish(event(0));
      await turn();
      expect(read.value).toMatchObject({ done: false });
      // And once it was served, the watch is forgotten like any other.
      expect(await collectedUntil(() => broadcaster.watchers === 0)).toBe(true);
    },
  );

  test('a forgotten watch is let go also when the broadcaster itself is forgotten: who reads on gets all, and the end', async () => {
    const { watch, closed } = shutDownAndForget();
    const read: TestEvent[] = [];
    const over = (async () => {
      for await (const one of watch) read.push(one);
      return closed;
    })();
    const outcome = fate(over);
    expect(await collectedUntil(() => outcome.state === 'resolved')).toBe(true);
    expect(read).toHaveLength(20);
  });

  test('a gate at rest does not keep a member that has left', async () => {
    const gate = new Gate();
    const gone = leaveGate(gate);
    expect(await collectedUntil(() => gone.deref() === undefined)).toBe(true);
  });

  test.each(['read', 'closure'] as const)('a broadcaster that is forgotten with its watches is collected (%s)', async (how) => {
    const forgotten = forgetAll(how);
    expect(await collectedUntil(() => forgotten.deref() === undefined)).toBe(true);
  });
});

function readAllBut(watch: ReturnType<Broadcaster<TestEvent>['watch']>, message: string): TestEvent[] {
  const read: TestEvent[] = [];
  try {
    for (;;) {
      const one = watch.tryNext();
      if (one === undefined) return read;
      read.push(one);
    }
  } catch (error) {
    expect((error as Error).message).toBe(message);
    return read;
  }
}
