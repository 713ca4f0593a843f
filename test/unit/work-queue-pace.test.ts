// Workers that never wait for anything outside the process: the rest of it has its turn.
import { describe, expect, it } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { Informer } from '../../src/cache/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { Controller, WorkQueue } from '../../src/workqueue/index.ts';

/** Where nothing else has its turn, no limit of a test ends it either. */
const MOST_RUNS = 2_000_000;

/** Aborts from a timer, and counts what ran until then. Throws where the timer had no turn. */
function untilTimer(): { signal: AbortSignal; count: () => void } {
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 0);
  let runs = 0;
  const count = (): void => {
    if (++runs === MOST_RUNS && !stop.signal.aborted) {
      stop.abort();
      throw new Error('the timer had no turn');
    }
  };
  return { signal: stop.signal, count };
}

describe('work that never waits', () => {
  it.each([1, 3])('lets a timer end the run of %i workers, though each key is added again at once', async (workers) => {
    for (const again of ['add', 'addAfter'] as const) {
      const queue = new WorkQueue<string>();
      const { signal, count } = untilTimer();
      for (let key = 0; key < workers; key++) queue.add(`${key}`);
      const errors: unknown[] = [];
      const work = (key: string): void => {
        count();
        queue[again](key, 0 as never);
      };
      await queue.run(workers, work, { signal, onError: (error) => errors.push(error) });
      expect([errors, queue.size]).toEqual([[], workers]);
    }
  });

  it('lets a timer end a controller that requeues at once, and one that writes at each run', async () => {
    const resources = [{ group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' }];
    const server = new ApiServer({ storage: new MemoryStorage(), resources });
    const orders = server.resource('orders.example.com/v1');
    await orders.in('default').create({ metadata: { name: 'tea' } });
    for (const writes of [false, true]) {
      const { signal, count } = untilTimer();
      const errors: unknown[] = [];
      const informer = new Informer(orders);
      const controller = new Controller({
        informers: [informer],
        async reconcile(key, { attempt }) {
          count();
          const order = informer.store.get(key);
          if (!writes || !order) return { requeueAfterMs: -1 };
          await orders.patch('default/tea', { spec: { attempt, at: performance.now() } });
          return {};
        },
        onError: (error) => errors.push(error),
      });
      await controller.run(signal);
      expect(errors).toEqual([]);
    }
    await server.shutdown();
  });

  it('goes on in one turn by a clock of its own', async () => {
    const queue = new WorkQueue<number>({ clock: new FakeClock() });
    for (let key = 0; key < 100; key++) queue.add(key);
    queue.shutDown();
    let turned = false;
    setImmediate(() => {
      turned = true;
    });
    const busy = (): void => {
      const beganMs = performance.now();
      while (performance.now() - beganMs < 0.3);
    };
    await queue.run(2, busy);
    expect(turned).toBe(false);
  });
});
