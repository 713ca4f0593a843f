// Requests for an upgrade: what a handshake must have, where its token goes, and the answer to a request that is not one.
import { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { Upgrades } from '../../src/apiserver/http/upgrade.ts';
import type { ApiServerOptions, ResourceDefinition } from '../../src/apiserver/index.ts';
import type { Settings } from '../../src/apiserver/options.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock, FakeWatcher } from '../../src/testing/index.ts';
import { systemClock } from '../../src/watch/clock.ts';
import { closers } from '../closing.ts';
import { listening } from '../listening.ts';
import { ORDER, ORDERS, ORDERS_PATH, rig } from './apiserver-rig.ts';

const closing = closers();

const bearer = (token: string): string => `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`;

async function open(options: Partial<ApiServerOptions> = {}) {
  const made = rig({ cache: false, ...options });
  const { url, http, close } = await listening(made.server);
  http.on('upgrade', made.server.upgrade);
  closing.push(close);
  return { ...made, url, http, port: Number(new URL(url).port) };
}

/** Sends a request, and waits for what is wanted of the answer, or for its end. */
async function send(port: number, request: string, wanted?: string): Promise<{ socket: Socket; text: string }> {
  const socket = connect(port, '127.0.0.1');
  closing.push(() => socket.destroy());
  socket.setEncoding('utf8');
  socket.on('error', () => {});
  socket.write(request);
  let text = '';
  await new Promise<void>((resolve) => {
    socket.on('close', resolve);
    socket.on('data', (chunk) => {
      text += chunk;
      if (wanted !== undefined && text.includes(wanted)) resolve();
    });
  });
  return { socket, text };
}

const WATCH = `${ORDERS_PATH}?watch=1`;
const KEY = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
const VERSION = 'Sec-WebSocket-Version: 13\r\n';
const UPGRADE = 'Upgrade: websocket\r\nConnection: Upgrade\r\n';
const request = (path: string, headers: string, method = 'GET'): string =>
  `${method} ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`;

describe('a handshake', () => {
  test.each([
    [request(WATCH, UPGRADE + KEY + VERSION, 'POST'), 'a WebSocket begins with GET'],
    [request(WATCH, UPGRADE + KEY), 'the version of WebSocket must be 13'],
    [request(WATCH, UPGRADE + VERSION), 'the header Sec-WebSocket-Key is missing'],
    [request(WATCH, `${UPGRADE}${KEY}${VERSION}Sec-WebSocket-Protocol: a, b\r\n`), 'at most one subprotocol'],
    [request(WATCH, `${UPGRADE}${KEY}${VERSION}Sec-WebSocket-Protocol: ${bearer('x')}\r\n`), 'missing additional subprotocol'],
    [request(WATCH, `${UPGRADE}${KEY}${VERSION}Sec-WebSocket-Protocol: a,${bearer('x')},b\r\n`), 'at most one subprotocol'],
  ])('that breaks the rules is 400: %j', async (text, message) => {
    const { port } = await open();
    const answer = (await send(port, text)).text;
    expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
    expect(answer).toMatch(/\r\ncontent-type: application\/json\r\n/);
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ kind: 'Status', code: 400 });
    expect(answer).toContain(message);
  });

  test.each(['Upgrade: WebSocket\r\nConnection: keep-alive, UPGRADE\r\n', UPGRADE])('%j', async (headers) => {
    const { port } = await open();
    const { text } = await send(port, request(WATCH, `${headers}${KEY}${VERSION}Sec-WebSocket-Protocol: a\r\n`), '\r\n\r\n');
    expect(text).toMatch(/^HTTP\/1.1 101 /);
    expect(text).toMatch(/sec-websocket-protocol: a\r\n/i);
  });

  test('a token among its subprotocols is one for authenticate, unless there is one; neither is echoed', async () => {
    const seen: unknown[] = [];
    const authenticate = (asked: unknown): string => {
      const { headers } = asked as IncomingMessage;
      seen.push([headers.authorization, headers['sec-websocket-protocol']]);
      return 'ada';
    };
    const { port } = await open({ authenticate });
    for (const more of [
      `Sec-WebSocket-Protocol: ${bearer('secret')}, a\r\n`,
      `Sec-WebSocket-Protocol: ${bearer('secret')}, a\r\nAuthorization: Bearer own\r\n`,
      'Sec-WebSocket-Protocol: \r\n',
    ]) {
      const { text } = await send(port, request(WATCH, UPGRADE + KEY + VERSION + more), '\r\n\r\n');
      expect(text).not.toContain('bearer');
    }
    expect(seen).toEqual([
      ['Bearer secret', 'a'],
      ['Bearer own', 'a'],
      [undefined, undefined],
    ]);
  });

  test('of a client that leaves before it is decided, or whose handshake ws refuses, leaves no watch open', async () => {
    const watchers: FakeWatcher<never>[] = [];
    const storage = new MemoryStorage();
    const watch = vi.spyOn(Object.getPrototypeOf(storage.scope('x/')), 'watch').mockImplementation(async () => {
      const watcher = new FakeWatcher<never>();
      watchers.push(watcher);
      return watcher;
    });
    closing.push(() => watch.mockRestore());
    let decide: (who: string) => void = () => {};
    let asked = 0;
    const authenticate = (): Promise<string> => {
      asked++;
      return new Promise((resolve) => {
        decide = resolve;
      });
    };
    const { port, server } = await open({ storage, authenticate, resources: [ORDERS as ResourceDefinition] });
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(request(WATCH, UPGRADE + KEY + VERSION));
    await expect.poll(() => asked).toBe(1);
    socket.destroy();
    await expect.poll(() => server.stats.requests).not.toEqual({});
    decide('ada');
    const refused = send(port, request(WATCH, `${UPGRADE}Sec-WebSocket-Key: short\r\n${VERSION}`));
    await expect.poll(() => asked).toBe(2);
    decide('ada');
    expect((await refused).text).toMatch(/^HTTP\/1.1 400 /);
    expect(server.stats.watchers).toBe(0);
    await expect.poll(() => watchers.map(({ stopped }) => stopped)).toEqual([true]); // of the second
  });

  test('of anything but a watch is answered as one over HTTP is, or refused if that is long', async () => {
    const { port, call } = await open({ cache: true });
    await call('POST', ORDERS_PATH, { metadata: { name: 'small' }, spec: { item: 'ä' } });
    await call('POST', ORDERS_PATH, { metadata: { name: 'large' }, spec: { item: 'x'.repeat(300_000) } });
    const socket = (path: string, more = ''): Promise<{ text: string }> =>
      send(port, request(path, UPGRADE + KEY + VERSION + more));
    const small = (await socket(`${ORDERS_PATH}/small`)).text;
    expect(small).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    expect(JSON.parse(small.slice(small.indexOf('\r\n\r\n')))).toMatchObject({ spec: { item: 'ä' } });
    const list = (await socket(`${ORDERS_PATH}?fieldSelector=metadata.name=small`)).text;
    expect(JSON.parse(list.slice(list.indexOf('\r\n\r\n'))).items).toMatchObject([{ spec: { item: 'ä' } }]);
    const large = (await socket(`${ORDERS_PATH}/large`)).text;
    expect(large).toMatch(/^HTTP\/1.1 400 /);
    expect(large).toContain('only a watch can be a WebSocket');
    const first = (await socket('/openapi/v3')).text;
    const etag = /etag: (.*)\r\n/i.exec(first)?.[1] as string;
    const again = (await socket('/openapi/v3', `If-None-Match: ${etag}\r\n`)).text;
    expect([again.slice(0, 12), again.slice(again.indexOf('\r\n\r\n'))]).toEqual(['HTTP/1.1 304', '\r\n\r\n']);
  });

  test('agrees on no compression, and a client is pinged, and may send next to nothing', async () => {
    const clock = new FakeClock();
    const { url } = await open({ clock });
    const socket = new WebSocket(url.replace('http', 'ws') + WATCH, { perMessageDeflate: true });
    closing.push(() => socket.terminate());
    let pings = 0;
    socket.on('ping', () => pings++);
    await new Promise((resolve) => socket.on('open', resolve));
    expect(socket.extensions).toBe('');
    clock.advance(30_000);
    await expect.poll(() => pings).toBe(1);
    const closed = new Promise((resolve) => socket.on('close', resolve));
    socket.send('x'.repeat(1_024));
    socket.send('x'.repeat(1_025));
    expect(await closed).toBe(1009);
  });

  test('what comes with it is read once it is decided', async () => {
    const { port, call } = await open();
    // A close, masked with 0.
    const { text } = await send(port, `${request(WATCH, UPGRADE + KEY + VERSION)}\x88\x80\0\0\0\0`);
    expect(text).toMatch(/^HTTP\/1.1 101 /);
    await expect.poll(async () => (await call('GET', '/stats')).body.watchers).toBe(0);
  });

  test('what fails unexpectedly is 500, and the owner is told', async () => {
    const errors: unknown[] = [];
    const failure = new Error('oops');
    const authorize = (): boolean => {
      throw failure;
    };
    const { port } = await open({ authorize, onError: (error) => void errors.push(error) });
    const { text } = await send(port, request(WATCH, UPGRADE + KEY + VERSION));
    expect([text.slice(0, 12), errors]).toEqual(['HTTP/1.1 500', [failure]]);
  });

  test('a refusal has the headers of one over HTTP', async () => {
    const { port } = await open({ maxUrlBytes: 60, authenticate: () => undefined as never });
    const { text } = await send(port, request(WATCH, UPGRADE + KEY + VERSION));
    expect(text).toMatch(/^HTTP\/1.1 401 /);
    expect(text).toMatch(/\r\nwww-authenticate: Bearer\r\n|\r\nvary: |\r\ncache-control: /i);
  });
});

describe('an upgrade that a server ignores', () => {
  const H2C = 'Upgrade: h2c\r\nConnection: Upgrade\r\n';

  test('is answered as if nobody had asked, and its connection ends', async () => {
    const { port } = await open();
    const { text } = await send(port, request('/version', H2C));
    expect(text).toMatch(/^HTTP\/1.1 200 /);
    expect(text).toMatch(/\r\nconnection: close\r\n/i);
    expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toHaveProperty('gitVersion');
  });

  test('a body of unknown length is 411', async () => {
    const { port } = await open();
    const { text } = await send(port, request(ORDERS_PATH, `${H2C}Transfer-Encoding: chunked\r\n`, 'POST'));
    expect(text).toMatch(/^HTTP\/1.1 411 /);
    expect(JSON.parse(text.slice(text.indexOf('\r\n\r\n')))).toMatchObject({
      reason: 'LengthRequired',
      message: 'a body after an upgrade needs a Content-Length',
    });
  });

  test('a body in many parts is read whole, and the answer comes whole, as fast as the client takes it', async () => {
    const { port, call } = await open();
    const body = JSON.stringify({ ...ORDER, metadata: { name: 'a' }, spec: { item: 'y'.repeat(300_000) } });
    const head = request(ORDERS_PATH, `${H2C}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`, 'POST');
    const socket = connect(port, '127.0.0.1');
    closing.push(() => socket.destroy());
    socket.on('error', () => {});
    for (let at = 0; at < body.length; at += 50_000) {
      socket.write((at === 0 ? head : '') + body.slice(at, at + 50_000));
      await new Promise((resolve) => setImmediate(resolve));
    }
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    await new Promise((resolve) => socket.on('close', resolve));
    expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 201']);
    expect(text.match(/y/g)?.length).toBeGreaterThan(300_000);
    expect((await call('GET', `${ORDERS_PATH}/a`)).body.spec.item).toHaveLength(300_000);
  });

  test('does not wait for its client to close its side', async () => {
    const { port, http } = await open();
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    closing.push(() => socket.destroy());
    socket.resume();
    socket.write(request('/version', H2C));
    await new Promise((resolve) => socket.on('end', resolve));
    const connections = (): Promise<number> => new Promise((resolve) => http.getConnections((_, count) => resolve(count)));
    await expect.poll(connections).toBe(0);
  });

  test('a connection that is reset ends what is on it', async () => {
    const { port, server } = await open();
    const { socket } = await send(port, request(WATCH, H2C), '\r\n\r\n');
    await expect.poll(() => server.stats.watchers).toBe(1);
    socket.resetAndDestroy();
    await expect.poll(() => server.stats.watchers).toBe(0);
  });

  test('a body that nobody reads yet is held back', async () => {
    let decide: (who: string) => void = () => {};
    const authenticate = (): Promise<string> =>
      new Promise((resolve) => {
        decide = resolve;
      });
    const { port, http } = await open({ authenticate });
    const sockets: Socket[] = [];
    // The connection itself: in Node 26, what the upgrade has is another stream.
    http.on('connection', (socket: Socket) => sockets.push(socket));
    const body = JSON.stringify({ ...ORDER, metadata: { name: 'a' }, spec: { item: 'y'.repeat(2_000_000) } });
    const head = request(ORDERS_PATH, `${H2C}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`, 'POST');
    const answered = send(port, head + body, 'HTTP/1.1 201');
    await expect.poll(() => sockets[0]?.isPaused()).toBe(true);
    expect(sockets[0]?.bytesRead).toBeLessThan(1_000_000);
    decide('ada');
    expect((await answered).text).toContain('HTTP/1.1 201');
  });

  test('a body that the request has itself, as in Node 26, is read from there; what is behind it is dropped', async () => {
    const { port, http, server, call } = await open();
    http.removeAllListeners('upgrade');
    const resumed: boolean[] = [];
    const body = JSON.stringify({ ...ORDER, metadata: { name: 'a' } });
    for (const isThere of [false, true]) {
      http.once('upgrade', ({ method, url, headers }, socket) => {
        const own = new IncomingMessage(socket as Socket);
        Object.assign(own, { method, url, headers });
        const come = (): void => {
          own.push(body);
          own.complete = true;
          own.push(null);
        };
        if (isThere) come();
        server.upgrade(own, socket, Buffer.alloc(0));
        if (!isThere) setImmediate(come);
        own.once('end', () =>
          setImmediate(() => resumed.push(socket.isPaused() === false && (socket as Socket).readableFlowing === true)),
        );
      });
      const head = request(ORDERS_PATH, `${H2C}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`, 'POST');
      const { text } = await send(port, head);
      expect(text).toMatch(isThere ? /^HTTP\/1.1 409 / : /^HTTP\/1.1 201 /);
    }
    expect(resumed).toEqual([true, true]);
    expect((await call('GET', `${ORDERS_PATH}/a`)).code).toBe(200);
  });

  test('a watch ends with its client', async () => {
    const { port, server } = await open();
    const { socket } = await send(port, request(WATCH, H2C), '\r\n\r\n');
    await expect.poll(() => server.stats.watchers).toBe(1);
    socket.end();
    await expect.poll(() => server.stats.watchers).toBe(0);
  });

  test('a client that leaves within its body frees its place', async () => {
    const { port, call } = await open({ maxConcurrentRequests: 1 });
    const head = request(ORDERS_PATH, `${H2C}Content-Type: application/json\r\nContent-Length: 100\r\n`, 'POST');
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.write(`${head}{"metadata"`);
    await expect.poll(async () => (await call('GET', ORDERS_PATH)).code).toBe(429);
    socket.destroy();
    await expect.poll(async () => (await call('GET', ORDERS_PATH)).code).toBe(200);
  });
});

test('what fails behind an upgrade that is none is reported, and no rejection is left', async () => {
  const { http, port } = await open();
  const onError = vi.fn();
  const broken = new Error('broken');
  const deps = {
    answer: () => Promise.reject(broken),
    cutEarly: () => {},
    sessions: {},
    maxBufferedBytes: 1,
    clock: systemClock,
  };
  const upgrades = new Upgrades(deps as never, { onError, clock: systemClock } as unknown as Settings);
  http.removeAllListeners('upgrade').on('upgrade', (...all) => upgrades.serve(...all));
  void send(port, request(ORDERS_PATH, 'Upgrade: h2c\r\nConnection: Upgrade\r\n'));
  await expect.poll(() => onError.mock.calls).toEqual([[broken]]);
});
