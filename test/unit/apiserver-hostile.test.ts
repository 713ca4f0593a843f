// Hostile clients of an API server: whatever they send, however slowly, and however much of it, the server stays up, says so in a
// Status, keeps nothing, and serves the others.
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ApiServerOptions } from '../../src/apiserver/index.ts';
import { PATIENCE } from '../../src/cli/server/server.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { eventually, until } from '../eventually.ts';
import { listening } from '../listening.ts';
import { runs } from '../runs.ts';
import { ORDER, ORDERS_PATH, rig } from './apiserver-rig.ts';

const RUNS = runs(300);
const CONFIG_MAPS_PATH = '/api/v1/namespaces/default/configmaps';

const closing = closers();

async function open(options: Partial<ApiServerOptions> = {}): Promise<ReturnType<typeof rig> & { url: string; port: number }> {
  const made = rig(options);
  const { http, url, close } = await listening(made.server);
  http.on('upgrade', made.server.upgrade); // without it, a handshake is an error that is told
  closing.push(close);
  return { ...made, url, port: Number(new URL(url).port) };
}

interface Client {
  readonly socket: Socket;
  readonly heard: () => string;
  readonly closed: Promise<void>;
}

function client(port: number, text: string = ''): Client {
  const socket = connect(port, '127.0.0.1');
  closing.push(() => socket.destroy());
  let heard = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    heard += chunk;
  });
  socket.on('error', () => {});
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  if (text !== '') socket.write(text);
  return { socket, heard: () => heard, closed };
}

/** Nothing in the prototype that all objects share. */
function isClean(): void {
  expect(Object.keys(Object.prototype)).toEqual([]);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
}

/** An answer that a client can make sense of: no 500, and a Status for every refusal. */
async function isSound(response: Response, method: string): Promise<void> {
  expect(response.status).not.toBe(500);
  if (response.status < 400 || method === 'HEAD') await response.body?.cancel();
  else expect(await response.json()).toMatchObject({ kind: 'Status', status: 'Failure', code: response.status });
}

const nasty = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    ...(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '..', '.', '%2e%2e', '%00', '%', '\0'] as const),
    ...(['default', 'orders', 'status', 'a', 'watch', 'true', '0', '-1', '1e309', 'NaN', 'null', '9'.repeat(40)] as const),
    ...(['a in (b', 'a=b,', '!a', 'a notin ()', 'metadata.name=a', 'spec.item!=', '😀', '\ud800', 'a'.repeat(5_000)] as const),
  ),
);

const header = fc.tuple(
  fc.constantFrom(
    ...(['accept', 'content-type', 'authorization', 'if-none-match', 'last-event-id', 'x-http-method-override'] as const),
    ...(['content-encoding', 'range', 'expect', 'cookie', 'sec-fetch-site', 'origin', 'upgrade-insecure-requests'] as const),
  ),
  fc.oneof(
    fc.constantFrom(
      ...([
        'application/json',
        'application/json;as=Table;v=v1;g=meta.k8s.io',
        '*/*',
        ';;;',
        'a/b;q=2',
        'gzip',
        'bytes=0-',
      ] as const),
      ...([
        'text/event-stream',
        'application/json-patch+json',
        'application/merge-patch+json',
        'Bearer x',
        '"',
        '"x", W/"y"',
      ] as const),
      ...([
        'application/vnd.kubernetes.protobuf',
        'application/strategic-merge-patch+json',
        'application/apply-patch+yaml',
      ] as const),
    ),
    fc.string({ unit: fc.constantFrom('a', ';', ',', '=', '"', '*', '/', ' ', 'q', '0') }),
  ),
);

const QUERY = [
  ...(['watch', 'limit', 'continue', 'resourceVersion', 'resourceVersionMatch', 'labelSelector', 'fieldSelector'] as const),
  ...([
    'dryRun',
    'timeoutSeconds',
    'sendInitialEvents',
    'allowWatchBookmarks',
    'propagationPolicy',
    '__proto__',
    'pretty',
  ] as const),
];

const body: fc.Arbitrary<string | Uint8Array<ArrayBuffer>> = fc.oneof(
  fc.json({ maxDepth: 4 }),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Uint8Array.from(bytes)),
  nasty,
  fc
    .record(
      { metadata: fc.oneof(fc.dictionary(nasty, fc.jsonValue()), fc.jsonValue()), spec: fc.jsonValue(), status: fc.jsonValue() },
      { requiredKeys: [] },
    )
    .map((value) => JSON.stringify({ ...ORDER, ...value })),
  fc.constantFrom(
    '{"__proto__":{"polluted":1}}',
    `${JSON.stringify(ORDER).slice(0, -1)},"metadata":{"name":"a","__proto__":{"polluted":1}},"constructor":{"prototype":{"polluted":1}}}`,
    '['.repeat(10_000),
    `{"a":${'['.repeat(127)}${']'.repeat(127)}}`,
    'k8s\0\n\x0b\n\x02v1\x12\x05Order',
    '\ufeff{}',
  ),
);

describe('a fuzzer', () => {
  test('over URLs, queries, headers and bodies: never a 500, always a Status', async () => {
    const errors: unknown[] = [];
    const { server, call } = rig({ onError: (error) => errors.push(error), minRequestTimeoutMs: 1 });
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const method = fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'PROPFIND', 'get');
    const base = fc.constantFrom(
      ORDERS_PATH,
      CONFIG_MAPS_PATH,
      `${ORDERS_PATH}/a`,
      '/api',
      '/apis/example.com/v1',
      '/openapi',
      '',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          method,
          base,
          words: fc.array(nasty, { maxLength: 3 }),
          query: fc.array(fc.tuple(fc.constantFrom(...QUERY), nasty), { maxLength: 4 }),
          headers: fc.array(header, { maxLength: 4 }),
          body,
        }),
        async (asked) => {
          const words = asked.words.map((word) => `/${encodeURIComponent(Buffer.from(word).toString())}`).join('');
          const search = new URLSearchParams(asked.query).toString();
          const hasBody = !['GET', 'HEAD', 'get'].includes(asked.method);
          const abort = new AbortController();
          const made = new Request(`http://a${asked.base}${words}?${search}`, {
            method: asked.method,
            headers: asked.headers,
            signal: abort.signal,
            ...(hasBody && { body: asked.body }),
          });
          await isSound(await server.fetch(made), made.method);
          abort.abort();
        },
      ),
      { numRuns: RUNS },
    );
    expect(errors).toEqual([]);
    isClean();
    await server.shutdown();
  });

  test('over patches of all types: never a 500, and what they leave can be read and deleted', async () => {
    const errors: unknown[] = [];
    const { server, call } = rig({ onError: (error) => errors.push(error) });
    const pointer = fc.oneof(
      fc.constantFrom(
        '',
        '/',
        '/spec',
        '/spec/list',
        '/spec/list/-',
        '/spec/list/0',
        '/spec/list/01',
        '/spec/list/1e9',
        '/~',
        '/~2',
      ),
      fc.constantFrom(
        '/metadata/name',
        '/metadata/uid',
        '/metadata',
        '/__proto__',
        '/__proto__/polluted',
        '/constructor/prototype/x',
      ),
      nasty.map((word) => `/${word}`),
    );
    const operation = fc.record(
      {
        op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'inc', '__proto__'),
        path: pointer,
        from: pointer,
        value: fc.oneof(fc.jsonValue(), fc.constant({ ['__proto__']: { polluted: 1 } })),
      },
      { requiredKeys: ['op'] },
    );
    const merge = fc.oneof(
      body,
      fc.constantFrom('{"$patch":"delete"}', '{"$retainKeys":["a"]}', '{"data":{"$patch":"replace"}}'),
    );
    const patch = fc.oneof(
      fc.tuple(
        fc.constant('application/json-patch+json'),
        fc.array(operation, { maxLength: 6 }).map((list) => JSON.stringify(list)),
      ),
      fc.tuple(
        fc.constantFrom('application/merge-patch+json', 'application/strategic-merge-patch+json', 'application/json-patch+json'),
        merge,
      ),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(ORDERS_PATH, CONFIG_MAPS_PATH),
        fc.array(patch, { maxLength: 4 }),
        async (path, patches) => {
          const made = await call('POST', path, { metadata: { name: 'p' }, data: { a: 'b' }, spec: { list: [1, 2], item: 'x' } });
          expect(made.code).toBe(201);
          for (const [type, sent] of patches) {
            const init = { method: 'PATCH', headers: { 'content-type': type }, body: sent };
            await isSound(await server.fetch(new Request(`http://a${path}/p`, init)), 'PATCH');
          }
          expect((await call('GET', `${path}/p`)).body.metadata.name).toBe('p');
          expect((await call('PATCH', `${path}/p`, { metadata: { finalizers: null } })).code).not.toBe(500);
          expect((await call('DELETE', `${path}/p`)).code).toBe(200);
          await eventually(async () => expect((await call('GET', `${path}/p`)).code).toBe(404));
        },
      ),
      { numRuns: Math.ceil(RUNS / 2) },
    );
    expect(errors).toEqual([]);
    isClean();
    await server.shutdown();
  });

  test('over the bytes of a connection: an answer or its end, and the next client is served', async () => {
    const errors: unknown[] = [];
    const { port, url } = await open({ onError: (error) => errors.push(error) });
    const line = fc.constantFrom(
      ...([
        'Host: a',
        'Content-Length: 5',
        'Content-Length: -1',
        'Content-Length: 99999999999',
        'Transfer-Encoding: chunked',
      ] as const),
      ...([
        'Expect: 100-continue',
        'Connection: close',
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Upgrade: h2c',
        'X: \x00',
      ] as const),
      ...(['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Protocol: a, b'] as const),
    );
    const target = fc.constantFrom(
      ORDERS_PATH,
      `${ORDERS_PATH}?watch=1`,
      '*',
      '//',
      'http://x/',
      '/\xff',
      `/${'a'.repeat(20_000)}`,
      '',
    );
    const head = fc
      .tuple(fc.constantFrom('GET', 'POST', 'CONNECT', 'TRACE', '\x16\x03\x01', 'G\0T'), target, fc.array(line, { maxLength: 6 }))
      .map(([method, path, lines]) =>
        Buffer.from(`${[`${method} ${path} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\nhello`, 'latin1'),
      );
    const bytes = fc.array(fc.oneof(head, fc.uint8Array({ maxLength: 60 })), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(bytes, async (parts) => {
        const { socket, heard, closed } = client(port);
        for (const part of parts) socket.write(part);
        await new Promise((resolve) => socket.write('\r\n', resolve));
        socket.end();
        await Promise.race([closed, eventually(() => expect(heard()).toContain('HTTP/1.1'))]);
        expect(heard()).not.toMatch(/^HTTP\/1\.1 500/m);
        socket.destroy();
      }),
      { numRuns: Math.ceil(RUNS / 5) },
    );
    expect((await fetch(`${url}${ORDERS_PATH}`)).status).toBe(200);
    expect(errors).toEqual([]);
  });
});

describe('selectors', () => {
  const thousands = (make: (at: number) => string, chars: number): string => {
    let text = '';
    for (let at = 0; text.length < chars; at++) text += `${text && ','}${make(at)}`;
    return text.slice(0, text.lastIndexOf(','));
  };
  test.each([
    ['of many terms', thousands((at) => `k${at}!=v${at}`, 4_000)],
    ['of one set', `a in (${thousands((at) => `v${at}`, 3_900)})`],
    ['of brackets', '('.repeat(4_000)],
    ['of commas', ','.repeat(4_000)],
    ['of spaces', ' '.repeat(4_000)],
    ['of one long name', 'a'.repeat(4_000)],
  ])('%s, up to the limit, are read in a time that grows with their length, for lists and watches', async (_what, selector) => {
    const { server, call } = rig({ maxUrlBytes: 100_000 });
    for (const kind of ['labelSelector', 'fieldSelector']) {
      const asked = encodeURIComponent(selector);
      for (const more of ['', '&watch=1&timeoutSeconds=1']) {
        const abort = new AbortController();
        const path = `http://a${ORDERS_PATH}?${kind}=${asked}${more}`;
        const response = await server.fetch(new Request(path, { signal: abort.signal }));
        await isSound(response, 'GET');
        abort.abort();
      }
      expect((await call('GET', `${ORDERS_PATH}?${kind}=${asked},${asked}`)).code).toBe(400);
    }
    await server.shutdown();
  });
});

/** A server with the timeouts of `watchmux serve`, shortened: node looks after them, and its clock is none of ours. */
async function impatient(
  options: Partial<ApiServerOptions> = {},
): Promise<ReturnType<typeof rig> & { port: number; http: Server }> {
  const made = rig(options);
  const patience = { ...PATIENCE, headersTimeout: 300, requestTimeout: 300, connectionsCheckingInterval: 50 };
  const http = createServer(patience, made.server.handler);
  await new Promise<void>((resolve) => void http.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    await made.server.shutdown();
    http.closeAllConnections();
    await new Promise<void>((resolve) => void http.close(() => resolve()));
  });
  return { ...made, http, port: (http.address() as AddressInfo).port };
}

describe('slow clients', () => {
  test('a body of which a byte comes now and then is given up, whichever verb it is for', async () => {
    const clock = new FakeClock();
    const { port, server } = await open({ clock, cache: false });
    await server.ready;
    const slow = ['POST', 'PUT', 'PATCH', 'DELETE'].map((method) => {
      const path = method === 'POST' ? ORDERS_PATH : `${ORDERS_PATH}/a`;
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      return client(port, `${method} ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nContent-Length: 50\r\n\r\n`);
    });
    await eventually(() => expect(clock.pending).toBe(slow.length));
    for (let second = 0; second < 59; second++) {
      for (const { socket } of slow) socket.write(' ');
      clock.advance(1_000);
    }
    expect(slow.map(({ heard }) => heard())).toEqual(['', '', '', '']);
    clock.advance(1_000);
    for (const { closed, heard } of slow) {
      await closed;
      expect(heard()).toMatch(/^HTTP\/1\.1 504 /);
    }
    expect(clock.pending).toBe(0);
  });

  test('a head that does not end, and a body that does not, are given up by the HTTP server of the command line', async () => {
    const { port, call, server } = await impatient({ maxConcurrentRequests: 1 });
    const head = client(port, `GET ${ORDERS_PATH} HTTP/1.1\r\nHost: a\r\n`);
    const post = client(
      port,
      `POST ${ORDERS_PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n`,
    );
    await Promise.all([head.closed, post.closed]);
    expect(head.heard()).toMatch(/^HTTP\/1\.1 408 /);
    await eventually(async () => expect((await call('GET', ORDERS_PATH)).code).toBe(200));
    expect(server.metrics).toContain('watchmux_apiserver_requests_total{code="499"} 1');
  });

  test('one that reads a long list byte by byte gets all of it, holds one place, and delays nobody', async () => {
    const { port, call, server, url } = await open({ maxConcurrentRequestsPerAddress: 1 });
    const item = 'x'.repeat(100_000);
    for (let at = 0; at < 100; at++) await call('POST', ORDERS_PATH, { metadata: { name: `a${at}` }, spec: { item } });
    const socket = connect(port, '127.0.0.1');
    closing.push(() => socket.destroy());
    socket.write(`GET ${ORDERS_PATH} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    let bytes = 0;
    /** Takes one byte, as a client that is slow on purpose does. */
    const sip = async (): Promise<void> => {
      for (;;) {
        if (socket.read(1) !== null) break;
        await new Promise((resolve) => void socket.once('readable', resolve));
      }
      bytes++;
    };
    for (let at = 0; at < 50; at++) {
      await sip();
      expect((await call('GET', `${ORDERS_PATH}/a1`)).code).toBe(200);
    }
    expect((await fetch(`${url}${ORDERS_PATH}?limit=1`)).status).toBe(429);
    socket.on('data', (chunk) => {
      bytes += chunk.length;
    });
    await new Promise((resolve) => void socket.once('close', resolve));
    expect(bytes).toBeGreaterThan(100 * item.length);
    expect(server.metrics).toContain('requests_by_verb_total{verb="list"} 1');
  });

  test('one that never reads a long list is cut, and one that reads is not', async () => {
    const clock = new FakeClock();
    const cuts: string[] = [];
    const { port, call } = await open({ clock, cache: false, onCut: ({ reason, verb }) => cuts.push(`${verb} ${reason}`) });
    const item = 'x'.repeat(1_000_000);
    for (let at = 0; at < 16; at++) await call('POST', ORDERS_PATH, { metadata: { name: `a${at}` }, spec: { item } });
    const get = `GET ${ORDERS_PATH} HTTP/1.1\r\nHost: a\r\n\r\n`;
    const [never, slow] = [client(port, get), client(port, get)];
    never.socket.pause();
    await eventually(() => expect(slow.heard()).toContain('HTTP/1.1 200'));
    const isWhole = (): boolean => slow.heard().endsWith('0\r\n\r\n');
    // Each tick of the stall timer finds that something was taken, more than waits in the system's buffers.
    await until(async () => {
      const goal = slow.heard().length + 4_000_000;
      slow.socket.pause();
      clock.advance(7_500);
      slow.socket.resume();
      await until(() => slow.heard().length > goal || isWhole());
      return cuts.length > 0;
    });
    await until(isWhole);
    expect(cuts).toEqual(['list stalled']);
  });
});

describe('ten thousand watchers of one client', () => {
  test('get its share; the rest is told 429, nobody else waits, and nothing is left when they have gone', async () => {
    const { server, call } = rig({ minRequestTimeoutMs: 0, stallTimeoutMs: 0 });
    const from = { remoteAddr: { hostname: '10.0.0.1' } };
    const watch = (): Request => new Request(`http://a${ORDERS_PATH}?watch=1`);
    const responses: Response[] = [];
    for (let at = 0; at < 10_000; at++) responses.push(await server.fetch(watch(), from));
    const served = responses.filter(({ status }) => status === 200);
    expect(served).toHaveLength(1_000);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(9_000);
    const other = await server.fetch(watch(), { remoteAddr: { hostname: '10.0.0.2' } });
    expect(other.status).toBe(200);
    expect((await call('POST', ORDERS_PATH, { metadata: { name: 'a' } })).code).toBe(201);
    const reader = (other.body as ReadableStream<Uint8Array>).getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toContain('"ADDED"');
    await reader.cancel();
    for (const { body: stream } of served) await stream?.cancel();
    expect(server.metrics).toMatch(/^watchmux_apiserver_watchers 0$/m);
    expect((await server.fetch(watch(), from)).status).toBe(200);
    await server.shutdown({ signal: AbortSignal.abort() });
  });
});
