// What an object must say about itself, and what only the server says: in the words in which clients hear of it.
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { ResourceDefinition } from '../../src/apiserver/index.ts';
import { metadataCauses } from '../../src/apiserver/verbs/metadata.ts';
import { comparing } from '../../src/storage/json.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { type Answered, ORDER, ORDERS, ORDERS_PATH, rig } from './apiserver-rig.ts';

/** A server over memory, all of whose objects have one uid. */
const start = (): ReturnType<typeof rig> => rig({ uid: () => 'uid-1' });

type Call = ReturnType<typeof rig>['call'];

const CONFIG_MAPS_PATH = '/api/v1/namespaces/default/configmaps';
const AT = `${ORDERS_PATH}/a`;

const create = (call: Call, metadata: unknown, more: object = {}): Promise<Answered> =>
  call('POST', ORDERS_PATH, { metadata, ...more });

/** A change of the metadata of an object that is there. */
async function put(call: Call, metadata: object, more: object = {}): Promise<Answered> {
  const { body } = await call('GET', AT);
  return call('PUT', AT, { ...body, ...more, metadata: { ...body.metadata, ...metadata } });
}

describe('what is no object of the kind is 400', () => {
  test.each([
    ['null', 'expected an object'],
    ['"text"', 'expected an object'],
    ['7', 'expected an object'],
    [{ metadata: [] }, 'metadata: expected an object'],
    [{ metadata: 'a' }, 'metadata: expected an object'],
    [{ apiVersion: 'example.com/v2' }, 'expected a Order of example.com/v1, got a Order of example.com/v2'],
    [{ kind: 7 }, 'expected a Order of example.com/v1, got something else'],
    [{ apiVersion: null }, 'expected a Order of example.com/v1, got something else'],
    [{ kind: 'x'.repeat(900) }, `expected a Order of example.com/v1, got a ${'x'.repeat(200)}`],
    [{ metadata: { labels: 'a' } }, 'metadata.labels: expected an object'],
    [{ metadata: { labels: ['a'] } }, 'metadata.labels: expected an object'],
    [{ metadata: { annotations: 7 } }, 'metadata.annotations: expected an object'],
    [{ metadata: { annotations: { a: 7 } } }, 'metadata.annotations: expected strings as values'],
    [{ metadata: { finalizers: 'a' } }, 'metadata.finalizers: expected a list'],
    [{ metadata: { ownerReferences: {} } }, 'metadata.ownerReferences: expected a list'],
    [{ metadata: { managedFields: 1 } }, 'metadata.managedFields: expected a list'],
    [{ metadata: { finalizers: ['a.b/c', 7] } }, 'metadata.finalizers: expected a string'],
    [{ metadata: { ownerReferences: [null, 'x'] } }, 'metadata.ownerReferences[1]: expected an object'],
    [{ metadata: { ownerReferences: [{}, { uid: 7 }] } }, 'metadata.ownerReferences[1].uid: expected a string'],
    [{ metadata: { ownerReferences: [{ controller: 1 }] } }, 'metadata.ownerReferences[0].controller: expected a boolean'],
    [{ metadata: { managedFields: [null, []] } }, 'metadata.managedFields[1]: expected an object'],
    [{ metadata: { managedFields: [{}, { manager: {} }] } }, 'metadata.managedFields[1].manager: expected a string'],
    [{ metadata: { generation: 2 ** 63 } }, 'metadata.generation: expected an integer'],
    [{ metadata: { deletionGracePeriodSeconds: -1e300 } }, 'metadata.deletionGracePeriodSeconds: expected an integer'],
  ])('%j', async (body, message) => {
    const { call } = start();
    const answered = await call('POST', ORDERS_PATH, body);
    expect([answered.code, answered.body.message]).toEqual([400, message]);
  });

  const NO_KIND = `the object provided is unrecognized (must be of type Order): Object 'Kind' is missing`;
  const NO_VERSION = 'the API version in the data () does not match the expected API version (example.com/v1)';
  test.each([
    ['no kind', { kind: undefined }, NO_KIND],
    ['an empty kind', { kind: '' }, NO_KIND],
    ['neither', { kind: undefined, apiVersion: undefined }, NO_KIND],
    ['no version', { apiVersion: undefined }, NO_VERSION],
    ['an empty version', { apiVersion: '' }, NO_VERSION],
  ])('a custom resource says over HTTP of what kind it is: not %s', async (_, type, message) => {
    const { call, server } = start();
    await create(call, { name: 'a' });
    const body = { ...ORDER, ...type, metadata: { name: 'a' }, status: {} };
    for (const [method, path] of [
      ['POST', ORDERS_PATH],
      ['PUT', AT],
      ['PUT', `${AT}/status`],
      ['PUT', `${AT}b`],
    ] as const) {
      const yaml = [stringify(body), { 'content-type': 'application/yaml' }] as const;
      for (const answer of [await call(method, path, body), await call(method, path, ...yaml)])
        expect([answer.code, answer.body.message]).toEqual([400, message]);
    }
    const { kind: _kind, apiVersion: _version, ...bare } = body;
    const orders = server.resource('orders.example.com/v1').in('default');
    expect(await orders.update(bare)).toMatchObject(ORDER);
  });

  test('the path is enough for kinds in groups of Kubernetes’ own', async () => {
    for (const group of ['apps', 'networking.k8s.io']) {
      const { call } = rig({ resources: [{ ...(ORDERS as ResourceDefinition), group }] });
      const path = ORDERS_PATH.replace('example.com', group);
      const type = { apiVersion: undefined, kind: undefined };
      expect((await call('POST', path, { ...type, metadata: { name: 'a' } })).body).toMatchObject({ kind: 'Order' });
    }
  });

  test.each([[null], [{ fieldsV1: 5 }], [{ fieldsV1: 'x' }], [{ fieldsV1: [] }]])(
    'an entry of managedFields that cannot be read is none: %j',
    async (entry) => {
      const { call } = start();
      const metadata = { name: 'a', labels: { a: 'b' }, managedFields: [entry] };
      const { code, body } = await create(call, metadata);
      const [own] = body.metadata.managedFields;
      expect([code, body.metadata.managedFields]).toEqual([201, [{ ...own, manager: 'unknown' }]]);
      const patched = await call('PATCH', AT, { metadata: { managedFields: [entry] } });
      expect([patched.code, patched.body.metadata.managedFields]).toEqual([200, entry === null ? undefined : [own]]);
    },
  );

  test('null is an empty text, as in Go', async () => {
    const { call } = start();
    const { code, body } = await call('POST', ORDERS_PATH, { metadata: { name: 'a', labels: { a: null, b: 'c' } } });
    expect([code, body.metadata.labels]).toEqual([201, { a: '', b: 'c' }]);
  });

  test('what a patch makes of an object is 422, as is a beginning of names that makes none', async () => {
    const { call } = start();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    for (const metadata of [{ labels: { a: 7 } }, { generateName: 'No_Name' }]) {
      const { code } = await call('PATCH', `${ORDERS_PATH}/a`, { metadata }, { 'content-type': 'application/merge-patch+json' });
      expect(code).toBe(422);
    }
    const { body } = await call('PATCH', `${ORDERS_PATH}/a`, { metadata: { ownerReferences: ['x'] } });
    expect(body.details.causes[0].message).toMatch(/^Invalid value: ".*": metadata\.ownerReferences\[0\]: expected an object$/);
  });

  test.each(['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp'])(
    'metadata.%s that is no text',
    async (member) => {
      const { call } = start();
      for (const wrong of [7, true, {}]) {
        const { code, body } = await create(call, { name: 'a', [member]: wrong });
        expect([code, body.message]).toEqual([400, `metadata.${member}: expected a string`]);
      }
    },
  );

  const TIMES = [
    '',
    'x',
    '2026',
    '2026-01-02',
    '2026-01-02T03:04:05',
    '2026-01-02 03:04:05Z',
    '2026-02-30T00:00:00Z',
    '2026-01-01T24:00:00Z',
  ];
  test.each(TIMES)('a time is one of Go: not %j', async (time) => {
    const { call } = start();
    for (const member of ['creationTimestamp', 'deletionTimestamp']) {
      const { code, body } = await create(call, { name: 'a', [member]: time });
      expect([code, body.message]).toEqual([400, `metadata.${member}: expected a time`]);
    }
    const { code, body } = await create(call, { name: 'a', managedFields: [{ time }] });
    expect([code, body.message]).toEqual([400, 'metadata.managedFields[0].time: expected a time']);
    await create(call, { name: 'a' });
    const change = { metadata: { creationTimestamp: time } };
    const type = { 'content-type': 'application/merge-patch+json' };
    expect((await call('PATCH', `${ORDERS_PATH}/a`, change, type)).code).toBe(422);
  });

  test('null is nothing, in each member', async () => {
    const { call } = start();
    const none = { generateName: null, labels: null, annotations: null, finalizers: null, ownerReferences: null, uid: null };
    expect((await create(call, { name: 'a', ...none })).code).toBe(201);
    expect((await call('POST', ORDERS_PATH, { metadata: null })).body.message).toContain('metadata.name: Required value');
  });
});

describe('what metadata must not be is 422', () => {
  const [long, longer] = ['x'.repeat(64), 'x'.repeat(254)];
  test.each([
    [{ labels: { '-a': 'b' } }, 'metadata.labels', '"-a": name part must consist of alphanumeric characters'],
    [{ labels: { a: '-b' } }, 'metadata.labels', '"-b": a valid label must be an empty string or consist of'],
    [{ labels: { a: long } }, 'metadata.labels', `"${long}": must be no more than 63 bytes`],
    [{ labels: { [`${longer}/a`]: '' } }, 'metadata.labels', 'prefix part must be no more than 253 bytes'],
    [{ labels: { 'a/b/c': '' } }, 'metadata.labels', '"a/b/c": a valid label key must consist of'],
    [{ labels: { '/a': '' } }, 'metadata.labels', '"/a": prefix part must be non-empty'],
    [{ labels: { 'a/': '' } }, 'metadata.labels', '"a/": name part must be non-empty'],
    [{ annotations: { 'a b': '' } }, 'metadata.annotations', '"a b": name part must consist of'],
    [{ finalizers: ['a.b/c', 'a b'] }, 'metadata.finalizers', '"a b": name part must consist of'],
    [{ ownerReferences: [null] }, 'metadata.ownerReferences[0].apiVersion', 'Required value: must not be empty'],
  ])('%j', async (metadata, field, message) => {
    const { call } = start();
    const { code, body } = await create(call, { name: 'a', ...metadata });
    expect(code).toBe(422);
    expect(body.details.causes[0]).toMatchObject({ field, message: expect.stringContaining(message) });
  });

  test('more than a thousand managers', async () => {
    const { call } = start();
    const managedFields = Array.from({ length: 1_001 }, (_, at) => ({ manager: `m${at}`, operation: 'Apply' }));
    const { code, body } = await create(call, { name: 'a', managedFields });
    expect(code).toBe(422);
    expect(body.message).toContain('Too many: 1001: must have at most 1000 items');
  });

  test('keys of annotations may have capitals; all of them together have a limit', async () => {
    const { call } = start();
    const key = 'Example.com/A';
    const fits = 262_144 - key.length;
    expect((await create(call, { name: 'a', annotations: { [key]: 'x'.repeat(fits) } })).code).toBe(201);
    const { code, body } = await create(call, { name: 'b', annotations: { [key]: 'x'.repeat(fits), b: '' } });
    expect([code, body.details.causes]).toEqual([
      422,
      [
        {
          reason: 'FieldValueTooLong',
          field: 'metadata.annotations',
          message: 'Too long: may not be more than 262144 bytes',
        },
      ],
    ]);
  });

  test('annotations are measured in bytes', async () => {
    const { call } = start();
    const third = Math.floor((262_144 - 1) / 3);
    expect((await create(call, { name: 'a', annotations: { a: '日'.repeat(third) } })).code).toBe(201);
    expect((await create(call, { name: 'b', annotations: { a: '日'.repeat(third + 1) } })).code).toBe(422);
  });

  test('an owner has four members, none of them empty', async () => {
    const { call } = start();
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: '1' };
    expect((await create(call, { name: 'a', ownerReferences: [owner] })).body.metadata.ownerReferences).toEqual([owner]);
    const { body } = await create(call, { name: 'b', ownerReferences: [owner, { ...owner, kind: '', uid: '' }, {}] });
    expect(body.details.causes.map(({ field }: { field: string }) => field)).toEqual([
      ...['kind', 'uid'].map((member) => `metadata.ownerReferences[1].${member}`),
      ...['apiVersion', 'kind', 'name', 'uid'].map((member) => `metadata.ownerReferences[2].${member}`),
    ]);
  });

  test.each(['/', 'v1/', 'a/b/c', 'a//b', '//'])('an owner has a version: not %j', async (apiVersion) => {
    const { call } = start();
    const owner = { apiVersion, kind: 'ConfigMap', name: 'c', uid: '1' };
    const { code, body } = await create(call, { name: 'a', ownerReferences: [owner] });
    const message = `Invalid value: "${apiVersion}": must be <group>/<version> or <version>`;
    expect([code, body.details.causes]).toMatchObject([422, [{ field: 'metadata.ownerReferences[0].apiVersion', message }]]);
    expect((await create(call, { name: 'a', ownerReferences: [{ ...owner, apiVersion: '/v1' }] })).code).toBe(201); // as there
  });

  test('no event is an owner', async () => {
    const { call } = start();
    const owner = { apiVersion: 'v1', kind: 'Event', name: 'e', uid: '1' };
    const { code, body } = await create(call, { name: 'a', ownerReferences: [owner] });
    expect([code, body.details.causes[0].field]).toEqual([422, 'metadata.ownerReferences[0]']);
    expect(body.message).toContain('/v1, Kind=Event is disallowed from being an owner');
    const other = { ...owner, apiVersion: 'events.k8s.io/v1' };
    expect((await create(call, { name: 'a', ownerReferences: [other] })).code).toBe(201);
  });

  test('causes are short, whatever the names are', () => {
    const [kind, name] = ['K'.repeat(100_000), 'x'.repeat(100_000)];
    const owner = { apiVersion: 'v1', kind, name, uid: '1', controller: true };
    const metadata = { labels: { [name]: name }, finalizers: [name], ownerReferences: [owner, owner, { ...owner, uid: '' }] };
    const causes = atOnce(metadataCauses(metadata as never));
    expect(causes).toHaveLength(6);
    for (const { message } of causes) expect(message.length).toBeLessThan(1_200);
  });

  test('no two owners are controllers', async () => {
    const { call } = start();
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: '1', controller: true };
    const other = { ...owner, name: 'd', uid: '2' };
    const { code, body } = await create(call, { name: 'a', ownerReferences: [owner, other] });
    expect([code, body.details.causes[0].field]).toEqual([422, 'metadata.ownerReferences']);
    expect(body.message).toContain('Found "true" in references for ConfigMap/c and ConfigMap/d');
    for (const controller of [false, undefined]) {
      const ownerReferences = [owner, { ...other, controller }];
      expect((await create(call, { name: `a-${controller}`, ownerReferences })).code).toBe(201);
    }
  });

  test('every fault is told, and validate is asked only when there is none', async () => {
    const asked: unknown[] = [];
    const validate = (object: unknown, old: unknown): undefined => void asked.push([object, old]);
    const { call } = rig({ resources: [{ ...ORDERS, validate } as ResourceDefinition] });
    const { body } = await create(call, { name: 'A', labels: { '-': '-' } });
    expect(body.details.causes.map(({ field }: { field: string }) => field)).toEqual([
      'metadata.name',
      'metadata.labels',
      'metadata.labels',
    ]);
    expect(asked).toEqual([]);
    const created = await create(call, { name: 'a' });
    await put(call, { labels: { b: 'c' } });
    expect(asked).toEqual([
      [expect.objectContaining({ kind: 'Order' }), undefined],
      [expect.objectContaining({ metadata: expect.objectContaining({ labels: { b: 'c' } }) }), created.body],
    ]);
  });

  test.each([
    ['a'.repeat(253), 201],
    ['a'.repeat(254), 422],
    ['a-b.c', 201],
    ['a.', 422],
    ['a..b', 422],
    ['-a', 422],
    ['a_', 422],
  ])('the name %s is %i', async (name, code) => {
    const { call } = start();
    expect((await create(call, { name })).code).toBe(code);
  });

  test('what is wrong with a name is said as Kubernetes says it', async () => {
    const { call } = start();
    const causeOf = async (path: string, name: string): Promise<string> =>
      (await call('POST', path, { metadata: { name } })).body.details.causes[0].message;
    expect(await causeOf(ORDERS_PATH, 'a'.repeat(254))).toBe(
      `Invalid value: "${'a'.repeat(254)}": must be no more than 253 characters`,
    );
    // Whatever it consists of, nobody looks at megabytes of it.
    const { body } = await call('POST', ORDERS_PATH, { metadata: { name: 'A'.repeat(2_000) } });
    expect(body.details.causes.map(({ message }: { message: string }) => message.slice(-37))).toEqual([
      ': must be no more than 253 characters',
    ]);
    expect(await causeOf(ORDERS_PATH, 'A')).toBe(
      `Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
    );
    expect(await causeOf(ORDERS_PATH, `\n${'b'.repeat(400)}`)).toContain(`Invalid value: ".${'b'.repeat(299)}...": must be`);
  });

  test.each([
    ['x'.repeat(63), undefined],
    ['x'.repeat(64), `Invalid value: "${'x'.repeat(64)}": must be no more than 63 characters`],
    ['a.b', 'Invalid value: "a.b": must not contain dots'],
    [
      'a_b',
      `Invalid value: "a_b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
    ],
    ['a-', 'Invalid value: "a-": a lowercase RFC 1123 label must'],
    ['-a', 'Invalid value: "-a": a lowercase RFC 1123 label must'],
  ])('the namespace %s', async (namespace, message) => {
    const { call } = rig({ resources: [ORDERS as ResourceDefinition] });
    const answered = await call('POST', `/apis/example.com/v1/namespaces/${namespace}/orders`, { metadata: { name: 'a' } });
    if (message === undefined) expect(answered.code).toBe(201);
    else expect(answered.body.details.causes[0]).toMatchObject({ message: expect.stringContaining(message) });
  });
});

describe('generated names', () => {
  test('have five characters of those that make no words, behind what fits of the beginning', async () => {
    const { call } = rig({ random: () => 0.999 });
    const named = async (generateName: string): Promise<string> => (await create(call, { generateName })).body.metadata.name;
    expect(await named('order-')).toBe('order-99999');
    expect(await named('a'.repeat(70))).toBe(`${'a'.repeat(58)}99999`);
  });

  test('a beginning that is refused is shown as it was sent', async () => {
    const { code, body } = await create(start().call, { generateName: 'UP-' });
    expect([code, body.details.causes[0].field]).toEqual([422, 'metadata.generateName']);
    expect(body.details.causes[0].message).toMatch(/^Invalid value: "UP-": a lowercase RFC 1123 subdomain /);
  });

  test('a name that was given is not replaced, and generateName is what was sent last', async () => {
    const { call } = start();
    const { body } = await create(call, { name: 'a', generateName: 'b-' });
    expect(body.metadata).toMatchObject({ name: 'a', generateName: 'b-' });
    expect((await create(call, { name: 'a', generateName: 'b-' })).code).toBe(409);
    const changed = await put(call, { generateName: 'c-', labels: { x: 'y' } });
    expect(changed.body.metadata).toMatchObject({ name: 'a', generateName: 'c-', labels: { x: 'y' } });
    expect((await put(call, { generateName: null })).body.metadata).not.toHaveProperty('generateName');
  });

  test('an object without one may get one', async () => {
    const { call } = start();
    await create(call, { name: 'a' });
    expect((await put(call, { generateName: 'c-' })).body.metadata.generateName).toBe('c-');
  });
});

describe('an update', () => {
  const refusal = async (metadata: object): Promise<[number, string]> => {
    const { call } = start();
    await create(call, { name: 'a' });
    const { code, body } = await put(call, metadata);
    return [code, body.message];
  };
  const conflict = 'Operation cannot be fulfilled on orders.example.com "a": ';
  const modified = `${conflict}the object has been modified; please apply your changes to the latest version and try again`;

  test.each([
    [{ name: 'b' }, 400, 'the name of the object (b) does not match the name on the URL (a)'],
    [{ name: null }, 400, 'the name of the object () does not match the name on the URL (a)'],
    [{ name: 'b'.repeat(900) }, 400, `the name of the object (${'b'.repeat(300)}) does not match the name on the URL (a)`],
    [{ namespace: 'b' }, 400, 'the namespace of the provided object does not match the namespace sent on the request'],
    [{ uid: 'z' }, 409, `${conflict}Precondition failed: UID in precondition: z, UID in object meta: uid-1`],
    [{ resourceVersion: '999' }, 409, modified],
    [{ resourceVersion: '9'.repeat(39) }, 409, modified],
    [{ resourceVersion: '9'.repeat(40) }, 422, expect.stringContaining('expected a decimal number')],
    [{ resourceVersion: '01' }, 422, expect.stringContaining('metadata.resourceVersion: Invalid value: "01"')],
    [{ resourceVersion: '1x' }, 422, expect.stringContaining('"1x": expected a decimal number')],
    [{ resourceVersion: 'x1' }, 422, expect.stringContaining('"x1": expected a decimal number')],
    [
      { deletionTimestamp: '2026-01-02T03:04:05Z' },
      422,
      'Order.example.com "a" is invalid: metadata.deletionTimestamp: Invalid value: "2026-01-02T03:04:05Z": field is immutable',
    ],
    [
      { deletionGracePeriodSeconds: 0 },
      422,
      expect.stringContaining('metadata.deletionGracePeriodSeconds: Invalid value: 0: field'),
    ],
    [{ deletionGracePeriodSeconds: 1.5 }, 400, 'metadata.deletionGracePeriodSeconds: expected an integer'],
    [{ generation: '1' }, 400, 'metadata.generation: expected an integer'],
  ])('with %j is refused', async (metadata, code, message) => {
    expect(await refusal(metadata)).toEqual([code, message]);
  });

  test.each([
    ['without a version', { resourceVersion: null }],
    ['with version 0', { resourceVersion: '0' }],
    ['with the uid', { uid: 'uid-1' }],
    ['without what the server gives', { uid: null, creationTimestamp: null, generation: null, namespace: null }],
    ['with the time in milliseconds', { creationTimestamp: '2026-01-02T03:04:05.000Z' }],
    ['with the time of another object', { creationTimestamp: '2001-01-01T00:00:00Z' }],
    ['with another generation', { generation: 77 }],
  ])('%s is taken, and what only the server gives stays', async (_name, metadata) => {
    const { call } = start();
    const { body: before } = await create(call, { name: 'a', labels: { x: 'y' } });
    const { code, body } = await put(call, { ...metadata, labels: { x: 'z' } });
    expect(code).toBe(200);
    const { resourceVersion, ...rest } = body.metadata;
    expect(Number(resourceVersion)).toBeGreaterThan(Number(before.metadata.resourceVersion));
    const { resourceVersion: _, ...old } = before.metadata;
    expect(rest).toEqual({ ...old, labels: { x: 'z' } });
  });

  test('counts generations by what is neither metadata nor status', async () => {
    const { call } = start();
    await create(call, { name: 'a' }, { spec: { count: 1 }, extra: { deep: [1, { a: 2 }] } });
    const generation = async (more: object): Promise<number> => (await put(call, {}, more)).body.metadata.generation;
    expect(await generation({ extra: { deep: [1, { a: 2 }] } })).toBe(1);
    expect(await generation({ extra: { deep: [1, { a: 3 }] } })).toBe(2);
    expect(await generation({ extra: { deep: [1] } })).toBe(3);
    expect(await generation({ extra: { deep: { 0: 1 } } })).toBe(4);
    expect(await generation({ extra: undefined })).toBe(5);
    expect(await generation({ status: { phase: 'x' } })).toBe(5);
  });

  test('of a kind whose status is no part of its own writes both; of one in the group without a name counts nothing', async () => {
    const { call } = rig({ resources: [{ ...ORDERS, status: false } as ResourceDefinition] });
    expect((await create(call, { name: 'a' }, { status: { phase: 'x' } })).body.status).toEqual({ phase: 'x' });
    const written = await put(call, {}, { status: { phase: 'y' } });
    // Upstream counts it, too: it is a part like any other.
    expect(written.body).toMatchObject({ status: { phase: 'y' }, metadata: { generation: 2 } });
    const core = start();
    await core.call('POST', CONFIG_MAPS_PATH, { metadata: { name: 'a' }, data: { a: 'b' } });
    const { body } = await core.call('PATCH', `${CONFIG_MAPS_PATH}/a`, { data: { a: 'c' } });
    expect(body).toMatchObject({ data: { a: 'c' } });
    expect(body.metadata).not.toHaveProperty('generation');
  });

  test('of a kind that counts none is what was sent when it was created', async () => {
    const { call } = start();
    const made = (name: string, generation: number): Promise<Answered> =>
      call('POST', CONFIG_MAPS_PATH, { metadata: { name, generation, finalizers: ['a.b/x'] } });
    expect((await made('a', 8)).body.metadata.generation).toBe(8);
    expect((await made('b', 0)).body.metadata).not.toHaveProperty('generation');
    const refused = await made('c', -1);
    expect([refused.code, refused.body.details.causes[0].field]).toEqual([422, 'metadata.generation']);
    const patched = await call('PATCH', `${CONFIG_MAPS_PATH}/a`, { metadata: { generation: 3, labels: { x: 'y' } } });
    expect(patched.body.metadata).toMatchObject({ generation: 8, labels: { x: 'y' } });
    expect((await call('DELETE', `${CONFIG_MAPS_PATH}/a`)).body.metadata.generation).toBe(9);
  });

  test('at status writes the status alone: neither labels nor another part', async () => {
    const { call } = start();
    const { body } = await create(call, { name: 'a', labels: { x: 'y' } }, { spec: { count: 1 } });
    const sent = { ...body, metadata: { ...body.metadata, labels: { x: 'z' } }, spec: {}, status: { phase: 'p' } };
    const written = await call('PUT', `${AT}/status`, sent);
    expect(written.body).toMatchObject({ metadata: { labels: { x: 'y' } }, spec: { count: 1 }, status: { phase: 'p' } });
    expect((await put(call, { labels: {} }, { status: undefined })).body).toMatchObject({ status: { phase: 'p' } });
    const { status, ...without } = (await call('GET', AT)).body;
    expect(status).toEqual({ phase: 'p' });
    expect((await call('PUT', `${AT}/status`, without)).body).not.toHaveProperty('status');
  });

  test('the members of metadata are in the same order, whatever order they came in', async () => {
    const { call } = start();
    const metadata = { finalizers: ['a.b/c'], annotations: { a: 'b' }, labels: { a: 'b' }, generateName: 'a-', name: 'a' };
    const created = await create(call, metadata);
    const inOrder = ['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp'];
    expect(Object.keys(created.body.metadata).sort()).toEqual([...inOrder, 'labels', 'annotations', 'finalizers'].sort());
    const changed = await put(call, { labels: { a: 'c' } });
    const names = Object.keys(changed.body.metadata).filter((name) => name !== 'resourceVersion');
    expect(names).toEqual([...inOrder.filter((name) => name !== 'resourceVersion'), 'labels', 'annotations', 'finalizers']);
  });
});

describe('an object that waits for its finalizers', () => {
  async function held(): Promise<Call> {
    const { call } = start();
    await create(call, { name: 'a', finalizers: ['a.b/x', 'a.b/y'] }, { spec: { count: 1 } });
    await call('DELETE', AT);
    return call;
  }

  test('takes no more of them, and says which; others may be removed, and it may change', async () => {
    const call = await held();
    const refused = await put(call, { finalizers: ['a.b/x', 'a.b/z', 'a.b/w'] });
    expect(refused.code).toBe(422);
    expect(refused.body.details.causes).toEqual([
      {
        field: 'metadata.finalizers',
        reason: 'FieldValueForbidden',
        message:
          'Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"a.b/z", "a.b/w"}',
      },
    ]);
    const many = Array.from({ length: 101 }, (_, at) => `a.b/${'x'.repeat(1_000)}${at}`);
    const { message } = (await put(call, { finalizers: many })).body.details.causes[0];
    expect(message).toMatch(
      /^Forbidden: no new finalizers .* found new finalizers \[\]string\{"a\.b\/x{296}\.\.\.", .*, \.\.\.\}$/,
    );
    expect(message.length).toBeLessThan(32_000);
    expect((await put(call, { finalizers: ['a.b/y'] }, { spec: { count: 2 } })).body).toMatchObject({
      spec: { count: 2 },
      metadata: { finalizers: ['a.b/y'], generation: 3, deletionGracePeriodSeconds: 0 },
    });
    expect((await put(call, { deletionTimestamp: null, deletionGracePeriodSeconds: null })).body.metadata).toMatchObject({
      deletionTimestamp: '2026-01-02T03:04:05Z',
      deletionGracePeriodSeconds: 0,
    });
  });

  test('takes more of them before it is deleted', async () => {
    const { call } = start();
    await create(call, { name: 'a', finalizers: ['a.b/x'] });
    expect((await put(call, { finalizers: ['a.b/x', 'a.b/y'] })).body.metadata.finalizers).toEqual(['a.b/x', 'a.b/y']);
  });

  test('is deleted once: the second time changes nothing', async () => {
    const call = await held();
    const { body } = await call('GET', AT);
    const again = await call('DELETE', AT);
    expect([again.code, again.body]).toEqual([200, body]);
    expect(body.metadata).toMatchObject({ generation: 2, deletionGracePeriodSeconds: 0 });
  });

  test('that is created with a time of deletion does not begin with one', async () => {
    const { call } = start();
    const { body } = await create(call, {
      name: 'a',
      deletionTimestamp: '2026-01-02T03:04:05Z',
      deletionGracePeriodSeconds: 30,
      uid: 'mine',
      generation: 9,
      creationTimestamp: '2001-01-01T00:00:00Z',
    });
    expect(body.metadata).toEqual({
      name: 'a',
      namespace: 'default',
      uid: 'uid-1',
      resourceVersion: expect.any(String),
      generation: 1,
      creationTimestamp: '2026-01-02T03:04:05Z',
    });
  });

  test('of a kind without generations gets none by its deletion', async () => {
    const { call } = start();
    await call('POST', CONFIG_MAPS_PATH, { metadata: { name: 'a', finalizers: ['a.b/x'] } });
    const { body } = await call('DELETE', `${CONFIG_MAPS_PATH}/a`);
    expect(body.metadata).toMatchObject({ deletionTimestamp: '2026-01-02T03:04:05Z', deletionGracePeriodSeconds: 0 });
    expect(body.metadata).not.toHaveProperty('generation');
  });

  test('its deletion and its end can be tried without either', async () => {
    const { call } = start();
    await create(call, { name: 'a', finalizers: ['a.b/x'] });
    const { body } = await call('GET', AT);
    const tried = await call('DELETE', `${AT}?dryRun=All`);
    expect(tried.body.metadata).toMatchObject({ deletionTimestamp: '2026-01-02T03:04:05Z', finalizers: ['a.b/x'] });
    expect((await call('GET', AT)).body).toEqual(body);
    await call('DELETE', AT);
    const freed = await call('PATCH', `${AT}?dryRun=All`, { metadata: { finalizers: null } });
    expect([freed.code, freed.body.metadata.finalizers]).toEqual([200, undefined]);
    expect((await call('GET', AT)).body.metadata.finalizers).toEqual(['a.b/x']);
  });
});

describe('preconditions of a deletion', () => {
  const remove = (call: Call, preconditions: object): Promise<Answered> => call('DELETE', AT, { preconditions });

  test('say which does not hold, of an object that finalizers hold as of any other', async () => {
    for (const finalizers of [[], ['a.b/c']]) {
      const { call } = start();
      const { body } = await create(call, { name: 'a', finalizers });
      const { resourceVersion } = body.metadata;
      const said = async (preconditions: object): Promise<unknown> => {
        const refused = await remove(call, preconditions);
        return [refused.code, refused.body.message];
      };
      const conflict = 'Operation cannot be fulfilled on Order.example.com "a": the';
      const uids = (given: string): string =>
        `${conflict} UID in the precondition (${given}) does not match the UID in record (uid-1). The object might have been deleted and then recreated`;
      expect(await said({ uid: 'z' })).toEqual([409, uids('z')]);
      expect(await said({ uid: 'z'.repeat(300) })).toEqual([409, uids('z'.repeat(100))]);
      const versions = `${conflict} ResourceVersion in the precondition (77) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`;
      expect(await said({ uid: 'uid-1', resourceVersion: '77' })).toEqual([409, versions]);
      expect((await call('GET', AT)).body).toEqual(body);
      expect((await remove(call, { uid: 'uid-1', resourceVersion })).code).toBe(200);
    }
  });
});

test.each([
  [{ a: 1, b: undefined }, { a: 1 }, true],
  [{ a: 1 }, { a: 1, b: undefined }, true],
  [{ a: 1 }, { a: 1, b: null }, false],
  [{ a: undefined, b: 1 }, { a: 1, b: undefined }, false],
  [{ a: { b: [1, { c: 2 }] } }, { a: { b: [1, { c: 2 }] } }, true],
  [[1, 2], [1, 2, 3], false],
  [[1, 2], [1, 3], false],
  [[], {}, false],
  [{}, [], false],
  [[1], { length: 1 }, false],
  [{ length: 1 }, [1], false],
  [null, {}, false],
  [{}, null, false],
  [1, {}, false],
  [{}, 'a', false],
  ['a', 'b', false],
  [JSON.parse('{"__proto__":{}}'), { a: {} }, false],
])('%j and %j are the same JSON: %s', (one, other, same) => {
  expect(atOnce(comparing(one, other))).toBe(same);
});

describe('dryRun', () => {
  test('of an update answers with what would be there', async () => {
    const { call } = start();
    await create(call, { name: 'a' }, { spec: { count: 1 } });
    const { body } = await call('GET', AT);
    const tried = await call('PATCH', `${AT}?dryRun=All`, { spec: { count: 2 } });
    expect(tried.body).toMatchObject({ spec: { count: 2 }, metadata: { generation: 2 } });
    expect((await call('PATCH', `${AT}?dryRun=All`, { spec: { count: -2 } })).code).toBe(422);
    expect((await call('GET', AT)).body).toEqual(body);
    const missing = await call('PATCH', `${ORDERS_PATH}/b?dryRun=All`, {});
    expect([missing.code, missing.body.message]).toEqual([404, 'orders.example.com "b" not found']);
  });

  test('of a creation finds that the name is taken', async () => {
    const { call } = start();
    await create(call, { name: 'a' });
    const again = await call('POST', `${ORDERS_PATH}?dryRun=All`, { metadata: { name: 'a' } });
    expect([again.code, again.body.message]).toEqual([409, 'orders.example.com "a" already exists']);
  });

  test('of a deletion that cannot be is refused', async () => {
    const { call } = start();
    expect((await call('DELETE', `${AT}?dryRun=All`)).code).toBe(404);
    await create(call, { name: 'a' });
    expect((await call('DELETE', `${AT}?dryRun=All`, { preconditions: { uid: 'z' } })).code).toBe(409);
    expect((await call('DELETE', `${AT}?dryRun=All`)).body).toMatchObject({ status: 'Success', details: { uid: 'uid-1' } });
    expect((await call('GET', AT)).code).toBe(200);
  });
});
