// What `watchmux types` writes, used as programs use it: website.ts is what it writes for website-crd.yaml.
import { describe, expect, it } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import type { KubernetesObject, ResourceClient } from '../../src/cache/index.ts';
import type { Cluster } from '../../src/kubernetes/index.ts';
import {
  controller,
  findCondition,
  kind,
  type ReconcileRequest,
  type ResourceSource,
  setCondition,
} from '../../src/operator/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';
import { type OwnerReference, WEBSITES, WEBSITES_V1BETA1, type Website, type WebsiteSpec } from './website.ts';

interface Pod extends KubernetesObject {
  readonly spec?: { readonly nodeName?: string };
}
const PODS = kind<Pod>({ apiVersion: 'v1', kind: 'Pod' });

describe('a kind with a type', () => {
  it('gives its type to the resources of a cluster, of a server, and of either', () => {
    expect(
      compiles(
        (cluster: Cluster): ResourceClient<Website> => cluster.resource(WEBSITES).in('default'),
        (server: ApiServer): ResourceClient<Website> => server.resource(WEBSITES),
        (source: ResourceSource): ResourceClient<Website> => source.resource(WEBSITES),
        (source: ResourceSource): Promise<ResourceClient<Pod>> => source.kind(PODS),
        (source: ResourceSource): ResourceClient<Pod> => source.resource<Pod>('pods/v1'),
        (source: ResourceSource): ResourceClient => source.resource({ version: 'v1', plural: 'pods' }),
        // @ts-expect-error -- they are others
        (source: ResourceSource): ResourceClient<Pod> => source.resource(WEBSITES),
      ),
    ).toBe(7);
    expect(WEBSITES).toEqual({ group: 'example.com', version: 'v1', plural: 'websites', kind: 'Website', namespaced: true });
    expect(WEBSITES_V1BETA1.version).toBe('v1beta1');
    expect(ApiServer).toBeTypeOf('function');
  });

  it('gives its type to a controller', () => {
    const options = controller({
      for: WEBSITES,
      owns: [PODS],
      reconcile: async ({ object, get, owned, resource, apply, updateStatus }) => {
        claim<Equal<typeof object, Website | undefined>>();
        const spec: WebsiteSpec | undefined = object?.spec;
        const name: string | undefined = object?.metadata.name;
        const pods: readonly Pod[] = owned(PODS);
        const other: Website | undefined = get(WEBSITES, 'default/a');
        await resource(WEBSITES).create({ metadata: { name: 'a' }, spec: { image: 'i', port: 80 } });
        // @ts-expect-error -- a website needs an image
        await resource(WEBSITES).create({ metadata: { name: 'a' }, spec: {} });
        // @ts-expect-error -- there is no such policy
        await resource(WEBSITES).create({ metadata: { name: 'a' }, spec: { image: 'i', policy: 'Sometimes' } });
        const applied: Website = await apply(WEBSITES, { spec: { image: 'i' } });
        await updateStatus((website) => {
          website.status = { ready: pods.length };
        });
        return { requeueAfterMs: [spec, name, other, applied].length };
      },
    });
    expect(options.for).toBe(WEBSITES);
  });
});

describe('the type of a kind', () => {
  it('is one for reading and for writing', () => {
    expect(
      compiles(
        // A name is certain, so that it needs no question mark.
        ({ metadata: { name, labels } }: Website): readonly [string, string | undefined] => [name, labels?.app],
        (websites: ResourceClient<Website>) =>
          websites.create({ metadata: { name: '', generateName: 'site-' }, spec: { image: 'i' } }),
        async (websites: ResourceClient<Website>) => {
          const website = await websites.get('a');
          website.spec.replicas = 2;
          website.metadata.labels = { ...website.metadata.labels, a: 'b' };
          await websites.update({ ...website, metadata: { ...website.metadata, finalizers: ['example.com/a'] } });
          await websites.subresource('status').update({ ...website, status: { ready: 1 } });
        },
        ({ apiVersion = 'example.com/v1', kind = 'Website', metadata: { name, uid = '' } }: Website): OwnerReference => ({
          ...{ apiVersion, kind, name, uid },
        }),
        (website: Website): boolean =>
          setCondition(website, { type: 'Ready', status: 'True', reason: 'Up', observedGeneration: website.metadata.generation }),
        (website: Website): 'True' | 'False' | 'Unknown' | undefined => findCondition(website, 'Ready')?.status,
        // @ts-expect-error -- another version is another kind
        (): Website => ({ apiVersion: 'example.com/v1beta1', metadata: { name: 'a' }, spec: { image: 'i' } }),
        ({ object }: ReconcileRequest<Website>): KubernetesObject | undefined => object,
      ),
    ).toBe(8);
    claim<Assignable<Website, KubernetesObject>>();
  });
});
