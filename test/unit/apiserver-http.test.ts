// What is around the verbs: who may ask, how much, in which form, and what hostile clients get.
import { once } from 'node:events';
import { createServer, request as httpRequest, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import express from 'express';
import fc from 'fast-check';
import { Hono } from 'hono';
import { describe, expect, test } from 'vitest';
import type { ApiServerOptions, RequestReport } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { eventually } from '../eventually.ts';
import { listening } from '../listening.ts';
import { runs } from '../runs.ts';
import { ORDER, ORDERS_PATH, rig } from './apiserver-rig.ts';

const closing = closers();

async function open(
  options: Partial<ApiServerOptions> = {},
): Promise<ReturnType<typeof rig> & { url: string; http: Server; port: number }> {
  const made = rig(options);
  const { url, http, close } = await listening(made.server);
  closing.push(close);
  return { ...made, url, http, port: Number(new URL(url).port) };
}

const JSON_TYPE = { 'content-type': 'application/json' };

describe('paths beside resources', () => {
  test.each([
    ['/healthz', 200, 'ok'],
    ['/livez', 200, 'ok'],
    ['/readyz', 200, 'ok'],
  ])('%s', async (path, code, text) => {
    const { server, call } = rig();
    await server.ready;
    expect(await call('GET', path)).toMatchObject({ code, text });
  });

  test('/version and /metrics', async () => {
    const { call } = rig();
    expect((await call('GET', '/version')).body).toMatchObject({ major: '1', gitVersion: expect.stringMatching(/^v1\./) });
    await call('GET', ORDERS_PATH);
    const { text, headers } = await call('GET', '/metrics');
    expect(headers.get('content-type')).toContain('text/plain');
    expect(text).toContain('watchmux_apiserver_requests_total{code="200"}');
    expect(text).toContain('watchmux_apiserver_requests_by_verb_total{verb="list"} 1');
  });

  test('a server whose storage fails at the start is not ready, and says so', async () => {
    const storage = new MemoryStorage();
    await storage.close();
    const errors: unknown[] = [];
    const { server, call } = rig({ storage, onError: (error) => errors.push(error) });
    await expect(server.ready).rejects.toMatchObject({ code: 'CLOSED' });
    expect((await call('GET', '/readyz')).code).toBe(503);
    expect((await call('GET', '/livez')).code).toBe(200);
    expect(errors.length).toBeGreaterThan(0);
    await server.shutdown();
  });

  test('what is nowhere is a Status of 404, what is no method of it 405', async () => {
    const { call } = rig();
    for (const path of ['/nothing', '/healthz/x', '/api/v1/namespaces/default/orders']) {
      expect(await call('GET', path)).toMatchObject({
        code: 404,
        body: { kind: 'Status', status: 'Failure', reason: 'NotFound' },
      });
    }
    const { body } = await call('GET', '/');
    for (const path of body.paths) expect([path, (await call('GET', path)).code]).toEqual([path, 200]);
    expect((await call('POST', '/healthz', {})).code).toBe(405);
    expect((await call('PUT', ORDERS_PATH, {})).code).toBe(405);
    expect((await call('POST', '/apis/example.com/v1/orders', { metadata: { name: 'a' } })).code).toBe(405);
    expect((await call('POST', `${ORDERS_PATH}/a/status`, {})).code).toBe(405);
  });
});

describe('who may ask', () => {
  test.each([
    ['undefined', () => undefined, 401],
    ['false', () => false, 401],
    ['an empty text, as of an empty header', () => '', 401],
    ['zero', async () => 0, 401],
    ['a promise of null', async () => null, 401],
    ['a refusal', () => ({ status: 403 as const, message: 'no' }), 403],
    [
      'an error',
      () => {
        throw new Error('broken');
      },
      503,
    ],
    ['somebody', () => 'somebody', 200],
  ])('authenticate: %s', async (_, authenticate, code) => {
    const errors: unknown[] = [];
    const { call } = rig({ authenticate: authenticate as never, onError: (error) => errors.push(error) });
    const answered = await call('GET', ORDERS_PATH);
    expect(answered.code).toBe(code);
    expect(answered.text).not.toContain('broken');
    expect(errors).toHaveLength(code === 503 ? 1 : 0);
    // Who is not known does not learn what there is.
    if (code !== 200) expect((await call('GET', '/apis/other/v1/things')).code).toBe(code);
    expect((await call('GET', '/healthz')).code).toBe(200);
    expect((await call('GET', '/metrics')).code).toBe(code);
  });

  test('authorize is asked with verb, resource, namespace, name and identity; only true allows', async () => {
    const asked: unknown[] = [];
    const { call } = rig({
      authenticate: () => ({ name: 'me' }),
      authorize: (...args) => {
        asked.push(args);
        return args[0] !== 'delete';
      },
    });
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    await call('GET', `${ORDERS_PATH}/a`);
    await call('GET', '/apis/example.com/v1/orders');
    await call('PATCH', `${ORDERS_PATH}/a/status`, {});
    await call('GET', '/metrics');
    const refused = await call('DELETE', `${ORDERS_PATH}/a`);
    expect(refused.code).toBe(403);
    expect(refused.body.message).toBe(
      'orders.example.com "a" is forbidden: this identity cannot delete it in the namespace "default"',
    );
    const me = { name: 'me' };
    expect(asked).toEqual([
      ['create', 'orders.example.com', 'default', undefined, me],
      ['get', 'orders.example.com', 'default', 'a', me],
      ['list', 'orders.example.com', undefined, undefined, me],
      ['patch', 'orders.example.com/status', 'default', 'a', me],
      ['get', '/metrics', undefined, undefined, me],
      ['delete', 'orders.example.com', 'default', 'a', me],
    ]);
    for (const said of ['yes', 1, {}, undefined]) {
      const { call: other } = rig({ authorize: (() => said) as never });
      expect((await other('GET', ORDERS_PATH)).code).toBe(403);
    }
  });

  test('a hook that never answers is given up, and leaves nothing', async () => {
    const clock = new FakeClock();
    const { call } = rig({ clock, cache: false, authenticate: () => new Promise(() => {}) });
    const pending = call('GET', ORDERS_PATH);
    await eventually(() => expect(clock.pending).toBeGreaterThan(0));
    clock.advance(10_000);
    expect((await pending).code).toBe(504);
    expect(clock.pending).toBe(0);
  });
});

describe('pages of other origins', () => {
  test('are refused by default, whatever they ask and however', async () => {
    const { call } = rig();
    const foreign = [{ origin: 'http://evil.example' }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }];
    for (const headers of foreign) {
      expect((await call('GET', ORDERS_PATH, undefined, headers as never)).code).toBe(403);
      const body = JSON.stringify({ metadata: { name: 'a' } });
      expect((await call('POST', ORDERS_PATH, body, { ...headers, 'content-type': 'text/plain' } as never)).code).toBe(403);
      expect((await call('OPTIONS', ORDERS_PATH, undefined, headers as never)).code).toBe(403);
    }
    expect((await call('GET', ORDERS_PATH)).body.items).toEqual([]);
    const own = await call('GET', ORDERS_PATH, undefined, { origin: 'http://127.0.0.1' });
    expect(own.code).toBe(200);
    expect(own.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('a form cannot write: what it can send without being asked is 415', async () => {
    const { call } = rig();
    const body = JSON.stringify({ metadata: { name: 'a' } });
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', '', 'application/xml']) {
      expect((await call('POST', ORDERS_PATH, body, { 'content-type': type })).code).toBe(415);
      expect((await call('DELETE', `${ORDERS_PATH}/a`, body, { 'content-type': type })).code).toBe(415);
    }
  });

  test('those that are allowed get the headers for it', async () => {
    const { call } = rig({ allowedOrigins: ['http://good.example'] });
    const headers = { origin: 'http://good.example', 'access-control-request-headers': 'content-type' };
    const asked = await call('OPTIONS', ORDERS_PATH, undefined, headers);
    expect(asked.code).toBe(204);
    expect(asked.headers.get('access-control-allow-methods')).toContain('PATCH');
    expect(asked.headers.get('access-control-allow-headers')).toBe('content-type');
    expect((await call('GET', ORDERS_PATH, undefined, headers)).headers.get('access-control-allow-origin')).toBe(
      'http://good.example',
    );
  });
});

describe('limits', () => {
  test('a URL, a selector, and a body that are too long', async () => {
    const { call } = rig({ maxUrlBytes: 300, maxSelectorLength: 10, maxBodyBytes: 100 });
    expect((await call('GET', `${ORDERS_PATH}?x=${'a'.repeat(300)}`)).code).toBe(414);
    expect((await call('GET', `${ORDERS_PATH}?labelSelector=aaaaaaaaaaa`)).code).toBe(400);
    const refused = await call('POST', ORDERS_PATH, { metadata: { name: 'a', annotations: { x: 'y'.repeat(100) } } });
    expect(refused).toMatchObject({ code: 413, body: { reason: 'RequestEntityTooLarge' } });
  });

  test('a body that is too long is refused over a socket, with and without its length told', async () => {
    const { url, port } = await open({ maxBodyBytes: 1_000 });
    const told = await fetch(url + ORDERS_PATH, { method: 'POST', headers: JSON_TYPE, body: 'x'.repeat(2_000) });
    expect(told.status).toBe(413);
    const untold = await new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest({ port, path: ORDERS_PATH, method: 'POST', headers: JSON_TYPE }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.on('error', reject);
      sent.write('x'.repeat(800));
      sent.write('x'.repeat(800));
    });
    expect(untold).toBe(413);
  });

  test('a body that does not come is given up, and leaves nothing', async () => {
    const clock = new FakeClock();
    const { port } = await open({ clock, cache: false });
    const code = new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest(
        { port, path: ORDERS_PATH, method: 'POST', headers: { ...JSON_TYPE, 'content-length': 10 } },
        (response) => {
          response.resume();
          resolve(response.statusCode);
        },
      );
      sent.on('error', reject);
      sent.flushHeaders();
    });
    await eventually(() => expect(clock.pending).toBe(1));
    clock.advance(60_000);
    expect(await code).toBe(504);
    // The client has its answer, and some time to hang up.
    clock.advance(5_000);
    expect(clock.pending).toBe(0);
  });

  test('a client that leaves in the middle of a body frees its slot', async () => {
    const errors: unknown[] = [];
    const reports: RequestReport[] = [];
    const { port, http, call } = await open({
      maxConcurrentRequests: 1,
      onError: (error) => errors.push(error),
      onRequest: (report) => reports.push(report),
    });
    const socket = connect(port, '127.0.0.1');
    socket.write(`POST ${ORDERS_PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{`);
    await once(http, 'request'); // it has the slot, not the next one
    await eventually(async () => expect((await call('GET', ORDERS_PATH)).code).toBe(429));
    socket.destroy();
    await eventually(async () => expect((await call('GET', ORDERS_PATH)).code).toBe(200));
    expect(reports.filter(({ method }) => method === 'POST').map(({ code }) => code)).toEqual([499]);
    expect(errors).toEqual([]);
  });

  test.each([
    ['in the middle of a body', 'POST', 'Content-Length: 10\r\n\r\n{'],
    ['with a whole body', 'POST', 'Content-Length: 2\r\n\r\n{}'],
    ['without a body', 'GET', '\r\n'],
  ])('a client that has left %s before it was served leaves nothing', async (_, method, rest) => {
    const clock = new FakeClock();
    const reports: RequestReport[] = [];
    const { server } = rig({ clock, cache: false, onRequest: (report) => reports.push(report) });
    await server.ready;
    // As middleware that waits for something.
    const http = createServer((request, response) => void response.once('close', () => server.handler(request, response)));
    await new Promise<void>((resolve) => void http.listen(0, '127.0.0.1', resolve));
    closing.push(() => http.close());
    const socket = connect((http.address() as AddressInfo).port, '127.0.0.1');
    const asked = once(http, 'request');
    socket.write(`${method} ${ORDERS_PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${rest}`);
    await asked;
    socket.destroy();
    await eventually(() => expect(reports.map(({ code }) => code)).toEqual([499]));
    expect(clock.pending).toBe(0);
    await server.shutdown();
  });

  test('watches are limited, in all and by address, and their slots come back', async () => {
    const { url, call } = await open({ maxWatchers: 2, maxWatchersPerAddress: 1 });
    const abort = new AbortController();
    const first = await fetch(`${url}${ORDERS_PATH}?watch=1`, { signal: abort.signal });
    expect(first.status).toBe(200);
    const second = await fetch(`${url}${ORDERS_PATH}?watch=1`);
    expect(second.status).toBe(429);
    expect(second.headers.get('retry-after')).toBe('1');
    expect((await call('GET', ORDERS_PATH)).code).toBe(200);
    abort.abort();
    await eventually(async () => {
      const again = await fetch(`${url}${ORDERS_PATH}?watch=1`);
      void again.body?.cancel();
      expect(again.status).toBe(200);
    });
    const head = await fetch(`${url}${ORDERS_PATH}?watch=1`, { method: 'HEAD' });
    expect([200, 429]).toContain(head.status);
  });

  test('what the server answers is reported once, with its code', async () => {
    const reports: RequestReport[] = [];
    const { call } = rig({
      onRequest: (report) => {
        reports.push(report);
        throw new Error('ignored');
      },
    });
    await call('GET', `${ORDERS_PATH}?limit=1`);
    await call('GET', '/nothing');
    expect(reports.map(({ method, path, verb, code }) => [method, path, verb, code])).toEqual([
      ['GET', ORDERS_PATH, 'list', 200],
      ['GET', '/nothing', undefined, 404],
    ]);
  });
});

describe('hosts', () => {
  test('Express, at a path of its own, behind middleware that has parsed the body', async () => {
    const { server } = rig();
    const app = express();
    app.use(express.json());
    app.use('/k8s', server.handler);
    const http = createServer(app);
    await new Promise<void>((resolve) => void http.listen(0, '127.0.0.1', resolve));
    closing.push(
      () => http.close(),
      () => server.shutdown(),
    );
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/k8s${ORDERS_PATH}`;
    const init = {
      method: 'POST',
      headers: JSON_TYPE,
      body: JSON.stringify({ ...ORDER, metadata: { name: 'a' }, spec: { count: 1 } }),
    };
    expect((await fetch(url, init)).status).toBe(201);
    expect(await (await fetch(`${url}/a`)).json()).toMatchObject({ spec: { count: 1 } });
    http.closeAllConnections();
  });

  test('Hono on node:http: lists, watches, writes, limits; a connection that carries a watch carries nothing else', async () => {
    const { server } = rig({ maxWatchersPerAddress: 1 });
    const app = new Hono();
    app.all('/*', (context) => server.fetch(context.req.raw, context.env));
    const http = createAdaptorServer({ fetch: app.fetch });
    await new Promise<void>((resolve) => void http.listen(0, '127.0.0.1', resolve));
    closing.push(
      () => http.close(),
      () => server.shutdown(),
    );
    const { port } = http.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}${ORDERS_PATH}`;
    const watch = await fetch(`${url}?watch=1`);
    expect((await fetch(`${url}?watch=1`)).status).toBe(429);
    const init = {
      method: 'POST',
      headers: JSON_TYPE,
      body: JSON.stringify({ ...ORDER, metadata: { name: 'a' }, spec: { count: 1 } }),
    };
    expect((await fetch(url, init)).status).toBe(201);
    expect(await (await fetch(url)).json()).toMatchObject({ items: [{ spec: { count: 1 } }] });
    const reader = (watch.body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('"ADDED"');
    await reader.cancel();
    await eventually(() => expect(server.metrics).toContain('watchmux_apiserver_watchers 0'));
    const socket = connect(port, '127.0.0.1');
    const closed = new Promise((resolve) => void socket.on('close', resolve));
    let heard = '';
    socket
      .on('error', () => {})
      .on('data', (chunk) => {
        heard += chunk;
      });
    const head = 'HTTP/1.1\r\nHost: a\r\n\r\n';
    socket.write(`GET ${ORDERS_PATH}?watch=1 ${head}${`GET ${ORDERS_PATH} ${head}`.repeat(500)}`);
    await closed;
    expect(heard.split('HTTP/1.1 ').length).toBeLessThan(3);
    await eventually(() => expect(server.metrics).toContain('watchmux_apiserver_watchers 0'));
  });

  test('an absolute target, as proxies send it', async () => {
    const { port } = await open();
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest({ port, path: `http://anywhere${ORDERS_PATH}` }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.on('error', reject).end();
    });
    expect(status).toBe(200);
  });

  test('HEAD is GET without a body, also of a watch, which holds no slot', async () => {
    const { url, server, call } = await open({ maxWatchers: 1 });
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    for (const path of ['', '/a', '?watch=1', '?watch=1']) {
      const response = await fetch(url + ORDERS_PATH + path, { method: 'HEAD' });
      expect([response.status, await response.text()]).toEqual([200, '']);
    }
    expect(server.metrics).toContain('watchmux_apiserver_watchers 0');
  });
});

test('a body of no type is JSON, but not from a page of another origin; what is no JSON is told as such', async () => {
  const { server } = rig({ allowedOrigins: ['http://page'] });
  const post = async (name: string, headers: Record<string, string> = {}): Promise<number> => {
    // Bytes: a text would have a type of its own.
    const body = new TextEncoder().encode(JSON.stringify({ ...ORDER, metadata: { name } }));
    return (await server.fetch(new Request(`http://a${ORDERS_PATH}`, { method: 'POST', headers, body }))).status;
  };
  expect(await post('a')).toBe(201);
  expect(await post('b', { origin: 'http://page' })).toBe(415);
  expect(await post('b', { origin: 'http://page', 'content-type': 'text/plain' })).toBe(415);
  expect(await post('b', { origin: 'http://page', ...JSON_TYPE })).toBe(201);
  expect(await post('b', { 'content-type': 'text/plain' })).toBe(415);
});

test('there is no subresource but status, of which nothing is created', async () => {
  const { call } = rig();
  await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
  for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
    const body = method === 'GET' || method === 'DELETE' ? undefined : { metadata: { name: 'a' } };
    expect((await call(method, `${ORDERS_PATH}/a/scale`, body)).code, method).toBe(404);
  }
  expect((await call('GET', `${ORDERS_PATH}/a/status`)).code).toBe(200);
  expect((await call('DELETE', `${ORDERS_PATH}/a/status`)).code).toBe(405);
});

describe('hostile input', () => {
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom(
      '__proto__',
      'constructor',
      'toString',
      '..',
      '%2e%2e',
      'orders',
      'default',
      'namespaces',
      'watch',
      'status',
      '\0',
      '😀',
      'a'.repeat(300),
    ),
  );
  const value: fc.Arbitrary<unknown> = fc.oneof(
    fc.jsonValue(),
    fc.record(
      { metadata: fc.dictionary(word, fc.jsonValue()), spec: fc.jsonValue(), status: fc.jsonValue() },
      { requiredKeys: [] },
    ),
    fc.record({
      apiVersion: word,
      kind: word,
      metadata: fc.record({ name: word, labels: fc.jsonValue(), finalizers: fc.jsonValue() }),
    }),
  );
  const method = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS');
  const parameter = fc.tuple(
    fc.constantFrom(
      'watch',
      'limit',
      'continue',
      'resourceVersion',
      'resourceVersionMatch',
      'labelSelector',
      'fieldSelector',
      'dryRun',
      'timeoutSeconds',
      'sendInitialEvents',
      '__proto__',
    ),
    fc.oneof(word, fc.constantFrom('1', 'true', '0', 'Exact', 'NotOlderThan', 'All', '-1', 'a in (b', 'a=b')),
  );

  test('no request is answered with 500, and every refusal is a Status', async () => {
    const errors: unknown[] = [];
    const { server, call } = rig({ onError: (error) => errors.push(error), minRequestTimeoutMs: 1 });
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    await fc.assert(
      fc.asyncProperty(
        method,
        fc.array(word, { maxLength: 4 }),
        fc.array(parameter, { maxLength: 4 }),
        value,
        async (verb, words, query, body) => {
          const search = new URLSearchParams(query).toString();
          const path =
            fc.sample(fc.constantFrom(ORDERS_PATH, `${ORDERS_PATH}/a`, '/apis/example.com/v1', '/api/v1/namespaces', ''), 1)[0] ??
            '';
          const target = `${path}/${words.map((each) => encodeURIComponent(each)).join('/')}?${search}`;
          const hasBody = verb !== 'GET' && verb !== 'HEAD';
          const abort = new AbortController();
          const response = await server.fetch(
            new Request(`http://127.0.0.1${target}`, {
              method: verb,
              signal: abort.signal,
              ...(hasBody && {
                body: JSON.stringify(body),
                headers: { 'content-type': verb === 'PATCH' ? 'application/merge-patch+json' : 'application/json' },
              }),
            }),
          );
          expect(response.status).not.toBe(500);
          if (response.status >= 400 && verb !== 'HEAD') {
            expect(await response.json()).toMatchObject({ kind: 'Status', status: 'Failure', code: response.status });
          } else await response.body?.cancel();
          abort.abort();
        },
      ),
      { numRuns: runs(300) },
    );
    expect(errors).toEqual([]);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    await server.shutdown();
  });

  test('members called __proto__ are kept as they are, and pollute nothing', async () => {
    const { call } = rig();
    const type = '"apiVersion":"example.com/v1","kind":"Order"';
    const text = `{${type},"metadata":{"name":"a"},"spec":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}`;
    expect((await call('POST', ORDERS_PATH, text)).code).toBe(201);
    const patch = '{"spec":{"__proto__":{"more":2}},"__proto__":{"polluted":3}}';
    expect((await call('PATCH', `${ORDERS_PATH}/a`, patch)).code).toBe(200);
    expect((await call('GET', `${ORDERS_PATH}/a`)).text).toContain('"__proto__":{"polluted":1,"more":2}');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test.each(['GET /healthz', `GET ${ORDERS_PATH}?watch=1`, `POST ${ORDERS_PATH}`])(
    'what comes behind a watch on its connection closes it: %s',
    async (line) => {
      const { port, server } = await open();
      const get = `GET ${ORDERS_PATH}?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n`;
      const behind = `${line} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`;
      for (const atOnce of [true, false]) {
        const socket = connect(port, '127.0.0.1');
        closing.push(() => socket.destroy());
        const closed = new Promise((resolve) => void socket.on('close', resolve));
        socket.on('error', () => {});
        socket.resume();
        socket.write(atOnce ? get + behind : get);
        if (!atOnce) {
          await eventually(() => expect(server.metrics).toContain('watchmux_apiserver_watchers 1'));
          socket.write(behind);
        }
        await closed;
        await eventually(() => expect(server.metrics).toContain('watchmux_apiserver_watchers 0'));
      }
    },
  );

  test('a watch behind a request that is not answered yet closes the connection, too', async () => {
    const { port, server } = await open({ authenticate: () => new Promise(() => {}) });
    const socket = connect(port, '127.0.0.1');
    closing.push(() => socket.destroy());
    const closed = new Promise((resolve) => void socket.on('close', resolve));
    socket.on('error', () => {});
    socket.resume();
    socket.write(`GET ${ORDERS_PATH} HTTP/1.1\r\nHost: a\r\n\r\nGET ${ORDERS_PATH}?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n`);
    await closed;
    expect(server.metrics).toContain('watchmux_apiserver_watchers_opened_total 0');
  });
});

test.each<[string, () => unknown]>([
  [
    'throws',
    () => {
      throw new Error('allowedOrigins is broken');
    },
  ],
  ['returns a promise', async () => true],
  ['rejects', () => Promise.reject(new Error('no database'))],
])('an allowedOrigins that %s admits no page, and that is told', async (_, allowedOrigins) => {
  const errors: unknown[] = [];
  const { call } = rig({ allowedOrigins: allowedOrigins as never, onError: (error) => errors.push((error as Error).message) });
  expect((await call('GET', ORDERS_PATH, undefined, { origin: 'http://page' })).code).toBe(403);
  expect(errors).toEqual([expect.stringMatching(/^allowedOrigins/)]);
});

test('a function is asked once whether an origin may connect', async () => {
  const asked: string[] = [];
  const { call } = rig({ allowedOrigins: (origin) => asked.push(origin) === 1 });
  const { code, headers } = await call('GET', ORDERS_PATH, undefined, { origin: 'http://page' });
  expect([code, headers.get('access-control-allow-origin'), asked]).toEqual([200, 'http://page', ['http://page']]);
});
