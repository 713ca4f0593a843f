// The informer: its life, its store, its watches.
import { describe, expect, test, vi } from 'vitest';
import { Informer, type InformerFailure, isInitialEventsEnd } from '../../src/cache/index.ts';
import type { HandlerOverflow } from '../../src/cache/informer/informer-options.ts';
import { FakeListWatcher } from '../../src/testing/index.ts';
import type { ObjectEvent } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { policiesWith } from '../policies.ts';
import { Calls, nameOf, type Pod, pod, rig, settle, shown } from './informer-support.ts';
import { fate, thrown } from './support.ts';

/** What a watch has, as text. */
function read(watch: Watch<ObjectEvent<Pod>>): string[] {
  const all: string[] = [];
  for (let event = watch.tryNext(); event; event = watch.tryNext()) {
    if (event.type === 'BOOKMARK') all.push(isInitialEventsEnd(event) ? 'SYNCED' : event.type);
    else all.push(event.type === 'ERROR' ? event.type : `${event.type} ${shown(event.object)}`);
  }
  return all;
}

describe('the life of an informer', () => {
  test('TestStateSharedInformer: runs until the signal aborts; hasSynced, resourceVersion and state tell how it is', async () => {
    const { source, informer } = rig([pod('a', 1)]);
    const handler = informer.addHandler(new Calls());
    expect([informer.hasSynced, informer.resourceVersion, informer.store.size]).toEqual([false, '', 0]);
    const stop = new AbortController();
    const run = fate(informer.run(stop.signal));
    await informer.synced;
    expect([informer.hasSynced, informer.resourceVersion, informer.store.list().map(shown)]).toEqual([true, '1', ['a1']]);
    await handler.synced;
    await settle();
    expect(informer.state).toMatchObject({ phase: 'watching', failures: 0, lastContactMs: 0 });
    source.modify(pod('a', 2));
    await settle();
    expect([informer.resourceVersion, informer.store.get('a')?.value]).toEqual(['2', 2]);
    expect(run.state).toBe('pending');
    stop.abort();
    await settle();
    expect(run.state).toBe('resolved');
    expect(informer.state.phase).toBe('stopped');
    expect([informer.hasSynced, source.openWatches]).toEqual([true, 0]);
  });

  test('runs once: the second run is refused, also at the same time (FIX12.6)', async () => {
    const { source, informer } = rig();
    const first = informer.run();
    await expect(informer.run()).rejects.toThrow('an informer runs once');
    await informer.synced;
    await informer.stop();
    await first;
    await expect(informer.run()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(source.requests.filter(({ options }) => options.signal?.aborted === false)).toEqual([]);
  });

  test('that was stopped before it ran asks nobody', async () => {
    const { source, informer, clock } = rig([pod('a')]);
    const synced = fate(informer.synced);
    await informer.stop();
    await informer.run();
    await settle();
    expect(synced).toMatchObject({ state: 'rejected', error: { code: 'CLOSED' } });
    expect([source.requests.length, clock.pending, informer.state.phase, informer.hasSynced]).toEqual([0, 0, 'stopped', false]);
    const aborted = rig([pod('a')]);
    await aborted.informer.run(AbortSignal.abort());
    expect([aborted.source.requests.length, aborted.informer.state.phase]).toEqual([0, 'stopped']);
  });

  test('stop is idempotent, and leaves nothing, at any moment', async () => {
    for (let turns = 0; turns < 12; turns++) {
      const { source, informer, clock, errors } = rig([pod('a')], { resyncMs: 5_000 });
      const handler = informer.addHandler(new Calls());
      const watch = informer.watch();
      const end = fate(
        watch
          .next()
          .then(() => watch.next())
          .then(() => watch.next()),
      );
      const waits = fate(informer.atLeast('100', { timeoutMs: 1_000 }));
      const signal = new AbortController();
      const run = fate(informer.run(signal.signal));
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      const stops = [informer.stop(), informer.stop()];
      signal.abort();
      await Promise.all(stops);
      await settle();
      expect([run.state, end.state, waits.state]).toEqual(['resolved', 'resolved', 'rejected']);
      expect([clock.pending, source.openWatches, handler.queued, errors.length]).toEqual([0, 0, 0, 0]);
    }
  });

  test('run rejects with what onError throws, once everything has stopped', async () => {
    const { informer, source, clock } = rig([pod('a')], {
      onError: (error) => {
        throw error;
      },
    });
    informer.addHandler({ onAdd: () => Promise.reject(new Error('enough')) });
    await expect(informer.run()).rejects.toThrow('enough');
    expect([clock.pending, source.openWatches, informer.state.phase]).toEqual([0, 0, 'stopped']);
  });

  test('TestSharedInformerErrorHandling: failures of the source are reported, and it goes on', async () => {
    const { source, informer, clock, errors } = rig([pod('a')]);
    source.failList(FakeListWatcher.refusal(500, 'InternalError'));
    source.failWatch(FakeListWatcher.refusal(500, 'InternalError'));
    const run = informer.run();
    for (let i = 0; i < 20 && !informer.hasSynced; i++) {
      await settle();
      clock.advance(2_000);
    }
    expect(informer.hasSynced).toBe(true);
    expect(errors.length).toBeGreaterThan(0);
    expect(informer.state.failures).toBeGreaterThan(0);
    await informer.stop();
    await run;
  });

  test('TestSharedInformerInitializationRace, TestSharedInformerStartRace: handlers may come while it starts', async () => {
    const { informer } = rig([pod('a'), pod('b')]);
    const run = informer.run();
    const calls: Calls[] = [];
    for (let turn = 0; turn < 30; turn++) {
      calls.push(new Calls());
      informer.addHandler(calls.at(-1) as Calls);
      await Promise.resolve();
    }
    await settle();
    expect(calls.map(({ all }) => all)).toEqual(calls.map(() => ['!a0', '!b0']));
    await informer.stop();
    await run;
  });

  test('TestSharedInformerWatchDisruption, TestResetWatch: what was added, changed and deleted meanwhile is told after the watch broke', async () => {
    const { source, informer, clock, start } = rig([pod('a', 1), pod('b', 1), pod('c', 1)]);
    const calls = new Calls();
    informer.addHandler(calls);
    await start();
    calls.take();
    source.cut();
    source.add(pod('d', 1));
    source.modify(pod('a', 2));
    source.delete(pod('b'));
    source.expire();
    for (let i = 0; i < 10; i++) {
      await settle();
      clock.advance(1_000);
    }
    expect(calls.take().sort()).toEqual(['+d1', '-b1?', 'a1>a2']);
    await informer.stop();
  });

  test('a relist of what is the same keeps every object, and calls no handler', async () => {
    const objects = Array.from({ length: 100 }, (_, at) => pod(`p${at}`, at));
    const { source, informer, clock, start } = rig(objects);
    const calls = new Calls();
    informer.addHandler(calls);
    await start();
    calls.take();
    const before = informer.store.list();
    const { length } = source.requests;
    source.cut();
    source.expire();
    source.failWatch(FakeListWatcher.refusal(410, 'Expired'));
    for (let i = 0; i < 10; i++) {
      await settle();
      clock.advance(1_000);
    }
    expect(source.requests.length).toBeGreaterThan(length + 1);
    expect(informer.store.list().every((one, at) => one === before[at])).toBe(true);
    expect(calls.take()).toEqual([]);
    await informer.stop();
  });

  test('refuses what it cannot use', () => {
    const source = new FakeListWatcher<Pod>();
    expect(() => new Informer({} as never)).toThrow('source: expected a ListWatcher');
    expect(() => new Informer(source, { resync: 5 } as never)).toThrow('did you mean resyncMs?');
    expect(() => new Informer(source, { resyncMs: -1 })).toThrow('resyncMs: expected a whole number >= 0');
    expect(() => new Informer(source, { onError: 1 } as never)).toThrow('onError: expected a function');
    const informer = new Informer(source);
    expect(() => informer.addHandler(null as never)).toThrow('handler: expected an object with functions');
    expect(() => informer.addHandler({ onAdded() {} } as never)).toThrow('unknown option onAdded: did you mean onAdd?');
    expect(() => informer.addHandler({ onAdd() {}, onChange() {} } as never)).toThrow('unknown option onChange');
    const none = 'handler: expected onAdd, onUpdate or onDelete in it, got';
    expect(() => informer.addHandler({})).toThrow(`${none} Object {}`);
    expect(() => informer.addHandler({ onAdd: undefined } as never)).toThrow(`${none} Object {onAdd}`);
    informer.addHandler({ onAdd() {}, seen: [] } as never).remove();
    class Misspelt {
      onAdded(): void {}
    }
    expect(() => informer.addHandler(new Misspelt() as never)).toThrow(`${none} Misspelt {}`);
    class Fine {
      readonly onMore: number = 1;
      onDelete(): void {}
    }
    informer.addHandler(new Fine()).remove();
    expect(() => informer.addHandler({ onAdd: 1 } as never)).toThrow('onAdd: expected a function');
    expect(() => informer.addHandler({ onAdd: () => {} }, { resyncMs: 0.5 })).toThrow('resyncMs');
    expect(() => informer.addHandler({ onAdd: () => {} }, { overflow: 'wait' } as never)).toThrow(
      `overflow: expected one of ${policiesWith({ waits: false }).join(', ')}, got "wait"`,
    );
    expect(() => informer.addHandler({ onAdd: () => {} }, { capacity: 0 })).toThrow('capacity: expected a whole number >= 1');
    expect(() => informer.addHandler({ onAdd: () => {} }, { filter: 1 } as never)).toThrow('filter: expected a function');
    expect(() => informer.addHandler({ onAdd: () => {} }, { size: 1 } as never)).toThrow('unknown option size');
    expect(() => informer.watch({ labelSelector: '=' })).toThrow();
    expect(() => informer.watch({ resyncMs: 1 } as never)).toThrow('unknown option resyncMs');
  });
});

describe('the store', () => {
  test('TestIndexer: has indexes, also new ones while it runs; list takes a namespace and a selector', async () => {
    const labelled = (key: string, app: string): Pod => ({ ...pod(key), metadata: { ...pod(key).metadata, labels: { app } } });
    const { informer, start, source } = rig([labelled('x/a', 'web'), labelled('x/b', 'db'), labelled('y/c', 'web')], {
      indexers: { name: (one) => [nameOf(one)] },
    });
    await start();
    const { store } = informer;
    expect(store.byIndex('name', 'a').map(nameOf)).toEqual(['a']);
    const more = store.addIndexers({ app: ({ metadata }) => [metadata.labels?.app ?? ''] });
    expect(more.indexKeys('app', 'web')).toEqual(['x/a', 'y/c']);
    source.modify(labelled('x/a', 'db'));
    await settle();
    expect(more.indexKeys('app', 'db')).toEqual(['x/b', 'x/a']);
    expect(store.list({ namespace: 'x' }).map(nameOf)).toEqual(['a', 'b']);
    expect(store.list({ labelSelector: 'app=db' }).map(nameOf)).toEqual(['a', 'b']);
    expect(store.list({ namespace: 'y', labelSelector: 'app in (web)' }).map(nameOf)).toEqual(['c']);
    expect([store.get('y/c')?.metadata.name, store.size, store.keys().length]).toEqual(['c', 3, 3]);
    await informer.stop();
    expect(store.size).toBe(3); // what it has stays readable
  });

  test('TestSharedInformerTransformer: has what transform returns, which handlers get, too', async () => {
    const { informer, start, source } = rig([pod('a', 1)], { transform: (one) => ({ ...one, value: one.value * 10 }) });
    const calls = new Calls();
    informer.addHandler(calls);
    await start();
    source.modify(pod('a', 2));
    await settle();
    source.delete(pod('a'));
    await settle();
    expect(calls.take()).toEqual(['!a10', 'a10>a20', '-a20']);
    await informer.stop();
  });

  test('an object that is refused is reported, and the rest goes on', async () => {
    const failures: InformerFailure<Pod>[] = [];
    const { informer, start } = rig([pod('a', 1), pod('b', 2)], {
      transform: (one) => {
        if (one.value === 2) throw new Error('no');
        return one;
      },
      onError: (_error, failure) => void failures.push(failure),
    });
    await start();
    expect(informer.store.keys()).toEqual(['a']);
    expect(failures).toMatchObject([{ kind: 'object', object: { value: 2 } }]);
    await informer.stop();
  });
});

describe('a transform that returns nothing', () => {
  test.each([true, false])(
    'refuses the object, which is reported, and leaves no key behind; streaming: %s',
    async (streamingList) => {
      const failures: InformerFailure<Pod>[] = [];
      const { informer, start, source } = rig([pod('a', 1), pod('b', 2)], {
        streamingList,
        transform: (one) => (one.value === 2 ? (undefined as never) : one),
        onError: (_error, failure) => void failures.push(failure),
      });
      const calls = new Calls();
      informer.addHandler(calls);
      await start();
      expect([informer.store.keys(), informer.store.size]).toEqual([['a'], 1]);
      source.modify(pod('a', 2)); // its previous state stays
      await settle();
      source.delete(pod('a'));
      source.delete(pod('b'));
      await settle();
      expect([informer.store.keys(), informer.store.size, informer.store.list()]).toEqual([[], 0, []]);
      expect(failures.map((failure) => failure.kind)).toEqual(['object', 'object', 'object']);
      expect(calls.take()).toEqual(['!a1', '-a1?']); // of the last state there is nothing
      await informer.stop();
    },
  );
});

describe('atLeast', () => {
  test('resolves when the store has reached the version, by a change, a bookmark or a list', async () => {
    const { source, informer, start } = rig([pod('a', 1)]);
    const early = informer.atLeast('1');
    await start();
    await early;
    await informer.atLeast('1');
    const written = source.modify(pod('a', 2));
    const reached = fate(informer.atLeast(written.metadata.resourceVersion as string));
    const later = fate(informer.atLeast('3'));
    expect(informer.store.get('a')?.value).toBe(1);
    await settle();
    expect([reached.state, later.state, informer.store.get('a')?.value]).toEqual(['resolved', 'pending', 2]);
    source.add(pod('b'));
    source.delete(pod('b'));
    await informer.atLeast('4');
    expect(later.state).toBe('resolved');
    await informer.stop();
    await expect(informer.atLeast('9')).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('gives up after timeoutMs, with the signal, and when the informer stops; refuses what is no version', async () => {
    const { informer, clock, start } = rig();
    await start();
    const own = clock.pending;
    const stop = new AbortController();
    const waits = [
      fate(informer.atLeast('9', { timeoutMs: 500 })),
      fate(informer.atLeast('9', { signal: stop.signal, timeoutMs: 5_000 })),
      fate(informer.atLeast('9', { timeoutMs: 5_000 })),
      fate(informer.atLeast('01')),
      fate(informer.atLeast('9', { signal: AbortSignal.abort('no') })),
    ];
    clock.advance(499);
    await settle();
    expect(waits.map(({ state }) => state)).toEqual(['pending', 'pending', 'pending', 'rejected', 'rejected']);
    clock.advance(1);
    stop.abort('enough');
    await settle();
    expect(waits[0]?.error).toMatchObject({ code: 'TIMEOUT', limit: 500 });
    expect(waits[1]?.error).toBe('enough');
    expect(waits[3]?.error).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(clock.pending).toBe(own + 1);
    await informer.stop();
    expect(waits[2]?.error).toMatchObject({ code: 'CLOSED' });
    expect(clock.pending).toBe(0);
    await expect(informer.atLeast('9', { timeout: 5 } as never)).rejects.toThrow('did you mean timeoutMs?');
    await expect(informer.atLeast('9', null as never)).rejects.toThrow('options: expected an object');
  });

  test('a time that is none is refused', async () => {
    const { informer, start } = rig();
    await start();
    for (const timeoutMs of [Number.NaN, -1, Infinity, '5' as never]) {
      const wait = fate(informer.atLeast('9', { timeoutMs }));
      await settle();
      expect([timeoutMs, wait.error]).toEqual([timeoutMs, expect.objectContaining({ code: 'INVALID_ARGUMENT' })]);
    }
    await informer.stop();
  });

  test('a version that cannot be compared is told to who waits for it, and is no failure of the store', async () => {
    const { informer, source, start, errors } = rig([pod('a')], {
      compareVersions: (a, b) => {
        if (a !== b && [a, b].includes('odd')) throw new Error(`${a} or ${b}`);
        return Number(a) - Number(b);
      },
    });
    const odd = fate(informer.atLeast('odd'));
    const even = fate(informer.atLeast('2'));
    await start();
    expect([odd.error, even.state]).toEqual([new Error('1 or odd'), 'pending']);
    source.add(pod('b'));
    await settle();
    expect([informer.store.keys(), even.state]).toEqual([['a', 'b'], 'resolved']);
    await expect(informer.atLeast('odd')).rejects.toEqual(new Error('2 or odd'));
    expect([errors, informer.state.failures]).toEqual([[], 0]);
    await informer.stop();
  });

  test('compares as it is told', async () => {
    const { informer, start } = rig([pod('a')], { compareVersions: (a, b) => Number(a.slice(-1)) - Number(b.slice(-1)) });
    await start();
    await informer.atLeast('v1');
    const wait = fate(informer.atLeast('v2'));
    await settle();
    expect(wait.state).toBe('pending');
    await informer.stop();
  });
});

describe('watch', () => {
  test('TestNewInformerWatcher: has the state, the bookmark that ends it, then changes; it ends with the informer', async () => {
    const { source, informer, start } = rig([pod('a', 1), pod('b', 1)]);
    const before = informer.watch();
    expect(before.tryNext()).toBeUndefined();
    await start();
    expect(read(before)).toEqual(['ADDED a1', 'ADDED b1', 'SYNCED']);
    source.modify(pod('a', 2));
    source.delete(pod('b'));
    await settle();
    const after = informer.watch();
    expect(read(before)).toEqual(['MODIFIED a2', 'DELETED b1']);
    const first = await after.next();
    expect(first.value).toEqual({ type: 'ADDED', object: informer.store.get('a') }); // nothing else is in it
    const bookmark = (await after.next()).value as ObjectEvent<Pod>;
    expect(isInitialEventsEnd(bookmark)).toBe(true);
    expect(bookmark.object).toMatchObject({ metadata: { resourceVersion: '3' } });
    source.add(pod('c', 1));
    await settle();
    await informer.stop();
    expect([read(after), read(before)]).toEqual([['ADDED c1'], ['ADDED c1']]);
    expect([(await after.next()).done, (await before.next()).done, before.stopped]).toEqual([true, true, true]);
    expect(thrown(() => informer.watch())).toMatchObject({ code: 'CLOSED' });
  });

  test('TestInformerWatcherDeletedFinalStateUnknown: what a list lacks is DELETED with its last known content', async () => {
    const { source, informer, clock, start } = rig([pod('a', 1)]);
    const watch = informer.watch();
    await start();
    read(watch);
    source.cut();
    source.delete(pod('a'));
    source.expire();
    for (let i = 0; i < 10; i++) {
      await settle();
      clock.advance(1_000);
    }
    expect(read(watch)).toEqual(['DELETED a1']);
    await informer.stop();
  });

  test('TestEventProcessorExit: it ends with the informer, unread or while a read waits', async () => {
    const { source, informer, clock, start } = rig([pod('a', 1)]);
    const [unread, waiting] = [informer.watch(), informer.watch()];
    await start();
    read(waiting);
    const last = fate(waiting.next());
    await settle();
    expect(last.state).toBe('pending');
    await informer.stop();
    await settle();
    expect([last.state, await waiting.next()]).toEqual(['resolved', { done: true }]);
    expect([unread.stopped, read(unread), await unread.next()]).toEqual([true, ['ADDED a1', 'SYNCED'], { done: true }]);
    expect([clock.pending, source.openWatches]).toEqual([0, 0]);
  });

  test('TestEventProcessorOrdersEvents: a thousand changes come in order', async () => {
    const { source, informer, start } = rig();
    const watch = informer.watch({ overflow: 'disconnect', capacity: 2_000 });
    await start();
    for (let at = 0; at < 1_000; at++) source.add(pod(`p${at % 7}`, at));
    await settle();
    const values: number[] = [];
    for (let event = watch.tryNext(); event; event = watch.tryNext()) {
      if (event.type === 'ADDED' || event.type === 'MODIFIED') values.push(event.object.value);
    }
    expect(values).toEqual(Array.from({ length: 1_000 }, (_, at) => at));
    await informer.stop();
  });

  test('with a selector or a filter, what starts to match is ADDED, what stops is DELETED', async () => {
    const labelled = (key: string, value: number, app: string): Pod => ({
      ...pod(key, value),
      metadata: { ...pod(key).metadata, labels: { app } },
    });
    const { source, informer, start } = rig([labelled('a', 1, 'web'), labelled('b', 1, 'db')]);
    const web = informer.watch({ labelSelector: 'app=web' });
    const large = informer.watch({ labelSelector: 'app', filter: ({ value }) => value > 1 });
    await start();
    expect([read(web), read(large)]).toEqual([['ADDED a1', 'SYNCED'], ['SYNCED']]);
    source.modify(labelled('a', 2, 'db'));
    source.modify(labelled('b', 2, 'web'));
    await settle();
    expect([read(web), read(large)]).toEqual([
      ['DELETED a1', 'ADDED b2'],
      ['ADDED a2', 'ADDED b2'],
    ]);
    source.delete(pod('b'));
    await settle();
    expect([read(web), read(large)]).toEqual([['DELETED b2'], ['DELETED b2']]);
    await informer.stop();
  });

  test.each(policiesWith<HandlerOverflow>({ waits: false, folds: false }))(
    'with %s has a bound, unless told otherwise',
    async (overflow) => {
      const { source, informer, start } = rig();
      await start();
      const watch = informer.watch({ overflow });
      read(watch);
      for (let at = 0; at < 1_500; at++) source.add(pod('a', at));
      await settle();
      read(watch);
      expect(watch.dropped).toBe(500);
      await informer.stop();
    },
  );

  test('what it does not select takes no room', async () => {
    const { source, informer, start } = rig([pod('a', 1)]);
    await start();
    const watch = informer.watch({ overflow: 'disconnect', capacity: 2, filter: ({ value }) => value > 0 });
    const before = read(watch);
    for (let at = 0; at < 10; at++) source.add(pod('b', -at));
    source.modify(pod('a', 2));
    await settle();
    expect([before, read(watch)]).toEqual([['ADDED a1', 'SYNCED'], ['MODIFIED a2']]);
    await informer.stop();
  });

  test('ends with its signal; one that is too slow is told, if it asked for that', async () => {
    const { source, informer, start } = rig();
    await start();
    const stop = new AbortController();
    const watch = informer.watch({ signal: stop.signal });
    const slow = informer.watch({ overflow: 'disconnect', capacity: 2 });
    for (let at = 0; at < 5; at++) source.add(pod('a', at));
    await settle();
    expect(read(slow)).toEqual(['SYNCED', 'ADDED a0', 'ERROR']);
    expect(read(watch)).toEqual(['SYNCED', 'ADDED a4']); // folded
    stop.abort();
    expect(watch.stopped).toBe(true);
    await informer.stop();
  });
});

test('failures without onError go to the console, so that none is silent', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
  try {
    const { informer } = rig([pod('a')], { onError: undefined });
    informer.addHandler({
      onAdd: () => {
        throw new Error('no');
      },
    });
    const run = informer.run();
    await settle();
    await informer.stop();
    await run;
    expect(logged.mock.calls).toEqual([[expect.stringMatching(/^watchmux informer: a handler failed: Error: no \(at /)]]);
  } finally {
    logged.mockRestore();
  }
});
