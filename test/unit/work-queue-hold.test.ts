import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { exponential, type Work, WorkQueue } from '../../src/workqueue/index.ts';
import { fate, turn } from './support.ts';

/** A queue whose work holds its key until the test lets go. */
function rig(more: (key: string) => void = () => {}) {
  const clock = new FakeClock();
  const queue = new WorkQueue<string>({ clock, rateLimiter: exponential({ baseMs: 10 }) });
  const began: string[] = [];
  const holds: { resolve: () => void; reject: (error: unknown) => void }[] = [];
  const work: Work<string> = (key, { hold }) => {
    began.push(key);
    if (key === 'free') return;
    hold(new Promise<void>((resolve, reject) => holds.push({ resolve, reject })));
    more(key);
  };
  return { clock, queue, began, holds, work };
}

describe('hold', () => {
  it('keeps a key in work until the promise settles, while the worker goes on; then it runs if it was added', async () => {
    const { queue, began, holds, work } = rig();
    void queue.run(1, work, { onError: () => {} });
    queue.add('a');
    await turn();
    queue.add('a');
    queue.add('free');
    await turn();
    expect([began, queue.inWork, queue.size]).toEqual([['a', 'free'], 1, 0]);
    holds[0]?.reject(new Error('whatever'));
    await turn();
    expect([began, queue.inWork]).toEqual([['a', 'free', 'a'], 1]);
    holds[1]?.resolve();
    await turn();
    expect(queue.inWork).toBe(0);
  });

  it('tells what a promise rejects with, but for the end of the run, and does not try the key again', async () => {
    const { queue, began, holds, work } = rig();
    const told: unknown[] = [];
    const stopper = new AbortController();
    const run = fate(queue.run(1, work, { signal: stopper.signal, onError: (...args) => void told.push(args) }));
    queue.add('a');
    await turn();
    const error = new Error('no');
    holds[0]?.reject(error);
    await turn();
    expect(told).toEqual([[error, { key: 'a', attempt: 1, willRetry: false }]]);
    expect([began, queue.requeues('a'), queue.delayed, queue.inWork]).toEqual([['a'], 0, 0, 0]);
    queue.add('b');
    await turn();
    stopper.abort(new Error('the end'));
    holds[1]?.reject(stopper.signal.reason);
    await turn();
    expect([told.length, run.state]).toEqual([1, 'resolved']);
  });

  it('takes whatever can be awaited, as `await` does', async () => {
    const clock = new FakeClock();
    const queue = new WorkQueue<string>({ clock });
    const told: unknown[] = [];
    let open = (): void => {};
    const later = {
      // biome-ignore lint/suspicious/noThenProperty: it is to be awaited
      then: (resolve: () => void) => {
        open = resolve;
      },
    };
    const work: Work<string> = (key, { hold }) => hold((key === 'a' ? later : undefined) as never);
    void queue.run(1, work, { onError: (error) => void told.push(error) });
    queue.add('a');
    queue.add('b');
    await turn();
    expect([queue.inWork, queue.size, told]).toEqual([1, 0, []]);
    open();
    await turn();
    expect([queue.inWork, queue.delayed, told]).toEqual([0, 0, []]);
  });

  it('ends the run with what onError throws', async () => {
    const { queue, holds, work } = rig();
    const thrown = new Error('thrown');
    const run = fate(
      queue.run(1, work, {
        onError: () => {
          throw thrown;
        },
      }),
    );
    queue.add('a');
    await turn();
    holds[0]?.reject(new Error('no'));
    await turn();
    expect([run.state, run.error]).toEqual(['rejected', thrown]);
  });

  it('waits for several promises', async () => {
    const { queue, holds } = rig();
    const work: Work<string> = (_, { hold }) => {
      for (let i = 0; i < 2; i++) hold(new Promise<void>((resolve, reject) => holds.push({ resolve, reject })));
    };
    void queue.run(1, work);
    queue.add('a');
    await turn();
    holds[1]?.resolve();
    await turn();
    expect(queue.inWork).toBe(1);
    holds[0]?.resolve();
    await turn();
    expect(queue.inWork).toBe(0);
  });

  it('holds a key that fails, too, whatever its delay', async () => {
    const { queue, clock, began, holds, work } = rig(() => {
      throw new Error('no');
    });
    void queue.run(1, work, { onError: () => {} });
    queue.add('a');
    await turn();
    clock.advance(1_000);
    await turn();
    expect(began).toEqual(['a']);
    holds[0]?.resolve();
    await turn();
    expect(began).toEqual(['a', 'a']);
  });

  it('is waited for when run ends, by a signal and by a drain', async () => {
    for (const end of ['abort', 'drain']) {
      const { queue, began, holds, work } = rig();
      const stopper = new AbortController();
      const run = fate(queue.run(2, work, { signal: stopper.signal }));
      queue.add('a');
      await turn();
      queue.add('a');
      const drained = fate(end === 'abort' ? Promise.resolve(stopper.abort()) : queue.drain());
      await turn();
      expect([run.state, drained.state, began]).toEqual(['pending', end === 'abort' ? 'resolved' : 'pending', ['a']]);
      holds[0]?.resolve();
      await turn();
      // A drain runs what was added before it.
      expect([run.state, began.length, queue.inWork]).toEqual(end === 'abort' ? ['resolved', 1, 0] : ['pending', 2, 1]);
      holds[1]?.resolve();
      await turn();
      expect([run.state, drained.state]).toEqual(['resolved', 'resolved']);
    }
  });

  it('does not lose the run of a key that was added before the queue was shut down', async () => {
    const { queue, began, holds, work } = rig();
    const run = fate(queue.run(2, work));
    queue.add('a');
    await turn();
    queue.add('a');
    queue.shutDown();
    await turn();
    expect([run.state, began]).toEqual(['pending', ['a']]);
    holds[0]?.resolve();
    await turn();
    expect([run.state, began, queue.size]).toEqual(['pending', ['a', 'a'], 0]);
    holds[1]?.resolve();
    await turn();
    expect([run.state, queue.inWork]).toEqual(['resolved', 0]);
  });
});
