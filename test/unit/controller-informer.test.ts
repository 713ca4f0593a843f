// A controller over real informers, whose sources are fakes.
import { describe, expect, it } from 'vitest';
import { Informer, InformerFactory, type KubernetesObject } from '../../src/cache/index.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import type { Status } from '../../src/watch/event.ts';
import { Controller, type ControllerOptions, exponential, WorkQueue } from '../../src/workqueue/index.ts';
import { type Pod, pod, settle } from './informer-support.ts';
import { fate } from './support.ts';

function rig(objects: readonly Pod[] = [], options: Partial<ControllerOptions<Pod>> = {}) {
  const clock = new FakeClock();
  const source = new FakeListWatcher<Pod>({ objects });
  const informer = new Informer<Pod>(source, { clock, random: () => 0.5 });
  const seen: string[] = [];
  const told: unknown[] = [];
  const stopper = new AbortController();
  const controller = new Controller<Pod>({
    informers: [informer],
    queue: new WorkQueue({ clock, rateLimiter: exponential({ baseMs: 10 }) }),
    onError: (error, { during }) => told.push(during === 'source' ? `source: ${(error as Error).message}` : error),
    ...options,
    reconcile: async (key, context) => {
      seen.push(`${key} ${informer.store.get(key)?.value}`);
      return options.reconcile?.(key, context);
    },
  });
  const start = async () => {
    const run = fate(controller.run(stopper.signal));
    await settle();
    return run;
  };
  return { clock, source, informer, seen, told, stopper, controller, start };
}

describe('a controller over an informer', () => {
  it('runs it, reconciles what there is and what changes, and leaves nothing', async () => {
    const { clock, source, informer, seen, told, stopper, start } = rig([pod('a', 1), pod('b', 1)]);
    const run = await start();
    expect(seen.splice(0)).toEqual(['a 1', 'b 1']);
    source.modify(pod('a', 2));
    source.delete(pod('b'));
    source.add(pod('ns/c', 3));
    await settle();
    expect(seen.splice(0)).toEqual(['a 2', 'b undefined', 'ns/c 3']);
    stopper.abort();
    await settle();
    expect([run.state, informer.state.phase, source.openWatches, clock.pending, told]).toEqual(['resolved', 'stopped', 0, 0, []]);
  });

  it('learns of what was deleted while the watch was broken, and of everything at a resync', async () => {
    const clock = new FakeClock();
    const source = new FakeListWatcher<Pod>({ objects: [pod('a', 1), pod('b', 1)] });
    const informer = new Informer<Pod>(source, { clock, random: () => 0.5 });
    const { seen, start } = rig([], { informers: [{ informer, resyncMs: 30_000 }] });
    await start();
    seen.splice(0);
    source.failWatch(FakeListWatcher.refusal(410, 'Expired'));
    source.cut();
    source.delete(pod('a'));
    source.expire();
    for (let i = 0; i < 10; i++) {
      clock.advance(1_000);
      await settle();
    }
    expect(seen.splice(0).map((each) => each.split(' ')[0])).toEqual(['a']);
    clock.advance(60_000);
    await settle();
    expect(seen.map((each) => each.split(' ')[0])).toContain('b');
  });

  it('reads what it wrote, also if the informer learns of it late', async () => {
    const made: string[] = [];
    const { source, clock, informer, seen, told, controller, start } = rig([pod('a', 0)], {
      wroteTimeoutMs: 60_000,
      reconcile: async (key, { wrote }) => {
        if (informer.store.get(key)?.value !== 0 || made.length > 5) return;
        made.push(key);
        source.cut();
        source.failWatch(new Error('unreachable'), 3);
        wrote(source.modify(pod(key, 1)));
        controller.queue.add(key); // it would find the old state now
      },
    });
    await start();
    expect([seen, informer.store.get('a')?.value]).toEqual([['a 0'], 0]);
    for (let i = 0; i < 30; i++) {
      clock.advance(1_000);
      await settle();
    }
    expect([made, seen.at(-1), new Set(seen.slice(1))]).toEqual([['a'], 'a 1', new Set(['a 1'])]);
    expect(told).toEqual(Array(3).fill('source: unreachable'));
  });

  it('leaves those alone that run already, such as those of a factory', async () => {
    const clock = new FakeClock();
    const sources = new Map<string, FakeListWatcher<Pod>>();
    const factory = new InformerFactory<string, Pod>(
      (name) => {
        const source = new FakeListWatcher<Pod>({ objects: [pod(name, 1)] });
        sources.set(name, source);
        return source;
      },
      { clock },
    );
    const owners = factory.informer('owners');
    const owned = factory.informer('owned');
    factory.start();
    await factory.waitForSync();
    const { seen, stopper, start } = rig([], { informers: [owners, { informer: owned, keysOf: () => ['owners'] }] });
    const run = await start();
    expect(seen.length).toBeGreaterThan(0);
    stopper.abort();
    await settle();
    expect([run.state, owners.state.phase, owned.state.phase]).toEqual(['resolved', 'watching', 'watching']);
    await factory.shutdown();
    expect([...sources.values()].map(({ openWatches }) => openWatches)).toEqual([0, 0]);
    expect(clock.pending).toBe(0);
  });

  it('that never syncs can be stopped; one that was stopped is refused', async () => {
    const { source, informer, clock, seen, stopper, start } = rig([pod('a')]);
    source.failList(new Error('unreachable'), 1_000);
    source.failWatch(new Error('unreachable'), 1_000);
    const run = await start();
    clock.advance(5_000);
    await settle();
    stopper.abort();
    await settle();
    expect([run.state, run.error, seen, clock.pending]).toEqual(['resolved', undefined, [], 0]);
    const again = new Controller<Pod>({ informers: [informer], reconcile: async () => {} });
    await expect(again.run()).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('ends with the error that ends its informer', async () => {
    const source = new FakeListWatcher<Pod>();
    source.failList(new Error('unreachable'), 10);
    source.failWatch(new Error('unreachable'), 10);
    const informer = new Informer<Pod>(source, {
      clock: new FakeClock(),
      onError: (error) => {
        throw error;
      },
    });
    const run = await rig([], { informers: [informer] }).start();
    expect([run.state, run.error]).toEqual(['rejected', new Error('unreachable')]);
  });

  describe('that somebody else runs', () => {
    const shared = async () => {
      const source = new FakeListWatcher<Pod>({ objects: [pod('a', 1)] });
      const clock = new FakeClock();
      const onError = (): never => {
        throw new Error('from onError');
      };
      const informer = new Informer<Pod>(source, { clock, onError });
      const running = fate(informer.run());
      await informer.synced;
      const rest = rig([], { informers: [informer] });
      const run = await rest.start();
      return { ...rest, source, informer, running, run };
    };

    it('ends with what has ended it', async () => {
      const { source, running, run, told } = await shared();
      expect(run.state).toBe('pending');
      source.sendError(FakeListWatcher.refusal(500, 'InternalError').status as Status);
      await settle();
      expect([running.error, run.error, told.length]).toEqual([new Error('from onError'), new Error('from onError'), 1]);
    });

    it('ends with CLOSED when it is stopped', async () => {
      const { informer, run, told } = await shared();
      await informer.stop();
      await settle();
      expect([run.error, told]).toEqual([expect.objectContaining({ code: 'CLOSED', message: 'the informer has stopped' }), []]);
    });

    it.each(['controller', 'informer'])('says nothing when both are stopped, the %s first', async (first) => {
      const { informer, stopper, run, told } = await shared();
      if (first === 'controller') stopper.abort();
      void informer.stop();
      stopper.abort();
      await settle();
      expect([run.state, run.error, told]).toEqual(['resolved', undefined, []]);
    });
  });

  it('two controllers share an informer, and each has its own queue', async () => {
    const { informer, source, seen, stopper, start } = rig([pod('a', 1)]);
    await start();
    const other: string[] = [];
    const second = new Controller<KubernetesObject>({ informers: [informer], reconcile: async (key) => void other.push(key) });
    const end = new AbortController();
    const run = fate(second.run(end.signal));
    await settle();
    end.abort();
    await settle();
    source.modify(pod('a', 2));
    await settle();
    expect([run.state, other, seen]).toEqual(['resolved', ['a'], ['a 1', 'a 2']]);
    stopper.abort();
  });
});
