// Users whom somebody else names: by Impersonate-* headers, in reviews of what they may do, and by their tokens.
import { connect, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, test } from 'vitest';
import {
  type ApiServerOptions,
  type Authorize,
  BUILT_IN_KINDS,
  type ResourceDefinition,
  type UserInfo,
  type WatchClient,
} from '../../src/apiserver/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { ORDERS, ORDERS_PATH, rig } from './apiserver-rig.ts';
import { open } from './apiserver-sockets.ts';
import { macrotask } from './support.ts';

type Identity = UserInfo | string;
const resources = [...BUILT_IN_KINDS, ORDERS as ResourceDefinition];
const WATCH = `${ORDERS_PATH}?watch=1&resourceVersion=0`;

/** A server whose clients say their names as tokens. What was asked of `authorize` is in `asked`. */
function named(authorize: Authorize<Identity> = () => true, more: Partial<ApiServerOptions<Identity>> = {}) {
  const asked: unknown[][] = [];
  const options: Partial<ApiServerOptions<Identity>> = {
    authenticateToken: (token) => token !== 'nobody' && token,
    identityOf: (user) => user.username !== 'nobody' && user,
    authorize: (...args) => {
      asked.push(args);
      return authorize(...args);
    },
    ...more,
  };
  return { asked, options: { resources, ...options } as Partial<ApiServerOptions> };
}

const as = (headers: Readonly<Record<string, string>>): Record<string, string> => ({
  authorization: 'Bearer admin',
  ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [`Impersonate-${name}`, value])),
});

describe('a request with Impersonate-* headers', () => {
  test.each<[string, Record<string, string>, UserInfo, readonly unknown[][]]>([
    [
      'a user',
      { User: 'jo' },
      { username: 'jo', groups: ['system:authenticated'] },
      [['impersonate', 'users', undefined, 'jo', 'admin']],
    ],
    [
      'groups, a uid, and more',
      { User: 'jo', Group: 'dev, ops', Uid: '7', 'Extra-Scopes%2fx': 'a' },
      { username: 'jo', uid: '7', groups: ['dev', 'ops', 'system:authenticated'], extra: { 'scopes/x': ['a'] } },
      [
        ['impersonate', 'users', undefined, 'jo', 'admin'],
        ['impersonate', 'groups', undefined, 'dev', 'admin'],
        ['impersonate', 'groups', undefined, 'ops', 'admin'],
        ['impersonate', 'userextras.authentication.k8s.io/scopes/x', undefined, 'a', 'admin'],
        ['impersonate', 'uids.authentication.k8s.io', undefined, '7', 'admin'],
      ],
    ],
    [
      'a service account',
      { User: 'system:serviceaccount:ns:robot' },
      {
        username: 'system:serviceaccount:ns:robot',
        groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:authenticated'],
      },
      [['impersonate', 'serviceaccounts', 'ns', 'robot', 'admin']],
    ],
    [
      'what only looks like a service account',
      { User: 'system:serviceaccount:Ns:robot' },
      { username: 'system:serviceaccount:Ns:robot', groups: ['system:authenticated'] },
      [['impersonate', 'users', undefined, 'system:serviceaccount:Ns:robot', 'admin']],
    ],
    [
      'a service account in a group that is named',
      { User: 'system:serviceaccount:ns1:robot.2', Group: 'dev' },
      { username: 'system:serviceaccount:ns1:robot.2', groups: ['dev', 'system:authenticated'] },
      [
        ['impersonate', 'serviceaccounts', 'ns1', 'robot.2', 'admin'],
        ['impersonate', 'groups', undefined, 'dev', 'admin'],
      ],
    ],
    ...['my:system:serviceaccount:ns:robot', 'system:serviceaccount:ns:robot!'].map(
      (User): [string, Record<string, string>, UserInfo, readonly unknown[][]] => [
        'another name',
        { User },
        { username: User, groups: ['system:authenticated'] },
        [['impersonate', 'users', undefined, User, 'admin']],
      ],
    ),
    [
      'what cannot be decoded',
      { User: 'jo', 'Extra-%zz': 'a' },
      { username: 'jo', groups: ['system:authenticated'], extra: { '%zz': ['a'] } },
      [
        ['impersonate', 'users', undefined, 'jo', 'admin'],
        ['impersonate', 'userextras.authentication.k8s.io/%zz', undefined, 'a', 'admin'],
      ],
    ],
    [
      'nobody in particular',
      { User: 'system:anonymous' },
      { username: 'system:anonymous', groups: ['system:unauthenticated'] },
      [['impersonate', 'users', undefined, 'system:anonymous', 'admin']],
    ],
    [
      'everybody, in no other group',
      { User: 'jo', Group: 'system:authenticated' },
      { username: 'jo', groups: ['system:authenticated'] },
      [
        ['impersonate', 'users', undefined, 'jo', 'admin'],
        ['impersonate', 'groups', undefined, 'system:authenticated', 'admin'],
      ],
    ],
    [
      'a name beyond ASCII, which is sent in UTF-8',
      { User: Buffer.from('Jürgen').toString('latin1') },
      { username: 'Jürgen', groups: ['system:authenticated'] },
      [['impersonate', 'users', undefined, 'Jürgen', 'admin']],
    ],
  ])('is answered for %s, if its sender may', async (_what, headers, user, asks) => {
    const { asked, options } = named();
    const { call } = rig(options);
    expect((await call('GET', ORDERS_PATH, undefined, as(headers))).code).toBe(200);
    expect(asked).toEqual([...asks, ['list', 'orders.example.com', 'default', undefined, user]]);
    const who = await call('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, as(headers));
    expect(who.body.status.userInfo).toEqual(user);
  });

  test('over node:http, each header line is a group, also one with a comma', async () => {
    const { asked, options } = named();
    const { url } = await open(options);
    const headers = new Headers(as({ User: 'jo', Group: 'CN=a,OU=b' }));
    expect((await fetch(url + ORDERS_PATH, { headers })).status).toBe(200);
    expect(asked[1]).toEqual(['impersonate', 'groups', undefined, 'CN=a,OU=b', 'admin']);
  });

  test('over HTTP/2, too', async () => {
    const { asked, options } = named();
    const { server } = rig(options);
    const http2 = createServer(server.handler as never);
    await new Promise<void>((resolve) => void http2.listen(0, '127.0.0.1', resolve));
    const client = connect(`http://127.0.0.1:${(http2.address() as AddressInfo).port}`);
    const headers = { authorization: 'Bearer admin', 'impersonate-user': 'jo', 'impersonate-group': ['a', 'b'] };
    const answer = client.request({ ':path': ORDERS_PATH, ...headers });
    const status = await new Promise((resolve) => answer.on('response', (head) => resolve(head[':status'])));
    client.destroy();
    http2.close();
    expect(status).toBe(200);
    expect(asked.slice(0, 3).map(([, , , name]) => name)).toEqual(['jo', 'a', 'b']);
  });

  test.each<[Record<string, string>, number, string]>([
    [{ User: 'root' }, 403, 'users "root" is forbidden: this identity cannot impersonate it'],
    [{ User: 'jo', Group: 'root' }, 403, 'groups "root" is forbidden: this identity cannot impersonate it'],
    [{ User: 'nobody' }, 403, 'there is no user "nobody"'],
    [{ Group: 'dev' }, 400, 'requested to impersonate without impersonating a user: Impersonate-User is missing'],
    [{ Uid: '7' }, 400, 'requested to impersonate without impersonating a user: Impersonate-User is missing'],
    [{ User: '\xff' }, 400, 'the header impersonate-user is not UTF-8'],
    [{ User: 'jo', Group: 'g, '.repeat(256), 'Extra-k': 'v' }, 400, 'more than 256 groups and extra values to impersonate'],
  ])('%j is %i', async (headers, code, message) => {
    const { options } = named((verb, _resource, _namespace, name) => verb !== 'impersonate' || name !== 'root');
    const { call } = rig(options);
    for (const path of [ORDERS_PATH, '/apis', '/metrics']) {
      const refused = await call('GET', path, undefined, as(headers));
      expect([refused.code, refused.body.message]).toEqual([code, message]);
    }
  });

  test('has up to 256 groups and more', async () => {
    const { call } = rig(named().options);
    expect(
      (await call('GET', ORDERS_PATH, undefined, as({ User: 'jo', Group: `g${', g'.repeat(254)}`, 'Extra-k': 'v' }))).code,
    ).toBe(200);
  });

  test('has the rights of the user, not of its sender', async () => {
    const { options } = named((verb, resource, _namespace, _name, identity) =>
      verb === 'impersonate' ? identity === 'admin' : identity === 'admin' || resource === '/metrics',
    );
    const { call } = rig(options);
    const codes = async (headers: Record<string, string>): Promise<number[]> =>
      Promise.all([ORDERS_PATH, '/metrics'].map(async (path) => (await call('GET', path, undefined, headers)).code));
    expect(await codes({ authorization: 'Bearer admin' })).toEqual([200, 200]);
    expect(await codes(as({ User: 'jo' }))).toEqual([403, 200]);
    expect(await codes({ ...as({ User: 'admin' }), authorization: 'Bearer jo' })).toEqual([403, 403]);
    expect(await codes({ ...as({ User: 'admin' }), authorization: 'Bearer nobody' })).toEqual([401, 401]);
  });

  test('counts for the tenant of its sender', async () => {
    const { options } = named(undefined, { maxWritesPerSecondPerTenant: 1 });
    const { call } = rig(options);
    const codes = [];
    for (const User of ['a', 'b']) codes.push((await call('POST', ORDERS_PATH, { metadata: { name: User } }, as({ User }))).code);
    expect(codes).toEqual([201, 429]);
  });

  interface Rights {
    until: number;
    mayImpersonate: boolean;
  }
  type Change = (made: Awaited<ReturnType<typeof open>>, rights: Rights) => void;
  const isAda = (client: WatchClient): boolean => (client.impersonator as UserInfo).username === 'ada';
  test.each<[string, number, Change]>([
    ['goes on if nothing happens', 1, () => {}],
    ['ends when its sender expires', 0, (_made, rights) => void Object.assign(rights, { until: 0 })],
    ['ends when its sender may no longer', 0, (_made, rights) => void Object.assign(rights, { mayImpersonate: false })],
    ['ends when it is disconnected by its sender', 0, ({ server }) => void server.disconnect(isAda)],
    ['goes on when its user is not meant', 1, ({ server }) => void server.disconnect(({ identity }) => identity === 'ada')],
  ])('its watch %s', async (_what, watchers, change) => {
    const clock = new FakeClock();
    const rights = { until: Number.POSITIVE_INFINITY, mayImpersonate: true };
    const sender = Object.defineProperty({ username: 'ada' }, 'expiresAtMs', { get: () => rights.until });
    const { options } = named((verb) => verb !== 'impersonate' || rights.mayImpersonate, {
      ...{ reauthorizeMs: 30_000, clock, now: () => 1 },
      authenticate: () => sender,
    });
    const made = await open(options);
    const response = await fetch(made.url + WATCH, { headers: new Headers(as({ User: 'jo' })) });
    expect(response.status).toBe(200);
    response.text().catch(() => {});
    await expect.poll(() => made.server.stats.watchers).toBe(1);
    change(made, rights);
    // In steps: each question has ten seconds.
    for (let seconds = 0; seconds < 90; seconds += 5) {
      clock.advance(5_000);
      await macrotask();
    }
    await expect.poll(() => made.server.stats.watchers).toBe(watchers);
  });
});

describe('reviews of others', () => {
  const SUBJECTS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
  const LOCAL = '/apis/authorization.k8s.io/v1/namespaces/ns/localsubjectaccessreviews';
  const TOKENS = '/apis/authentication.k8s.io/v1/tokenreviews';
  const headers = { authorization: 'Bearer admin' };
  const get = { verb: 'get', resource: 'orders', group: 'example.com' };
  const byJo: Authorize<Identity> = (_verb, resource, namespace, _name, identity) =>
    identity === 'admin' || ((identity as UserInfo).username === 'jo' && namespace !== 'other' && resource !== '/metrics');

  test.each<[string, object, object]>([
    [SUBJECTS, { user: 'jo', resourceAttributes: get }, { allowed: true }],
    [
      SUBJECTS,
      { user: 'jo', resourceAttributes: { ...get, namespace: 'other', name: 'a' } },
      { allowed: false, reason: 'orders.example.com "a" is forbidden: this identity cannot get it in the namespace "other"' },
    ],
    [
      SUBJECTS,
      { user: 'jo', groups: ['g'], nonResourceAttributes: { verb: 'get', path: '/metrics' } },
      { allowed: false, reason: '/metrics is forbidden: this identity cannot get it' },
    ],
    [SUBJECTS, { user: 'nobody', resourceAttributes: get }, { allowed: false, reason: 'there is no user "nobody"' }],
    [LOCAL, { user: 'jo', resourceAttributes: { ...get, namespace: 'ns' } }, { allowed: true }],
  ])('%s %j', async (path, spec, status) => {
    const { options, asked } = named(byJo);
    const { call, server } = rig(options);
    await server.ready;
    const { code, body } = await call('POST', path, { spec }, headers);
    expect([code, body.status, body.spec]).toEqual([201, status, spec]);
    expect(asked[0]?.slice(0, 2)).toEqual(['create', `${path.split('/').at(-1)}.authorization.k8s.io`]);
    const [type, namespace] = [`${path.split('/').at(-1)}.authorization.k8s.io/v1`, path === LOCAL ? 'ns' : undefined];
    const resource = namespace === undefined ? server.resource(type) : server.resource(type).in(namespace);
    expect(await resource.create({ spec } as object)).toMatchObject({ status });
  });

  const exactly = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
  const nobody = 'spec.user: Invalid value: "": at least one of user or group must be specified';
  const SELF = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const invalid = (...causes: string[]): string =>
    `.authorization.k8s.io "" is invalid: ${causes.length > 1 ? `[${causes.join(', ')}]` : causes[0]}`;
  test.each<[string, object, number, string]>([
    [SUBJECTS, {}, 422, invalid(`spec: Invalid value: null: ${exactly}`, nobody)],
    [
      SUBJECTS,
      { metadata: { name: 'x' }, spec: { groups: ['g'], resourceAttributes: {}, nonResourceAttributes: { path: '/' } } },
      422,
      invalid(`spec: Invalid value: {"path":"/"}: ${exactly}`, 'metadata: Invalid value: {"name":"x"}: must be empty'),
    ],
    [
      SELF,
      { spec: { user: 'jo', resourceAttributes: {}, nonResourceAttributes: {} } },
      422,
      invalid(`spec: Invalid value: {}: ${exactly}`),
    ],
    [
      SELF,
      { metadata: { name: 'x' }, spec: { resourceAttributes: {} } },
      422,
      invalid('metadata: Invalid value: {"name":"x"}: must be empty'),
    ],
    [
      LOCAL,
      { metadata: { name: 'x', namespace: 'ns' }, spec: { user: 'jo', resourceAttributes: {} } },
      422,
      invalid(
        'metadata: Invalid value: {"name":"x","namespace":"ns"}: must be empty except for namespace',
        'spec.resourceAttributes.namespace: Invalid value: "": must match metadata.namespace',
      ),
    ],
    [
      LOCAL,
      { spec: { nonResourceAttributes: { path: '/' } } },
      422,
      invalid(nobody, 'spec.nonResourceAttributes: Invalid value: {"path":"/"}: disallowed on this kind of request'),
    ],
    [
      LOCAL,
      { metadata: { namespace: 'other' }, spec: { user: 'jo' } },
      400,
      'the namespace of the provided object does not match the namespace sent on the request',
    ],
    ['/apis/authorization.k8s.io/v1/localsubjectaccessreviews', {}, 404, 'the server could not find the requested resource'],
    ['/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {}, 400, 'no namespace on request'],
    ['/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', { spec: { namespace: '' } }, 400, 'no namespace on request'],
  ])('%s %j is %i', async (path, review, code, message) => {
    const { call } = rig({ resources });
    const answer = await call('POST', path, review);
    expect([answer.code, answer.body.message]).toEqual([code, message]);
    if (code === 422) expect(answer.body.details).toMatchObject({ group: 'authorization.k8s.io' });
    expect(answer.body.details?.name).toBeUndefined();
  });

  test.each<[unknown, object]>([
    [undefined, { username: 'system:anonymous', groups: ['system:unauthenticated'] }],
    ['jo', { username: 'jo', groups: ['system:authenticated'] }],
    [{ name: 'jo' }, { username: 'jo', groups: ['system:authenticated'] }],
    [
      { username: 'jo', name: 'no', uid: 'u', groups: ['g', 1], extra: 'x' },
      { username: 'jo', uid: 'u', groups: ['g'] },
    ],
    [
      { username: 1, uid: 2, extra: { a: ['b'], c: 'd', e: [1] } },
      { groups: ['system:authenticated'], extra: { a: ['b'] } },
    ],
  ])('an identity such as %j is shown as %j', async (identity, userInfo) => {
    const { call } = rig({ resources, ...(identity !== undefined && { authenticate: () => identity }) });
    const { body } = await call('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {});
    expect([body.status, body.metadata]).toEqual([{ userInfo }, { creationTimestamp: '2026-01-02T03:04:05Z' }]);
  });

  it('what is asked has the words of the review, in small letters, and nothing where it says nothing', async () => {
    const { options, asked } = named();
    const { call } = rig(options);
    const ask = async (attributes: object): Promise<unknown> => {
      await call('POST', SELF, { spec: attributes }, headers);
      return asked.at(-1)?.slice(0, 4);
    };
    expect(await ask({ resourceAttributes: {} })).toEqual(['', '', undefined, undefined]);
    expect(await ask({ nonResourceAttributes: {} })).toEqual(['', '', undefined, undefined]);
    const all = { verb: 'GET', resource: 'pods', group: 'x.io', subresource: 'log', namespace: 'ns', name: 'a' };
    expect(await ask({ resourceAttributes: all })).toEqual(['get', 'pods.x.io/log', 'ns', 'a']);
    expect(await ask({ nonResourceAttributes: { verb: 'POST', path: '/x' } })).toEqual(['post', '/x', undefined, undefined]);
  });

  it('a list of rules has each part of each resource, and says when it is not whole', async () => {
    const rules = async (kinds: readonly ResourceDefinition[]) => {
      const { call } = rig({ resources: kinds, authorize: (verb, resource) => resource.includes('reviews') || verb !== 'list' });
      return (await call('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', { spec: { namespace: 'a' } })).body
        .status;
    };
    const few = await rules([
      ORDERS as ResourceDefinition,
      ...BUILT_IN_KINDS.filter(({ plural }) => plural === 'selfsubjectrulesreviews'),
    ]);
    const [apiGroups, verbs] = [['example.com'], ['create', 'delete', 'deletecollection', 'get', 'patch', 'update', 'watch']];
    expect(few).toEqual({
      incomplete: false,
      nonResourceRules: [],
      resourceRules: [
        { verbs, apiGroups, resources: ['orders'] },
        { verbs: ['get', 'patch', 'update'], apiGroups, resources: ['orders/status'] },
        { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['selfsubjectrulesreviews'] },
      ],
    });
    const many = Array.from({ length: 260 }, (_, n) => ({ ...ORDERS, plural: `orders${n}`, kind: `Order${n}`, status: false }));
    const { incomplete, resourceRules } = await rules([...BUILT_IN_KINDS, ...(many as ResourceDefinition[])]);
    expect([incomplete, resourceRules.length < 260]).toEqual([true, true]);
  });

  it('what is asked of authorize has the whole user', async () => {
    const user = { uid: '7', groups: ['g'], extra: { k: ['v'] } };
    const { options, asked } = named();
    const { call } = rig(options);
    await call('POST', SUBJECTS, { spec: { user: 'jo', ...user, resourceAttributes: get } }, headers);
    expect(asked.at(-1)).toEqual(['get', 'orders.example.com', undefined, undefined, { username: 'jo', ...user }]);
  });

  it('without authorize, everybody may everything; without identityOf, nothing is said of anybody', async () => {
    const spec = { user: 'jo', resourceAttributes: get };
    const free = rig({ resources });
    expect((await free.call('POST', SUBJECTS, { spec })).body.status).toEqual({ allowed: true });
    const { call } = rig({ resources, authorize: () => true });
    expect((await call('POST', SUBJECTS, { spec })).body.status).toEqual({
      allowed: false,
      reason: 'this server does not know who others are: `identityOf` is not set',
    });
  });

  it('an error of a hook is reported, and no answer', async () => {
    const errors: unknown[] = [];
    const { options } = named(undefined, {
      identityOf: () => {
        throw new Error('directory down');
      },
      onError: (error) => errors.push(error),
    });
    const { call } = rig({ ...options });
    expect((await call('POST', SUBJECTS, { spec: { user: 'jo', resourceAttributes: get } }, headers)).code).toBe(503);
    expect((await call('GET', ORDERS_PATH, undefined, as({ User: 'jo' }))).code).toBe(503);
    expect(errors).toEqual([new Error('directory down'), new Error('directory down')]);
    const broken = named(undefined, {
      authenticate: () => 'admin',
      authenticateToken: () => Promise.reject(new Error('down')),
      onError: () => {},
    });
    expect((await rig(broken.options).call('POST', TOKENS, { spec: { token: 'x' } })).code).toBe(503);
  });

  it('of tokens say who has them', async () => {
    const identity = { username: 'jo', uid: '7', groups: ['g'], extra: { k: ['v'], bad: [1] } } as object as UserInfo;
    const { options } = named(undefined, {
      authenticateToken: (token) => (token === 'jo' ? identity : token === 'admin' && token),
    });
    const { call } = rig(options);
    const review = async (token?: string) => (await call('POST', TOKENS, { spec: { ...(token && { token }) } }, headers)).body;
    expect((await review('jo')).status).toEqual({ authenticated: true, user: { ...identity, extra: { k: ['v'] } } });
    expect((await review('no')).status).toEqual({ user: {}, error: 'invalid bearer token' });
    expect((await review()).message).toBe('token is required for TokenReview in authentication');
    const { call: ask } = rig({ resources });
    expect((await ask('POST', TOKENS, { spec: { token: 'x' } })).body.status).toEqual({
      user: {},
      error: 'this server knows no tokens: `authenticateToken` is not set',
    });
  });
});

describe('authenticateToken', () => {
  test.each([
    ['Bearer secret', 200],
    ['bearer  secret', 200],
    [undefined, 401],
    ['', 401],
    ['secret', 401],
    ['Basic secret', 401],
    ['Bearer', 401],
    ['Bearer other', 401],
    ['Bearer secret x', 401],
  ])('identifies clients without authenticate: %j is %i', async (authorization, code) => {
    const options = { resources, authenticateToken: (token: string) => token === 'secret' && 'ada' };
    const { call } = rig(options);
    const headers = authorization === undefined ? {} : { authorization };
    expect((await call('GET', ORDERS_PATH, undefined, headers)).code).toBe(code);
    const { url } = await open(options);
    expect((await fetch(url + ORDERS_PATH, { headers: new Headers(headers) })).status).toBe(code);
  });

  it('does not, with authenticate', async () => {
    const { call } = rig({ resources, authenticate: () => 'ada', authenticateToken: () => undefined });
    expect((await call('GET', ORDERS_PATH)).code).toBe(200);
  });
});
