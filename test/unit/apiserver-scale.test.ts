// The subresource `scale` in process and without a socket. test/peers/differential.test.ts compares its answers with a kube-apiserver's.
import { afterEach, describe, expect, it } from 'vitest';
import { ApiServer, kubernetesKinds, type ResourceDefinition, type ScaleDefinition } from '../../src/apiserver/index.ts';
import { part, type Shape, shape } from '../../src/apiserver/kinds/shape.ts';
import { OBJECT_META } from '../../src/apiserver/kinds/tables.ts';
import { envelopeOf, PROTOBUF, readProtobuf, writingMessage } from '../../src/apiserver/request/protobuf.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { type Answered, rig } from './apiserver-rig.ts';

interface Fleet extends KubernetesObject {
  readonly spec?: { readonly size?: { readonly ships?: number }; readonly name?: string } | undefined;
  readonly status?: { readonly ships?: number; readonly selector?: string } | undefined;
}

const SCALE: ScaleDefinition = {
  specReplicasPath: '.spec.size.ships',
  statusReplicasPath: '.status.ships',
  labelSelectorPath: '.status.selector',
};
const NAMES = { group: 'example.com', version: 'v1', plural: 'fleets', kind: 'Fleet' } as const;
const FLEETS: ResourceDefinition<Fleet> = { ...NAMES, status: true, scale: SCALE };
const PATH = '/apis/example.com/v1/namespaces/default/fleets';

const servers: ApiServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.shutdown();
});

function fleets(definition: Partial<ResourceDefinition<Fleet>> = {}) {
  const { server, call, storage } = rig({ resources: [{ ...FLEETS, ...definition } as ResourceDefinition] });
  servers.push(server);
  const resource = server.resource<Fleet>('fleets.example.com/v1').in('default');
  return { server, call, storage, resource, scale: resource.subresource('scale') };
}

const scaleOf = (replicas: unknown, metadata: object = { name: 'a' }): object => ({ metadata, spec: { replicas } });

describe('scale', () => {
  it('is what the paths lead to, as a Scale', async () => {
    const { resource, scale } = fleets();
    const { metadata } = await resource.create({ metadata: { name: 'a', labels: { x: 'y' } }, spec: { size: { ships: 2 } } });
    const { uid, resourceVersion, creationTimestamp } = metadata ?? {};
    const seen = { name: 'a', namespace: 'default', uid, resourceVersion, creationTimestamp };
    const kind = { kind: 'Scale', apiVersion: 'autoscaling/v1' };
    expect(await scale.get('a')).toEqual({ ...kind, metadata: seen, spec: { replicas: 2 }, status: { replicas: 0 } });
    await resource.subresource('status').patch('a', { status: { ships: 1, selector: 'ship=a' } });
    expect(await scale.get('a')).toMatchObject({ status: { replicas: 1, selector: 'ship=a' } });
    await resource.patch('a', { spec: { size: { ships: 0 } } });
    expect((await scale.get('a')).spec).toEqual({}); // as Go writes a zero
  });

  it('is written as a Scale, and changes nothing else', async () => {
    const { resource, scale } = fleets();
    const spec = { size: { ships: 2, crew: 9 }, name: 'first' };
    await resource.create({ metadata: { name: 'a', labels: { x: 'y' }, finalizers: ['a.b/c'] }, spec });
    const before = await scale.get('a');
    const put = await scale.update({ ...before, spec: { replicas: 3 }, status: { replicas: 77, selector: 'no' } });
    expect(put).toMatchObject({ kind: 'Scale', spec: { replicas: 3 }, status: { replicas: 0 } });
    expect(put.status).not.toHaveProperty('selector');
    expect(await scale.patch('a', { spec: { replicas: 4 }, metadata: { labels: { other: 'z' } } })).toMatchObject({
      spec: { replicas: 4 },
    });
    const operations = [
      { op: 'test', path: '/spec/replicas', value: 4 },
      { op: 'replace', path: '/spec/replicas', value: 5 },
    ];
    expect((await scale.patch('a', operations, { type: 'json' })).spec).toEqual({ replicas: 5 });
    expect((await scale.patch('a', { spec: { replicas: 8 } }, { dryRun: true })).spec).toEqual({ replicas: 8 });
    expect(await resource.get('a')).toMatchObject({
      spec: { size: { ships: 5, crew: 9 }, name: 'first' },
      metadata: { labels: { x: 'y' }, finalizers: ['a.b/c'], generation: 4 },
    });
    expect((await resource.get('a')).metadata?.labels).toEqual({ x: 'y' });
  });

  it('makes the way to a number that is not there, and says so to who only reads', async () => {
    const { call, resource, scale } = fleets();
    await resource.create({ metadata: { name: 'a' }, spec: { name: 'first' } });
    await expect(scale.get('a')).rejects.toThrow(/^500 .*the spec replicas field ".spec.size.ships" does not exist/);
    await expect(scale.patch('a', { metadata: {} })).rejects.toThrow(/^400 .*".spec.size.ships" cannot be empty/);
    expect((await scale.patch('a', { spec: { replicas: 1 } })).spec).toEqual({ replicas: 1 });
    expect((await resource.get('a')).spec).toEqual({ name: 'first', size: { ships: 1 } });
    expect((await call('PUT', `${PATH}/a/scale`, { metadata: { name: 'a' } })).body.spec).toEqual({}); // none is zero
    expect((await resource.get('a')).spec).toEqual({ name: 'first', size: { ships: 0 } });
  });

  it('is refused if it is stale, of another object, or no Scale', async () => {
    const { call, resource } = fleets();
    const { metadata } = await resource.create({ metadata: { name: 'a' }, spec: { size: { ships: 1 } } });
    await resource.patch('a', { spec: { name: 'x' } });
    const put = async (body: unknown): Promise<Answered> => call('PUT', `${PATH}/a/scale`, body);
    const { code, body } = await put(scaleOf(2, { name: 'a', resourceVersion: metadata?.resourceVersion }));
    expect([code, body.details]).toEqual([409, { name: 'a', group: 'example.com', kind: 'fleets' }]);
    expect((await put(scaleOf(2, { name: 'a', uid: 'other' }))).code).toBe(409);
    for (const wrong of [
      ...['3', 2.5, true, [], {}, 2 ** 31, -(2 ** 31) - 1].map((replicas) => scaleOf(replicas)),
      ...[[], 'x', 3].flatMap((part) => [
        { metadata: { name: 'a' }, spec: part },
        { ...scaleOf(1), status: part },
      ]),
      { ...scaleOf(1), status: { replicas: 'x' } },
      { ...scaleOf(1), status: { selector: 1 } },
      { ...scaleOf(1), kind: 'Fleet', apiVersion: 'example.com/v1' },
      scaleOf(1, { name: 'b' }),
      scaleOf(1, { name: 'a', namespace: 'other' }),
    ]) {
      expect([wrong, (await put(wrong)).code]).toEqual([wrong, 400]);
    }
    for (const fine of [null, undefined, 2 ** 31 - 1]) expect((await put(scaleOf(fine))).code).toBe(200);
    expect((await call('PATCH', `${PATH}/a/scale`, { spec: { replicas: '3' } })).code).toBe(422);
    expect((await call('PATCH', `${PATH}/a/scale`, { kind: 'Other' })).code).toBe(422);
    expect((await call('PUT', `${PATH}/gone/scale`, scaleOf(1, { name: 'gone' }))).code).toBe(404);
    for (const method of ['POST', 'DELETE']) expect((await call(method, `${PATH}/a/scale`, scaleOf(1))).code).toBe(405);
    // What cannot be watched is read, as by a kube-apiserver.
    expect(await call('GET', `${PATH}/a/scale?watch=true`)).toMatchObject({ code: 200, body: { kind: 'Scale' } });
  });

  it('is never negative, too many or no number, however the object is written', async () => {
    const { call, resource, scale } = fleets();
    await resource.create({ metadata: { name: 'a' }, spec: { size: { ships: 1 } } });
    const { body } = await call('PUT', `${PATH}/a/scale`, scaleOf(-1));
    const message = 'Invalid value: -1: should be a non-negative integer';
    expect(body).toMatchObject({
      message: `Fleet.example.com "a" is invalid: .spec.size.ships: ${message}`,
      details: { name: 'a', kind: 'Fleet', causes: [{ reason: 'FieldValueInvalid', field: '.spec.size.ships', message }] },
    });
    await expect(scale.patch('a', { spec: { replicas: -1 } })).rejects.toThrow(message);
    for (const ships of [-1, 2 ** 31, 1.5, 'x', {}] as never[]) {
      await expect(resource.patch('a', { spec: { size: { ships } } })).rejects.toThrow(
        /^422 .*\.spec\.size\.ships: Invalid value/,
      );
      await expect(resource.create({ metadata: { name: 'b' }, spec: { size: { ships } } })).rejects.toThrow(/^422 /);
      const status = resource.subresource('status').patch('a', { status: { ships } });
      await expect(status).rejects.toThrow(/^422 .*\.status\.ships: Invalid value/);
    }
    const selector = resource.subresource('status').patch('a', { status: { selector: { ship: 'a' } } });
    await expect(selector).rejects.toThrow(/^422 .*\.status\.selector: Invalid value/);
    await expect(resource.patch('a', { spec: 7 })).rejects.toThrow(/^422 .*\.spec\.size\.ships: Invalid value: \[7\]/);
  });

  it('obeys the schema and the function of the kind', async () => {
    const schema = { properties: { spec: { properties: { size: { properties: { ships: { maximum: 5 } } } } } } };
    const { resource, scale } = fleets({
      schema,
      validate: ({ spec }) => (spec?.size?.ships === 3 ? [{ field: 'spec', message: 'not three' }] : undefined),
    });
    await resource.create({ metadata: { name: 'a' }, spec: { size: { ships: 1 } } });
    await expect(scale.patch('a', { spec: { replicas: 6 } })).rejects.toThrow(/^422 .*spec\.size\.ships/);
    await expect(scale.patch('a', { spec: { replicas: 3 } })).rejects.toThrow(/not three/);
    expect((await scale.patch('a', { spec: { replicas: 4 } })).spec).toEqual({ replicas: 4 });
  });

  it('knows its fields', async () => {
    const { call, resource, scale } = fleets();
    await resource.create({ metadata: { name: 'a' }, spec: { size: { ships: 1 } } });
    const wrong = { ...scaleOf(2), metadata: { name: 'a', lables: {} }, colour: 'red' };
    const { code, headers } = await call('PUT', `${PATH}/a/scale`, wrong);
    expect([code, headers.get('warning')]).toEqual([
      200,
      '299 - "unknown field \\"metadata.lables\\"", 299 - "unknown field \\"colour\\""',
    ]);
    expect((await call('PUT', `${PATH}/a/scale?fieldValidation=Strict`, wrong)).code).toBe(400);
    await expect(scale.update(wrong as never, { fieldValidation: 'Strict' })).rejects.toThrow(/^400 .*unknown field "colour"/);
    await expect(scale.patch('a', { spec: { rep: 1 } }, { fieldValidation: 'Strict' })).rejects.toThrow(/^422 .*spec\.rep/);
  });

  it('is there without a status, and is not there without a definition', async () => {
    const { resource, scale } = fleets({ status: false });
    const created = await resource.create({ metadata: { name: 'a' }, spec: { size: { ships: 1 } }, status: { ships: 7 } });
    expect(created.status).toEqual({ ships: 7 });
    expect((await scale.get('a')).status).toEqual({ replicas: 7 });
    await expect(resource.subresource('status').get('a')).rejects.toThrow(
      /^subresource: expected one that fleets\.example\.com has/,
    );
    const without = fleets({ scale: undefined });
    await expect(without.scale.get('a')).rejects.toThrow(/^subresource: expected one that fleets\.example\.com has/);
    expect((await without.call('GET', `${PATH}/a/scale`)).code).toBe(404);
  });

  it('of what was stored before it had a scale, is an error that says so', async () => {
    const { scale, storage } = fleets();
    const stored = { apiVersion: 'example.com/v1', kind: 'Fleet', metadata: { name: 'a', namespace: 'default', uid: '1' } };
    await storage.create('example.com/fleets/default/a', { ...stored, spec: { size: { ships: 'many' } } } as KubernetesObject);
    await expect(scale.get('a')).rejects.toThrow(/^500 .*".spec.size.ships" is not a whole number/);
  });

  it('of several versions of a kind is the same', async () => {
    const resources = [FLEETS, { ...FLEETS, version: 'v2' }] as ResourceDefinition[];
    const server = new ApiServer({ storage: new MemoryStorage(), resources });
    servers.push(server);
    await server
      .resource<Fleet>('fleets.example.com/v1')
      .in('default')
      .create({ metadata: { name: 'a' }, spec: { size: { ships: 1 } } });
    const scale = server.resource<Fleet>('fleets.example.com/v2').in('default').subresource('scale');
    expect(await scale.patch('a', { spec: { replicas: 2 } })).toMatchObject({ apiVersion: 'autoscaling/v1', kind: 'Scale' });
    expect(await server.resource<Fleet>('fleets.example.com/v2').get('default/a')).toMatchObject({
      apiVersion: 'example.com/v2',
    });
  });

  it('is allowed by its own name', async () => {
    const asked: string[] = [];
    const { server, call } = rig({
      resources: [FLEETS as ResourceDefinition],
      authorize: (verb, resource) => asked.push(`${verb} ${resource}`) > 0 && resource !== 'fleets.example.com/scale',
    });
    servers.push(server);
    expect((await call('PATCH', `${PATH}/a/scale`, {})).code).toBe(403);
    expect(asked).toEqual(['patch fleets.example.com/scale']);
  });

  it('is told by discovery and OpenAPI', async () => {
    const { call } = fleets();
    const { resources } = (await call('GET', '/apis/example.com/v1')).body;
    const verbs = ['get', 'patch', 'update'];
    expect(resources.slice(1)).toEqual([
      { name: 'fleets/status', singularName: '', namespaced: true, kind: 'Fleet', verbs },
      { name: 'fleets/scale', singularName: '', namespaced: true, group: 'autoscaling', version: 'v1', kind: 'Scale', verbs },
    ]);
    const { paths, components } = (await call('GET', '/openapi/v3/apis/example.com/v1')).body;
    const { get, put, patch } = paths['/apis/example.com/v1/namespaces/{namespace}/fleets/{name}/scale'];
    for (const operation of [get, put, patch]) {
      const { schema } = operation.responses[200].content['application/json'];
      expect(schema).toEqual({ $ref: '#/components/schemas/io.k8s.api.autoscaling.v1.Scale' });
      expect(operation['x-kubernetes-group-version-kind']).toMatchObject({ kind: 'Fleet' });
    }
    expect(Object.keys(components.schemas['io.k8s.api.autoscaling.v1.Scale'].properties)).toContain('spec');
  });

  it.each<[unknown, string]>([
    [true, 'scale: expected an object: { specReplicasPath'],
    [{ ...SCALE, path: '.spec.x' }, 'unknown option path'],
    [{ ...SCALE, specReplicasPath: undefined }, 'scale.specReplicasPath: expected a path such as .spec.replicas'],
    [{ ...SCALE, specReplicasPath: '.status.x' }, 'scale.specReplicasPath: '],
    [{ ...SCALE, specReplicasPath: 'spec.x' }, 'scale.specReplicasPath: '],
    [{ ...SCALE, specReplicasPath: '.spec' }, 'scale.specReplicasPath: '],
    [{ ...SCALE, specReplicasPath: '.spec.' }, 'scale.specReplicasPath: '],
    [{ ...SCALE, specReplicasPath: '.spec.a[0]' }, 'scale.specReplicasPath: '],
    [{ ...SCALE, statusReplicasPath: '.spec.x' }, 'scale.statusReplicasPath: expected a path such as .status.replicas'],
    [{ ...SCALE, labelSelectorPath: '.metadata.labels' }, 'scale.labelSelectorPath: expected a path below .spec or .status'],
  ])('refuses the definition %j', (scale, why) => {
    const resources = [{ ...FLEETS, scale }] as ResourceDefinition[];
    expect(() => new ApiServer({ storage: new MemoryStorage(), resources })).toThrow(
      `resource.${why}`.replace('resource.unknown', 'unknown'),
    );
  });
});

describe("the scale of Kubernetes' own kinds", () => {
  const URL = '/apis/apps/v1/namespaces/default/deployments/web/scale';
  const template = { metadata: { labels: { a: 'x' } }, spec: { containers: [{ name: 'a', image: 'a' }] } };
  const web = { metadata: { name: 'web' }, spec: { replicas: 1, selector: { matchLabels: { a: 'x' } }, template } };

  async function deployed() {
    const { server, call } = rig({ resources: await kubernetesKinds('deployments.apps/v1') });
    servers.push(server);
    await call('POST', '/apis/apps/v1/namespaces/default/deployments', web);
    return { server, call };
  }

  it('takes a strategic merge patch', async () => {
    const { call } = await deployed();
    const type = { 'content-type': 'application/strategic-merge-patch+json' };
    const { code, body } = await call('PATCH', URL, { spec: { replicas: 3 } }, type);
    expect([code, body.spec, body.status]).toEqual([200, { replicas: 3 }, { replicas: 0, selector: 'a=x' }]);
  });

  it('is read and written as protobuf, as typed clients in Go do', async () => {
    const { server, call } = await deployed();
    const headers = { accept: PROTOBUF, 'content-type': PROTOBUF };
    const at = `http://127.0.0.1${URL}`;
    const { body: scale } = await call('GET', URL);
    const kind = { group: 'autoscaling', version: 'v1', apiVersion: 'autoscaling/v1', kind: 'Scale', shape: SHAPE };
    const bytes = atOnce(writingMessage({ ...scale, spec: { replicas: 4 } }, SHAPE));
    const { head, tail } = envelopeOf(kind, bytes.length);
    const init = { method: 'PUT', headers, body: Buffer.concat([head, bytes, tail]) };
    const answer = await server.fetch(new Request(at, init));
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, PROTOBUF]);
    const read = atOnce(readProtobuf(new Uint8Array(await answer.arrayBuffer()), kind));
    expect(read).toMatchObject({ kind: 'Scale', spec: { replicas: 4 }, status: { selector: 'a=x' } });
  });
});

const SHAPE: Shape = shape('', {
  metadata: [1, OBJECT_META],
  spec: part([2], '', { replicas: [1, 'int32'] }),
  status: part([3], '', { replicas: [1, 'int32', '!'], selector: [2, 'string'] }),
});
