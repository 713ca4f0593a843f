// Kubernetes' conformance tests "[sig-api-machinery] Watchers", by their titles, over HTTP, and with a cache or without one.
// Upstream: k8s.io/kubernetes/test/e2e/apimachinery/watch.go.
import { afterEach, describe, expect, test } from 'vitest';
import { createListWatcher, type KubernetesObject, type ListWatcher, RetryWatcher } from '../../src/cache/index.ts';
import type { ObjectEvent, Watch } from '../../src/index.ts';
import { listening } from '../listening.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';

const LABEL = 'watch-this-order';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

interface Orders {
  readonly source: ListWatcher<KubernetesObject>;
  /** Each resolves with the version of the write. */
  create(name: string, label: string): Promise<string>;
  count(name: string, count: number): Promise<string>;
  label(name: string, label: string): Promise<string>;
  remove(name: string): Promise<void>;
}

async function start(cache: boolean): Promise<Orders> {
  const { server, call } = rig({ cache });
  const { url, close } = await listening(server);
  closing.push(close);
  const version = async (method: string, path: string, body: object): Promise<string> =>
    (await call(method, `${ORDERS_PATH}${path}`, body)).body.metadata.resourceVersion;
  return {
    source: createListWatcher(`${url}${ORDERS_PATH}`),
    create: (name, label) => version('POST', '', { metadata: { name, labels: { [LABEL]: label } } }),
    count: (name, count) => version('PATCH', `/${name}`, { spec: { count } }),
    label: (name, label) => version('PATCH', `/${name}`, { metadata: { labels: { [LABEL]: label } } }),
    remove: async (name) => {
      await call('DELETE', `${ORDERS_PATH}/${name}`);
    },
  };
}

type Event = ObjectEvent<KubernetesObject & { readonly spec?: { readonly count?: number } }>;

/** The next events of a watch, in words. */
async function next(watch: Watch<Event>, count: number): Promise<string[]> {
  const told: string[] = [];
  while (told.length < count) {
    const { value } = await watch.next();
    if (!value || value.type === 'BOOKMARK' || value.type === 'ERROR') throw new Error(`unexpected after ${told.join(', ')}`);
    told.push(`${value.type} ${value.object.metadata?.name} ${value.object.spec?.count ?? '-'}`);
  }
  return told;
}

describe.each([true, false])('Watchers (cache: %s)', (cache) => {
  test('should observe add, update, and delete watch notifications', async () => {
    const { source, create, count, remove } = await start(cache);
    const { resourceVersion } = await source.list();
    const selectors = [`${LABEL}=a`, `${LABEL}=b`, `${LABEL} in (a,b)`];
    const [a, b, both] = await Promise.all(selectors.map((labelSelector) => source.watch({ resourceVersion, labelSelector })));
    await create('one', 'a');
    await count('one', 1);
    await count('one', 2);
    await remove('one');
    await create('two', 'b');
    await remove('two');
    const [one, two] = [
      ['ADDED one -', 'MODIFIED one 1', 'MODIFIED one 2', 'DELETED one 2'],
      ['ADDED two -', 'DELETED two -'],
    ];
    expect(await next(a as Watch<Event>, 4)).toEqual(one);
    expect(await next(b as Watch<Event>, 2)).toEqual(two);
    expect(await next(both as Watch<Event>, 6)).toEqual([...one, ...two]);
  });

  test('should be able to start watching from a specific resource version', async () => {
    const { source, create, count, remove } = await start(cache);
    await create('one', 'a');
    const resourceVersion = await count('one', 1);
    await count('one', 2);
    await remove('one');
    const watch = await source.watch({ resourceVersion });
    expect(await next(watch, 2)).toEqual(['MODIFIED one 2', 'DELETED one 2']);
  });

  test('should be able to restart watching from the last resource version observed by the previous watch', async () => {
    const { source, create, count, remove } = await start(cache);
    const first = await source.watch({ resourceVersion: (await source.list()).resourceVersion });
    await create('one', 'a');
    const resourceVersion = await count('one', 1);
    expect(await next(first, 2)).toEqual(['ADDED one -', 'MODIFIED one 1']);
    await first.return();
    await count('one', 2);
    const second = await source.watch({ resourceVersion });
    await remove('one');
    expect(await next(second, 2)).toEqual(['MODIFIED one 2', 'DELETED one 2']);
  });

  test('should observe an object deletion if it stops meeting the requirements of the selector', async () => {
    const { source, create, count, label, remove } = await start(cache);
    const { resourceVersion } = await source.list();
    const watch = await source.watch({ resourceVersion, labelSelector: `${LABEL}=a` });
    await create('one', 'a');
    await count('one', 1);
    await label('one', 'b');
    expect(await next(watch, 3)).toEqual(['ADDED one -', 'MODIFIED one 1', 'DELETED one 1']);
    await count('one', 2); // while it is out, there is silence
    await label('one', 'a');
    await count('one', 3);
    await remove('one');
    expect(await next(watch, 3)).toEqual(['ADDED one 2', 'MODIFIED one 3', 'DELETED one 3']);
  });

  test('should receive events on concurrent watches in same order', async () => {
    const { source, create, count, remove } = await start(cache);
    const versions = [(await source.list()).resourceVersion];
    for (let n = 0; n < 100; n++) {
      if (n % 4 === 0) versions.push(await create(`o${n}`, 'a'));
      else if (n % 4 < 3) versions.push(await count(`o${n - (n % 4)}`, n));
      else {
        await remove(`o${n - 3}`);
        versions.push((await source.list()).resourceVersion);
      }
    }
    const watchers = versions.slice(0, 100).map((resourceVersion) => new RetryWatcher(source, { resourceVersion }));
    const told = await Promise.all(watchers.map((watcher, at) => next(watcher, 100 - at)));
    for (const [at, each] of told.entries()) expect(each).toEqual(told[0]?.slice(at));
    await Promise.all(watchers.map((watcher) => watcher.return()));
  });
});
