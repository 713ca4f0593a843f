// Requests with mistakes to a real kube-apiserver and to ours: neither is to fail (500), and both are to say that the client did, with the
// same code, but for what is listed in differential/mistakes.ts. WATCHMUX_RUNS scales how many; WATCHMUX_SEED repeats them.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONFIG_MAPS, LEASES, NAMESPACES, ApiServer as OurServer, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { component, isMissing } from '../components.ts';
import { runs } from '../runs.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { EXPLAINED, type Met } from './differential/mistakes.ts';
import { type Mutated, mutatedRequests, NAMESPACE, SHIPS, SHIPS_CRD, TARGETS } from './differential/mutations.ts';

const START_MS = 90_000;
const PATIENCE_MS = 20_000;
const COUNT = runs(1_500);
const seed = Number(process.env.WATCHMUX_SEED ?? Math.floor(Math.random() * 2 ** 31));
const JSON_TYPE = { 'content-type': 'application/json' };

type Fetch = (url: string, init: RequestInit) => Promise<Response>;
interface Side {
  readonly url: string;
  readonly fetch: Fetch;
}

/** The code of an answer, and its text. A watch is left as soon as it has begun. */
async function ask({ url, fetch }: Side, { method, path, headers, body }: Mutated): Promise<{ code: number; text: string }> {
  const length = body !== undefined && { 'content-length': String(Buffer.byteLength(body as string)) };
  const init = { method, headers: { ...headers, ...length }, ...(body !== undefined && { body: body as BodyInit }) };
  try {
    const response = await fetch(`${url}${path}`, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) });
    const isWatch = path.includes('watch');
    const text = isWatch ? '' : await response.text();
    if (isWatch) await response.body?.cancel();
    return { code: response.status, text };
  } catch (error) {
    return { code: 0, text: String((error as Error).cause ?? error) };
  }
}

/** Deletes all objects, and makes those that the requests are for. */
async function restore(side: Side): Promise<void> {
  const send = (
    method: string,
    path: string,
    body: object,
    type: string = 'application/json',
  ): Promise<{ code: number; text: string }> =>
    ask(side, { method, path, headers: { 'content-type': type }, body: JSON.stringify(body) });
  for (const { path, object, staysForEver } of TARGETS) {
    const { text } = await ask(side, { method: 'GET', path, headers: {}, body: undefined });
    const { items } = JSON.parse(text) as { items: { metadata: { name: string; finalizers?: string[]; namespace?: string } }[] };
    for (const { metadata } of items) {
      const isOther = staysForEver && metadata.name !== object.metadata.name;
      if (isOther) continue;
      if (metadata.finalizers)
        await send('PATCH', `${path}/${metadata.name}`, { metadata: { finalizers: null } }, 'application/merge-patch+json');
      if (!staysForEver) await send('DELETE', `${path}/${metadata.name}`, {});
    }
    const { code } = await send('POST', path, object);
    if (code !== 201 && !staysForEver) throw new Error(`could not restore ${path}: ${code}`);
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
    while ((await real.fetch(`${real.url}${ships}`)).status !== 200) await sleep(100);
    const resources = [CONFIG_MAPS, LEASES, NAMESPACES, SHIPS] as ResourceDefinition[];
    our = new OurServer({ storage: new MemoryStorage(), resources, onError: (error) => errors.push(error) });
    await our.ready;
    server = createServer(our.handler);
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    sides = [
      { url: real.url, fetch: real.fetch as unknown as Fetch },
      { url, fetch },
    ];
    for (const side of sides) {
      const body = JSON.stringify({ metadata: { name: NAMESPACE } });
      await ask(side, { method: 'POST', path: '/api/v1/namespaces', headers: JSON_TYPE, body });
      await restore(side);
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
      let others = 0;
      const restored = async (): Promise<void> => void (await Promise.all(sides.map(restore)));
      for (const [at, request] of fc.sample(mutatedRequests(TARGETS), { numRuns: COUNT, seed }).entries()) {
        const [theirs, ours] = (await Promise.all(sides.map((side) => ask(side, request)))) as [Met['theirs'], Met['ours']];
        counts.set(ours.code, (counts.get(ours.code) ?? 0) + 1);
        const isSame = Math.floor(theirs.code / 100) === Math.floor(ours.code / 100);
        if (isSame && theirs.code !== ours.code) others++;
        if (isSame && ours.code < 500) {
          if (at % 200 === 199) await restored();
          continue;
        }
        const found = EXPLAINED.find(({ is }) => is({ request, theirs, ours }));
        if (found && ours.code < 500) explained.set(found.reason, (explained.get(found.reason) ?? 0) + 1);
        else {
          const shown = typeof request.body === 'string' ? request.body : Buffer.from(request.body ?? '').toString('latin1');
          const what = [
            `${request.method} ${request.path} ${JSON.stringify(request.headers)}`,
            shown.slice(0, 700),
            theirs.text.slice(0, 300),
            ours.text.slice(0, 300),
          ];
          const group = `${theirs.code} there, ${ours.code} here`;
          wrong.set(group, [...(wrong.get(group) ?? []), what.join('\n    ')]);
        }
        await restored();
      }
      if (process.env.WATCHMUX_SHOW) {
        console.log('codes', counts, 'other 4xx', others, 'explained', explained);
        for (const [group, all] of wrong)
          console.log(`### ${group}: ${all.length}\n${all.slice(0, Number(process.env.WATCHMUX_SHOW)).join('\n\n')}`);
      }
      expect([...wrong].map(([group, all]) => `${group}, ${all.length} times, such as ${all[0]}`)).toEqual([]);
      expect(errors).toEqual([]);
    },
    COUNT * 1_000,
  );
});
