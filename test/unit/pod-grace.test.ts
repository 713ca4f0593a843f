// Graceful deletion: a Pod that has a node is told to end, and goes when its kubelet says so. test/peers/kubernetes-columns.test.ts compares
// the answers with those of a kube-apiserver.
import { beforeAll, describe, expect, it } from 'vitest';
import {
  type AdmissionHooks,
  type ApiServerOptions,
  kubernetesKinds,
  type ResourceDefinition,
} from '../../src/apiserver/index.ts';
import { type Answered, rig } from './apiserver-rig.ts';

let pods: ResourceDefinition;
let services: ResourceDefinition;
beforeAll(async () => {
  [pods] = await kubernetesKinds('pods/v1');
  [services] = await kubernetesKinds('services/v1');
});

const PODS = '/api/v1/namespaces/default/pods';
const WEB = `${PODS}/web`;
const START = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

type Call = ReturnType<typeof rig>['call'];

interface Given {
  readonly spec?: object;
  readonly metadata?: object;
  readonly phase?: string;
  readonly options?: Partial<ApiServerOptions>;
}

/** A server with a Pod on a node, and its time of day. */
async function withPod({ spec, metadata, phase, options }: Given = {}) {
  const time = { ms: START };
  const made = rig({ resources: [pods], now: () => time.ms, ...options });
  const containers = [{ name: 'a', image: 'a:1' }];
  await made.call('POST', PODS, { metadata: { name: 'web', ...metadata }, spec: { containers, nodeName: 'n', ...spec } });
  if (phase) await made.call('PATCH', `${WEB}/status`, { status: { phase } });
  return { ...made, time };
}

const remove = (call: Call, options?: object, query: string = ''): Promise<Answered> =>
  call('DELETE', `${WEB}${query}`, options && { kind: 'DeleteOptions', apiVersion: 'v1', ...options });

/** The code of an answer, and when the Pod in it ends, with how much grace and in which generation. */
const ending = ({ code, body: { kind, metadata } }: Answered): unknown[] => [
  code,
  kind,
  metadata.deletionTimestamp?.slice(11, -1),
  metadata.deletionGracePeriodSeconds,
  metadata.generation,
];

const isThere = async (call: Call): Promise<boolean> => (await call('GET', WEB)).code === 200;

describe('a Pod on a node', () => {
  it.each<[string, Given, object | undefined, string, unknown[]]>([
    ['as its spec says by default', {}, undefined, '', ['03:04:35', 30]],
    ['as its own spec says', { spec: { terminationGracePeriodSeconds: 7 } }, {}, '', ['03:04:12', 7]],
    ['as the deletion says', {}, { gracePeriodSeconds: 60 }, '', ['03:05:05', 60]],
    ['as the query says', {}, undefined, '?gracePeriodSeconds=5', ['03:04:10', 5]],
    ['in a second, if it says less than nothing', {}, { gracePeriodSeconds: -5 }, '', ['03:04:06', 1]],
    ['in a second, if the spec does', { spec: { terminationGracePeriodSeconds: -5 } }, {}, '', ['03:04:06', 1]],
    ['in the last year at the latest', {}, { gracePeriodSeconds: 1e15 }, '', ['23:59:59', 1e15]],
  ])('is told to end, %s', async (_, given, options, query, [at, seconds]) => {
    const { call } = await withPod(given);
    const told = [200, 'Pod', at, seconds, 2];
    expect(ending(await remove(call, { ...options, dryRun: ['All'] }, query))).toEqual(told);
    expect((await call('GET', WEB)).body.metadata).not.toHaveProperty('deletionTimestamp');
    expect(ending(await remove(call, options, query))).toEqual(told);
    expect(ending(await call('GET', WEB))).toEqual(told);
  });

  it.each<[string, Given, object | undefined]>([
    ['without a node', { spec: { nodeName: '' } }, { gracePeriodSeconds: 30 }],
    ['that has succeeded', { phase: 'Succeeded' }, undefined],
    ['that has failed', { phase: 'Failed' }, { gracePeriodSeconds: 30 }],
    ['whose spec gives no grace', { spec: { terminationGracePeriodSeconds: 0 } }, undefined],
    ['of which the deletion says so', {}, { gracePeriodSeconds: 0 }],
  ])('%s goes at once, after it has been told', async (_, given, options) => {
    const { call, server } = await withPod(given);
    const gone = [200, 'Pod', '03:04:05', 0, 2];
    expect(ending(await remove(call, { ...options, dryRun: ['All'] }))).toEqual(gone);
    expect(await isThere(call)).toBe(true);
    const all = server.resource('pods/v1').in('default');
    const watch = await all.watch({ resourceVersion: (await all.list()).resourceVersion });
    expect(ending(await remove(call, options))).toEqual(gone);
    expect(await isThere(call)).toBe(false);
    const seen: unknown[] = [];
    for await (const { type, object } of watch) {
      const { generation, deletionGracePeriodSeconds } = object.metadata as { generation: number } & Record<string, unknown>;
      seen.push([type, generation, deletionGracePeriodSeconds]);
      if (type === 'DELETED') break;
    }
    expect(seen).toEqual([
      ['MODIFIED', 2, 0],
      ['DELETED', 2, 0],
    ]);
  });

  it.each<[string, object | undefined, number, unknown[]]>([
    ['no grace is asked for', undefined, 1, ['03:04:35', 30]],
    ['the same grace is asked for', { gracePeriodSeconds: 30 }, 1, ['03:04:35', 30]],
    ['more grace is asked for', { gracePeriodSeconds: 60 }, 1, ['03:04:35', 30]],
    ['less is', { gracePeriodSeconds: 10 }, 1, ['03:04:15', 10]],
    ['less is, of which nothing is left', { gracePeriodSeconds: 10 }, 20, ['03:04:25', 1]],
  ])('that is ending ends no later: if %s', async (_, options, afterSeconds, [at, seconds]) => {
    const { call, time } = await withPod();
    await remove(call);
    time.ms += afterSeconds * 1_000;
    const before = (await call('GET', WEB)).body.metadata.resourceVersion;
    const told = await remove(call, options);
    expect(ending(told)).toEqual([200, 'Pod', at, seconds, 2]);
    expect(ending(await call('GET', WEB))).toEqual(ending(told));
    expect(told.body.metadata.resourceVersion === before).toBe(seconds === 30);
  });

  it('goes when its kubelet says so', async () => {
    const { call, time } = await withPod();
    const { uid } = (await call('GET', WEB)).body.metadata;
    await remove(call);
    time.ms += 3_000;
    expect((await remove(call, { gracePeriodSeconds: 0, preconditions: { uid: 'other' } })).code).toBe(409);
    expect(ending(await remove(call, { gracePeriodSeconds: 0, preconditions: { uid } }))).toEqual([200, 'Pod', '03:04:08', 0, 2]);
    expect(await isThere(call)).toBe(false);
  });

  it('goes only in the version that is meant', async () => {
    const { call } = await withPod();
    const { resourceVersion } = (await call('GET', WEB)).body.metadata;
    await call('PATCH', WEB, { metadata: { labels: { a: 'b' } } });
    expect((await remove(call, { gracePeriodSeconds: 0, preconditions: { resourceVersion } })).code).toBe(409);
    const now = (await call('GET', WEB)).body.metadata.resourceVersion;
    expect((await remove(call, { gracePeriodSeconds: 0, preconditions: { resourceVersion: now } })).code).toBe(200);
    expect(await isThere(call)).toBe(false);
  });

  it('is not removed by whoever removes its last finalizer before it has ended', async () => {
    const { call } = await withPod({ metadata: { finalizers: ['x.io/held'] } });
    expect(ending(await remove(call))).toEqual([200, 'Pod', '03:04:35', 30, 2]);
    await call('PATCH', WEB, { metadata: { finalizers: null } });
    expect(ending(await call('GET', WEB))).toEqual([200, 'Pod', '03:04:35', 30, 2]);
    await call('PATCH', `${WEB}/status`, { status: { phase: 'Failed' } });
    expect(await isThere(call)).toBe(true);
    await remove(call, { gracePeriodSeconds: 0 });
    expect(await isThere(call)).toBe(false);
  });

  it('that has ended waits for its last finalizer', async () => {
    const { call } = await withPod({ metadata: { finalizers: ['x.io/held'] } });
    await remove(call);
    const ended = [200, 'Pod', '03:04:05', 0, 2];
    expect(ending(await remove(call, { gracePeriodSeconds: 0 }))).toEqual(ended);
    expect(ending(await remove(call))).toEqual(ended);
    expect(ending(await call('PATCH', WEB, { metadata: { finalizers: null } }))).toEqual(ended);
    expect(await isThere(call)).toBe(false);
  });

  it('that a server has left between the two steps goes with the next deletion', async () => {
    const { call, storage } = await withPod();
    await storage.scope('core/pods/').update('default/web', (pod) => ({
      ...pod,
      metadata: { ...pod.metadata, deletionTimestamp: '2026-01-02T03:04:00Z', deletionGracePeriodSeconds: 0 },
    }));
    expect(ending(await remove(call, { gracePeriodSeconds: 5 }))).toEqual([200, 'Pod', '03:04:00', 0, 1]);
    expect(await isThere(call)).toBe(false);
  });

  it('may be removed by its kubelet between the two steps', async () => {
    const hooks: AdmissionHooks = {
      validate: async ({ operation, oldObject }) => {
        if (operation === 'DELETE' && oldObject?.metadata?.deletionTimestamp)
          await made.storage.scope('core/pods/').delete('default/web');
      },
    };
    const made = await withPod({ options: { admission: hooks } });
    expect(ending(await remove(made.call, { gracePeriodSeconds: 0 }))).toEqual([200, 'Pod', '03:04:05', 0, 2]);
    expect(await isThere(made.call)).toBe(false);
  });

  it('that is deleted with all others ends in its own time, and the others in theirs', async () => {
    const { call } = await withPod();
    const containers = [{ name: 'a', image: 'a:1' }];
    await call('POST', PODS, {
      metadata: { name: 'short' },
      spec: { containers, nodeName: 'n', terminationGracePeriodSeconds: 3 },
    });
    await call('POST', PODS, { metadata: { name: 'unbound' }, spec: { containers } });
    const { items } = (await call('DELETE', PODS)).body;
    expect(items.map(({ metadata }: Answered['body']) => metadata.deletionTimestamp)).toEqual([undefined, undefined, undefined]);
    const left = (await call('GET', PODS)).body.items.map(({ metadata }: Answered['body']) => [
      metadata.name,
      metadata.deletionGracePeriodSeconds,
    ]);
    expect(left).toEqual([
      ['short', 3],
      ['web', 30],
    ]);
    await call('DELETE', `${PODS}?gracePeriodSeconds=0`);
    expect((await call('GET', PODS)).body.items).toEqual([]);
  });

  it('is evicted with grace', async () => {
    const { call } = await withPod();
    const evict = (deleteOptions: object): Promise<Answered> =>
      call('POST', `${WEB}/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'web' }, deleteOptions });
    expect((await evict({ gracePeriodSeconds: 20 })).code).toBe(201);
    expect(ending(await call('GET', WEB))).toEqual([200, 'Pod', '03:04:25', 20, 2]);
    expect((await evict({ gracePeriodSeconds: 0 })).code).toBe(201);
    expect(await isThere(call)).toBe(false);
  });

  it('is deleted in process in the same way', async () => {
    const { server } = await withPod();
    const all = server.resource('pods/v1').in('default');
    expect(await all.delete('web', { gracePeriodSeconds: 9 })).toMatchObject({ metadata: { deletionGracePeriodSeconds: 9 } });
    expect(await all.delete('web')).toMatchObject({ metadata: { deletionGracePeriodSeconds: 9 } });
    expect(await all.delete('web', { gracePeriodSeconds: 0 })).toBeUndefined();
  });

  it('is told of to hooks with its grace, and not again while it is ending', async () => {
    const told: unknown[] = [];
    const hooks: AdmissionHooks = {
      validate: ({ operation, options, oldObject }) => {
        const { deletionTimestamp } = oldObject?.metadata ?? {};
        if (operation === 'DELETE') told.push([options.gracePeriodSeconds, deletionTimestamp !== undefined]);
      },
    };
    const { call } = await withPod({ options: { admission: hooks } });
    for (const options of [
      undefined,
      undefined,
      { gracePeriodSeconds: 40 },
      { gracePeriodSeconds: 10 },
      { gracePeriodSeconds: 0 },
    ])
      await remove(call, options);
    expect(told).toEqual([
      ['30', false],
      ['10', true],
      ['0', true],
      ['0', true],
    ]);
  });

  it('is still there for those who ask in the old way', async () => {
    const { call } = await withPod();
    const codes: number[] = [];
    for (const orphanDependents of [true, false]) codes.push((await remove(call, { orphanDependents })).code);
    codes.push((await remove(call, { orphanDependents: false, gracePeriodSeconds: 0 })).code);
    expect(codes).toEqual([200, 202, 200]);
  });
});

it('that lost its owner is told to end, and keeps an owner that waits for it', async () => {
  const { call, server } = await withPod({ options: { resources: [pods, services], garbageCollection: true } });
  await server.ready;
  const owner = '/api/v1/namespaces/default/services/owner';
  const create = async (): Promise<string> =>
    (await call('POST', '/api/v1/namespaces/default/services', { metadata: { name: 'owner' } })).body.metadata.uid;
  const own = (uid: string): object => ({ apiVersion: 'v1', kind: 'Service', name: 'owner', uid, blockOwnerDeletion: true });
  const isEnding = () => expect.poll(async () => ending(await call('GET', WEB))).toEqual([200, 'Pod', '03:04:35', 30, 2]);
  await call('PATCH', WEB, { metadata: { ownerReferences: [own(await create())] } });
  await call('DELETE', owner);
  await isEnding();
  await remove(call, { gracePeriodSeconds: 0 });
  const containers = [{ name: 'a', image: 'a:1' }];
  const again = { metadata: { name: 'web', ownerReferences: [own(await create())] }, spec: { containers, nodeName: 'n' } };
  await call('POST', PODS, again);
  await call('DELETE', owner, { propagationPolicy: 'Foreground' });
  await isEnding();
  expect((await call('GET', owner)).body.metadata.finalizers).toEqual(['foregroundDeletion']);
  await remove(call, { gracePeriodSeconds: 0 });
  await expect.poll(async () => (await call('GET', owner)).code).toBe(404);
  await server.shutdown();
});

it('other kinds go at once, whatever grace is asked for', async () => {
  const { call } = rig({ resources: [services] });
  const path = '/api/v1/namespaces/default/services';
  await call('POST', path, { metadata: { name: 'a' }, spec: { ports: [{ port: 1 }] } });
  const { code, body } = await call('DELETE', `${path}/a`, { gracePeriodSeconds: 30 });
  expect([code, body.kind, body.metadata.deletionTimestamp]).toEqual([200, 'Service', undefined]);
  expect((await call('GET', `${path}/a`)).code).toBe(404);
});
