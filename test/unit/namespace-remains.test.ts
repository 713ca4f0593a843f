// What a namespace that is being deleted says of what is left in it.
import { beforeAll, describe, expect, it } from 'vitest';
import { BUILT_IN_KINDS, kubernetesKinds, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { closers } from '../closing.ts';
import { type Answered, rig } from './apiserver-rig.ts';

const closing = closers();
let pods: ResourceDefinition;
beforeAll(async () => {
  [pods] = await kubernetesKinds('pods/v1');
});

const NAMESPACE = '/api/v1/namespaces/x';
const START = Date.UTC(2026, 0, 2, 3, 4, 5);
const NOW = '2026-01-02T03:04:05Z';
const POD = { spec: { nodeName: 'n', containers: [{ name: 'a', image: 'a:1' }] } };

type Call = ReturnType<typeof rig>['call'];

async function withNamespace() {
  const time = { ms: START };
  const storage = new MemoryStorage();
  const options = { storage, resources: [...BUILT_IN_KINDS, pods], now: () => time.ms, uid: () => crypto.randomUUID() };
  const made = rig(options);
  closing.push(() => made.server.shutdown());
  await made.server.ready;
  await made.call('POST', '/api/v1/namespaces', { metadata: { name: 'x' } });
  return { ...made, storage, time, options };
}

const statusOf = async (call: Call): Promise<Answered['body']> => (await call('GET', NAMESPACE)).body.status;

/** What is wrong, by type. */
const wrongIn = (status: Answered['body']): unknown =>
  Object.fromEntries(
    status.conditions.flatMap(({ type, status: state, reason, message }: Record<string, string>) =>
      state === 'True' ? [[type, `${reason}: ${message}`]] : [],
    ),
  );

const isGone = (call: Call): Promise<void> => expect.poll(async () => (await call('GET', NAMESPACE)).code).toBe(404) as never;

const REMAINING = 'SomeResourcesRemain: Some resources are remaining: ';
const HELD = 'SomeFinalizersRemain: Some content in the namespace has finalizers remaining: ';

describe('a namespace that is being deleted', () => {
  it('waits for the kubelets of its Pods, and says so', async () => {
    const { call, time } = await withNamespace();
    await call('POST', `${NAMESPACE}/pods`, { metadata: { name: 'a' }, ...POD });
    await call('POST', `${NAMESPACE}/pods`, { metadata: { name: 'unbound' }, spec: { containers: POD.spec.containers } });
    await call('POST', `${NAMESPACE}/configmaps`, { metadata: { name: 'm' } });
    const { status } = (await call('DELETE', NAMESPACE)).body;
    expect(status).toEqual(await statusOf(call));
    expect(wrongIn(status)).toEqual({ NamespaceContentRemaining: `${REMAINING}pods. has 1 resource instances` });
    expect((await call('GET', `${NAMESPACE}/pods/a`)).body.metadata.deletionGracePeriodSeconds).toBe(30);
    expect((await call('GET', `${NAMESPACE}/configmaps/m`)).code).toBe(200);
    time.ms += 29_000;
    expect((await call('DELETE', NAMESPACE)).body.status).toEqual(status);
    time.ms += 1_000;
    const late = (await call('DELETE', NAMESPACE)).body.status;
    expect(wrongIn(late)).toEqual({
      NamespaceDeletionContentFailure:
        'ContentDeletionFailed: Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: x for gvr: /v1, Resource=pods',
      NamespaceContentRemaining: `${REMAINING}pods. has 1 resource instances`,
    });
    const times = late.conditions.map(({ type, lastTransitionTime }: Record<string, string>) => [type, lastTransitionTime]);
    expect(times.filter(([, at]: string[]) => at !== NOW)).toEqual([['NamespaceDeletionContentFailure', '2026-01-02T03:04:35Z']]);
    await call('DELETE', `${NAMESPACE}/pods/a`, { gracePeriodSeconds: 0 });
    await isGone(call);
  });

  it('names the finalizers that hold what is in it, and how many of which kind', async () => {
    const { call } = await withNamespace();
    const held = (name: string, finalizers: string[]): object => ({ metadata: { name, finalizers } });
    await call('POST', `${NAMESPACE}/configmaps`, held('a', ['x.io/b', 'x.io/a']));
    await call('POST', `${NAMESPACE}/configmaps`, held('b', ['x.io/b']));
    await call('POST', `${NAMESPACE}/secrets`, held('c', ['x.io/a']));
    await call('POST', `/apis/coordination.k8s.io/v1/namespaces/x/leases`, held('d', ['x.io/b']));
    await call('DELETE', NAMESPACE);
    const kinds = [
      'configmaps. has 2 resource instances',
      'leases.coordination.k8s.io has 1 resource instances',
      'secrets. has 1 resource instances',
    ];
    expect(wrongIn(await statusOf(call))).toEqual({
      NamespaceContentRemaining: REMAINING + kinds.join(', '),
      NamespaceFinalizersRemaining: `${HELD}x.io/a in 2 resource instances, x.io/b in 3 resource instances`,
    });
  });

  it('says what is no longer so, while its own finalizers hold it, and keeps what others say', async () => {
    const { call } = await withNamespace();
    const merge = { metadata: { finalizers: ['x.io/own'] } };
    await call('PATCH', NAMESPACE, merge);
    await call('POST', `${NAMESPACE}/configmaps`, { metadata: { name: 'a', finalizers: ['x.io/a'] } });
    const other = { type: 'Other', status: 'True', lastTransitionTime: NOW, reason: 'A', message: 'b' };
    await call('PATCH', `${NAMESPACE}/status`, { status: { conditions: [other] } });
    await call('DELETE', NAMESPACE);
    expect((await statusOf(call)).conditions.map(({ type }: { type: string }) => type)).toEqual([
      'Other',
      'NamespaceDeletionDiscoveryFailure',
      'NamespaceDeletionGroupVersionParsingFailure',
      'NamespaceDeletionContentFailure',
      'NamespaceContentRemaining',
      'NamespaceFinalizersRemaining',
    ]);
    await call('PATCH', `${NAMESPACE}/configmaps/a`, { metadata: { finalizers: null } });
    await call('DELETE', NAMESPACE);
    const { conditions, phase } = await statusOf(call);
    expect([phase, conditions[0], conditions.length]).toEqual(['Terminating', other, 6]);
    const fine = conditions.slice(1).map(({ status, reason }: Record<string, string>) => `${status} ${reason}`);
    const reasons = ['ResourcesDiscovered', 'ParsedGroupVersions', 'ContentDeleted', 'ContentRemoved', 'ContentHasNoFinalizers'];
    expect(fine).toEqual(reasons.map((reason) => `False ${reason}`));
    await call('PATCH', NAMESPACE, { metadata: { finalizers: null } });
    await isGone(call);
  });

  it('says nothing if nothing was ever left', async () => {
    const { call } = await withNamespace();
    await call('PATCH', NAMESPACE, { metadata: { finalizers: ['x.io/own'] } });
    await call('POST', `${NAMESPACE}/configmaps`, { metadata: { name: 'a' } });
    expect((await call('DELETE', NAMESPACE)).body.status).toEqual({ phase: 'Terminating' });
  });

  it('counts all that is left, however many there are', async () => {
    const { call, storage } = await withNamespace();
    const maps = storage.scope('core/configmaps/');
    for (let at = 0; at < 1_001; at++) {
      const metadata = { name: `m-${at}`, namespace: 'x', uid: `u-${at}`, finalizers: ['x.io/a'] };
      await maps.create(`x/m-${at}`, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
    }
    await call('DELETE', NAMESPACE);
    expect(wrongIn(await statusOf(call))).toEqual({
      NamespaceContentRemaining: `${REMAINING}configmaps. has 1001 resource instances`,
      NamespaceFinalizersRemaining: `${HELD}x.io/a in 1001 resource instances`,
    });
  });
});
