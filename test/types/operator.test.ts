import type { V1ConfigMap, V1Pod } from '@kubernetes/client-node';
import { expect, it } from 'vitest';
import type { KubernetesObject, ResourceClient } from '../../src/cache/index.ts';
import {
  apply as applyTo,
  controller,
  generationChanged,
  kind,
  type Operator,
  type OperatorControllerOptions,
  type ReconcileRequest,
} from '../../src/operator/index.ts';
import { claim, compiles, type Equal } from './assert.ts';

interface Website extends KubernetesObject {
  readonly spec: { readonly replicas: number };
  readonly status?: { readonly ready?: boolean };
}
interface Page extends KubernetesObject {
  readonly text: string;
}
interface Site extends KubernetesObject {
  readonly website: string;
}

const WEBSITES = kind<Website>('websites.example.com/v1');
const PAGES = kind<Page>({ apiVersion: 'example.com/v1', kind: 'Page' });
const SITES = kind<Site>({ group: 'example.com', version: 'v1', plural: 'sites' });

const MAPS = kind('configmaps/v1');

/** What TypeScript infers. */
function infers(operator: Operator): void {
  operator.controller({
    for: {
      kind: WEBSITES,
      when: (old, object) => old?.spec.replicas !== object?.spec.replicas,
      indexers: { n: ({ spec }) => [`${spec.replicas}`] },
    },
    owns: [PAGES, { kind: SITES, when: (_old, object, event) => event === 'ADDED' || object?.website === 'a' }, 'pods'],
    watches: [
      { kind: PAGES, keysOf: ({ text }, { get }) => [text, get(SITES, 'a')?.website ?? ''] },
      { kind: SITES, when: generationChanged, keysOf: (site) => [site.website] },
      { kind: 'secrets', keysOf: ({ metadata }) => [metadata?.name ?? ''] },
    ],
    reads: [PAGES, 'nodes', { kind: SITES }],
    reconcile: async ({ object, get, store, owned, resource, apply, updateStatus }) => {
      claim<Equal<typeof object, Website | undefined>>();
      const page = get(PAGES, 'a');
      const pages = owned(PAGES);
      const found = store(SITES).byIndex('name', 'a');
      claim<Equal<[typeof page, typeof pages, typeof found], [Page | undefined, readonly Page[], Site[]]>>();
      const read = await resource(PAGES).in('default').get('a');
      const applied = await apply(SITES, { metadata: { name: 'a' } });
      const written = await updateStatus((draft) => {
        draft.status = { ready: true };
        draft.status.ready = false; // a copy: it may be changed
      });
      claim<Equal<[typeof read, typeof applied, typeof written], [Page, Site, Website]>>();
      return { requeueAfterMs: object?.spec.replicas };
    },
    finalizer: {
      name: 'example.com/files',
      finalize: ({ object }) => {
        claim<Equal<typeof object, Website>>();
      },
    },
  });
  operator.controller({
    for: 'pods',
    reconcile: ({ object }) => {
      claim<Equal<typeof object, KubernetesObject | undefined>>();
    },
  });
}

/** What `apply` takes: any part of an object, at any depth. */
async function applies({ apply, owned }: ReconcileRequest<Website>, pods: ResourceClient<V1Pod>): Promise<void> {
  const status = undefined as Website['status'] | undefined;
  const written = await apply(WEBSITES, { status, spec: {} });
  const pod = await applyTo(pods, { spec: { containers: [{ name: 'a' }, { image: 'b' }] } }, { fieldManager: 'a' });
  const map = await apply(kind<V1ConfigMap>('configmaps/v1'), { metadata: { name: 'a' }, data: { a: 'b' } });
  const untyped = await apply('configmaps/v1', { data: { n: 5 } });
  const other = await apply(MAPS, { metadata: {}, data: { n: 5 } });
  await apply(kind('configmaps/v1'), { data: { n: 5 } });
  claim<Equal<[typeof written, typeof pod, typeof map], [Website, V1Pod, V1ConfigMap]>>();
  claim<Equal<[typeof untyped, typeof other], [KubernetesObject, KubernetesObject]>>();
  for (const page of owned(PAGES)) await apply(PAGES, page);
  // @ts-expect-error the image is a text
  await applyTo(pods, { spec: { containers: [{ image: 1 }] } }, { fieldManager: 'a' });
  // @ts-expect-error it has no such member
  await apply(kind<V1ConfigMap>('configmaps/v1'), { dta: {} });
}

/** What does not compile. */
function refuses(operator: Operator): void {
  // @ts-expect-error without reconcile
  operator.controller({ for: WEBSITES });
  // @ts-expect-error an unknown option
  operator.controller({ for: WEBSITES, reconcile: () => {}, own: [PAGES] });
  operator.controller({
    for: WEBSITES,
    // @ts-expect-error it has no such member
    watches: [{ kind: PAGES, keysOf: ({ website }) => [website] }],
    reconcile: ({ object, get, apply }) => {
      // @ts-expect-error it may be gone
      object.spec.replicas;
      // @ts-expect-error it is shared
      if (object) object.spec.replicas = 1;
      // @ts-expect-error it may not be there
      get(PAGES, 'a').text;
      // @ts-expect-error an unknown option
      void apply(PAGES, {}, { forced: true });
      // @ts-expect-error it has no such member
      void apply(WEBSITES, { spc: { replicas: 1 } });
      // @ts-expect-error nor this one, further down
      void apply(WEBSITES, { spec: { replica: 1 } });
      // @ts-expect-error a number is expected
      void apply(WEBSITES, { metadata: { name: 'a' }, spec: { replicas: 'one' } });
      // @ts-expect-error labels are texts
      void apply(PAGES, { metadata: { labels: { a: 1 } } });
    },
  });
  // @ts-expect-error a result of the wrong kind
  operator.controller({ for: WEBSITES, reconcile: () => ({ requeueAfterMs: '1s' }) });
  // @ts-expect-error keysOf returns a list
  operator.controller({ for: WEBSITES, watches: [{ kind: PAGES, keysOf: ({ text }) => text }], reconcile: () => {} });
}

const websites = controller({
  for: WEBSITES,
  owns: [PAGES],
  watches: [{ kind: SITES, keysOf: ({ website }) => [website] }],
  reconcile: ({ object }) => void object?.spec.replicas,
});
const pages = controller({ for: { kind: PAGES, when: generationChanged }, reconcile: ({ object }) => void object?.text });

/** Controllers of several types fit into one list. */
const all: readonly OperatorControllerOptions[] = [websites, pages];

/** So a function that is given its request can be written alone. */
const reconcile = ({ object, namespace }: ReconcileRequest<Website>): string => `${namespace} ${object?.spec.replicas}`;

it('has controllers of several types in one list', () => {
  expect(all.map((each) => each.name)).toEqual([undefined, undefined]);
  expect(compiles(infers, applies, refuses, reconcile)).toBe(4);
});
