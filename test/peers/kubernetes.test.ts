// `watchmux/kubernetes` against a real kube-apiserver: a kubeconfig, the verbs, custom resources, and what the server refuses.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInitialEventsEnd, type KubernetesObject } from '../../src/cache/index.ts';
import { isWatchError } from '../../src/index.ts';
import { type Cluster, loadCluster, type Resource } from '../../src/kubernetes/index.ts';
import { component, isMissing } from '../components.ts';
import { OPERATOR_HELPERS_CONTRACT } from '../contract/operator-helpers.ts';
import {
  type Order as ContractOrder,
  ORDER_NAMES,
  ORDER_SCALE,
  ORDER_SCHEMA,
  RESOURCE_CONTRACT,
} from '../contract/resource-client.ts';
import { eventually } from '../eventually.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;

interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}
interface Order extends KubernetesObject {
  readonly spec?: { readonly total: number; readonly items?: readonly string[] };
  readonly status?: { readonly paid?: boolean };
}

let server: ApiServer;
let cluster: Cluster;
let maps: Resource<ConfigMap>;
const folder = mkdtempSync(join(tmpdir(), 'watchmux-kubernetes-'));

function kubeconfig(user: object): string {
  const file = join(folder, 'config');
  const clusters = [{ name: 'c', cluster: { server: server.url, 'certificate-authority': server.caFile } }];
  const contexts = [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'default' } }];
  const config = { apiVersion: 'v1', kind: 'Config', clusters, users: [{ name: 'u', user }], contexts, 'current-context': 'x' };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

beforeAll(async () => {
  if (missing) return;
  server = await startApiServer();
  cluster = await loadCluster({ file: kubeconfig({ token: server.token }) });
  maps = cluster.resource<ConfigMap>('configmaps').in(cluster.namespace);
}, START_MS);
afterAll(async () => {
  cluster?.close();
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}, START_MS);

/** The Status with which the server refuses. */
async function refusal(promise: Promise<unknown>): Promise<{ code: number; reason: string } | undefined> {
  const error: unknown = await promise.then(
    () => undefined,
    (each: unknown) => each,
  );
  if (!isWatchError(error, 'REFUSED')) throw error ?? new Error('not refused');
  return error.status && { code: error.status.code, reason: error.status.reason };
}

describe.skipIf(missing)('config maps', () => {
  it('create, get, update, list, watch, delete', async () => {
    const made = await maps.create({ metadata: { name: 'crud', labels: { of: 'crud' } }, data: { k: '1' } });
    expect(made).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'crud', uid: expect.any(String) } });
    expect(await maps.get('default/crud')).toEqual(made);
    const watch = await maps.watch({ resourceVersion: made.metadata?.resourceVersion, labelSelector: 'of=crud' });
    const changed = await maps.update({ ...made, data: { k: '2' } });
    expect((await maps.list({ labelSelector: 'of=crud' })).items).toEqual([changed]);
    expect(await maps.delete('crud')).toBeUndefined();
    const seen = [(await watch.next()).value, (await watch.next()).value];
    expect(seen.map((event) => event?.type)).toEqual(['MODIFIED', 'DELETED']);
    expect(seen[0]?.object).toEqual(changed);
    await watch.return();
  });

  it('the initial events of a watch, and their end', async () => {
    const all = cluster.resource<ConfigMap>('configmaps');
    const watch = await all.watch({ sendInitialEvents: true });
    for await (const event of watch) if (isInitialEventsEnd(event)) break;
    expect(watch.stopped).toBe(true);
  });

  it('409 for a version that is not the newest, for a name that is taken, for preconditions', async () => {
    const made = await maps.create({ metadata: { name: 'conflict' } });
    await maps.update({ ...made, data: { k: '1' } });
    const conflict = { code: 409, reason: 'Conflict' };
    expect(await refusal(maps.update({ ...made, data: { k: '2' } }))).toEqual(conflict);
    expect(await refusal(maps.create({ metadata: { name: 'conflict' } }))).toEqual({ code: 409, reason: 'AlreadyExists' });
    expect(await refusal(maps.delete('conflict', { preconditions: { uid: 'other' } }))).toEqual(conflict);
    const { resourceVersion } = made.metadata ?? {};
    expect(await refusal(maps.delete('conflict', { preconditions: { resourceVersion } }))).toEqual(conflict);
    await maps.delete('conflict', { preconditions: { uid: made.metadata?.uid } });
  });

  it('404 and 422', async () => {
    const notFound = { code: 404, reason: 'NotFound' };
    expect(await refusal(maps.get('nowhere'))).toEqual(notFound);
    expect(await refusal(maps.delete('nowhere'))).toEqual(notFound);
    expect(await refusal(maps.patch('nowhere', {}))).toEqual(notFound);
    expect(await refusal(cluster.resource('things.example.org/v1').list())).toEqual(notFound);
    expect(await refusal(maps.create({ metadata: { name: 'NOT VALID' } }))).toEqual({ code: 422, reason: 'Invalid' });
  });

  it('a dry run changes nothing, and generateName names', async () => {
    const { metadata } = await maps.create({ metadata: { generateName: 'made-' } }, { dryRun: true });
    expect(metadata?.name).toMatch(/^made-\w+$/);
    expect(await refusal(maps.get(metadata?.name ?? ''))).toMatchObject({ code: 404 });
    const kept = await maps.create({ metadata: { name: 'kept' } });
    await maps.delete('kept', { dryRun: true });
    expect(await maps.get('kept')).toEqual(kept);
  });

  it('every type of patch', async () => {
    const made = await maps.create({ metadata: { name: 'patched' }, data: { a: '1', b: '2' } });
    const data = async (promise: Promise<ConfigMap>): Promise<unknown> => (await promise).data;
    expect(await data(maps.patch('patched', { data: { a: null, c: '3' } }))).toEqual({ b: '2', c: '3' });
    expect(await data(maps.patch('patched', { data: { b: null } }, { type: 'strategic' }))).toEqual({ c: '3' });
    const operations = [{ op: 'replace', path: '/data/c', value: '4' }];
    expect(await data(maps.patch('patched', operations, { type: 'json' }))).toEqual({ c: '4' });
    const apply = { type: 'apply', fieldManager: 'test' } as const;
    const whole = { kind: 'ConfigMap', metadata: { name: 'patched' }, data: { c: '5' } };
    expect(await refusal(maps.patch('patched', whole, apply))).toEqual({ code: 409, reason: 'Conflict' });
    expect(await data(maps.patch('patched', whole, { ...apply, force: true }))).toEqual({ c: '5' });
    const fresh = { ...whole, metadata: { name: 'applied' } };
    expect((await maps.patch('applied', fresh, apply)).metadata?.uid).not.toBe(made.metadata?.uid);
    const wrong = [{ op: 'test', path: '/data/c', value: 'x' }];
    expect(await refusal(maps.patch('patched', wrong, { type: 'json' }))).toEqual({ code: 422, reason: 'Invalid' });
  });

  it('an object with a finalizer stays until that is removed', async () => {
    await maps.create({ metadata: { name: 'held', finalizers: ['example.com/hold'] } });
    const deleted = await maps.delete('held');
    expect(deleted?.metadata?.deletionTimestamp).toEqual(expect.any(String));
    await maps.patch('held', { metadata: { finalizers: null } });
    expect(await refusal(maps.get('held'))).toMatchObject({ code: 404 });
  });

  it('unknown fields, if asked to', async () => {
    const wrong = { metadata: { name: 'strict' }, dta: { k: 'v' } } as ConfigMap;
    expect(await refusal(maps.create(wrong, { fieldValidation: 'Strict' }))).toMatchObject({ code: 400 });
  });
});

describe.skipIf(missing)('a user', () => {
  interface Review extends KubernetesObject {
    readonly status?: { readonly userInfo: object };
  }
  const whoIs = async (user: object): Promise<object | undefined> => {
    const other = await loadCluster({ file: kubeconfig(user) });
    const review = await other.resource<Review>('selfsubjectreviews.authentication.k8s.io/v1').create({ metadata: {} });
    other.close();
    return review.status?.userInfo;
  };

  it('acts as somebody else, with groups', async () => {
    const more = { 'as-uid': '7', 'as-groups': ['a', 'two words'], 'as-user-extra': { 'scopes/x%': ['1', '2'] } };
    expect(await whoIs({ token: server.token, as: 'Jürgen', ...more })).toEqual({
      username: 'Jürgen',
      uid: '7',
      groups: ['a', 'two words', 'system:authenticated'],
      extra: { 'scopes/x%': ['1', '2'] },
    });
  });

  it('has a token in a file beside the kubeconfig', async () => {
    writeFileSync(join(folder, 'token'), `${server.token}\n`);
    expect(await whoIs({ tokenFile: 'token' })).toMatchObject({ username: 'admin' });
  });
});

describe.skipIf(missing)('a warning', () => {
  it('tells what the server has dropped', async () => {
    const heard: string[] = [];
    const file = kubeconfig({ token: server.token });
    const other = await loadCluster({ file, onWarning: (text) => heard.push(text) });
    const policies = other.resource('networkpolicies.networking.k8s.io/v1').in('default');
    const wrong = { metadata: { name: 'wrong' }, spec: { podSelector: {}, ingress: [{ _from: [] }] } };
    expect(await policies.create(wrong)).toMatchObject({ spec: { ingress: [{}] } });
    expect(heard).toEqual(['unknown field "spec.ingress[0]._from"']);
    other.close();
  });
});

describe.skipIf(missing)('a custom resource', () => {
  const schema = {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: { total: { type: 'integer', minimum: 0 }, items: { type: 'array', items: { type: 'string' } } },
      },
      status: { type: 'object', properties: { paid: { type: 'boolean' } } },
    },
  };

  it('its definition, its objects, and their status', async () => {
    const definitions = cluster.resource({
      group: 'apiextensions.k8s.io',
      version: 'v1',
      plural: 'customresourcedefinitions',
      kind: 'CustomResourceDefinition',
      namespaced: false,
    });
    const version = {
      name: 'v1',
      served: true,
      storage: true,
      schema: { openAPIV3Schema: schema },
      subresources: { status: {} },
    };
    await definitions.create({
      metadata: { name: 'orders.shop.example.com' },
      spec: { group: 'shop.example.com', scope: 'Namespaced', names: { plural: 'orders', kind: 'Order' }, versions: [version] },
    } as KubernetesObject);
    const orders = cluster
      .resource<Order>({ group: 'shop.example.com', version: 'v1', plural: 'orders', kind: 'Order', namespaced: true })
      .in('default');
    // It is served a moment later.
    await expect
      .poll(
        () =>
          orders.list().then(
            ({ items }) => items,
            () => undefined,
          ),
        { timeout: 10_000 },
      )
      .toEqual([]);
    const made = await orders.create({ metadata: { name: 'o-1' }, spec: { total: 3 }, status: { paid: true } });
    expect(made.status).toBeUndefined(); // as it has a path of its own
    const paid = await orders.update({ ...made, status: { paid: true } }, { subresource: 'status' });
    expect(paid.status).toEqual({ paid: true });
    expect(await orders.get('o-1', { subresource: 'status' })).toEqual(paid);
    await orders.patch('o-1', { status: { paid: false }, spec: { total: 9 } }, { subresource: 'status' });
    expect(await orders.get('o-1')).toMatchObject({ spec: { total: 3 }, status: { paid: false } });
    expect(await refusal(orders.patch('o-1', { spec: { total: -1 } }))).toEqual({ code: 422, reason: 'Invalid' });
    const strategic = refusal(orders.patch('o-1', { spec: { total: 1 } }, { type: 'strategic' }));
    expect(await strategic).toMatchObject({ code: 415 });
    expect((await orders.list()).items).toMatchObject([{ kind: 'Order', apiVersion: 'shop.example.com/v1' }]);
    expect(await orders.delete('o-1')).toBeUndefined();
  });
});

describe.skipIf(missing)('the contracts of a resource client, and of helpers with one', () => {
  beforeAll(async () => {
    if (missing) return;
    const { group, version, plural, kind } = ORDER_NAMES;
    const served = { name: version, served: true, storage: true, subresources: { status: {}, scale: ORDER_SCALE } };
    await server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${group}` },
      spec: {
        ...{ group, scope: 'Namespaced', names: { plural, kind } },
        versions: [{ ...served, schema: { openAPIV3Schema: ORDER_SCHEMA } }],
      },
    });
    await eventually(() => orders().list()); // it is served a moment later
  }, START_MS);
  const orders = (): Resource<ContractOrder> => cluster.resource<ContractOrder>({ ...ORDER_NAMES, namespaced: true });
  for (const { name, run } of [...RESOURCE_CONTRACT, ...OPERATOR_HELPERS_CONTRACT]) it(name, () => run(orders()));
});

describe.skipIf(missing)('who asks', () => {
  it('a wrong token is refused with 401', async () => {
    const stranger = await loadCluster({ file: kubeconfig({ token: 'wrong' }) });
    expect(await refusal(stranger.resource('pods').list())).toEqual({ code: 401, reason: 'Unauthorized' });
    stranger.close();
  });

  it(
    'after the server was killed and started again, on new connections',
    async () => {
      await server.restart();
      expect((await maps.list()).resourceVersion).toMatch(/^\d+$/);
    },
    START_MS,
  );
});
