// What is filled in of objects of Kubernetes' own kinds: what a kube-apiserver fills in, which test/peers/kubernetes-defaults.test.ts has
// asked, and what only a cluster with other addresses would.
import { expect, it } from 'vitest';
import { kubernetesKinds, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { defaultsOf } from '../../src/apiserver/kinds/kubernetes-defaults.ts';
import { bodyOf, pathOf, readBlocks, toBlock, VARIANTS, type Variant } from '../kubernetes-fillings.ts';
import { type Answered, rig } from './apiserver-rig.ts';

const NAMES = [...new Set(VARIANTS.map(([name]) => name))];
const KINDS = await kubernetesKinds(...NAMES);

/** What a server makes of a variant. */
async function made(variant: Variant): Promise<Answered> {
  const kind = KINDS[NAMES.indexOf(variant[0])] as ResourceDefinition;
  const { server, call } = rig({ resources: [kind] });
  const path = pathOf(kind);
  const created = await call('POST', `${path}?fieldValidation=Strict`, bodyOf(kind, variant));
  expect([created.code, created.text]).toEqual([201, expect.anything()]);
  const [, , status] = variant;
  const whole = status ? await call('PATCH', `${path}/x/status`, { status }) : created;
  // A client that sends what was filled in changes nothing.
  const again = await call('PUT', `${path}/x`, whole.body);
  expect(again.body.metadata.resourceVersion).toBe(whole.body.metadata.resourceVersion);
  await server.shutdown();
  return whole;
}

const BLOCKS = readBlocks();

it('each variant has a block', () => {
  expect(BLOCKS).toHaveLength(VARIANTS.length);
});

it.each(VARIANTS.map((variant, at) => [BLOCKS[at], variant] as const))('%s', async (block, variant) => {
  const { body } = await made(variant);
  expect(toBlock(variant, body)).toBe(block);
});

const serviceOf = (spec: object): Variant => ['services/v1', { spec: { ports: [{ port: 80 }], ...spec } }];
it.each<[string, Variant, object]>([
  ['a Service has the family of its address, IPv6', serviceOf({ clusterIP: 'fd00::1' }), { ipFamilies: ['IPv6'] }],
  ['a Service has the family of its address, IPv4', serviceOf({ clusterIP: '10.0.0.1' }), { ipFamilies: ['IPv4'] }],
  ['a Service has its address in a list', serviceOf({ clusterIP: '10.0.0.1' }), { clusterIPs: ['10.0.0.1'] }],
  ['a Service needs both of its families', serviceOf({ ipFamilies: ['IPv6', 'IPv4'] }), { ipFamilyPolicy: 'RequireDualStack' }],
  ['the target 0 is none', serviceOf({ ports: [{ port: 80, targetPort: 0 }] }), { ports: [{ targetPort: 80 }] }],
  [
    'an image without a name is not looked for',
    ['pods/v1', { spec: { containers: [], volumes: [{ name: 'v', image: {} }] } }],
    { volumes: [{ image: { pullPolicy: 'IfNotPresent' } }] },
  ],
])('%s', async (_, variant, spec) => {
  expect((await made(variant)).body.spec).toMatchObject(spec);
});

it.each<[string, object, object | undefined]>([
  ['that selects by itself but does not say what, selects nothing', { manualSelector: true }, undefined],
  ['that has a selector keeps it', { selector: { matchLabels: { own: 'x' } } }, { matchLabels: { own: 'x' } }],
])('a Job %s', async (_, more, selector) => {
  const template = { spec: { containers: [{ name: 'a', image: 'a' }] } };
  const { spec } = (await made(['jobs.batch/v1', { spec: { template, ...more } }])).body;
  expect([spec.selector, spec.template.metadata]).toEqual([selector, {}]);
});

it('objects share nothing of what is filled in', () => {
  const finish = defaultsOf('DeploymentStrategy', {});
  const [one, other] = [finish?.({}), finish?.({})] as Record<string, unknown>[];
  expect(one).toEqual(other);
  expect(one?.rollingUpdate).not.toBe(other?.rollingUpdate);
});
