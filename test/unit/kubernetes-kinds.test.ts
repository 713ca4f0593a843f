// Kubernetes' own kinds that a program serves by `kubernetesKinds`, over the wire: what typed clients, kubectl and people send.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { allKubernetesKinds, BUILT_IN_KINDS, kubernetesKinds, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { TABLE } from '../../src/apiserver/kinds/kubernetes-table.ts';
import { quantityOf } from '../../src/apiserver/kinds/quantity.ts';
import { type Shape, shape, typing, zeroOf } from '../../src/apiserver/kinds/shape.ts';
import { envelopeOf, PROTOBUF, readProtobuf, writingMessage } from '../../src/apiserver/request/protobuf.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { nameOf } from '../../src/cache/resource-client.ts';
import { kindsOf, withBuiltIn, withFields } from '../../src/cli/serve/serve.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { runs } from '../runs.ts';
import { rig } from './apiserver-rig.ts';

let pods: ResourceDefinition;
let deployments: ResourceDefinition;
let resources: ResourceDefinition[];
beforeAll(async () => {
  const more = ['services/v1', 'replicationcontrollers/v1', 'horizontalpodautoscalers.autoscaling/v2'] as const;
  const all = await kubernetesKinds('pods/v1', 'deployments.apps/v1', ...more);
  [pods, deployments] = all;
  resources = all;
});

/** What is filled in, in any Pod. */
const FILLED = {
  ...{ dnsPolicy: 'ClusterFirst', enableServiceLinks: true, restartPolicy: 'Always', schedulerName: 'default-scheduler' },
  ...{ securityContext: {}, terminationGracePeriodSeconds: 30 },
};
const PODS = '/api/v1/namespaces/default/pods';
const SERVICES = '/api/v1/namespaces/default/services';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';
const metadata = { name: 'web' };
const POD = {
  metadata,
  spec: {
    containers: [
      {
        ...{ name: 'a', image: 'a:1', env: [{ name: 'X', value: '1' }] },
        resources: { limits: { cpu: 0.5, memory: '1Gi' } },
        livenessProbe: { httpGet: { port: 'http' }, periodSeconds: 5 },
      },
    ],
    volumes: [{ name: 'v', emptyDir: { sizeLimit: '1000m' } }],
  },
};
const DEPLOYMENT = {
  metadata,
  spec: { replicas: 2, selector: { matchLabels: { b: 'y', a: 'x' } }, template: { metadata: {}, spec: POD.spec } },
};

/** An object as a typed client sends it. */
function protobufOf({ group, version, kind, shape: of }: ResourceDefinition, object: object): Uint8Array {
  const bytes = atOnce(writingMessage(object, of as Shape));
  const { head, tail } = envelopeOf({ apiVersion: group ? `${group}/${version}` : version, kind }, bytes.length);
  return Buffer.concat([head, bytes, tail]);
}

async function send(
  { server }: Pick<ReturnType<typeof rig>, 'server'>,
  path: string,
  { method = 'POST', body, accept = PROTOBUF }: { method?: string; body?: Uint8Array; accept?: string },
): Promise<{ code: number; type: string | null; bytes: Uint8Array }> {
  const headers = { accept, ...(body && { 'content-type': PROTOBUF }) };
  const init = { method, headers, ...(body && { body: Buffer.from(body) }) };
  const response = await server.fetch(new Request(`http://127.0.0.1${path}`, init));
  return {
    code: response.status,
    type: response.headers.get('content-type'),
    bytes: new Uint8Array(await response.arrayBuffer()),
  };
}

const read = (bytes: Uint8Array, kind: ResourceDefinition): unknown => atOnce(readProtobuf(bytes, kind));

describe('kubernetesKinds', () => {
  it('has the names and the subresources of Kubernetes', async () => {
    const [nodes] = await kubernetesKinds('nodes/v1');
    expect(nodes).toMatchObject({ plural: 'nodes', kind: 'Node', namespaced: false, status: true, shortNames: ['no'] });
    expect(nodes.scale).toBeUndefined();
    expect(deployments).toMatchObject({ group: 'apps', namespaced: true, shortNames: ['deploy'], categories: ['all'] });
    expect(deployments.scale?.specReplicasPath).toBe('.spec.replicas');
    // The same one each time.
    expect((await kubernetesKinds('nodes/v1'))[0]).toBe(nodes);
  });

  it('refuses other names, and says which there are', async () => {
    for (const name of ['configmaps/v1', 'deployments/v1', 'Pod', '', 7 as never]) {
      await expect(kubernetesKinds('pods/v1', name)).rejects.toThrow(
        /^kind: expected one of endpoints\/v1, .*deployments\.apps\/v1/,
      );
    }
  });

  it('can be all of them at once, of which one server takes no two versions', async () => {
    const all = await allKubernetesKinds();
    const names = all.map(nameOf);
    expect(names).toEqual(expect.arrayContaining(['pods/v1', 'horizontalpodautoscalers.autoscaling/v2', 'jobs.batch/v1']));
    const lines = TABLE.split('\n\n', 1)[0]?.split('\n') ?? [];
    expect(all).toHaveLength(lines.length - 1);
    expect(new Set(all.map(({ group, plural }) => `${group}/${plural}`)).size).toBe(all.length);
    const { server } = rig({ resources: [...BUILT_IN_KINDS, ...all] });
    await server.ready;
    expect((await server.resource('nodes/v1').list()).items).toEqual([]);
  });

  it('its table is as small as docs/apiserver.md says', () => {
    const [whole, packed] = [TABLE.length, gzipSync(TABLE).length].map((bytes) => Math.round(bytes / 1_000));
    const text = readFileSync(new URL('../../docs/apiserver.md', import.meta.url), 'utf8');
    expect(text).toContain(`The table of fields has ${whole} kB, ${packed} kB compressed`);
  });

  it('its fields come from nowhere else', () => {
    for (const wrong of [7, {}, [], null, 'Pod'])
      expect(() => rig({ resources: [{ ...pods, shape: wrong } as never] })).toThrow(
        'resource.shape: expected that of a definition',
      );
  });
});

describe('objects of such kinds', () => {
  it('are sent and returned in protobuf', async () => {
    const { server, call } = rig({ resources });
    const made = await send({ server }, PODS, { body: protobufOf(pods, POD) });
    expect(made).toMatchObject({ code: 201, type: PROTOBUF });
    const [container] = POD.spec.containers as [(typeof POD.spec.containers)[0]];
    const stored = { ...POD.spec, containers: [{ ...container, resources: { limits: { cpu: '500m', memory: '1Gi' } } }] };
    stored.volumes = [{ name: 'v', emptyDir: { sizeLimit: '1' } }];
    const { body } = await call('GET', `${PODS}/web`);
    expect(body).toMatchObject({ spec: stored, status: {} });
    for (const { code, bytes } of [made, await send({ server }, `${PODS}/web`, { method: 'GET' })])
      expect([Math.floor(code / 100), read(bytes, pods)]).toEqual([2, body]);
    const listed = await send({ server }, PODS, { method: 'GET' });
    expect([listed.code, listed.type]).toEqual([200, PROTOBUF]);
    expect((await call('GET', PODS, undefined, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' })).body.kind).toBe(
      'Table',
    );
    expect(listed.bytes.length).toBeGreaterThan(made.bytes.length);
    await server.shutdown();
  });

  it('one that a program defines itself stays JSON', async () => {
    const { server, call } = rig({ resources: [{ group: '', version: 'v1', plural: 'pods', kind: 'Pod' }] });
    const body = protobufOf(pods, POD);
    expect(await send({ server }, PODS, { body, accept: '*/*' })).toMatchObject({ code: 415 });
    expect((await call('POST', PODS, { ...POD, other: 1 })).body).toMatchObject({ other: 1 });
    await server.shutdown();
  });

  it('have no unknown members, of which fieldValidation tells, and no nulls', async () => {
    const { server, call } = rig({ resources });
    const wrong = {
      ...POD,
      other: 1,
      spec: { ...POD.spec, volumes: [{ name: 'v', emptyDir: {}, emptyDri: {} }], hostname: null },
    };
    const { code, headers, body } = await call('POST', PODS, wrong);
    expect([code, headers.get('warning')]).toEqual([201, expect.stringContaining('unknown field \\"other\\"')]);
    expect(headers.get('warning')).toContain('unknown field \\"spec.volumes[0].emptyDri\\"');
    expect(body.spec.volumes).toEqual([{ name: 'v', emptyDir: {} }]);
    expect(Object.keys(body.spec).sort()).toEqual(['containers', ...Object.keys(FILLED), 'volumes'].sort());
    const strict = await call('POST', `${PODS}?fieldValidation=Strict`, { ...wrong, metadata: { name: 'other' } });
    expect(strict.code).toBe(400);
    // As Go writes what has to be there, and what is zero.
    expect((await call('POST', PODS, { metadata: { name: 'none' } })).body).toMatchObject({
      spec: { containers: null },
      status: {},
    });
    expect(
      (await call('POST', SERVICES, { metadata, spec: { ports: [{ port: 1 }] }, status: { conditions: [] } })).body,
    ).toMatchObject({
      spec: { ports: [{ port: 1, targetPort: 1 }] },
      status: { loadBalancer: {} },
    });
    await server.shutdown();
  });

  it.each([
    [{ spec: { containers: {} } }, 'spec.containers: expected a list'],
    [{ spec: { containers: [{ resources: { limits: { cpu: 'much' } } }] } }, 'limits: expected a quantity'],
    [{ spec: { containers: [{ resources: { limits: { cpu: true } } }] } }, 'limits: expected a quantity'],
    [{ spec: { containers: [{ resources: { limits: { cpu: { toString: null } } } }] } }, 'limits: expected a quantity'],
    [{ spec: { containers: [{ livenessProbe: { httpGet: { port: 1.5 } } }] } }, 'port: expected a whole number'],
    [{ spec: { containers: [{ livenessProbe: { httpGet: { port: {} } } }] } }, 'port: expected a whole number or a text'],
    [{ spec: { containers: [{ livenessProbe: { httpGet: { port: 2 ** 31 } } }] } }, 'port: expected a whole number'],
    [{ spec: { volumes: [{ emptyDir: 1 }] } }, 'spec.volumes[0].emptyDir: expected an object'],
  ])('%j is refused with 400', async (more, why) => {
    const { server, call } = rig({ resources });
    const { code, body } = await call('POST', PODS, { metadata, ...more });
    expect([code, body.message]).toEqual([400, expect.stringContaining(why)]);
    expect(body.message).toContain('Pod in version "v1" cannot be handled as a Pod');
    await server.shutdown();
  });

  it('the version is that of the kind', async () => {
    const { server, call } = rig({ resources });
    const path = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers';
    expect((await call('POST', path, { metadata, spec: { maxReplicas: '1' } })).body.message).toContain('in version "v2"');
    await server.shutdown();
  });

  it('their lists are merged by a strategic merge patch and by an apply', async () => {
    const { server, call } = rig({ resources });
    await call('POST', DEPLOYMENTS, DEPLOYMENT);
    const containers = [
      { name: 'b', image: 'b:1' },
      { name: 'a', env: [{ name: 'Y', value: '2' }] },
    ];
    const patch = { spec: { template: { spec: { containers } } } };
    const strategic = { 'content-type': 'application/strategic-merge-patch+json' };
    const { body: patched } = await call('PATCH', `${DEPLOYMENTS}/web`, patch, strategic);
    const seen = patched.spec.template.spec.containers as { name: string; image: string; env?: { name: string }[] }[];
    expect(seen.map(({ name, image, env }) => [name, image, env?.map((each) => each.name)])).toEqual([
      ...[['b', 'b:1', undefined]],
      ...[['a', 'a:1', ['Y', 'X']]],
    ]);
    const ports = [{ containerPort: 80 }, { containerPort: 80, protocol: 'UDP' }];
    const template = { spec: { containers: [{ name: 'c', image: 'c:1', ports }] } };
    const config = { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: { template } };
    const apply = { 'content-type': 'application/apply-patch+yaml' };
    const { code, body: applied } = await call('PATCH', `${DEPLOYMENTS}/web?fieldManager=me`, config, apply);
    expect([code, applied.spec.template.spec.containers.map(({ name }: { name: string }) => name).sort()]).toEqual([
      200,
      ['a', 'b', 'c'],
    ]);
    const { fieldsV1 } = applied.metadata.managedFields.find(({ manager }: { manager: string }) => manager === 'me');
    const owned = fieldsV1['f:spec']['f:template']['f:spec']['f:containers']['k:{"name":"c"}']['f:ports'];
    expect(Object.keys(owned)).toEqual(['k:{"containerPort":80,"protocol":"TCP"}', 'k:{"containerPort":80,"protocol":"UDP"}']);
    await server.shutdown();
  });

  it('a Scale has the selector as a text', async () => {
    const { server, call } = rig({ resources });
    await call('POST', DEPLOYMENTS, DEPLOYMENT);
    expect((await call('GET', `${DEPLOYMENTS}/web/scale`)).body).toMatchObject({
      ...{ spec: { replicas: 2 }, status: { replicas: 0, selector: 'a=x,b=y' } },
    });
    const matchExpressions = [
      { key: 'c', operator: 'In', values: ['2', '1'] },
      { key: 'd', operator: 'DoesNotExist' },
    ];
    await call('PATCH', `${DEPLOYMENTS}/web`, { spec: { selector: { matchExpressions } } });
    expect((await call('GET', `${DEPLOYMENTS}/web/scale`)).body.status.selector).toBe('a=x,b=y,c in (1,2),!d');
    const path = '/api/v1/namespaces/default/replicationcontrollers';
    await call('POST', path, { metadata, spec: { replicas: 1, selector: { z: '1' } } });
    expect((await call('GET', `${path}/web/scale`)).body.status.selector).toBe('z=1');
    await call('POST', DEPLOYMENTS, { metadata: { name: 'none' }, spec: { replicas: 1, selector: {} } });
    expect((await call('GET', `${DEPLOYMENTS}/none/scale`)).body.status).toEqual({ replicas: 0 });
    matchExpressions[0] = { key: 'c', operator: 'Near', values: [] };
    await call('PATCH', `${DEPLOYMENTS}/none`, { spec: { selector: { matchExpressions } } });
    expect(await call('GET', `${DEPLOYMENTS}/none/scale`)).toMatchObject({
      ...{ code: 500, body: { message: expect.stringContaining('the selector is invalid') } },
    });
    await server.shutdown();
  });

  it.each([
    ['deployments.apps/v1', { labels: { a: 'old' }, annotations: { a: 'new' } }],
    ['pods/v1', { labels: { a: 'new' }, annotations: { a: 'new' } }],
    ['csinodes.storage.k8s.io/v1', { labels: { a: 'old' }, annotations: { a: 'old' } }],
  ])('a write of the status of %s changes the metadata to %j, and no spec', async (name, expected) => {
    const { server } = rig({ resources: await kubernetesKinds(name) });
    const resource = server.resource<KubernetesObject & { spec?: object }>(name);
    const objects = resource.type.namespaced === false ? resource : resource.in('default');
    const of = (a: string): object => ({ labels: { a }, annotations: { a } });
    const { spec, metadata } = await objects.create({ metadata: { name: 'x', ...of('old') } });
    const changed = { metadata: { ...metadata, ...of('new') }, spec: {} };
    const written = await objects.update(changed as never, { subresource: 'status' });
    expect(written).toMatchObject({ metadata: expected, spec });
    await server.shutdown();
  });

  it('generations are counted, and names checked, as in Kubernetes', async () => {
    const roles = await kubernetesKinds('roles.rbac.authorization.k8s.io/v1');
    const { server, call } = rig({ resources: [...resources, ...roles] });
    await call('POST', PODS, POD);
    expect((await call('PATCH', `${PODS}/web`, { spec: { hostname: 'x' } })).body.metadata.generation).toBe(2);
    expect((await call('POST', SERVICES, { metadata })).body.metadata.generation).toBeUndefined();
    const path = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles';
    const role = await call('POST', path, { metadata: { name: 'web:reader' } });
    expect(role).toMatchObject({ code: 201, body: { rules: null } });
    expect(role.body.metadata.generation).toBeUndefined();
    expect((await call('GET', `${path}/web:reader`)).code).toBe(200);
    for (const name of ['a%b', 'a/b', '.', '..']) expect((await call('POST', path, { metadata: { name } })).code).toBe(422);
    await server.shutdown();
  });

  it('what is null for want of a value can be applied', async () => {
    const { server, call } = rig({ resources });
    expect((await call('POST', PODS, { metadata })).body.spec).toEqual({ containers: null, ...FILLED });
    const config = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [{ name: 'a' }] } };
    const type = { 'content-type': 'application/apply-patch+yaml' };
    const { code, body } = await call('PATCH', `${PODS}/web?fieldManager=me`, config, type);
    expect([code, body.spec.containers]).toEqual([
      200,
      [
        {
          ...{ name: 'a', resources: {}, imagePullPolicy: 'IfNotPresent' },
          ...{ terminationMessagePath: '/dev/termination-log', terminationMessagePolicy: 'File' },
        },
      ],
    ]);
    const patch = { spec: { containers: [{ name: 'b' }] } };
    const strategic = await call('PATCH', `${PODS}/web`, patch, { 'content-type': 'application/strategic-merge-patch+json' });
    expect(strategic.body.spec.containers).toHaveLength(2);
    await server.shutdown();
  });

  it('OpenAPI has their fields', async () => {
    const { server, call } = rig({ resources });
    const { body } = await call('GET', '/openapi/v3/api/v1');
    const { spec } = body.components.schemas['io.k8s.api.core.v1.Pod'].properties;
    expect(spec.properties.volumes.items.properties.emptyDir.properties.sizeLimit).toMatchObject({
      'x-kubernetes-int-or-string': true,
    });
    expect(spec.properties.containers).toMatchObject({
      'x-kubernetes-list-map-keys': ['name'],
      'x-kubernetes-patch-merge-key': 'name',
    });
    await server.shutdown();
  });

  it('protobuf with mistakes is refused, whatever they are', async () => {
    const { server } = rig({ resources });
    const whole = protobufOf(pods, POD);
    const deployment = protobufOf(deployments, DEPLOYMENT);
    const change = fc.tuple(fc.nat(), fc.nat({ max: 255 }), fc.constantFrom('flip', 'cut', 'insert', 'twice'));
    const property = fc.asyncProperty(fc.boolean(), fc.array(change, { minLength: 1, maxLength: 4 }), async (isPod, changes) => {
      let bytes = Buffer.from(isPod ? whole : deployment);
      for (const [at, byte, how] of changes) {
        const place = bytes.length === 0 ? 0 : at % bytes.length;
        const [start, end] = [bytes.subarray(0, place), bytes.subarray(place)];
        if (how === 'flip') bytes = Buffer.concat([start, Buffer.of(byte), end.subarray(1)]);
        else bytes = Buffer.concat({ cut: [start], insert: [start, Buffer.of(byte), end], twice: [start, end, end] }[how]);
      }
      const { code } = await send({ server }, `${isPod ? PODS : DEPLOYMENTS}?dryRun=All`, { body: bytes });
      expect([201, 400, 409, 413, 422]).toContain(code);
    });
    await fc.assert(property, { numRuns: runs(1_000) });
    await server.shutdown();
  });
});

describe('serve --resource', () => {
  const pod = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true, status: false };
  const found = async (named: typeof pod): Promise<ResourceDefinition | undefined> =>
    (await withFields(withBuiltIn([named]))).at(-1);

  it('finds these kinds by their exact names', async () => {
    expect(await found(pod)).toBe(pods);
    const node = { ...pod, plural: 'nodes', kind: 'Node' };
    for (const namespaced of [true, false]) expect((await found({ ...node, namespaced }))?.namespaced).toBe(false);
    for (const other of [{ group: 'example.com' }, { version: 'v2' }, { plural: 'peas', kind: 'Pea' }])
      expect(await found({ ...pod, ...other })).toEqual({ ...pod, ...other });
  });

  it.each([
    [{ plural: 'pod' }, '--resource: expected pods/v1=Pod, which Kubernetes has, got "pod/v1=Pod"'],
    [{ kind: 'Pea' }, '--resource: expected pods/v1=Pod, which Kubernetes has, got "pods/v1=Pea"'],
    [
      { plural: 'deployments', kind: 'Deployment' },
      '--resource: expected deployments.apps/v1=Deployment, which Kubernetes has, got "deployments/v1=Deployment"',
    ],
    [
      { group: 'apps', plural: 'deployments', kind: 'Deploymint' },
      '--resource: expected deployments.apps/v1=Deployment, which Kubernetes has, got "deployments.apps/v1=Deploymint"',
    ],
  ])('refuses what is nearly one of them: %j', async (other, message) => {
    await expect(found({ ...pod, ...other })).rejects.toThrow(message);
  });

  it('has all of them with --kubernetes-kinds, in the versions that the command line names', async () => {
    const v1 = { group: 'autoscaling', version: 'v1', plural: 'horizontalpodautoscalers', kind: 'HorizontalPodAutoscaler' };
    const order = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' };
    const common = { namespaced: true, status: false };
    const kinds = await kindsOf({
      ...{ resources: [pod, { ...v1, ...common }, { ...order, ...common }], kubernetesKinds: true, webhookServices: undefined },
    });
    const names = kinds.map(nameOf);
    expect(names).toEqual(
      expect.arrayContaining(['orders.example.com/v1', 'horizontalpodautoscalers.autoscaling/v1', 'nodes/v1']),
    );
    expect(names).not.toContain('horizontalpodautoscalers.autoscaling/v2');
    expect(new Set(names).size).toBe(names.length);
    expect(kinds).toContain(pods);
    const some = await kindsOf({ resources: [], kubernetesKinds: false, webhookServices: undefined });
    expect(some).toEqual(BUILT_IN_KINDS);
  });

  it('refuses the wrong scope', async () => {
    await expect(found({ ...pod, namespaced: false })).rejects.toThrow('--resource: pods/v1 is not a cluster-scoped kind');
  });
});

describe('fields of the forms that only these kinds have', () => {
  const inner = shape('', { a: [1, 'string'], b: [2, 'int32', '!'] });
  const some = shape('', {
    '^': [1, inner, '^'],
    list: [2, 'string', '[]!'],
    one: [3, inner, '?!'],
    data: [4, 'json', '!'],
    q: [5, 'quantity', '!'],
  });
  const typed = (object: object): unknown => atOnce(typing(['Some', 'v1'], some, object));

  it('members of another message, and nulls', () => {
    expect(typed({})).toEqual({ b: 0, list: null, one: null, data: null, q: '0' });
    expect(zeroOf(some)).toEqual({ b: 0, list: null, one: null, data: null, q: '0' });
    const object = { a: 'x', b: 1, list: ['y'], one: { a: 'z', b: 0 }, data: [{}], q: '1' };
    expect(typed({ ...object, '^': 1 })).toEqual(object);
    expect(typed({ ...object, q: '0', list: [] })).toEqual({ ...object, list: null, q: '0' });
  });
});

describe('quantities', () => {
  it.each([
    ...[
      ['0.5', '500m'],
      ['1000m', '1'],
      ['1500m', '1500m'],
      ['1024Mi', '1Gi'],
      ['1.5Gi', '1536Mi'],
      ['100Mi', '100Mi'],
      ['0', '0'],
    ],
    ...[
      ['1e3', '1e3'],
      ['5e1', '50'],
      ['0.1Ki', '102400m'],
      ['-1000', '-1k'],
      ['1n', '1n'],
      ['0.1n', '1n'],
      ['m', '0'],
      ['Ei', undefined],
    ],
    ...[
      ['20Ei', '9223372036854775807'],
      ['1e999999999', '1e999999999'],
      ['', undefined],
      ['1 Gi', undefined],
      [' 1 ', '1'],
    ],
    // As given, if it is close to the canonical form.
    ...['01n', '+1', '1.500', '01m', '+101', '+10001', '+1Ki', '1e-3', '+111111111111111111', '10000000000000000001'].map(
      (same) => [same, same],
    ),
    ['+8Ki', '8Ki'],
    ['n', '0'],
    ...[
      ['1000k', '1M'],
      ['1000M', '1G'],
      ['1000G', '1T'],
      ['1000T', '1P'],
      ['1000P', '1E'],
      ['1000e3', '1e6'],
    ],
    ...[
      ['1.0000000000', '1'],
      ['0.00000000000', '0'],
      ['1.23456789012', '1234567891n'],
      ['-1.23456789012345678901', '-1234567891n'],
    ],
    ...[
      ['1.5Ei', '1536Pi'],
      ['1.0Ki', '1Ki'],
      ['0.9765625Ki', '1k'],
      ['1.1Ki', '1126400m'],
      ['1.0009765625Ki', '1025'],
    ],
    ['1'.repeat(1_000), '1'.repeat(1_000)],
    ['1'.repeat(1_001), undefined],
  ])('%s is written as %s', (given, written) => expect(quantityOf(given as string)).toBe(written));
});
