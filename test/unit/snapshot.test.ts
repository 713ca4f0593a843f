// Snapshots: what a client gets, and what is left when it leaves.
import { describe, expect, test } from 'vitest';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { Snapshot } from '../../src/bridge/hub/hub-options.ts';
import type { ParsedQuery } from '../../src/bridge/hub/query.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { added, join, turn, until } from './fake-sink.ts';
import { handFed, hubOf } from './snapshot-source.ts';
import { collectedUntil, NO_GC } from './support.ts';

const end = (version: string): object => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: version, annotations: { 'k8s.io/initial-events-end': 'true' } } },
  resourceVersion: version,
});

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

  test('records the position before it reads the data, so nothing is lost in between', async () => {
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

  test('also exists after the stream has ended: a new client gets the state, and the end', async () => {
    const hub = hubOf(async () => ['state'], { replayItems: 0 });
    await hub.publish(added(1));
    await hub.shutdown();
    expect(coreOf(hub).start({ resourceVersion: 'e.0' })).toMatchObject({ code: 410 });
    const sink = join(hub);
    await until(() => sink.ended !== undefined);
    expect([sink.events, sink.ended]).toEqual([[{ type: 'ADDED', object: 'state' }, end('e.1')], 'complete']);
    for (const asked of [{ resourceVersion: 'e.1' }, { sendInitialEvents: false }]) {
      expect(coreOf(hub).start(asked)).toMatchObject({ code: 204 });
    }
    expect(hub.stats().clients).toEqual([]);
  });

  test('is sent to clients without a version, unless they request otherwise', async () => {
    const hub = hubOf(() => ['state']);
    await hub.publish(added(1));
    const cases: [ParsedQuery, unknown[]][] = [
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
    expect(coreOf(new Hub()).start({ sendInitialEvents: true })).toMatchObject({
      code: 400,
      message: 'sendInitialEvents: expected false, because this server has no snapshot, got "true"',
    });
  });

  test('shows only what the filter accepts', async () => {
    const hub = hubOf(() => [1, 2, 3, 4]);
    const sink = join(hub, {}, { options: { filter: (event) => (event.object as number) % 2 === 0 } });
    await until(() => sink.events.length === 3);
    expect(sink.objects.slice(0, 2)).toEqual([2, 4]);
  });

  test.each([undefined, null, 0, ''])('shows nothing if the filter returns %j, like live events', async (nothing) => {
    const hub = hubOf(() => ['a', 'b']);
    const sink = join(hub, {}, { options: { filter: () => nothing as never } });
    await until(() => sink.events.length > 0);
    await hub.publish(added('c'));
    await hub.shutdown();
    expect(sink.events).toEqual([end('e.0')]);
  });

  test('ends if its filter returns a promise, even if nothing else is published', async () => {
    const hub = hubOf(() => ['a', 'b']);
    const sink = join(hub, {}, { options: { filter: (async () => true) as never } });
    await until(() => sink.ended !== undefined);
    expect([sink.ended, sink.events.length]).toEqual(['failed', 1]);
    expect(sink.events[0]).toMatchObject({ type: 'ERROR', object: { code: 500 } });
  });

  test('that fails is one ERROR 500 and the end, and reveals no details', async () => {
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
      const message = 'the snapshot of this watch failed';
      expect(sink.events.at(-1)).toMatchObject({
        type: 'ERROR',
        object: { code: 500, reason: 'ServerTimeout', message, details: { retryAfterSeconds: 1 } },
      });
      expect(sink.text).not.toContain('secret');
      expect(hub.stats()).toMatchObject({ clients: [], total: { delivered: 0, dropped: 0 } });
    }
  });

  test('is abandoned when its client leaves: the signal aborts, the source is closed, nothing stays pending', async () => {
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

  test('is not read if its client leaves at the moment at which the source answers', async () => {
    let answer = (_objects: Iterable<unknown>): void => {};
    const answered = new Promise<Iterable<unknown>>((resolve) => {
      answer = resolve;
    });
    const sink = join(hubOf(() => answered));
    await turn();
    let read = 0;
    void answered.then(() => sink.session.gone());
    answer({ [Symbol.iterator]: () => ({ next: () => ({ done: true, value: ++read }) }) });
    await turn();
    expect([sink.session.over, read]).toEqual([true, 0]);
  });

  test('closes a source that it abandons, even if closing fails, but not one that has ended', async () => {
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

  test('leaves no listener on its signal, even after many parts', async () => {
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

  test("does not block the hub's shutdown: it is finished first, and then the stream", async () => {
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

  test('comes before an event that an observer publishes on the arrival of its client, however small the queue', async () => {
    const hub: Hub = hubOf(() => ['state'], {
      capacity: 2,
      onNotice: ({ type }) => type === 'open' && void hub.publish(added('somebody has come')),
    });
    const sink = join(hub);
    await until(() => sink.events.length === 3);
    expect(sink.events).toEqual([added('state'), end('e.0'), { ...added('somebody has come'), resourceVersion: 'e.1' }]);
  });

  test('is given the identity of its client', async () => {
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

describe.skipIf(globalThis.gc === undefined)(`with garbage collection${NO_GC}`, () => {
  test.each([
    ['an array', false],
    ['objects one by one', true],
  ])('a client that has received its snapshot, %s, does not retain it', async (_name, oneByOne) => {
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
