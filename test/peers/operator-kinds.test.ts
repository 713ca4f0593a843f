// Kinds that come and go on a real kube-apiserver: how they are found, in how many requests, and how an informer lives through it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Informer, type KubernetesObject } from '../../src/cache/index.ts';
import { type Cluster, loadCluster, type Resource } from '../../src/kubernetes/index.ts';
import { FollowedKind, type KindName } from '../../src/operator/index.ts';
import { component, isMissing } from '../components.ts';
import { SOURCE_CONTRACT } from '../contract/resource-client.ts';
import { until } from '../eventually.ts';
import { crdOf } from '../unit/crd-rig.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;

let server: ApiServer;
let cluster: Cluster;
let crds: Resource;
const folder = mkdtempSync(join(tmpdir(), 'watchmux-operator-kinds-'));

async function clusterOf(): Promise<Cluster> {
  const file = join(folder, 'config');
  const clusters = [{ name: 'c', cluster: { server: server.url, 'certificate-authority': server.caFile } }];
  const users = [{ name: 'u', user: { token: server.token } }];
  const contexts = [{ name: 'x', context: { cluster: 'c', user: 'u' } }];
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters, users, contexts, 'current-context': 'x' }));
  return loadCluster({ file });
}

beforeAll(async () => {
  if (missing) return;
  server = await startApiServer();
  cluster = await clusterOf();
  crds = cluster.resource('customresourcedefinitions.apiextensions.k8s.io/v1');
}, START_MS);
afterAll(async () => {
  cluster?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}, START_MS);

const widget = (name: string): KubernetesObject => ({ apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name } });

/** Defines the kind, and returns its objects once they are served. */
async function define(...args: Parameters<typeof crdOf>): Promise<Resource> {
  await crds.create(crdOf(...args));
  const widgets = new FollowedKind(cluster, `${args[2] ?? 'widgets'}.example.com/v1`, {});
  await widgets.resolve();
  await until(() =>
    widgets.list().then(
      () => true,
      () => false,
    ),
  );
  return widgets.client as Resource;
}

async function remove(name: string = 'widgets.example.com'): Promise<void> {
  await crds.delete(name);
  await until(() =>
    crds.get(name).then(
      () => false,
      () => true,
    ),
  );
}

describe.skipIf(missing)('discovery', () => {
  let fresh: Cluster;
  beforeEach(async () => {
    fresh = await clusterOf();
  });
  afterEach(() => fresh.close());
  const asked = (): number => fresh.requestCounts.reduce((sum, { count }) => sum + count, 0);

  it('ten kinds of seven groups cost two requests, as those of controller-runtime do', async () => {
    const names = [
      ...['pods/v1', 'configmaps/v1', 'deployments.apps/v1', 'jobs.batch', 'leases.coordination.k8s.io/v1', 'nodes', 'deploy'],
      ...[
        { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
        { apiVersion: 'events.k8s.io/v1', kind: 'Event' },
        { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      ],
    ];
    const types = await Promise.all(names.map(async (name) => (await fresh.kind(name)).type));
    expect(types[2]).toEqual({ group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', namespaced: true });
    expect(types[3]).toMatchObject({ version: 'v1', kind: 'Job' });
    expect(types[5]).toMatchObject({ kind: 'Node', namespaced: false });
    expect(types[7]).toMatchObject({ plural: 'ingresses' });
    expect(types[9]).toMatchObject({ plural: 'customresourcedefinitions', namespaced: false });
    expect(fresh.requestCounts).toEqual([{ code: '200', method: 'GET', host: fresh.server.host, count: 2 }]);
  });

  it('one that it has not costs one more', async () => {
    await expect(fresh.kind('nothing.apps/v1')).rejects.toThrow('got "nothing.apps/v1"');
    await expect(fresh.kind({ apiVersion: 'v1', kind: 'Nothing' })).rejects.toThrow('got "v1 Nothing"');
    expect(asked()).toBe(3);
  });
});

describe.skipIf(missing)('the contract of what has kinds', () => {
  beforeAll(async () => {
    if (!missing) await define({ names: { plural: 'orders', kind: 'Order' } }, {}, 'orders', 'Order');
  });
  afterAll(() => (missing ? undefined : remove('orders.example.com')));
  for (const { name, run } of SOURCE_CONTRACT) it(name, () => run(cluster));
});

describe.skipIf(missing)('a kind that comes and goes', () => {
  const KIND: KindName = { apiVersion: 'example.com/v1', kind: 'Widget' };
  let end: () => Promise<void>;
  afterEach(() => end());

  function follow(namespace?: string) {
    const said: string[] = [];
    const changes: string[] = [];
    const errors: string[] = [];
    const followed = new FollowedKind(cluster, KIND, { namespace, tell: (text) => void said.push(text) });
    const informer = new Informer<KubernetesObject>(followed, { onError: (error) => void errors.push(String(error)) });
    informer.addHandler({
      onAdd: ({ metadata }) => changes.push(`+${metadata?.name}`),
      onDelete: ({ metadata }) => changes.push(`-${metadata?.name}`),
    });
    const abort = new AbortController();
    const ran = informer.run(abort.signal);
    end = async () => {
      abort.abort();
      await ran;
    };
    return { followed, informer, said, changes, errors };
  }

  it('is waited for, leaves nothing behind, and comes back, even as another', { timeout: 120_000 }, async () => {
    const { followed, informer, said, changes } = follow('default');
    await until(() => followed.waiting);
    expect(informer.hasSynced).toBe(false);
    const widgets = (await define()).in('default');
    await widgets.create(widget('a'));
    await widgets.create(widget('b'));
    await until(() => changes.length === 2);
    await remove();
    await until(() => followed.waiting && informer.store.size === 0);
    expect(changes.slice(2).sort()).toEqual(['-a', '-b']);
    await (await define()).in('default').create(widget('a'));
    await until(() => changes.length === 5);
    expect(changes[4]).toBe('+a');
    await remove();
    await until(() => followed.waiting && informer.store.size === 0);
    await (await define({ scope: 'Cluster', names: { plural: 'gadgets', kind: 'Widget' } }, {}, 'gadgets')).create(widget('c'));
    await until(() => changes.length === 7);
    expect(changes.slice(5)).toEqual(['-a', '+c']);
    expect(followed.type).toEqual({ group: 'example.com', version: 'v1', plural: 'gadgets', kind: 'Widget', namespaced: false });
    await remove('gadgets.example.com');
    expect(said.slice(0, 4)).toEqual([
      'waits for example.com/v1 Widget: the server does not have it yet',
      'the server has example.com/v1 Widget now',
      'example.com/v1 Widget has been deleted: waits for the server to have it again',
      'the server has example.com/v1 Widget now',
    ]);
  });

  it('deleted while the server was not to be seen', { timeout: 120_000 }, async () => {
    await (await define()).in('default').create(widget('a'));
    const { followed, informer, changes } = follow();
    await until(() => changes.length === 1);
    await server.kill();
    await server.start();
    await remove();
    await until(() => followed.waiting && informer.store.size === 0);
    expect(changes).toEqual(['+a', '-a']);
  });
});
