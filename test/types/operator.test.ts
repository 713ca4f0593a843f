import { expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import {
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
  expect(compiles(infers, refuses, reconcile)).toBe(3);
});
