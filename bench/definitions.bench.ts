import type { Crd } from '../src/apiserver/definitions/crd.ts';
import { ApiServer } from '../src/apiserver/index.ts';
import { MemoryStorage } from '../src/storage/index.ts';
import { crds } from './definitions/crds.ts';
import type { Prepared, Workload } from './workload.ts';

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** Each round has a server and definitions of its own: nothing is known of them from before. */
async function prepare(): Promise<Prepared> {
  const all = crds() as readonly Crd[];
  const bodies = all.map((each) => JSON.stringify(each));
  const due = all.reduce((count, { spec }) => count + spec.versions.length, 0);
  const round = async (): Promise<number[]> => {
    const api = new ApiServer({ storage: new MemoryStorage(), resources: [], customResourceDefinitions: true });
    const call = async (path: string, body: string | null = null): Promise<string> => {
      const init = { method: body === null ? 'GET' : 'POST', headers: { 'content-type': 'application/json' }, body };
      const response = await api.fetch(new Request(`http://127.0.0.1${path}`, init));
      const text = await response.text();
      if (!response.ok) throw new Error(`wrong answer: ${path}: ${response.status} ${text.slice(0, 500)}`);
      return text;
    };
    await api.ready;
    const began = performance.now();
    for (const body of bodies) await call(CRDS, body);
    const isServed = async (): Promise<boolean> => {
      const { items } = JSON.parse(await call(CRDS)) as { items: readonly Crd[] };
      return items.every(({ status }) => status.conditions?.some(({ type }) => type === 'Established'));
    };
    while (!(await isServed()));
    const loaded = performance.now();
    const { definitions } = JSON.parse(await call('/openapi/v2'));
    const read = performance.now();
    const kinds = Object.keys(definitions).filter((name) => /^com\.example\..*(?<!List)$/.test(name)).length;
    if (kinds !== due) throw new Error(`wrong answer: ${kinds} kinds in /openapi/v2, with ${due} due`);
    await api.shutdown();
    return [loaded - began, read - loaded];
  };
  return { round };
}

/** What a user waits for who installs the definitions of a cluster, and then asks for what there is. */
export const definitions: Workload = {
  name: 'definitions',
  about: '60 CustomResourceDefinitions of 66 KB on average: creating all of them, and the first OpenAPI document after that',
  reference: 'watchmux',
  mostRounds: 5,
  shapes: () => [{ definitions: 60 }],
  figures: () => [
    { shape: { of: 'creating all' }, unit: 'ms', better: 'lower' },
    { shape: { of: 'first /openapi/v2' }, unit: 'ms', better: 'lower' },
  ],
  entries: () => [{ name: 'watchmux', queue: 'none' }],
  prepare,
};
