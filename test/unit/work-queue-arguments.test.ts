// What a work queue refuses, and what it says then; and that it leaves no listener on a signal.
import { describe, expect, it } from 'vitest';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock } from '../../src/testing/index.ts';
import {
  bucket,
  exponential,
  fastSlow,
  maxOf,
  maxWait,
  parallelizeUntil,
  WorkQueue,
  type WorkQueueMetric,
} from '../../src/workqueue/index.ts';
import { thrown, turn } from './support.ts';

const queue = (): WorkQueue<string> => new WorkQueue<string>({ clock: new FakeClock() });
const none = async (): Promise<void> => {};

describe('a work queue refuses', () => {
  it.each<[() => unknown, string]>([
    [() => new WorkQueue({ clock: 1 as never }), 'clock: expected a Clock, got 1'],
    [() => new WorkQueue({ rateLimiter: 1 as never }), 'rateLimiter: expected a RateLimiter, got 1'],
    [() => new WorkQueue({ onMetric: 1 as never }), 'onMetric: expected a function, got 1'],
    [() => new WorkQueue({ keyOf: 1 as never }), 'keyOf: expected a function, got 1'],
    [() => new WorkQueue({ maxKeys: 0 }), 'maxKeys: expected a whole number >= 1, got 0'],
    [() => new WorkQueue({ agingMs: 0 }), 'agingMs: expected a whole number >= 1, got 0'],
    [() => queue().add(undefined as never), 'key: expected any other value, got undefined'],
    [() => queue().add('a', { priority: 1_001 }), 'priority: expected a whole number from -1,000 to 1,000, got 1001'],
    [() => exponential({ baseMs: -1 }), 'baseMs: expected a finite number of milliseconds >= 0, got -1'],
    [() => exponential({ maxMs: -1 }), 'maxMs: expected a finite number of milliseconds >= 0, got -1'],
    [() => fastSlow({ fastMs: -1, slowMs: 1, attempts: 1 }), 'fastMs: expected a finite number of milliseconds >= 0, got -1'],
    [() => fastSlow({ fastMs: 1, slowMs: -1, attempts: 1 }), 'slowMs: expected a finite number of milliseconds >= 0, got -1'],
    [() => fastSlow({ fastMs: 1, slowMs: 1, attempts: -1 }), 'attempts: expected a whole number >= 0, got -1'],
    [() => bucket({ perSecond: 0 }), 'perSecond: expected a finite number > 0, got 0'],
    [() => bucket({ perSecond: Number.POSITIVE_INFINITY }), 'perSecond: expected a finite number > 0, got Infinity'],
    [() => bucket({ burst: 0 }), 'burst: expected a whole number >= 1, got 0'],
    [() => maxOf(1 as never), 'limiter: expected a RateLimiter, got 1'],
    [() => maxWait(undefined as never, 1), 'limiter: expected a RateLimiter, got undefined'],
    [() => maxWait(exponential(), -1), 'maxMs: expected a finite number of milliseconds >= 0, got -1'],
  ])('%s', (call, message) => {
    expect(thrown(call)).toMatchObject({ code: 'INVALID_ARGUMENT', message });
  });

  it.each<[() => Promise<unknown>, string]>([
    [() => queue().run(0, none), 'concurrency: expected a whole number >= 1, got 0'],
    [() => queue().run(10_001, none), 'concurrency: expected a whole number <= 10000, got 10001'],
    [() => queue().run(1, 1 as never), 'work: expected a function, got 1'],
    [() => queue().run(1, undefined as never), 'work: expected a function, got undefined'],
    [() => queue().run(1, none, { onError: 1 as never }), 'onError: expected a function, got 1'],
    [() => parallelizeUntil(1, none, { workers: 0 }), 'workers: expected a whole number >= 1, got 0'],
    [() => parallelizeUntil(1, none, { workers: 1, chunkSize: 0 }), 'chunkSize: expected a whole number >= 1, got 0'],
    [() => parallelizeUntil(-1, none, { workers: 1 }), 'pieces: expected a whole number >= 0, got -1'],
  ])('%s', async (call, message) => {
    await expect(call()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
  });

  it('a key too many, by name; and takes what is just allowed', async () => {
    const full = new WorkQueue<string>({ name: 'pods', maxKeys: 1, clock: new FakeClock() });
    full.add('a', { priority: 1_000 });
    full.add('a', { priority: -1_000 });
    expect(thrown(() => full.add('b'))).toMatchObject({
      code: 'OVERLOADED',
      message: 'work queue pods: it holds 1 keys',
      limit: 1,
    });
    const wide = queue();
    wide.shutDown();
    await wide.run(10_000, none);
  });
});

describe('a work queue and a signal', () => {
  it('leaves no listener after a key or an end, and hears an abort', async () => {
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const keys = queue();
    const first = keys.get({ signal: abort.signal });
    expect(listeners.count).toBe(1);
    keys.add('a');
    expect([await first, listeners.count]).toEqual(['a', 0]);
    const run = keys.run(2, none, { signal: abort.signal });
    await turn();
    expect(listeners.count).toBe(1);
    keys.shutDown();
    await run;
    expect(listeners.count).toBe(0);
    const other = queue();
    const [get, second] = [
      other.get({ signal: abort.signal }).catch((error: unknown) => error),
      other.run(1, none, { signal: abort.signal }),
    ];
    await turn();
    abort.abort('enough');
    expect([await get, await second]).toEqual(['enough', undefined]);
  });

  it('a loop over its keys is its own iterator, and may be begun twice', async () => {
    const keys = queue();
    keys.add('a');
    const iterator = keys[Symbol.asyncIterator]();
    expect(iterator[Symbol.asyncIterator]()).toBe(iterator);
    for await (const key of iterator) {
      expect(key).toBe('a');
      break;
    }
  });

  it('measures the depth of keys that were handed out in vain', async () => {
    const metrics: WorkQueueMetric[] = [];
    const clock = new FakeClock();
    const keys = new WorkQueue<string>({ clock, onMetric: (metric) => void metrics.push(metric) });
    const abort = new AbortController();
    const run = keys.run(1, none, { signal: abort.signal });
    await turn();
    keys.add('a');
    abort.abort();
    await run;
    await turn();
    const depths = metrics.filter(({ name }) => name === 'depth').map(({ value }) => value);
    expect([depths, keys.size]).toEqual([[1, 0, 1], 1]);
    expect(metrics.every((metric) => metric.queue === '')).toBe(true);
    keys.shutDown();
  });
});
