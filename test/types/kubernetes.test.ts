// The classes of @kubernetes/client-node fit where objects and configurations are taken.
import type {
  KubeConfig,
  V1ConfigMap,
  V1CustomResourceDefinition,
  V1Deployment,
  V1NetworkPolicy,
  V1Pod,
} from '@kubernetes/client-node';
import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.js';
import type { ConfigMap, Pod } from 'kubernetes-types/core/v1.js';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1.js';
import { describe, expect, it } from 'vitest';
import type * as served from '../../src/apiserver/index.ts';
import type { ApiServer } from '../../src/apiserver/index.ts';
import {
  createListWatcher,
  type DeleteCollectionOptions,
  Informer,
  InformerFactory,
  type KubernetesObject,
  type ListWatcher,
  type ListWatcherOptions,
  type ResourceClient,
  type Scale,
  type SubresourceClient,
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
import { Controller, type Lease, type LeaseResource } from '../../src/workqueue/index.ts';
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
  claim<Lax<DeleteCollectionOptions>>();
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

/** What client-node calls otherwise has its name in JSON, and no other. */
async function names(cluster: Cluster): Promise<void> {
  const policies = cluster.resource<AsJson<V1NetworkPolicy>>('networkpolicies.networking.k8s.io/v1');
  const peers = [{ podSelector: { matchLabels: { app: 'front' } } }];
  await policies.create({ spec: { podSelector: {}, ingress: [{ from: peers }] } });
  // @ts-expect-error the server would drop it
  await policies.create({ spec: { podSelector: {}, ingress: [{ _from: peers }] } });
  const plain = cluster.resource<NetworkPolicy>('networkpolicies.networking.k8s.io/v1');
  await plain.create({ spec: { podSelector: {}, ingress: [{ from: peers }] } });
  // @ts-expect-error the server would drop it
  await plain.create({ spec: { podSelector: {}, ingress: [{ _from: peers }] } });
  claim<Assignable<NetworkPolicy, AsJson<V1NetworkPolicy>>>();
  type Ingress<T extends { spec?: { ingress?: unknown } }> = NonNullable<T['spec']>['ingress'];
  claim<Assignable<Ingress<AsJson<V1NetworkPolicy>>, Ingress<NetworkPolicy>>>();
  claim<Assignable<Pod, KubernetesObject>>();
  claim<Assignable<ConfigMap, AsJson<V1ConfigMap>>>();

  type Schema<T> = T extends { spec?: { versions: (infer V)[] } }
    ? V extends { schema?: { openAPIV3Schema?: infer S } }
      ? S
      : never
    : never;
  const schema: Schema<AsJson<V1CustomResourceDefinition>> = {
    properties: { a: { type: 'string', default: 'x', enum: ['x', 'y'] } },
    $ref: '#/a',
    $schema: 'http://json-schema.org/schema#',
    'x-kubernetes-preserve-unknown-fields': true,
    'x-kubernetes-validations': [{ rule: 'true' }],
  };
  claim<Assignable<NonNullable<Schema<CustomResourceDefinition>>['default'], NonNullable<typeof schema>['default']>>();
  // @ts-expect-error the server would drop it
  claim<Assignable<{ x_kubernetes_int_or_string: true }, Pick<NonNullable<typeof schema>, 'x-kubernetes-int-or-string'>>>();
  const renamed: Extract<keyof NonNullable<typeof schema>, `_${string}` | `x_${string}` | 'ref' | 'schema'> extends never
    ? true
    : false = true;
  claim<Equal<typeof renamed, true>>();
  // A type of one's own keeps its names.
  claim<Equal<AsJson<{ readonly schema?: { readonly ref: 'a' } }>, { readonly schema?: { readonly ref: 'a' } }>>();
  claim<Equal<AsJson<{ a?: unknown; b: Date[]; c: number | Date }>, { a?: unknown; b: string[]; c: number | string }>>();
}

interface Order extends KubernetesObject {
  readonly spec?: { readonly count: number };
}

/** What takes a resource takes that of a cluster, and that of a server in the same process, with the same options. */
async function either(cluster: Cluster, server: ApiServer): Promise<void> {
  claim<Assignable<Resource<Order>, ResourceClient<Order>>>();
  claim<Assignable<served.Resource<Order>, ResourceClient<Order>>>();
  claim<Assignable<ResourceClient<Order>, ListWatcher<Order>>>();
  claim<Assignable<ResourceClient<Lease>, LeaseResource>>();
  claim<Equal<served.WriteOptions, WriteOptions>>();
  claim<Equal<served.PatchOptions, PatchOptions>>();
  // A client of other objects is none, either way.
  claim<Equal<Assignable<ResourceClient<Order>, ResourceClient<V1Pod>>, false>>();
  claim<Equal<Assignable<served.Resource<V1Pod>, ResourceClient<Order>>, false>>();
  // A client has what its interface has; a class has more.
  claim<Equal<Assignable<ResourceClient<Order>, Resource<Order>>, false>>();
  const controller = (orders: ResourceClient<Order>): Controller<Order> => {
    const reconcile = async (key: string): Promise<void> => {
      const scale = orders.subresource('scale');
      claim<Equal<typeof scale, SubresourceClient<Scale>>>();
      const status = orders.subresource('status');
      claim<Equal<typeof status, SubresourceClient<Order>>>();
      await status.patch(key, { status: {} }, { type: 'merge' });
      // @ts-expect-error it is that subresource
      await status.get(key, { subresource: 'scale' });
      // @ts-expect-error a scale is no order
      await status.update({ spec: { replicas: 3 } });
      // @ts-expect-error there is no such option
      await orders.update(await orders.get(key), { force: true });
    };
    return new Controller<Order>({ informers: [new Informer(orders.in('default'))], reconcile });
  };
  controller(cluster.resource<Order>('orders.example.com/v1'));
  controller(await cluster.find<Order>('orders'));
  controller(server.resource<Order>('orders.example.com/v1'));
  // @ts-expect-error pods are no orders
  controller(cluster.resource<V1Pod>('pods'));
}

describe('the types of clusters', () => {
  it('take what is right, and refuse what is wrong', () => {
    expect(compiles(options, resources, informers, json, names, either)).toBe(6);
  });
});
