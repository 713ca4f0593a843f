// The built-in kinds through the server's door: what they become, in which forms they are read, and what is refused.
import { describe, expect, it, test } from 'vitest';
import { BUILT_IN_KINDS, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { ORDERS, rig } from './apiserver-rig.ts';

const all = { resources: [...BUILT_IN_KINDS, ORDERS as ResourceDefinition] };
const SECRETS = '/api/v1/namespaces/default/secrets';
const EVENTS = '/api/v1/namespaces/default/events';
const NEW_EVENTS = '/apis/events.k8s.io/v1/namespaces/default/events';
const MERGE = { 'content-type': 'application/merge-patch+json' };
const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' };
const TABLE = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };

describe('secrets', () => {
  it('are Opaque unless they say otherwise, and what comes as text is kept as base64', async () => {
    const { call } = rig(all);
    const sent = { metadata: { name: 'a' }, data: { x: 'AA==', y: 'AQ==' }, stringData: { y: 'é', z: '' }, other: 1 };
    const created = await call('POST', SECRETS, sent);
    expect(created.code).toBe(201);
    expect(created.body.data).toEqual({ x: 'AA==', y: 'w6k=', z: '' });
    expect(created.body.type).toBe('Opaque');
    expect(Object.keys(created.body)).toEqual(['apiVersion', 'kind', 'metadata', 'data', 'type']);
    const patched = await call('PATCH', `${SECRETS}/a`, { stringData: { w: 'w' }, data: { x: null } }, MERGE);
    expect(patched.body.data).toEqual({ y: 'w6k=', z: '', w: 'dw==' });
    expect((await call('PATCH', `${SECRETS}/a`, { type: 'other' }, MERGE)).code).toBe(422);
    expect((await call('GET', `${SECRETS}?fieldSelector=type=Opaque`)).body.items).toHaveLength(1);
    expect((await call('GET', `${SECRETS}?fieldSelector=type!=Opaque`)).body.items).toHaveLength(0);
    expect((await call('GET', SECRETS, undefined, TABLE)).body.rows[0].cells).toEqual(['a', 'Opaque', 3, '0s']);
  });
});

describe('events', () => {
  const old = {
    metadata: { name: 'e' },
    involvedObject: { kind: 'Order', name: 'o', namespace: 'default' },
    reason: 'Did',
    message: 'it',
    count: 2,
  };

  it('are one in both APIs', async () => {
    const { call } = rig(all);
    expect((await call('POST', EVENTS, old)).code).toBe(201);
    const shown = (await call('GET', `${NEW_EVENTS}/e`)).body;
    expect(shown).toMatchObject({ apiVersion: 'events.k8s.io/v1', regarding: { name: 'o' }, note: 'it', deprecatedCount: 2 });
    expect(shown).not.toHaveProperty('message');
    const patched = await call('PATCH', `${NEW_EVENTS}/e`, { metadata: { labels: { a: 'b' } } }, STRATEGIC);
    expect([patched.code, patched.body.apiVersion]).toEqual([200, 'events.k8s.io/v1']);
    expect((await call('GET', `${EVENTS}/e`)).body).toMatchObject({
      apiVersion: 'v1',
      message: 'it',
      metadata: { labels: { a: 'b' } },
    });
    for (const path of [
      `${EVENTS}?fieldSelector=involvedObject.name=o`,
      `${NEW_EVENTS}?fieldSelector=regarding.name=o,reason=Did`,
    ]) {
      expect((await call('GET', path)).body.items, path).toHaveLength(1);
    }
    expect((await call('GET', `${EVENTS}?fieldSelector=regarding.name=o`)).code).toBe(400);
    for (const path of [EVENTS, NEW_EVENTS]) {
      const table = (await call('GET', path, undefined, TABLE)).body;
      expect(table.columnDefinitions[0].name).toBe('Last Seen');
      expect(table.rows[0].cells).toEqual(['<unknown>', '', 'Did', 'order/o', '', '', 'it', '<unknown>', 2, 'e']);
    }
  });
});

test('an event of v1 may have the name of what it is about, of whatever kind', async () => {
  const { call } = rig(all);
  const event = (name: string): object => ({ metadata: { name }, involvedObject: { name: 'o', namespace: 'default' } });
  for (const name of ['system:node.17', 'A_b', 'a'.repeat(300)]) {
    expect((await call('POST', EVENTS, event(name))).code).toBe(201);
    expect((await call('GET', `${EVENTS}/${name}`)).body.metadata.name).toBe(name);
  }
  const strict = { reportingController: 'x.io/c', reportingInstance: 'i', action: 'Do', reason: 'Did', type: 'Normal' };
  const regarding = { name: 'o', namespace: 'default' };
  const created = { ...strict, metadata: { name: 'A_b' }, eventTime: '2026-01-02T03:04:05.000006Z', regarding };
  for (const [path, body] of [
    [EVENTS, event('a/b')],
    [EVENTS, event('..')],
    [EVENTS, event('a\u0000')],
    [EVENTS, event('a'.repeat(513))],
    [NEW_EVENTS, created],
  ] as const) {
    const { code, body: status } = await call('POST', path, body);
    expect([code, status.details.causes[0].field]).toEqual([422, 'metadata.name']);
  }
});

describe('events that are applied', () => {
  const apply = (path: string, body: object, by: string) =>
    [`${path}/e?fieldManager=${by}`, body, { 'content-type': 'application/apply-patch+yaml' }] as const;

  it('have owners in the API that is written: those of the other one are forgotten, as upstream', async () => {
    const { call } = rig(all);
    const involvedObject = { kind: 'Order', name: 'o', namespace: 'default' };
    const one = { apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, involvedObject, message: 'one' };
    const two = { apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name: 'e' }, note: 'two' };
    expect((await call('PATCH', ...apply(EVENTS, one, 'old'))).code).toBe(201);
    const refused = await call('PATCH', ...apply(NEW_EVENTS, two, 'new'));
    expect([refused.code, refused.body.details?.causes?.map(({ field }: { field: string }) => field)]).toEqual([
      422,
      ['message'],
    ]);
    const managers = ({ body }: typeof refused): unknown =>
      body.metadata.managedFields.map(({ manager, apiVersion }: Record<string, string>) => [manager, apiVersion]);
    const own = await call('PATCH', ...apply(NEW_EVENTS, { ...two, note: 'one' }, 'new'));
    expect([own.code, own.body.note, managers(own)]).toEqual([200, 'one', [['new', 'events.k8s.io/v1']]]);
    const back = await call('PATCH', ...apply(EVENTS, { ...one, message: 'three' }, 'old'));
    expect([back.code, back.body.message, managers(back)]).toEqual([200, 'three', [['old', 'v1']]]);
  });
});

describe('reviews', () => {
  const ask = (more: object): object => ({
    spec: { resourceAttributes: { verb: 'get', resource: 'orders', group: 'example.com', ...more } },
  });

  it('are answered by authorize and authenticate, and not stored', async () => {
    const { call, server, storage } = rig({
      ...all,
      authenticate: () => 'jo',
      authorize: (verb, resource) => verb === 'create' || resource.startsWith('self') || resource === 'orders.example.com',
    });
    await server.ready;
    const version = await storage.currentVersion();
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const mine = await call('POST', path, ask({}));
    expect([mine.code, mine.body.status]).toEqual([201, { allowed: true }]);
    expect((await call('POST', path, ask({ resource: 'secrets', group: '' }))).body.status.allowed).toBe(false);
    expect((await call('POST', path, {})).code).toBe(422);
    expect((await call('GET', path)).code).toBe(405);
    const rules = await call('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', { spec: { namespace: 'default' } });
    expect(rules.body.status.resourceRules).toContainEqual({ verbs: ['create'], apiGroups: [''], resources: ['secrets'] });
    const who = await call('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {});
    expect(who.body.status.userInfo).toEqual({ username: 'jo', groups: ['system:authenticated'] });
    expect(await storage.currentVersion()).toBe(version);
  });
});

describe('protobuf answers', () => {
  it('have what was sent', async () => {
    const { call } = rig(all);
    await call('POST', SECRETS, { metadata: { name: 'a' }, data: { x: 'AA==' } });
    const got = await call('GET', `${SECRETS}/a`, undefined, { accept: 'application/vnd.kubernetes.protobuf, application/json' });
    expect(got.headers.get('content-type')).toBe('application/vnd.kubernetes.protobuf');
    expect(got.text.slice(0, 3)).toBe('k8s');
  });
});

describe('what is refused and what is said', () => {
  const MAPS = '/api/v1/namespaces/default/configmaps';

  it('secrets of the well-known types have what these need', async () => {
    const { call } = rig(all);
    const causes = async (secret: object): Promise<unknown> =>
      (await call('POST', SECRETS, { metadata: { name: 'bad' }, ...secret })).body.details?.causes?.map(
        (each: { field: string }) => each.field,
      );
    const of = (type: string): string => `kubernetes.io/${type}`;
    expect(await causes({ type: of('tls'), data: { 'tls.key': '' } })).toEqual(['data[tls.crt]']);
    expect(await causes({ type: of('ssh-auth'), data: { 'ssh-privatekey': '' } })).toEqual(['data[ssh-privatekey]']);
    expect(await causes({ type: of('basic-auth') })).toEqual(['data[username]', 'data[password]']);
    expect(await causes({ type: of('service-account-token') })).toEqual([
      'metadata.annotations[kubernetes.io/service-account.name]',
    ]);
    for (const [type, key] of [
      ['dockercfg', '.dockercfg'],
      ['dockerconfigjson', '.dockerconfigjson'],
    ] as const) {
      expect(await causes({ type: of(type) })).toEqual([`data[${key}]`]);
      for (const content of ['no', '[]', '1', '\ufeff{}'])
        expect(await causes({ type: of(type), stringData: { [key]: content } })).toEqual([`data[${key}]`]);
      expect((await call('POST', SECRETS, { metadata: { name: type }, type: of(type), stringData: { [key]: '{}' } })).code).toBe(
        201,
      );
    }
    expect(await causes({ data: { a: Buffer.alloc(2 ** 20 + 1).toString('base64') } })).toEqual(['data']);
    expect(await causes({ data: { 'a b': '' }, metadata: { name: 'x', finalizers: ['mine'] } })).toEqual([
      'data[a b]',
      'metadata.finalizers[0]',
    ]);
  });

  const block = (type: string): string => `-----BEGIN ${type}-----\r\nMIIB\r\n-----END ${type}----- \r\n`;
  const [CERTIFICATE, KEY] = [block('CERTIFICATE'), block('EC PRIVATE KEY')];
  it.each([
    [CERTIFICATE, KEY, null],
    [`text\n${block('OTHER')}${CERTIFICATE}`, CERTIFICATE + block('PRIVATE KEY'), null],
    ['', '', 'tls: failed to find any PEM data in certificate input'],
    ['-----BEGIN A-----\n-----END B-----\n-----END A-----', KEY, 'tls: failed to find any PEM data in certificate input'],
    [CERTIFICATE, 'x', 'tls: failed to find any PEM data in key input'],
    [CERTIFICATE, CERTIFICATE, 'tls: found a certificate rather than a key in the PEM for the private key'],
    [
      KEY,
      KEY,
      'tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched',
    ],
    [block('A') + block('B'), KEY, 'tls: no certificate among the PEM blocks of the certificate input'],
    [CERTIFICATE, block('PUBLIC KEY'), 'tls: no key among the PEM blocks of the key input'],
  ])('a pair of certificate and key that are not in PEM is told, and stored: %j, %j', async (certificate, key, said) => {
    const { call } = rig(all);
    const sent = {
      metadata: { name: 'pair' },
      type: 'kubernetes.io/tls',
      stringData: { 'tls.crt': certificate, 'tls.key': key },
    };
    for (const [method, path, code] of [
      ['POST', SECRETS, 201],
      ['PUT', `${SECRETS}/pair`, 200],
    ] as const) {
      const answer = await call(method, path, { ...sent, metadata: { ...sent.metadata, labels: { method } } });
      expect([answer.code, answer.headers.get('warning')]).toEqual([code, said && `299 - "${said}"`]);
    }
  });

  it('the items of lists of built-in kinds do not say what they are; single objects and events do', async () => {
    const { call } = rig(all);
    for (const name of ['a', 'b']) await call('POST', MAPS, { metadata: { name }, data: { name } });
    await call('POST', '/apis/example.com/v1/namespaces/default/orders', { metadata: { name: 'o' } });
    const { items, kind } = (await call('GET', MAPS)).body;
    expect(kind).toBe('ConfigMapList');
    expect(items.map((each: object) => Object.keys(each))).toEqual([
      ['metadata', 'data'],
      ['metadata', 'data'],
    ]);
    expect((await call('GET', '/apis/example.com/v1/orders')).body.items[0].kind).toBe('Order');
    expect((await call('GET', `${MAPS}/a`)).body.kind).toBe('ConfigMap');
  });

  it('a timeout, a long prefix of a name, an object that is being deleted', async () => {
    const { call } = rig(all);
    for (const timeout of ['x', '1', '-', 's', '1x', '1s1', '2562048h', '-9999999h']) {
      const { code, body } = await call('GET', `${MAPS}?timeout=${timeout}`);
      expect([code, body.message]).toEqual([
        400,
        `invalid timeout specified in the request URL - time: invalid duration "${timeout}"`,
      ]);
    }
    for (const timeout of ['', '0', '-1s', '1h1m1.5s', '.5m', '2562047h'])
      expect((await call('GET', `${MAPS}?timeout=${timeout}`)).code).toBe(200);
    const prefix = await call('POST', MAPS, { metadata: { generateName: 'x'.repeat(300) } });
    expect([prefix.code, prefix.body.details.causes[0].field]).toEqual([422, 'metadata.generateName']);
    await call('POST', MAPS, { metadata: { name: 'a', finalizers: ['x.io/y'] } });
    expect((await call('POST', MAPS, { metadata: { name: 'a' } })).body.message).toBe('configmaps "a" already exists');
    await call('DELETE', `${MAPS}/a`);
    expect((await call('POST', MAPS, { metadata: { name: 'a' } })).body.message).toBe(
      'object is being deleted: configmaps "a" already exists',
    );
  });

  it('protobuf of a kind that has none says what to set', async () => {
    const { call } = rig(all);
    const { code, body } = await call('POST', '/apis/example.com/v1/namespaces/default/orders', 'k8s', {
      'content-type': 'application/vnd.kubernetes.protobuf',
    });
    expect([code, body.message]).toEqual([415, expect.stringContaining('set ContentType and AcceptContentTypes')]);
  });

  it('lists of a kind whose schema says how are merged; without that, no strategic patch', async () => {
    const schema = {
      type: 'object',
      properties: {
        parts: {
          ...{ type: 'array', 'x-kubernetes-patch-strategy': 'merge,retainKeys', 'x-kubernetes-patch-merge-key': 'name' },
          items: { type: 'object', properties: { tags: { type: 'array', 'x-kubernetes-patch-strategy': 'merge' } } },
        },
      },
    };
    const kind = { group: 'apps', version: 'v1', plural: 'things', kind: 'Thing' };
    const { call } = rig({ resources: [{ ...kind, schema }, ORDERS as ResourceDefinition] });
    const path = '/apis/apps/v1/namespaces/default/things';
    await call('POST', path, { metadata: { name: 'a' }, parts: [{ name: 'x', v: 1, tags: ['p'] }] });
    const patched = await call('PATCH', `${path}/a`, { parts: [{ name: 'x', tags: ['q'] }, { name: 'y' }] }, STRATEGIC);
    expect(patched.body.parts).toEqual([{ name: 'x', v: 1, tags: ['q', 'p'] }, { name: 'y' }]);
    await call('POST', '/apis/example.com/v1/namespaces/default/orders', { metadata: { name: 'o' } });
    expect((await call('PATCH', '/apis/example.com/v1/namespaces/default/orders/o', {}, STRATEGIC)).code).toBe(415);
  });
});

describe('namespaces', () => {
  it('stay until the last finalizer of their spec has gone, whoever has put it there', async () => {
    const { call } = rig(all);
    const made = await call('POST', '/api/v1/namespaces', { metadata: { name: 'n' }, spec: { finalizers: ['x.io/mine'] } });
    expect(made.body).toMatchObject({ spec: { finalizers: ['x.io/mine', 'kubernetes'] }, status: { phase: 'Active' } });
    const secret = '/api/v1/namespaces/n/secrets';
    await call('POST', secret, { metadata: { name: 's' } });
    const deleted = await call('DELETE', '/api/v1/namespaces/n');
    expect(deleted.body).toMatchObject({ spec: { finalizers: ['x.io/mine'] }, status: { phase: 'Terminating' } });
    expect((await call('GET', secret)).body.items).toEqual([]);
    expect((await call('PUT', '/api/v1/namespaces/n/finalize', { metadata: { name: 'n' }, spec: {} })).code).toBe(200);
    expect((await call('GET', '/api/v1/namespaces/n')).code).toBe(404);
  });
});

describe('the time to live of events', () => {
  it('begins anew with each write, and there is none for other kinds', async () => {
    const clock = new FakeClock();
    const storage = new MemoryStorage({ clock });
    const { call } = rig({ ...all, storage, clock, eventTtlMs: 10_000 });
    await call('POST', EVENTS, { metadata: { name: 'e' }, involvedObject: { namespace: 'default' } });
    await call('POST', SECRETS, { metadata: { name: 's' } });
    clock.advance(9_000);
    await call('PATCH', `${EVENTS}/e`, { message: 'again' }, MERGE);
    clock.advance(9_000);
    expect((await call('GET', `${EVENTS}/e`)).code).toBe(200);
    clock.advance(2_000);
    expect((await call('GET', `${EVENTS}/e`)).code).toBe(404);
    expect((await call('GET', `${SECRETS}/s`)).code).toBe(200);
  });
});
