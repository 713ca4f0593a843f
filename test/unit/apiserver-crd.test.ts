// Kinds that are defined at run time: how they come, what is served by them, and how they go.
import { afterEach, describe, expect, test } from 'vitest';
import type { AdmissionReview } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { remote } from './apiserver-rig.ts';
import { CRDS, type CrdRig, conditionsOf, crdOf, crdRig } from './crd-rig.ts';

const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const ALL = '/apis/example.com/v1/widgets';

const rigs: CrdRig[] = [];
afterEach(async () => {
  for (const { server } of rigs.splice(0)) await server.shutdown();
});

const begun = (options: Parameters<typeof crdRig>[0] = {}): CrdRig => {
  const made = crdRig(options);
  rigs.push(made);
  return made;
};

describe('a definition', () => {
  test('is served as soon as it is Established, in discovery and OpenAPI, too, and in process', async () => {
    const { call, define, read, server } = begun();
    expect((await call('GET', ALL)).code).toBe(404);
    expect(() => server.resource('widgets.example.com/v1')).toThrow('widgets.example.com/v1');
    const created = await call('POST', CRDS, crdOf());
    expect(created.body.status).toEqual({ conditions: null, acceptedNames: { kind: '', plural: '' }, storedVersions: ['v1'] });
    expect(created.body.spec.names).toEqual({ plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' });
    expect(created.body.spec.conversion).toEqual({ strategy: 'None' });
    await expect
      .poll(async () => conditionsOf(await read('widgets.example.com')))
      .toEqual({
        ...{ NamesAccepted: 'True', Established: 'True' },
      });
    expect((await read('widgets.example.com')).body.status).toMatchObject({
      acceptedNames: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      conditions: [
        { type: 'NamesAccepted', reason: 'NoConflicts', message: 'no conflicts found' },
        { type: 'Established', reason: 'InitialNamesAccepted', message: 'the initial names have been accepted' },
      ],
    });
    expect((await call('GET', '/apis/example.com/v1')).body.resources.map(({ name }: { name: string }) => name)).toEqual([
      'widgets',
    ]);
    expect((await call('GET', '/apis')).text).toContain('example.com/v1');
    expect((await call('GET', '/openapi/v2')).body.definitions).toHaveProperty(['com.example.v1.Widget']);
    expect((await call('GET', '/openapi/v3/apis/example.com/v1')).body.components.schemas).toHaveProperty([
      'com.example.v1.Widget',
    ]);
    expect((await call('POST', WIDGETS, { metadata: { name: 'a' }, spec: { size: 1 } })).code).toBe(201);
    expect((await server.resource('widgets.example.com/v1').list()).items).toHaveLength(1);
    await define(crdOf({}, {}, 'gears', 'Gear'));
    expect((await call('GET', '/openapi/v2')).body.definitions).toHaveProperty(['com.example.v1.Gear']);
  });

  test('goes with its objects; then its paths are 404, and its watches have ended', async () => {
    const { call, define, gone, server, storage } = begun();
    await define(crdOf());
    for (const name of ['a', 'b']) await call('POST', WIDGETS, { metadata: { name } });
    const widgets = server.resource('widgets.example.com/v1');
    const watch = await widgets.watch({ resourceVersion: await storage.currentVersion() });
    const deleted = await call('DELETE', `${CRDS}/widgets.example.com`);
    expect(deleted.body.metadata.finalizers).toEqual(['customresourcecleanup.apiextensions.k8s.io']);
    expect(deleted.body.status.conditions[2]).toMatchObject({ type: 'Terminating', reason: 'InstanceDeletionPending' });
    const seen: string[] = [];
    for await (const { type, object } of watch) seen.push(`${type} ${(object as KubernetesObject).metadata?.name}`);
    expect(seen).toEqual(['DELETED a', 'DELETED b']);
    await gone('widgets.example.com');
    expect((await call('GET', ALL)).code).toBe(404);
    expect((await call('GET', '/apis')).text).not.toContain('example.com');
    await expect(widgets.list()).rejects.toThrow(/^404/);
    await define(crdOf());
    expect((await widgets.list()).items).toEqual([]);
  });

  test('waits for finalizers of its objects, and takes no new ones meanwhile', async () => {
    const { call, define, gone, read } = begun();
    await define(crdOf());
    await call('POST', WIDGETS, { metadata: { name: 'a', finalizers: ['example.com/x'] } });
    await call('DELETE', `${CRDS}/widgets.example.com`);
    await expect
      .poll(async () => (await read('widgets.example.com')).body.status.conditions[2].reason)
      .toBe('InstanceDeletionInProgress');
    const refused = await call('POST', WIDGETS, { metadata: { name: 'b' } });
    expect([refused.code, refused.body.message]).toEqual([
      403,
      'widgets.example.com "b" is forbidden: create not allowed while custom resource definition is terminating',
    ]);
    const { verbs } = (await call('GET', '/apis/example.com/v1')).body.resources[0];
    expect(verbs).toEqual(['delete', 'deletecollection', 'get', 'list', 'watch']);
    expect((await call('PATCH', `${WIDGETS}/a`, { metadata: { finalizers: null } })).code).toBe(200);
    await gone('widgets.example.com');
    expect((await call('GET', ALL)).code).toBe(404);
  });

  test('deletes nothing of another one, whatever its status says', async () => {
    const { call, define, gone } = begun();
    const GEARS = '/apis/example.com/v1/namespaces/default/gears';
    await define(crdOf());
    await define(crdOf({}, {}, 'gears', 'Gear'));
    for (const path of [WIDGETS, GEARS]) await call('POST', path, { metadata: { name: 'a', finalizers: ['example.com/x'] } });
    await call('DELETE', `${CRDS}/widgets.example.com`);
    // What is written into the status of one that is Terminating stays.
    const lie = { status: { acceptedNames: { plural: 'gears', kind: 'Gear' } } };
    expect((await call('PATCH', `${CRDS}/widgets.example.com/status`, lie)).code).toBe(200);
    await expect.poll(async () => (await call('GET', ALL)).code).toBe(404);
    expect((await call('GET', `${GEARS}/a`)).body.metadata.deletionTimestamp).toBeUndefined();
    const truth = { status: { acceptedNames: { plural: 'widgets', kind: 'Widget' } } };
    await call('PATCH', `${CRDS}/widgets.example.com/status`, truth);
    await expect.poll(async () => (await call('PATCH', `${WIDGETS}/a`, { metadata: { finalizers: null } })).code).toBe(200);
    await gone('widgets.example.com');
    expect((await call('GET', `${GEARS}/a`)).body.metadata.deletionTimestamp).toBeUndefined();
  });

  test('goes with its objects without a question to the hooks: they have been asked about the definition', async () => {
    const asked: string[] = [];
    const validate = ({ operation, resource, name, deny }: AdmissionReview): void => {
      if (operation !== 'DELETE') return;
      asked.push(`${resource} ${name}`);
      if (name === 'a') deny('never');
    };
    const { call, define, gone } = begun({ admission: { validate } });
    await define(crdOf());
    await call('POST', WIDGETS, { metadata: { name: 'a' } });
    await call('DELETE', `${CRDS}/widgets.example.com`);
    await gone('widgets.example.com');
    expect(asked).toEqual(['customresourcedefinitions.apiextensions.k8s.io widgets.example.com']);
  });

  test.each([
    ['without a status', crdOf({}, {}, 'gears', 'Gear')],
    ['without anything', { ...crdOf({}, {}, 'gears', 'Gear'), spec: undefined }],
    ['of another shape', { ...crdOf({}, {}, 'gears', 'Gear'), spec: 5, status: 'x' }],
    ['with an impossible list', crdOf({ versions: 'v1' }, {}, 'gears', 'Gear')],
  ])('that was stored %s takes no other one away, and can be read, replaced and deleted', async (how, stored) => {
    const storage = new MemoryStorage();
    await begun({ storage }).define(crdOf());
    for (const name of ['aaa', 'gears']) {
      const metadata = { name: `${name}.example.com`, uid: name };
      await storage
        .scope('apiextensions.k8s.io/customresourcedefinitions/')
        .create(metadata.name, { ...stored, metadata } as never);
    }
    const { call, gone, established } = begun({ storage });
    expect((await call('GET', ALL)).code).toBe(200);
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    expect((await call('GET', CRDS, undefined, { accept })).body.rows).toHaveLength(3);
    if (how === 'without a status') {
      await established('gears.example.com');
      const { code } = await call('PUT', `${CRDS}/gears.example.com`, crdOf({}, {}, 'gears', 'Gear'));
      expect(code).toBe(200);
    }
    for (const name of ['aaa', 'gears']) {
      expect((await call('DELETE', `${CRDS}/${name}.example.com`)).code).toBe(200);
      await gone(`${name}.example.com`);
    }
    expect((await call('GET', ALL)).code).toBe(200);
  });

  test.each([
    [crdOf({ versions: [null] }), 422],
    [crdOf({ versions: [{}] }), 422],
    [crdOf({}, { additionalPrinterColumns: [null] }), 422],
    [crdOf({}, { selectableFields: [null] }), 422],
  ])('with null in a list has an empty value there, as in Go: %j', async (crd, code) => {
    const answer = await begun().call('POST', CRDS, crd);
    expect([answer.code, answer.body.reason]).toEqual([code, 'Invalid']);
  });

  test('in a group of k8s.io defines custom resources, too: they have to say of what kind they are', async () => {
    const { define, call } = begun();
    const annotations = { 'api-approved.kubernetes.io': 'unapproved, for a test' };
    await define({ ...crdOf({ group: 'x.k8s.io' }), metadata: { name: 'widgets.x.k8s.io', annotations } });
    const path = WIDGETS.replace('example.com', 'x.k8s.io');
    expect((await call('POST', path, { kind: undefined, metadata: { name: 'a' } })).code).toBe(400);
    expect((await call('POST', path, { metadata: { name: 'a' } })).code).toBe(201);
  });

  test('is served by all servers of a storage, and after a restart', async () => {
    const storage = new MemoryStorage();
    const one = begun({ storage: remote(storage) });
    const two = begun({ storage: remote(storage) });
    await one.define(crdOf());
    await expect.poll(async () => (await two.call('GET', ALL)).code).toBe(200);
    await two.call('POST', WIDGETS, { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'a' } });
    const three = begun({ storage: remote(storage) });
    expect((await three.call('GET', ALL)).body.items).toHaveLength(1);
    await three.call('DELETE', `${CRDS}/widgets.example.com`);
    for (const each of [one, two, three]) {
      await expect.poll(async () => (await each.call('GET', ALL)).code).toBe(404);
    }
    expect((await storage.list()).items).toEqual([]);
  });
});

describe('versions', () => {
  const V1 = {
    name: 'v1',
    served: true,
    storage: true,
    schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
  };
  const V2 = { ...V1, name: 'v2', storage: false };
  const two = (first: object, second: object): object => crdOf({ versions: [first, second] });
  const in2 = '/apis/example.com/v2/namespaces/default/widgets';

  test('are no longer stored if its status says so, until the definition is written', async () => {
    const { call, define } = begun();
    await define(two({ ...V1, storage: false }, { ...V2, storage: true }));
    const [at, status] = [`${CRDS}/widgets.example.com`, `${CRDS}/widgets.example.com/status`];
    const stored = async (path: string, change: object): Promise<unknown> => {
      const { code, body } = await call('PATCH', path, change);
      return code === 200 ? body.status.storedVersions : code;
    };
    expect(await stored(status, { status: { storedVersions: ['v1'] } })).toEqual(['v1']);
    expect((await call('GET', at)).body.status.storedVersions).toEqual(['v1']);
    expect(await stored(at, { metadata: { labels: { a: 'b' } } })).toEqual(['v1', 'v2']);
    expect(await stored(status, { status: { storedVersions: [] } })).toEqual(['v2']);
    expect(await stored(status, { status: { storedVersions: ['v0'] } })).toEqual(['v0']);
    expect(await stored(at, { metadata: { labels: { a: 'c' } } })).toBe(422);
  });

  test('are read in the one that is asked for, and stored in one; an update migrates', async () => {
    const { call, define, storage } = begun();
    await define(two(V1, V2));
    const created = await call('POST', in2, { apiVersion: 'example.com/v2', metadata: { name: 'a' }, spec: { size: 1 } });
    expect(created.body.apiVersion).toBe('example.com/v2');
    const storedAs = async (): Promise<unknown> => (await storage.get('example.com/widgets/default/a'))?.apiVersion;
    expect(await storedAs()).toBe('example.com/v1');
    expect((await call('GET', `${WIDGETS}/a`)).body.apiVersion).toBe('example.com/v1');
    expect((await call('GET', in2)).body.items[0].apiVersion).toBe('example.com/v2');
    const versions = [
      { ...V1, storage: false },
      { ...V2, storage: true },
    ];
    const changed = await call('PATCH', `${CRDS}/widgets.example.com`, { spec: { versions } });
    expect(changed.body.status.storedVersions).toEqual(['v1', 'v2']);
    await expect.poll(async () => (await call('PATCH', `${WIDGETS}/a`, {})).code).toBe(200);
    await expect.poll(async () => (await call('PATCH', `${WIDGETS}/a`, {})).code && (await storedAs())).toBe('example.com/v2');
    const only = await call('PATCH', `${CRDS}/widgets.example.com`, { spec: { versions: [{ ...V2, storage: true }] } });
    expect(only.body.message).toContain('status.storedVersions[0]: Invalid value: "v1": missing from spec.versions');
    await call('PATCH', `${CRDS}/widgets.example.com/status`, { status: { storedVersions: ['v2'] } });
    expect((await call('PATCH', `${CRDS}/widgets.example.com`, { spec: { versions: [{ ...V2, storage: true }] } })).code).toBe(
      200,
    );
    await expect.poll(async () => (await call('GET', `${WIDGETS}/a`)).code).toBe(404);
    expect((await call('GET', `${in2}/a`)).body.spec).toEqual({ size: 1 });
  });

  test('are converted by a function of the program, for which Webhook is accepted', async () => {
    const convert = {
      'widgets.example.com': (object: KubernetesObject, version: string): KubernetesObject => {
        const { size, sizes } = (object as { spec: { size?: number; sizes?: number[] } }).spec;
        const spec = version.endsWith('/v2') ? { sizes: [size] } : { size: sizes?.[0] };
        return { ...object, spec, metadata: { name: 'other', labels: { by: 'us' } } } as KubernetesObject;
      },
    };
    const { call, define } = begun({ convert });
    const webhook = { strategy: 'Webhook', webhook: { conversionReviewVersions: ['v1'] } };
    await define(crdOf({ versions: [V1, V2], conversion: webhook }));
    const created = await call('POST', in2, { metadata: { name: 'a' }, spec: { sizes: [4] } });
    expect([created.body.metadata.name, created.body.spec]).toEqual(['a', { sizes: [4] }]);
    const read = await call('GET', `${WIDGETS}/a`);
    expect([read.body.metadata.labels, read.body.spec]).toEqual([{ by: 'us' }, { size: 4 }]);
    expect((await call('PATCH', `${in2}/a`, { spec: { sizes: [5] } })).body.spec).toEqual({ sizes: [5] });
    expect((await call('GET', `${WIDGETS}/a`)).body.spec).toEqual({ size: 5 });
    const refused = await call('POST', CRDS, crdOf({ conversion: webhook }, {}, 'gears', 'Gear'));
    expect([refused.code, refused.body.message]).toEqual([422, expect.stringContaining('this server calls no webhooks')]);
  });
});
