import { describe, expect, test, vi } from 'vitest';
import { BroadcastWatch } from '../../src/broadcast/broadcast-watch.ts';
import { Broadcaster, muxOf } from '../../src/broadcast/broadcaster.ts';
import type { Cursor } from '../../src/broadcast/cursor.ts';
import { OVERFLOWS, type Overflow } from '../../src/watch/overflow.ts';
import { policiesWith } from '../policies.ts';
import {
  collectedUntil,
  done,
  event,
  events,
  fate,
  id,
  NO_GC,
  readAll,
  type TestBroadcaster,
  type TestEvent,
  type TestWatch,
  turn,
} from './support.ts';

const noGc = globalThis.gc === undefined;

describe('BroadcastWatch', () => {
  test('of a watch that has ended before it began is not registered: there is nothing to leave', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 1 });
    const register = vi.spyOn(muxOf(broadcaster).forgotten, 'register');
    expect(broadcaster.watch({ after: 7 }).stopped).toBe(true);
    expect(register).not.toHaveBeenCalled();
    broadcaster.watch({ after: 0 });
    expect(register).toHaveBeenCalledOnce();
  });

  test('is its own iterator', () => {
    const watch = new Broadcaster<TestEvent>().watch();
    expect(watch).toBeInstanceOf(BroadcastWatch);
    expect(watch[Symbol.asyncIterator]()).toBe(watch);
  });

  test('delegates everything', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 4, overflow: 'drop-newest' });
    const watch = broadcaster.watch();
    for (const one of events(0, 6)) broadcaster.tryPublish(one);
    expect(watch).toMatchObject({ queued: 4, dropped: 2, stopped: false });
    expect(id(watch.tryNext())).toBe(0);
    expect(id((await watch.next()).value)).toBe(1);
    expect((await watch.batches().next()).value).toHaveLength(2);
    watch.stop();
    expect(watch.stopped).toBe(true);
    expect(await watch.return()).toEqual(done);
  });

  test('is unregistered when its cursor leaves if that calls back, and so could lead back to it', () => {
    const broadcaster = new Broadcaster<TestEvent>();
    const { forgotten } = muxOf(broadcaster);
    const [register, unregister] = [vi.spyOn(forgotten, 'register'), vi.spyOn(forgotten, 'unregister')];
    for (const options of [{}, { filter: () => true }, { onGap: () => {} }]) broadcaster.watch(options).stop();
    expect(register.mock.calls.map(([, cursor, token]) => token === cursor)).toEqual([false, true, true]);
    expect(register.mock.calls.map(([, , token]) => token === undefined)).toEqual([true, false, false]);
    expect(unregister.mock.calls.flat()).toEqual(register.mock.calls.map(([, cursor]) => cursor));
  });

  test('shares its options with those that were started with the same ones, unless they call back', () => {
    const broadcaster = new Broadcaster<TestEvent>();
    const filter = (): boolean => true;
    for (const options of [{}, {}, { filter }, {}, { capacity: 5 }, { capacity: 5 }]) broadcaster.watch(options);
    const { first } = (muxOf(broadcaster).all.gate as unknown as { members: { first: Cursor<TestEvent> | undefined } }).members;
    const held: Cursor<TestEvent>['options'][] = [];
    for (let cursor = first; cursor; cursor = cursor.after as typeof first) held.push(cursor.options);
    expect(held.map((options) => held.indexOf(options))).toEqual([0, 0, 2, 0, 4, 4]);
    expect(held.map(({ capacity, filter }) => [capacity, filter])).toEqual([
      [100, undefined],
      [100, undefined],
      [100, filter],
      [100, undefined],
      [5, undefined],
      [5, undefined],
    ]);
  });

  test.each([
    ['using', (watch: TestWatch) => watch[Symbol.dispose]()],
    ['await using', (watch: TestWatch) => watch[Symbol.asyncDispose]()],
  ])('%s returns it', async (_name, leave) => {
    const broadcaster = new Broadcaster<TestEvent>();
    const watch = broadcaster.watch();
    broadcaster.tryPublish(event(0));
    expect(await leave(watch)).toBeUndefined();
    expect(watch).toMatchObject({ stopped: true, queued: 0, dropped: 1 });
    expect(broadcaster.watchers).toBe(0);
  });
});

/** In frames of their own, so that no stack slot keeps alive what a test lets go of. */
function abandon(broadcaster: TestBroadcaster, overflow: Overflow): void {
  const watch = broadcaster.watch({ overflow });
  watch.tryNext();
  void watch.batches();
}

function publishRefs(broadcaster: TestBroadcaster, count: number): WeakRef<TestEvent>[] {
  return Array.from({ length: count }, (_, i) => {
    const one = event(i);
    broadcaster.tryPublish(one);
    return new WeakRef(one);
  });
}

const alive = (refs: readonly WeakRef<TestEvent>[]): number => refs.filter((ref) => ref.deref() !== undefined).length;

/** In a frame of its own, so that no stack slot keeps it alive. */
function readOnly(broadcaster: TestBroadcaster, how: 'next' | 'batch'): Promise<IteratorResult<unknown, undefined>> {
  const watch = broadcaster.watch();
  return how === 'next' ? watch.next() : watch.batches().next();
}

/** A producer that is done, and one watch of its that nobody reads. */
function shutDownAndForget(): { watch: TestWatch; closed: Promise<void> } {
  const broadcaster = new Broadcaster<TestEvent>({ capacity: 4, incoming: 100 });
  broadcaster.watch();
  const watch = broadcaster.watch();
  for (const one of events(0, 20)) broadcaster.tryPublish(one);
  return { watch, closed: broadcaster.shutdown() };
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

describe.skipIf(noGc)(`collected watches${NO_GC}`, () => {
  test.each(OVERFLOWS)("'%s': a forgotten watch leaves", async (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>();
    abandon(broadcaster, overflow);
    expect(broadcaster.watchers).toBe(1);
    expect(await collectedUntil(() => broadcaster.watchers === 0)).toBe(true);
  });

  test("a forgotten stalled 'wait' watcher releases the publisher", async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 1 });
    abandon(broadcaster, 'wait');
    for (const one of events(0, 2)) expect(broadcaster.tryPublish(one)).toBe(true);
    const publish = fate(broadcaster.publish(event(2)));
    await turn();
    expect(publish.state).toBe('pending');
    expect(await collectedUntil(() => publish.state === 'resolved')).toBe(true);
    expect(broadcaster.watchers).toBe(0);
  });

  test('a forgotten stalled watcher lets a shutdown finish', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 2 });
    abandon(broadcaster, 'wait');
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    const closed = fate(broadcaster.shutdown());
    await turn();
    expect(closed.state).toBe('pending');
    expect(await collectedUntil(() => closed.state === 'resolved')).toBe(true);
  });

  test('a consumer with a pending read is not forgotten', async () => {
    const broadcaster = new Broadcaster<TestEvent>();
    const got: number[] = [];
    const reading = (async () => {
      for await (const one of broadcaster.watch()) got.push(one.object.id);
    })();
    for (let i = 0; i < 3; i++) {
      await collectedUntil(() => true);
      broadcaster.tryPublish(event(i));
    }
    await broadcaster.shutdown();
    await reading;
    expect(got).toEqual([0, 1, 2]);
  });

  test('a watch that is still referenced does not leave', async () => {
    const broadcaster = new Broadcaster<TestEvent>();
    const [held, batches] = [broadcaster.watch(), broadcaster.watch().batches()];
    abandon(broadcaster, 'wait');
    expect(await collectedUntil(() => broadcaster.watchers === 2)).toBe(true);
    broadcaster.tryPublish(event(1));
    expect((await batches.next()).value).toHaveLength(1);
    expect(readAll(held)).toHaveLength(1);
  });

  test.each(['next', 'batch'] as const)(
    'a watch of which only a pending read is left (%s) is not forgotten: the read gets its event',
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

  test('a forgotten watch is released even if the broadcaster itself is forgotten: others can be read to the end', async () => {
    const { watch, closed } = shutDownAndForget();
    const read: TestEvent[] = [];
    const over = (async () => {
      for await (const one of watch) read.push(one as TestEvent);
      return closed;
    })();
    const outcome = fate(over);
    expect(await collectedUntil(() => outcome.state === 'resolved')).toBe(true);
    expect(read).toHaveLength(20);
  });

  test.each(['read', 'closure'] as const)(
    'a broadcaster that is forgotten together with its watches is collected (%s)',
    async (how) => {
      const forgotten = forgetAll(how);
      expect(await collectedUntil(() => forgotten.deref() === undefined)).toBe(true);
    },
  );
});

/** Watches whose callbacks know them, each ended in one way. */
const ENDS: Record<string, (broadcaster: TestBroadcaster) => WeakRef<TestWatch>> = {
  returned: (broadcaster) => {
    const watch: TestWatch = broadcaster.watch({ filter: () => !watch.stopped });
    void watch.return();
    return new WeakRef(watch);
  },
  'stopped, with events queued': (broadcaster) => {
    const watch: TestWatch = broadcaster.watch({ onGap: () => void watch.dropped });
    broadcaster.tryPublish(event(0));
    watch.stop();
    return new WeakRef(watch);
  },
  aborted: (broadcaster) => {
    const abort = new AbortController();
    const watch: TestWatch = broadcaster.watch({
      overflow: 'coalesce',
      filter: () => !watch.stopped,
      signal: abort.signal,
    });
    abort.abort();
    return new WeakRef(watch);
  },
  'ended by its filter': (broadcaster) => {
    const watch: TestWatch = broadcaster.watch({
      filter: () => {
        throw new Error(`after ${watch}`);
      },
    });
    broadcaster.tryPublish(event(0));
    expect(() => watch.tryNext()).toThrow('after');
    return new WeakRef(watch);
  },
  'ended before anyone had it': (broadcaster) => {
    let calls = 0;
    const watch: TestWatch = broadcaster.watch({
      prefix: [event(0)],
      filter: () => {
        if (++calls === 1) throw new Error('at the prefix');
        return !watch.stopped;
      },
    });
    return new WeakRef(watch);
  },
};

describe.skipIf(noGc)(`what a watcher retains${NO_GC}`, () => {
  test.each(Object.entries(ENDS))('%s: not itself, even if its callbacks reference it', async (_how, end) => {
    const broadcaster = new Broadcaster<TestEvent>();
    const ref = end(broadcaster);
    expect(await collectedUntil(() => ref.deref() === undefined)).toBe(true);
    expect(broadcaster.watchers).toBe(0);
  });

  test.each(OVERFLOWS)("'%s': nothing after it was stopped and read to the end, or returned", async (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 50, overflow });
    const [stopped, returned] = [broadcaster.watch(), broadcaster.watch()];
    const refs = publishRefs(broadcaster, 40);
    stopped.stop();
    readAll(stopped);
    await returned.return();
    expect(await collectedUntil(() => alive(refs) === 0)).toBe(true);
    expect(stopped.stopped && returned.stopped).toBe(true);
  });

  test.each(OVERFLOWS)("'%s': nothing after it was forgotten", async (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 50 });
    abandon(broadcaster, overflow);
    const refs = publishRefs(broadcaster, 40);
    expect(await collectedUntil(() => alive(refs) === 0)).toBe(true);
  });

  test.each(OVERFLOWS)("'%s': nothing of what was read", async (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 64, overflow });
    const watch = broadcaster.watch();
    const refs: WeakRef<TestEvent>[] = [];
    for (let round = 0; round < 5; round++) {
      refs.push(...publishRefs(broadcaster, 60));
      readAll(watch);
    }
    expect(await collectedUntil(() => alive(refs) <= 64)).toBe(true);
    expect(watch.dropped).toBe(0);
  });

  test.each(OVERFLOWS)(
    "'%s': when stalled, about its capacity rounded up to chunks, however much is published",
    async (overflow) => {
      const broadcaster = new Broadcaster<TestEvent>({ capacity: 64, overflow, incoming: 10 });
      const watch = broadcaster.watch();
      const refs = publishRefs(broadcaster, 5000);
      expect(await collectedUntil(() => alive(refs) <= 64 + 2 * 64)).toBe(true);
      expect(watch.queued).toBe(overflow === 'coalesce' ? 0 : 64);
    },
  );

  test('a stalled watcher at another position retains no more because of others', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 16 });
    const watches = policiesWith({ waits: false }).map((overflow) => broadcaster.watch({ overflow }));
    const reader = broadcaster.watch({ capacity: 10_000 });
    const refs: WeakRef<TestEvent>[] = [];
    for (let round = 0; round < 20; round++) {
      refs.push(...publishRefs(broadcaster, 100));
      readAll(reader);
    }
    expect(await collectedUntil(() => alive(refs) <= watches.length * (16 + 16))).toBe(true);
    expect(watches.every((watch) => watch.dropped > 0)).toBe(true);
  });

  test('a shared batch is released when all watchers in step have read it', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 64 });
    const watches = [broadcaster.watch(), broadcaster.watch()];
    const reads = Promise.all(
      watches.map((watch) =>
        watch
          .batches()
          .next()
          .then(({ value }) => value?.length),
      ),
    );
    const refs = publishRefs(broadcaster, 64);
    expect(await reads).toEqual([64, 64]);
    expect(await collectedUntil(() => alive(refs) === 0)).toBe(true);
    expect(watches.map((watch) => watch.queued)).toEqual([0, 0]);
  });
});
