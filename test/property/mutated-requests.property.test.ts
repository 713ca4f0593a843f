// A client's mistake is never a 500 of ours, and never told to the program. test/peers/mutated.test.ts compares the answers.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ApiServer, CONFIG_MAPS, LEASES, NAMESPACES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { type Mutated, mutatedRequests, NAMESPACE, SHIPS, TARGETS } from '../peers/differential/mutations.ts';
import { runs } from '../runs.ts';

test('no request is answered with 500', async () => {
  const errors: unknown[] = [];
  const resources = [CONFIG_MAPS, LEASES, NAMESPACES, SHIPS] as ResourceDefinition[];
  const onError = (error: unknown): number => errors.push(error);
  const server = new ApiServer({ storage: new MemoryStorage(), resources, customResourceDefinitions: true, onError });
  // As upstream answers it: an object without replicas has no Scale.
  const noScale = (text: string): boolean => /the spec replicas field \\".*\\" (does not exist|is not a whole number)/.test(text);
  const call = async ({ method, path, headers, body }: Mutated): Promise<number> => {
    const init = { method, headers, ...(body !== undefined && { body: body as BodyInit }) };
    const response = await server.fetch(new Request(`http://127.0.0.1${path}`, init));
    const isWatch = response.ok && path.includes('watch');
    if (!isWatch && response.headers.get('content-type') === 'application/json') {
      const text = await response.text();
      return response.status === 500 && noScale(text) ? 404 : response.status;
    }
    await response.body?.cancel();
    return response.status;
  };
  const restore = async (): Promise<void> => {
    const json = { 'content-type': 'application/json' };
    const metadata = { name: NAMESPACE };
    await call({ method: 'POST', path: '/api/v1/namespaces', headers: json, body: JSON.stringify({ metadata }) });
    for (const { path, object } of TARGETS) await call({ method: 'POST', path, headers: json, body: JSON.stringify(object) });
  };
  const codes = new Map<number, number>();
  const numRuns = runs(4_000);
  await fc.assert(
    fc.asyncProperty(mutatedRequests(TARGETS), async (request) => {
      errors.length = 0;
      const code = await call(request);
      codes.set(code, (codes.get(code) ?? 0) + 1);
      if (code === 404 || request.method === 'DELETE') await restore();
      expect(code).toBeLessThan(500);
      expect(errors).toEqual([]);
    }),
    { numRuns },
  );
  if (process.env.WATCHMUX_SHOW) console.log(codes);
  // One in two hundred is a conflict.
  for (const code of [200, 201, 400, 404, 415, 422, ...(numRuns < 4_000 ? [] : [409])])
    expect(codes.get(code), String(code)).toBeGreaterThan(0);
  await server.shutdown();
}, 600_000);
