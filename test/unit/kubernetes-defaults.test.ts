// What is filled in of objects of Kubernetes' own kinds: what a kube-apiserver fills in, which test/peers/kubernetes-defaults.test.ts has
// asked, and what only a cluster with other addresses would.
import { expect, it } from 'vitest';
import { kubernetesKinds } from '../../src/apiserver/index.ts';
import { bodyOf, pathOf, readBlocks, toBlock, VARIANTS, type Variant } from '../kubernetes-fillings.ts';
import { type Answered, rig } from './apiserver-rig.ts';

/** What a server makes of a variant. */
async function made(variant: Variant): Promise<Answered> {
  const [kind] = await kubernetesKinds(variant[0]);
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
  ['an IPv6 address', serviceOf({ clusterIP: 'fd00::1' }), { clusterIPs: ['fd00::1'], ipFamilies: ['IPv6'] }],
  ['an IPv4 address', serviceOf({ clusterIP: '10.0.0.1' }), { clusterIPs: ['10.0.0.1'], ipFamilies: ['IPv4'] }],
  ['two families', serviceOf({ ipFamilies: ['IPv6', 'IPv4'] }), { ipFamilyPolicy: 'RequireDualStack' }],
  ['the port that it has, or 0', serviceOf({ ports: [{ port: 80, targetPort: 0 }] }), { ports: [{ targetPort: 80 }] }],
])('a Service with %s says so', async (_, variant, spec) => {
  expect((await made(variant)).body.spec).toMatchObject(spec);
});
