// The built-in kinds through the server's door: what they become, in which forms they are read, and what is refused.
import { describe, expect, it } from 'vitest';
import { BUILT_IN_KINDS, type ResourceDefinition } from '../../src/apiserver/index.ts';
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
