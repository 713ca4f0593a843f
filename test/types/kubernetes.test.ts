// The classes of @kubernetes/client-node fit where objects and configurations are taken.
import type { KubeConfig, V1ConfigMap, V1Deployment, V1Pod } from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import {
  createListWatcher,
  Informer,
  InformerFactory,
  type KubernetesObject,
  type ListWatcher,
  type ListWatcherOptions,
} from '../../src/cache/index.ts';
import {
  type AsJson,
  Cluster,
  type ClusterOptions,
  type DeleteOptions,
  type FindOptions,
  type GetOptions,
  type KubeConfigLike,
  type LoadClusterOptions,
  type PatchOptions,
  type Resource,
  type ResourceType,
  type WriteOptions,
} from '../../src/kubernetes/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';

type Unsaid<Options> = { readonly [Name in keyof Options]-?: undefined };
type Lax<Options> = Assignable<Unsaid<Options>, Options>;

function options(): void {
  claim<Lax<ClusterOptions>>();
  claim<Lax<LoadClusterOptions>>();
  claim<Lax<FindOptions>>();
  claim<Lax<GetOptions>>();
  claim<Lax<WriteOptions>>();
  claim<Lax<PatchOptions>>();
  claim<Lax<DeleteOptions>>();
  claim<Lax<Omit<ResourceType, 'version' | 'plural'>>>();
}

async function resources(config: KubeConfig, deployment: V1Deployment): Promise<void> {
  claim<Assignable<KubeConfig, KubeConfigLike>>();
  claim<Assignable<V1Pod, KubernetesObject>>();
  const cluster = new Cluster(config, { responseTimeoutMs: 1 });
  const pods = cluster.resource<V1Pod>('pods').in('default');
  claim<Equal<typeof pods, Resource<V1Pod>>>();
  claim<Assignable<typeof pods, ListWatcher<V1Pod>>>();
  const pod = await pods.get('a');
  claim<Equal<typeof pod, V1Pod>>();
  const gone = await pods.delete('a', { preconditions: { uid: pod.metadata?.uid } });
  claim<Equal<typeof gone, V1Pod | undefined>>();
  await cluster.resource<V1ConfigMap>({ version: 'v1', plural: 'configmaps', namespaced: true }).create({ data: { a: 'b' } });
  // @ts-expect-error the values of a config map are strings
  await cluster.resource<V1ConfigMap>('configmaps').create({ data: { a: 5 } });
  // @ts-expect-error a deployment is no pod
  await pods.update(deployment);
  // @ts-expect-error there is no such type of patch
  await pods.patch('a', {}, { type: 'smart' });
  // @ts-expect-error a version is missing
  cluster.resource({ plural: 'pods' });
  const own = await cluster.find<{ readonly size: number }>('things');
  claim<Equal<typeof own, Resource<{ readonly size: number }>>>();
}

function informers(cluster: Cluster): void {
  const pods = new Informer(cluster.resource<V1Pod>('pods'), { indexers: { node: (pod: V1Pod) => [pod.spec?.nodeName ?? ''] } });
  const [first] = pods.store.byIndex('node', 'n1');
  claim<Equal<typeof first, V1Pod | undefined>>();
  const factory = new InformerFactory(cluster.source, { namespace: 'default' });
  const deployments = factory.informer<V1Deployment>('deployments.apps/v1');
  claim<Equal<typeof deployments, Informer<V1Deployment>>>();
  const fetch: ListWatcherOptions['fetch'] = cluster.fetch;
  createListWatcher(new URL('/api/v1/pods', cluster.server), { fetch });
}

function json(pod: AsJson<V1Pod>): void {
  const created = pod.metadata?.creationTimestamp;
  claim<Equal<typeof created, string | undefined>>();
  const port = pod.spec?.containers[0]?.ports?.[0]?.containerPort;
  claim<Equal<typeof port, number | undefined>>();
  claim<Assignable<AsJson<V1Pod>, KubernetesObject>>();
}

describe('the types of clusters', () => {
  it('take what is right, and refuse what is wrong', () => {
    expect(compiles(options, resources, informers, json)).toBe(4);
  });
});
