// Clients of Kubernetes against our server, over real sockets: ours, and @kubernetes/client-node as it is.
import { CoreV1Api, CustomObjectsApi, KubeConfig, makeInformer, type V1ConfigMap, Watch } from '@kubernetes/client-node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ApiServer, CONFIG_MAPS, NAMESPACES, type ResourceDefinition } from 'watchmux/apiserver';
import { createListWatcher, Informer, type KubernetesObject } from 'watchmux/cache';
import { Cluster } from 'watchmux/kubernetes';
import { MemoryStorage } from 'watchmux/storage';
import { type Listening, listening } from '../listening.ts';

interface Order extends KubernetesObject {
  readonly spec?: { readonly count: number };
}

const ORDERS: ResourceDefinition<Order> = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order', status: true };

describe.each([true, false])('with a cache: %s', (cache) => {
  let server: ApiServer;
  let at: Listening;
  let url: string;
  const ends: (() => unknown)[] = [];

  beforeEach(async () => {
    const resources = [ORDERS, CONFIG_MAPS, NAMESPACES] as readonly ResourceDefinition[];
    server = new ApiServer({ storage: new MemoryStorage(), resources, cache });
    at = await listening(server);
    url = at.url;
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
    await at.close();
  });

  const config = (): KubeConfig => {
    const made = new KubeConfig();
    made.loadFromOptions({
      clusters: [{ name: 'ours', server: url, skipTLSVerify: true }],
      users: [{ name: 'me' }],
      contexts: [{ name: 'ours', cluster: 'ours', user: 'me' }],
      currentContext: 'ours',
    });
    return made;
  };
  const versions = (objects: Iterable<KubernetesObject>): string[] =>
    Array.from(objects, ({ metadata }) => `${metadata?.name}@${metadata?.resourceVersion}`).sort();

  test('while four write, informers over HTTP and in process come to what a fresh list says', async () => {
    const local = server.resource<Order>('orders.example.com/v1');
    const orders = local.in('default');
    const remote = createListWatcher<Order>(`${url}/apis/example.com/v1/orders`);
    const informers = [new Informer<Order>(local), new Informer<Order>(remote)];
    for (const informer of informers) {
      void informer.run();
      ends.push(() => informer.stop());
    }
    const write = async (writer: number): Promise<void> => {
      for (let turn = 0; turn < 60; turn++) {
        const name = `o${(turn * (writer + 1)) % 17}`;
        if (turn % 5 === 4) await orders.delete(name).catch(() => {});
        else {
          await orders
            .create({ metadata: { name }, spec: { count: turn } })
            .catch(() => orders.patch(name, { spec: { count: turn * 100 + writer } }))
            .catch(() => {});
        }
      }
    };
    await Promise.all([0, 1, 2, 3].map(write));
    const list = await remote.list();
    for (const informer of informers) {
      await informer.atLeast(list.resourceVersion, { timeoutMs: 5_000 }).catch(() => {});
      await expect.poll(() => versions(informer.store.list())).toEqual(versions(list.items));
    }
    expect(list.items.length).toBeGreaterThan(3);
  });

  test('a Cluster of watchmux/kubernetes finds there what the server has in process, and writes it', async () => {
    const cluster = new Cluster(config());
    const there = (await cluster.kind<Order>('orders.example.com/v1')).in('default');
    const here = server.resource<Order>('orders.example.com/v1').in('default');
    const created = await there.create({ metadata: { generateName: 'a-' }, spec: { count: 1 } });
    const name = created.metadata?.name ?? '';
    expect(await here.get(name)).toEqual(created);
    const patched = await here.patch(name, { spec: { count: 2 } });
    expect(await there.get(name)).toEqual(patched);
    await expect(there.update(created)).rejects.toMatchObject({ code: 'REFUSED', status: { code: 409, reason: 'Conflict' } });
    await expect(here.update(created)).rejects.toMatchObject({ code: 'REFUSED', status: { code: 409, reason: 'Conflict' } });
    for (const each of [there, here]) {
      await expect(each.get('nobody')).rejects.toMatchObject({
        status: { code: 404, details: { name: 'nobody', kind: 'orders' } },
      });
      await expect(each.create({ metadata: { name: 'A' } })).rejects.toMatchObject({ status: { code: 422, reason: 'Invalid' } });
    }
    expect(await there.delete(name)).toBeUndefined();
    await expect(here.delete(name)).rejects.toMatchObject({ status: { code: 404 } });
  });

  test("client-node's API: create, read, replace, patch, list, delete", async () => {
    const core = config().makeApiClient(CoreV1Api);
    const namespace = 'default';
    const created = await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'a' }, data: { x: '1' } } });
    expect(created.metadata?.creationTimestamp).toBeInstanceOf(Date);
    const replaced = await core.replaceNamespacedConfigMap({ namespace, name: 'a', body: { ...created, data: { x: '2' } } });
    expect(replaced.data).toEqual({ x: '2' });
    const read = await core.readNamespacedConfigMap({ namespace, name: 'a' });
    expect(read).toEqual(replaced);
    expect((await core.listConfigMapForAllNamespaces()).items).toHaveLength(1);
    expect((await core.deleteNamespacedConfigMap({ namespace, name: 'a' })).status).toBe('Success');
    await expect(core.readNamespacedConfigMap({ namespace, name: 'a' })).rejects.toMatchObject({ code: 404 });
    const custom = config().makeApiClient(CustomObjectsApi);
    const where = { group: 'example.com', version: 'v1', plural: 'orders', namespace };
    const body = { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'o' }, spec: { count: 1 } };
    await custom.createNamespacedCustomObject({ ...where, body });
    expect(await custom.listNamespacedCustomObject(where)).toMatchObject({
      kind: 'OrderList',
      items: [{ metadata: { name: 'o' } }],
    });
  });

  test("client-node's Watch", async () => {
    const maps = server.resource<V1ConfigMap>('configmaps/v1').in('default');
    await maps.create({ metadata: { name: 'a' } } as V1ConfigMap);
    const seen: string[] = [];
    const done = new Promise<unknown>((resolve) => {
      const watch = new Watch(config());
      const told = (type: string, { metadata }: V1ConfigMap): unknown => seen.push(`${type} ${metadata?.name}`);
      void watch
        .watch('/api/v1/namespaces/default/configmaps', {}, told, resolve)
        .then((abort) => ends.push(() => abort.abort()));
    });
    await expect.poll(() => seen).toEqual(['ADDED a']);
    await maps.patch('a', { data: { x: 'y' } });
    await maps.delete('a');
    await expect.poll(() => seen).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a']);
    await server.shutdown();
    await done;
  });

  test("client-node's informer", async () => {
    const maps = server.resource<V1ConfigMap>('configmaps/v1').in('default');
    await maps.create({ metadata: { name: 'a' } } as V1ConfigMap);
    const core = config().makeApiClient(CoreV1Api);
    const informer = makeInformer(config(), '/api/v1/namespaces/default/configmaps', () =>
      core.listNamespacedConfigMap({ namespace: 'default' }),
    );
    ends.push(() => informer.stop());
    informer.on('error', () => {});
    await informer.start();
    await maps.create({ metadata: { name: 'b' } } as V1ConfigMap);
    await maps.delete('a');
    await expect.poll(() => informer.list('default').map(({ metadata }) => metadata?.name)).toEqual(['b']);
  });
});
