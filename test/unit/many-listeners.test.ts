// Node warns of a leak when a signal gets its eleventh listener. A program with eleven workers, informers or keys has no leak.
import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect } from '../../src/bridge/client.ts';
import { Hub } from '../../src/bridge/http.ts';
import { DeltaFifo, Informer, InformerFactory, type KubernetesObject } from '../../src/cache/index.ts';
import { Broadcaster, sleep } from '../../src/index.ts';
import { Cacher, MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock, FakeListWatcher, FakeSource, HistoryRecorder } from '../../src/testing/index.ts';
import { Controller, WorkQueue } from '../../src/workqueue/index.ts';
import { eventually } from '../eventually.ts';
import { settle } from './informer-support.ts';

const MANY = 12;
const event = { type: 'x', object: {} };
const many = <T>(make: (n: number) => T): T[] => Array.from({ length: MANY }, (_, n) => make(n));
const source = (objects: readonly KubernetesObject[] = []): FakeListWatcher<KubernetesObject> => new FakeListWatcher({ objects });

let warnings: string[] = [];
const note = ({ name }: Error): unknown => warnings.push(name);
beforeEach(() => {
  warnings = [];
  process.on('warning', note);
});
afterEach(() => void process.off('warning', note));

describe('no warning of Node comes', () => {
  it('of many workers, and all of them end with the signal', async () => {
    const queue = new WorkQueue<string>();
    const stop = new AbortController();
    const signals = new Set<AbortSignal>();
    const work = (_: string, { signal }: { signal: AbortSignal }): Promise<void> => {
      signals.add(signal);
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
    };
    const ran = queue.run(2 * MANY, work, { signal: stop.signal });
    many((n) => queue.add(`${n}`));
    await eventually(() => expect(signals.size).toBe(MANY));
    stop.abort('enough');
    await ran;
    expect([...signals].map(({ aborted, reason }) => [aborted, reason])).toEqual(many(() => [true, 'enough']));
    expect(warnings).toEqual([]);
  });

  it('of many keys of a controller that wait for what they wrote', async () => {
    const names = many((n) => ({ metadata: { name: `${n}` } }));
    const informer = new Informer(source(names));
    const stop = new AbortController();
    let calls = 0;
    const reconcile = async (_: string, { wrote }: { wrote(object: KubernetesObject): void }): Promise<void> => {
      calls++;
      wrote({ metadata: { resourceVersion: '1000' } });
    };
    const ran = new Controller({ informers: [informer], reconcile, onError: () => {} }).run(stop.signal);
    await eventually(() => expect(calls).toBe(MANY));
    stop.abort();
    await ran;
    expect(informer.state.phase).toBe('stopped');
    expect(warnings).toEqual([]);
  });

  it('of a controller with many informers, which end with it, also with those that it begins to run meanwhile', async () => {
    const stop = new AbortController();
    const sources = many(() => source());
    const last = sources.at(-2) as FakeListWatcher<KubernetesObject>;
    const watch = last.watch.bind(last);
    last.watch = (options) => {
      stop.abort('enough');
      return watch(options);
    };
    const informers = sources.map((each) => new Informer(each));
    await new Controller({ informers, reconcile: () => {} }).run(stop.signal);
    expect(informers.map(({ state }) => state.phase)).toEqual(many(() => 'stopped'));
    expect(warnings).toEqual([]);
  });

  it('of many informers, waits and watches of one signal, which has one listener of them, and none afterwards', async () => {
    const stop = new AbortController();
    const informers = many(() => new Informer(source()));
    const runs = informers.map((informer) => informer.run(stop.signal));
    const sleeps = many(() => sleep(60_000, { signal: stop.signal }).catch((reason) => reason));
    const running = new Informer(source());
    const end = running.run();
    const waits = many(() => running.atLeast('1000', { signal: stop.signal }).catch((reason) => reason));
    await settle();
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(1);
    stop.abort('enough');
    await Promise.all(runs);
    await running.stop();
    await end;
    expect(await Promise.all([...sleeps, ...waits])).toEqual([...many(() => 'enough'), ...many(() => 'enough')]);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it('of many broadcasters, hubs, clients, queues and fakes of one signal', async () => {
    const stop = new AbortController();
    const { signal } = stop;
    const broadcasters = many(() => new Broadcaster());
    const watches = broadcasters.map((broadcaster) => broadcaster.watch({ signal }));
    const stalled = many(() => new Broadcaster({ capacity: 1, incoming: 0 }));
    const shutdowns = stalled.map((broadcaster) => {
      broadcaster.watch();
      void broadcaster.publish(event);
      broadcaster.publish(event).catch(() => {});
      return broadcaster.shutdown({ signal }).catch((reason) => reason);
    });
    const hub = new Hub();
    const hubWatches = many(() => hub.watch({ signal }));
    const clients = many(() => connect('http://127.0.0.1:9/', { signal, fetch: () => new Promise(() => {}) }));
    const rooms = many(() => {
      const fifo = new DeltaFifo<KubernetesObject>({ capacity: 1 });
      fifo.add({ metadata: { name: 'a' } });
      return fifo.room(signal).catch((reason) => reason);
    });
    const fakes = await Promise.all(
      many(() => new FakeListWatcher({ clock: new FakeClock() }).watch({ signal, timeoutSeconds: 9 })),
    );
    const away = new Hub({ source: new FakeSource() });
    const readies = many(() => away.ready({ signal }).catch(() => {}));
    const recorder = new HistoryRecorder(new Broadcaster());
    const recorded = many(() => recorder.watch({ signal }));
    const storage = new MemoryStorage();
    const cachers = many(() => new Cacher(storage.scope('a/')));
    const cached = await Promise.all(cachers.map((cacher) => cacher.watch({ signal })));
    expect(getEventListeners(signal, 'abort').length).toBeLessThan(5);
    stop.abort('enough');
    const ended = [...watches, ...hubWatches, ...clients, ...fakes, ...recorded, ...cached];
    expect(ended.map(({ stopped }) => stopped)).toEqual(ended.map(() => true));
    expect(await Promise.all([...shutdowns, ...rooms])).toEqual([...many(() => 'enough'), ...many(() => 'enough')]);
    await Promise.all([...readies, away.shutdown(), hub.shutdown(), ...cachers.map((cacher) => cacher.close())]);
    expect(warnings).toEqual([]);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('of what has ended before the signal aborts: no listener is left', async () => {
    const { signal } = new AbortController();
    const broadcasters = many(() => new Broadcaster());
    const watches = broadcasters.map((broadcaster) => broadcaster.watch({ signal }));
    const hub = new Hub();
    const hubWatches = many(() => hub.watch({ signal }));
    const clients = many(() => connect('http://127.0.0.1:9/', { signal, fetch: () => new Promise(() => {}) }));
    const fakes = await Promise.all(
      many(() => new FakeListWatcher({ clock: new FakeClock() }).watch({ signal, timeoutSeconds: 9 })),
    );
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    for (const watch of [...watches, ...hubWatches, ...clients, ...fakes]) await watch.return();
    await hub.shutdown();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('of a factory with many informers, which end with the signal', async () => {
    const factory = new InformerFactory((_: string) => source());
    const informers = many((n) => factory.informer(`${n}`));
    const stop = new AbortController();
    factory.start(stop.signal);
    expect([...(await factory.waitForSync(stop.signal)).values()]).toEqual(many(() => true));
    stop.abort();
    await eventually(() => expect(informers.map(({ state }) => state.phase)).toEqual(many(() => 'stopped')));
    const late = factory.informer('late');
    factory.start(stop.signal);
    await eventually(() => expect(late.state.phase).toBe('stopped'));
    expect(warnings).toEqual([]);
  });
});
