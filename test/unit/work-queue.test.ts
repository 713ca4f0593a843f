import { describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { systemClock } from '../../src/watch/clock.ts';
import { bucket, exponential, maxOf, WorkQueue, type WorkQueueMetric, type WorkQueueOptions } from '../../src/workqueue/index.ts';
import { NO_GC, thrown, turn } from './support.ts';

type Queue = WorkQueue<string>;

function rig(options: WorkQueueOptions<string> = {}): { clock: FakeClock; queue: Queue } {
  const clock = new FakeClock();
  return { clock, queue: new WorkQueue<string>({ clock, ...options }) };
}

/** Takes and ends everything that is queued. */
async function drainNow(queue: Queue): Promise<string[]> {
  const keys: string[] = [];
  while (queue.size > 0) {
    const key = (await queue.get()) as string;
    keys.push(key);
    queue.done(key);
  }
  return keys;
}

/** What a promise is now: its value, or `pending`. */
async function now<T>(promise: Promise<T>): Promise<T | 'pending'> {
  await turn();
  return Promise.race([promise, Promise.resolve('pending' as const)]);
}

describe('the basic queue', () => {
  it('TestBasic: several producers and workers; nobody gets a key that another has', async () => {
    const { queue } = rig();
    const inHand = new Set<string>();
    const runs = new Map<string, number>();
    const workers = Array.from({ length: 10 }, async () => {
      for await (const key of queue) {
        expect(inHand.has(key)).toBe(false);
        inHand.add(key);
        runs.set(key, (runs.get(key) ?? 0) + 1);
        await Promise.resolve();
        inHand.delete(key);
        queue.done(key);
      }
    });
    for (let round = 0; round < 50; round++) {
      for (let key = 0; key < 10; key++) queue.add(`k${key}`);
      await Promise.resolve();
    }
    queue.shutDown();
    queue.add('added after the end');
    await Promise.all(workers);
    expect([...runs.keys()].sort()).toEqual(Array.from({ length: 10 }, (_, key) => `k${key}`));
    expect([queue.size, queue.inWork]).toEqual([0, 0]);
  });

  it('TestAddWhileProcessing: means exactly one more run', async () => {
    const { queue } = rig();
    queue.add('a');
    expect(await queue.get()).toBe('a');
    for (let i = 0; i < 5; i++) queue.add('a');
    expect([queue.size, queue.inWork]).toEqual([0, 1]);
    queue.done('a');
    expect(queue.size).toBe(1);
    expect(await drainNow(queue)).toEqual(['a']);
    expect([queue.size, queue.inWork]).toEqual([0, 0]);
  });

  it('TestLen: counts what is queued, each key once', async () => {
    const { queue } = rig();
    queue.add('foo');
    expect(queue.size).toBe(1);
    queue.add('bar');
    expect(queue.size).toBe(2);
    queue.add('foo');
    expect(queue.size).toBe(2);
    await queue.get();
    expect([queue.size, queue.inWork]).toEqual([1, 1]);
  });

  it('TestReinsert: a key that was added in work comes back, and then no more', async () => {
    const { queue } = rig();
    queue.add('foo');
    const key = (await queue.get()) as string;
    queue.add(key);
    queue.done(key);
    expect(await queue.get()).toBe('foo');
    queue.done(key);
    expect(queue.size).toBe(0);
  });

  it('TestCollapse: many adds of a key that is queued are one run', async () => {
    const { queue } = rig();
    queue.add('bar');
    queue.add('bar');
    expect(await drainNow(queue)).toEqual(['bar']);
  });

  it('TestCollapseWhileProcessing: many adds of a key that is in work are one more run', async () => {
    const { queue } = rig();
    queue.add('foo');
    await queue.get();
    queue.add('foo');
    queue.add('foo');
    const next = queue.get();
    expect(await now(next)).toBe('pending');
    queue.done('foo');
    expect(await next).toBe('foo');
    queue.done('foo');
    expect(queue.size).toBe(0);
  });

  it('hands out in the order of adding, and a key that comes back goes to the end', async () => {
    const { queue } = rig();
    for (const key of ['a', 'b', 'c']) queue.add(key);
    expect(await queue.get()).toBe('a');
    queue.add('a');
    queue.add('d');
    queue.done('a');
    expect(await drainNow(queue)).toEqual(['b', 'c', 'd', 'a']);
  });

  it('serves those who wait in their order', async () => {
    const { queue } = rig();
    const waiting = [queue.get(), queue.get(), queue.get()];
    queue.add('a');
    queue.add('b');
    queue.shutDown();
    expect(await Promise.all(waiting)).toEqual(['a', 'b', undefined]);
  });

  it('FIX13.3: done without get does nothing, so that nothing is queued twice', async () => {
    const { queue } = rig();
    queue.add('a');
    queue.add('b');
    queue.done('a');
    queue.done('never seen');
    expect([queue.size, queue.inWork]).toEqual([2, 0]);
    expect(await drainNow(queue)).toEqual(['a', 'b']);
    queue.done('a');
    expect(queue.size).toBe(0);
  });

  describe.skipIf(globalThis.gc === undefined)(`with garbage collection${NO_GC}`, () => {
    it('TestGarbageCollection: nothing of a key is kept when it is done', async () => {
      const queue = new WorkQueue<object>();
      const kept = new Set<WeakRef<object>>();
      const work = async (): Promise<void> => {
        for (let i = 0; i < 10; i++) {
          const key = { i };
          kept.add(new WeakRef(key));
          queue.add(key);
          if (i % 2 === 0) queue.addAfter(key, 60_000);
        }
        while (queue.size > 0) queue.done((await queue.get()) as object);
        queue.shutDown();
      };
      await work(); // in a function of its own, whose variables are gone
      await new Promise((resolve) => setImmediate(resolve));
      globalThis.gc?.();
      expect([...kept].filter((ref) => ref.deref() !== undefined)).toEqual([]);
      expect([queue.size, queue.inWork, queue.delayed]).toEqual([0, 0, 0]);
    });
  });

  it('takes strings and numbers by value, objects by identity, and by keyOf', async () => {
    const mixed = new WorkQueue<unknown>();
    for (const key of ['1', 1, '1', Number.NaN, Number.NaN, null]) mixed.add(key);
    expect(mixed.size).toBe(4);
    const objects = new WorkQueue<{ name: string; version: number }>();
    const by = new WorkQueue<{ name: string; version: number }>({ keyOf: ({ name }) => name, rateLimiter: exponential() });
    for (const queue of [objects, by]) for (const version of [1, 2]) queue.add({ name: 'a', version });
    expect([objects.size, by.size]).toEqual([2, 1]);
    expect(await by.get()).toEqual({ name: 'a', version: 2 });
    by.addRateLimited({ name: 'a', version: 3 });
    expect(by.requeues({ name: 'a', version: 4 })).toBe(1);
    by.done({ name: 'a', version: 5 });
    expect([by.inWork, by.delayed]).toEqual([0, 1]);
    by.shutDown();
  });

  it('refuses what it cannot take, and says what it wants', () => {
    const { queue } = rig();
    const refused = (code: () => unknown): unknown => (thrown(code) as { code?: string }).code;
    expect(refused(() => queue.add(undefined as never))).toBe('INVALID_ARGUMENT');
    for (const delay of [Number.NaN, Number.POSITIVE_INFINITY, '1' as never]) {
      expect(refused(() => queue.addAfter('a', delay))).toBe('INVALID_ARGUMENT');
    }
    for (const priority of [1_001, -1_001, 0.5, '1' as never])
      expect(refused(() => queue.add('a', { priority }))).toBe('INVALID_ARGUMENT');
    expect(refused(() => queue.add('a', { prio: 1 } as never))).toBe('INVALID_ARGUMENT');
    for (const options of [
      { maxKeys: 0 },
      { agingMs: 0 },
      { clock: {} },
      { rateLimiter: {} },
      { keyOf: 1 },
      { onMetric: 1 },
      { limiter: 1 },
    ]) {
      expect([options, refused(() => new WorkQueue(options as never))]).toEqual([options, 'INVALID_ARGUMENT']);
    }
    expect([queue.size, queue.delayed]).toEqual([0, 0]);
  });

  it('holds at most maxKeys different keys: queued, delayed and in work', async () => {
    const { queue } = rig({ maxKeys: 3 });
    queue.add('a');
    queue.addAfter('b', 5);
    await queue.get();
    queue.add('c');
    expect(thrown(() => queue.add('d'))).toMatchObject({ code: 'OVERLOADED', limit: 3 });
    expect(thrown(() => queue.addAfter('d', 1))).toMatchObject({ code: 'OVERLOADED', limit: 3 });
    for (const key of ['a', 'b', 'c']) queue.add(key);
    queue.done('a');
    expect(await drainNow(queue)).toEqual(['c', 'b', 'a']);
    queue.cancel('b');
    queue.add('d');
    expect(queue.size).toBe(1);
  });

  it('a key for which there is no room is no failure: it is not counted, and delays no others', () => {
    const clock = new FakeClock();
    const queue = new WorkQueue<string>({ maxKeys: 1, clock, rateLimiter: maxOf(exponential(), bucket({ burst: 1, clock })) });
    queue.add('a');
    for (let key = 0; key < 100; key++) {
      expect(thrown(() => queue.addRateLimited(`${key}`))).toMatchObject({ code: 'OVERLOADED', limit: 1 });
      expect(queue.requeues(`${key}`)).toBe(0);
    }
    queue.addRateLimited('a');
    clock.advance(5);
    expect(queue.delayed).toBe(0);
  });
});

describe('the end', () => {
  it('TestQueueDrainageUsingShutDownWithDrain: waits until everything is done', async () => {
    const { queue } = rig();
    queue.add('foo');
    queue.add('bar');
    const first = (await queue.get()) as string;
    const second = (await queue.get()) as string;
    const drained = queue.drain().then(() => 'drained');
    queue.add('baz');
    expect([await now(drained), queue.shuttingDown, queue.size]).toEqual(['pending', true, 0]);
    queue.done(first);
    expect(await now(drained)).toBe('pending');
    queue.done(second);
    expect([await drained, await queue.get()]).toEqual(['drained', undefined]);
  });

  it('FIX13.1: drain waits for what is queued, too; and needs somebody who takes it', async () => {
    const { queue } = rig();
    queue.add('a');
    const drained = queue.drain().then(() => 'drained');
    expect(await now(drained)).toBe('pending');
    const key = (await queue.get()) as string;
    expect([key, await now(drained)]).toEqual(['a', 'pending']);
    queue.done(key);
    expect(await drained).toBe('drained');
    await queue.drain(); // at once
  });

  it('TestNoQueueDrainageUsingShutDown: returns at once, whatever is in work', async () => {
    const { queue } = rig();
    queue.add('foo');
    await queue.get();
    queue.add('foo');
    queue.shutDown();
    expect([queue.inWork, await queue.get()]).toEqual([1, undefined]);
    queue.done('foo');
    expect([await queue.get(), await queue.get()]).toEqual(['foo', undefined]);
  });

  it('TestForceQueueShutdownUsingShutDown: ends drains that wait', async () => {
    const { queue } = rig();
    queue.add('foo');
    await queue.get();
    const drained = queue.drain().then(() => 'drained');
    expect(await now(drained)).toBe('pending');
    queue.shutDown();
    expect(await drained).toBe('drained');
    queue.shutDown();
    queue.done('foo');
  });

  it('FIX13.2: all callers of drain are told', async () => {
    const { queue } = rig();
    queue.add('foo');
    await queue.get();
    const drains = Promise.all([queue.drain(), queue.drain(), queue.drain()]).then(() => 'all');
    expect(await now(drains)).toBe('pending');
    queue.done('foo');
    expect(await drains).toBe('all');
  });

  it('TestQueueDrainageUsingShutDownWithDrainWithDirtyItem: what was added in work comes again, and is waited for', async () => {
    const { queue } = rig();
    queue.add('foo');
    await queue.get();
    queue.add('foo');
    const drained = queue.drain().then(() => 'drained');
    queue.done('foo');
    expect([queue.size, await now(drained)]).toEqual([1, 'pending']);
    expect(await queue.get()).toBe('foo');
    expect(await now(drained)).toBe('pending');
    queue.done('foo');
    expect(await drained).toBe('drained');
  });

  it('FIX13.4: nothing that is delayed, and no timer, is left by either end', () => {
    for (const end of ['shutDown', 'drain'] as const) {
      const { clock, queue } = rig();
      queue.addAfter('a', 10);
      queue.addRateLimited('b');
      expect([clock.pending, queue.delayed]).toEqual([1, 2]);
      void queue[end]();
      expect([clock.pending, queue.delayed]).toEqual([0, 0]);
      queue.addAfter('c', 10);
      queue.addRateLimited('c');
      clock.advance(1_000);
      expect([clock.pending, queue.size]).toEqual([0, 0]);
    }
  });

  it('a get that is aborted rejects with the reason, leaves no listener, and loses no key', async () => {
    const { queue } = rig();
    const controller = new AbortController();
    const removed = vi.spyOn(controller.signal, 'removeEventListener');
    const reason = new Error('enough');
    const first = queue.get({ signal: controller.signal });
    queue.add('a');
    expect([await first, removed.mock.calls.length]).toEqual(['a', 1]);
    const second = queue.get({ signal: controller.signal });
    controller.abort(reason);
    await expect(second).rejects.toBe(reason);
    await expect(queue.get({ signal: controller.signal })).rejects.toBe(reason);
    queue.add('b');
    expect(await drainNow(queue)).toEqual(['b']);
  });

  it('an iterator that returns takes its request back', async () => {
    const { queue } = rig();
    const iterator = queue[Symbol.asyncIterator]();
    const pending = iterator.next();
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
    expect([await pending, await iterator.next()]).toEqual(Array(2).fill({ done: true, value: undefined }));
    queue.add('a');
    expect(queue.size).toBe(1);
    for await (const key of queue) {
      queue.done(key);
      break;
    }
    expect([queue.size, queue.inWork]).toEqual([0, 0]);
  });
});

describe('the delaying queue', () => {
  it('TestSimpleQueue: adds when it is time, and again for the next delay', async () => {
    const { clock, queue } = rig();
    queue.addAfter('foo', 50);
    expect([queue.size, queue.delayed]).toEqual([0, 1]);
    clock.advance(49);
    expect(queue.size).toBe(0);
    clock.advance(1);
    expect([queue.size, queue.delayed]).toEqual([1, 0]);
    expect(await drainNow(queue)).toEqual(['foo']);
    clock.advance(20_000);
    expect([queue.size, clock.pending]).toEqual([0, 0]);
  });

  it('TestDeduping: the shorter of two times counts, the longer is ignored', async () => {
    const { clock, queue } = rig();
    queue.addAfter('foo', 50);
    queue.addAfter('foo', 70);
    expect([queue.delayed, clock.pending]).toEqual([1, 1]);
    clock.advance(50);
    expect(await drainNow(queue)).toEqual(['foo']);
    clock.advance(40);
    expect(queue.size).toBe(0);
    queue.addAfter('foo', 50);
    queue.addAfter('foo', 30);
    clock.advance(30);
    expect(await drainNow(queue)).toEqual(['foo']);
    clock.advance(100);
    expect([queue.size, queue.delayed, clock.pending]).toEqual([0, 0, 0]);
  });

  it('TestAddTwoFireEarly: two keys, each at its time', async () => {
    const { clock, queue } = rig();
    const [first, second, third] = ['foo', 'bar', 'baz'];
    queue.addAfter(first, 1_000);
    queue.addAfter(second, 50);
    queue.addAfter(third, 100);
    clock.advance(50);
    expect(await drainNow(queue)).toEqual([second]);
    clock.advance(50);
    expect(await drainNow(queue)).toEqual([third]);
    clock.advance(900);
    expect(await drainNow(queue)).toEqual([first]);
  });

  it('TestCopyShifting: in order of time, those of one time in order of adding', async () => {
    const { clock, queue } = rig();
    for (const [key, delayMs] of [
      ['a', 1_000],
      ['b', 500],
      ['c', 300],
      ['d', 500],
      ['e', 1],
    ] as const)
      queue.addAfter(key, delayMs);
    clock.advance(2_000);
    expect(await drainNow(queue)).toEqual(['e', 'c', 'b', 'd', 'a']);
  });

  it('a delay of 0 or less is no delay', async () => {
    const { clock, queue } = rig();
    queue.addAfter('a', 0);
    queue.addAfter('b', -5);
    expect([await drainNow(queue), clock.pending]).toEqual([['a', 'b'], 0]);
  });

  it('an add does not replace the time that a key waits for; cancel does (FIX13.5)', async () => {
    const { clock, queue } = rig();
    queue.addAfter('a', 10);
    queue.add('a');
    queue.forget('a');
    expect(await drainNow(queue)).toEqual(['a']);
    clock.advance(10);
    expect(await drainNow(queue)).toEqual(['a']);
    queue.addAfter('a', 10);
    queue.add('a');
    expect([queue.cancel('a'), queue.cancel('a'), queue.cancel('b'), clock.pending, queue.size]).toEqual([
      true,
      false,
      false,
      0,
      1,
    ]);
    clock.advance(10);
    expect(await drainNow(queue)).toEqual(['a']);
  });

  it('cancelling the first leaves the second its time', async () => {
    const { clock, queue } = rig();
    queue.addAfter('a', 10);
    queue.addAfter('b', 20);
    queue.cancel('a');
    clock.advance(19);
    expect(queue.size).toBe(0);
    clock.advance(1);
    expect(await drainNow(queue)).toEqual(['b']);
  });

  it('a time that comes while the key is in work means one more run', async () => {
    const { clock, queue } = rig();
    queue.add('a');
    await queue.get();
    queue.addAfter('a', 10);
    clock.advance(10);
    expect(queue.size).toBe(0);
    queue.done('a');
    expect(await drainNow(queue)).toEqual(['a']);
  });

  it('FIX13.6: a delay longer than a timer can be is waited for in full', async () => {
    vi.useFakeTimers();
    try {
      const { queue } = rig({ clock: systemClock });
      const days = 60 * 86_400_000;
      queue.addAfter('a', days);
      vi.advanceTimersByTime(days - 1);
      expect(queue.size).toBe(0);
      vi.advanceTimersByTime(1);
      expect(await drainNow(queue)).toEqual(['a']);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('priorities', () => {
  it('higher ones first, then in order of adding', async () => {
    const { queue } = rig();
    queue.add('low', { priority: -100 });
    queue.add('a');
    queue.add('high', { priority: 5 });
    queue.add('b');
    queue.add('high2', { priority: 5 });
    expect(await drainNow(queue)).toEqual(['high', 'high2', 'a', 'b', 'low']);
  });

  it('the highest of several counts, and the time that was waited', async () => {
    const { clock, queue } = rig();
    queue.add('a', { priority: -5 });
    queue.add('b');
    clock.advance(10);
    queue.add('c', { priority: 1 });
    queue.add('a', { priority: 1 });
    queue.add('a', { priority: -9 });
    expect(await drainNow(queue)).toEqual(['a', 'c', 'b']);
    queue.addAfter('a', 10, { priority: 1 });
    queue.addAfter('a', 20, { priority: 7 });
    queue.addAfter('b', 10, { priority: 5 });
    queue.addAfter('c', 10);
    clock.advance(10);
    expect(await drainNow(queue)).toEqual(['a', 'b', 'c']);
  });

  it('nothing starves: a key is overtaken only by those that come within its time', async () => {
    const { clock, queue } = rig({ agingMs: 100 });
    queue.add('low', { priority: -10 });
    const order: string[] = [];
    for (let i = 0; i < 30 && !order.includes('low'); i++) {
      queue.add(`busy${i}`);
      order.push((await queue.get()) as string);
      queue.done(order.at(-1) as string);
      clock.advance(100);
    }
    expect(order.at(-1)).toBe('low');
    expect(order).toHaveLength(11); // 10 levels of 100 ms each
  });

  it('a key that failed keeps its priority', async () => {
    const { clock, queue } = rig({ rateLimiter: exponential({ baseMs: 1 }) });
    queue.add('a', { priority: 9 });
    await queue.get();
    queue.addRateLimited('a');
    queue.done('a');
    queue.add('b');
    clock.advance(1);
    expect(await drainNow(queue)).toEqual(['a', 'b']);
  });
});

describe('metrics', () => {
  function measured(): { clock: FakeClock; queue: Queue; told: () => Promise<string[]>; all: WorkQueueMetric[] } {
    const all: WorkQueueMetric[] = [];
    const { clock, queue } = rig({ name: 'test', onMetric: (metric) => void all.push(metric), rateLimiter: exponential() });
    return {
      clock,
      queue,
      all,
      told: async () => {
        await turn();
        return all.splice(0).map(({ name, value }) => `${name} ${value}`);
      },
    };
  }

  it('TestMetrics: by name, each at its time', async () => {
    const { clock, queue, told, all } = measured();
    queue.add('foo');
    await turn();
    expect(all[0]?.queue).toBe('test');
    expect(await told()).toEqual(['adds 1', 'depth 1']);
    clock.advance(50);
    const key = (await queue.get()) as string;
    expect(await told()).toEqual(['depth 0', 'queueDurationMs 50']);
    queue.add('foo');
    expect(await told()).toEqual(['adds 1', 'depth 1']);
    queue.add('foo');
    expect(await told()).toEqual([]);
    clock.advance(25);
    queue.done(key);
    expect(await told()).toEqual(['unfinishedWorkMs 0', 'longestRunningMs 0', 'workDurationMs 25']);
    clock.advance(10);
    await queue.get();
    expect(await told()).toEqual(['depth 0', 'queueDurationMs 35']);
    queue.add('bar');
    await queue.get();
    await told();
    clock.advance(500);
    expect(await told()).toEqual(['unfinishedWorkMs 1000', 'longestRunningMs 500']);
    queue.addAfter('foo', 5);
    queue.addRateLimited('foo');
    expect(await told()).toEqual(['retries 1', 'retries 1']);
    queue.done('foo');
    queue.done('bar');
    expect(await told()).toEqual(['workDurationMs 500', 'unfinishedWorkMs 0', 'longestRunningMs 0', 'workDurationMs 500']);
    clock.advance(5);
    expect([await told(), clock.pending]).toEqual([['adds 1', 'depth 1'], 0]);
  });

  it('TestMetricShutdown: the timer ends with the queue', async () => {
    const { clock, queue, told } = measured();
    queue.add('foo');
    await queue.get();
    clock.advance(1_000);
    expect([(await told()).length, clock.pending]).toEqual([8, 1]);
    queue.shutDown();
    clock.advance(1_000);
    expect([await told(), clock.pending]).toEqual([[], 0]);
    queue.done('foo');
    expect(await told()).toEqual(['workDurationMs 2000']);
  });

  it('may throw, which is told and harms nobody', async () => {
    const told = vi.spyOn(console, 'error').mockImplementation(() => {});
    const failure = new Error('no');
    const { queue } = rig({
      name: 'test',
      onMetric: () => {
        throw failure;
      },
    });
    queue.add('a');
    await turn();
    expect(told.mock.calls).toEqual([
      [expect.stringMatching(/^watchmux work queue test: onMetric failed for adds: Error: no \(at /)],
    ]);
    expect(await drainNow(queue)).toEqual(['a']);
    await turn();
    told.mockRestore();
  });

  it('may call the queue, and are told in order', async () => {
    const order: string[] = [];
    const { queue } = rig({
      onMetric: ({ name, value }) => {
        order.push(`${name} ${value}`);
        if (order.length === 1) queue.add('b');
      },
    });
    queue.add('a');
    await turn();
    expect(order).toEqual(['adds 1', 'depth 1', 'adds 1', 'depth 2']);
    expect(await drainNow(queue)).toEqual(['a', 'b']);
  });
});
