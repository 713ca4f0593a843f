// Users whom somebody else names: by Impersonate-* headers, in reviews of what they may do, and by their tokens.
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

  test.each<[Record<string, string>, number, string]>([
    [{ User: 'root' }, 403, 'users "root" is forbidden: this identity cannot impersonate it'],
    [{ User: 'jo', Group: 'root' }, 403, 'groups "root" is forbidden: this identity cannot impersonate it'],
    [{ User: 'nobody' }, 403, 'there is no user "nobody"'],
    [{ Group: 'dev' }, 400, 'requested to impersonate without impersonating a user: Impersonate-User is missing'],
    [{ Uid: '7' }, 400, 'requested to impersonate without impersonating a user: Impersonate-User is missing'],
    [{ User: '\xff' }, 400, 'the header impersonate-user is not UTF-8'],
    [{ User: 'jo', Group: 'g, '.repeat(257) }, 400, 'more than 256 groups and extra values to impersonate'],
  ])('%j is %i', async (headers, code, message) => {
    const { options } = named((verb, _resource, _namespace, name) => verb !== 'impersonate' || name !== 'root');
    const { call } = rig(options);
    for (const path of [ORDERS_PATH, '/apis', '/metrics']) {
      const refused = await call('GET', path, undefined, as(headers));
      expect([refused.code, refused.body.message]).toEqual([code, message]);
    }
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
