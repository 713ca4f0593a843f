// Snapshot and tail, bookmarks, and ends by time.
import { describe, expect, test } from 'vitest';
import { SLICE_BYTES } from '../../src/bridge/forms.ts';
import type { HubOptions } from '../../src/bridge/hub.ts';
import { Hub, receptionOf } from '../../src/bridge/hub.ts';
import type { Asked } from '../../src/bridge/query.ts';
import type { Snapshot } from '../../src/bridge/snapshot.ts';
import type { Start } from '../../src/bridge/start.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';
import { ListenerCount } from '../../src/testing/listener-count.ts';
import { added, connect, FakeSink, turn, until } from './fake-sink.ts';
import { collectedUntil, NO_GC } from './support.ts';

function join(hub: Hub, asked: Asked = {}, more: Parameters<typeof connect>[2] = {}): ReturnType<typeof connect> {
  return connect(hub, new FakeSink(), { start: receptionOf(hub).start(asked) as Start, asked, ...more });
}

const hubOf = (snapshot: Snapshot, more: HubOptions = {}): Hub => new Hub({ epoch: 'e', snapshot, ...more });
const end = (version: string): object => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: version, annotations: { 'k8s.io/initial-events-end': 'true' } } },
  resourceVersion: version,
});

/** A source that gives what it is told to, when it is told to. */
function handFed(): { snapshot: Snapshot; give: (object: unknown) => void; finish: () => void; closed: () => boolean } {
  const queue: unknown[] = [];
  let wake: () => void = () => {};
  let over = false;
  let closed = false;
  async function* objects(): AsyncGenerator<unknown> {
    try {
      while (!over || queue.length > 0) {
        if (queue.length > 0) yield queue.shift();
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    } finally {
      closed = true;
    }
  }
  return {
    snapshot: objects,
    give: (object) => {
      queue.push(object);
      wake();
    },
    finish: () => {
      over = true;
      wake();
    },
    closed: () => closed,
  };
}

describe('a snapshot', () => {
  test.each<[string, Snapshot]>([
    ['an array', () => ['a', 'b']],
    ['a promise of one', async () => ['a', 'b']],
    [
      'an async iterable',
      async function* () {
        yield 'a';
        yield 'b';
      },
    ],
  ])(
    'of %s comes as ADDED events without a place, then the BOOKMARK of the position, then what follows',
    async (_name, snapshot) => {
      const hub = hubOf(snapshot);
      await hub.publish(added('before'));
      const sink = join(hub);
      await hub.publish(added('meanwhile'));
      await until(() => sink.events.length === 4);
      await hub.publish(added('after'));
      await hub.shutdown();
      expect(sink.events).toEqual([
        { type: 'ADDED', object: 'a' },
        { type: 'ADDED', object: 'b' },
        end('e.1'),
        { type: 'ADDED', object: 'meanwhile', resourceVersion: 'e.2' },
        { type: 'ADDED', object: 'after', resourceVersion: 'e.3' },
      ]);
      expect(hub.stats().total).toMatchObject({ delivered: 2, dropped: 0 });
    },
  );

  test('takes the position first, then asks for the data: nothing falls in between', async () => {
    const state = new Set<string>();
    const hub = hubOf(({ resourceVersion }) => {
      expect(resourceVersion).toBe(hub.version);
      return [...state];
    });
    const seen: Set<string>[] = [];
    for (let i = 0; i < 50; i++) {
      state.add(`o${i}`);
      void hub.publish(added(`o${i}`));
      const sink = join(hub);
      await turn();
      if (i % 3 === 0) await turn();
      seen.push(new Set());
      void until(() => sink.ended !== undefined).then(() => {
        for (const { type, object } of sink.events) if (type === 'ADDED') seen[i]?.add(object as string);
      });
    }
    await hub.shutdown();
    await turn();
    for (const each of seen) expect(each).toEqual(state);
  });

  test('is there also when the stream has ended: who comes then gets the state, and the end', async () => {
    const hub = hubOf(async () => ['state'], { replayItems: 0 });
    await hub.publish(added(1));
    await hub.shutdown();
    expect(receptionOf(hub).start({ resourceVersion: 'e.0' })).toMatchObject({ code: 410 });
    const sink = join(hub);
    await until(() => sink.ended !== undefined);
    expect([sink.events, sink.ended]).toEqual([[{ type: 'ADDED', object: 'state' }, end('e.1')], 'complete']);
    for (const asked of [{ resourceVersion: 'e.1' }, { sendInitialEvents: false }]) {
      expect(receptionOf(hub).start(asked)).toMatchObject({ code: 204 });
    }
    expect(hub.stats().clients).toEqual([]);
  });

  test('is for those without a version, unless they say otherwise', async () => {
    const hub = hubOf(() => ['state']);
    await hub.publish(added(1));
    const cases: [Asked, unknown[]][] = [
      [{}, ['state', end('e.1')]],
      [{ resourceVersion: 'e.0' }, [1]],
      [{ resourceVersion: 'e.0', sendInitialEvents: true }, ['state', end('e.1')]],
      [{ sendInitialEvents: false }, []],
      // An EventSource that is back repeats the URL with which it began.
      [{ resourceVersion: 'e.0', sendInitialEvents: true, isBack: true }, [1]],
    ];
    for (const [asked, expected] of cases) {
      const sink = join(hub, asked);
      await turn();
      await turn();
      expect(sink.events.map((event) => (event.type === 'BOOKMARK' ? event : event.object))).toEqual(expected);
    }
    expect(receptionOf(new Hub()).start({ sendInitialEvents: true })).toMatchObject({ code: 400 });
  });

  test('shows no more than the filter lets through', async () => {
    const hub = hubOf(() => [1, 2, 3, 4]);
    const sink = join(hub, {}, { options: { filter: (event) => (event.object as number) % 2 === 0 } });
    await until(() => sink.events.length === 3);
    expect(sink.objects.slice(0, 2)).toEqual([2, 4]);
  });

  test.each([undefined, null, 0, ''])('shows nothing where the filter says %j, as what is live does not', async (nothing) => {
    const hub = hubOf(() => ['a', 'b']);
    const sink = join(hub, {}, { options: { filter: () => nothing as never } });
    await until(() => sink.events.length > 0);
    await hub.publish(added('c'));
    await hub.shutdown();
    expect(sink.events).toEqual([end('e.0')]);
  });

  test('whose filter answers with a promise is the end of it, though nothing else is published', async () => {
    const hub = hubOf(() => ['a', 'b']);
    const sink = join(hub, {}, { options: { filter: (async () => true) as never } });
    await until(() => sink.ended !== undefined);
    expect([sink.ended, sink.events.length]).toEqual(['failed', 1]);
    expect(sink.events[0]).toMatchObject({ type: 'ERROR', object: { code: 500 } });
  });

  test('that fails is one ERROR 500 and the end, and tells no secrets', async () => {
    const failing: Snapshot[] = [
      () => {
        throw new Error('secret');
      },
      () => Promise.reject(new Error('secret')),
      function* () {
        yield 1;
        throw new Error('secret');
      },
      () => [1, 2n],
      () => 7 as unknown as [],
      () => undefined as unknown as [],
      () => ({ [Symbol.asyncIterator]: () => ({ next: async () => undefined }) }) as unknown as [],
    ];
    for (const snapshot of failing) {
      const hub = hubOf(snapshot);
      const sink = join(hub);
      await until(() => sink.ended !== undefined);
      expect(sink.ended).toBe('failed');
      expect(sink.events.at(-1)).toMatchObject({ type: 'ERROR', object: { code: 500, reason: 'InternalError' } });
      expect(sink.text).not.toContain('secret');
      expect(hub.stats().clients).toEqual([]);
    }
  });

  test('waits for a client that has no room, and holds no more than a slice for it', async () => {
    let asked = 0;
    const hub = hubOf(function* () {
      for (; asked < 10_000; asked++) yield 'x'.repeat(1_000);
    });
    const sink = new FakeSink();
    sink.stall();
    connect(hub, sink, { start: receptionOf(hub).start({}) as Start });
    for (let i = 0; i < 50; i++) await turn();
    expect(asked).toBeLessThan(SLICE_BYTES / 1_000);
    sink.resume();
    await until(() => sink.events.length === 10_001);
  });

  test('lets other clients have their turns, however long it is', async () => {
    const hub = hubOf(() => Array.from({ length: 100_000 }, (_, i) => i));
    join(hub);
    const other = join(hub, { sendInitialEvents: false });
    await hub.publish(added('live'));
    await turn();
    expect(other.objects).toEqual(['live']);
  });

  test('does so as well when the filter keeps all of it from its client, who may leave', async () => {
    let looked = 0;
    const endless = function* (): Generator<number> {
      for (;;) yield looked++;
    };
    const sources: Snapshot[] = [
      endless,
      async function* () {
        yield* endless();
      },
    ];
    for (const snapshot of sources) {
      const hub = hubOf(snapshot);
      const sink = join(hub, {}, { options: { filter: () => false } });
      looked = 0;
      await turn();
      expect(looked).toBeLessThan(1_000);
      sink.session.gone();
      for (let i = 0; i < 3; i++) await turn();
      const so = looked;
      await turn();
      expect(looked).toBe(so);
    }
  });

  test('that the queue does not outlast is a slow client like any other', async () => {
    const { snapshot, finish } = handFed();
    const hub = hubOf(snapshot, { capacity: 3 });
    const sink = join(hub);
    for (let i = 0; i < 10; i++) hub.tryPublish(added(i));
    finish();
    await until(() => sink.ended !== undefined);
    expect(sink.objects.slice(1, 4)).toEqual([0, 1, 2]);
    expect(sink.events.at(-1)).toMatchObject({ type: 'ERROR', object: { code: 410, details: { missed: 7 } } });
    expect(sink.ended).toBe('expired');
  });

  test('stands in line when as many as may be are being read; who leaves the line or dies gives up the place', async () => {
    const sources = Array.from({ length: 6 }, handFed);
    let begun = 0;
    const hub = hubOf((context) => (sources[begun++] as ReturnType<typeof handFed>).snapshot(context), { maxSnapshots: 2 });
    const sinks = sources.map(() => join(hub));
    await turn();
    expect(begun).toBe(2);
    sinks[2]?.session.gone(); // in line
    sinks[0]?.session.gone(); // being read: a place is free
    await until(() => begun === 3);
    sources[1]?.finish();
    await until(() => begun === 4);
    sources[2]?.finish(); // the third to begin: sinks[3]
    sources[3]?.finish();
    await until(() => begun === 5);
    expect(sinks.map(({ events }) => events.length)).toEqual([0, 1, 0, 1, 1, 0]);
    await turn();
    sources[4]?.finish();
    await until(() => sinks[5]?.events.length === 1);
    expect(begun).toBe(5);
  });

  test('whose client has no room for it leaves its place to others, and goes on before those who have not begun', async () => {
    /** Who has begun, and how much the slow one had got by then. */
    const begun: [unknown, number][] = [];
    const slow = new FakeSink();
    slow.stall();
    const hub = hubOf(
      ({ identity }) => {
        begun.push([identity, slow.events.length]);
        return Array.from({ length: 1_000 }, (_, i) => i);
      },
      { maxSnapshots: 1 },
    );
    connect(hub, slow, { start: receptionOf(hub).start({}) as Start, identity: 'slow' });
    const second = join(hub, {}, { identity: 'second' });
    await until(() => second.events.length === 1_001);
    const part = slow.events.length;
    expect(part).toBeLessThan(500);
    const [third, fourth] = ['third', 'fourth'].map((identity) => join(hub, {}, { identity }));
    slow.resume();
    await until(() => fourth?.events.length === 1_001);
    expect(slow.objects.slice(0, 1_000)).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
    expect(third?.events.length).toBe(1_001);
    expect(begun).toEqual([
      ['slow', 0],
      ['second', part],
      ['third', part],
      ['fourth', 1_001],
    ]);
  });

  test('is abandoned when its client goes: the signal aborts, the source is closed, nothing pends', async () => {
    const { snapshot, give, closed } = handFed();
    let signal: AbortSignal | undefined;
    const hub = hubOf((context) => {
      signal = context.signal;
      return snapshot(context);
    });
    const sink = join(hub);
    give(1);
    await turn();
    sink.session.gone();
    expect(signal?.aborted).toBe(true);
    give(2);
    await until(closed);
    expect(hub.stats().clients).toEqual([]);
  });

  test('closes a source that it leaves, whatever that says to it, and none that has come to its end', async () => {
    const closed: string[] = [];
    const unheard: unknown[] = [];
    const onUnheard = (reason: unknown): void => void unheard.push(reason);
    process.on('unhandledRejection', onUnheard);
    const counting = (name: string, count: number): Snapshot => {
      let left = count;
      const next = async (): Promise<IteratorResult<number>> =>
        left-- > 0 ? { done: false, value: left } : { done: true, value: undefined };
      const close = (): Promise<never> => {
        closed.push(name);
        return Promise.reject(new Error('closing'));
      };
      return () => ({ [Symbol.asyncIterator]: () => ({ next, return: close }) });
    };
    const whole = join(hubOf(counting('whole', 3)));
    await until(() => whole.events.length === 4);
    const left = join(hubOf(counting('left', Infinity)));
    await until(() => left.events.length > 0);
    left.session.gone();
    for (let i = 0; i < 5; i++) await turn();
    process.off('unhandledRejection', onUnheard);
    expect(closed).toEqual(['left']);
    expect(unheard).toEqual([]);
  });

  test('leaves no listener on its signal, however many of its parts have been waited for', async () => {
    let listeners: ListenerCount | undefined;
    const counts: (number | undefined)[] = [];
    const hub = hubOf(async function* ({ signal }) {
      listeners = new ListenerCount(signal);
      for (let i = 0; i < 100; i++) {
        counts.push(listeners.count);
        yield i;
      }
    });
    const sink = join(hub);
    await until(() => sink.events.length === 101);
    expect(Math.max(...(counts as number[]))).toBeLessThanOrEqual(2);
    expect(listeners?.count).toBe(0);
  });

  test('does not keep a hub from its shutdown: it is finished first, and then the stream', async () => {
    const { snapshot, give, finish } = handFed();
    const hub = hubOf(snapshot);
    const sink = join(hub);
    await turn();
    const down = hub.shutdown();
    give('a');
    finish();
    await down;
    expect(sink.events).toEqual([{ type: 'ADDED', object: 'a' }, end('e.0')]);
    expect(sink.ended).toBe('complete');
  });

  test('knows for whom it is', async () => {
    let identity: unknown;
    const hub = hubOf((context) => {
      identity = context.identity;
      return [];
    });
    join(hub, {}, { identity: { user: 'u' } });
    await turn();
    expect(identity).toEqual({ user: 'u' });
  });
});

describe('bookmarks', () => {
  const bookmark = (version: string): object => ({
    type: 'BOOKMARK',
    object: { metadata: { resourceVersion: version } },
    resourceVersion: version,
  });

  test('come once per interval to who asked for them and is up to date, and keep the version fresh though the filter hides all', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, bookmarkIntervalMs: 1_000, replayItems: 1 });
    const sink = join(hub, { allowWatchBookmarks: true }, { options: { filter: () => false } });
    const other = join(hub);
    // One at once: a client that is cut off before the first event knows where to go on.
    expect(sink.events).toEqual([bookmark('e.0')]);
    clock.advance(999);
    expect(sink.events).toHaveLength(1);
    clock.advance(1);
    expect(sink.events).toEqual([bookmark('e.0'), bookmark('e.0')]);
    for (let i = 0; i < 9; i++) await hub.publish(added(i));
    clock.advance(1_000);
    expect(sink.events.at(-1)).toEqual(bookmark('e.9'));
    expect(receptionOf(hub).start({ resourceVersion: 'e.9' })).toMatchObject({ resumed: true });
    expect(other.events.every(({ type }) => type === 'ADDED')).toBe(true);
    sink.stall();
    clock.advance(1_000);
    const { length } = sink.events;
    clock.advance(5_000);
    expect(sink.events).toHaveLength(length);
    sink.session.gone();
    other.session.gone();
    expect(clock.pending).toBe(0);
  });

  test('are marks where the wire has them and no events were asked for: once per interval, to who is up to date', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, bookmarkIntervalMs: 1_000, replayItems: 1 });
    const marks: string[] = [];
    const mark = (version: string): void => void marks.push(version);
    const filter = (): boolean => false;
    const sink = connect(hub, Object.assign(new FakeSink(), { mark }), { transport: 'sse', options: { filter } });
    const asks = connect(hub, Object.assign(new FakeSink(), { mark: () => expect.unreachable() }), {
      asked: { allowWatchBookmarks: true },
    });
    clock.advance(999);
    expect(marks).toEqual([]);
    for (let i = 0; i < 9; i++) await hub.publish(added(i));
    clock.advance(1);
    // A version that is far older than what is kept, had it stayed where the client began.
    expect(marks).toEqual(['e.9']);
    clock.advance(1_000);
    expect(marks).toEqual(['e.9', 'e.9']);
    asks.session.gone();
    sink.session.gone();
    expect(clock.pending).toBe(0);
  });

  test('are not marked to who has not got everything yet, and a connection that throws is its own trouble', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, bookmarkIntervalMs: 1_000 });
    let marks = 0;
    const mark = (): void => {
      marks++;
      throw new Error('gone');
    };
    const sink = connect(hub, Object.assign(new FakeSink(), { mark }), { transport: 'sse' });
    sink.stall();
    for (let i = 0; i < 3; i++) await hub.publish(added(i));
    clock.advance(5_000);
    expect(marks).toBe(0);
    sink.resume();
    await turn();
    clock.advance(1_000);
    expect(marks).toBe(1);
    expect(sink.destroyed).toBe(true);
    expect(clock.pending).toBe(0);
    expect(hub.stats().total.cuts).toEqual({ failed: 1 });
  });

  test('by default come well before the minute after which most proxies end what is quiet', () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock });
    const sink = join(hub, { allowWatchBookmarks: true });
    for (const bookmarks of [2, 3]) {
      clock.advance(50_000);
      expect(sink.events.length).toBeGreaterThanOrEqual(bookmarks);
    }
  });

  test('none overtakes what waits for a client that has no room: it would vouch for it', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock, bookmarkIntervalMs: 1_000 });
    const sink = join(hub, { allowWatchBookmarks: true });
    sink.stall();
    await hub.publish(added(1));
    await until(() => sink.events.length === 2);
    await hub.publish(added(2));
    clock.advance(1_000);
    sink.resume();
    await until(() => sink.events.length === 3);
    clock.advance(1_000);
    expect(sink.versions).toEqual(['e.0', 'e.1', 'e.2', 'e.2']);
    expect(sink.events.map(({ type }) => type)).toEqual(['BOOKMARK', 'ADDED', 'ADDED', 'BOOKMARK']);
    sink.session.gone();
  });

  test('one comes at once, to who has no version yet and gets none by what it is sent', async () => {
    const hub = new Hub({ epoch: 'e', replay: 1 });
    const early = join(hub, { allowWatchBookmarks: true });
    await hub.publish(added(1));
    await hub.publish(added(2));
    const replayed = join(hub, { allowWatchBookmarks: true });
    const filtered = join(hub, { allowWatchBookmarks: true }, { options: { filter: () => false } });
    const resumed = join(hub, { allowWatchBookmarks: true, resourceVersion: 'e.2' });
    const unasked = join(new Hub({ epoch: 'e' }));
    const stateful = new Hub({ epoch: 'e', snapshot: () => ['a'] });
    const snapshot = join(stateful, { allowWatchBookmarks: true });
    await until(() => snapshot.events.length === 2);
    await turn();
    expect(early.versions).toEqual(['e.0', 'e.1', 'e.2']);
    expect(early.events[0]).toEqual(bookmark('e.0'));
    expect(replayed.versions).toEqual(['e.2']);
    expect(replayed.objects).toEqual([2]);
    expect(filtered.events).toEqual([bookmark('e.2')]);
    expect([resumed.events, unasked.events]).toEqual([[], []]);
    expect(snapshot.events.map(({ type }) => type)).toEqual(['ADDED', 'BOOKMARK']);
  });

  test('stand before an end by time, after all that is queued', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock });
    const sink = join(hub, { allowWatchBookmarks: true, timeoutSeconds: 5 });
    const plain = join(hub, { timeoutSeconds: 5 });
    await hub.publish(added(1));
    hub.tryPublish(added(2));
    clock.advance(5_000);
    expect(sink.events).toEqual([
      bookmark('e.0'),
      { ...added(1), resourceVersion: 'e.1' },
      { ...added(2), resourceVersion: 'e.2' },
      bookmark('e.2'),
    ]);
    expect(plain.objects).toEqual([1, 2]);
    expect([sink.ended, plain.ended]).toEqual(['timeout', 'timeout']);
    expect(clock.pending).toBe(0);
    expect(hub.stats().total).toMatchObject({ cut: 0 });
  });

  test('an end by time waits for a client that has no room, and vouches for nothing that it has not been sent', async () => {
    const clock = new FakeClock();
    const hub = new Hub({ epoch: 'e', clock });
    const sink = join(hub, { allowWatchBookmarks: true, timeoutSeconds: 1 });
    sink.stall();
    hub.tryPublish(added(1));
    await until(() => sink.events.length === 2);
    hub.tryPublish(added(2));
    clock.advance(1_000);
    hub.tryPublish(added('too late'));
    expect(sink.ended).toBeUndefined();
    sink.resume();
    await until(() => sink.ended !== undefined);
    expect(sink.objects.slice(1, 3)).toEqual([1, 2]);
    expect(sink.ended).toBe('timeout');
    // It ended at 2: whoever goes on from the bookmark must get the third.
    expect(sink.events.at(-1)).toEqual(bookmark('e.2'));
  });

  test('an end by time in the middle of a snapshot vouches for nothing', async () => {
    const clock = new FakeClock();
    const { snapshot, give, closed } = handFed();
    const hub = hubOf(snapshot, { clock });
    const sink = join(hub, { allowWatchBookmarks: true, timeoutSeconds: 1 });
    give('a');
    await turn();
    clock.advance(1_000);
    expect(sink.ended).toBe('timeout');
    expect(sink.events.filter(({ type }) => type === 'BOOKMARK')).toEqual([]);
    give('b');
    await until(closed);
  });

  test('a time longer than timers can count is no time at all', () => {
    const clock = new FakeClock();
    const sink = join(new Hub({ clock }), { timeoutSeconds: 999_999_999 });
    clock.advance(2_147_483_646);
    expect(sink.ended).toBeUndefined();
  });
});

describe.skipIf(globalThis.gc === undefined)(`with garbage collection${NO_GC}`, () => {
  test.each([
    ['an array', false],
    ['objects one by one', true],
  ])('a client that has got its snapshot, %s, does not keep it', async (_name, oneByOne) => {
    const refs: WeakRef<object>[] = [];
    const known = <T extends object>(object: T): T => {
      refs.push(new WeakRef(object));
      return object;
    };
    async function* each(): AsyncGenerator<object> {
      for (let i = 0; i < 10; i++) yield known({ i });
    }
    const hub = hubOf(() => (oneByOne ? each() : known(Array.from({ length: 10 }, (_, i) => known({ i })))));
    const sink = join(hub);
    await until(() => sink.events.length === 11);
    expect(await collectedUntil(() => refs.every((ref) => ref.deref() === undefined))).toBe(true);
    expect([refs.length, sink.session.over]).toEqual([oneByOne ? 10 : 11, false]);
  });
});
