// Whatever is sent to a webhook is answered: a review with allowed or denied, anything else with a refusal. And what `mutate` makes of
// an object arrives, whatever it makes.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonPatch, toOperations } from '../../src/apiserver/patch/json-patch.ts';
import { Webhooks } from '../../src/operator/index.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { runs } from '../runs.ts';
import { canonical, changed, edited, type Json, json, object, value } from './json-edits.ts';

const REVIEW = {
  kind: 'AdmissionReview',
  apiVersion: 'admission.k8s.io/v1',
  request: {
    uid: 'u',
    resource: { group: 'g', version: 'v1', resource: 'things' },
    subResource: '',
    name: 'a',
    namespace: 'n',
    operation: 'UPDATE',
    userInfo: { username: 'ann' },
    object: { kind: 'Thing' },
    oldObject: { kind: 'Thing' },
    dryRun: false,
    options: { fieldManager: 'me' },
  },
};

// biome-ignore lint/suspicious/noExplicitAny: tests look into what came over the wire
async function send(webhooks: Webhooks, path: string, body: string): Promise<{ code: number; body: any }> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  const response = await webhooks.fetch(new Request(`http://127.0.0.1${path}`, init));
  return { code: response.status, body: await response.json() };
}

describe('webhooks', () => {
  test('answer everything', async () => {
    const errors: unknown[] = [];
    const hooks = { mutate: () => {}, validate: () => {}, convert: (each: object) => each };
    const webhooks = new Webhooks({ ...hooks, onError: (error) => errors.push(error) });
    const seeds = fc.array(fc.nat(40), { minLength: 1, maxLength: 4 });
    const cut = fc.option(fc.nat(300), { freq: 1 });
    const path = fc.constantFrom('/mutate', '/validate', '/mutate', '/validate', '/convert');
    const inside = fc.constantFrom(true, true, true, false);
    let allowed = 0;
    const property = fc.asyncProperty(seeds, value, cut, path, inside, async (at, other, length, where, isInside) => {
      const change = (whole: unknown): unknown => changed(json(whole), [...at, 0], other) ?? null;
      const text = JSON.stringify(isInside ? { ...REVIEW, request: change(REVIEW.request) } : change(REVIEW));
      const { code, body } = await send(webhooks, where, length === null ? text : text.slice(0, length));
      expect([200, 400]).toContain(code);
      if (code === 400) expect(body).toMatchObject({ kind: 'Status', code: 400, reason: 'BadRequest' });
      else expect(body.response).toMatchObject({ uid: expect.any(String), allowed: true });
      if (code === 200) allowed++;
    });
    const numRuns = runs(2_000, { least: 200 });
    await fc.assert(property, { numRuns });
    expect([errors, webhooks.inWork]).toEqual([[], 0]);
    expect(allowed).toBeGreaterThan(numRuns / 20);
    expect(allowed).toBeLessThan(numRuns);
  });

  test('tell what mutate has made, in place or by another object', async () => {
    let made: Json = {};
    const webhooks = new Webhooks({
      mutate: ({ object: own, name }) => {
        if (name === 'other') return made;
        for (const each of Object.keys(own ?? {})) delete (own as Json)[each];
        for (const [each, inner] of Object.entries(made)) Object.defineProperty(own, each, { value: inner, enumerable: true });
        return undefined;
      },
    });
    const pair = fc.oneof(edited, fc.record({ before: object, after: object }));
    const property = fc.asyncProperty(pair, fc.constantFrom('other', 'own'), async ({ before, after }, name) => {
      made = json(after);
      const request = { ...REVIEW.request, name, object: json(before) };
      const { code, body } = await send(webhooks, '/mutate', JSON.stringify({ ...REVIEW, request }));
      expect([code, body.response.allowed]).toEqual([200, true]);
      const { patch } = body.response as { patch?: string };
      const operations = patch === undefined ? [] : (JSON.parse(Buffer.from(patch, 'base64').toString()) as unknown[]);
      expect(operations.length > 0).toBe(patch !== undefined);
      expect(canonical(atOnce(jsonPatch(json(before), atOnce(toOperations(operations)))))).toBe(canonical(json(after)));
    });
    await fc.assert(property, { numRuns: runs(1_000) });
  });
});
