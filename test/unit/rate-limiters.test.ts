import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import {
  bucket,
  defaultRateLimiter,
  exponential,
  fastSlow,
  maxOf,
  maxWait,
  parallelizeUntil,
  type RateLimiter,
  WorkQueue,
} from '../../src/workqueue/index.ts';
import { thrown, turn } from './support.ts';

const delays = (limiter: RateLimiter, key: string, count: number): number[] =>
  Array.from({ length: count }, () => limiter.when(key));

describe('rate limiters', () => {
  it('TestItemExponentialFailureRateLimiter: doubles per key until it is forgotten', () => {
    const limiter = exponential({ baseMs: 1, maxMs: 1_000 });
    expect(delays(limiter, 'one', 5)).toEqual([1, 2, 4, 8, 16]);
    expect([limiter.requeues('one'), limiter.requeues('two')]).toEqual([5, 0]);
    expect(delays(limiter, 'two', 2)).toEqual([1, 2]);
    limiter.forget('one');
    expect([limiter.requeues('one'), limiter.when('one'), limiter.requeues('two')]).toEqual([0, 1, 2]);
  });

  it('TestItemExponentialFailureRateLimiterOverFlow: never more than the limit, however often', () => {
    const limiter = exponential({ baseMs: 1, maxMs: 1_000_000 });
    delays(limiter, 'one', 5);
    expect(limiter.when('one')).toBe(32);
    delays(limiter, 'one', 2_000);
    expect(limiter.when('one')).toBe(1_000_000);
    const none = exponential({ baseMs: 0 });
    expect(delays(none, 'a', 2_000).every((ms) => ms === 0)).toBe(true);
    expect(exponential().when('a')).toBe(5);
  });

  it('TestItemFastSlowRateLimiter: some fast ones, then slow ones', () => {
    const limiter = fastSlow({ fastMs: 5, slowMs: 10_000, attempts: 3 });
    expect(delays(limiter, 'one', 5)).toEqual([5, 5, 5, 10_000, 10_000]);
    expect(limiter.requeues('one')).toBe(5);
    limiter.forget('one');
    expect([limiter.requeues('one'), limiter.when('one')]).toEqual([0, 5]);
  });

  it('TestMaxOfRateLimiter: asks all, and takes the longest', () => {
    const limiter = maxOf(fastSlow({ fastMs: 5, slowMs: 3_000, attempts: 3 }), exponential({ baseMs: 1, maxMs: 1_000 }));
    expect(delays(limiter, 'one', 5)).toEqual([5, 5, 5, 3_000, 3_000]);
    expect(limiter.requeues('one')).toBe(5);
    limiter.forget('one');
    expect([limiter.requeues('one'), limiter.when('one')]).toEqual([0, 5]);
    expect([maxOf().when('a'), maxOf().requeues('a')]).toEqual([0, 0]);
  });

  it('TestWithMaxWaitRateLimiter: cuts long delays', () => {
    const limiter = maxWait(exponential({ baseMs: 1, maxMs: 1_000 }), 5);
    expect(delays(limiter, 'one', 4)).toEqual([1, 2, 4, 5]);
    expect(limiter.requeues('one')).toBe(4);
    limiter.forget('one');
    expect(limiter.requeues('one')).toBe(0);
  });

  it('a bucket gives its burst at once, then one token at a time, and may go into debt', () => {
    const clock = new FakeClock();
    const limiter = bucket({ perSecond: 10, burst: 3, clock });
    expect(delays(limiter, 'a', 5)).toEqual([0, 0, 0, 100, 200]);
    clock.advance(200); // the debt is paid
    expect(delays(limiter, 'b', 2)).toEqual([100, 200]);
    clock.advance(60_000);
    expect(delays(limiter, 'b', 4)).toEqual([0, 0, 0, 100]);
    limiter.forget('a');
    expect(limiter.requeues('a')).toBe(0);
  });

  it('the default: 5 ms doubling per key, and 10 per second with a burst of 100 for all', () => {
    const clock = new FakeClock();
    const limiter = defaultRateLimiter({ clock });
    expect(delays(limiter, 'a', 3)).toEqual([5, 10, 20]);
    for (let i = 0; i < 97; i++) expect(limiter.when(`k${i}`)).toBe(5);
    expect([limiter.when('x'), limiter.when('y')]).toEqual([100, 200]);
    expect(limiter.requeues('a')).toBe(3);
  });

  it('a maxMs below baseMs is the delay', () => {
    expect(delays(exponential({ maxMs: 1 }), 'a', 3)).toEqual([1, 1, 1]);
  });

  it.each([
    () => exponential({ baseMs: -1 }),
    () => exponential({ maxMs: Number.NaN }),
    () => bucket({ perSecond: 0 }),
    () => bucket({ burst: 0 }),
    () => fastSlow({ fastMs: 1, slowMs: Number.POSITIVE_INFINITY, attempts: 1 }),
    () => fastSlow({ fastMs: 1, slowMs: 1, attempts: 0.5 }),
    () => maxWait(exponential(), -1),
    () => exponential({ base: 1 } as never),
  ])('%s is refused', (make) => {
    expect(thrown(make)).toHaveProperty('code', 'INVALID_ARGUMENT');
  });

  it('TestRateLimitingQueue: delays grow per key, forget starts over, and what waits still comes', () => {
    const clock = new FakeClock();
    const queue = new WorkQueue<string>({ clock, rateLimiter: exponential({ baseMs: 1, maxMs: 1_000 }) });
    const dueAfter = (key: string): number => {
      queue.cancel(key);
      queue.addRateLimited(key);
      const before = clock.now();
      while (queue.delayed > 0) clock.advance(1);
      return clock.now() - before;
    };
    expect([dueAfter('one'), dueAfter('one'), queue.requeues('one')]).toEqual([1, 2, 2]);
    expect([dueAfter('two'), dueAfter('two'), queue.requeues('two')]).toEqual([1, 2, 2]);
    queue.forget('one');
    expect([queue.requeues('one'), dueAfter('one')]).toEqual([0, 1]);
    queue.addRateLimited('two');
    queue.forget('two');
    expect([queue.delayed, queue.requeues('two')]).toEqual([1, 0]);
    clock.advance(4);
    expect([queue.delayed, queue.size, clock.pending]).toEqual([0, 2, 0]);
  });
});

describe('parallelizeUntil', () => {
  it('TestParallelizeUntil: every piece once, with no more workers than there are chunks', async () => {
    for (const [pieces, workers, chunkSize] of [
      [1000, 10, undefined],
      [1000, 10, 1],
      [1000, 10, 10],
      [999, 10, 13],
      [3, 10, 2],
      [0, 5, 1],
    ] as const) {
      const seen = new Map<number, number>();
      let running = 0;
      let most = 0;
      await parallelizeUntil(
        pieces,
        async (piece) => {
          most = Math.max(most, ++running);
          seen.set(piece, (seen.get(piece) ?? 0) + 1);
          await Promise.resolve();
          running--;
        },
        { workers, chunkSize },
      );
      expect([seen.size, Math.max(1, ...seen.values()), most]).toEqual([
        pieces,
        1,
        Math.min(workers, Math.ceil(pieces / (chunkSize ?? 1))),
      ]);
    }
  });

  it('rejects with what was thrown first, whichever worker that was', async () => {
    const fail: ((error: Error) => void)[] = [];
    const ended = parallelizeUntil(2, (piece) => new Promise((_, reject) => (fail[piece] = reject)), { workers: 2 });
    const error = ended.catch(({ message }: Error) => message);
    fail[1]?.(new Error('first'));
    await turn();
    fail[0]?.(new Error('second'));
    expect(await error).toBe('first');
  });

  it('an abort begins no further chunk, and waits for what runs', async () => {
    const controller = new AbortController();
    const open: (() => void)[] = [];
    const ended = parallelizeUntil(10, () => new Promise<void>((resolve) => open.push(resolve)), {
      workers: 2,
      signal: controller.signal,
    }).then(() => 'ended');
    await turn();
    controller.abort();
    await turn();
    expect(await Promise.race([ended, Promise.resolve('running')])).toBe('running');
    for (const resolve of open) resolve();
    expect([await ended, open.length]).toEqual(['ended', 2]);
  });

  it('the first error ends it, once what runs has ended', async () => {
    const failure = new Error('no');
    let ran = 0;
    const work = async (piece: number): Promise<void> => {
      ran++;
      await turn();
      if (piece === 1) throw failure;
    };
    await expect(parallelizeUntil(100, work, { workers: 3 })).rejects.toBe(failure);
    expect(ran).toBeLessThan(7);
    await expect(parallelizeUntil(1, work, { workers: 0 })).rejects.toHaveProperty('code', 'INVALID_ARGUMENT');
  });
});
