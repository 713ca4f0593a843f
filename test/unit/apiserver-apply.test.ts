// Server-side apply and managedFields over HTTP and in process: what is tracked, what is refused, and what is written. That the
// results are upstream's is compared in test/peers/differential-apply.test.ts.
import { describe, expect, test } from 'vitest';
import { ApiServer, BUILT_IN_KINDS, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { sameButTimes } from '../../src/apiserver/verbs/managed-fields.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { ORDERS, ORDERS_PATH, rig } from './apiserver-rig.ts';
import { crdOf, crdRig } from './crd-rig.ts';

const APPLY = { 'content-type': 'application/apply-patch+yaml' };
const one = `${ORDERS_PATH}/a?fieldManager=one`;
const two = `${ORDERS_PATH}/a?fieldManager=two`;
const order = (spec: object, metadata: object = {}): object => ({
  ...{ apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'a', ...metadata } },
  spec,
});
const body = (spec: object, metadata: object = {}): object => ({ metadata: { name: 'a', ...metadata }, spec });

interface Entry {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly fieldsV1: object;
}
const managersOf = (object: { metadata?: { managedFields?: unknown } }): string[] =>
  ((object.metadata?.managedFields ?? []) as Entry[]).map((each) =>
    [each.operation, each.manager, each.subresource].filter(Boolean).join(' '),
  );

describe('nulls', () => {
  const text = { type: 'string' };
  const spec = {
    type: 'object',
    properties: {
      ...{ a: text, n: { ...text, nullable: true }, d: { ...text, default: 'x' } },
      list: { type: 'array', items: { type: 'object', properties: { b: text } } },
    },
  };
  const status = { type: 'object', properties: { phase: text } };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec, status } } };
  const path = '/apis/example.com/v1/namespaces/default/widgets/a';
  const widget = (members: object): object => ({
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { name: 'a' },
    ...members,
  });
  const rigged = async (): Promise<ReturnType<typeof crdRig>['call']> => {
    const { define, call } = crdRig();
    await define(crdOf({}, { schema, subresources: { status: {} } }));
    return call;
  };

  test('that an apply sets where the schema does not allow them are refused, for a new object and an old one', async () => {
    const call = await rigged();
    const apply = async (members: object, at = path): Promise<unknown> => {
      const { code, body } = await call('PATCH', `${at}?fieldManager=one`, widget(members), APPLY);
      return code < 300 ? [code, body.spec, body.status] : body.details.causes.map((each: { message: string }) => each.message);
    };
    const refused = (field: string, type: string): unknown =>
      expect.arrayContaining([`Invalid value: "null": ${field} in body must be of type ${type}: "null"`]);
    for (const code of [201, 200]) {
      expect(await apply({ spec: null })).toEqual(refused('spec', 'object'));
      expect(await apply({ spec: { a: null } })).toEqual(refused('spec.a', 'string'));
      expect(await apply({ spec: { list: [{ b: null }] } })).toEqual(refused('spec.list[0].b', 'string'));
      expect(await apply({ spec: { n: null, d: null } })).toEqual([code, { n: null, d: 'x' }, undefined]);
    }
    expect(await apply({ status: { phase: 'Done' } }, `${path}/status`)).toMatchObject([200, {}, { phase: 'Done' }]);
    expect(await apply({ status: { phase: null } }, `${path}/status`)).toEqual(refused('phase', 'string'));
    expect(await apply({ status: null }, `${path}/status`)).toMatchObject([200, {}, undefined]);
  });

  test('of all other writes are removed there', async () => {
    const call = await rigged();
    const created = await call('POST', path.replace(/.a$/, ''), widget({ spec: { a: null, n: null, d: null } }));
    expect([created.code, created.body.spec]).toEqual([201, { n: null, d: 'x' }]);
    const patch = [{ op: 'add', path: '/spec', value: { a: null, list: [{ b: null }] } }];
    const patched = await call('PATCH', path, patch, { 'content-type': 'application/json-patch+json' });
    expect([patched.code, patched.body.spec]).toEqual([200, { d: 'x', list: [{}] }]);
  });
});

describe('what is tracked', () => {
  test('nothing, where no manager is named', async () => {
    const { call } = rig();
    const created = await call('POST', ORDERS_PATH, body({ item: 'x' }), { 'user-agent': 'program/1' });
    const updated = await call('PUT', `${ORDERS_PATH}/a`, body({ item: 'y' }));
    const patched = await call('PATCH', one, { spec: { item: 'z' } }); // upstream: tracking begins with a create, or an apply
    for (const answer of [created, updated, patched]) expect(answer.body.metadata).not.toHaveProperty('managedFields');
  });

  test('every write, from a create by a named manager on; the program stands for one that is not named', async () => {
    const { call } = rig();
    const created = await call('POST', `${ORDERS_PATH}?fieldManager=creator`, body({ item: 'x' }));
    expect(created.body.metadata.managedFields).toEqual([
      {
        ...{ manager: 'creator', operation: 'Update', apiVersion: 'example.com/v1', time: '2026-01-02T03:04:05Z' },
        ...{ fieldsType: 'FieldsV1', fieldsV1: { 'f:spec': { '.': {}, 'f:item': {} } } },
      },
    ]);
    const agent = { 'user-agent': 'pro\tgram/1.2 (linux)' };
    expect(managersOf((await call('PUT', `${ORDERS_PATH}/a`, body({ item: 'y' }), agent)).body)).toContain('Update program');
    const status = await call('PATCH', `${ORDERS_PATH}/a/status`, { status: { phase: 'Done' } });
    expect(managersOf(status.body)).toContain('Update unknown status');
    expect((await call('GET', `${ORDERS_PATH}/a`)).body.metadata.managedFields).toHaveLength(3);
  });

  test('not what an object of a built-in kind has before anybody says anything', async () => {
    const { call } = rig({ resources: [...BUILT_IN_KINDS] as ResourceDefinition[], customResourceDefinitions: true });
    const fields = async (path: string, sent: object): Promise<unknown> =>
      (await call('POST', `${path}?fieldManager=us`, sent)).body.metadata.managedFields?.[0].fieldsV1;
    const event = {
      metadata: { name: 'e' },
      involvedObject: { namespace: 'default' },
      source: {},
      firstTimestamp: null,
      count: 1,
    };
    expect(await fields('/api/v1/namespaces/default/events', event)).toEqual({ 'f:count': {}, 'f:involvedObject': {} });
    const lease = { metadata: { name: 'l' }, spec: { holderIdentity: 'h' } };
    expect(await fields('/apis/coordination.k8s.io/v1/namespaces/default/leases', lease)).toEqual({
      'f:spec': { 'f:holderIdentity': {} },
    });
    expect(await fields('/api/v1/namespaces/default/secrets', { metadata: { name: 's' } })).toEqual({ 'f:type': {} });
    const crd = (await fields('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crdOf())) as Record<string, object>;
    expect(Object.keys(crd['f:spec'] as object).sort()).toEqual(['f:conversion', 'f:group', 'f:names', 'f:scope', 'f:versions']);
  });

  test('of an event, by those who have written it in the same group', async () => {
    const { call } = rig({ resources: [...BUILT_IN_KINDS] as ResourceDefinition[] });
    const [core, events] = ['/api/v1', '/apis/events.k8s.io/v1'].map((root) => `${root}/namespaces/default/events`);
    await call('POST', `${core}?fieldManager=one`, {
      metadata: { name: 'e' },
      involvedObject: { namespace: 'default' },
      count: 1,
    });
    const both = await call('PATCH', `${core}/e?fieldManager=two`, { count: 2 });
    expect(managersOf(both.body)).toEqual(['Update one', 'Update two']);
    const other = await call('PATCH', `${events}/e?fieldManager=three`, { metadata: { labels: { a: 'b' } } });
    expect(managersOf(other.body)).toEqual(['Update three']);
  });

  test('with `always`: all new objects', async () => {
    const { call } = rig({ managedFields: 'always' });
    const created = await call('POST', ORDERS_PATH, body({}), { 'user-agent': 'program/1' });
    expect(managersOf(created.body)).toEqual(['Update program']);
    const agent = { 'user-agent': `${'p'.repeat(127)}\u00e9p/1` };
    const long = await call('POST', ORDERS_PATH, body({ item: 'x' }, { name: 'b' }), agent);
    expect(managersOf(long.body)).toEqual([`Update ${'p'.repeat(127)}`]);
    const make = (managedFields: 'sometimes'): ApiServer =>
      new ApiServer({ storage: new MemoryStorage(), resources: [], managedFields: managedFields as 'always' });
    expect(() => make('sometimes')).toThrow('managedFields: expected one of named, always');
  });

  test('what was there before the first apply has a manager of its own', async () => {
    const { call } = rig();
    await call('POST', ORDERS_PATH, body({ item: 'x' }));
    const conflict = await call('PATCH', one, order({ item: 'y' }), APPLY);
    expect(conflict.body.message).toBe(
      'Apply failed with 1 conflict: conflict with "before-first-apply" using example.com/v1: .spec.item',
    );
    const shared = await call('PATCH', one, order({ item: 'x', count: 1 }), APPLY);
    expect(managersOf(shared.body)).toEqual(['Apply one', 'Update before-first-apply']);
  });
});

describe('apply', () => {
  test('creates, changes nothing twice, and gives up what is no longer there', async () => {
    const { call } = rig();
    const created = await call('PATCH', one, order({ item: 'x', count: 1 }), APPLY);
    expect([created.code, managersOf(created.body)]).toEqual([201, ['Apply one']]);
    const again = await call('PATCH', one, order({ item: 'x', count: 1 }), APPLY);
    expect([again.code, again.text]).toEqual([200, created.text]);
    const less = await call('PATCH', one, order({ item: 'x' }), APPLY);
    expect(less.body.spec).toEqual({ item: 'x' });
    expect(less.body.metadata).toMatchObject({ uid: created.body.metadata.uid, generation: 2 });
  });

  test('Strict names the lines of members that are there twice, in YAML and in JSON', async () => {
    const { call } = rig();
    const head = 'apiVersion: example.com/v1\nkind: Order\nmetadata: {name: a}\n';
    const yaml = `${head}spec:\n  item: x\n  item: y\n  count: 1\n  count:\n    2\n`;
    const refused = await call('PATCH', `${one}&fieldValidation=Strict`, yaml, APPLY);
    const words = 'error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:';
    expect([refused.code, refused.body.message]).toEqual([
      400,
      `${words}\n  line 6: key "item" already set in map\n  line 9: key "count" already set in map`,
    ]);
    const json = '{"apiVersion":"example.com/v1","kind":"Order","metadata":{"name":"a"},\n"spec":{"item":"x","item":\n "y"}}';
    const other = await call('PATCH', `${one}&fieldValidation=Strict`, json, APPLY);
    expect(other.body.message).toBe(`${words}\n  line 3: key "item" already set in map`);
    const warned = await call('PATCH', one, json, APPLY);
    expect([warned.code, warned.headers.get('warning')]).toEqual([201, '299 - "line 3: key \\"item\\" already set in map"']);
  });

  test('a conflict is 409 with its causes; `force` takes over', async () => {
    const { call } = rig();
    await call('PATCH', one, order({ item: 'x' }), APPLY);
    const { code, body: refusal } = await call('PATCH', two, order({ item: 'y' }), APPLY);
    expect(code).toBe(409);
    expect(refusal).toMatchObject({
      reason: 'Conflict',
      message: 'Apply failed with 1 conflict: conflict with "one": .spec.item',
      details: { causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.spec.item' }] },
    });
    const forced = await call('PATCH', `${two}&force=true`, order({ item: 'y' }), APPLY);
    const [loser, winner] = forced.body.metadata.managedFields;
    expect([forced.code, loser.manager, loser.fieldsV1, winner.fieldsV1]).toEqual([
      ...[200, 'one', { 'f:spec': {} }, { 'f:spec': { '.': {}, 'f:item': {} } }],
    ]);
  });

  test('of YAML, as a dry run, and where a create may not be', async () => {
    const { call } = rig();
    const yaml = 'apiVersion: example.com/v1\nkind: Order\nmetadata:\n  name: a\nspec: {item: x}\n';
    expect((await call('PATCH', `${one}&dryRun=All`, yaml, APPLY)).code).toBe(201);
    expect((await call('GET', `${ORDERS_PATH}/a`)).code).toBe(404);
    expect((await call('PATCH', one, yaml, APPLY)).body.spec).toEqual({ item: 'x' });
    const elsewhere = one.replace('/default/', '/nowhere/');
    expect((await call('PATCH', elsewhere, yaml, APPLY)).body.message).toBe('namespaces "nowhere" not found');
    expect((await call('PATCH', `${ORDERS_PATH}/b/status?fieldManager=one`, order({}, { name: 'b' }), APPLY)).code).toBe(404);
  });

  test('asks for the right to create what is not there', async () => {
    const asked: string[] = [];
    const { call } = rig({
      authorize: (verb, resource, _, name) => {
        asked.push([verb, resource, name].join(' '));
        return verb !== 'create' || name !== 'a';
      },
    });
    expect((await call('PATCH', one, order({}), APPLY)).code).toBe(403);
    expect(asked).toEqual(['patch orders.example.com a', 'create orders.example.com a']);
    expect((await call('PATCH', one.replace('/a?', '/b?'), order({}, { name: 'b' }), APPLY)).code).toBe(201);
  });

  test('refuses what upstream refuses', async () => {
    const { call } = rig();
    const refused = async (path: string, sent: unknown, headers: Record<string, string> = APPLY): Promise<unknown[]> => {
      const { code, body: said } = await call('PATCH', path, sent, headers);
      return [code, said.reason];
    };
    expect(await refused(`${ORDERS_PATH}/a`, order({}))).toEqual([422, 'Invalid']);
    expect(await refused(`${ORDERS_PATH}/a?fieldManager=a%07b`, order({}))).toEqual([422, 'Invalid']);
    const named = await call('PATCH', `${ORDERS_PATH}/a?fieldManager=a%07b`, order({}), APPLY);
    expect(named.body.details.causes).toMatchObject([{ field: 'fieldManager', reason: 'FieldValueInvalid' }]);
    expect(await refused(`${ORDERS_PATH}/a?fieldManager=${'m'.repeat(129)}`, order({}))).toEqual([422, 'Invalid']);
    expect(await refused(`${one}&force=true`, {}, {})).toEqual([422, 'Invalid']);
    expect(await refused(one, '{')).toEqual([400, 'BadRequest']);
    expect(await refused(one, '[]')).toEqual([400, 'BadRequest']);
    expect(await refused(one, { metadata: { name: 'a' } })).toEqual([400, 'BadRequest']);
    expect(await refused(one, order({}, { name: 'b' }))).toEqual([400, 'BadRequest']);
    expect(await refused(one, { apiVersion: 'example.com/v1', kind: 'Order' })).toEqual([400, 'BadRequest']);
    expect(await refused(one, order({}, { managedFields: [] }))).toEqual([400, 'BadRequest']);
    for (const [head, shown] of [
      [{ apiVersion: 'example.com/v2' }, 'example.com/v2, Kind=Order'],
      [{ apiVersion: 'v1' }, '/v1, Kind=Order'],
      [{ kind: 'Other' }, 'example.com/v1, Kind=Other'],
    ] as const) {
      const wrong = await call('PATCH', one, { ...order({}), ...head }, APPLY);
      expect([wrong.code, wrong.body.message]).toEqual([400, `invalid object type: ${shown}`]);
    }
    expect(await refused(one, order({}, { uid: 'x' }))).toEqual([409, 'Conflict']);
    const odd = { toString: null };
    for (const head of [
      { apiVersion: odd },
      { kind: odd },
      { metadata: { name: odd } },
      { metadata: { name: 'a', namespace: odd } },
    ])
      expect(await refused(one, { ...order({}), ...head }), JSON.stringify(head)).toEqual([400, 'BadRequest']);
    for (const wrong of [{ labels: { a: {} } }, { finalizers: [[]] }])
      expect(await refused(one, order({}, wrong)), JSON.stringify(wrong)).toEqual([400, 'BadRequest']);
    const twice = '{"apiVersion":"example.com/v1","kind":"Order","metadata":{"name":"a"},"spec":{"item":"a","item":"b"}}';
    expect(await refused(`${one}&fieldValidation=Strict`, twice)).toEqual([400, 'BadRequest']);
    expect(await refused(one, order({}), { 'content-type': 'application/apply-patch+cbor' })).toEqual([
      415,
      'UnsupportedMediaType',
    ]);
  });
});

describe('clients that write managedFields themselves', () => {
  test('an empty entry forgets them; what is invalid changes nothing; its form is checked', async () => {
    const { call } = rig();
    await call('PATCH', one, order({ item: 'x' }), APPLY);
    const put = (managedFields: unknown) => call('PUT', `${ORDERS_PATH}/a`, body({ item: 'x' }, { managedFields }));
    expect(managersOf((await put([{ manager: 'x', operation: 'Never' }])).body)).toEqual(['Apply one']);
    expect(managersOf((await put(undefined)).body)).toEqual(['Apply one']);
    expect(managersOf((await put([])).body)).toEqual(['Apply one']);
    const maps = '/api/v1/namespaces/default/configmaps';
    const map = { metadata: { name: 'a', managedFields: [] }, data: { a: 'b' } };
    expect(managersOf((await call('POST', `${maps}?fieldManager=one`, map)).body)).toEqual(['Update one']);
    expect(managersOf((await call('PUT', `${maps}/a?fieldManager=two`, map)).body)).toEqual([]);
    expect((await put(['x'])).code).toBe(400);
    expect((await put([{ manager: 1 }])).code).toBe(400);
    expect((await put([{ time: 'never' }])).code).toBe(400);
    const long = { ...{ manager: 'm'.repeat(129), operation: 'Update' }, apiVersion: 'example.com/v1', fieldsType: 'FieldsV1' };
    expect((await put([{ ...long, fieldsV1: { 'f:spec': { 'f:item': {} } } }])).code).toBe(422);
    expect((await put([{}])).body.metadata).not.toHaveProperty('managedFields');
  });
});

test('a write that changes only a time is none, and its version stays', async () => {
  let now = Date.UTC(2026, 0, 1);
  const { call } = rig({ now: () => now });
  const first = await call('PATCH', one, order({ item: 'x' }), APPLY);
  now += 60_000;
  const patched = await call('PATCH', one, { spec: { item: 'x' } });
  const applied = await call('PATCH', one, order({ item: 'x' }), APPLY);
  for (const { text } of [patched, applied]) expect(text).toBe(first.text);
  // What the server takes back is a change to the managers each time, and to the object never.
  await call('PATCH', one, { metadata: { finalizers: ['example.com/held'] } });
  await call('DELETE', `${ORDERS_PATH}/a`);
  const takenBack = { metadata: { deletionTimestamp: '2001-01-01T00:00:00Z' } };
  const owned = await call('PATCH', one, takenBack);
  now += 60_000;
  expect(owned.text).not.toBe(first.text);
  expect((await call('PATCH', one, takenBack)).text).toBe(owned.text);
  const changed = await call('PATCH', one, order({ item: 'y' }), APPLY);
  expect(changed.body.metadata.managedFields).toMatchObject([{ time: '2026-01-01T00:02:00Z' }, { manager: 'one' }]);
});

describe('in process', () => {
  test('apply creates and changes, with a name; a name that is none is refused', async () => {
    const { server } = rig();
    const orders = server.resource<object>('orders.example.com/v1').in('default');
    const mine = { type: 'apply', fieldManager: 'me' } as const;
    const made = await orders.patch('a', { metadata: { name: 'a' }, spec: { item: 'x' } }, mine);
    expect(managersOf(made)).toEqual(['Apply me']);
    const theirs = orders.patch('a', { metadata: { name: 'a' }, spec: { item: 'y' } }, { ...mine, fieldManager: 'other' });
    await expect(theirs).rejects.toMatchObject({ status: { code: 409, reason: 'Conflict' } });
    await expect(orders.create({ metadata: { name: 'b' } }, { fieldManager: 'a\tb' })).rejects.toMatchObject({
      status: { code: 422 },
    });
    expect(managersOf(await orders.create({ metadata: { name: 'b' } }))).toEqual([]);
    expect(managersOf(await orders.create({ metadata: { name: 'c' }, spec: { count: 1 } }, { fieldManager: 'me' }))).toEqual([
      'Update me',
    ]);
  });

  test('the replicas of a Scale are the object\u2019s, and so are their managers', async () => {
    const scale = { specReplicasPath: '.spec.count', statusReplicasPath: '.status.count' };
    const { call } = rig({ resources: [{ ...ORDERS, scale } as ResourceDefinition] });
    await call('PATCH', one, order({ item: 'x', count: 1 }), APPLY);
    await call('PATCH', `${ORDERS_PATH}/a/scale?fieldManager=scaler`, { spec: { replicas: 2 } });
    const { body: scaled } = await call('GET', `${ORDERS_PATH}/a`);
    expect(managersOf(scaled)).toEqual(['Apply one', 'Update scaler scale']);
    expect(scaled.metadata.managedFields[1].fieldsV1).toEqual({ 'f:spec': { 'f:count': {} } });
    const conflict = await call('PATCH', one, order({ item: 'x', count: 1 }), APPLY);
    expect(conflict.body.details.causes).toMatchObject([{ field: '.spec.count' }]);
  });
});

// test/peers/differential/apply.ts asks a kube-apiserver the same.
test('replicas and a status have the managers of what was written: the object, its Scale, or its status', async () => {
  const integer = { type: 'integer' };
  const spec = { type: 'object', properties: { replicas: integer, color: { type: 'string' }, size: { type: 'string' } } };
  const schema = { type: 'object', properties: { spec, status: { type: 'object', properties: { phase: { type: 'string' } } } } };
  const scale = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' };
  const { call } = rig({ resources: [{ ...ORDERS, scale, schema, fields: {}, validate: undefined } as ResourceDefinition] });
  const path = (part: string, manager: string): string => `${ORDERS_PATH}/a${part}?fieldManager=${manager}`;
  const scaled = (replicas: number): object => ({
    ...{ apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'a' } },
    spec: { replicas },
  });
  const fields = async (): Promise<unknown> =>
    ((await call('GET', `${ORDERS_PATH}/a`)).body.metadata.managedFields as Entry[]).map(
      ({ operation, manager, subresource, fieldsV1 }) =>
        `${operation} ${manager} ${subresource ?? ''} ${Object.entries(fieldsV1).map(([name, below]) => `${name} ${Object.keys(below).join()}`)}`,
    );
  const seen: unknown[] = [];
  const step = async (...request: Parameters<typeof call>): Promise<void> => {
    seen.push((await call(...request)).code, await fields());
  };
  await step('PATCH', one, order({ replicas: 1, color: 'red' }), APPLY);
  await step('PATCH', path('/scale', 'scaler'), { spec: { replicas: 2 } });
  await step('PATCH', path('', 'editor'), { spec: { replicas: 3 } });
  await step('PATCH', path('/scale', 'autoscaler'), { spec: { replicas: 4 } });
  await step('PATCH', path('/scale', 'a'), scaled(5), APPLY);
  await step('PATCH', path('/scale', 'scaler'), { spec: { replicas: 6 } });
  await step('PATCH', path('/status', 'z'), { metadata: { labels: { a: 'b' } }, status: { phase: 'Done' } });
  await step('PATCH', path('/status', 'one'), { ...order({ color: 'no' }), status: { phase: 'Done' } }, APPLY);
  await step('PATCH', path('', 'editor'), { spec: { size: 'x' }, status: { phase: 'no' } });
  // Upstream answers with 500.
  await step('PATCH', `${path('/scale', 'a')}&force=true`, scaled(5), APPLY);
  await step('PATCH', one, order({ replicas: 5, color: 'red' }), APPLY);
  const [red, scaler] = ['Apply one  f:spec f:color', 'Update scaler scale f:spec f:replicas'];
  const [phase, size] = ['Apply one status f:status f:phase', 'Update editor  f:spec f:size'];
  const done = 'Update z status f:status .,f:phase';
  expect(seen).toEqual([
    ...[201, ['Apply one  f:spec f:color,f:replicas']],
    ...[200, [red, scaler]],
    ...[200, [red, 'Update editor  f:spec f:replicas']],
    ...[200, [red, 'Update autoscaler scale f:spec f:replicas']],
    ...[409, [red, 'Update autoscaler scale f:spec f:replicas']],
    ...[200, [red, scaler]],
    ...[200, [red, scaler, done]],
    ...[200, [red, phase, scaler, done]],
    ...[200, [red, phase, scaler, size, done]],
    ...[200, ['Apply a scale f:spec f:replicas', red, phase, size, done]],
    ...[200, ['Apply a scale f:spec f:replicas', 'Apply one  f:spec f:color,f:replicas', phase, size, done]],
  ]);
});

test('the replicas of a Scale have the managers of versions without one, whatever these own', async () => {
  const scale = { specReplicasPath: '.spec.count', statusReplicasPath: '.status.count' };
  const rest = { ...ORDERS, fields: {}, validate: undefined };
  const resources = [
    { ...rest, scale },
    { ...rest, version: 'v2' },
  ] as ResourceDefinition[];
  const { call } = rig({ resources, convert: { 'orders.example.com': (object) => object } });
  const v2 = { ...order({ count: 1, item: 'x' }), apiVersion: 'example.com/v2' };
  await call('PATCH', one, order({ count: 1 }), APPLY);
  await call('PATCH', two.replace('/v1/', '/v2/'), v2, APPLY);
  const scaled = await call('PATCH', `${ORDERS_PATH}/a/scale?fieldManager=scaler`, { spec: { replicas: 2 } });
  expect([scaled.code, scaled.body.spec]).toEqual([200, { replicas: 2 }]);
  const entries = (await call('GET', `${ORDERS_PATH}/a`)).body.metadata.managedFields as (Entry & { apiVersion: string })[];
  expect(entries.map(({ manager, apiVersion, fieldsV1 }) => [manager, apiVersion, fieldsV1])).toEqual([
    ['one', 'example.com/v1', { 'f:spec': {} }],
    ['two', 'example.com/v2', { 'f:spec': { '.': {}, 'f:count': {}, 'f:item': {} } }],
    ['scaler', 'example.com/v1', { 'f:spec': { 'f:count': {} } }],
  ]);
});

test('two lists of managers are the same only if both have all entries', () => {
  const entry = (manager: string, time: string): object => ({ manager, time, fieldsV1: { 'f:spec': {} } });
  const [a, b] = [entry('a', '1'), entry('b', '1')];
  const isSame = (one?: readonly object[], other?: readonly object[]): boolean => atOnce(sameButTimes(one, other));
  expect([isSame(), isSame([a], [entry('a', '2')]), isSame([a, b], [a, b])]).toEqual([true, true, true]);
  expect([isSame([a], [a, b]), isSame([a, b], [a]), isSame([a], [b]), isSame([], undefined)]).toEqual([
    false,
    false,
    false,
    false,
  ]);
});

test('a reference to an object has one manager, as a whole', async () => {
  const { call } = rig({ managedFields: 'always', resources: BUILT_IN_KINDS });
  const account = { metadata: { name: 'a' }, secrets: [{ name: 'x', namespace: 'y' }] };
  const created = await call('POST', '/api/v1/namespaces/default/serviceaccounts', account);
  expect(created.body.metadata.managedFields[0].fieldsV1).toEqual({ 'f:secrets': { '.': {}, 'k:{"name":"x"}': {} } });
  const path = '/apis/events.k8s.io/v1/namespaces/default/events/a?fieldManager=us';
  const event = {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: 'a' },
    regarding: { kind: 'Pod', name: 'p', namespace: 'default' },
  };
  const more = {
    eventTime: '2026-01-02T03:04:05.000006Z',
    reportingController: 'c',
    reportingInstance: 'i',
    action: 'a',
    reason: 'r',
    type: 'Normal',
  };

  const applied = await call('PATCH', path, JSON.stringify({ ...event, ...more }), APPLY);
  expect(applied.body.metadata.managedFields[0].fieldsV1['f:regarding']).toEqual({});
});
