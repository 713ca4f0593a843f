import type { V1Deployment, V1Pod } from '@kubernetes/client-node';
import { expect, it } from 'vitest';
import type { KubernetesObject, ResourceClient } from '../../src/cache/index.ts';
import {
  anyOf,
  type Condition,
  type CreateOrUpdateResult,
  createOrUpdate,
  ensureFinalizer,
  findCondition,
  generationChanged,
  type Mutable,
  ownersOf,
  setCondition,
  updateStatus,
  type WatchedOptions,
  type When,
} from '../../src/operator/index.ts';
import { claim, compiles, type Equal } from './assert.ts';

interface Website extends KubernetesObject {
  readonly spec: { readonly hosts: readonly string[]; readonly size: number | undefined };
  readonly status?: { readonly conditions?: readonly Condition[]; readonly replicas?: number } | undefined;
}

const never = async <T extends object>(sites: ResourceClient<Website>, pods: ResourceClient<V1Pod>, any: ResourceClient<T>) => {
  const site = await sites.get('a');
  // @ts-expect-error: what is read may be that of a cache
  site.spec.size = 3;
  await updateStatus(sites, site, (draft) => {
    draft.spec.hosts.push('b');
    draft.status = { conditions: [], replicas: 1 };
    // @ts-expect-error: a number is expected
    draft.status.replicas = 'one';
    return setCondition(draft, { type: 'Ready', status: 'True', reason: 'Done' });
  });
  const result = await createOrUpdate(sites, site, async (draft) => {
    draft.spec.size = undefined;
  });
  claim<Equal<typeof result, CreateOrUpdateResult<Website>>>();
  const { object, result: did } = await ensureFinalizer(pods, await pods.get('a'), 'example.com/a');
  // @ts-expect-error: it may be gone
  object.metadata;
  if (did !== 'gone') object.spec?.containers;
  await updateStatus(any, await any.get('a'), () => {});
  const found = findCondition(site, 'Ready');
  claim<Equal<typeof found, Condition | undefined>>();
};

it('helpers know the types of their objects', () => {
  expect(compiles(never)).toBe(1);
  type Deep = Mutable<{ readonly a: readonly { readonly b: Date; readonly c?: ReadonlyArray<string> }[]; readonly d: unknown }>;
  type Expected = { a: { b: Date; c?: string[] }[]; d: unknown };
  claim<Equal<Deep, Expected>>();
});

it('conditions are those of any kind, and of no kind', () => {
  const ready = { type: 'Ready', status: 'False', reason: 'Waiting' } as const;
  const deployment: V1Deployment = {};
  const object: KubernetesObject = {};
  expect([setCondition(deployment, ready), setCondition(object, ready)]).toEqual([true, true]);
  expect(deployment.status?.conditions?.[0]?.lastTransitionTime).toBeDefined();
  // @ts-expect-error: a reason is expected
  expect(() => setCondition(object, { type: 'Ready', status: 'False' })).toThrow('reason');
  // @ts-expect-error: a status is one of three words
  expect(() => setCondition(object, { ...ready, status: 'true' })).toThrow('status');
});

it('predicates and owners are for any kind', () => {
  const when: When<Website> = anyOf(generationChanged, (_, site) => site?.spec.size === 3);
  const watched: WatchedOptions<V1Pod> = {
    kind: 'pods',
    keysOf: ownersOf({ apiVersion: 'batch/v1', kind: 'Job' }),
    when: generationChanged,
  };
  expect([when(undefined, undefined, 'DELETED'), watched.keysOf({}, {} as never)]).toEqual([true, []]);
});
