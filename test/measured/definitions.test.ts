// What definitions cost, in processor time. Nothing runs beside these tests.
import { afterAll, expect, test } from 'vitest';
import { crds } from '../../bench/definitions/crds.ts';
import type { Crd } from '../../src/apiserver/definitions/crd.ts';
import { ApiServer } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';

const CRDS = 'customresourcedefinitions.apiextensions.k8s.io/v1';
const closing: ApiServer[] = [];
afterAll(async () => {
  for (const server of closing) await server.shutdown();
});

const begun = (storage: MemoryStorage): ApiServer => {
  const server = new ApiServer({ storage, resources: [], customResourceDefinitions: true });
  closing.push(server);
  return server;
};

async function cpuMs(run: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage();
  await run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

const get = async (server: ApiServer, path: string): Promise<string> =>
  (await server.fetch(new Request(`http://127.0.0.1${path}`))).text();

/** Creates all, and resolves when the last one is established. */
async function define(server: ApiServer, all: readonly Crd[]): Promise<void> {
  const definitions = server.resource<Crd>(CRDS);
  for (const each of all) await definitions.create(each);
  await served(server, all);
}

async function served(server: ApiServer, all: readonly Crd[]): Promise<void> {
  const due = new Set(all.map(({ spec }) => spec.group));
  for (;;) {
    const { groups } = JSON.parse(await get(server, '/apis')) as { groups: readonly { name: string }[] };
    if (groups.filter(({ name }) => due.has(name)).length < due.size) continue;
    const { items } = await server.resource<Crd>(CRDS).list();
    if (items.every(({ status }) => status?.conditions?.some(({ type }) => type === 'Established'))) return;
  }
}

test('60 definitions of real sizes are created in less than 3 s, and OpenAPI v2 is there in less than 500 ms', {
  timeout: 120_000,
}, async () => {
  const all = crds() as readonly Crd[];
  const server = begun(new MemoryStorage());
  await server.ready;
  expect(all).toHaveLength(60);
  expect(await cpuMs(() => define(server, all))).toBeLessThan(3_000);
  let document = '';
  const ms = await cpuMs(async () => {
    document = await get(server, '/openapi/v2');
  });
  expect(Object.keys(JSON.parse(document).definitions).length).toBeGreaterThan(60);
  expect(ms).toBeLessThan(500);
});

test('a server with 1,000 definitions starts in less than 20 s', { timeout: 240_000 }, async () => {
  const all = Array.from({ length: 17 }, (_, at) =>
    (crds() as readonly Crd[]).map((each): Crd => {
      const group = `no${at}.${each.spec.group}`;
      return { ...each, metadata: { name: `${each.spec.names.plural}.${group}` }, spec: { ...each.spec, group } };
    }),
  ).flat();
  const storage = new MemoryStorage();
  const first = begun(storage);
  await first.ready;
  await define(first, all.slice(0, 1_000));
  const second = begun(storage);
  const ms = await cpuMs(async () => {
    await second.ready;
    await served(second, all.slice(0, 1_000));
    await get(second, '/openapi/v2');
  });
  expect(ms).toBeLessThan(20_000);
});
