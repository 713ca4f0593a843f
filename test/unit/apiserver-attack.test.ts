// What clients did to a server that its other tests had not thought of. Each of these cost a server its time, memory or end.
import { connect, type Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import type { ApiServerOptions } from '../../src/apiserver/index.ts';
import { closers } from '../closing.ts';
import { eventually } from '../eventually.ts';
import { listening } from '../listening.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';

const closing = closers();

async function open(options: Partial<ApiServerOptions> = {}): Promise<ReturnType<typeof rig> & { port: number }> {
  const made = rig(options);
  const { url, close } = await listening(made.server);
  closing.push(close);
  return { ...made, port: Number(new URL(url).port) };
}

/** Sends a text over a connection, and reads what comes back. */
async function sent(port: number, text: string): Promise<{ socket: Socket; said: () => string }> {
  const socket = connect(port, '127.0.0.1');
  closing.push(() => socket.destroy());
  let said = '';
  socket.on('data', (bytes) => {
    said += bytes;
  });
  socket.on('error', () => {});
  await new Promise<void>((resolve) => socket.write(text, () => resolve()));
  return { socket, said: () => said };
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
const CONFIG_MAPS_PATH = '/api/v1/namespaces/default/configmaps';

describe('requests behind others on their connection', () => {
  test.each([`${ORDERS_PATH}?w%61tch=1`, '/apis/example.com/v1/w%61tch/orders', `${ORDERS_PATH}?a=b&%77%61%74%63%68=true`])(
    'a watch in hexadecimal shares its connection with none: %s',
    async (path) => {
      const { server, port } = await open();
      const { socket, said } = await sent(port, get(path) + get('/version') + get(path));
      await new Promise<void>((resolve) => void socket.once('close', () => resolve()));
      expect(said()).not.toContain('gitVersion');
      await server.shutdown();
      expect(server.metrics).toContain('watchmux_apiserver_watchers 0');
    },
  );

  test('a long list that waits there ends with the connection', async () => {
    let wait: (() => void) | undefined;
    const first = new Promise<object>((resolve) => {
      wait = () => resolve({});
    });
    const { server, port, call } = await open({
      authenticate: (request) => ((request as { url?: string }).url === `${ORDERS_PATH}/slow` ? first : {}),
    });
    for (const name of ['a', 'b', 'c']) {
      await call('POST', ORDERS_PATH, { metadata: { name }, spec: { item: 'x'.repeat(200_000) } });
    }
    const { socket } = await sent(port, get(`${ORDERS_PATH}/slow`) + get(ORDERS_PATH));
    await eventually(() => expect(server.metrics).toContain('by_verb_total{verb="list"} 1'));
    socket.destroy();
    await server.shutdown();
    wait?.();
  });
});

describe('who asks', () => {
  test.each(['User', 'Group', 'Uid', 'Extra-scopes'])(
    'is nobody else: Impersonate-%s is refused, and does nothing with the rights of its sender',
    async (name) => {
      const authorize = vi.fn(() => true);
      const { call } = await open({ authenticate: () => 'admin', authorize });
      await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
      authorize.mockClear();
      const headers = { [`impersonate-${name}`]: 'ann' };
      for (const [method, path] of [
        ['GET', ORDERS_PATH],
        ['DELETE', `${ORDERS_PATH}/a`],
        ['GET', '/metrics'],
        ['GET', '/apis'],
      ] as const) {
        const { code, body } = await call(method, path, undefined, headers);
        expect([code, body.message]).toEqual([
          403,
          'this server impersonates nobody, so it refuses requests with Impersonate-* headers',
        ]);
      }
      expect(authorize).not.toHaveBeenCalled();
      expect((await call('GET', `${ORDERS_PATH}/a`)).code).toBe(200);
    },
  );
});

describe('patches', () => {
  const JSON_PATCH = { 'content-type': 'application/json-patch+json' };
  const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' };

  test('copies within copies are refused before they are too deep for the stack', async () => {
    const errors: unknown[] = [];
    const { call } = rig({ onError: (error) => errors.push(error) });
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const patch: object[] = [{ op: 'add', path: '/a', value: {} }];
    for (let depth = 1; depth < 100_000; depth *= 2) patch.push({ op: 'copy', from: '/a', path: `/a${'/x'.repeat(depth)}` });
    expect(await call('PATCH', `${ORDERS_PATH}/a`, patch, JSON_PATCH)).toMatchObject({ code: 400 });
    expect(errors).toEqual([]);
  });

  test('ten thousand changes at the front of a long array are refused, and block nobody', async () => {
    const { call } = rig();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' }, list: Array.from({ length: 500_000 }, () => 0) });
    const add = Array.from({ length: 10_000 }, () => ({ op: 'add', path: '/list/0', value: 0 }));
    const refused = await call('PATCH', `${ORDERS_PATH}/a`, add, JSON_PATCH);
    expect(refused).toMatchObject({ code: 422, body: { message: expect.stringContaining('moves more than') } });
    expect((await call('PATCH', `${ORDERS_PATH}/a`, add.slice(0, 100), JSON_PATCH)).code).toBe(200);
  });

  test('long lists with keys, and long $retainKeys, take no time of their square', async () => {
    const { call } = rig();
    await call('POST', CONFIG_MAPS_PATH, { metadata: { name: 'a' } });
    const ownerReferences = Array.from({ length: 20_000 }, (_, at) => ({ apiVersion: 'v1', kind: 'A', name: 'a', uid: `${at}` }));
    expect((await call('PATCH', `${CONFIG_MAPS_PATH}/a`, { metadata: { ownerReferences } }, STRATEGIC)).code).toBe(200);
    const $retainKeys = Array.from({ length: 60_000 }, (_, at) => `k${at}`);
    const data = { ...Object.fromEntries($retainKeys.map((key) => [key, ''])), $retainKeys };
    expect((await call('PATCH', `${CONFIG_MAPS_PATH}/a`, { data }, STRATEGIC)).code).toBe(200);
  });
});

describe('what is answered', () => {
  test('of an object that is wrong all over, not every mistake is told', async () => {
    const { call } = rig();
    const finalizers = Array.from({ length: 50_000 }, () => '?');
    const refused = await call('POST', ORDERS_PATH, { metadata: { name: 'a', finalizers } });
    expect(refused.code).toBe(422);
    expect(refused.body.details.causes).toHaveLength(100);
    expect(refused.body.message).toMatch(/, and 49900 more\]$/);
    expect(refused.text.length).toBeLessThan(100_000);
  });
});

describe('names of the making of the server', () => {
  test.each([{}, { name: '' }, { name: null }])('are tried again if they are taken, with %j', async (more) => {
    let draws = 0;
    // Each name has five characters: the second is that of the first.
    const { call } = rig({ random: () => (draws++ < 10 ? 0 : 0.5) });
    const create = (): ReturnType<typeof call> => call('POST', ORDERS_PATH, { metadata: { ...more, generateName: 'a-' } });
    expect((await create()).body.metadata.name).toBe('a-bbbbb');
    expect((await create()).code).toBe(201);
  });
});

describe('what a server says beside its answers', () => {
  test('nothing: many requests and watches at once are no leak that node would warn of', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    closing.push(() => warned.mockRestore());
    const { server, call } = rig();
    const watches = await Promise.all(Array.from({ length: 20 }, () => server.resource('orders.example.com/v1').watch()));
    await Promise.all(Array.from({ length: 20 }, () => call('GET', ORDERS_PATH)));
    await Promise.all(watches.map((watch) => watch.return()));
    await server.shutdown();
    expect(warned.mock.calls).toEqual([]);
  });

  test('that a document has not changed, without a length that would be that of the document', async () => {
    const { port, call } = await open();
    const etag = (await call('GET', '/openapi/v2')).headers.get('etag');
    const text = get('/openapi/v2').replace('Host', `If-None-Match: ${etag}\r\nConnection: close\r\nHost`);
    const { socket, said } = await sent(port, text);
    await new Promise<void>((resolve) => void socket.once('close', () => resolve()));
    expect(said()).toMatch(/^HTTP\/1\.1 304 /);
    expect(said()).not.toMatch(/content-length/i);
  });
});

describe('a server after another', () => {
  test('ends the deletions of namespaces that the one before has begun', async () => {
    const before = rig();
    const path = '/api/v1/namespaces/x/configmaps';
    await before.call('POST', '/api/v1/namespaces', { metadata: { name: 'x' } });
    await before.call('POST', path, { metadata: { name: 'held', finalizers: ['a.example/b'] } });
    expect((await before.call('DELETE', '/api/v1/namespaces/x')).body.status.phase).toBe('Terminating');
    await before.server.shutdown();
    const { server, call } = rig({ storage: before.storage });
    await server.ready;
    expect((await call('PATCH', `${path}/held`, { metadata: { finalizers: null } })).code).toBe(200);
    await expect.poll(async () => (await call('GET', '/api/v1/namespaces/x')).code).toBe(404);
    await server.shutdown();
  });
});
