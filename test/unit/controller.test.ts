import { afterEach, describe, expect, it, vi } from 'vitest';
import { Informer } from '../../src/cache/index.ts';
import { FakeClock, ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeListWatcher } from '../../src/testing/fakes/fake-list-watcher.ts';
import {
  Controller,
  type ControllerFailure,
  type ControllerOptions,
  exponential,
  type ReconcileContext,
  WorkQueue,
} from '../../src/workqueue/index.ts';
import { FakeInformer, type Thing } from './fake-informer.ts';
import { fate, thrown, turn } from './support.ts';

/** A controller whose reconciles end when the test says so, or at once. */
function rig(options: Partial<ControllerOptions<Thing>> = {}, informer = new FakeInformer(new FakeClock())) {
  const clock = new FakeClock();
  const queue = new WorkQueue<string>({ clock, rateLimiter: exponential({ baseMs: 10, maxMs: 40 }) });
  const began: string[] = [];
  const told: string[] = [];
  const onError = (error: unknown, { during, key, attempt, dropped, object }: ControllerFailure): void => {
    told.push(
      [during, key ?? (object as Thing | undefined)?.metadata.name, attempt, dropped && 'dropped', error]
        .filter(Boolean)
        .join(' '),
    );
  };
  const controller = new Controller<Thing>({
    informers: [informer],
    queue,
    onError,
    ...options,
    reconcile: async (key, context) => {
      began.push(`${key}#${context.attempt}`);
      return options.reconcile?.(key, context);
    },
  });
  const stopper = new AbortController();
  const start = async () => {
    const run = fate(controller.run(stopper.signal));
    await turn();
    return run;
  };
  return { clock, queue, began, told, controller, informer, stopper, start };
}

/** Reconciles that wait for the test. */
function gates() {
  const open = new Map<string, { resolve: () => void; reject: (error: unknown) => void; context: ReconcileContext }>();
  const reconcile = (key: string, context: ReconcileContext): Promise<void> =>
    new Promise((resolve, reject) => open.set(key, { resolve, reject, context }));
  const end = async (key: string, error?: unknown): Promise<void> => {
    const gate = open.get(key);
    open.delete(key);
    if (error === undefined) gate?.resolve();
    else gate?.reject(error);
    await turn();
  };
  return { open, reconcile, end };
}

afterEach(() => void vi.restoreAllMocks());

describe('a controller begins', () => {
  it('when all informers are synced, with every object that there is', async () => {
    const clock = new FakeClock();
    const one = new FakeInformer(clock, { synced: false });
    const other = new FakeInformer(clock, { synced: false });
    const { began, start, stopper } = rig({ informers: [one, { informer: other, keysOf: () => ['a'] }] });
    one.set('a');
    one.set('b');
    const run = await start();
    one.sync();
    await turn();
    expect(began).toEqual([]);
    other.sync();
    await turn();
    expect(began).toEqual(['a#1', 'b#1']);
    stopper.abort();
    await turn();
    expect(run.state).toBe('resolved');
  });

  it('by running the informers that nobody runs, each once, and ends them; others go on', async () => {
    const clock = new FakeClock();
    const mine = new FakeInformer(clock, { started: false });
    const shared = new FakeInformer(clock, { started: true });
    const { start, stopper } = rig({ informers: [mine, { informer: mine, keysOf: () => [] }, shared] });
    const run = await start();
    expect([mine.started, mine.stops, shared.stops]).toEqual([true, 0, 0]);
    stopper.abort();
    await turn();
    expect([run.state, mine.stops, shared.stops, mine.handlers.size, shared.handlers.size]).toEqual(['resolved', 1, 0, 0, 0]);
  });

  it('once', async () => {
    const { controller, start, stopper } = rig();
    await start();
    await expect(controller.run()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    stopper.abort();
  });

  it('not at all with a signal that has aborted', async () => {
    const { controller, informer, began } = rig({}, new FakeInformer(new FakeClock(), { started: false }));
    informer.set('a');
    await controller.run(AbortSignal.abort());
    expect([informer.started, informer.handlers.size, began, controller.queue.shuttingDown]).toEqual([false, 0, [], true]);
  });
});

describe('changes become keys', () => {
  it('by what the informer calls the key: added, changed, deleted and resynced', async () => {
    const { informer, began, start } = rig();
    await start();
    for (const change of [
      () => informer.set('a'),
      () => informer.set('a'),
      () => informer.resync(),
      () => informer.delete('a'),
    ]) {
      change();
      await turn();
    }
    expect(began).toEqual(['a#1', 'a#1', 'a#1', 'a#1']);
  });

  it('with keysOf, of the state before and of the one after', async () => {
    const pods = new FakeInformer(new FakeClock());
    const { began, start } = rig({
      informers: [new FakeInformer(new FakeClock()), { informer: pods, keysOf: ({ owner }) => (owner ? [owner] : []) }],
    });
    await start();
    for (const change of [() => pods.set('p', 'x'), () => pods.set('p', 'y'), () => pods.set('p'), () => pods.delete('p')]) {
      change();
      await turn();
      began.push('|');
    }
    expect(began).toEqual(['x#1', '|', 'x#1', 'y#1', '|', 'y#1', '|', '|']);
  });

  it('and keysOf that throws, or returns a string, harms only its object', async () => {
    const keysOf = ({ metadata: { name } }: Thing): readonly string[] => {
      if (name === 'bad') throw new Error('no');
      return name === 'text' ? ('text' as unknown as string[]) : [name];
    };
    const informer = new FakeInformer(new FakeClock());
    const { began, told, start } = rig({ informers: [{ informer, keysOf }] }, informer);
    await start();
    for (const name of ['bad', 'text', 'good']) informer.set(name);
    await turn();
    expect(began).toEqual(['good#1']);
    expect(told).toEqual([
      'event bad Error: no',
      'event text WatchError: keysOf: expected it to return an array of strings, got "text"',
    ]);
  });

  it.each([5, null, undefined])('and keysOf with a key that is no text, %s, is told', async (key) => {
    const informer = new FakeInformer(new FakeClock());
    const { began, told, start } = rig({ informers: [{ informer, keysOf: () => [key as never, 'a'] }] }, informer);
    await start();
    informer.set('x');
    await turn();
    expect([began, told]).toEqual([
      [],
      [`event x WatchError: keysOf: expected it to return an array of strings, got ${key ?? ''},a`],
    ]);
  });

  it('what the queue refuses is told', async () => {
    const { reconcile } = gates();
    const { informer, told, start } = rig({ queue: new WorkQueue<string>({ maxKeys: 1 }), reconcile });
    await start();
    informer.set('a');
    informer.set('b');
    expect(told).toEqual(['event b WatchError: work queue: it holds 1 keys']);
  });

  it('filter and resyncMs are the business of the informer', async () => {
    const informer = new FakeInformer(new FakeClock());
    const filter = (): boolean => true;
    await rig({ informers: [{ informer, filter, resyncMs: 5 }] }, informer).start();
    expect([...informer.handlers].map(({ options }) => options)).toEqual([{ filter, resyncMs: 5 }]);
  });
});

describe('reconcile', () => {
  it('runs as often at a time as told, each key in one hand, and once more for what changes meanwhile', async () => {
    const { open, reconcile, end } = gates();
    const { informer, began, start } = rig({ reconcile, concurrency: 2 });
    await start();
    for (const name of ['a', 'b', 'c', 'a', 'a']) informer.set(name);
    await turn();
    expect(began).toEqual(['a#1', 'b#1']);
    informer.set('a');
    informer.delete('a');
    await end('b');
    await end('a');
    expect(began).toEqual(['a#1', 'b#1', 'c#1', 'a#1']);
    expect([...open.keys()]).toEqual(['c', 'a']);
  });

  it('that fails is told, tried again later each time, and dropped after maxRetries; a change begins anew', async () => {
    const { clock, informer, began, told, queue, start } = rig({
      maxRetries: 2,
      reconcile: async () => {
        throw new Error('no');
      },
    });
    await start();
    informer.set('a');
    await turn();
    expect([began.length, queue.delayed]).toEqual([1, 1]);
    for (const ms of [10, 20]) {
      clock.advance(ms - 1);
      await turn();
      const before = began.length;
      clock.advance(1);
      await turn();
      expect(began.length).toBe(before + 1);
    }
    expect(told).toEqual(['reconcile a 1 Error: no', 'reconcile a 2 Error: no', 'reconcile a 3 dropped Error: no']);
    expect([queue.delayed, queue.size, queue.inWork, queue.requeues('a'), clock.pending]).toEqual([0, 0, 0, 0, 0]);
    informer.set('a');
    await turn();
    expect([began.at(-1), told.at(-1)]).toEqual(['a#1', 'reconcile a 1 Error: no']);
  });

  it('test-deployment fails 5 times, each with a retry, and is then dropped', async () => {
    const { clock, informer, told, began, start } = rig({
      maxRetries: 5,
      reconcile: (key) => Promise.reject(new Error(`no ${key}`)),
    });
    await start();
    informer.set('test-deployment');
    for (let i = 0; i < 10; i++) {
      await turn();
      clock.advance(40);
    }
    expect(began).toHaveLength(6);
    expect(told.filter((each) => !each.includes('dropped'))).toHaveLength(5);
    expect(told.at(-1)).toBe('reconcile test-deployment 6 dropped Error: no test-deployment');
  });

  it('is tried again without end unless told otherwise', async () => {
    const { clock, informer, began, start } = rig({ reconcile: () => Promise.reject(new Error('no')) });
    await start();
    informer.set('a');
    for (let i = 0; i < 100; i++) {
      await turn();
      clock.advance(40);
    }
    expect(began.at(-1)).toBe('a#100');
  });

  it('that throws at once is like one that rejects', async () => {
    const { informer, told, start } = rig({
      reconcile: () => {
        throw new Error('no');
      },
    });
    await start();
    informer.set('a');
    await turn();
    expect(told).toEqual(['reconcile a 1 Error: no']);
  });

  it('requeueAfterMs runs a key again, and forgets its failures; a change comes first', async () => {
    let fails = true;
    const { clock, informer, began, told, start } = rig({
      reconcile: async () => {
        if (fails) throw new Error('no');
        return { requeueAfterMs: 1_000 };
      },
    });
    await start();
    informer.set('a');
    await turn();
    fails = false;
    clock.advance(10);
    await turn();
    expect(began).toEqual(['a#1', 'a#2']);
    informer.set('a');
    await turn();
    clock.advance(999);
    await turn();
    expect(began).toEqual(['a#1', 'a#2', 'a#1']);
    clock.advance(1);
    await turn();
    expect(began).toHaveLength(4);
    expect(told).toHaveLength(1);
  });

  it('a requeueAfterMs that is no number is a failure', async () => {
    const { informer, told, start } = rig({ reconcile: async () => ({ requeueAfterMs: Number.NaN }) });
    await start();
    informer.set('a');
    await turn();
    expect(told).toEqual(['reconcile a 1 WatchError: delayMs: expected a finite number of milliseconds, got NaN']);
  });

  it.each([
    [{ requeueAfter: 50 }, 'requeueAfter', '50'],
    [{ RequeueAfter: 50 }, 'RequeueAfter', '50'],
    [{ requeueAfterMs: 50, requeue: true }, 'requeue', 'true'],
  ])('a result %j is a failure, which names what is wrong', async (result, member, got) => {
    const { informer, told, start } = rig({ reconcile: async () => result as object });
    await start();
    informer.set('a');
    await turn();
    const expected = 'expected requeueAfterMs instead';
    expect(told).toEqual([`reconcile a 1 WatchError: ${member}: ${expected}, got ${got}`]);
  });

  it.each([null, 7, ['requeue'], { requeue: undefined, name: 'a' }])('a result %j is ignored', async (result) => {
    const { informer, told, began, start } = rig({ reconcile: async () => result as never });
    await start();
    informer.set('a');
    await turn();
    expect([began, told]).toEqual([['a#1'], []]);
  });

  it('failures are printed unless told otherwise', async () => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { informer, start } = rig({ onError: undefined, maxRetries: 0, reconcile: () => Promise.reject('no') });
    await start();
    informer.set('a');
    await turn();
    expect(print.mock.calls).toEqual([['watchmux controller: reconcile finally failed for a, attempt 1: no']]);
    print.mockClear();
    const again = rig({ onError: undefined, reconcile: () => Promise.reject('no') });
    await again.start();
    again.informer.set('b');
    await turn();
    for (let n = 0; n < 1_000; n++) again.informer.set(`b${n}`);
    await turn();
    expect(print.mock.calls).toEqual([['watchmux controller: reconcile failed for b, attempt 1: no']]);
  });
});

describe('the sources of a controller', () => {
  const forbidden = FakeListWatcher.refusal(403, 'Forbidden');
  const reconcile = (): void => {};

  it('that refuse the list are told to onError, with the informer, and are not printed', async () => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    const source = new FakeListWatcher<Thing>();
    source.failList(forbidden, 3);
    source.failWatch(forbidden, 3);
    const clock = new FakeClock();
    const informer = new Informer<Thing>(source, { clock, random: () => 0 });
    const told: [unknown, ControllerFailure][] = [];
    const onError = (...failure: [unknown, ControllerFailure]): void => void told.push(failure);
    const stopper = new AbortController();
    const run = new Controller<Thing>({ informers: [informer], reconcile, onError }).run(stopper.signal);
    await turn();
    expect(told).toEqual([[forbidden, { during: 'source', informer, dropped: false }]]);
    expect(print).not.toHaveBeenCalled();
    stopper.abort();
    await run;
    await clock.advanceAsync(60_000);
    expect([told.length, clock.pending]).toEqual([1, 0]);
  });

  it('are printed by their informers without onError: once, and when they work', async () => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    const source = new FakeListWatcher<Thing>();
    source.failList(forbidden, 5);
    source.failWatch(forbidden, 5);
    const clock = new FakeClock();
    const informer = new Informer<Thing>(source, { clock, random: () => 0 });
    const stopper = new AbortController();
    const run = new Controller<Thing>({ informers: [informer], reconcile }).run(stopper.signal);
    await clock.advanceAsync(120_000);
    stopper.abort();
    await run;
    expect(print.mock.calls.flat()).toEqual([
      expect.stringMatching(/^watchmux informer: the source failed \(denied\): WatchError: 403/),
      'watchmux informer: the source works again, after 5 failures',
    ]);
  });

  it('that end the run by what onError throws', async () => {
    const source = new FakeListWatcher<Thing>();
    source.failList(forbidden);
    source.failWatch(forbidden);
    const onError = (error: unknown): never => {
      throw error;
    };
    const informers = [new Informer<Thing>(source)];
    await expect(new Controller<Thing>({ informers, reconcile, onError }).run()).rejects.toBe(forbidden);
  });

  it('that take too long are named after syncTimeoutMs, once, and the controller waits on', async () => {
    const clock = new FakeClock();
    const late = new FakeInformer(clock, { synced: false });
    const informer = new FakeInformer(clock);
    const {
      told,
      began,
      queue,
      clock: own,
      stopper,
      start,
    } = rig({ informers: [informer, late], syncTimeoutMs: 5_000 }, informer);
    const run = await start();
    informer.deliver();
    own.advance(4_999);
    expect(told).toEqual([]);
    own.advance(1);
    own.advance(60_000);
    expect(told).toEqual(['sync WatchError: informers[1] is not synced after 5000 ms']);
    late.hasSynced = true;
    late.deliver();
    queue.add('a');
    await turn();
    expect(began).toEqual(['a#1']);
    stopper.abort();
    await turn();
    expect([run.state, own.pending]).toEqual(['resolved', 0]);
  });

  it('have two minutes by default, and as long as it takes with 0', async () => {
    for (const [syncTimeoutMs, times] of [
      [undefined, 1],
      [0, 0],
    ] as const) {
      // biome-ignore format: one line
      const informer = new FakeInformer(new FakeClock(), { synced: false });
      const { told, clock, stopper, start } = rig({ syncTimeoutMs }, informer);
      await start();
      clock.advance(119_999);
      expect(told).toHaveLength(0);
      clock.advance(1e7);
      expect(told).toHaveLength(times);
      stopper.abort();
      await turn();
      expect(clock.pending).toBe(0);
    }
  });
});

describe('timeoutMs', () => {
  it('gives up on a reconcile that never settles, names the key, and leaves nothing else behind', async () => {
    const { informer, clock, controller, stopper } = rig({ reconcile: () => new Promise(() => {}) });
    const run = fate(controller.run(stopper.signal, { timeoutMs: 5_000 }));
    await turn();
    informer.set('stuck');
    await turn();
    stopper.abort();
    await turn();
    clock.advance(4_999);
    await turn();
    expect(run.state).toBe('pending');
    clock.advance(1);
    await turn();
    expect(run.error).toMatchObject({ code: 'TIMEOUT', limit: 5_000, message: 'gave up after 5000 ms on the work on stuck' });
    expect([clock.pending, informer.handlers.size]).toEqual([0, 0]);
  });

  it('gives up on a handler of an informer that it runs', async () => {
    const clock = new FakeClock();
    const source = new FakeListWatcher<Thing>({ objects: [{ metadata: { name: 'a' } }] });
    const informer = new Informer<Thing>(source, { clock });
    informer.addHandler({ onAdd: () => new Promise(() => {}) });
    const stopper = new AbortController();
    const controller = new Controller<Thing>({ informers: [informer], reconcile: () => {}, queue: new WorkQueue({ clock }) });
    const run = fate(controller.run(stopper.signal, { timeoutMs: 1_000 }));
    for (let turns = 0; turns < 10; turns++) await turn();
    stopper.abort();
    await clock.advanceAsync(1_000);
    await turn();
    expect(run.error).toMatchObject({ code: 'TIMEOUT', message: 'gave up after 1000 ms on onAdd of a' });
  });
});

describe('wrote', () => {
  it('keeps the key until the informer has that version, and others go on; what changed meanwhile runs then', async () => {
    const { informer, began, told, clock, queue, start } = rig({
      reconcile: async (key, { wrote, attempt }) => {
        if (key === 'a' && attempt === 1 && informer.version < 10) wrote({ metadata: { resourceVersion: '10' } });
      },
    });
    await start();
    informer.set('a');
    await turn();
    informer.stale = true;
    informer.set('a');
    informer.set('b');
    await turn();
    expect([began, queue.inWork, informer.waiting.size]).toEqual([['a#1', 'b#1'], 1, 1]);
    informer.version = 10;
    informer.catchUp();
    await turn();
    expect([began, queue.inWork, informer.waiting.size, told]).toEqual([['a#1', 'b#1', 'a#1'], 0, 0, []]);
    expect(clock.pending).toBe(0);
  });

  it('waits for a retry and for requeueAfterMs, too', async () => {
    let mode = 'fail';
    const { informer, began, clock, start } = rig({
      reconcile: async (_, { wrote }) => {
        if (mode === 'none') return;
        wrote({ metadata: { resourceVersion: '10' } });
        if (mode === 'fail') throw new Error('no');
        return { requeueAfterMs: 5 };
      },
    });
    await start();
    for (mode of ['fail', 'requeue']) {
      informer.reached = 0;
      informer.stale = false;
      informer.version = 0;
      informer.set('a');
      await turn();
      clock.advance(500);
      await turn();
      const before = began.length;
      expect(informer.waiting.size).toBe(1);
      mode = 'none';
      informer.version = 10;
      informer.catchUp();
      await turn();
      expect([mode, began.length]).toEqual([mode, before + 1]);
    }
  });

  it('that is never reached is told after a time, and the key runs; no wake-up is lost', async () => {
    const clock = new FakeClock();
    const informer = new FakeInformer(clock);
    const { began, told, start } = rig(
      {
        wroteTimeoutMs: 100,
        reconcile: async (_, { wrote }) => {
          if (began.length === 1) wrote({ metadata: { resourceVersion: '99' } });
        },
      },
      informer,
    );
    await start();
    informer.set('a');
    await turn();
    informer.set('a');
    clock.advance(99);
    await turn();
    expect(began).toEqual(['a#1']);
    clock.advance(1);
    await turn();
    expect([began, told]).toEqual([['a#1', 'a#1'], ['wrote a WatchError: not at 99 yet']]);
    expect([clock.pending, informer.waiting.size]).toEqual([0, 0]);
  });

  it('may be about another informer, and is about the first unless told', async () => {
    const other = new FakeInformer(new FakeClock());
    const { informer, start } = rig({
      reconcile: async (key, { wrote }) => wrote({ metadata: { resourceVersion: '9' } }, key === 'b' ? other : undefined),
    });
    await start();
    informer.set('a');
    await turn();
    expect([informer.waiting.size, other.waiting.size]).toEqual([1, 0]);
    informer.set('b');
    await turn();
    expect([informer.waiting.size, other.waiting.size]).toEqual([1, 1]);
  });

  it('needs a version', async () => {
    const { informer, told, start } = rig({ reconcile: async (_, { wrote }) => wrote({ metadata: { name: 'a' } }) });
    await start();
    informer.set('a');
    await turn();
    expect(told).toEqual(['reconcile a 1 WatchError: object.metadata.resourceVersion: expected a non-empty string, got ""']);
  });
});

describe('a controller ends', () => {
  it('when its signal aborts: it waits for what runs, and leaves nothing', async () => {
    const { open, reconcile, end } = gates();
    const { informer, began, told, clock, queue, stopper, start } = rig({ reconcile });
    const run = await start();
    informer.set('a');
    informer.set('b');
    await turn();
    queue.addAfter('c', 1_000);
    stopper.abort(new Error('bye'));
    await turn();
    expect([run.state, open.get('a')?.context.signal.reason]).toEqual(['pending', new Error('bye')]);
    await end('a');
    expect([run.state, began, told, informer.handlers.size]).toEqual(['resolved', ['a#1'], [], 0]);
    expect([clock.pending, queue.inWork, queue.delayed, queue.shuttingDown]).toEqual([0, 0, 0, true]);
  });

  it('and what fails because of that is no news', async () => {
    const { informer, told, stopper, start } = rig({
      maxRetries: 0,
      reconcile: (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    });
    const run = await start();
    informer.set('a');
    await turn();
    stopper.abort();
    await turn();
    expect([run.state, told]).toEqual(['resolved', []]);
  });

  it('while it waits for the first sync', async () => {
    const { informer, stopper, start } = rig({}, new FakeInformer(new FakeClock(), { synced: false, started: false }));
    const run = await start();
    expect(run.state).toBe('pending');
    stopper.abort();
    await turn();
    expect([run.state, informer.handlers.size, informer.stops]).toEqual(['resolved', 0, 1]);
  });

  it('while a key waits for what it wrote, without saying that it is late', async () => {
    const clock = new FakeClock();
    const informer = new FakeInformer(clock);
    const { told, stopper, start } = rig(
      { reconcile: async (_, { wrote }) => wrote({ metadata: { resourceVersion: '99' } }) },
      informer,
    );
    const run = await start();
    informer.set('a');
    await turn();
    expect(informer.waiting.size).toBe(1);
    stopper.abort();
    await turn();
    expect([run.state, told, informer.waiting.size, clock.pending]).toEqual(['resolved', [], 0, 0]);
  });

  it('and leaves no listener at its signal', async () => {
    const { signal } = new AbortController();
    const listeners = new ListenerCount(signal);
    const { controller, queue } = rig();
    const run = controller.run(signal);
    await turn();
    expect(listeners.count).toBe(1);
    queue.shutDown();
    await run;
    expect(listeners.count).toBe(0);
  });

  it('after the informers that it runs', async () => {
    const { informer, stopper, start } = rig({}, new FakeInformer(new FakeClock(), { started: false }));
    let stopped = (): void => {};
    informer.run = () => new Promise((resolve) => (stopped = resolve));
    const run = await start();
    stopper.abort();
    await turn();
    expect(run.state).toBe('pending');
    stopped();
    await turn();
    expect(run.state).toBe('resolved');
  });

  it('when its queue is shut down, after the keys in it', async () => {
    const { informer, queue, began, start } = rig();
    const run = await start();
    informer.set('a');
    queue.shutDown();
    await turn();
    expect([run.state, began]).toEqual(['resolved', ['a#1']]);
  });

  it('when an informer that it runs ends, with its error if there is one', async () => {
    for (const error of [undefined, new Error('fatal')]) {
      const { informer, start } = rig({}, new FakeInformer(new FakeClock(), { started: false }));
      const run = await start();
      if (error) informer.break(error);
      else informer.end();
      await turn();
      expect([run.state, run.error, informer.handlers.size]).toEqual([error ? 'rejected' : 'resolved', error, 0]);
    }
  });

  it('with the error of an informer that takes no handler', async () => {
    const { informer, start } = rig();
    informer.addHandler = () => {
      throw new Error('closed');
    };
    const run = await start();
    expect([run.state, run.error]).toEqual(['rejected', new Error('closed')]);
  });

  it.each([
    () => {
      throw new Error('mine');
    },
    () => Promise.reject(new Error('mine')),
  ])('with what onError throws, or rejects with, wherever that was, after what runs', async (onError) => {
    const failing = rig({ onError, reconcile: () => Promise.reject(new Error('no')) });
    const dropping = rig({ onError, maxRetries: 0, reconcile: () => Promise.reject(new Error('no')) });
    for (const { informer, start } of [failing, dropping]) {
      const run = await start();
      informer.set('a');
      await turn();
      expect([run.state, run.error, informer.handlers.size]).toEqual(['rejected', new Error('mine'), 0]);
    }
    const informer = new FakeInformer(new FakeClock());
    const keysOf = (): never => {
      throw new Error('no');
    };
    const run = await rig({ onError, informers: [{ informer, keysOf }] }, informer).start();
    informer.set('a');
    await turn();
    expect([run.state, run.error]).toEqual(['rejected', new Error('mine')]);
  });
});

describe('options', () => {
  const informers = [new FakeInformer(new FakeClock())];
  const reconcile = async (): Promise<void> => {};
  const good = { informers, reconcile };

  it.each([
    ['informers.length: expected a whole number >= 1, got 0', { ...good, informers: [] }],
    ['informers', { ...good, informers: undefined }],
    ['informer', { ...good, informers: [{}] }],
    ['informer', { ...good, informers: [undefined] }],
    ['keysOf', { ...good, informers: [{ informer: informers[0], keysOf: 'a' }] }],
    ['filter', { ...good, informers: [{ informer: informers[0], filter: 'a' }] }],
    ['resyncMs', { ...good, informers: [{ informer: informers[0], resyncMs: 0.5 }] }],
    ['keyOf', { ...good, informers: [{ informer: informers[0], keyOf: () => 'a' }] }],
    ['reconcile', { informers }],
    ['reconcile', { ...good, reconcile: 'a' }],
    ['concurrency', { ...good, concurrency: 0 }],
    ['maxRetries', { ...good, maxRetries: -1 }],
    ['maxRetries', { ...good, maxRetries: Number.NaN }],
    ['queue', { ...good, queue: {} }],
    ['wroteTimeoutMs', { ...good, wroteTimeoutMs: -1 }],
    ['onError', { ...good, onError: 'a' }],
    ['retries', { ...good, retries: 1 }],
  ])('%s is checked', (name, options) => {
    const error = thrown(() => new Controller(options as never));
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(name) });
  });

  it('more hands than a queue may have are refused by run, which leaves nothing', async () => {
    const { informer, start } = rig({ concurrency: 10_001 });
    const run = await start();
    expect([run.state, (run.error as { code?: string }).code, informer.handlers.size]).toEqual([
      'rejected',
      'INVALID_ARGUMENT',
      0,
    ]);
  });
});
