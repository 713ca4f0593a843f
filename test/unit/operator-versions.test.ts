// Operators on an `ApiServer` in the same process that has a kind in two versions: each sees and writes the one that it names.
import { expect, it } from 'vitest';
import { ApiServer, CONFIG_MAPS, EVENTS, NAMESPACES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/index.ts';
import {
  type Condition,
  controllerOf,
  kind,
  Operator,
  type OperatorControllerOptions,
  setCondition,
} from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { CONFIG_MAP, type ConfigMap, settle, started } from './operator-rig.ts';

interface Tea extends KubernetesObject {
  /** In v1 a text with commas, in v2 a list. */
  readonly spec: { readonly herbs: string | readonly string[] };
  readonly status?: { readonly conditions?: readonly Condition[] };
}
interface Told extends KubernetesObject {
  readonly involvedObject: { readonly apiVersion: string };
  readonly message: string;
}
const TEA = { group: 'example.com', plural: 'teas', kind: 'Tea', namespaced: true } as const;
const [V1, V2] = [kind<Tea>({ ...TEA, version: 'v1' }), kind<Tea>({ ...TEA, version: 'v2' })];

it('of two versions of a kind come to what each says, whichever the objects were written in', async () => {
  const convert = (object: KubernetesObject, version: string): KubernetesObject => {
    const { herbs } = (object as Tea).spec;
    const all = typeof herbs === 'string' ? herbs.split(',') : herbs;
    return { ...object, spec: { herbs: version === 'example.com/v2' ? all : all.join() } } as KubernetesObject;
  };
  const clock = new FakeClock();
  const resources = [
    { ...V1, status: true },
    { ...V2, status: true },
    CONFIG_MAPS,
    NAMESPACES,
    ...EVENTS,
  ] as ResourceDefinition[];
  const server = new ApiServer({ storage: new MemoryStorage(), resources, convert: { 'teas.example.com': convert }, clock });
  const [v1, v2] = [server.resource(V1).in('default'), server.resource(V2).in('default')];
  const said: string[] = [];
  const failures: unknown[] = [];
  const controller = (of: typeof V1): OperatorControllerOptions<Tea> => ({
    for: of,
    name: of.version,
    owns: [CONFIG_MAP],
    finalizer: {
      name: `example.com/${of.version}`,
      finalize: ({ object }) => void said.push(`${of.version} ${JSON.stringify(object.spec.herbs)}`),
    },
    reconcile: async ({ object, apply, updateStatus, events }) => {
      if (!object) return;
      const herbs = JSON.stringify(object.spec.herbs);
      await apply(CONFIG_MAP, { metadata: { name: of.version }, data: { herbs } });
      await updateStatus((draft) => setCondition(draft, { type: of.version, status: 'True', reason: 'Made' }));
      events.normal('Made', herbs);
    },
  });
  await v1.create({ metadata: { name: 'a' }, spec: { herbs: 'mint' } });
  const operator = new Operator({ cluster: server, name: 'teas', clock, onError: (error) => failures.push(error) });
  const { stop } = await started(operator.controller(controller(V1)).controller(controller(V2)));
  await v2.patch('a', { spec: { herbs: ['sage', 'thyme'] } });
  await clock.advanceAsync(1_000); // what met a conflict

  const maps = (await server.resource<ConfigMap>('configmaps').list()).items;
  expect(maps.map((map) => [map.metadata?.name, map.data?.herbs, controllerOf(map)?.apiVersion])).toEqual([
    ['v1', '"sage,thyme"', 'example.com/v1'],
    ['v2', '["sage","thyme"]', 'example.com/v2'],
  ]);
  for (const each of [v1, v2]) {
    expect((await each.get('a')).status?.conditions?.map(({ type }) => type).sort()).toEqual(['v1', 'v2']);
  }
  await v2.delete('a');
  await settle();
  await clock.advanceAsync(1_000);
  expect(said.sort()).toEqual(['v1 "sage,thyme"', 'v2 ["sage","thyme"]']);
  expect((await v1.list()).items).toEqual([]);
  await stop();
  const events = (await server.resource<Told>('events/v1').list()).items;
  expect(events.map(({ involvedObject, message }) => `${involvedObject.apiVersion} ${message}`).sort()).toEqual([
    'example.com/v1 "mint"',
    'example.com/v1 "sage,thyme"',
    'example.com/v2 ["mint"]',
    'example.com/v2 ["sage","thyme"]',
  ]);
  expect(failures).toEqual([]);
  await server.shutdown();
});
