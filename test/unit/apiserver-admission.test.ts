// A program's hooks in every write: what they see, what they may do, and what a client gets of it.
import { afterEach, describe, expect, test } from 'vitest';
import type { AdmissionHooks, AdmissionReview, ApiServerOptions, ResourceDefinition } from '../../src/apiserver/index.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { CONFIG_MAPS } from '../garbage-world.ts';
import { ORDERS, ORDERS_PATH, rig } from './apiserver-rig.ts';

const SCALED: ResourceDefinition = {
  ...(ORDERS as ResourceDefinition),
  scale: { specReplicasPath: '.spec.count', statusReplicasPath: '.status.count' },
};

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

type Rig = ReturnType<typeof rig> & { readonly errors: unknown[]; readonly seen: AdmissionReview[] };

/** A server whose hooks write down what they see. */
function server(hooks: AdmissionHooks = {}, options: Partial<ApiServerOptions> = {}): Rig {
  const errors: unknown[] = [];
  const seen: AdmissionReview[] = [];
  const admission: AdmissionHooks = {
    mutate: (review) => hooks.mutate?.(review),
    validate: (review) => {
      seen.push(review);
      return hooks.validate?.(review);
    },
  };
  const made = rig({ resources: [SCALED, CONFIG_MAPS], admission, onError: (error) => void errors.push(error), ...options });
  closing.push(() => made.server.shutdown());
  return { ...made, errors, seen };
}

const A = `${ORDERS_PATH}/a`;
const NEW = { metadata: { name: 'a' }, spec: { item: 'x' } };
const shown = ({ operation, subresource, name, dryRun, object, oldObject }: AdmissionReview): unknown =>
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into objects
  [operation, subresource, name, dryRun, (object as any)?.spec, (oldObject as any)?.spec];

describe('hooks', () => {
  test('see every write: what it writes, what was there, and how', async () => {
    const { call, seen, server: own } = server();
    await call('POST', `${ORDERS_PATH}?fieldManager=me&dryRun=All`, NEW);
    await call('POST', ORDERS_PATH, NEW);
    await call('PUT', A, { ...NEW, spec: { item: 'y' } });
    await call('PATCH', A, { spec: { item: 'z' } });
    await call('PATCH', A, [{ op: 'replace', path: '/spec/item', value: 'j' }], {
      'content-type': 'application/json-patch+json',
    });
    await call('PATCH', `${A}/status`, { status: { phase: 'p' }, spec: { item: 'ignored' } });
    await call('PUT', A, { ...NEW, spec: { item: 'j', count: 1 } });
    await call('PATCH', `${A}/scale`, { spec: { replicas: 3 } });
    await call('DELETE', A, { propagationPolicy: 'Orphan', dryRun: ['All'] });
    await call('DELETE', `${ORDERS_PATH}?labelSelector=a=b`);
    await own.resource('orders.example.com/v1').in('default').delete('a');
    expect(seen.map(shown)).toEqual([
      ['CREATE', undefined, 'a', true, { item: 'x' }, undefined],
      ['CREATE', undefined, 'a', false, { item: 'x' }, undefined],
      ['UPDATE', undefined, 'a', false, { item: 'y' }, { item: 'x' }],
      ['UPDATE', undefined, 'a', false, { item: 'z' }, { item: 'y' }],
      ['UPDATE', undefined, 'a', false, { item: 'j' }, { item: 'z' }],
      ['UPDATE', 'status', 'a', false, { item: 'j' }, { item: 'j' }],
      ['UPDATE', undefined, 'a', false, { item: 'j', count: 1 }, { item: 'j' }],
      ['UPDATE', 'scale', 'a', false, { replicas: 3 }, { replicas: 1 }],
      ['DELETE', undefined, 'a', true, undefined, { item: 'j', count: 3 }],
      ['DELETE', undefined, 'a', false, undefined, { item: 'j', count: 3 }],
    ]);
    expect(seen[0]).toMatchObject({ resource: 'orders.example.com', namespace: 'default', options: { fieldManager: 'me' } });
    expect(seen[8]?.options).toEqual({ propagationPolicy: 'Orphan' });
    expect(seen[7]?.object?.kind).toBe('Scale');
  });

  test('mutate changes what is written, in place or by another object, before anything checks it', async () => {
    const { call, seen } = server({
      mutate: async ({ object, operation }) => {
        if (operation === 'UPDATE') return { ...object, metadata: { ...object?.metadata, labels: { by: 'hook' } } };
        (object as { spec: object }).spec = { item: 'mutated', at: new Date(0) };
        return undefined;
      },
    });
    const created = await call('POST', ORDERS_PATH, NEW);
    expect(created.body.spec).toEqual({ item: 'mutated', at: '1970-01-01T00:00:00.000Z' });
    expect((await call('PATCH', A, { spec: { item: 'z' } })).body.metadata.labels).toEqual({ by: 'hook' });
    expect((await call('GET', A)).body).toMatchObject({ spec: { item: 'z' }, metadata: { labels: { by: 'hook' } } });
    expect(seen.map(({ object }) => (object as unknown as { spec: object }).spec)).toEqual([
      created.body.spec,
      { ...created.body.spec, item: 'z' },
    ]);
  });

  test('what mutate makes is checked like what a client sends', async () => {
    const { call, seen } = server({ mutate: () => ({ metadata: { name: 'a' }, spec: { count: -1 } }) });
    const { code, body } = await call('POST', ORDERS_PATH, NEW);
    expect([code, body.details.causes[0].field, seen]).toEqual([422, expect.stringMatching(/spec.count$/), []]);
  });

  test('deny refuses, with the words of a webhook', async () => {
    const { call, storage, errors } = server({
      validate: ({ deny, operation, object }) => {
        if (operation === 'DELETE') deny('', { code: 418, reason: 'Teapot' });
        if ((object as { spec?: { item?: string } }).spec?.item === 'bad') deny('no bad items');
      },
    });
    const refused = await call('POST', ORDERS_PATH, { ...NEW, spec: { item: 'bad' } });
    expect([refused.code, refused.body.reason, refused.body.message]).toEqual([
      ...[403, 'Forbidden', 'admission webhook "validate.orders.example.com" denied the request: no bad items'],
    ]);
    await call('POST', ORDERS_PATH, NEW);
    const version = await storage.currentVersion();
    expect((await call('PATCH', A, { spec: { item: 'bad' } })).code).toBe(403);
    const kept = await call('DELETE', A);
    expect([kept.code, kept.body.message]).toEqual([
      ...[418, 'admission webhook "validate.orders.example.com" denied the request: Teapot'],
    ]);
    expect([await storage.currentVersion(), errors]).toEqual([version, []]);
  });

  test.each([
    [200, 400],
    [Number.NaN, 403],
    [700, 403],
    [1_000, 403],
    [403.5, 403],
    [599, 599],
  ])('deny with the code %d answers %d', async (code, expected) => {
    const { call } = server({ validate: ({ deny }) => deny('no', { code }) });
    const answer = await call('POST', ORDERS_PATH, NEW);
    expect([answer.code, answer.body.code]).toEqual([expected, expected]);
  });

  test('deny with an option that does not exist is a fault of the hook', async () => {
    const { call, errors } = server({ validate: ({ deny }) => deny('no', { status: 422 } as object) });
    expect((await call('POST', ORDERS_PATH, NEW)).code).toBe(500);
    const cause = expect.objectContaining({ message: 'unknown option status: expected one of code, reason' });
    expect(errors).toEqual([expect.objectContaining({ cause })]);
  });

  test.each([
    [409, 'Conflict'],
    [409, 'AlreadyExists'],
    [404, 'NotFound'],
    [410, 'Expired'],
  ])('a denial with %d %s is not taken for a word of the storage', async (code, reason) => {
    let calls = 0;
    const { call } = server({
      validate: ({ deny, object }) => {
        calls++;
        if ((object as { spec?: { item?: string } })?.spec?.item !== 'first') deny('never', { code, reason });
      },
    });
    const created = await call('POST', ORDERS_PATH, NEW);
    const text = 'admission webhook "validate.orders.example.com" denied the request: never';
    expect([created.code, created.body.reason, created.body.message, calls]).toEqual([code, reason, text, 1]);
    await call('POST', ORDERS_PATH, { ...NEW, spec: { item: 'first' } });
    for (const method of ['PATCH', 'DELETE']) {
      calls = 0;
      const { body } = await call(method, A, method === 'PATCH' ? { spec: { item: 'z' } } : undefined);
      expect([body.code, body.reason, body.message, calls]).toEqual([code, reason, text, 1]);
    }
  });

  test('what mutate makes of a built-in kind is one of its kind', async () => {
    const { call, errors } = server({ mutate: ({ object }) => ({ ...object, data: 7 }) });
    const { code } = await call('POST', '/api/v1/namespaces/default/configmaps', { metadata: { name: 'a' } });
    expect([code, errors.map((error) => (error as Error).message)]).toEqual([
      ...[500, ['admission: mutate.configmaps made an object that is none of its kind']],
    ]);
  });

  test('mutate may deny as well', async () => {
    const { call } = server({ mutate: ({ deny }) => deny('never') });
    expect((await call('POST', ORDERS_PATH, NEW)).body.message).toMatch(/^admission webhook "mutate.orders.example.com" denied/);
  });

  test('a warning of any length leaves the write as it is', async () => {
    const { call } = server({ validate: ({ warn }) => ['mind the gap', 'x'.repeat(500_000)].forEach(warn) });
    const { code, headers } = await call('POST', ORDERS_PATH, NEW);
    expect([code, headers.get('warning')?.split(', ')]).toEqual([
      201,
      ['299 - "mind the gap"', expect.stringContaining('and 1 more')],
    ]);
  });

  test('a warning cannot make a header', async () => {
    const { call } = server({ validate: ({ warn }) => warn('a\r\nset-cookie: x=1\0') });
    const { code, headers } = await call('POST', ORDERS_PATH, NEW);
    expect([code, headers.get('warning'), headers.get('set-cookie')]).toEqual([201, '299 - "a..set-cookie: x=1."', null]);
  });

  test('warnings reach the client, each once', async () => {
    const { call } = server({ validate: ({ warn }) => ['mind the "gap"', 'mind the "gap"'].forEach(warn) });
    expect((await call('POST', ORDERS_PATH, NEW)).headers.get('warning')).toBe('299 - "mind the \\"gap\\""');
  });

  test('they know who writes; the server itself is nobody', async () => {
    const { call, seen, server: own } = server({}, { authenticate: () => 'ann' });
    await call('POST', ORDERS_PATH, NEW);
    await own.resource('orders.example.com/v1').in('default').delete('a');
    expect(seen.map(({ user }) => user)).toEqual(['ann', undefined]);
  });

  test('an object with finalizers is asked about when its deletion begins, and when it is changed', async () => {
    const { call, seen } = server();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a', finalizers: ['x.example/y'] } });
    await call('DELETE', A);
    await call('PATCH', A, { metadata: { finalizers: null } });
    expect(seen.map(({ operation }) => operation)).toEqual(['CREATE', 'DELETE', 'UPDATE']);
    expect((await call('GET', A)).code).toBe(404);
  });

  test("what fails in them is not the client's business", async () => {
    const {
      call,
      errors,
      server: own,
    } = server({
      validate: async ({ name }) => {
        await own.resource('configmaps/v1').in('default').get(`none-${name}`);
      },
    });
    const { code, body } = await call('POST', ORDERS_PATH, NEW);
    expect([code, body.message]).toEqual([500, expect.not.stringContaining('none-a')]);
    expect(errors).toEqual([expect.objectContaining({ message: 'admission: validate.orders.example.com failed' })]);
  });

  test('they have as long as a handshake', async () => {
    const clock = new FakeClock();
    const { call, errors } = server({ validate: () => new Promise(() => {}) }, { clock, handshakeTimeoutMs: 1_000 });
    const answer = call('POST', ORDERS_PATH, NEW);
    await expect.poll(() => clock.pending).toBeGreaterThan(1);
    clock.advance(1_000);
    expect((await answer).code).toBe(500);
    expect(errors).toHaveLength(1);
  });

  test("mutate that returns something else is its owner's error", async () => {
    const { call, errors } = server({ mutate: () => [] });
    expect((await call('POST', ORDERS_PATH, NEW)).code).toBe(500);
    expect(errors).toHaveLength(1);
  });

  test('validate that returns false neither refuses nor accepts: its owner is told what it may do', async () => {
    const { call, errors } = server({ validate: ({ deny, name }): never => (name === 'never' && deny('no')) as never });
    expect((await call('POST', ORDERS_PATH, NEW)).code).toBe(500);
    const message = expect.stringMatching(/^validate of orders.example.com: expected undefined, or a call of deny, got false$/);
    expect(errors).toEqual([expect.objectContaining({ cause: expect.objectContaining({ message }) })]);
  });

  test('what validate changes has no effect, nor what mutate changes of the stored object', async () => {
    const spoil = (object: unknown): void => {
      if (object) Object.assign(object, { spec: { count: 'many' }, more: 1 });
      Object.assign((object as { metadata?: object } | undefined)?.metadata ?? {}, { labels: { a: 'b' } });
    };
    const kept: unknown[] = [];
    const { call, seen } = server({
      mutate: ({ oldObject }) => spoil(oldObject),
      validate: ({ object, oldObject, operation, deny }) => {
        kept.push(object, oldObject);
        for (const each of [object, oldObject]) spoil(each);
        if (operation === 'DELETE') deny('keep it');
      },
    });
    const created = (await call('POST', ORDERS_PATH, NEW)).body;
    expect((await call('GET', A)).body).toEqual({ ...created, spec: { item: 'x' } });
    expect((await call('DELETE', A)).code).toBe(403);
    expect((await call('DELETE', A, { dryRun: ['All'] })).code).toBe(403);
    expect((await call('GET', A)).body).toEqual(created);
    const updated = (await call('PATCH', A, { spec: { item: 'y', count: 1 } })).body;
    await call('PATCH', `${A}/scale`, { spec: { replicas: 3 } });
    for (const object of kept) spoil(object); // a hook may keep them
    const { metadata, spec, more } = (await call('GET', A)).body;
    expect([updated.spec, metadata.labels, spec, more]).toEqual([
      { item: 'y', count: 1 },
      undefined,
      { item: 'y', count: 3 },
      undefined,
    ]);
    expect(seen).toHaveLength(5);
  });

  test('options are checked', () => {
    expect(() => server({}, { admission: { validate: 1 } as never })).toThrow('admission.validate');
    expect(() => server({}, { admission: { vaildate: () => {} } as never })).toThrow('did you mean validate?');
    expect(() => server({}, { garbageCollection: 1 as never })).toThrow('garbageCollection');
  });
});
