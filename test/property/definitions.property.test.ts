// Definitions at run time, changed at random through several servers of one storage, which end and begin anew in between: once nothing
// happens any more, all servers serve what the stored definitions say, and nothing else is left.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { runs } from '../runs.ts';
import { remote } from '../unit/apiserver-rig.ts';
import { CRDS, crdOf } from '../unit/crd-rig.ts';
import { macrotask } from '../unit/support.ts';

const PLURALS = ['as', 'bs', 'cs'] as const;
type Plural = (typeof PLURALS)[number];
const KINDS = ['A', 'B', 'C'] as const;

type Spec = Extract<Step, { readonly do: 'define' | 'change' }>;

type Step =
  | {
      readonly do: 'define' | 'change';
      readonly plural: Plural;
      readonly kind: string;
      readonly short: string;
      readonly v2: boolean;
    }
  | { readonly do: 'undefine' | 'release'; readonly plural: Plural }
  | { readonly do: 'create'; readonly plural: Plural; readonly name: string; readonly held: boolean }
  | { readonly do: 'restart' | 'turn' };

const plural = fc.constantFrom(...PLURALS);
const spec = { kind: fc.constantFrom(...KINDS), short: fc.constantFrom('x', 'y', 'as'), v2: fc.boolean() };
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('define' as const), plural, ...spec }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('change' as const), plural, ...spec }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('undefine' as const, 'release' as const), plural }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('create' as const), plural, name: fc.constantFrom('p', 'q'), held: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('restart' as const, 'turn' as const) }) },
);
const steps = fc.array(fc.record({ at: fc.nat(1), step }), { minLength: 1, maxLength: 25 });

interface Server {
  readonly api: ApiServer;
  readonly clock: FakeClock;
}

interface Crd extends KubernetesObject {
  readonly spec: { readonly versions: readonly { readonly name: string; readonly served: boolean }[] };
  readonly status: {
    readonly acceptedNames: { readonly plural: string; readonly kind: string; readonly shortNames?: readonly string[] };
    readonly conditions: readonly { readonly type: string; readonly status: string }[] | null;
  };
}

/** What there is, and what is asked of it. */
class World {
  readonly storage: MemoryStorage = new MemoryStorage();
  readonly servers: Server[] = [];
  readonly errors: unknown[] = [];
  readonly asked: Promise<unknown>[] = [];

  begin(): Server {
    const clock = new FakeClock();
    const api = new ApiServer({
      ...{ storage: remote(this.storage), resources: [], customResourceDefinitions: true, clock },
      onError: (error) => this.errors.push(error),
    });
    return { api, clock };
  }

  async call(at: number, method: string, path: string, body?: unknown): Promise<{ code: number; text: string }> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const init = { method, headers: { 'content-type': type }, body: body === undefined ? null : JSON.stringify(body) };
    const answer = await (this.servers[at] as Server).api.fetch(new Request(`http://127.0.0.1${path}`, init));
    return { code: answer.status, text: await answer.text() };
  }

  async do(at: number, one: Step): Promise<void> {
    const ask = (...args: [method: string, path: string, body?: unknown]): void =>
      void this.asked.push(this.call(at, ...args).then(({ code, text }) => expect([code, text]).not.toEqual([500, text])));
    if (one.do === 'turn') await macrotask();
    else if (one.do === 'restart') {
      const before = this.servers[at] as Server;
      this.servers[at] = this.begin();
      this.asked.push(before.api.shutdown().then(() => expect(before.clock.pending).toBe(0)));
    } else if (one.do === 'define') ask('POST', CRDS, crdIn(one));
    else if (one.do === 'change')
      ask('PATCH', `${CRDS}/${one.plural}.example.com`, { spec: (crdIn(one) as { spec: object }).spec });
    else if (one.do === 'undefine') ask('DELETE', `${CRDS}/${one.plural}.example.com`);
    else if (one.do === 'create') {
      const metadata = { name: one.name, ...(one.held && { finalizers: ['example.com/held'] }) };
      // Of one of these kinds, if it is defined at all.
      for (const kind of KINDS) ask('POST', objects(one.plural), { apiVersion: 'example.com/v1', kind, metadata });
    } else {
      const { plural: own } = one as Step & { readonly plural: Plural };
      for (const name of ['p', 'q']) ask('PATCH', `${objects(own)}/${name}`, { metadata: { finalizers: null } });
    }
  }

  /** Lets everything happen that will. */
  async settle(isSettled: () => Promise<boolean>): Promise<void> {
    for (let round = 0; round < 400; round++) {
      for (const { clock } of this.servers) clock.advance(1_000);
      for (let turn = 0; turn < 4; turn++) await macrotask();
      if (round > 10 && round % 5 === 0 && (await isSettled())) return;
    }
  }
}

const objects = (name: string, version: string = 'v1'): string => `/apis/example.com/${version}/namespaces/default/${name}`;

function crdIn({ plural: name, kind, short, v2 }: Spec): object {
  const { spec: made, ...crd } = crdOf({}, {}, name, kind) as { spec: { versions: readonly object[]; names: object } };
  const versions = [...made.versions, ...(v2 ? [{ ...made.versions[0], name: 'v2', storage: false }] : [])];
  return { ...crd, spec: { ...made, names: { ...made.names, shortNames: [short] }, versions } };
}

const isTrue = ({ status }: Crd, type: string): boolean =>
  status.conditions?.some((each) => each.type === type && each.status === 'True') ?? false;

/** What the stored definitions say that is served: the versions of each plural. */
function expected(crds: readonly Crd[]): Record<string, readonly string[]> {
  const established = crds.filter((crd) => isTrue(crd, 'Established'));
  return Object.fromEntries(
    PLURALS.map((name) => {
      const own = established.find(({ status }) => status.acceptedNames.plural === name);
      return [name, own ? own.spec.versions.map((each) => each.name).sort() : []];
    }),
  );
}

async function served(world: World, at: number): Promise<Record<string, readonly string[]>> {
  const found: [string, string[]][] = [];
  for (const name of PLURALS) {
    const versions: string[] = [];
    for (const version of ['v1', 'v2'])
      if ((await world.call(at, 'GET', objects(name, version))).code === 200) versions.push(version);
    found.push([name, versions]);
  }
  return Object.fromEntries(found);
}

async function check(all: readonly { readonly at: number; readonly step: Step }[]): Promise<void> {
  const world = new World();
  world.servers.push(world.begin(), world.begin());
  for (const { at, step: one } of all) await world.do(at, one);
  await Promise.all(world.asked);
  const crds = async (): Promise<Crd[]> =>
    (await world.storage.scope('apiextensions.k8s.io/customresourcedefinitions/').list()).items as Crd[];
  const held = async (name: string): Promise<KubernetesObject[]> => [
    ...(await world.storage.scope(`example.com/${name}/`).list()).items,
  ];
  const isSettled = async (): Promise<boolean> => {
    for (const crd of await crds()) {
      const going = crd.metadata?.deletionTimestamp !== undefined;
      const left = await held(crd.metadata?.name?.split('.')[0] ?? '');
      if (going && left.every(({ metadata }) => !metadata?.finalizers?.length)) return false;
      if (!going && crd.status.conditions === null) return false;
    }
    return true;
  };
  await world.settle(isSettled);
  expect(await isSettled()).toBe(true);
  const stored = await crds();
  for (const at of [0, 1]) expect(await served(world, at)).toEqual(expected(stored));
  // No name belongs to two.
  const resources = stored.flatMap(
    ({
      status: {
        acceptedNames: { plural: own, shortNames = [] },
      },
    }) => [own, ...shortNames],
  );
  const names = resources.filter((name) => name !== '');
  const ownShort = (crd: Crd): boolean => crd.status.acceptedNames.shortNames?.includes(crd.status.acceptedNames.plural) ?? false;
  expect(new Set(names).size).toBe(names.length - stored.filter(ownShort).length);
  const kinds = stored.map(({ status }) => status.acceptedNames.kind).filter((kind) => kind !== '');
  expect(new Set(kinds).size).toBe(kinds.length);
  // Objects are only where they are served.
  for (const name of PLURALS) {
    if (!stored.some(({ metadata }) => metadata?.name === `${name}.example.com`)) expect(await held(name)).toEqual([]);
  }
  // What waits for no other name is Established.
  for (const crd of stored) {
    if (!isTrue(crd, 'Established') && crd.metadata?.deletionTimestamp === undefined)
      expect(isTrue(crd, 'NamesAccepted')).toBe(false);
  }
  for (const { api, clock } of world.servers) {
    await api.shutdown();
    expect(clock.pending).toBe(0);
  }
  expect(world.storage.stats.watches).toBe(0);
  expect(world.errors).toEqual([]);
  await world.storage.close();
}

describe('definitions', () => {
  test('are served alike by all servers, whatever happened', async () => {
    await fc.assert(fc.asyncProperty(steps, check), { numRuns: runs(80) });
  });
});
