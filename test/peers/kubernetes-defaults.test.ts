// What is filled in of objects of Kubernetes' own kinds, beside a kube-apiserver without admission: where it depends on other members.
// kubernetes-kinds.test.ts compares an ordinary object of each kind.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ResourceDefinition } from '../../src/apiserver/definition.ts';
import { kubernetesKinds } from '../../src/apiserver/kinds/kubernetes.ts';
import { apiVersionOf } from '../../src/cache/resource-client.ts';
import { component, isMissing } from '../components.ts';
import { killAll, serve } from '../e2e/cli.ts';
import { bodyOf, comparable, pathOf, toBlock, VARIANTS, type Variant } from '../kubernetes-fillings.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';

// biome-ignore lint/suspicious/noExplicitAny: answers of a server, which tests read without ceremony
type Json = any;

const START_MS = 90_000;

describe.skipIf(isMissing(component('kube-apiserver')))("the defaults of Kubernetes' own kinds", () => {
  const names = [...new Set(VARIANTS.map(([name]) => name))];
  let theirs: ApiServer;
  let url: string;
  let kinds: readonly ResourceDefinition[];
  beforeAll(async () => {
    kinds = await kubernetesKinds(...names);
    const off = ['ServiceAccount', 'TaintNodesByCondition', 'Priority', 'DefaultTolerationSeconds', 'LimitRanger'];
    theirs = await startApiServer({ flags: [`--disable-admission-plugins=${off}`] });
    const options = kinds.flatMap(({ group, version, plural, kind }) => [
      ...['--resource', `${plural}${group && `.${group}`}/${version}=${kind}`],
    ]);
    ({ url } = await serve(...options));
  }, START_MS);
  afterAll(async () => {
    killAll();
    await theirs.stop();
  });

  /** What one of the two makes of a variant. It is only tried, unless it gets a status. */
  async function made(variant: Variant, ask: (path: string, init?: Json) => Promise<Response>): Promise<Json> {
    const [name, , status] = variant;
    const kind = kinds[names.indexOf(name)] as ResourceDefinition;
    const path = pathOf(kind);
    const send = async (method: string, to: string, body?: object): Promise<Json> => {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      const answer = await ask(to, { method, headers: { 'content-type': type }, body: JSON.stringify(body) });
      return JSON.parse(await answer.text());
    };
    const created = await send('POST', `${path}${status ? '' : '?dryRun=All'}`, bodyOf(kind, variant));
    if (status === undefined) return created;
    const patched = await send('PATCH', `${path}/x/status`, { status });
    await send('DELETE', `${path}/x`);
    return patched;
  }
  const fromTheirs = (variant: Variant): Promise<Json> =>
    made(variant, async (path, init) => (await theirs.fetch(`${theirs.url}${path}`, init)) as Response);
  const fromOurs = (variant: Variant): Promise<Json> => made(variant, (path, init) => fetch(`${url}${path}`, init));

  it.each(VARIANTS.map((each) => [each[0], each[1], each] as const))('%s %j', async (_, __, variant) => {
    const [expected, found] = [await fromTheirs(variant), await fromOurs(variant)];
    expect(expected, JSON.stringify(expected)).toHaveProperty('metadata.uid');
    expect(comparable(found)).toEqual(comparable(expected));
  });

  const owners = ['jobs.batch/v1', 'replicationcontrollers/v1', 'deployments.apps/v1'];
  const asked = owners.flatMap((name) =>
    [undefined, ['orphan'], ['foregroundDeletion'], ['a.b/c']].flatMap((finalizers) =>
      [undefined, 'Background', 'Orphan'].map((policy) => [name, finalizers, policy] as const),
    ),
  );
  it.each(asked)('a deletion of %s with the finalizers %j and the policy %s', async (name, finalizers, propagationPolicy) => {
    const kind = kinds[names.indexOf(name)] as ResourceDefinition;
    const [, more] = VARIANTS.find(([each]) => each === name) as (typeof VARIANTS)[number];
    const path = pathOf(kind);
    const ask = async (base: string, method: string, at: string, sent: object): Promise<Json> => {
      const body = JSON.stringify(sent);
      const headers = { 'content-type': 'application/json', 'content-length': String(body.length) };
      return JSON.parse(await (await theirs.fetch(`${base}${at}`, { method, headers, body })).text()) as Json;
    };
    const said = await Promise.all(
      [theirs.url, url].map(async (base) => {
        const metadata = { ...(more as Json).metadata, generateName: 'x-', finalizers };
        const made = await ask(base, 'POST', path, { ...more, apiVersion: apiVersionOf(kind), kind: kind.kind, metadata });
        const {
          kind: is,
          status,
          metadata: left,
        } = await ask(base, 'DELETE', `${path}/${made.metadata.name}`, { propagationPolicy });
        return [is, is === 'Status' && status, left?.finalizers];
      }),
    );
    expect(said[1]).toEqual(said[0]);
  });

  it('are in kubernetes-fillings.txt, which this test writes with --update', async () => {
    const blocks: string[] = [];
    for (const variant of VARIANTS) blocks.push(toBlock(variant, await fromTheirs(variant)));
    await expect(`${blocks.join('\n\n')}\n`).toMatchFileSnapshot('../kubernetes-fillings.txt');
  });
});
