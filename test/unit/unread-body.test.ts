// A refusal whose body nobody has read: what is small and comes soon leaves the connection as it is; more costs it.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ApiServer } from '../../src/apiserver/index.ts';
import { createHttpHandler } from '../../src/bridge/http.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { createMetricsServer } from '../../src/cli/serve/metrics-server.ts';
import { objectsPage, sendPage } from '../../src/cli/serve/page.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { eventually } from '../eventually.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';
import { client } from './apiserver-sockets.ts';

interface Wire {
  readonly socket: Socket;
  readonly said: () => string;
  readonly closed: () => boolean;
  /** The codes of the answers so far. */
  readonly codes: () => string[];
}

function wire(port: number): Wire {
  const socket = client(port);
  let [said, closed] = ['', false];
  socket.setEncoding('latin1').on('data', (text: string) => {
    said += text;
  });
  for (const event of ['end', 'close'] as const) {
    socket.on(event, () => {
      closed = true;
    });
  }
  const codes = (): string[] => Array.from(said.matchAll(/HTTP\/1\.1 (\d+) /g), ([, code = '']) => code);
  return { socket, said: () => said, closed: () => closed, codes };
}

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

const api = (options: object = {}): ApiServer => rig({ cache: false, ...options }).server;
const shown = { host: '127.0.0.1', keepAliveMs: 60_000 };
const ofMetrics = (): RequestListener => createMetricsServer(api(), shown).listeners('request')[0] as RequestListener;
const page = objectsPage('');

/** By what refuses: the listener, the request's first line, and the code. */
const REFUSALS: Readonly<Record<string, readonly [() => RequestListener, string, string]>> = {
  'API server, 405': [() => api().handler, 'POST /stats', '405'],
  'API server, 415': [() => api().handler, `POST ${ORDERS_PATH}`, '415'],
  'API server, 404': [() => api().handler, 'POST /apis/none/v1/none', '404'],
  'API server, 413': [() => api({ maxBodyBytes: 10 }).handler, `PUT ${ORDERS_PATH}/a`, '413'],
  'hub, 405': [() => createHttpHandler(new Hub()) as RequestListener, 'POST /watch', '405'],
  'hub, 400': [() => createHttpHandler(new Hub()) as RequestListener, 'GET /watch?resourceVersion=x', '400'],
  '--metrics, 405': [ofMetrics, 'POST /metrics', '405'],
  'the page of serve': [() => (request, response) => sendPage(page, request, response), 'GET /', '200'],
};

const BODY = 'x'.repeat(1_000);
const type = (name: string): string => (name.includes('413') ? 'application/json' : 'text/plain');
const framings: Readonly<Record<string, readonly [header: string, body: string]>> = {
  'Content-Length': [`Content-Length: ${BODY.length}`, BODY],
  chunks: ['Transfer-Encoding: chunked', `3e8\r\n${BODY}\r\n0\r\n\r\n`],
};

describe.each(Object.entries(REFUSALS))('%s', (name, [listener, line, code]) => {
  const head = (header: string): string =>
    `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: ${type(name)}\r\n${header}\r\n\r\n`;

  test.each(Object.entries(framings))(
    'a small body by %s, whenever it comes, keeps the connection',
    async (_, [header, body]) => {
      const { socket, said, codes, closed } = wire(await serve(listener()));
      socket.write(head(header) + body);
      await eventually(() => expect(codes()).toEqual([code]));
      for (const round of [2, 3]) {
        socket.write(head(header) + body.slice(0, 500));
        // With a length, the answer does not wait for the rest.
        if (header.startsWith('Content-Length')) await eventually(() => expect(codes()).toHaveLength(round));
        socket.write(body.slice(500));
        await eventually(() => expect(codes()).toEqual(Array(round).fill(code)));
      }
      expect(said().toLowerCase()).not.toContain('connection: close');
      expect(closed()).toBe(false);
    },
  );

  test('a large body costs it, and the answer says so', async () => {
    const { socket, said, codes, closed } = wire(await serve(listener()));
    socket.write(`${head('Transfer-Encoding: chunked')}`);
    for (let at = 0; at < 200; at++) socket.write(`3e8\r\n${BODY}\r\n`);
    await eventually(() => expect(codes()).toEqual([code]));
    expect(said().toLowerCase()).toContain('connection: close');
    socket.end('0\r\n\r\n');
    await eventually(() => expect(closed()).toBe(true));
  });
});

describe('a body that does not come', () => {
  const clock = new FakeClock();
  const handlers: Readonly<Record<string, readonly [RequestListener, string]>> = {
    'API server': [api({ clock }).handler, 'POST /stats'],
    hub: [createHttpHandler(new Hub(), { clock }) as RequestListener, 'POST /watch'],
  };

  test.each(Object.entries(handlers))('%s: with a length, costs the connection in the end', async (_, [listener, line]) => {
    const { socket, codes, closed } = wire(await serve(listener));
    socket.write(`${line} HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx`);
    await eventually(() => expect(codes()).toEqual(['405']));
    clock.advance(4_999);
    socket.write('x');
    expect([closed(), clock.pending]).toEqual([false, 1]);
    clock.advance(1);
    await eventually(() => expect(closed()).toBe(true));
    expect(clock.pending).toBe(0);
  });

  test.each(Object.entries(handlers))('%s: in chunks, is waited for a moment', async (_, [listener, line]) => {
    const { socket, said, codes, closed } = wire(await serve(listener));
    socket.write(`${line} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n`);
    await eventually(() => expect(clock.pending).toBe(1));
    clock.advance(999);
    expect(codes()).toEqual([]);
    clock.advance(1);
    await eventually(() => expect(codes()).toEqual(['405']));
    expect(said().toLowerCase()).toContain('connection: close');
    socket.end();
    await eventually(() => expect([closed(), clock.pending]).toEqual([true, 0]));
  });

  test.each(Object.entries(handlers))('%s: a client that leaves meanwhile leaves nothing', async (_, [listener, line]) => {
    const port = await serve(listener);
    for (const header of ['Content-Length: 10', 'Transfer-Encoding: chunked']) {
      const { socket } = wire(port);
      socket.write(`${line} HTTP/1.1\r\nHost: a\r\n${header}\r\n\r\n1`);
      await eventually(() => expect(clock.pending).toBe(1));
      socket.destroy();
      await eventually(() => expect(clock.pending).toBe(0));
    }
  });
});
