// Our garbage collector against Kubernetes' own, which works for a real kube-apiserver: the same random graphs of objects, and the
// same deletions. Once both are quiet, the same objects are there, with the same owners and finalizers.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiServer as OwnServer } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { CONFIG_MAPS, EVERYTHING, quiet } from '../garbage-world.ts';
import { type Answer, type ApiServer, startApiServer } from './apiserver.ts';
import { builtBinary, GARBAGE_COLLECTOR, KUBE_APISERVER } from './binary.mjs';

const binary = builtBinary(GARBAGE_COLLECTOR);
const GRAPHS = 24;

/** What happens to some objects: their names are numbers, and each is of one of two kinds. */
interface Story {
  readonly objects: readonly {
    readonly owners: readonly Owner[];
    readonly finalizers: readonly string[];
    readonly isMap: boolean;
  }[];
  readonly deletions: readonly { readonly at: number; readonly policy: string | undefined }[];
  /** Objects whose finalizers are taken away after that. */
  readonly freed: readonly number[];
}

interface Owner {
  /** The number of an earlier object; -1: one that never was. */
  readonly at: number;
  readonly blocks: boolean;
  readonly isWrong: boolean;
}

/** Numbers that are the same in each run. */
function drawn(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function storyOf(seed: number): Story {
  const random = drawn(seed);
  const pick = (below: number): number => Math.floor(random() * below);
  const chance = (share: number): boolean => random() < share;
  const count = 4 + pick(7);
  // Where some block, some do not, and some are held, Kubernetes' own end depends on which of its workers is faster.
  const blocks = chance(0.7);
  const objects = Array.from({ length: count }, (_, at) => {
    const owners = new Map<number, Owner>();
    for (let each = pick(3); each > 0 && at > 0; each--) {
      const owner = chance(0.1) ? -1 : pick(at);
      owners.set(owner, { at: owner, blocks, isWrong: chance(0.05) });
    }
    return { owners: [...owners.values()], finalizers: blocks && chance(0.2) ? ['example.com/held'] : [], isMap: chance(0.5) };
  });
  const policies = [undefined, 'Background', 'Foreground', 'Foreground', 'Orphan'];
  const deletions = Array.from({ length: 1 + pick(3) }, () => ({ at: pick(count), policy: policies[pick(policies.length)] }));
  return {
    objects,
    deletions,
    freed: objects.flatMap(({ finalizers }, at) => (finalizers.length > 0 && chance(0.6) ? [at] : [])),
  };
}

/** A server, its paths and how it is asked. */
interface Side {
  readonly request: (method: string, path: string, body?: unknown, type?: string) => Promise<Answer>;
  readonly settled: () => Promise<void>;
}

const pathOf = (namespace: string, isMap: boolean): string =>
  `/api/v1/namespaces/${namespace}/${isMap ? 'configmaps' : 'secrets'}`;
const MERGE = 'application/merge-patch+json';

/** Plays a story in a namespace of its own. */
async function play({ request, settled }: Side, story: Story, namespace: string): Promise<void> {
  const uids: string[] = [];
  for (const [at, { owners, finalizers, isMap }] of story.objects.entries()) {
    const ownerReferences = owners.map((owner) => ({
      ...{ apiVersion: 'v1', kind: (story.objects[owner.at]?.isMap ?? true) ? 'ConfigMap' : 'Secret' },
      ...{ name: owner.isWrong ? 'wrong' : `o${owner.at}`, uid: uids[owner.at] ?? `never-${namespace}` },
      ...(owner.blocks && { blockOwnerDeletion: true }),
    }));
    const created = await request('POST', pathOf(namespace, isMap), {
      metadata: { name: `o${at}`, ownerReferences, finalizers },
    });
    uids.push(created.metadata.uid);
  }
  await settled();
  for (const { at, policy } of story.deletions) {
    const path = `${pathOf(namespace, story.objects[at]?.isMap ?? true)}/o${at}`;
    await request('DELETE', policy ? `${path}?propagationPolicy=${policy}` : path).catch(gone);
    await settled();
  }
  for (const at of story.freed) {
    const path = `${pathOf(namespace, story.objects[at]?.isMap ?? true)}/o${at}`;
    const found = await request('GET', path).catch(gone);
    const finalizers = (found?.metadata.finalizers ?? []).filter((each: string) => each !== 'example.com/held');
    if (found) await request('PATCH', path, { metadata: { finalizers } }, MERGE).catch(gone);
    await settled();
  }
}

/**
 * Resolves when a collector has seen all that was written before: it has seen an object without an owner of each kind, which came
 * after. Kubernetes' own does not wait for that itself: it collects what is to be an orphan if it has not seen it yet.
 */
async function probed({ request }: Side, namespace: string): Promise<void> {
  for (const isMap of [true, false]) {
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'none', uid: `none-${namespace}-${isMap}` }];
    const { metadata } = await request('POST', pathOf(namespace, isMap), {
      metadata: { generateName: 'probe-', ownerReferences },
    });
    const found = (): Promise<Answer> => request('GET', `${pathOf(namespace, isMap)}/${metadata.name}`).catch(gone);
    await expect.poll(found, { timeout: 20_000 }).toBeUndefined();
  }
}

function gone(error: unknown): undefined {
  if ((error as { code?: number }).code === 404) return undefined;
  throw error;
}

/** What is left: names, owners by name, finalizers, and whether an object is being deleted. */
async function left({ request }: Side, namespace: string): Promise<unknown> {
  const found = [];
  for (const isMap of [true, false]) {
    const { items } = await request('GET', pathOf(namespace, isMap));
    for (const { metadata } of items) {
      const { name, ownerReferences = [], finalizers = [], deletionTimestamp } = metadata;
      if (name === 'kube-root-ca.crt') continue;
      const owners = ownerReferences.map((each: Answer) => [each.name, each.blockOwnerDeletion ?? false]);
      const isLeaving = deletionTimestamp !== undefined;
      // An owner that has begun to wait is taken away from an object, or not, by when it is looked at.
      found.push({ name, owners: isLeaving ? undefined : owners, finalizers, isLeaving });
    }
  }
  return found;
}

describe.runIf(binary && builtBinary(KUBE_APISERVER))('garbage as Kubernetes collects it', () => {
  let real: ApiServer;
  let collector: ChildProcess;
  const storage = new MemoryStorage();
  const secrets = { ...CONFIG_MAPS, plural: 'secrets', kind: 'Secret', shortNames: [] };
  const own = new OwnServer({
    ...{ storage, garbageCollection: true },
    resources: [...EVERYTHING, { group: '', version: 'v1', plural: secrets.plural, kind: secrets.kind }],
  });

  beforeAll(async () => {
    real = await startApiServer();
    const args = ['-server', real.url, '-ca', real.caFile, '-token', real.token];
    collector = spawn(binary as string, args, { stdio: ['pipe', 'ignore', 'ignore'] });
    await own.ready;
  });
  afterAll(async () => {
    collector?.stdin?.end();
    if (collector && collector.exitCode === null) await once(collector, 'exit');
    await real?.stop();
    await own.shutdown();
  });

  const ours: Side = {
    request: async (method, path, body, type = 'application/json') => {
      const init = body === undefined ? { method } : { method, body: JSON.stringify(body), headers: { 'content-type': type } };
      const response = await own.fetch(new Request(`http://127.0.0.1${path}`, init));
      const answer = await response.json();
      if (!response.ok) throw Object.assign(new Error(`${method} ${path}: ${answer.message}`), { code: response.status });
      return answer;
    },
    settled: () => quiet(storage),
  };

  test(`${GRAPHS} graphs end alike`, { timeout: 240_000 }, async () => {
    for (let seed = 1; seed <= GRAPHS; seed++) {
      const story = storyOf(seed * 7_919);
      const namespace = `graph-${seed}`;
      for (const side of [ours, real]) await side.request('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
      // What each step leaves here is what it must leave there before the next one.
      const expected: unknown[] = [];
      await play(
        {
          ...ours,
          settled: async () => {
            await ours.settled();
            expected.push(await left(ours, namespace));
          },
        },
        story,
        namespace,
      );
      let step = 0;
      const theirs: Side = {
        request: (...args) => real.request(...args),
        settled: async () => {
          await probed(theirs, namespace);
          const wanted = expected[step++];
          await expect
            .poll(() => left(theirs, namespace), {
              timeout: 20_000,
              message: `graph ${seed}, step ${step}: ${JSON.stringify(story)}`,
            })
            .toEqual(wanted);
        },
      };
      await play(theirs, story, namespace);
      // It stays so.
      expect([seed, await left(theirs, namespace)]).toEqual([seed, expected.at(-1)]);
    }
  });
});
