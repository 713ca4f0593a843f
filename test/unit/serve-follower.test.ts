// What follows a collection for the page of `watchmux serve`, against an API server without a socket.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Access, type PageResource } from '../../src/pages/serve/api.ts';
import { RowFollower, type Scope } from '../../src/pages/serve/follower.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';

const ORDERS: PageResource = {
  ...{ id: 'orders.example.com/v1', name: 'orders.example.com', group: 'example.com', version: 'v1', plural: 'orders' },
  ...{ kind: 'Order', namespaced: true },
};
const ALL: Scope = { resource: ORDERS, namespace: '', labelSelector: '', fieldSelector: '', version: '' };
const URL_OF_SERVER = 'http://127.0.0.1';

function follower({ token, maxObjects }: { token?: string; maxObjects?: number } = {}) {
  const made = rig({
    ...(token !== undefined && {
      authenticate: (request: unknown) => (request as Request).headers.get('authorization') === `Bearer ${token}` && 'ada',
    }),
  });
  vi.stubGlobal('location', { origin: URL_OF_SERVER });
  vi.stubGlobal('fetch', (url: URL | string, init: RequestInit) => {
    return made.server.fetch(new Request(new URL(url, URL_OF_SERVER), init));
  });
  const access = new Access();
  const told: string[] = [];
  const events: ConstructorParameters<typeof RowFollower>[1] = {
    onChange: () => {},
    onState: ({ phase, connected }) => void told.push(`${phase} ${connected}`),
    onFailure: (error) => void told.push(String(error)),
    onNoPast: (error) => void told.push(String(error)),
    onDenied: () => void told.push('denied'),
    onTooMany: (limit) => void told.push(`more than ${limit}`),
  };
  const follower = new RowFollower(access, events, maxObjects);
  started.push(follower);
  const names = (): string[] => follower.rows.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort();
  return { ...made, access, follower, told, names };
}

const started: RowFollower[] = [];
beforeEach(() => void started.splice(0));
afterEach(() => {
  for (const each of started) each.stop();
  vi.unstubAllGlobals();
});

test('counts as changes what comes after the state; keeps of each object what a row needs', async () => {
  const { follower: followed, call, names, told } = follower();
  const metadata = { name: 'a', labels: { app: 'web' }, annotations: { long: 'x' } };
  await call('POST', ORDERS_PATH, { metadata });
  followed.follow(ALL);
  await expect.poll(names).toEqual(['default/a']);
  expect(followed.definitions?.map(({ name, wide }) => [name, wide])).toEqual([
    ['Name', false],
    ['Age', false],
  ]);
  expect([followed.received, followed.takeChanged().size, followed.hasSynced]).toEqual([0, 0, true]);
  await call('POST', ORDERS_PATH, { metadata: { name: 'b' } });
  await expect.poll(names).toEqual(['default/a', 'default/b']);
  await expect.poll(() => followed.received).toBe(1);
  expect([...followed.takeChanged()]).toEqual(['default/b']);
  expect([...followed.takeChanged()]).toEqual([]);
  expect(followed.get('default/a')?.metadata).not.toHaveProperty('annotations');
  expect(told.at(-1)).toBe('watching true');
});

test('one collection at a time: nothing of the one before is told, and its watch is closed', async () => {
  const { follower: followed, call, names, server } = follower();
  for (const [name, app] of [
    ['a', 'web'],
    ['b', 'api'],
  ]) {
    await call('POST', ORDERS_PATH, { metadata: { name, labels: { app } } });
  }
  followed.follow(ALL);
  await expect.poll(names).toEqual(['default/a', 'default/b']);
  followed.follow({ ...ALL, namespace: 'default', labelSelector: 'app=api' });
  expect(names()).toEqual([]);
  await expect.poll(names).toEqual(['default/b']);
  await expect.poll(() => server.stats.watchers).toBe(1);
  followed.stop();
  await expect.poll(() => server.stats.watchers).toBe(0);
  expect([followed.scope, followed.size, followed.resourceVersion]).toEqual([undefined, 0, '']);
});

test('a past version is read once, exactly; one that there is none of is told', async () => {
  const { follower: followed, call, names, told, server } = follower();
  await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
  followed.follow(ALL);
  await expect.poll(names).toEqual(['default/a']);
  const version = followed.resourceVersion;
  await call('POST', ORDERS_PATH, { metadata: { name: 'b' } });
  await call('DELETE', `${ORDERS_PATH}/a`);
  await expect.poll(names).toEqual(['default/b']);
  followed.follow({ ...ALL, version });
  expect([followed.hasSynced, followed.size]).toEqual([false, 0]);
  await expect.poll(names).toEqual(['default/a']);
  expect([followed.hasSynced, followed.size, followed.resourceVersion, followed.get('default/a')?.cells?.[0]]).toEqual([
    ...[true, 1, version, 'a'],
  ]);
  await call('DELETE', `${ORDERS_PATH}/b`);
  await expect.poll(() => server.stats.watchers).toBe(0);
  expect(names()).toEqual(['default/a']);
  followed.follow({ ...ALL, version: '999999' });
  // Another collection meanwhile: nothing of this is told.
  followed.follow({ ...ALL, version: '999998' });
  await expect.poll(() => told.filter((each) => each.includes('REFUSED') || each.includes('Error'))).toHaveLength(1);
});

test('a state that is read again changes only the rows of what has changed; what has no name has no row', async () => {
  vi.stubGlobal('location', { origin: URL_OF_SERVER });
  const object = (name: string, resourceVersion: string) => ({ metadata: { name, uid: `of ${name}`, resourceVersion } });
  const line = (type: string, of: object): string => `${JSON.stringify({ type, object: of })}\n`;
  const state = (version: string, ...objects: readonly object[]): string => {
    const annotations = { 'k8s.io/initial-events-end': 'true' };
    const end = line('BOOKMARK', { kind: 'Order', metadata: { resourceVersion: version, annotations } });
    return objects.map((each) => line('ADDED', each)).join('') + end;
  };
  const gone = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    code: 410,
    reason: 'Expired',
    message: 'old',
  };
  const answers = [
    state('5', object('a', '1'), object('b', '2'), object('d', '3')) + line('ERROR', gone),
    state('9', object('a', '1'), object('b', '8'), object('c', '9'), { metadata: { uid: 'x' } }),
  ];
  const access = new Access();
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  vi.stubGlobal('fetch', async () => {
    if (answers.length === 1) await released;
    return new Response(answers.shift() ?? new ReadableStream(), { headers: { 'content-type': 'application/json' } });
  });
  const followed = new RowFollower(access, {
    ...{
      onChange: () => {},
      onState: () => {},
      onFailure: () => {},
      onNoPast: () => {},
      onDenied: () => {},
      onTooMany: () => {},
    },
  });
  started.push(followed);
  followed.follow(ALL);
  await expect.poll(() => followed.resourceVersion).toBe('5');
  const [a, b] = ['a', 'b'].map((name) => followed.get(name));
  expect([followed.size, followed.received]).toEqual([3, 0]);
  release();
  await expect.poll(() => followed.resourceVersion).toBe('9');
  expect([followed.get('a') === a, followed.get('b') === b, followed.size]).toEqual([true, false, 3]);
  expect([[...followed.takeChanged()].sort(), followed.received]).toEqual([['b', 'c', 'd'], 3]);
});

test('a token that is missing or wrong ends it; what is no token is not sent', async () => {
  const { follower: followed, told, access, names, call } = follower({ token: 'secret' });
  followed.follow(ALL);
  await expect.poll(() => told).toContain('denied');
  expect(followed.scope).toBeUndefined();
  await expect(access.text('/stats')).rejects.toThrow('the server requires a token');
  expect([access.use('two words'), access.use('line\nbreak'), access.use(''), access.hasToken]).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect([access.use('secret'), access.hasToken]).toEqual([true, true]);
  expect(JSON.parse(await access.text('/stats'))).toMatchObject({ requests: { 401: expect.any(Number) } });
  await expect(access.text('/nothing')).rejects.toThrow('the server could not find the requested resource');
  await call('POST', ORDERS_PATH, { metadata: { name: 'a' } }, { authorization: 'Bearer secret' });
  followed.follow(ALL);
  await expect.poll(names).toEqual(['default/a']);
  expect(JSON.stringify(access)).not.toContain('secret');
});

test('a collection that outgrows the page, while it is followed or at once, is told, and no longer followed', async () => {
  const { follower: followed, call, names, told, server } = follower({ maxObjects: 2 });
  for (const name of ['a', 'b']) await call('POST', ORDERS_PATH, { metadata: { name } });
  followed.follow(ALL);
  await expect.poll(names).toEqual(['default/a', 'default/b']);
  await call('DELETE', `${ORDERS_PATH}/b`);
  await call('POST', ORDERS_PATH, { metadata: { name: 'c' } }); // there is room again
  await expect.poll(names).toEqual(['default/a', 'default/c']);
  await call('POST', ORDERS_PATH, { metadata: { name: 'd' } });
  await expect.poll(() => told.at(-1)).toBe('more than 2');
  await expect.poll(() => server.stats.watchers).toBe(0);
  told.splice(0);
  followed.follow(ALL);
  await expect.poll(() => told.at(-1)).toBe('more than 2');
  expect(names()).toEqual([]);
});
