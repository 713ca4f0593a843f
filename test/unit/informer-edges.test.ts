// What an informer and its parts do at the edges: each test is about one line that nothing else shows.
import { describe, expect, test, vi } from 'vitest';
import { fromHub, Informer, InformerFactory, untilWithSync } from '../../src/cache/index.ts';
import type { HandlerOverflow } from '../../src/cache/informer/informer-options.ts';
import { toObjectEvent } from '../../src/cache/informer/live-store.ts';
import { FakeClock, FakeListWatcher, FakeWatcher } from '../../src/testing/index.ts';
import { type ObjectEvent, toStatus } from '../../src/watch/event.ts';
import { policiesWith } from '../policies.ts';
import { Calls, type Pod, pod, rig, settle, shown } from './informer-support.ts';
import { bookmark, change, type Pod as Plain, Rig as Scripted, ScriptedWatch } from './reflector-rig.ts';
import { fate, thrown } from './support.ts';

const named = (text: string) => ({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(text) });

describe('an informer', () => {
  test('says which argument is wrong', () => {
    const source = new FakeListWatcher<Pod>();
    const make = (options: object): unknown => thrown(() => new Informer(source, options));
    expect(make({ compareVersions: 1 })).toMatchObject(named('compareVersions'));
    expect(make({ resyncMs: -1 })).toMatchObject(named('resyncMs'));
    for (const part of ['list', 'watch'] as const) {
      const none = { list: async () => {}, watch: async () => {}, [part]: 1 };
      const error = thrown(() => new Informer(none as never));
      expect(error).toMatchObject({ message: expect.stringMatching(/^source: .*a ListWatcher/) });
    }
    const informer = new Informer(source);
    expect(thrown(() => informer.addHandler((() => {}) as never))).toMatchObject(
      named('handler: expected an object with functions'),
    );
    expect(thrown(() => informer.addHandler({ onAdd: () => {} }, { onGap: 1 } as never))).toMatchObject(named('onGap'));
    expect(thrown(() => informer.addHandler({ onAdd: () => {} }, { filter: 1 } as never))).toMatchObject(named('filter'));
  });

  test('waits before it runs, is stopped by a stop without a run, and says so to who waits', async () => {
    const { informer } = rig([pod('a')]);
    expect(informer.state.phase).toBe('waiting');
    const synced = fate(informer.synced);
    await informer.stop();
    await settle();
    expect(informer.state.phase).toBe('stopped');
    expect(synced.error).toMatchObject({ code: 'CLOSED', message: 'the informer has stopped' });
    await expect(informer.atLeast('1')).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('names the version that is none', async () => {
    const { informer } = rig([pod('a')]);
    const message = 'resourceVersion: expected a version of Kubernetes, a decimal number below 2^128, got ""';
    await expect(informer.atLeast('')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
  });

  test('starts no timer before it runs', async () => {
    const { informer, clock } = rig([pod('a')]);
    informer.addHandler(new Calls(), { resyncMs: 5_000 });
    expect(clock.pending).toBe(0);
    await informer.stop();
  });

  test.each(['stop', 'run'] as const)('%s gives up on calls that do not return, and names them', async (how) => {
    const { informer, clock } = rig([pod('ns/a'), pod('b')]);
    let release = (): void => {};
    const stuck = (): Promise<void> =>
      new Promise((resolve) => {
        release = resolve;
      });
    informer.addHandler({ onAdd: stuck });
    informer.addHandler({ onUpdate: stuck });
    const abort = new AbortController();
    const run = fate(informer.run(abort.signal, how === 'run' ? { timeoutMs: 500 } : {}));
    await settle();
    abort.abort();
    const stop = fate(informer.stop(how === 'stop' ? { timeoutMs: 500 } : {}));
    await clock.advanceAsync(499);
    expect([run.state, stop.state]).toEqual(['pending', 'pending']);
    await clock.advanceAsync(1);
    const error = { code: 'TIMEOUT', limit: 500, message: 'gave up after 500 ms on onAdd of b' };
    expect((how === 'run' ? run : stop).error).toMatchObject(error);
    expect(clock.pending).toBe(0);
    release();
    await settle();
    expect([run.state, stop.state].sort()).toEqual(['rejected', 'resolved']);
    await expect(informer.stop({ timeoutMs: -1 })).rejects.toHaveProperty('code', 'INVALID_ARGUMENT');
  });

  test('without onError prints what is refused, and what fails', async () => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    try {
      const no = (): never => {
        throw new Error('no');
      };
      const { informer, start } = rig([pod('a'), pod('b')], {
        onError: undefined,
        transform: (one) => (one.metadata.name === 'b' ? no() : one),
      });
      informer.addHandler({ onAdd: no });
      await start();
      await informer.stop();
      expect(print.mock.calls).toEqual([
        [expect.stringMatching(/^watchmux informer: an object failed \(b\): Error: no \(at /)],
        [expect.stringMatching(/^watchmux informer: a handler failed: Error: no \(at /)],
      ]);
    } finally {
      print.mockRestore();
    }
  });

  test('that ends because onError throws about an object of the first list has not synced', async () => {
    const no = (): never => {
      throw new Error('no');
    };
    const informer = new Informer(new FakeListWatcher({ objects: [pod('a')] }), { transform: no, onError: no });
    await expect(informer.run()).rejects.toThrow('no');
    await expect(informer.synced).rejects.toThrow('no');
    expect(informer.hasSynced).toBe(false);
  });

  test('moves its version with BOOKMARKs, and not with objects that have none', async () => {
    const { source, clock } = new Scripted();
    source.toWatch = [new ScriptedWatch([change('ADDED', 'a', '2'), bookmark('3', 'true')])];
    const informer = new Informer<Plain>(source, { clock });
    void informer.run();
    await informer.synced;
    const reached = fate(informer.atLeast('9'));
    source.last.push({ type: 'ADDED', object: { metadata: { name: 'b' } } });
    await settle();
    expect([informer.store.size, informer.resourceVersion, reached.state]).toEqual([2, '3', 'pending']);
    source.last.push(bookmark('9'));
    await settle();
    expect([informer.resourceVersion, reached.state]).toEqual(['9', 'resolved']);
    await informer.stop();
  });

  test('waits for a version as long as it takes, and says for which one if it was told how long', async () => {
    const { informer, clock, source, start } = rig([pod('a')]);
    await start();
    const timers = clock.pending;
    const patient = fate(informer.atLeast('2'));
    expect(clock.pending).toBe(timers);
    const limited = fate(informer.atLeast('2', { timeoutMs: 1_000 }));
    clock.advance(1_000);
    await settle();
    expect(limited.error).toMatchObject({ code: 'TIMEOUT', limit: 1_000, message: 'version 2 was not reached in 1000 ms' });
    clock.advance(100_000);
    expect(patient.state).toBe('pending');
    source.modify(pod('a', 1));
    await settle();
    expect(patient.state).toBe('resolved');
    await informer.stop();
  });
});

describe('a handler', () => {
  test('has nothing queued when it joins what is empty', async () => {
    const { informer, start } = rig();
    expect(informer.addHandler({ onAdd: () => {} }).queued).toBe(0);
    await start();
    await informer.stop();
  });

  test('may have any of the functions, or none', async () => {
    const { informer, source, errors, start } = rig([pod('a', 1)]);
    for (const handler of [{ onAdd: () => {} }, { onUpdate: () => {} }, { onDelete: () => {} }]) informer.addHandler(handler);
    await start();
    source.modify(pod('a', 2));
    await settle();
    source.delete(pod('a'));
    await settle();
    expect(errors).toEqual([]);
    await informer.stop();
  });

  test('that is removed too early says so', async () => {
    const { informer } = rig();
    const handler = informer.addHandler({ onAdd: () => {} });
    handler.remove();
    await expect(handler.synced).rejects.toMatchObject({
      code: 'CLOSED',
      message: 'the handler was removed before it had synced',
    });
    await informer.stop();
  });

  test('tells what is new after the state as new, though it comes before it has read the state', async () => {
    const { informer, source, start } = rig([pod('a', 1)]);
    await start();
    const calls = new Calls();
    informer.addHandler(calls);
    source.add(pod('b', 1));
    await settle();
    expect(calls.take()).toEqual(['!a1', '+b1']);
    await informer.stop();
  });

  /** Handlers that never return from their first call. */
  const stalled = () => ({ onAdd: () => new Promise(() => {}), onUpdate: () => {} });

  test('with coalesce has room for all objects, however many', async () => {
    const { informer, source, errors, start } = rig(Array.from({ length: 2_500 }, (_, at) => pod(`p${at}`, 0)));
    const handler = informer.addHandler(stalled());
    await start();
    for (let at = 0; at < 2_500; at++) source.modify(pod(`p${at}`, 1));
    await settle();
    expect([handler.queued, errors]).toEqual([2_500, []]);
    handler.remove();
    void informer.stop();
  });

  test('with another policy has room for 1,000 changes', async () => {
    const { informer, source, errors, start } = rig([pod('a', 0)]);
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const handler = informer.addHandler({ onUpdate: () => gate }, { overflow: 'disconnect' });
    await start();
    source.modify(pod('a', 1));
    await settle(); // in their hands
    for (let at = 2; at <= 1_001; at++) source.modify(pod('a', at));
    await settle();
    expect([handler.queued, errors]).toEqual([1_000, []]);
    source.modify(pod('a', 1_002));
    await settle();
    go();
    await settle();
    expect(errors).toMatchObject([{ code: 'REFUSED', status: { code: 410 } }]);
    await informer.stop();
  });

  test('that is cut is told why', async () => {
    const { informer, source, errors, start } = rig([pod('a', 0)]);
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    informer.addHandler({ onAdd: () => gate }, { overflow: 'disconnect', capacity: 1 });
    await start();
    for (let at = 1; at <= 3; at++) source.modify(pod('a', at));
    go();
    await settle();
    const message = expect.stringMatching(/^a handler was ended: ./);
    expect(errors).toEqual([
      expect.objectContaining({ code: 'REFUSED', message, status: expect.objectContaining({ code: 410 }) }),
    ]);
    await informer.stop();
  });

  test.each(policiesWith<HandlerOverflow>({ waits: false, folds: false }))(
    'with %s needs no room for what its filter hides',
    async (overflow) => {
      const { informer, source, errors, start } = rig([pod('a', 0), pod('b', 1)]);
      let go = (): void => {};
      const gate = new Promise<void>((resolve) => {
        go = resolve;
      });
      const calls = new Calls();
      const missed: number[] = [];
      const slow = async (one: Pod, initial: boolean): Promise<void> => {
        calls.onAdd(one, initial);
        await gate;
      };
      informer.addHandler(
        { onAdd: slow, onUpdate: calls.onUpdate },
        { overflow, capacity: 2, filter: ({ value }) => value % 2 === 0, onGap: (count) => missed.push(count) },
      );
      await start();
      for (let at = 1; at < 20; at++) source.modify(pod('b', at * 2 + 1));
      source.modify(pod('a', 2));
      go();
      await settle();
      expect([calls.take(), missed, errors]).toEqual([['!a0', 'a0>a2'], [], []]);
      await informer.stop();
    },
  );
});

describe('a resync', () => {
  test('of one handler is none of the others', async () => {
    const { informer, clock, start } = rig([pod('a', 1)]);
    const [often, seldom] = [new Calls(), new Calls()];
    informer.addHandler(often, { resyncMs: 2_000 });
    informer.addHandler(seldom, { resyncMs: 3_000 });
    await start();
    const told: string[] = [];
    often.take();
    seldom.take();
    for (let at = 1; at <= 8; at++) {
      clock.advance(1_000);
      await settle();
      told.push(`${often.take().length}${seldom.take().length}`);
    }
    expect(told).toEqual(['00', '10', '01', '10', '00', '11', '00', '10']);
    await informer.stop();
  });

  test('passes over what was deleted while it was told', async () => {
    const { informer, source, clock, errors, start } = rig([pod('a', 1), pod('b', 1), pod('c', 1)]);
    const calls = new Calls();
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const onUpdate = async (old: Pod, one: Pod): Promise<void> => {
      calls.onUpdate(old, one);
      await gate;
    };
    informer.addHandler({ onUpdate, onDelete: calls.onDelete }, { resyncMs: 5_000 });
    await start();
    clock.advance(5_000);
    await settle();
    source.delete(pod('b'));
    await settle();
    go();
    await settle();
    expect([calls.take(), errors]).toEqual([['a1>a1', '-b1', 'c1>c1'], []]);
    await informer.stop();
  });
});

describe('an event of a watch', () => {
  test('of a deletion has the last content, unless the object only left the selection', () => {
    const [previous, object] = [pod('a', 2, '5'), pod('a', 3, '6')];
    const deletion = { type: 'DELETED', object, previous, key: 'a', finalStateUnknown: false } as const;
    expect(toObjectEvent(deletion, undefined)).toEqual({ type: 'DELETED', object });
    const left = toObjectEvent({ ...deletion, type: 'MODIFIED' }, ({ value }) => value % 2 === 0) as {
      type: string;
      object: Pod;
    };
    expect([left.type, shown(left.object), left.object.metadata.resourceVersion]).toEqual(['DELETED', 'a2', '6']);
  });
});

describe('a factory', () => {
  test('that is shut down makes none, and starts none', async () => {
    const factory = new InformerFactory((name: string) => new FakeListWatcher<Pod>({ objects: [pod(name)] }));
    const informer = factory.informer('a');
    await factory.shutdown();
    factory.start();
    expect(informer.started).toBe(false);
    expect(thrown(() => factory.informer('b'))).toMatchObject({ code: 'CLOSED', message: 'the informer factory is shut down' });
    expect(factory.informer('a')).toBe(informer);
  });
});

describe('untilWithSync', () => {
  test('counts the time for its precondition', async () => {
    const clock = new FakeClock();
    const source = new FakeListWatcher<Pod>({ objects: [pod('a', 1)] });
    const release = source.hold();
    const waiting = fate(
      untilWithSync(source, [({ type }) => type === 'DELETED'], { clock, timeoutMs: 1_000, precondition: () => false }),
    );
    await settle();
    clock.advance(600);
    release();
    await settle();
    clock.advance(399);
    await settle();
    expect(waiting.state).toBe('pending');
    clock.advance(1);
    await settle();
    expect(waiting.error).toMatchObject({ code: 'TIMEOUT' });
    expect([source.openWatches, clock.pending]).toEqual([0, 0]);
    await expect(untilWithSync(source, [], { precondition: 1 } as never)).rejects.toMatchObject(named('precondition'));
  });
});

describe('a hub as a source', () => {
  const hub = (...events: ObjectEvent<number>[]) => {
    const asked: (string | undefined)[] = [];
    const watches: FakeWatcher<ObjectEvent<number>>[] = [];
    const source = fromHub<number>(({ resourceVersion }) => {
      asked.push(resourceVersion);
      const watch = new FakeWatcher<ObjectEvent<number>>({ capacity: 100 });
      for (const { type, object, ...more } of events) void SEND.call(watch, { type, object, ...more } as ObjectEvent<number>);
      watches.push(watch);
      return watch;
    });
    return { source, asked, watches };
  };
  const SEND = (FakeWatcher.prototype as unknown as { send(event: ObjectEvent<number>): Promise<boolean> }).send;
  const end = bookmark('e1.4', 'true') as ObjectEvent<number>;
  const added = (object: number, more: object = {}): ObjectEvent<number> => ({ type: 'ADDED', object, ...more });

  test('must be a function', () => {
    expect(thrown(() => fromHub(undefined as never))).toMatchObject(named('connect: expected a function'));
  });

  test('a list ends with the state, not with another BOOKMARK', async () => {
    const { source } = hub(added(1), bookmark('e1.3') as never, added(2), end, added(3, { resourceVersion: 'e1.5' }));
    expect(await source.list()).toEqual({ items: [1, 2], resourceVersion: 'e1.4' });
  });

  test('a list that is refused in its middle rejects with that, and one that ends there, with 503', async () => {
    const status = toStatus({ code: 500, reason: 'InternalError', message: 'no snapshot now' });
    const refused = hub(added(1), { type: 'ERROR', object: status }, end);
    await expect(refused.source.list()).rejects.toMatchObject({ code: 'REFUSED', message: 'no snapshot now', status });
    const ended = hub(added(1));
    const list = fate(ended.source.list());
    await settle();
    ended.watches[0]?.stop();
    await settle();
    expect(list.error).toMatchObject({
      code: 'REFUSED',
      status: { code: 503, reason: 'ServiceUnavailable', message: 'the snapshot of the hub ended early' },
    });
  });

  test.each([
    [{}, undefined],
    [{ resourceVersion: '' }, undefined],
    [{ resourceVersion: '0' }, undefined],
    [{ resourceVersion: 'e1.2', sendInitialEvents: true }, undefined],
    [{ resourceVersion: 'e1.2' }, 'e1.2'],
  ])('a watch with %j asks for what follows %s', async (options, version) => {
    const live = added(9, { resourceVersion: 'e1.3' });
    const { source, asked } = hub(live);
    const watch = await source.watch(options);
    if (version) expect(await watch.next()).toEqual({ done: false, value: live });
    else {
      const status = { code: 405, reason: 'MethodNotAllowed', message: 'the hub has no snapshot' };
      await expect(watch.next()).rejects.toMatchObject({ code: 'REFUSED', message: status.message, status });
    }
    expect(asked).toEqual([version]);
    await watch.return();
  });

  test('ERRORs and BOOKMARKs come as they are; objects without a version are marked', async () => {
    const status = toStatus({ code: 410, reason: 'Expired', message: 'gone' });
    const other = bookmark('e1.3') as ObjectEvent<number>;
    const { source } = hub(added(1), other, { type: 'ERROR', object: status });
    const watch = await source.watch();
    expect((await watch.next()).value).toEqual({ type: 'ADDED', object: 1, resourceVersion: '' });
    expect((await watch.next()).value).toEqual(other);
    expect((await watch.next()).value).toEqual({ type: 'ERROR', object: status });
    await watch.return();
  });
});
