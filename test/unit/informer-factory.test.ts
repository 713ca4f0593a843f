// The factory of informers, and listers.
import { describe, expect, test, vi } from 'vitest';
import { Indexer, Informer, InformerFactory, Lister, parseLabelSelector } from '../../src/cache/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { Calls, nameOf, type Pod, pod, settle } from './informer-support.ts';
import { fate } from './support.ts';

function sources(): {
  asked: string[];
  make: (resource: string, options: { namespace: string | undefined }) => FakeListWatcher<Pod>;
} {
  const asked: string[] = [];
  return {
    asked,
    make: (resource, { namespace }) => {
      asked.push(`${resource} in ${namespace}`);
      return new FakeListWatcher<Pod>({ objects: [pod(`${resource}-1`, 1)] });
    },
  };
}

describe('a factory', () => {
  test('makes one informer per resource; the first options count', async () => {
    const { asked, make } = sources();
    const factory = new InformerFactory(make, {
      namespace: 'x',
      transform: (one) => ({ ...one, value: 7 }),
      clock: new FakeClock(),
    });
    const pods = factory.informer('pods', { indexers: { name: (one) => [nameOf(one)] } });
    expect(factory.informer('pods')).toBe(pods);
    const services = factory.informer('services', { transform: undefined });
    expect(asked).toEqual(['pods in x', 'services in x']);
    factory.start();
    expect(await factory.waitForSync()).toEqual(
      new Map([
        ['pods', true],
        ['services', true],
      ]),
    );
    expect(pods.store.byIndex('name', 'pods-1').map(({ value }) => value)).toEqual([7]);
    expect(services.store.list().map(({ value }) => value)).toEqual([7]);
    await factory.shutdown();
  });

  test('start starts those that are not started, again and again; nothing after shutdown', async () => {
    const { make } = sources();
    const factory = new InformerFactory(make);
    const first = factory.informer('a');
    factory.start();
    factory.start();
    const second = factory.informer('b');
    expect(await factory.waitForSync()).toEqual(new Map([['a', true]]));
    factory.start();
    await second.synced;
    expect([first.hasSynced, second.hasSynced]).toEqual([true, true]);
    const ends = factory.shutdown();
    expect(factory.shutdown()).toBe(ends);
    await ends;
    expect([first.state.phase, second.state.phase]).toEqual(['stopped', 'stopped']);
    expect(() => factory.informer('c')).toThrow('the informer factory is shut down');
    expect(factory.informer('a')).toBe(first);
    factory.start();
  });

  test('TestShutdown: waits until every informer has stopped, its handlers among it', async () => {
    const { make } = sources();
    const factory = new InformerFactory(make);
    let open = (): void => {};
    factory.informer('a').addHandler({
      onAdd: () =>
        new Promise<void>((resolve) => {
          open = resolve;
        }),
    });
    factory.start();
    await factory.waitForSync();
    await settle();
    const ends = fate(factory.shutdown());
    await settle();
    expect(ends.state).toBe('pending');
    open();
    await settle();
    expect(ends.state).toBe('resolved');
  });

  test('TestSyncResult, TestWaitFor: waiting tells who has not synced when the signal aborts, or they stop', async () => {
    const clock = new FakeClock();
    const held = new FakeListWatcher<Pod>();
    held.hold();
    const factory = new InformerFactory(({ name }: { name: string }) => (name === 'slow' ? held : new FakeListWatcher<Pod>()), {
      clock,
    });
    factory.informer({ name: 'slow' });
    factory.informer({ name: 'quick' });
    expect(factory.informer({ name: 'quick' })).toBe(factory.informer({ name: 'quick' }));
    expect(await factory.waitForSync()).toEqual(new Map());
    const stop = new AbortController();
    factory.start(stop.signal);
    await settle();
    const patience = new AbortController();
    const wait = factory.waitForSync(patience.signal);
    patience.abort();
    expect([...(await wait)].map(([{ name }, synced]) => [name, synced])).toEqual([
      ['slow', false],
      ['quick', true],
    ]);
    expect([...(await factory.waitForSync(AbortSignal.abort())).values()]).toEqual([false, true]);
    const other = factory.waitForSync();
    stop.abort();
    expect([...(await other).values()]).toEqual([false, true]);
    await factory.shutdown();
    expect(clock.pending).toBe(0);
  });

  test('an informer that ends by what onError throws is told; one that runs already is left alone', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { make } = sources();
    const thrown = new Error('of onError');
    const factory = new InformerFactory(make);
    const onError = (): never => {
      throw thrown;
    };
    const handler = { onAdd: () => Promise.reject(new Error('of a handler')) };
    const informer = factory.informer('pods', { onError });
    informer.addHandler(handler);
    const own = factory.informer('own', { onError });
    own.addHandler(handler);
    const run = fate(own.run());
    factory.start();
    await settle();
    expect(informer.state.phase).toBe('stopped');
    expect(logged.mock.calls).toEqual([
      [expect.stringMatching(/^watchmux informer factory: an informer failed \("pods"\): Error: of onError/)],
    ]);
    expect(run.error).toBe(thrown);
    await factory.shutdown();
    logged.mockRestore();
  });

  test('shutdown gives up on a handler that does not return', async () => {
    const clock = new FakeClock();
    const { make } = sources();
    const factory = new InformerFactory(make, { clock });
    factory.informer('a').addHandler({ onAdd: () => new Promise(() => {}) });
    factory.start();
    await settle();
    const end = fate(factory.shutdown({ timeoutMs: 100 }));
    await clock.advanceAsync(100);
    expect(end.error).toMatchObject({ code: 'TIMEOUT', limit: 100, message: expect.stringContaining('onAdd of ') });
    expect(clock.pending).toBe(0);
  });

  test('no listener stays on a signal after any end', async () => {
    const signals = Array.from({ length: 4 }, () => new AbortController().signal);
    const counts = signals.map((signal) => new ListenerCount(signal));
    const [run, wait, reached, late] = signals as [AbortSignal, AbortSignal, AbortSignal, AbortSignal];
    const { make } = sources();
    const factory = new InformerFactory(make);
    const informer = factory.informer('a');
    factory.start(run);
    const waits = [
      informer.atLeast('1', { signal: reached }),
      informer.atLeast('9', { signal: late }).catch(() => {}),
      factory.waitForSync(wait),
    ];
    expect(counts.map(({ count }) => count)).toEqual([1, 1, 1, 1]);
    await informer.synced;
    await settle();
    await factory.shutdown();
    await Promise.all(waits);
    expect(counts.map(({ count }) => count)).toEqual([0, 0, 0, 0]);
  });

  test("an error thrown by the factory's onError stops that informer, and rejects nothing that nobody handles", async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { make } = sources();
    const factory = new InformerFactory(make, {
      onError: (error) => {
        throw error;
      },
    });
    const informer = factory.informer('a');
    informer.addHandler({ onAdd: () => Promise.reject(new Error('no')) });
    factory.start();
    await settle();
    expect(informer.state.phase).toBe('stopped');
    expect(logged).toHaveBeenCalledTimes(1);
    await factory.shutdown();
    logged.mockRestore();
  });

  test('refuses what it cannot use', () => {
    expect(() => new InformerFactory('pods' as never)).toThrow('source: expected a function');
    expect(() => new InformerFactory(undefined as never)).toThrow('source: expected a function');
    expect(() => new InformerFactory(sources().make, { namespaces: 'x' } as never)).toThrow('did you mean namespace?');
  });
});

describe('a lister', () => {
  const labelled = (key: string, app: string): Pod => ({ ...pod(key), metadata: { ...pod(key).metadata, labels: { app } } });

  test('TestListAll: lists by selector, of all namespaces or of one; get is undefined for what is not there', () => {
    const store = new Indexer<Pod>();
    for (const [key, app] of [
      ['x/a', 'web'],
      ['x/b', 'db'],
      ['y/a', 'web'],
      ['c', 'web'],
    ] as const)
      store.add(labelled(key, app));
    const lister = new Lister(store);
    const keys = (pods: readonly Pod[]): string[] => pods.map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`);
    expect(keys(lister.list())).toEqual(['x/a', 'x/b', 'y/a', '/c']);
    expect(keys(lister.list({ labelSelector: 'app=web' }))).toEqual(['x/a', 'y/a', '/c']);
    expect(keys(lister.list({ labelSelector: parseLabelSelector('app!=web') }))).toEqual(['x/b']);
    expect(keys(lister.list({ labelSelector: 'nothing,!nothing' }))).toEqual([]);
    const x = lister.namespace('x');
    expect(keys(x.list())).toEqual(['x/a', 'x/b']);
    expect(keys(x.list({ labelSelector: 'app=web' }))).toEqual(['x/a']);
    expect([x.get('b')?.metadata.name, x.get('c'), lister.get('c')?.metadata.name, lister.get('a')]).toEqual([
      'b',
      undefined,
      'c',
      undefined,
    ]);
    expect(lister.namespace('').get('c')?.metadata.name).toBe('c');
    expect(keys(lister.namespace('').list())).toEqual(['/c']);
    expect(() => lister.list({ labelSelector: 'a b' })).toThrow();
    expect(() => lister.list({ namespace: 'x' } as never)).toThrow('unknown option namespace');
    expect(() => store.list({ labelSelector: {} as never })).toThrow('labelSelector: expected the text of a label selector');
  });

  test('takes an informer, too', async () => {
    const informer = new Informer(new FakeListWatcher<Pod>({ objects: [pod('x/a')] }));
    const lister = new Lister(informer);
    const calls = new Calls();
    informer.addHandler(calls);
    void informer.run();
    await informer.synced;
    expect(lister.namespace('x').get('a')?.metadata.name).toBe('a');
    await informer.stop();
    for (const wrong of [undefined, null, 'pods', 5, {}, { store: 5 }] as never[]) {
      expect(() => new Lister(wrong)).toThrow('store: expected a store or an informer');
    }
  });
});
