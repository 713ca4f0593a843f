// Whatever a program may write to its log can be written there: no object of this package holds itself where JSON would look.
import { inspect } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { ApiServer, CONFIG_MAPS } from '../../src/apiserver/index.ts';
import { toStore } from '../../src/bridge/client.ts';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import { Informer, parseLabelSelector, Reflector, RetryWatcher, Store } from '../../src/cache/index.ts';
import { Broadcaster, filter } from '../../src/index.ts';
import { Operator } from '../../src/operator/index.ts';
import { Cacher, MemoryStorage, parseFieldSelector } from '../../src/storage/index.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { WorkQueue } from '../../src/workqueue/index.ts';
import { event, macrotask, type TestEvent } from './support.ts';

/** One of each class, in the middle of its work. */
const MADE: Readonly<Record<string, () => unknown>> = {
  ...Object.fromEntries(
    OVERFLOWS.map((overflow) => [
      `a watch with ${overflow}, in two forms`,
      async () => {
        const broadcaster = new Broadcaster<TestEvent>({ replay: 3 });
        broadcaster.tryPublish(event(1));
        const watch = broadcaster.watch({ overflow, replay: 1 });
        void filter(broadcaster.watch(), (each) => each).next();
        await watch.next();
        void watch.next();
        return [broadcaster, watch, filter(watch, (each) => each)];
      },
    ]),
  ),
  'a hub, its watch and its handler': () => {
    const hub = new Hub({ replay: 3 });
    hub.publish(event(1));
    const watch = hub.watch();
    void watch.next();
    return [hub, watch, createHttpHandler(hub)];
  },
  'a storage, and watches of it that wait': async () => {
    const storage = new MemoryStorage();
    await storage.create('pods/a', { metadata: { name: 'a' } });
    const cacher = new Cacher(storage);
    onTestFinished(() => cacher.close());
    const watches = [await storage.watch({ resourceVersion: '0' }), await cacher.watch({ resourceVersion: '0' })];
    for (const watch of watches) for (let at = 0; at < 3; at++) void watch.next();
    const filtered = filter(await storage.watch(), (each) => each);
    void filtered.next();
    await macrotask();
    return [storage, storage.scope('pods/'), cacher, watches, filtered];
  },
  'what follows a collection': async () => {
    const storage = new MemoryStorage();
    const informer = new Informer(storage);
    void informer.run();
    await informer.synced;
    const reflector = new Reflector(storage, new Store());
    const leave = new AbortController();
    void reflector.run(leave.signal).catch(() => {});
    const retrying = new RetryWatcher(storage, { resourceVersion: '1' });
    void retrying.next();
    onTestFinished(async () => {
      await Promise.all([informer.stop(), retrying.return()]);
      leave.abort();
    });
    const watch = informer.watch();
    void watch.next();
    await macrotask();
    return [informer, informer.store, watch, reflector, retrying];
  },
  'a server, its resource and its operator': async () => {
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [CONFIG_MAPS] });
    const resource = server.resource(CONFIG_MAPS);
    await resource.create({ metadata: { name: 'a', namespace: 'default' } });
    const operator = new Operator({ cluster: server, name: 'logged' });
    operator.controller({ for: 'configmaps/v1', name: 'logged', reconcile: () => {} });
    return [server, resource, operator];
  },
  'what is used with them': () => {
    const queue = new WorkQueue();
    queue.add('a');
    const store = toStore('http://127.0.0.1:1/watch', { fetch: () => new Promise(() => {}) });
    return [queue, store, parseLabelSelector('size>3'), parseFieldSelector('a=b')];
  },
};

test.each(Object.entries(MADE))('%s', async (_name, make) => {
  const made = await make();
  expect(() => JSON.stringify(made)).not.toThrow();
  expect(() => inspect(made, { depth: Infinity })).not.toThrow();
});
