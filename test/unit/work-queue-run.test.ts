import { describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { exponential, type RateLimiter, WorkQueue, type WorkQueueOptions } from '../../src/workqueue/index.ts';
import { turn } from './support.ts';

interface Step {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A queue whose work ends when the test says so. */
function rig(options: WorkQueueOptions<string> = {}) {
  const clock = new FakeClock();
  const queue = new WorkQueue<string>({ clock, rateLimiter: exponential({ baseMs: 10 }), ...options });
  const began: string[] = [];
  const running = new Map<string, Step>();
  const errors: string[] = [];
  const work = (key: string, { attempt }: { attempt: number }): Promise<void> => {
    began.push(`${key}#${attempt}`);
    return new Promise((resolve, reject) => running.set(key, { resolve, reject }));
  };
  const onError = (error: unknown, { key, attempt, willRetry }: { key: string; attempt: number; willRetry: boolean }): void =>
    void errors.push(`${key}#${attempt} ${error} ${willRetry}`);
  const end = async (key: string, error?: unknown): Promise<void> => {
    const step = running.get(key) as Step;
    running.delete(key);
    if (error === undefined) step.resolve();
    else step.reject(error);
    await turn();
  };
  return { clock, queue, began, running, errors, work, onError, end };
}

/** What has become of a promise. */
const settled = async (promise: Promise<unknown>): Promise<string> => {
  let state = 'pending';
  promise.then(
    () => (state = 'resolved'),
    (error) => (state = `rejected ${error}`),
  );
  await turn();
  return state;
};

describe('run', () => {
  it('works on as many keys at a time as it may, and ends when the queue does', async () => {
    const { queue, began, running, work, end, onError } = rig();
    const run = queue.run(2, work, { onError });
    for (const key of ['a', 'b', 'c']) queue.add(key);
    await turn();
    expect([began, queue.size, queue.inWork]).toEqual([['a#1', 'b#1'], 1, 2]);
    await end('a');
    expect(began).toEqual(['a#1', 'b#1', 'c#1']);
    queue.shutDown();
    expect(await settled(run)).toBe('pending');
    for (const key of [...running.keys()]) await end(key);
    expect([await settled(run), queue.inWork]).toEqual(['resolved', 0]);
  });

  it('tries again what fails, later each time, and counts the attempts until one succeeds', async () => {
    const { clock, queue, began, errors, work, onError, end } = rig();
    const run = queue.run(1, work, { onError });
    queue.add('a');
    await turn();
    for (const delayMs of [10, 20, 40]) {
      await end('a', 'no');
      expect([queue.delayed, queue.inWork, queue.size]).toEqual([1, 0, 0]);
      clock.advance(delayMs - 1);
      await turn();
      expect(queue.delayed).toBe(1);
      clock.advance(1);
      await turn();
      expect([queue.delayed, queue.inWork]).toEqual([0, 1]);
    }
    await end('a');
    expect([began, errors]).toEqual([
      ['a#1', 'a#2', 'a#3', 'a#4'],
      ['a#1 no true', 'a#2 no true', 'a#3 no true'],
    ]);
    expect(queue.requeues('a')).toBe(0);
    queue.add('a');
    await turn();
    expect(began.at(-1)).toBe('a#1');
    await end('a');
    queue.shutDown();
    await run;
    expect(clock.pending).toBe(0);
  });

  it('work that throws is work that rejects, and other keys are not held up', async () => {
    const { clock, queue, errors, onError } = rig();
    const done: string[] = [];
    const run = queue.run(
      1,
      (key) => {
        if (key === 'bad') throw new Error('thrown');
        done.push(key);
      },
      { onError },
    );
    for (const key of ['bad', 'a', 'b']) queue.add(key);
    await turn();
    expect([done, errors, queue.delayed]).toEqual([['a', 'b'], ['bad#1 Error: thrown true'], 1]);
    queue.shutDown();
    await run;
    expect(clock.pending).toBe(0);
  });

  it('what is added while it is in work runs once more, whether the work fails or not', async () => {
    const { clock, queue, began, work, onError, end } = rig();
    const run = queue.run(3, work, { onError });
    queue.add('a');
    await turn();
    queue.add('a');
    queue.add('a');
    await turn();
    expect(began).toEqual(['a#1']);
    await end('a', 'no');
    expect(began).toEqual(['a#1', 'a#2']);
    await end('a');
    clock.advance(10);
    await turn();
    expect(began).toEqual(['a#1', 'a#2', 'a#1']); // the retry still came: it was not cancelled
    await end('a');
    queue.shutDown();
    await run;
  });

  it('an abort takes no further key, tells the work, and waits for it; the queue goes on', async () => {
    const { queue, began, work, onError, errors, end } = rig();
    const controller = new AbortController();
    const reason = new Error('enough');
    let told: unknown;
    const run = queue.run(
      2,
      (key, context) => {
        context.signal.addEventListener('abort', () => {
          told = context.signal.reason;
        }); // prettier-ignore
        return work(key, context);
      },
      { onError, signal: controller.signal },
    );
    for (const key of ['a', 'b', 'c']) queue.add(key);
    await turn();
    controller.abort(reason);
    expect([told, await settled(run)]).toEqual([reason, 'pending']);
    await end('a');
    await end('b', reason);
    expect([await settled(run), began, errors, queue.shuttingDown]).toEqual(['resolved', ['a#1', 'b#1'], [], false]);
    expect([queue.size, queue.inWork, queue.delayed]).toEqual([2, 0, 0]); // c, and b again without a delay
    expect(await settled(queue.run(1, work, { signal: controller.signal }))).toBe('resolved');
    expect(queue.size).toBe(2);
  });

  it('an abort leaves no listener, and work that fails for another reason then is reported and comes again', async () => {
    const { queue, work, onError, errors, end } = rig();
    const controller = new AbortController();
    const [added, removed] = [
      vi.spyOn(controller.signal, 'addEventListener'),
      vi.spyOn(controller.signal, 'removeEventListener'),
    ];
    const run = queue.run(4, work, { onError, signal: controller.signal });
    queue.add('a', { priority: 7 });
    await turn();
    controller.abort();
    await end('a', 'other');
    await run;
    expect([errors, queue.size, added.mock.calls.length, removed.mock.calls.length]).toEqual([['a#1 other true'], 1, 1, 1]);
    queue.add('b', { priority: 6 });
    expect(await queue.get()).toBe('a'); // with the priority it had
  });

  it('a key that was handed out in the turn of the abort is put back where it stood', async () => {
    const { queue, began, work, onError } = rig();
    const controller = new AbortController();
    const run = queue.run(1, work, { onError, signal: controller.signal });
    await turn();
    queue.add('a'); // goes to the worker, which will see it in its own turn
    queue.add('b');
    controller.abort();
    await run;
    expect([began, queue.size, queue.inWork]).toEqual([[], 2, 0]);
    queue.shutDown();
    expect([await queue.get(), await queue.get()]).toEqual(['a', 'b']);
  });

  it('and with the priority that it was added with since, if that is higher', async () => {
    const { queue, work, onError } = rig();
    const controller = new AbortController();
    const run = queue.run(1, work, { onError, signal: controller.signal });
    await turn();
    queue.add('a');
    queue.add('a', { priority: 5 });
    controller.abort();
    await run;
    queue.add('b', { priority: 3 });
    queue.shutDown();
    expect([await queue.get(), await queue.get()]).toEqual(['a', 'b']);
  });

  it('the same while the queue drains: the key is not lost', async () => {
    const { queue, began, work, onError, end } = rig();
    const controller = new AbortController();
    const run = queue.run(1, work, { onError, signal: controller.signal });
    await turn();
    queue.add('a');
    const drained = queue.drain();
    controller.abort();
    await run;
    expect([await settled(drained), queue.size]).toEqual(['pending', 1]);
    const second = queue.run(1, work, { onError });
    await turn();
    expect(began).toEqual(['a#1']);
    await end('a');
    expect([await settled(drained), await settled(second)]).toEqual(['resolved', 'resolved']);
  });

  it('a drain waits for what runs, also for what runs again; what fails then is not tried again', async () => {
    const { clock, queue, began, errors, work, onError, end } = rig();
    const run = queue.run(2, work, { onError });
    queue.add('a');
    queue.add('b');
    await turn();
    queue.add('a');
    const drained = queue.drain();
    await end('a');
    await end('b', 'no');
    expect([began, errors, await settled(drained)]).toEqual([['a#1', 'b#1', 'a#1'], ['b#1 no false'], 'pending']);
    await end('a');
    expect([await settled(drained), await settled(run), clock.pending]).toEqual(['resolved', 'resolved', 0]);
  });

  it('what was added to a key in work runs in a drain, also when the run that had the key was aborted', async () => {
    const { queue, began, work, onError, end } = rig();
    const controller = new AbortController();
    const first = queue.run(1, work, { onError, signal: controller.signal });
    queue.add('a');
    await turn();
    queue.add('a');
    controller.abort();
    const second = queue.run(2, work, { onError });
    const drained = queue.drain();
    await end('a');
    expect([await settled(first), began, await settled(drained)]).toEqual(['resolved', ['a#1', 'a#1'], 'pending']);
    await end('a');
    expect([await settled(drained), await settled(second)]).toEqual(['resolved', 'resolved']);
  });

  it('several runs share a queue', async () => {
    const { queue, began, work, onError, end } = rig();
    const runs = [queue.run(1, work, { onError }), queue.run(1, work, { onError })];
    for (const key of ['a', 'b', 'c']) queue.add(key);
    await turn();
    expect(began).toEqual(['a#1', 'b#1']);
    queue.shutDown();
    for (const key of ['a', 'b', 'c']) await end(key);
    expect(await Promise.all(runs.map(settled))).toEqual(['resolved', 'resolved']);
  });

  it('what onError throws ends the run with it, after what runs; nothing is lost', async () => {
    const { queue, work, end } = rig();
    const run = queue.run(2, work, {
      onError: () => {
        throw new Error('in onError');
      },
    }); // prettier-ignore
    run.catch(() => {});
    for (const key of ['a', 'b', 'c']) queue.add(key);
    await turn();
    await end('a', 'no');
    expect(await settled(run)).toBe('pending');
    await end('b');
    expect([await settled(run), queue.size, queue.inWork]).toEqual(['rejected Error: in onError', 2, 0]);
  });

  it('so does what an async onError rejects with, once it does', async () => {
    const { queue, work, end } = rig();
    let reject = (_: Error): void => {};
    const onError = (): Promise<void> =>
      new Promise((_, give) => {
        reject = give;
      });
    const run = queue.run(1, work, { onError });
    run.catch(() => {});
    queue.add('a');
    await turn();
    await end('a', 'no');
    expect(await settled(run)).toBe('pending');
    reject(new Error('in onError'));
    await turn();
    expect([await settled(run), queue.inWork]).toEqual(['rejected Error: in onError', 0]);
  });

  it('so does what a rate limiter throws, or answers', async () => {
    const throwing: RateLimiter = {
      when: () => {
        throw new Error('in when');
      },
      forget() {},
      requeues: () => 0,
    }; // prettier-ignore
    const senseless: RateLimiter = { when: () => Number.NaN, forget() {}, requeues: () => 0 };
    for (const [rateLimiter, expected] of [
      [throwing, 'in when'],
      [senseless, 'delayMs: expected a finite number'],
    ] as const) {
      const { queue, work, onError, end } = rig({ rateLimiter });
      const run = queue.run(1, work, { onError });
      run.catch(() => {});
      queue.add('a');
      await turn();
      await end('a', 'no');
      expect([(await settled(run)).includes(expected), queue.size, queue.inWork]).toEqual([true, 1, 0]);
    }
  });

  it('without onError, failures go to console.error', async () => {
    const { queue, work, end } = rig({ name: 'orders' });
    const error = vi.spyOn(console, 'error').mockImplementation(() => {});
    const run = queue.run(1, work);
    queue.add('a');
    await turn();
    await end('a', 'no');
    expect(error.mock.calls).toEqual([['watchmux work queue orders: work failed for a, attempt 1: no']]);
    error.mockRestore();
    queue.shutDown();
    await run;
  });

  it('gives up on work that never settles, names some of the keys, and takes them back when it does', async () => {
    const clock = new FakeClock();
    const queue = new WorkQueue<string>({ clock });
    const ends: (() => void)[] = [];
    const stop = new AbortController();
    const run = queue.run(10, () => new Promise<void>((resolve) => ends.push(resolve)), { signal: stop.signal, timeoutMs: 100 });
    const failed = run.catch((error: unknown) => error);
    for (let n = 0; n < 7; n++) queue.add(`k${n}`);
    await turn();
    clock.advance(1_000); // nothing is limited before the signal aborts
    stop.abort();
    await turn();
    clock.advance(100);
    const message = 'gave up after 100 ms on the work on k0, k1, k2, k3, k4 and 2 more';
    expect(await failed).toMatchObject({ code: 'TIMEOUT', limit: 100, message });
    expect([queue.inWork, clock.pending]).toEqual([7, 0]);
    for (const end of ends) end();
    await turn();
    expect(queue.inWork).toBe(0);
    await expect(queue.run(1, () => {}, { timeoutMs: -1 })).rejects.toHaveProperty('code', 'INVALID_ARGUMENT');
  });

  it('does not wait for timeoutMs when all work has ended', async () => {
    const clock = new FakeClock();
    const queue = new WorkQueue<string>({ clock });
    const stop = new AbortController();
    const run = queue.run(1, () => {}, { signal: stop.signal, timeoutMs: 100 });
    stop.abort();
    await run;
    expect(clock.pending).toBe(0);
  });

  it('refuses what makes no sense', async () => {
    const { queue, work } = rig();
    for (const concurrency of [0, -1, 0.5, Number.NaN, 10_001]) {
      await expect(queue.run(concurrency, work)).rejects.toHaveProperty('code', 'INVALID_ARGUMENT');
    }
    await expect(queue.run(1, 'work' as never)).rejects.toHaveProperty('code', 'INVALID_ARGUMENT');
    await expect(queue.run(1, undefined as never)).rejects.toHaveProperty('code', 'INVALID_ARGUMENT');
    await expect(queue.run(1, work, { onError: 1 } as never)).rejects.toHaveProperty('code', 'INVALID_ARGUMENT');
    await expect(queue.run(1, work, { retries: 1 } as never)).rejects.toHaveProperty('code', 'INVALID_ARGUMENT');
  });
});
