// Requests with mistakes to a real kube-apiserver and to ours: ours is to fail (500) only where the real one does, in the same words, and
// both are to say that the client did, with the same code, but for what is listed in differential/mistakes.ts. WATCHMUX_RUNS scales how many, WATCHMUX_MUTATED_SEED
// makes others: .ci/full draws one, and the title and the last line tell it.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CONFIG_MAPS, LEASES, NAMESPACES, ApiServer as OurServer, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { runs } from '../runs.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { EXPLAINED, type Met } from './differential/mistakes.ts';
import { type Mutated, mutatedRequests, NAMESPACE, SHIPS, SHIPS_CRD, TARGETS, type Target } from './differential/mutations.ts';
import type { SecureFetch } from './secure-fetch.ts';

const START_MS = 90_000;
const PATIENCE_MS = 20_000;
const COUNT = runs(1_500);
const seed = Number(process.env.WATCHMUX_MUTATED_SEED ?? 1);
/** Another manager than that of any request. */
const BY = 'fieldManager=test';
const JSON_TYPE = { 'content-type': 'application/json' };

interface Side {
  readonly url: string;
  /** The same client for both servers, and one that sends a path as it is. */
  readonly fetch: SecureFetch;
}

/** The code of an answer, and its text. A watch is left as soon as it has begun. */
async function ask({ url, fetch }: Side, { method, path, headers, body }: Mutated): Promise<{ code: number; text: string }> {
  const length = body !== undefined && { 'content-length': String(Buffer.byteLength(body)) };
  const init = { method, path, headers: { ...headers, ...length }, ...(body !== undefined && { body }) };
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) });
    const isWatch = method === 'GET' && path.includes('watch') && response.ok;
    const text = isWatch ? '' : await response.text();
    if (isWatch) await response.body?.cancel();
    return { code: response.status, text };
  } catch (error) {
    return { code: 0, text: String((error as Error).cause ?? error) };
  }
}

/** The words of a refusal, in JSON or YAML. */
function wordsOf(text: string): unknown {
  try {
    return (parse(text) as { message?: unknown } | null)?.message ?? text;
  } catch {
    return text;
  }
}

/** No 500 that upstream does not give, word for word. */
const isSound = ({ theirs, ours }: Met): boolean =>
  (ours.code > 0 && ours.code < 500) || (ours.code === 500 && theirs.code === 500 && wordsOf(ours.text) === wordsOf(theirs.text));
const isSame = (met: Met): boolean => isSound(met) && met.ours.code === met.theirs.code;

function shown({ request, theirs, ours }: Met): string {
  const { method, path, headers, body = '' } = request;
  const text = typeof body === 'string' ? body : Buffer.from(body).toString('latin1');
  const what = [`${method} ${path} ${JSON.stringify(headers)}`, text.slice(0, 2_000), theirs.text.slice(0, 300)];
  return [...what, ours.text.slice(0, 300)].join('\n    ');
}

/** Deletes all objects of some kinds, and makes those that the requests are for, by a manager of their own. */
async function restore(side: Side, targets: readonly Target[]): Promise<void> {
  const send = (
    method: string,
    path: string,
    body: object,
    type: string = 'application/json',
  ): Promise<{ code: number; text: string }> =>
    ask(side, { method, path, headers: { 'content-type': type }, body: JSON.stringify(body) });
  for (const { path, object, staysForEver, isDry } of targets) {
    if (isDry) continue;
    const { text } = await ask(side, { method: 'GET', path, headers: {}, body: undefined });
    const { items } = JSON.parse(text) as { items: { metadata: { name: string; finalizers?: string[]; namespace?: string } }[] };
    for (const { metadata } of items) {
      const isOther = staysForEver && metadata.name !== object.metadata.name;
      if (isOther) continue;
      if (metadata.finalizers)
        await send('PATCH', `${path}/${metadata.name}`, { metadata: { finalizers: null } }, 'application/merge-patch+json');
      if (!staysForEver) await send('DELETE', `${path}/${metadata.name}`, {});
    }
    // What it had been applied by is forgotten.
    const anew = { ...object, metadata: { ...object.metadata, managedFields: [{}] } };
    const there = staysForEver && (await send('PUT', `${path}/${object.metadata.name}?${BY}`, anew)).code === 200;
    if (there) continue;
    const { code } = await send('POST', `${path}?${BY}`, object);
    if (code !== 201) throw new Error(`could not restore ${path}: ${code}`);
  }
}

describe.skipIf(isMissing(component('kube-apiserver')))(`mutated requests, seed ${seed}`, () => {
  let real: ApiServer;
  let our: OurServer;
  let server: Server;
  let sides: readonly [Side, Side];
  const errors: unknown[] = [];

  beforeAll(async () => {
    real = await startApiServer();
    await real.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', SHIPS_CRD);
    const ships = TARGETS.find(({ isCustom }) => isCustom)?.path ?? '';
    await eventually(async () => expect((await real.fetch(`${real.url}${ships}`)).status).toBe(200), { intervalMs: 100 });
    const resources = [CONFIG_MAPS, LEASES, NAMESPACES, SHIPS] as ResourceDefinition[];
    our = new OurServer({
      storage: new MemoryStorage(),
      resources,
      customResourceDefinitions: true,
      onError: (error) => errors.push(error),
    });
    await our.ready;
    server = createServer({ keepAliveTimeout: START_MS }, our.handler);
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    sides = [
      { url: real.url, fetch: real.fetch },
      { url, fetch: real.fetch },
    ];
    for (const side of sides) {
      const body = JSON.stringify({ metadata: { name: NAMESPACE } });
      await ask(side, { method: 'POST', path: '/api/v1/namespaces', headers: JSON_TYPE, body });
      await restore(side, TARGETS);
      for (const { path, object, isDry } of TARGETS)
        if (isDry) await ask(side, { method: 'POST', path, headers: JSON_TYPE, body: JSON.stringify(object) });
    }
  }, START_MS * 2);

  afterAll(async () => {
    await our?.shutdown();
    server?.closeAllConnections();
    server?.close();
    await real?.stop();
  }, START_MS);

  it(
    `are answered with the same code`,
    async () => {
      const wrong = new Map<string, string[]>();
      const counts = new Map<number, number>();
      const explained = new Map<string, number>();
      let ofState = 0;
      const restored = async ({ target }: Mutated): Promise<void> => {
        const targets = TARGETS.filter(({ path }) => path === target);
        await Promise.all(sides.map((side) => restore(side, targets)));
      };
      const asked = async (request: Mutated): Promise<Met> => {
        const [theirs, ours] = (await Promise.all(sides.map((side) => ask(side, request)))) as [Met['theirs'], Met['ours']];
        return { request, theirs, ours };
      };
      for (const [at, request] of fc.sample(mutatedRequests(TARGETS), { numRuns: COUNT, seed }).entries()) {
        let met = await asked(request);
        const { code } = met.ours;
        counts.set(code, (counts.get(code) ?? 0) + 1);
        const isExplained = (): boolean => {
          const found = isSound(met) ? EXPLAINED.find(({ is }) => is(met)) : undefined;
          if (found) explained.set(found.reason, (explained.get(found.reason) ?? 0) + 1);
          return found !== undefined;
        };
        if (isSame(met)) {
          if (at % 50 === 49) await restored(request);
          continue;
        }
        // What both refuse changes nothing.
        if (met.theirs.code >= 400 && code >= 400 && isExplained()) continue;
        await restored(request);
        // What was explained before may have left the servers with other objects.
        if (isSound(met)) {
          met = await asked(request);
          await restored(request);
          if (isSame(met)) {
            ofState++;
            continue;
          }
        }
        if (isExplained()) continue;
        const group = `${met.theirs.code} there, ${met.ours.code} here`;
        wrong.set(group, [...(wrong.get(group) ?? []), shown(met)]);
      }
      const differ = [...explained.values()].reduce((sum, each) => sum + each, 0);
      const all = `seed ${seed}: ${COUNT} requests, ${differ} explained, ${ofState} by what is stored`;
      process.stdout.write(`${all}, codes ${JSON.stringify([...counts])}\n`);
      if (process.env.WATCHMUX_SHOW) {
        for (const [reason, count] of explained) process.stdout.write(`${count} ${reason}\n`);
        for (const [group, all] of wrong)
          process.stdout.write(`### ${group}: ${all.length}\n${all.slice(0, Number(process.env.WATCHMUX_SHOW)).join('\n\n')}\n`);
      }
      expect([...wrong].map(([group, all]) => `${group}, ${all.length} times, such as ${all[0]}`)).toEqual([]);
      expect(errors).toEqual([]);
    },
    COUNT * 1_000,
  );
});
