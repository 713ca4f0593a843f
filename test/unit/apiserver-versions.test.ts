// A kind with two versions of different forms, asked for in the one that is not stored: every verb shows it in the version of the request,
// in process and over HTTP, and selects by what it shows.
import { afterEach, describe, expect, test } from 'vitest';
import type { ApiServerOptions, Convert, ResourceDefinition } from '../../src/apiserver/index.ts';
import { converting } from '../../src/apiserver/verbs/read.ts';
import { InformerFactory } from '../../src/cache/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { remote, rig } from './apiserver-rig.ts';
import { open } from './apiserver-sockets.ts';
import { CRDS, crdOf, crdRig } from './crd-rig.ts';

interface Widget extends KubernetesObject {
  readonly spec: { readonly size?: number; readonly sizes?: readonly number[] };
}

const convert: Convert = (object, version) => {
  const { spec = {}, ...rest } = object as Widget;
  const sizes = spec.sizes ?? (spec.size === undefined ? [] : [spec.size]);
  const { size: _, sizes: __, ...more } = spec;
  const made = version.endsWith('/v2') ? { sizes } : { size: sizes[0] };
  return { ...rest, spec: { ...more, ...made } } as KubernetesObject;
};

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

const V2_PATH = '/apis/example.com/v2/namespaces/default/widgets';
const V1_PATH = V2_PATH.replace('v2', 'v1');
const IN_V2 = { apiVersion: 'example.com/v2', kind: 'Widget' };

/** Widgets of the program. Both versions have a field of the same name. */
const FIXED: readonly ResourceDefinition[] = (['v1', 'v2'] as const).map(
  (version): ResourceDefinition => ({
    ...{ group: 'example.com', version, plural: 'widgets', kind: 'Widget', status: true },
    scale: { specReplicasPath: version === 'v1' ? '.spec.size' : '.spec.count', statusReplicasPath: '.status.size' },
    fields: {
      'spec.first': (object) => String(((object as Widget).spec.size ?? (object as Widget).spec.sizes?.[0]) as number),
      [`spec.${version}`]: (object) => `${(object as Widget).apiVersion} ${JSON.stringify(Object.keys((object as Widget).spec))}`,
    },
  }),
);

type Rig = ReturnType<typeof rig>;

function fixed(options: Partial<ApiServerOptions> = {}): Rig {
  const made = rig({ resources: FIXED, convert: { 'widgets.example.com': convert }, ...options });
  stops.push(() => made.server.shutdown());
  return made;
}

const SCHEMA = (spec: object): object => ({
  schema: {
    openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties: spec }, status: { type: 'object' } } },
  },
});
const VERSIONS = [
  {
    ...{ name: 'v1', served: true, storage: true, subresources: { status: {} } },
    ...SCHEMA({ size: { type: 'integer' }, color: { type: 'string', default: 'red' } }),
    selectableFields: [{ jsonPath: '.spec.size' }, { jsonPath: '.spec.color' }],
  },
  {
    ...{ name: 'v2', served: true, storage: false, subresources: { status: {} } },
    ...SCHEMA({ sizes: { type: 'array', items: { type: 'integer' } }, color: { type: 'string', default: 'blue' } }),
    selectableFields: [{ jsonPath: '.spec.color' }],
  },
];

async function defined(options: Parameters<typeof crdRig>[0] = {}): Promise<ReturnType<typeof crdRig>> {
  const made = crdRig({ convert: { 'widgets.example.com': convert }, ...options });
  stops.push(() => made.server.shutdown());
  await made.define(crdOf({ versions: VERSIONS }));
  return made;
}

describe('every verb in the version that is not stored', () => {
  test('answers in that version, over HTTP', async () => {
    const { call } = await defined();
    const shows = async (method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<unknown> => {
      const answer = await call(method, path, body, headers);
      const { spec, apiVersion } = answer.body.items?.[0] ?? answer.body;
      return [answer.code, apiVersion, spec];
    };
    const v2 = (code: number, size: number): unknown => [code, 'example.com/v2', { sizes: [size], color: 'red' }];
    const widget = {
      metadata: { name: 'a', labels: { app: 'a' }, finalizers: ['example.com/held'] },
      spec: { sizes: [1], color: 'red' },
    };
    expect(await shows('POST', `${V2_PATH}?dryRun=All`, widget)).toEqual(v2(201, 1));
    expect(await shows('POST', V2_PATH, widget)).toEqual(v2(201, 1));
    expect(await shows('GET', `${V2_PATH}/a`)).toEqual(v2(200, 1));
    expect(await shows('GET', `${V2_PATH}/a/status`)).toEqual(v2(200, 1));
    expect(await shows('GET', V2_PATH)).toEqual(v2(200, 1));
    expect(await shows('PUT', `${V2_PATH}/a`, { ...widget, spec: { sizes: [2], color: 'red' } })).toEqual(v2(200, 2));
    expect(await shows('PATCH', `${V2_PATH}/a?dryRun=All`, { spec: { sizes: [9] } })).toEqual(v2(200, 9));
    expect(await shows('PATCH', `${V2_PATH}/a`, { spec: { sizes: [3] } })).toEqual(v2(200, 3));
    const json = { 'content-type': 'application/json-patch+json' };
    const patch = [
      { op: 'test', path: '/spec/sizes/0', value: 3 },
      { op: 'replace', path: '/spec/sizes/0', value: 4 },
    ];
    expect(await shows('PATCH', `${V2_PATH}/a`, patch, json)).toEqual(v2(200, 4));
    expect(await shows('PATCH', `${V2_PATH}/a/status`, { status: {} })).toEqual(v2(200, 4));
    const apply = { 'content-type': 'application/apply-patch+yaml' };
    const config = { ...IN_V2, metadata: { name: 'a' }, spec: { sizes: [5] } };
    expect(await shows('PATCH', `${V2_PATH}/a?fieldManager=us&force=true`, config, apply)).toEqual(v2(200, 5));
    expect(await shows('DELETE', `${V2_PATH}/a?dryRun=All`)).toEqual(v2(200, 5));
    expect(await shows('DELETE', `${V2_PATH}?labelSelector=app%3Da`)).toEqual(v2(200, 5));
    expect(await shows('DELETE', `${V2_PATH}/a`)).toEqual(v2(200, 5));
    expect(await shows('GET', `${V1_PATH}/a`)).toEqual([200, 'example.com/v1', { size: 5, color: 'red' }]);
    expect(await shows('PATCH', `${V2_PATH}/a`, { metadata: { finalizers: null } })).toEqual(v2(200, 5));
    expect((await call('GET', `${V2_PATH}/a`)).code).toBe(404);
  });

  test('a write of the status takes nothing from the owners of the other version', async () => {
    const { call, define } = crdRig();
    await define(crdOf({ versions: VERSIONS }));
    const widget = { metadata: { name: 'a', annotations: { n: 'm' } }, spec: { color: 'red' } };
    await call('POST', `${V2_PATH}?fieldManager=two`, widget);
    const owners = async (path: string, body: object): Promise<unknown> => {
      const answer = await call('PUT', `${V1_PATH}/a${path}`, body);
      const entries = answer.body.metadata.managedFields as { manager: string; fieldsV1: object }[];
      return Object.fromEntries(entries.map(({ manager, fieldsV1 }) => [manager, fieldsV1]));
    };
    const two = { 'f:metadata': { 'f:annotations': { '.': {}, 'f:n': {} } }, 'f:spec': { '.': {}, 'f:color': {} } };
    const other = { metadata: { name: 'a' }, spec: { color: 'green' }, status: {} };
    expect(await owners('/status?fieldManager=part', other)).toEqual({ two, part: { 'f:status': {} } });
    expect((await call('GET', `${V2_PATH}/a`)).body.spec).toEqual({ color: 'red' });
    expect(await owners('?fieldManager=one', { ...other, metadata: widget.metadata })).toEqual({
      one: { 'f:spec': { 'f:color': {} } },
      part: { 'f:status': {} },
      two: { ...two, 'f:spec': {} },
    });
  });

  test('an owner of the other version owns its fields in the form of that version', async () => {
    const { call } = await defined();
    const apply = { 'content-type': 'application/apply-patch+yaml' };
    const asking = (path: string, apiVersion: string, spec: object) =>
      call('PATCH', path, { apiVersion, kind: 'Widget', metadata: { name: 'a' }, spec }, apply);
    const [one, two] = [`${V1_PATH}/a?fieldManager=one`, `${V2_PATH}/a?fieldManager=two`];
    expect((await asking(one, 'example.com/v1', { size: 3 })).code).toBe(201);
    expect((await asking(two, 'example.com/v2', { sizes: [3] })).code).toBe(200);
    const conflict = await asking(two, 'example.com/v2', { sizes: [4] });
    expect([conflict.code, conflict.body.details.causes]).toEqual([
      409,
      [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.spec.size' }],
    ]);
    const { body } = await asking(`${two}&force=true`, 'example.com/v2', { sizes: [4] });
    const entries = body.metadata.managedFields as { manager: string; fieldsV1: object }[];
    expect([body.spec, entries.map(({ manager, fieldsV1 }) => [manager, fieldsV1])]).toEqual([
      { sizes: [4], color: 'red' },
      [['two', { 'f:spec': { 'f:sizes': {} } }]],
    ]);
  });

  test('answers for the last finalizer with what would have been stored, defaults included', async () => {
    const { call, define } = crdRig();
    const only = { ...VERSIONS[1], ...SCHEMA({ color: { type: 'string' }, shape: { type: 'string', default: 'round' } }) };
    await define(crdOf({ versions: [VERSIONS[0], only] }));
    await call('POST', V1_PATH, { metadata: { name: 'a', finalizers: ['example.com/held'] }, spec: {} });
    await call('DELETE', `${V2_PATH}/a`);
    expect((await call('GET', `${V2_PATH}/a`)).body.spec).toEqual({ color: 'red' });
    for (const query of ['?dryRun=All', '']) {
      const { body } = await call('PATCH', `${V2_PATH}/a${query}`, { metadata: { finalizers: null } });
      expect([body.apiVersion, body.spec]).toEqual(['example.com/v2', { color: 'red', shape: 'round' }]);
    }
    expect((await call('GET', `${V2_PATH}/a`)).code).toBe(404);
  });

  test('answers in that version, in process', async () => {
    const { server } = fixed();
    const widgets = server.resource<Widget>('widgets.example.com/v2').in('default');
    const v2 = (size: number): object => ({ ...IN_V2, spec: { sizes: [size] } });
    const old = server.resource<Widget>('widgets.example.com/v1').in('default');
    await old.create({ metadata: { name: 'a', finalizers: ['example.com/held'] }, spec: { size: 1 } });
    const read = await widgets.get('a');
    expect(read).toMatchObject(v2(1));
    expect((await widgets.list()).items).toMatchObject([v2(1)]);
    expect(await widgets.get('a', { subresource: 'status' })).toMatchObject(v2(1));
    expect(await widgets.patch('a', { metadata: { labels: { a: 'b' } } })).toMatchObject(v2(1));
    expect(await widgets.patch('a', { status: { size: 1 } }, { subresource: 'status' })).toMatchObject(v2(1));
    expect(await widgets.patch('a', { spec: { sizes: [2] } }, { dryRun: true })).toMatchObject(v2(2));
    expect(await widgets.patch('a', { spec: { sizes: [2] } }, { type: 'apply', fieldManager: 'us', force: true })).toMatchObject(
      v2(2),
    );
    expect(await widgets.create({ metadata: { name: 'b' }, spec: { sizes: [3] } }, { dryRun: true })).toMatchObject(v2(3));
    await old.patch('a', { spec: { size: 4 } });
    expect(await widgets.delete('a', { dryRun: true })).toMatchObject(v2(4));
    expect(await widgets.delete('a')).toMatchObject(v2(4));
    expect(await widgets.deleteCollection()).toMatchObject([v2(4)]);
    expect(await widgets.patch('a', { metadata: { finalizers: null } })).toMatchObject(v2(4));
    expect((await widgets.list()).items).toEqual([]);
  });

  test('shows hooks the version of the request, what there was before as well', async () => {
    const seen: unknown[] = [];
    const spec = (object: KubernetesObject | undefined): unknown => object && [object.apiVersion, (object as Widget).spec];
    const { call } = await defined({
      admission: {
        mutate: ({ object }) => void seen.push(['mutate', spec(object as KubernetesObject)]),
        validate: ({ operation, object, oldObject }) =>
          void seen.push([
            operation,
            spec(object as KubernetesObject | undefined),
            spec(oldObject as KubernetesObject | undefined),
          ]),
      },
    } as Parameters<typeof crdRig>[0]);
    seen.length = 0;
    await call('POST', V1_PATH, { metadata: { name: 'a' }, spec: { size: 1 } });
    seen.length = 0;
    await call('PATCH', `${V2_PATH}/a`, { spec: { sizes: [2] } });
    await call('DELETE', V2_PATH);
    const [one, two] = [1, 2].map((size) => ['example.com/v2', { sizes: [size], color: 'red' }]);
    expect(seen).toEqual([
      ['mutate', two],
      ['UPDATE', two, one],
      ['DELETE', undefined, two],
    ]);
  });
});

describe('selectors of a version', () => {
  const storages: readonly (readonly [string, (storage: MemoryStorage) => Storage])[] = [
    ['in memory', (storage) => storage],
    ['behind a cache', remote],
  ];
  test.each(storages)('find what it shows, whichever version was written: %s', async (_, over) => {
    const { server, call } = fixed({ storage: over(new MemoryStorage()) });
    await call('POST', V1_PATH, { metadata: { name: 'one' }, spec: { size: 7 } });
    await call('POST', V2_PATH, { metadata: { name: 'two' }, spec: { sizes: [7] } });
    const found = async (path: string, selector: string): Promise<unknown> => {
      const { code, body } = await call('GET', `${path}?fieldSelector=${encodeURIComponent(selector)}`);
      return code === 200 ? body.items.map(({ metadata }: KubernetesObject) => metadata?.name) : body.message;
    };
    expect(await found(V1_PATH, 'spec.v1=example.com/v1 ["size"]')).toEqual(['one', 'two']);
    expect(await found(V2_PATH, 'spec.v2=example.com/v2 ["sizes"]')).toEqual(['one', 'two']);
    expect(await found(V2_PATH, 'spec.first=7,metadata.name=one')).toEqual(['one']);
    expect(await found(V2_PATH, 'spec.first!=7')).toEqual([]);
    expect(await found(V2_PATH, 'spec.v1=any')).toBe('field label not supported: spec.v1');
    expect(await found(V1_PATH, 'spec.v2=any')).toBe('field label not supported: spec.v2');
    const list = await server.resource('widgets.example.com/v2').list({ fieldSelector: 'spec.first=7', limit: 1 });
    expect(list.items).toMatchObject([IN_V2]);
    const rest = await server.resource('widgets.example.com/v2').list({ fieldSelector: 'spec.first=7', continue: list.continue });
    expect(rest.items).toMatchObject([{ ...IN_V2, metadata: { name: 'two' } }]);
  });

  test('say when an object begins and stops to match, in that version', async () => {
    const { server, call } = fixed();
    const abort = new AbortController();
    const watch = await server.source('widgets.example.com/v2', { namespace: 'default' }).watch({
      fieldSelector: 'spec.v2=example.com/v2 ["sizes"],spec.first=7',
      signal: abort.signal,
    });
    await call('POST', V1_PATH, { metadata: { name: 'a' }, spec: { size: 6 } });
    for (const size of [7, 8]) await call('PATCH', `${V1_PATH}/a`, { spec: { size } });
    const events: unknown[] = [];
    for await (const { type, object } of watch) {
      const { apiVersion, spec } = object as Widget;
      if (type !== 'BOOKMARK') events.push([type, apiVersion, spec]);
      if (type === 'DELETED') break;
    }
    expect(events).toEqual([
      ['ADDED', 'example.com/v2', { sizes: [7] }],
      ['DELETED', 'example.com/v2', { sizes: [7] }],
    ]);
    abort.abort();
  });

  test('find what has a default that is not stored', async () => {
    const { call, storage } = await defined();
    await storage.create('example.com/widgets/default/a', {
      ...{ apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'a', namespace: 'default' }, spec: { size: 1 } },
    } as KubernetesObject);
    for (const path of [V1_PATH, V2_PATH]) {
      expect((await call('GET', `${path}?fieldSelector=spec.color%3Dred`)).body.items).toMatchObject([
        { spec: { color: 'red' } },
      ]);
      expect((await call('GET', `${path}?fieldSelector=spec.color%3Dblue`)).body.items).toEqual([]);
    }
    expect((await call('GET', `${V2_PATH}?fieldSelector=spec.size%3D1`)).code).toBe(400);
  });
});

describe('two servers of one storage', () => {
  test('show objects as each of them converts them', async () => {
    const { server, storage } = fixed();
    const other = fixed({
      storage,
      convert: { 'widgets.example.com': (object) => ({ ...object, spec: { sizes: [0] } }) as KubernetesObject },
    });
    await server
      .resource<Widget>('widgets.example.com/v1')
      .in('default')
      .create({ metadata: { name: 'a' }, spec: { size: 1 } });
    const read = (from: Rig['server']): Promise<Widget> => from.resource<Widget>('widgets.example.com/v2').in('default').get('a');
    expect((await read(server)).spec).toEqual({ sizes: [1] });
    expect((await read(other.server)).spec).toEqual({ sizes: [0] });
  });
});

describe('what is deprecated', () => {
  test('is said to its clients, and to those of no other version', async () => {
    const { call } = await defined();
    const warned = async (path: string): Promise<string | null> => (await call('GET', path)).headers.get('warning');
    expect(await warned(V2_PATH)).toBeNull();
    const [one, two] = VERSIONS as [object, object];
    await call('PATCH', `${CRDS}/widgets.example.com`, {
      spec: { versions: [{ ...one, deprecated: true, deprecationWarning: 'use "v2"' }, two] },
    });
    await expect.poll(() => warned(V1_PATH)).toBe('299 - "use \\"v2\\""');
    expect(await warned(`${V1_PATH}/nobody`)).toBe('299 - "use \\"v2\\""');
    expect(await warned(`${V1_PATH}?watch=1&timeoutSeconds=1&resourceVersion=1`)).toBe('299 - "use \\"v2\\""');
    expect(await warned(V2_PATH)).toBeNull();
  });

  test('is UTF-8 in the head of a watch as well, over a socket', async () => {
    const { url, call } = await open({ customResourceDefinitions: true, resources: [] });
    const more = { deprecated: true, deprecationWarning: 'für „v1“' };
    await call('POST', CRDS, crdOf({}, more));
    const path = '/apis/example.com/v1/namespaces/default/widgets?timeoutSeconds=1&resourceVersion=1';
    const warned = async (query: string): Promise<string> => {
      const { headers, body } = await fetch(url + path + query);
      await body?.cancel();
      return Buffer.from(headers.get('warning') ?? '', 'latin1').toString();
    };
    for (const query of ['', '&watch=1']) await expect.poll(() => warned(query)).toBe(`299 - "${more.deprecationWarning}"`);
  });
});

describe('what is deprecated without words', () => {
  test.each([
    { which: [true, false], said: '; use example.com/v2 Widget' },
    { which: [false, true], said: '' }, // v1 is no newer one
    { which: [true, true], said: '' },
  ])('names the first newer version that is not: $which', async ({ which, said }) => {
    const { call } = await defined();
    const path = which[0] ? V1_PATH : V2_PATH;
    const versions = VERSIONS.map((version, at) => ({ ...version, deprecated: which[at] }));
    await call('PATCH', `${CRDS}/widgets.example.com`, { spec: { versions } });
    const warned = async (): Promise<string | null> => (await call('GET', path)).headers.get('warning');
    await expect.poll(warned).toBe(`299 - "example.com/${which[0] ? 'v1' : 'v2'} Widget is deprecated${said}"`);
  });
});

describe('what else reads a kind in a version that is not stored', () => {
  test('an informer has its objects in that version, also those that are deleted', async () => {
    const { server, call } = await defined();
    await call('POST', V1_PATH, { metadata: { name: 'a' }, spec: { size: 1 } });
    const factory = new InformerFactory(server.source);
    const informer = factory.informer<Widget>('widgets.example.com/v2');
    const seen: unknown[] = [];
    const note =
      (what: string) =>
      (object: Widget): void =>
        void seen.push([what, object.apiVersion, object.spec.sizes]);
    informer.addHandler({ onAdd: note('add'), onUpdate: (_, object) => note('update')(object), onDelete: note('delete') });
    factory.start();
    await factory.waitForSync();
    await expect.poll(() => seen).toEqual([['add', 'example.com/v2', [1]]]);
    await call('PATCH', `${V1_PATH}/a`, { spec: { size: 2 } });
    await call('DELETE', `${V1_PATH}/a`);
    await expect
      .poll(() => seen.slice(1))
      .toEqual([
        ['update', 'example.com/v2', [2]],
        ['delete', 'example.com/v2', [2]],
      ]);
    await factory.shutdown();
  });

  test('the garbage collector finds owners that are named in it', async () => {
    const { call, storage } = await defined({ garbageCollection: true });
    const { body: owner } = await call('POST', V1_PATH, { metadata: { name: 'owner' }, spec: { size: 1 } });
    const { name, uid } = owner.metadata;
    const ownerReferences = [{ ...IN_V2, name, uid }];
    for (const dependent of ['a', 'b']) {
      const path = dependent === 'a' ? V1_PATH : V2_PATH;
      expect((await call('POST', path, { metadata: { name: dependent, ownerReferences }, spec: {} })).code).toBe(201);
    }
    expect((await storage.list()).items.filter(({ kind }) => kind === 'Widget')).toHaveLength(3);
    await call('DELETE', `${V2_PATH}/owner`);
    await expect.poll(async () => (await call('GET', V1_PATH)).body.items).toEqual([]);
  });
});

test('what a conversion gets is copied in pieces', () => {
  const sizes = Array.from({ length: 60_000 }, (_, size) => ({ size }));
  const object = { ...IN_V2, metadata: { name: 'a' }, spec: { sizes } };
  let given: KubernetesObject | undefined;
  const keep: Convert = (copy) => {
    given = copy;
    return copy;
  };
  expect([...converting({ convert: keep, kind: 'Widget' } as never, object, 'example.com/v1')].length).toBeGreaterThan(10);
  expect(given).toEqual(object);
  expect(given?.metadata).not.toBe(object.metadata);
});
