// Handlers of an informer: when they are called, with what, and what they cannot do to others.
import { describe, expect, test } from 'vitest';
import type { HandlerOptions, InformerFailure } from '../../src/cache/index.ts';
import type { HandlerOverflow } from '../../src/cache/informer/informer-options.ts';
import { RULES } from '../../src/testing/checkers/history.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { policiesWith } from '../policies.ts';
import { Calls, type Pod, pod, rig, settle, shown } from './informer-support.ts';
import { fate, thrown } from './support.ts';

describe('a handler', () => {
  test('TestAddWhileActive: that joins later gets the state as initial, then changes; no gap, nothing twice', async () => {
    const { source, informer, start } = rig([pod('a', 1), pod('b', 1)]);
    await start();
    const calls = new Calls();
    const handler = informer.addHandler(calls);
    source.modify(pod('a', 2)); // is in the log after it has joined
    expect([handler.hasSynced, calls.all]).toEqual([false, []]);
    await handler.synced;
    expect(calls.take()).toEqual(['!a1', '!b1']);
    await settle();
    source.add(pod('c', 1));
    source.delete(pod('b'));
    await settle();
    expect(calls.take()).toEqual(['a1>a2', '+c1', '-b1']);
    await informer.stop();
  });

  test('TestSharedInformerMultipleRegistration: may be registered many times; each registration is its own', async () => {
    const { source, informer, start } = rig([pod('a', 1)]);
    const calls = new Calls();
    const first = informer.addHandler(calls);
    const second = informer.addHandler(calls);
    await start();
    expect(calls.take()).toEqual(['!a1', '!a1']);
    first.remove();
    source.modify(pod('a', 2));
    await settle();
    expect(calls.take()).toEqual(['a1>a2']);
    expect([first.hasSynced, second.hasSynced]).toEqual([true, true]);
    await informer.stop();
  });

  test('TestSingleFile: has synced when every initial onAdd has returned, also those that reject (FIX12.3)', async () => {
    const { informer, start, errors } = rig([pod('a', 1), pod('b', 2), pod('c', 3)]);
    const open: (() => void)[] = [];
    const handler = informer.addHandler({
      onAdd: (one) =>
        new Promise<void>((resolve, reject) => void open.push(one.value === 2 ? () => reject(new Error('no')) : resolve)),
    });
    const quick = informer.addHandler({ onAdd: () => {} });
    await start();
    expect([informer.hasSynced, quick.hasSynced, handler.hasSynced, handler.queued]).toEqual([true, true, false, 2]);
    for (let at = 0; at < 3; at++) {
      expect([handler.hasSynced, open.length]).toEqual([false, at + 1]); // one after the other
      open[at]?.();
      await settle();
    }
    await handler.synced;
    expect([handler.hasSynced, errors]).toEqual([true, [new Error('no')]]);
    await informer.stop();
  });

  test('without anything to wait for has synced with the informer', async () => {
    const { informer, start } = rig();
    const handler = informer.addHandler({ onAdd: () => {} });
    const own = fate(handler.synced);
    await settle();
    expect(own.state).toBe('pending');
    await start();
    expect([own.state, handler.hasSynced]).toEqual(['resolved', true]);
    await informer.stop();
  });

  test('TestEventPanics: that throws or rejects harms only itself, is reported, and is called again', async () => {
    const failures: InformerFailure<Pod>[] = [];
    const { source, informer, start } = rig([pod('a', 1)], { onError: (_error, failure) => void failures.push(failure) });
    const calls = new Calls();
    const bad = {
      onAdd: (): never => {
        throw new Error('add');
      },
      onUpdate: () => Promise.reject(new Error('update')),
      onDelete: calls.onDelete,
    };
    informer.addHandler(bad);
    const good = new Calls();
    informer.addHandler(good);
    await start();
    source.modify(pod('a', 2));
    await settle();
    source.delete(pod('a'));
    await settle();
    expect(good.take()).toEqual(['!a1', 'a1>a2', '-a2']);
    expect(calls.take()).toEqual(['-a2']);
    expect(failures).toEqual([
      { kind: 'handler', handler: bad },
      { kind: 'handler', handler: bad },
    ]);
    await informer.stop();
  });

  test('is called with what the store has already; the store may be newer', async () => {
    const { source, informer, start } = rig();
    const seen: (number | undefined)[][] = [];
    informer.addHandler({ onUpdate: (_old, one) => void seen.push([one.value, informer.store.get('a')?.value]) });
    await start();
    source.add(pod('a', 1));
    await settle();
    source.modify(pod('a', 2));
    await settle();
    expect(seen).toEqual([[2, 2]]);
    await informer.stop();
  });

  test('is asked for its functions each time, as methods', async () => {
    const { source, informer, start } = rig([pod('a', 1)]);
    const handler: { seen: string[]; onAdd(one: Pod): void; onUpdate?: () => void } = {
      seen: [],
      onAdd(one) {
        this.seen.push(shown(one));
      },
    };
    informer.addHandler(handler);
    await start();
    handler.onUpdate = () => void handler.seen.push('update');
    source.modify(pod('a', 2));
    await settle();
    expect(handler.seen).toEqual(['a1', 'update']);
    await informer.stop();
  });
});

describe('removing', () => {
  test('TestRemoveWhileActive, TestRemovingRemovedSharedInformer: drops what waits; again has no effect', async () => {
    const { source, informer, start } = rig([pod('a', 1)]);
    const calls = new Calls();
    const handler = informer.addHandler(calls);
    await start();
    calls.take();
    source.modify(pod('a', 2));
    await settle();
    source.modify(pod('a', 3));
    handler.remove();
    handler.remove();
    await settle();
    expect(calls.take()).toEqual(['a1>a2']);
    expect([handler.queued, handler.hasSynced]).toEqual([0, true]);
    await informer.stop();
    handler.remove();
  });

  test('a removed handler takes no further change, though it was waiting for one', async () => {
    const { source, informer, start } = rig([pod('a', 1)]);
    const handler = informer.addHandler({ onAdd: () => {} });
    await start();
    handler.remove();
    for (const value of [2, 3, 4]) {
      source.modify(pod('a', value));
      await settle();
    }
    source.add(pod('b', 1));
    await settle();
    expect(handler.queued).toBe(0);
    await informer.stop();
  });

  test('TestSharedInformerRemoveHandler: one after the other, each only itself, whatever the order', async () => {
    const { source, informer, start } = rig();
    const calls = new Calls();
    const handlers = [informer.addHandler(calls), informer.addHandler(calls), informer.addHandler(calls)] as const;
    await start();
    const left: number[] = [];
    for (const at of [1, 2, 0] as const) {
      handlers[at].remove();
      source.add(pod(`p${at}`, at));
      await settle();
      left.push(calls.take().length);
    }
    expect(left).toEqual([2, 1, 0]);
    await informer.stop();
  });

  test('before it has synced, its promise rejects, and nobody has to handle that', async () => {
    const { informer, start } = rig([pod('a', 1)]);
    const calls = new Calls();
    const handler = informer.addHandler(calls);
    handler.remove();
    await start();
    await expect(handler.synced).rejects.toMatchObject({ code: 'CLOSED' });
    expect([calls.all, handler.hasSynced]).toEqual([[], false]);
    await informer.stop();
  });

  test('TestShutDownEventHandler_Lifecycles: from inside itself: the call completes, and is the last', async () => {
    const { source, informer, start } = rig([pod('a', 1), pod('b', 1)]);
    const calls: string[] = [];
    const handler = informer.addHandler({
      onAdd: async (one) => {
        calls.push(`begins ${shown(one)}`);
        handler.remove();
        await settle();
        calls.push(`ends ${shown(one)}`);
      },
    });
    await start();
    source.add(pod('c', 1));
    await settle();
    await settle();
    expect(calls).toEqual(['begins a1', 'ends a1']);
    await informer.stop();
  });

  test('TestRemoveEventHandler_SynchronousShutdown: run waits for a call in progress, also of a removed handler', async () => {
    const { informer } = rig([pod('a', 1)]);
    let open = (): void => {};
    const handler = informer.addHandler({
      onAdd: () =>
        new Promise<void>((resolve) => {
          open = resolve;
        }),
    });
    const run = fate(informer.run());
    await settle();
    handler.remove();
    const stopped = fate(informer.stop());
    await settle();
    expect([run.state, stopped.state]).toEqual(['pending', 'pending']);
    open();
    await settle();
    expect([run.state, stopped.state]).toEqual(['resolved', 'resolved']);
  });

  test('TestAddOnStoppedSharedInformer, TestRemoveOnStoppedSharedInformer: adding is refused, removing is not', async () => {
    const { informer, start } = rig([pod('a', 1)]);
    const handler = informer.addHandler({ onAdd: () => {} });
    await start();
    await informer.stop();
    expect(() => informer.addHandler({ onAdd: () => {} })).toThrow('the informer has stopped');
    handler.remove();
  });

  test('a handler that stops the informer is not called again', async () => {
    const { informer, source, clock } = rig([pod('a', 1), pod('b', 1)]);
    const calls = new Calls();
    const stops: Promise<void>[] = [];
    informer.addHandler({
      onAdd: (one, initial) => {
        calls.onAdd(one, initial);
        stops.push(informer.stop());
      },
    });
    const other = informer.addHandler({ onAdd: () => new Promise(() => {}) });
    other.remove();
    await informer.run();
    await Promise.all(stops);
    expect(calls.all).toEqual(['!a1']);
    expect([clock.pending, source.openWatches]).toEqual([0, 0]);
  });
});

describe('a slow handler', () => {
  /** A handler that stalls in its first call. */
  async function stalled(objects: readonly Pod[], options: HandlerOptions<Pod> = {}) {
    const parts = rig(objects);
    const calls = new Calls();
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const slow =
      <A extends unknown[]>(call: (...args: A) => void) =>
      async (...args: A): Promise<void> => {
        call(...args);
        await gate;
      };
    const handler = parts.informer.addHandler(
      { onAdd: slow(calls.onAdd), onUpdate: slow(calls.onUpdate), onDelete: slow(calls.onDelete) },
      options,
    );
    await parts.start();
    return { ...parts, calls, handler, open };
  }

  test('is told of the latest state of each object: its queue is never longer than there are objects', async () => {
    const { source, informer, handler, calls, open } = await stalled(Array.from({ length: 10 }, (_, at) => pod(`p${at}`, 0)));
    for (let at = 1; at <= 5_000; at++) source.modify(pod(`p${at % 10}`, at));
    await settle();
    expect(handler.queued).toBe(10); // p0 is in its hands, and has changed since
    calls.take();
    open();
    await settle();
    expect(calls.take().sort()).toEqual(
      ['p00>p05000', ...Array.from({ length: 9 }, (_, at) => `!p${at + 1}${4_991 + at}`)].sort(),
    );
    expect([handler.queued, handler.hasSynced]).toEqual([0, true]);
    await informer.stop();
  });

  test.each(policiesWith<HandlerOverflow>({ waits: false }))(
    'with %s is not behind because others are told of every object again',
    async (overflow) => {
      const gaps: number[] = [];
      const onGap = (missed: number): void => void gaps.push(missed);
      const own = { overflow, capacity: 3, ...(!RULES[overflow].folds && { onGap }) };
      const { source, informer, clock, calls, handler, errors, open } = await stalled([pod('a', 1)], own);
      const other = new Calls();
      informer.addHandler(other, { resyncMs: 1_000 });
      const watch = informer.watch(own);
      while (watch.tryNext());
      for (let at = 0; at < 5; at++) {
        clock.advance(1_000);
        await settle();
      }
      expect(other.take()).toHaveLength(6);
      source.modify(pod('a', 2));
      source.add(pod('b', 1));
      await settle();
      expect(handler.queued).toBe(2);
      open();
      await settle();
      expect(calls.take()).toEqual(['!a1', 'a1>a2', '+b1']);
      expect([watch.tryNext()?.type, watch.tryNext()?.type, errors, gaps]).toEqual(['MODIFIED', 'ADDED', [], []]);
      await informer.stop();
    },
  );

  test('gets calls that fit together: what they come to is decided by what it knows', async () => {
    const { source, informer, handler, calls, open } = await stalled([pod('a', 1), pod('b', 1), pod('c', 1)]);
    open();
    await settle();
    let again = (): void => {};
    const held = informer.addHandler({
      onAdd: () =>
        new Promise<void>((resolve) => {
          again = resolve;
        }),
    });
    await settle();
    held.remove();
    again();
    handler.remove();

    const own = new Calls();
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    let first = true;
    informer.addHandler({
      onAdd: (one, initial) => own.onAdd(one, initial),
      onDelete: (one, unknown) => own.onDelete(one, unknown),
      onUpdate: (old, one) => {
        own.onUpdate(old, one);
        if (!first) return undefined;
        first = false;
        return gate;
      },
    });
    await settle();
    expect(own.take()).toEqual(['!a1', '!b1', '!c1']);
    source.modify(pod('a', 2)); // it stalls in this one
    await settle();
    source.modify(pod('a', 3)); // update, update: one, from the first old to the last
    source.modify(pod('a', 4));
    source.modify(pod('b', 2)); // update, delete: a deletion
    source.delete(pod('b'));
    source.delete(pod('c')); // delete, add: an update, whose uid tells
    source.add({ ...pod('c', 9), metadata: { name: 'c', uid: 'new' } });
    source.add(pod('d', 1)); // add, update: an add of the latest
    source.modify(pod('d', 2));
    source.add(pod('e', 1)); // add, delete: nothing
    source.delete(pod('e'));
    await settle();
    expect(own.take()).toEqual(['a1>a2']);
    go();
    await settle();
    expect(own.take()).toEqual(['a2>a4', '-b2', 'c1>c9', '+d2']);
    expect(calls.all.length).toBe(3);
    await informer.stop();
  });

  test.each(policiesWith<HandlerOverflow>({ waits: false, cuts: false }))(
    'with %s loses changes, is told how many, and syncs',
    async (overflow) => {
      const gaps: number[] = [];
      const options = { overflow, capacity: 2, onGap: (missed: number) => void gaps.push(missed) };
      const { source, informer, handler, calls, open } = await stalled(
        Array.from({ length: 6 }, (_, at) => pod(`p${at}`, at)),
        options,
      );
      for (let at = 10; at < 15; at++) source.add(pod('a', at));
      await settle();
      open();
      await settle();
      source.modify(pod('a', 20));
      await settle();
      expect(gaps.length).toBeGreaterThan(0);
      expect(handler.hasSynced).toBe(true);
      expect(calls.take().at(-1)).toBe('a14>a20');
      await informer.stop();
    },
  );

  test.each([
    ['disconnect', 2],
    ['coalesce', 2],
  ] as const)('with %s is ended when it is too far behind, and that is reported', async (overflow, capacity) => {
    const { source, informer, handler, calls, open, errors } = await stalled([], { overflow, capacity });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      source.add(pod(name, 1));
      await settle();
    }
    open();
    await settle();
    expect(errors).toHaveLength(1);
    expect(isWatchError(errors[0], 'REFUSED') && errors[0].status?.code).toBe(410);
    const before = calls.take();
    expect(before[0]).toBe('+a1');
    source.add(pod('z', 1));
    await settle();
    expect([calls.take(), handler.queued]).toEqual([[], 0]);
    await informer.stop();
  });

  test('that is cut before it has synced rejects its promise with the reason', async () => {
    const { handler, open, informer } = await stalled(
      Array.from({ length: 9 }, (_, at) => pod(`p${at}`)),
      { overflow: 'disconnect', capacity: 3 },
    );
    open();
    await expect(handler.synced).rejects.toMatchObject({ code: 'REFUSED' });
    await informer.stop();
  });

  test.each(['throws', 'rejects'])('an onGap that %s ends that handler, and is reported', async (how) => {
    const boom = (): undefined => {
      if (how === 'throws') throw new Error('gap');
      return Promise.reject(new Error('gap')) as unknown as undefined;
    };
    const { source, informer, open, errors, calls } = await stalled(
      Array.from({ length: 9 }, (_, at) => pod(`p${at}`)),
      { overflow: 'drop-oldest', capacity: 2, onGap: boom },
    );
    open();
    await settle();
    expect(errors).toEqual([new Error('gap')]);
    calls.take();
    source.add(pod('z'));
    await settle();
    expect(calls.take()).toEqual([]);
    await informer.stop();
  });
});

describe('a filter', () => {
  const options: HandlerOptions<Pod> = { filter: ({ value }) => value > 10 };

  test.each([undefined, ...policiesWith<HandlerOverflow>({ waits: false })])(
    'TestFilteringHandler: what starts to match is added, what stops is deleted (%s)',
    async (overflow) => {
      const { source, informer, start } = rig([pod('a', 11), pod('b', 1)]);
      const calls = new Calls();
      informer.addHandler(calls, { ...options, overflow });
      await start();
      expect(calls.take()).toEqual(['!a11']);
      for (const [name, value] of [
        ['b', 12],
        ['a', 2],
        ['b', 13],
        ['a', 3],
      ] as const) {
        source.modify(pod(name, value));
        await settle();
      }
      expect(calls.take()).toEqual(['+b12', '-a11', 'b12>b13']);
      source.delete(pod('a'));
      source.delete(pod('b'));
      await settle();
      expect(calls.take()).toEqual(['-b13']);
      await informer.stop();
    },
  );

  test('of a slow handler judges the object that it knows, and the latest', async () => {
    const { source, informer, start } = rig([pod('a', 11), pod('b', 11), pod('c', 1), pod('z', 11)]);
    const calls = new Calls();
    let open = (): void => {};
    informer.addHandler(
      {
        onAdd: calls.onAdd,
        onDelete: calls.onDelete,
        onUpdate: (old, one) => {
          calls.onUpdate(old, one);
          return new Promise<void>((resolve) => {
            open = resolve;
          });
        },
      },
      options,
    );
    await start();
    source.modify(pod('z', 12)); // it stalls in this one
    await settle();
    calls.take();
    for (const value of [1, 2, 12]) source.modify(pod('a', value)); // leaves, and comes back
    for (const value of [12, 2]) source.modify(pod('b', value)); // leaves
    for (const value of [12, 2]) source.modify(pod('c', value)); // comes, and leaves
    source.add(pod('d', 12)); // comes, leaves, is gone
    source.modify(pod('d', 1));
    source.delete(pod('d'));
    source.add(pod('e', 1)); // is there, and comes
    source.modify(pod('e', 13));
    await settle();
    expect(calls.take()).toEqual([]);
    for (let round = 0; round < 3; round++) {
      open();
      await settle();
    }
    expect(calls.take()).toEqual(['a11>a12', '-b11', '+e13']);
    await informer.stop();
  });

  test('of a slow handler leaves nothing of objects that come, stop to match, and go', async () => {
    const { source, informer, start } = rig([pod('z', 11)]);
    const handler = informer.addHandler({ onAdd: () => new Promise(() => {}) }, options);
    await start();
    for (let at = 0; at < 1_000; at++) {
      source.add(pod(`job${at}`, 11));
      source.modify(pod(`job${at}`, 1));
      source.delete(pod(`job${at}`));
    }
    await settle();
    expect(handler.queued).toBe(0);
    handler.remove();
    void informer.stop();
  });

  test.each([undefined, 'disconnect'] as const)('that throws skips that change, and is reported once (%s)', async (overflow) => {
    const { source, informer, start, errors } = rig([pod('a', 1), pod('b', 2)]);
    const calls = new Calls();
    informer.addHandler(calls, {
      overflow,
      filter: ({ value }) => {
        if (value === 1) throw new Error('odd');
        return true;
      },
    });
    await start();
    source.modify(pod('b', 3));
    await settle();
    expect(calls.take()).toEqual(['!b2', 'b2>b3']);
    expect(errors).toEqual([new Error('odd')]);
    await informer.stop();
  });

  test('that throws for an object does not match it: what the handler is told stays in order', async () => {
    const { source, informer, start, errors } = rig();
    const calls = new Calls();
    informer.addHandler(calls, {
      filter: ({ value }) => {
        if (value % 10 === 0) throw new Error(`odd ${value}`);
        return true;
      },
    });
    await start();
    for (const value of [10, 11, 12, 20, 30, 31, 40]) {
      source.modify(pod('a', value));
      await settle();
    }
    source.delete(pod('a'));
    await settle();
    expect(calls.take()).toEqual(['+a11', 'a11>a12', '-a12', '+a31', '-a31']);
    expect(errors).toEqual([10, 20, 30, 40].map((value) => new Error(`odd ${value}`)));
    await informer.stop();
  });

  test('that stops the informer while its handler is added: there is no such handler', async () => {
    const { informer, start } = rig([pod('a', 1)]);
    await start();
    const calls = new Calls();
    let stopped: Promise<void> | undefined;
    const filter = (): boolean => {
      stopped = informer.stop();
      return true;
    };
    const error = thrown(() => informer.addHandler(calls, { overflow: 'disconnect', filter }));
    expect(error).toMatchObject({ code: 'CLOSED' });
    await stopped;
    await settle();
    expect(calls.take()).toEqual([]);
  });

  test('that removes its handler, or that onError ends, calls nothing more', async () => {
    const { source, informer, start } = rig([pod('a', 1)]);
    const calls = new Calls();
    const handler = informer.addHandler(calls, {
      filter: ({ value }) => {
        if (value === 2) handler.remove();
        return true;
      },
    });
    await start();
    source.modify(pod('a', 2));
    await settle();
    expect(calls.take()).toEqual(['!a1']);
    await informer.stop();
    const error = new Error('odd');
    const strict = rig([pod('a', 1)], {
      onError: (thrown) => {
        throw thrown;
      },
    });
    strict.informer.addHandler(calls, {
      filter: ({ value }) => {
        if (value === 2) throw error;
        return true;
      },
    });
    const running = fate(strict.informer.run());
    await settle();
    strict.source.modify(pod('a', 2));
    await settle();
    expect([calls.take(), running.error]).toEqual([['!a1'], error]);
  });
});

test('TestSharedInformerHandlerAbuse: handlers come and go while objects do', async () => {
  const { source, informer, start } = rig();
  await start();
  const copies: { copy: Map<string, number>; remove: () => void }[] = [];
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (let step = 0; step < 2_000; step++) {
    if (random(4) === 0 && copies.length < 20) {
      const copy = new Map<string, number>();
      const handler = informer.addHandler({
        onAdd: (one) => {
          expect(copy.has(one.metadata.name)).toBe(false);
          copy.set(one.metadata.name, one.value);
        },
        onUpdate: async (old, one) => {
          expect(copy.get(one.metadata.name)).toBe(old.value);
          copy.set(one.metadata.name, one.value);
          await Promise.resolve();
        },
        onDelete: (one) => void expect(copy.delete(one.metadata.name)).toBe(true),
      });
      copies.push({ copy, remove: () => handler.remove() });
    } else if (random(9) === 0) copies.splice(random(20), 1)[0]?.remove();
    const name = `k${random(12)}`;
    if (random(3) === 0) source.delete(pod(name));
    else source.add(pod(name, step));
    if (random(5) === 0) await Promise.resolve();
    if (random(50) === 0) await settle();
  }
  await settle();
  const state = new Map(informer.store.list().map((one) => [one.metadata.name, one.value]));
  expect(copies.length).toBeGreaterThan(0);
  for (const { copy } of copies) expect(copy).toEqual(state);
  await informer.stop();
});
