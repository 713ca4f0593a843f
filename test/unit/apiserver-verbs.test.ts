// The verbs over HTTP, without a socket: what is answered, and what is then there.
import { describe, expect, test, vi } from 'vitest';
import { BUILT_IN_KINDS, CONFIG_MAPS, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { type Answered, ORDERS, ORDERS_PATH, rig } from './apiserver-rig.ts';

describe('kinds whose updates are others', () => {
  const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
  const leases = () => rig({ resources: BUILT_IN_KINDS });

  test('a Lease is not replaced without its version, so that no second leader takes it', async () => {
    const { call, server } = leases();
    const { body } = await call('POST', LEASES, { metadata: { name: 'l' }, spec: { holderIdentity: 'a' } });
    for (const resourceVersion of [undefined, '0', '']) {
      const stolen = { metadata: { name: 'l', resourceVersion }, spec: { holderIdentity: 'thief' } };
      const refused = await call('PUT', `${LEASES}/l`, stolen);
      expect(refused.code).toBe(422);
      expect(refused.body).toMatchObject({
        message:
          'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
      });
      await expect(
        server.resource('leases').update({ ...stolen, metadata: { ...stolen.metadata, namespace: 'default' } } as never),
      ).rejects.toMatchObject({
        status: { code: 422 },
      });
    }
    const { metadata } = body as { metadata: object };
    expect((await call('PUT', `${LEASES}/l`, { metadata, spec: { holderIdentity: 'b' } })).code).toBe(200);
    expect((await call('PATCH', `${LEASES}/l`, { spec: { holderIdentity: 'c' } })).code).toBe(200);
  });

  test('a PUT of a missing Lease creates it; of a missing ConfigMap, it does not', async () => {
    const { call, server } = leases();
    const lease = { metadata: { name: 'l' }, spec: { holderIdentity: 'a' } };
    expect((await call('PUT', `${LEASES}/l?dryRun=All`, lease)).code).toBe(201);
    expect((await call('GET', `${LEASES}/l`)).code).toBe(404);
    expect(await call('PUT', `${LEASES}/l`, lease)).toMatchObject({ code: 201, body: lease });
    expect((await call('PUT', `${LEASES}/m`, { metadata: { name: 'm', uid: 'x' } })).code).toBe(409);
    expect((await call('PUT', `${LEASES}/m`, lease)).code).toBe(400);
    expect((await call('PUT', '/api/v1/namespaces/default/configmaps/c', { metadata: { name: 'c' } })).code).toBe(404);
    const made = { metadata: { name: 'n', namespace: 'default' } };
    expect(await server.resource('leases').update(made as never)).toMatchObject(made);
    await expect(server.resource('configmaps').update(made as never)).rejects.toMatchObject({ status: { code: 404 } });
  });

  test('who may update but not create a Lease creates none by an update', async () => {
    const { call } = rig({ resources: BUILT_IN_KINDS, authorize: (verb) => verb !== 'create' });
    expect((await call('PUT', `${LEASES}/l`, { metadata: { name: 'l' } })).code).toBe(403);
  });
});

describe('create', () => {
  test('an object gets what only the server gives, and is there', async () => {
    const { call } = rig();
    const created = await call('POST', ORDERS_PATH, { metadata: { name: 'a', labels: { x: 'y' } }, spec: { item: 'tea' } });
    expect(created.code).toBe(201);
    expect(created.body).toEqual({
      apiVersion: 'example.com/v1',
      kind: 'Order',
      metadata: {
        name: 'a',
        namespace: 'default',
        uid: expect.stringMatching(/^uid-/),
        resourceVersion: expect.stringMatching(/^\d+$/),
        generation: 1,
        creationTimestamp: '2026-01-02T03:04:05Z',
        labels: { x: 'y' },
      },
      spec: { item: 'tea' },
    });
    const got = await call('GET', `${ORDERS_PATH}/a`);
    expect(got.code).toBe(200);
    expect(got.body).toEqual(created.body);
  });

  test('a name that is taken is 409 AlreadyExists', async () => {
    const { call } = rig();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const { code, body } = await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    expect(code).toBe(409);
    expect(body).toMatchObject({
      kind: 'Status',
      reason: 'AlreadyExists',
      message: 'orders.example.com "a" already exists',
      details: { name: 'a', group: 'example.com', kind: 'orders' },
    });
  });

  test('generateName gets an end, and another one if that is taken', async () => {
    let draws = 0;
    const { call } = rig({ cache: false, random: () => (draws++ < 10 ? 0.5 : 0.1) });
    const first = await call('POST', ORDERS_PATH, { metadata: { generateName: 'a-' } });
    const second = await call('POST', ORDERS_PATH, { metadata: { generateName: 'a-' } });
    expect([first.code, second.code]).toEqual([201, 201]);
    expect(first.body.metadata.name).toMatch(/^a-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    expect(second.body.metadata.name).not.toBe(first.body.metadata.name);
    expect(draws).toBe(15);
  });

  test('version 0 means none', async () => {
    const { call } = rig();
    const { code, body } = await call('POST', ORDERS_PATH, { metadata: { name: 'a', resourceVersion: '0' } });
    expect([code, Number(body.metadata.resourceVersion) > 0]).toEqual([201, true]);
  });

  test.each([
    ['no name', {}, 422, 'Order.example.com "" is invalid: metadata.name: Required value: name or generateName is required'],
    ['a bad name', { metadata: { name: 'A_b' } }, 422, 'a lowercase RFC 1123 subdomain must consist of'],
    [
      'a version',
      { metadata: { name: 'a', resourceVersion: '1' } },
      400,
      'resourceVersion should not be set on objects to be created',
    ],
    [
      'another namespace',
      { metadata: { name: 'a', namespace: 'b' } },
      400,
      'the namespace of the provided object does not match',
    ],
    ['another kind', { kind: 'Pod', metadata: { name: 'a' } }, 400, 'expected a Order of example.com/v1, got a Pod'],
    ['a bad label', { metadata: { name: 'a', labels: { '-': 'b' } } }, 422, 'metadata.labels'],
    ['a label that is no text', { metadata: { name: 'a', labels: { b: 1 } } }, 400, 'metadata.labels'],
    [
      'what validate refuses',
      { metadata: { name: 'a' }, spec: { count: -1 } },
      422,
      'spec.count: Invalid value: -1: must not be negative',
    ],
    ['a list', [], 400, 'expected an object'],
    ['no JSON', '{', 400, 'not JSON'],
  ])('%s is refused', async (_, body, code, message) => {
    const { call } = rig();
    const answered = await call('POST', ORDERS_PATH, body);
    expect(answered.code).toBe(code);
    expect(answered.body.message).toContain(message);
    expect((await call('GET', ORDERS_PATH)).body.items).toEqual([]);
  });

  test('in a namespace that does not exist is 404, until it does', async () => {
    const { call } = rig();
    const path = '/api/v1/namespaces/x/configmaps';
    const refused = await call('POST', path, { metadata: { name: 'a' } });
    expect(refused.code).toBe(404);
    expect(refused.body.message).toBe('namespaces "x" not found');
    expect((await call('POST', '/api/v1/namespaces', { metadata: { name: 'x' } })).code).toBe(201);
    expect((await call('POST', path, { metadata: { name: 'a' } })).code).toBe(201);
  });

  test('what is empty is left out, and so is what the server does not keep', async () => {
    const { call } = rig();
    const metadata = {
      name: 'a',
      labels: {},
      annotations: {},
      finalizers: [],
      ownerReferences: [],
      managedFields: [],
      selfLink: '/x',
    };
    const { body } = await call('POST', ORDERS_PATH, { metadata });
    const names = ['name', 'namespace', 'uid', 'generation', 'creationTimestamp', 'resourceVersion'];
    expect(Object.keys(body.metadata).sort()).toEqual(names.sort());
  });

  test('a namespace that cannot be one is 422, also where none are served', async () => {
    const { call } = rig({ resources: [ORDERS as ResourceDefinition] });
    const { code, body } = await call('POST', '/apis/example.com/v1/namespaces/A_b/orders', { metadata: { name: 'a' } });
    expect(code).toBe(422);
    expect(body.details.causes).toEqual([expect.objectContaining({ field: 'metadata.namespace' })]);
    expect((await call('POST', '/apis/example.com/v1/namespaces/any/orders', { metadata: { name: 'a' } })).code).toBe(201);
  });

  test('dryRun=All checks all and changes nothing', async () => {
    const { call } = rig();
    expect((await call('POST', `${ORDERS_PATH}?dryRun=All`, { metadata: { name: 'a' } })).code).toBe(201);
    expect((await call('GET', `${ORDERS_PATH}/a`)).code).toBe(404);
    expect((await call('POST', `${ORDERS_PATH}?dryRun=Some`, { metadata: { name: 'a' } })).code).toBe(422);
  });
});

describe('update', () => {
  test('replaces; generation grows with the content and not with metadata', async () => {
    const { call } = rig();
    const { body } = await call('POST', ORDERS_PATH, { metadata: { name: 'a' }, spec: { count: 1 } });
    const labelled = await call('PUT', `${ORDERS_PATH}/a`, { ...body, metadata: { ...body.metadata, labels: { x: 'y' } } });
    expect(labelled.body.metadata).toMatchObject({ generation: 1, labels: { x: 'y' } });
    const changed = await call('PUT', `${ORDERS_PATH}/a`, { ...labelled.body, spec: { count: 2 } });
    expect(changed.body.metadata.generation).toBe(2);
    expect(changed.body.metadata.uid).toBe(body.metadata.uid);
  });

  test('an old version is 409 Conflict', async () => {
    const { call } = rig();
    const { body } = await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    await call('PUT', `${ORDERS_PATH}/a`, { ...body, spec: { count: 1 } });
    const late = await call('PUT', `${ORDERS_PATH}/a`, { ...body, spec: { count: 2 } });
    expect(late.code).toBe(409);
    expect(late.body.reason).toBe('Conflict');
    expect(late.body.message).toBe(
      'Operation cannot be fulfilled on orders.example.com "a": the object has been modified; please apply your changes to the latest version and try again',
    );
  });

  test('what changes nothing keeps the version', async () => {
    const { call } = rig();
    const { body } = await call('POST', ORDERS_PATH, { metadata: { name: 'a' }, spec: { count: 1, item: 'x' } });
    const again = await call('PUT', `${ORDERS_PATH}/a`, { spec: { item: 'x', count: 1 }, metadata: { name: 'a' } });
    expect(again.body.metadata.resourceVersion).toBe(body.metadata.resourceVersion);
  });

  test.each([
    ['another name', (body: Answered['body']) => ({ ...body, metadata: { ...body.metadata, name: 'b' } }), 400],
    ['another uid', (body: Answered['body']) => ({ ...body, metadata: { ...body.metadata, uid: 'z' } }), 409],
    [
      'a version that is none',
      (body: Answered['body']) => ({ ...body, metadata: { ...body.metadata, resourceVersion: 'x' } }),
      422,
    ],
  ])('%s is refused', async (_, change, code) => {
    const { call } = rig();
    const { body } = await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    expect((await call('PUT', `${ORDERS_PATH}/a`, change(body))).code).toBe(code);
  });

  test('of what is not there is 404', async () => {
    const { call } = rig();
    const { code, body } = await call('PUT', `${ORDERS_PATH}/a`, { metadata: { name: 'a' } });
    expect(code).toBe(404);
    expect(body.message).toBe('orders.example.com "a" not found');
  });

  test('status is written at its own path alone', async () => {
    const { call } = rig();
    const { body } = await call('POST', ORDERS_PATH, { metadata: { name: 'a' }, spec: { count: 1 }, status: { phase: 'x' } });
    expect(body.status).toBeUndefined();
    const main = await call('PUT', `${ORDERS_PATH}/a`, { ...body, status: { phase: 'x' } });
    expect(main.body.status).toBeUndefined();
    const status = await call('PUT', `${ORDERS_PATH}/a/status`, { ...main.body, spec: { count: 9 }, status: { phase: 'done' } });
    expect(status.body).toMatchObject({ spec: { count: 1 }, status: { phase: 'done' }, metadata: { generation: 1 } });
    const patched = await call('PATCH', `${ORDERS_PATH}/a/status`, { status: { phase: 'again' }, spec: { count: 3 } });
    expect(patched.body).toMatchObject({ spec: { count: 1 }, status: { phase: 'again' } });
    expect((await call('GET', `${ORDERS_PATH}/a/status`)).body.status.phase).toBe('again');
    expect((await call('PUT', '/api/v1/namespaces/default/configmaps/a/status', body)).code).toBe(404);
  });
});

describe('patch', () => {
  test('merges, removes what is null, and counts as an update', async () => {
    const { call } = rig();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a', labels: { x: 'y', z: 'w' } }, spec: { count: 1, item: 'tea' } });
    const { code, body } = await call('PATCH', `${ORDERS_PATH}/a`, { metadata: { labels: { x: null } }, spec: { count: 2 } });
    expect(code).toBe(200);
    expect(body).toMatchObject({ metadata: { labels: { z: 'w' }, generation: 2 }, spec: { count: 2, item: 'tea' } });
    expect(body.metadata.labels.x).toBeUndefined();
  });

  test('of a type that the server does not know is 415', async () => {
    const { call } = rig();
    const { code } = await call('PATCH', `${ORDERS_PATH}/a`, {}, { 'content-type': 'application/yaml' });
    expect(code).toBe(415);
  });
});

describe('delete', () => {
  test('tells success, and the object is gone', async () => {
    const { call } = rig();
    const { body } = await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const deleted = await call('DELETE', `${ORDERS_PATH}/a`);
    expect(deleted.code).toBe(200);
    expect(deleted.body).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name: 'a', group: 'example.com', kind: 'orders', uid: body.metadata.uid },
    });
    expect((await call('DELETE', `${ORDERS_PATH}/a`)).code).toBe(404);
  });

  test('waits for finalizers, which cannot be added any more; the last one takes the object with it', async () => {
    const { call } = rig();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a', finalizers: ['example.com/x', 'example.com/y'] } });
    const marked = await call('DELETE', `${ORDERS_PATH}/a`);
    expect(marked.body.metadata).toMatchObject({ deletionTimestamp: '2026-01-02T03:04:05Z', generation: 2 });
    const other = await call('PATCH', `${ORDERS_PATH}/a`, { metadata: { deletionTimestamp: '2030-01-01T00:00:00Z' } });
    expect([other.code, other.body.metadata]).toEqual([200, marked.body.metadata]);
    const added = await call('PATCH', `${ORDERS_PATH}/a`, { metadata: { finalizers: ['example.com/x', 'example.com/z'] } });
    expect(added.code).toBe(422);
    expect((await call('PATCH', `${ORDERS_PATH}/a`, { metadata: { finalizers: ['example.com/y'] } })).code).toBe(200);
    expect((await call('GET', `${ORDERS_PATH}/a`)).code).toBe(200);
    expect((await call('PATCH', `${ORDERS_PATH}/a`, { metadata: { finalizers: null } })).code).toBe(200);
    expect((await call('GET', `${ORDERS_PATH}/a`)).code).toBe(404);
  });

  test('preconditions that do not hold are 409', async () => {
    const { call } = rig();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const { code } = await call('DELETE', `${ORDERS_PATH}/a`, { kind: 'DeleteOptions', preconditions: { uid: 'other' } });
    expect(code).toBe(409);
    for (const query of ['uid=other', 'resourceVersion=0'])
      for (const body of [undefined, {}, { preconditions: null }])
        expect((await call('DELETE', `${ORDERS_PATH}/a?${query}`, body)).code, query).toBe(409);
    expect((await call('DELETE', `${ORDERS_PATH}?uid=other`)).code).toBe(409);
    const { uid } = (await call('GET', `${ORDERS_PATH}/a`)).body.metadata;
    const preconditions = { uid };
    expect((await call('DELETE', `${ORDERS_PATH}/a?dryRun=All&uid=other`, { preconditions })).code).toBe(200);
    expect((await call('DELETE', `${ORDERS_PATH}/a?dryRun=All&resourceVersion=0`, { preconditions })).code).toBe(409);
    expect((await call('DELETE', `${ORDERS_PATH}/a`, { kind: 'DeleteOptions', gracePeriodSeconds: '1' })).code).toBe(400);
    const longest = { kind: 'DeleteOptions', gracePeriodSeconds: Number.MAX_SAFE_INTEGER };
    expect((await call('DELETE', `${ORDERS_PATH}/a?dryRun=All`, longest)).code).toBe(200);
    expect((await call('DELETE', `${ORDERS_PATH}/a?dryRun=All`)).code).toBe(200);
    expect((await call('GET', `${ORDERS_PATH}/a`)).code).toBe(200);
  });

  test('that is to change nothing changes nothing, wherever its options are', async () => {
    const { call } = rig();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const bodies = [undefined, {}, { kind: 'DeleteOptions', apiVersion: 'v1' }, { dryRun: [] }, { dryRun: null }];
    for (const path of [`${ORDERS_PATH}/a`, ORDERS_PATH]) {
      for (const body of bodies) expect((await call('DELETE', `${path}?dryRun=All`, body)).code).toBe(200);
      for (const query of ['', '?dryRun=All']) expect((await call('DELETE', path + query, { dryRun: ['All'] })).code).toBe(200);
      for (const query of ['dryRun=', 'dryRun=Nope', 'dryRun=All&dryRun=Nope'])
        for (const body of [undefined, {}, { dryRun: ['All'] }])
          expect((await call('DELETE', `${path}?${query}`, body)).code, query).toBe(422);
      expect((await call('DELETE', `${path}?orphanDependents=true`, { propagationPolicy: 'Background' })).code).toBe(422);
      expect((await call('DELETE', `${path}?propagationPolicy=Nope`, {})).code).toBe(422);
      expect((await call('DELETE', `${path}?gracePeriodSeconds=x`, {})).code).toBe(400);
    }
    expect((await call('GET', `${ORDERS_PATH}/a`)).code).toBe(200);
    expect((await call('DELETE', `${ORDERS_PATH}/a`, {})).code).toBe(200);
    expect((await call('GET', `${ORDERS_PATH}/a`)).code).toBe(404);
  });

  test('of a collection takes what the selector selects', async () => {
    const { call } = rig();
    for (const name of ['a', 'b', 'c'])
      await call('POST', ORDERS_PATH, { metadata: { name, labels: { even: `${name === 'b'}` } } });
    const { code, body } = await call('DELETE', `${ORDERS_PATH}?labelSelector=even%3Dfalse`);
    expect(code).toBe(200);
    expect(body.items.map((item: Answered['body']) => item.metadata.name)).toEqual(['a', 'c']);
    expect((await call('GET', ORDERS_PATH)).body.items.map((item: Answered['body']) => item.metadata.name)).toEqual(['b']);
  });

  test('of a collection tells what was deleted in pieces: all of it may be longer than a text can be', async () => {
    const { call } = rig();
    for (const name of ['a', 'b']) await call('POST', ORDERS_PATH, { metadata: { name } });
    const { stringify } = JSON;
    const limited = vi.spyOn(JSON, 'stringify').mockImplementation((value: unknown, ...more: unknown[]): string => {
      if (Array.isArray((value as { items?: unknown } | null)?.items)) throw new RangeError('Invalid string length');
      return Reflect.apply(stringify, JSON, [value, ...more]);
    });
    const { code, body } = await call('DELETE', ORDERS_PATH);
    limited.mockRestore();
    expect(code).toBe(200);
    expect(body).toMatchObject({
      kind: 'OrderList',
      apiVersion: 'example.com/v1',
      metadata: { resourceVersion: expect.any(String) },
    });
    expect(body.items.map((item: Answered['body']) => item.metadata.name)).toEqual(['a', 'b']);
  });

  test('of a collection answers with what was listed, and not with what has become of it', async () => {
    const { call, server } = rig();
    const held = { metadata: { name: 'held', finalizers: ['example.com/held'] } };
    await call('POST', ORDERS_PATH, held);
    for (const query of ['?dryRun=All', '', '?labelSelector=!x']) {
      const before = (await call('GET', `${ORDERS_PATH}/held`)).body.metadata;
      expect((await call('DELETE', ORDERS_PATH + query)).body.items).toMatchObject([{ metadata: before }]);
    }
    await call('POST', ORDERS_PATH, { metadata: { ...held.metadata, name: 'other' } });
    const [, other] = await server.resource('orders.example.com/v1').in('default').deleteCollection();
    expect(other?.metadata).toMatchObject({ name: 'other' });
    expect(other?.metadata).not.toHaveProperty('deletionTimestamp');
    expect((await call('GET', `${ORDERS_PATH}/other`)).body.metadata).toHaveProperty('deletionTimestamp');
  });

  test('of a collection is limited by what it is told, and refused without a namespace', async () => {
    const { call } = rig();
    for (const name of ['a', 'b', 'c']) await call('POST', ORDERS_PATH, { metadata: { name } });
    const all = '/apis/example.com/v1/orders';
    for (const query of ['', '?labelSelector=x', '?dryRun=All']) expect((await call('DELETE', all + query)).code).toBe(405);
    expect((await call('DELETE', '/api/v1/namespaces')).code).toBe(405);
    const { resourceVersion } = (await call('GET', ORDERS_PATH)).body.metadata;
    await call('POST', ORDERS_PATH, { metadata: { name: 'd' } });
    expect((await call('DELETE', `${ORDERS_PATH}?resourceVersionMatch=Exact`)).code).toBe(422);
    const names = (answer: Answered): string[] => answer.body.items.map((item: Answered['body']) => item.metadata.name);
    expect(names(await call('DELETE', `${ORDERS_PATH}?limit=1`))).toEqual(['a']);
    const exact = `resourceVersionMatch=Exact&resourceVersion=${resourceVersion}`;
    expect(names(await call('DELETE', `${ORDERS_PATH}?${exact}`))).toEqual(['b', 'c']);
    expect(names(await call('GET', all))).toEqual(['d']);
  });

  test('makes no tokens of service accounts, and says why', async () => {
    const { call } = rig({ resources: BUILT_IN_KINDS });
    const path = '/api/v1/namespaces/default/serviceaccounts/a/token';
    const sent = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
    const { code, body } = await call('POST', path, sent);
    expect([code, body.reason, body.message]).toEqual([
      405,
      'MethodNotAllowed',
      'this server makes no tokens of service accounts: whom a token stands for, its `authenticate` says',
    ]);
    expect((await call('GET', path)).code).toBe(404);
    expect((await call('POST', path.replace('token', 'other'), sent)).body.message).toContain('does not allow this method');
  });

  test('of a collection of several pages is of what was asked for in each of them, as it was then', async () => {
    const { call } = rig({ cache: false });
    const create = (name: string, kept: string): Promise<Answered> =>
      call('POST', ORDERS_PATH, { metadata: { name, labels: { kept } } });
    for (let n = 0; n < 501; n++) await create(`a${n}`, 'no');
    const last = await create('b', 'yes');
    await create('c', 'no'); // after the state that is asked for
    const query = `labelSelector=kept%3Dno&resourceVersionMatch=Exact&resourceVersion=${last.body.metadata.resourceVersion}`;
    const { code, body } = await call('DELETE', `${ORDERS_PATH}?${query}`);
    expect([code, body.items.length]).toEqual([200, 501]);
    expect((await call('GET', ORDERS_PATH)).body.items.map((item: Answered['body']) => item.metadata.name)).toEqual(['b', 'c']);
  });

  test('of a collection does not ask the storage for anything that nobody can call off', async () => {
    const storage = new MemoryStorage();
    const { scope } = storage;
    const asked: unknown[] = [];
    vi.spyOn(storage, 'scope').mockImplementation((...args) => {
      const part = scope.apply(storage, args);
      const { currentVersion } = part;
      part.currentVersion = (options) => {
        asked.push(options?.signal);
        return currentVersion.call(part, options);
      };
      return part;
    });
    const { call } = rig({ storage, cache: false });
    await call('DELETE', ORDERS_PATH);
    expect(asked).toEqual([expect.any(AbortSignal)]);
  });

  test('of a namespace takes what is in it, and waits for what finalizers hold', async () => {
    const { call } = rig();
    await call('POST', '/api/v1/namespaces', { metadata: { name: 'x' } });
    const path = '/api/v1/namespaces/x/configmaps';
    await call('POST', path, { metadata: { name: 'a' } });
    await call('POST', path, { metadata: { name: 'b', finalizers: ['example.com/x'] } });
    const held = await call('DELETE', '/api/v1/namespaces/x');
    expect(held.code).toBe(200);
    expect(held.body.status.phase).toBe('Terminating');
    expect((await call('POST', path, { metadata: { name: 'c' } })).code).toBe(403);
    expect((await call('GET', path)).body.items).toHaveLength(1);
    await call('PATCH', `${path}/b`, { metadata: { finalizers: null } });
    await expect.poll(async () => (await call('GET', '/api/v1/namespaces/x')).code).toBe(404);
    expect((await call('DELETE', '/api/v1/namespaces/default')).code).toBe(403);
  });
});

describe('get and list', () => {
  test('a list has what there is, by namespace, by label, by field, in pages', async () => {
    const { call } = rig();
    for (const name of ['c', 'a', 'b']) {
      await call('POST', ORDERS_PATH, { metadata: { name, labels: { name } }, spec: { item: name === 'a' ? 'tea' : 'milk' } });
    }
    const names = async (path: string): Promise<string[]> =>
      (await call('GET', path)).body.items.map((item: Answered['body']) => item.metadata.name);
    expect(await names(ORDERS_PATH)).toEqual(['a', 'b', 'c']);
    expect(await names('/apis/example.com/v1/orders')).toEqual(['a', 'b', 'c']);
    expect(await names('/apis/example.com/v1/namespaces/other/orders')).toEqual([]);
    expect(await names(`${ORDERS_PATH}?labelSelector=name+in+(a,c)`)).toEqual(['a', 'c']);
    expect(await names(`${ORDERS_PATH}?fieldSelector=spec.item%3Dmilk`)).toEqual(['b', 'c']);
    expect(await names('/apis/example.com/v1/orders?fieldSelector=metadata.namespace%3Ddefault,metadata.name%3Db')).toEqual([
      'b',
    ]);
    const page = await call('GET', `${ORDERS_PATH}?limit=2`);
    expect(page.body).toMatchObject({ kind: 'OrderList', apiVersion: 'example.com/v1', metadata: { remainingItemCount: 1 } });
    const rest = await call('GET', `${ORDERS_PATH}?limit=2&continue=${encodeURIComponent(page.body.metadata.continue)}`);
    expect(rest.body.items.map((item: Answered['body']) => item.metadata.name)).toEqual(['c']);
    expect(rest.body.metadata.resourceVersion).toBe(page.body.metadata.resourceVersion);
  });

  test.each([
    ['/apis/example.com/v1/orders?fieldSelector=spec.other%3D1', 400, 'field label not supported: spec.other'],
    ['/apis/example.com/v1/orders?labelSelector=a+in', 400, 'label selector'],
    ['/apis/example.com/v1/orders?resourceVersion=x', 400, 'resourceVersion'],
    [
      '/apis/example.com/v1/orders?resourceVersion=99999&resourceVersionMatch=NotOlderThan',
      410,
      'was not issued by this storage',
    ],
    ['/apis/example.com/v1/orders?limit=-1', 400, 'limit'],
    ['/apis/example.com/v2/orders', 404, 'the server could not find the requested resource'],
    ['/apis/example.com/v1/things', 404, 'the server could not find the requested resource'],
    [`${ORDERS_PATH}/nope`, 404, 'orders.example.com "nope" not found'],
  ])('%s is %i', async (path, code, message) => {
    const { call } = rig();
    const answered = await call('GET', path);
    expect(answered.code).toBe(code);
    expect(answered.body.message).toContain(message);
  });
});

describe('kinds', () => {
  const beta = { ...ORDERS, version: 'v1beta1' } as ResourceDefinition;

  test('two versions of a resource are one collection, read and watched in either', async () => {
    const { server, call } = rig({ resources: [ORDERS as ResourceDefinition, beta] });
    const old = server.resource('orders.example.com/v1beta1').in('default');
    const watch = await old.watch({ sendInitialEvents: true });
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' }, spec: { count: 1 } });
    expect((await old.get('a')).apiVersion).toBe('example.com/v1beta1');
    expect((await old.list()).items.map(({ apiVersion }) => apiVersion)).toEqual(['example.com/v1beta1']);
    const read = async (): Promise<unknown> => {
      const { value } = await watch.next();
      return value?.type === 'BOOKMARK' ? read() : (value?.object as { apiVersion?: string } | undefined)?.apiVersion;
    };
    expect(await read()).toBe('example.com/v1beta1');
    const path = ORDERS_PATH.replace('/v1/', '/v1beta1/');
    const same = await call('PUT', `${path}/a`, { metadata: { name: 'a' }, spec: { count: 1 } });
    expect(same.body).toMatchObject({ apiVersion: 'example.com/v1beta1', metadata: { generation: 1 } });
    expect((await call('GET', `${ORDERS_PATH}/a`)).body.apiVersion).toBe('example.com/v1');
    await watch.return();
  });

  test.each([
    [{ version: 'v2', kind: 'Offer' }, 'example.com/v2/orders'],
    [{ version: 'v2', namespaced: false }, 'example.com/v2/orders'],
  ])('a second version of a resource with %j is refused: both are kept in one place', (other, path) => {
    const resources = [ORDERS, { ...ORDERS, ...other }] as ResourceDefinition[];
    expect(() => rig({ resources })).toThrow(`the kind, group and scope of ${path}, got "example.com/v1/orders"`);
  });

  test('the group core is refused beside the one without a name, which is kept under that', () => {
    const resources = [CONFIG_MAPS, { ...CONFIG_MAPS, group: 'core' }] as ResourceDefinition[];
    expect(() => rig({ resources })).toThrow('the kind, group and scope of core/v1/configmaps');
  });

  test('is found in process by any name that kubectl takes, as in a cluster', async () => {
    const { server } = rig({ resources: [{ ...ORDERS, shortNames: ['ord'] }, ...BUILT_IN_KINDS] as ResourceDefinition[] });
    for (const name of ['orders', 'order', 'Order', 'ord', 'ord.example.com', 'ORDER.example.com/v1', 'orders.example.com/v1']) {
      expect(server.resource(name).type).toMatchObject({ group: 'example.com', plural: 'orders' });
      expect((await server.kind(name)).type.plural).toBe('orders');
    }
    expect(server.resource('configmap/v1').type.plural).toBe('configmaps');
    expect(server.resource('cm').type.plural).toBe('configmaps');
    expect(server.resource('event/v1').type.group).toBe('');
    expect(server.resource('ev.events.k8s.io').type.group).toBe('events.k8s.io');
    for (const name of ['order/v1', 'ord.example.org', 'ord.example.com/v2', 'ord/', '', '.', 'a/b/c', 'list']) {
      expect(() => server.resource(name)).toThrow('one of those that are served');
    }
  });

  test('what is in no namespace has no path in one', async () => {
    const nodes = { group: 'example.com', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };
    const { server, call } = rig({ resources: [nodes] });
    expect((await call('POST', '/apis/example.com/v1/nodes', { metadata: { name: 'a' } })).code).toBe(201);
    expect((await call('GET', '/apis/example.com/v1/nodes/a')).body.metadata.namespace).toBeUndefined();
    expect((await call('GET', '/apis/example.com/v1/namespaces/default/nodes')).code).toBe(404);
    // Tools write a namespace into everything. Upstream: `EnsureObjectNamespaceMatchesRequestNamespace`.
    const told = await call('POST', '/apis/example.com/v1/nodes', { metadata: { name: 'b', namespace: 'x' } });
    expect([told.code, told.body.metadata.namespace]).toEqual([201, undefined]);
    const patched = await call('PATCH', '/apis/example.com/v1/nodes/b', { metadata: { namespace: 'x', labels: { a: 'b' } } });
    expect(patched.body.metadata).toMatchObject({ name: 'b', labels: { a: 'b' } });
    expect(patched.body.metadata.namespace).toBeUndefined();
    expect(() => server.resource('nodes.example.com/v1').in('x')).toThrow('none, because nodes are in no namespace');
    expect(() => server.resource('pods/v1')).toThrow('one of those that are served: nodes.example.com/v1');
  });

  test.each([
    [{ group: 'Bad' }, 'resource.group'],
    [{ version: '1' }, 'resource.version'],
    [{ plural: 'Orders' }, 'resource.plural'],
    [{ kind: 'a-b' }, 'resource.kind'],
    [{ version: undefined }, 'resource.version: expected a version such as v1, got undefined'],
    [{ plural: undefined }, 'resource.plural'],
    [{ kind: undefined }, 'resource.kind'],
    [{ shortNames: ['A'] }, 'resource.shortNames[0]'],
    [{ validate: 1 }, 'resource.validate'],
    [{ fields: { x: 1 } }, 'resource.fields.x'],
    [{ statuss: true }, 'did you mean status?'],
  ])('a definition with %j is refused', (wrong, message) => {
    expect(() => rig({ resources: [{ ...ORDERS, ...wrong } as never] })).toThrow(message);
  });
});

describe('CONFIG_MAPS', () => {
  const path = '/api/v1/namespaces/default/configmaps';

  test('keys and values are checked; what is immutable stays', async () => {
    const { call } = rig();
    const create = async (more: object): Promise<number> =>
      (await call('POST', path, { metadata: { generateName: 'a-' }, ...more })).code;
    expect(await create({ data: { 'a.b': 'c' }, binaryData: { d: 'AA==' } })).toBe(201);
    expect(await create({ data: { 'a/b': 'c' } })).toBe(422);
    expect(await create({ data: { '..': 'c' } })).toBe(422);
    expect(await create({ data: { a: 1 } })).toBe(400);
    expect(await create({ data: [] })).toBe(400);
    expect(await create({ data: { a: 'b' }, binaryData: { a: 'AA==' } })).toBe(422);
    await call('POST', path, { metadata: { name: 'fixed' }, data: { a: 'b', c: 'd' }, immutable: true });
    expect((await call('PATCH', `${path}/fixed`, { data: { a: 'x' } })).code).toBe(422);
    expect((await call('PATCH', `${path}/fixed`, { immutable: null })).code).toBe(422);
    expect((await call('PATCH', `${path}/fixed`, { metadata: { labels: { a: 'b' } } })).code).toBe(200);
    expect((await call('GET', `${path}/fixed`)).body.metadata.generation).toBeUndefined();
  });
});
