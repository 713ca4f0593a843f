// Watches over HTTP: headers, events, ends, and who is told what. Upstream: watch_test.go and websocket_test.go of apiserver/endpoints.
import { connect, type Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { ApiServer, type ApiServerOptions, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { Storage } from '../../src/storage/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { expired, refused, tooLarge } from '../../src/storage/statuses.ts';
import { FakeClock, FakeWatcher } from '../../src/testing/index.ts';
import { toStatus } from '../../src/watch/event.ts';
import { closers } from '../closing.ts';
import { until } from '../eventually.ts';
import { listening } from '../listening.ts';
import { ORDER, ORDERS, ORDERS_PATH, type Order, rig } from './apiserver-rig.ts';

const closing = closers();

async function open(
  options: Partial<ApiServerOptions> = {},
): Promise<ReturnType<typeof rig> & { url: string; closeServer: () => Promise<void> }> {
  const made = rig({ cache: false, ...options });
  const { url, http, close } = await listening(made.server);
  http.on('upgrade', made.server.upgrade);
  closing.push(close);
  return { ...made, url, closeServer: close };
}

/** Opens a watch, and reads it line by line. */
async function watch(url: string, headers: Record<string, string> = {}): Promise<Lines> {
  const abort = new AbortController();
  const response = await fetch(url, { headers, signal: abort.signal });
  closing.push(() => abort.abort());
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const utf8 = new TextDecoder();
  let text = '';
  const line = async (): Promise<string | undefined> => {
    while (!text.includes('\n')) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += utf8.decode(value, { stream: true });
    }
    const at = text.indexOf('\n');
    const first = text.slice(0, at);
    text = text.slice(at + 1);
    return first;
  };
  return { response, line, event: async () => JSON.parse((await line()) ?? 'null'), leave: () => abort.abort() };
}

interface Lines {
  readonly response: Response;
  line(): Promise<string | undefined>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what came over the wire
  event(): Promise<any>;
  leave(): void;
}

describe('a request of the fetch handler', () => {
  test('that is aborted ends its watch at once, and its body with an error; nothing stays on its signal', async () => {
    const { server } = rig({ cache: false });
    closing.push(() => server.shutdown({ signal: AbortSignal.abort() }));
    await server.ready;
    const abort = new AbortController();
    const request = new Request(`http://a${ORDERS_PATH}?watch=1&resourceVersion=1`, { signal: abort.signal });
    const added = vi.spyOn(request.signal, 'addEventListener');
    const removed = vi.spyOn(request.signal, 'removeEventListener');
    const { body } = await server.fetch(request);
    expect(server.stats.watchers).toBe(1);
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    const read = reader.read();
    abort.abort();
    expect(server.stats.watchers).toBe(0);
    await expect(read).rejects.toThrow();
    for (const [type, listener] of added.mock.calls) expect(removed).toHaveBeenCalledWith(type, listener);
    expect(added).toHaveBeenCalled();
  });

  test('whose watch ends leaves nothing on its signal', async () => {
    const { server } = rig({ cache: false });
    closing.push(() => server.shutdown({ signal: AbortSignal.abort() }));
    await server.ready;
    const request = new Request(`http://a${ORDERS_PATH}?watch=1&resourceVersion=1`, { signal: new AbortController().signal });
    const added = vi.spyOn(request.signal, 'addEventListener');
    const removed = vi.spyOn(request.signal, 'removeEventListener');
    const { body } = await server.fetch(request);
    await body?.cancel();
    expect(server.stats.watchers).toBe(0);
    for (const [type, listener] of added.mock.calls) expect(removed).toHaveBeenCalledWith(type, listener);
    expect(added).toHaveBeenCalled();
  });
});

test('a peer of a watch that vanishes silently is asked for after a minute; not that of a list', async () => {
  const { server, call } = rig({ cache: false });
  const { url, http, close } = await listening(server);
  closing.push(close);
  // As much as is sent bit by bit.
  for (const name of ['a', 'b', 'c', 'd']) await call('POST', ORDERS_PATH, { metadata: { name }, note: 'x'.repeat(400_000) });
  const probed: unknown[][] = [];
  http.on('connection', (socket: Socket) => {
    const { setKeepAlive } = socket;
    socket.setKeepAlive = (...args) => {
      probed.push(args);
      return setKeepAlive.apply(socket, args);
    };
  });
  const of = async (query: string): Promise<unknown[][]> => {
    probed.length = 0;
    const lines = await watch(`${url}${ORDERS_PATH}?${query}`);
    expect(lines.response.status).toBe(200);
    const seen = [...probed];
    lines.leave();
    return seen;
  };
  expect(await of('watch=1&resourceVersion=1')).toEqual([[true, 60_000]]);
  expect(await of('')).toEqual([]);
});

/** A storage whose watches are what a test says. */
function watching(storage: Storage, watch: Storage['watch']): Storage {
  const scoped = (of: Storage): Storage =>
    new Proxy(of, {
      get: (target, name) => {
        if (name === 'watch') return watch;
        // The server itself watches namespaces.
        const isOwn = (prefix: string): boolean => prefix === 'core/namespaces/';
        if (name === 'scope')
          return (...args: Parameters<Storage['scope']>) =>
            isOwn(args[0]) ? target.scope(...args) : scoped(target.scope(...args));
        const value = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  return scoped(storage);
}

describe('a watch over HTTP', () => {
  test('its headers come before any event, and it tells changes as they happen', async () => {
    const { url, call } = await open();
    const { body } = await call('GET', ORDERS_PATH);
    const { response, event } = await watch(`${url}${ORDERS_PATH}?watch=true&resourceVersion=${body.metadata.resourceVersion}`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('transfer-encoding')).toBe('chunked');
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    expect(await event()).toMatchObject({
      type: 'ADDED',
      object: { kind: 'Order', apiVersion: 'example.com/v1', metadata: { name: 'a' } },
    });
    await call('DELETE', `${ORDERS_PATH}/a`);
    const deleted = await event();
    expect(deleted).toMatchObject({ type: 'DELETED', object: { metadata: { name: 'a' } } });
  });

  test('sendInitialEvents: the state, the annotated BOOKMARK with kind and version, then changes', async () => {
    const { url, call } = await open();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const { event } = await watch(`${url}${ORDERS_PATH}?${query}`);
    expect((await event()).type).toBe('ADDED');
    expect(await event()).toEqual({
      type: 'BOOKMARK',
      object: {
        kind: 'Order',
        apiVersion: 'example.com/v1',
        metadata: { resourceVersion: expect.any(String), annotations: { 'k8s.io/initial-events-end': 'true' } },
      },
    });
  });

  test('without bookmarks there is none, whatever the client asks for', async () => {
    const { url, call } = await open();
    const created = await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    for (const query of [
      'watch=1',
      'watch=1&resourceVersion=0',
      'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
      `watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=${created.body.metadata.resourceVersion}`,
    ]) {
      const { event, leave } = await watch(`${url}${ORDERS_PATH}?${query}`);
      expect((await event()).type).toBe('ADDED');
      await call('PATCH', `${ORDERS_PATH}/a`, { spec: { count: Math.ceil(Math.random() * 1e9) } });
      expect((await event()).type).toBe('MODIFIED');
      leave();
    }
  });

  test('sendInitialEvents=false begins now', async () => {
    const { url, call } = await open();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const { event } = await watch(`${url}${ORDERS_PATH}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan`);
    await call('POST', ORDERS_PATH, { metadata: { name: 'b' } });
    expect((await event()).object.metadata.name).toBe('b');
  });

  test('one object can be watched, by its path and by the old prefix', async () => {
    const { url, call } = await open();
    for (const name of ['a', 'b']) await call('POST', ORDERS_PATH, { metadata: { name } });
    for (const path of [`${ORDERS_PATH}/b?watch=1`, ORDERS_PATH.replace('/v1/', '/v1/watch/').concat('/b')]) {
      const { event } = await watch(url + path);
      expect((await event()).object.metadata.name).toBe('b');
    }
    expect((await fetch(`${url}${ORDERS_PATH}/b?watch=1&fieldSelector=metadata.name%3Da`)).status).toBe(400);
    const outside = ORDERS_PATH.replace('/namespaces/default', '');
    for (const path of [`${outside}/b?watch=1`, outside.replace('/v1/', '/v1/watch/').concat('/b')])
      expect((await fetch(url + path, { signal: AbortSignal.timeout(5_000) })).status, path).toBe(404);
    const part = await fetch(`${url}${ORDERS_PATH}/b/status?watch=1`);
    expect([part.status, ((await part.json()) as Order).metadata?.name]).toEqual([200, 'b']);
  });

  test('a burst is one write', async () => {
    const { url, server, call } = await open();
    const orders = server.resource<Order>('orders.example.com/v1').in('default');
    const { body } = await call('GET', ORDERS_PATH);
    const socket = raw(
      url,
      `GET ${ORDERS_PATH}?watch=1&resourceVersion=${body.metadata.resourceVersion} HTTP/1.1\r\nHost: a\r\n\r\n`,
    );
    await socket.until('\r\n\r\n');
    for (let at = 0; at < 50; at++) await orders.create({ metadata: { name: `a${at}` } });
    await socket.until('"a49"');
    const chunks = socket.text
      .split('\r\n\r\n')
      .slice(1)
      .join('\r\n\r\n')
      .match(/^[0-9a-f]+\r\n/gm);
    expect(chunks?.length).toBeLessThan(6);
  });

  test('TestWatchHTTPTimeout: timeoutSeconds ends it cleanly, with no event more, and the watch behind it is stopped', async () => {
    const clock = new FakeClock();
    const storage = new MemoryStorage();
    const fake = new FakeWatcher<never>();
    const { url } = await open({ clock, storage: watching(storage, async () => fake as never) });
    const { line } = await watch(`${url}${ORDERS_PATH}?watch=1&timeoutSeconds=10`);
    clock.advance(9_999);
    const end = line();
    clock.advance(1);
    expect(await end).toBeUndefined();
    expect(fake.stopped).toBe(true);
  });

  test('without timeoutSeconds it lasts between once and twice the least time; 0: for ever', async () => {
    const clock = new FakeClock();
    const fakes: FakeWatcher<never>[] = [];
    const storage = watching(new MemoryStorage(), async () => {
      fakes.push(new FakeWatcher<never>());
      return fakes.at(-1) as never;
    });
    const first = await open({ clock, storage, random: () => 0.5, minRequestTimeoutMs: 1_000 });
    const { line } = await watch(`${first.url}${ORDERS_PATH}?watch=1`);
    clock.advance(1_499);
    expect(fakes[0]?.stopped).toBe(false);
    clock.advance(1);
    expect(await line()).toBeUndefined();
    const second = await open({ clock, storage, minRequestTimeoutMs: 0, stallTimeoutMs: 0 });
    await watch(`${second.url}${ORDERS_PATH}?watch=1`);
    clock.advance(2 ** 40);
    expect(fakes[1]?.stopped).toBe(false);
  });

  test('TestWatchHTTPErrors: what fails in the stream is an ERROR inside 200, and then the end', async () => {
    const storage = new MemoryStorage();
    const fake = new FakeWatcher<never>();
    const { url } = await open({ storage: watching(storage, async () => fake as never) });
    const { response, event, line } = await watch(`${url}${ORDERS_PATH}?watch=1`);
    const status = toStatus({ code: 500, reason: 'InternalError', message: 'we got an error' });
    void fake.action('ERROR' as never, status as never);
    fake.stop();
    expect(response.status).toBe(200);
    expect(await event()).toEqual({ type: 'ERROR', object: status });
    expect(await line()).toBeUndefined();
  });

  test('TestWatchHTTPErrorsBeforeServe: what is refused before is a plain Status', async () => {
    const storage = watching(new MemoryStorage(), async () => {
      throw refused(429, 'TooManyRequests', 'not ready', { retryAfterSeconds: 3 });
    });
    const { url } = await open({ storage });
    const response = await fetch(`${url}${ORDERS_PATH}?watch=1`);
    expect(response.status).toBe(429);
    expect(response.headers.get('retry-after')).toBe('3');
    expect(await response.json()).toMatchObject({ kind: 'Status', message: 'not ready' });
  });

  test('a version that is too old, and one that has not come, are ERRORs inside 200', async () => {
    const { url } = await open({ storage: new MemoryStorage({ maxHistoryItems: 1 }) });
    for (let at = 0; at < 3; at++) {
      const body = JSON.stringify({ ...ORDER, metadata: { name: `a${at}` } });
      await fetch(url + ORDERS_PATH, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    }
    const old = await watch(`${url}${ORDERS_PATH}?watch=1&resourceVersion=1`);
    expect(old.response.status).toBe(200);
    expect(await old.event()).toMatchObject({
      type: 'ERROR',
      object: { kind: 'Status', apiVersion: 'v1', code: 410, reason: 'Expired' },
    });
    expect(await old.line()).toBeUndefined();
  });

  test.each([
    ['410', expired('1', '2'), 'Expired'],
    ['504', tooLarge('9', '2'), 'Timeout'],
  ])('%s of a storage that rejects is told inside 200, too', async (code, error, reason) => {
    const { url } = await open({ storage: watching(new MemoryStorage(), () => Promise.reject(error)) });
    const { response, event, line } = await watch(`${url}${ORDERS_PATH}?watch=1&resourceVersion=1`);
    expect(response.status).toBe(200);
    expect(await event()).toMatchObject({ type: 'ERROR', object: { code: Number(code), reason } });
    expect(await line()).toBeUndefined();
  });

  test('a long body of a watch closes its connection', async () => {
    const { url } = await open();
    const socket = raw(url, `GET ${ORDERS_PATH}?watch=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n`);
    const closed = new Promise((resolve) => void socket.socket.on('close', resolve));
    await socket.until('200 OK');
    socket.socket.write('x'.repeat(100_000));
    await closed;
  });

  test('an error that nobody expected is an ERROR 500 that does not tell it, and the owner hears of it', async () => {
    const errors: unknown[] = [];
    const fake = new FakeWatcher<never>();
    const { url } = await open({
      storage: watching(new MemoryStorage(), async () => fake as never),
      onError: (error) => errors.push(error),
    });
    const { event, line } = await watch(`${url}${ORDERS_PATH}?watch=1`);
    const cyclic: Record<string, unknown> = { metadata: { name: 'secret' } };
    cyclic.self = cyclic;
    void fake.action('ADDED' as never, cyclic as never);
    expect(await event()).toMatchObject({ type: 'ERROR', object: { code: 500, message: 'Internal error occurred' } });
    expect(await line()).toBeUndefined();
    expect(errors).toHaveLength(1);
    expect(fake.stopped).toBe(true);
  });

  test('TestWatchClientClose: a client that leaves stops the watch behind', async () => {
    const fake = new FakeWatcher<never>();
    const { url } = await open({ storage: watching(new MemoryStorage(), async () => fake as never) });
    const { leave } = await watch(`${url}${ORDERS_PATH}?watch=1`);
    leave();
    await expect.poll(() => fake.stopped).toBe(true);
  });

  test('TestWatchParamParsing: version, selectors and namespace reach the storage unaltered', async () => {
    const seen: unknown[] = [];
    const storage = watching(new MemoryStorage(), async ({ signal: _, ...options } = {}) => {
      seen.push(options);
      return new FakeWatcher<never>() as never;
    });
    const { url } = await open({ storage });
    const query =
      'watch=true&resourceVersion=1234&labelSelector=name%3Dfoo&fieldSelector=metadata.name%3Dx&timeoutSeconds=7&allowWatchBookmarks=1';
    await watch(`${url}${ORDERS_PATH}?${query}`);
    expect(seen).toEqual([
      {
        resourceVersion: '1234',
        labelSelector: 'name=foo',
        fieldSelector: 'metadata.name=x',
        timeoutSeconds: 7,
        allowWatchBookmarks: true,
      },
    ]);
  });

  test('a server that shuts down ends its watches cleanly, refuses what comes, and leaves nothing', async () => {
    const clock = new FakeClock();
    const fake = new FakeWatcher<never>();
    const made = await open({ clock, storage: watching(new MemoryStorage(), async () => fake as never) });
    const { line } = await watch(`${made.url}${ORDERS_PATH}?watch=1`);
    const inProcess = await made.server.resource('orders.example.com/v1').watch();
    await made.server.shutdown();
    expect(await line()).toBeUndefined();
    expect(fake.stopped).toBe(true);
    expect(clock.pending).toBe(0);
    void inProcess.return();
    expect((await made.call('GET', ORDERS_PATH)).code).toBe(503);
    await expect(made.server.resource('orders.example.com/v1').list()).rejects.toMatchObject({ code: 'CLOSED' });
    await made.server.shutdown();
  });

  test('with caches, too, nothing is left: no timer, no watch, and what comes later is CLOSED', async () => {
    const clock = new FakeClock();
    const { server, storage } = rig({ clock, cache: true });
    const orders = server.resource<Order>('orders.example.com/v1').in('default');
    await orders.create({ metadata: { name: 'a' } });
    const watch = await orders.watch({ sendInitialEvents: true, timeoutSeconds: 60 });
    await orders.list();
    expect(clock.pending).toBeGreaterThan(0);
    await server.shutdown();
    expect(clock.pending).toBe(0);
    while (!(await watch.next()).done);
    await expect(orders.list()).rejects.toMatchObject({ code: 'CLOSED' });
    expect(await storage.scope('example.com/orders/').get('default/a')).toBeDefined();
  });

  test('its own watches of a real storage end, too', async () => {
    const { server } = rig({ cache: false });
    const inProcess = await server.resource<Order>('orders.example.com/v1').watch();
    const pending = inProcess.next();
    await server.shutdown();
    expect((await pending).done).toBe(true);
  });
});

describe('a client that does not read', () => {
  test('holds what a socket holds, and the watch is not read meanwhile; it is cut when nothing moves for the stall timeout', async () => {
    const clock = new FakeClock();
    const fake = new FakeWatcher<never>();
    const made = await open({
      clock,
      storage: watching(new MemoryStorage(), async () => fake as never),
      maxBufferedBytes: 65_536,
    });
    const socket = raw(made.url, `GET ${ORDERS_PATH}?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n`);
    await socket.until('\r\n\r\n');
    socket.socket.pause();
    const object = { metadata: { name: 'a' }, text: 'x'.repeat(100_000) };
    let sent = 0;
    const feed = async (): Promise<void> => {
      for (; sent < 400; sent++) await fake.action('ADDED' as never, object as never);
    };
    void feed().catch(() => {});
    let before = 0;
    await until(() => {
      if (sent > 0 && sent === before) clock.advance(7_500);
      before = sent;
      return fake.stopped;
    });
    expect(sent).toBeLessThan(400);
    expect(made.server.metrics).toContain('watchmux_apiserver_watchers_stalled_total 1');
  });
});

describe('TestWatchHTTPAccept', () => {
  test.each([
    [undefined, 200, 'application/json'],
    ['*/*', 200, 'application/json'],
    ['application/json', 200, 'application/json'],
    ['application/json;stream=watch', 200, 'application/json'],
    ['application/vnd.kubernetes.protobuf,application/json', 200, 'application/json'],
    ['text/event-stream', 200, 'text/event-stream'],
    ['application/yaml', 406, 'application/json'],
    ['application/json;stream=other', 406, 'application/json'],
    ['application/vnd.kubernetes.protobuf', 406, 'application/json'],
    ['application/json;q=0', 406, 'application/json'],
  ])('%s is %i %s', async (accept, code, type) => {
    const { url } = await open();
    const { response } = await watch(`${url}${ORDERS_PATH}?watch=1&timeoutSeconds=1`, accept === undefined ? {} : { accept });
    expect(response.status).toBe(code);
    expect(response.headers.get('content-type')).toBe(type);
  });
});

describe('tables and compression', () => {
  test('TestWatchTable: each event is a table of one row, the columns come once, and a BOOKMARK has its row', async () => {
    const { url, call } = await open();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    for (const [includeObject, kind] of [
      ['', 'PartialObjectMetadata'],
      ['&includeObject=Object', 'Order'],
      ['&includeObject=None', undefined],
    ]) {
      const { event, leave } = await watch(`${url}${ORDERS_PATH}?${query}${includeObject}`, {
        accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      });
      const [added, end] = [await event(), await event()];
      const changed = call('PATCH', `${ORDERS_PATH}/a`, { spec: { count: Math.ceil(Math.random() * 1e9) } });
      const modified = await event();
      const version = (await changed).body.metadata.resourceVersion;
      leave();
      expect([added, end, modified].map(({ type }) => type)).toEqual(['ADDED', 'BOOKMARK', 'MODIFIED']);
      for (const { object } of [added, end, modified])
        expect(object).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
      expect(added.object.columnDefinitions[0]).toMatchObject({ name: 'Name', type: 'string' });
      expect([end, modified].map(({ object }) => object.columnDefinitions)).toEqual([null, null]);
      expect([added, end, modified].map(({ object }) => object.rows.length)).toEqual([1, 1, 1]);
      expect(end.object.rows[0].object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' });
      expect(modified.object.rows[0].cells[0]).toBe('a');
      expect(modified.object.rows[0].object?.kind).toBe(kind);
      expect(modified.object.metadata.resourceVersion).toBe(version);
    }
  });

  test('TestWatchServerCompression: no watch is compressed, whatever the client accepts', async () => {
    const { url, call } = await open();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' }, spec: { item: 'x'.repeat(200_000) } });
    const state = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    for (const query of ['watch=1', `watch=1&${state}`]) {
      const { response, line, leave } = await watch(`${url}${ORDERS_PATH}?${query}`, { 'accept-encoding': 'gzip' });
      expect(response.headers.get('content-encoding')).toBeNull();
      expect(await line()).toContain('"name":"a"');
      leave();
    }
  });
});

describe('Server-Sent Events', () => {
  test('each after the state has its version as id, and a client that comes back continues there', async () => {
    const { url, call } = await open();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    const { body } = await call('POST', ORDERS_PATH, { metadata: { name: 'b' } });
    const first = await watch(`${url}${ORDERS_PATH}?watch=1`, { accept: 'text/event-stream' });
    expect(await first.line()).toMatch(/^retry: \d+$/);
    expect(await first.line()).toBe('');
    for (const expected of [/^data: .*"name":"a"/, /^$/, /^data: .*"name":"b"/, /^$/, /^id: \d+$/, /^event: bookmark$/, /^data$/])
      expect(await first.line()).toMatch(expected);
    const back = await watch(`${url}${ORDERS_PATH}?watch=1`, {
      accept: 'text/event-stream',
      'last-event-id': body.metadata.resourceVersion,
    });
    await call('POST', ORDERS_PATH, { metadata: { name: 'c' } });
    for (const expected of [/^retry/, /^id: /, /^event: bookmark$/, /^data$/, /^$/, /^id: /, /"name":"c"/])
      expect(await back.line()).toMatch(expected);
  });
});

describe('over WebSocket', () => {
  const socketTo = (url: string, protocols?: string | string[], headers: Record<string, string> = {}): WebSocket => {
    const socket = new WebSocket(url.replace('http', 'ws'), protocols, { headers });
    closing.push(() => socket.terminate());
    return socket;
  };
  const outcome = (socket: WebSocket): Promise<string> =>
    new Promise((resolve) => {
      socket.on('open', () => resolve('open'));
      socket.on('error', ({ message }) => resolve(message));
    });

  test('TestWatchWebsocket: one text message per event', async () => {
    const { url, call } = await open();
    const socket = socketTo(`${url}${ORDERS_PATH}?watch=1`);
    const messages: string[] = [];
    socket.on('message', (data, isBinary) => messages.push(`${isBinary}${data}`));
    expect(await outcome(socket)).toBe('open');
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    await call('DELETE', `${ORDERS_PATH}/a`);
    await expect.poll(() => messages.length).toBe(2);
    expect(messages.map((each) => each.slice(0, 22))).toEqual(['false{"type":"ADDED","', 'false{"type":"DELETED"']);
  });

  test('TestWatchRead: the same events over every transport and media type', async () => {
    const { url, call } = await open();
    const path = `${url}${ORDERS_PATH}?watch=1`;
    const told: Record<string, unknown[]> = { socket: [], plain: [], stream: [] };
    const socket = socketTo(path);
    socket.on('message', (data) => told.socket?.push(JSON.parse(String(data))));
    expect(await outcome(socket)).toBe('open');
    const plain = await watch(path, { accept: 'application/json;stream=watch' });
    const stream = await watch(path, { accept: 'text/event-stream' });
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' }, spec: { item: 'tea\n' } });
    await call('PATCH', `${ORDERS_PATH}/a`, { spec: { count: 1 } });
    await call('DELETE', `${ORDERS_PATH}/a`);
    for (let at = 0; at < 3; at++) told.plain?.push(await plain.event());
    while ((told.stream?.length ?? 0) < 3) {
      const line = (await stream.line()) ?? '';
      if (line.startsWith('data: ')) told.stream?.push(JSON.parse(line.slice('data: '.length)));
    }
    await expect.poll(() => told.socket?.length).toBe(3);
    expect(told.plain?.map((each) => (each as { type: string }).type)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
    expect(told.socket).toEqual(told.plain);
    expect(told.stream).toEqual(told.plain);
  });

  test('TestWatchWebsocketClientClose: what the client sends is ignored, and its close ends the watch', async () => {
    const fake = new FakeWatcher<never>();
    const { url } = await open({ storage: watching(new MemoryStorage(), async () => fake as never) });
    const socket = socketTo(`${url}${ORDERS_PATH}?watch=1`);
    expect(await outcome(socket)).toBe('open');
    socket.send('{}');
    void fake.action('ADDED' as never, { metadata: { name: 'a' } } as never);
    await new Promise((resolve) => void socket.once('message', resolve));
    expect(fake.stopped).toBe(false);
    socket.close();
    await expect.poll(() => fake.stopped).toBe(true);
  });

  test('its end is a close, when the time is over and when the server shuts down', async () => {
    const clock = new FakeClock();
    const { url, server } = await open({ clock });
    const closes = (socket: WebSocket): Promise<number> => new Promise((resolve) => void socket.on('close', resolve));
    const first = socketTo(`${url}${ORDERS_PATH}?watch=1&timeoutSeconds=5`);
    expect(await outcome(first)).toBe('open');
    const ended = closes(first);
    clock.advance(5_000);
    expect(await ended).toBe(1000);
    const second = socketTo(`${url}${ORDERS_PATH}?watch=1`);
    expect(await outcome(second)).toBe('open');
    const left = closes(second);
    await server.shutdown();
    expect(await left).toBe(1000);
    expect(clock.pending).toBe(0);
  });

  test('a client that never answers the close holds a shutdown for five seconds, and no longer', async () => {
    const clock = new FakeClock();
    const { url, server } = await open({ clock, stallTimeoutMs: 0, minRequestTimeoutMs: 0 });
    const upgrade = 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
    const silent = raw(url, `GET ${ORDERS_PATH}?watch=1 HTTP/1.1\r\nHost: a\r\n${upgrade}Sec-WebSocket-Version: 13\r\n\r\n`);
    await silent.until('101 Switching');
    let isDown = false;
    const down = server.shutdown().then(() => {
      isDown = true;
    });
    // The reason in its close frame.
    await silent.until('timeout');
    clock.advance(4_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(isDown).toBe(false);
    clock.advance(1);
    await down;
    expect(clock.pending).toBe(0);
  });

  test('a token comes as a subprotocol, and is never echoed', async () => {
    const tokens: unknown[] = [];
    const { url } = await open({
      authenticate: (request) => {
        tokens.push((request as { headers: Record<string, string> }).headers.authorization);
        return 'somebody';
      },
    });
    const bearer = `base64url.bearer.authorization.k8s.io.${Buffer.from('tök').toString('base64url')}`;
    const good = `base64url.bearer.authorization.k8s.io.${Buffer.from('secret').toString('base64url')}`;
    const path = `${url}${ORDERS_PATH}?watch=1`;
    const socket = socketTo(path, [good, 'other.k8s.io']);
    expect(await outcome(socket)).toBe('open');
    expect(socket.protocol).toBe('other.k8s.io');
    expect(tokens).toEqual(['Bearer secret']);
    expect(await outcome(socketTo(path, [good]))).toContain('400');
    expect(await outcome(socketTo(path, [good, bearer, 'x']))).toContain('400');
    expect(await outcome(socketTo(path, [bearer, 'x']))).toContain('400');
    expect(await outcome(socketTo(path, ['x', 'y']))).toContain('400');
  });

  test('refusals come before the handshake; only a watch can be one', async () => {
    const { url } = await open({ authorize: (verb) => verb !== 'watch' });
    expect(await outcome(socketTo(`${url}${ORDERS_PATH}?watch=1`))).toContain('403');
    expect(await outcome(socketTo(`${url}${ORDERS_PATH}`))).toContain('200');
    expect(await outcome(socketTo(`${url}/nothing?watch=1`))).toContain('404');
    expect(await outcome(socketTo(`${url}${ORDERS_PATH}?watch=1`, undefined, { origin: 'http://evil.example' }))).toContain(
      '403',
    );
  });

  test('a refusal has its Status as a body', async () => {
    const { url } = await open();
    const upgrade = 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
    for (const [version, code] of [
      ['13', 404],
      ['8', 400],
    ] as const) {
      const socket = raw(url, `GET /nothing HTTP/1.1\r\nHost: a\r\n${upgrade}Sec-WebSocket-Version: ${version}\r\n\r\n`);
      await socket.until('"kind":"Status"');
      expect(socket.text).toMatch(new RegExp(`^HTTP/1.1 ${code} `));
    }
  });

  test('a client that floods is cut', async () => {
    const { url, server } = await open();
    const socket = socketTo(`${url}${ORDERS_PATH}?watch=1`);
    expect(await outcome(socket)).toBe('open');
    const closed = new Promise((resolve) => void socket.on('close', resolve));
    for (let at = 0; at < 200; at++) socket.send('x');
    await closed;
    await expect.poll(() => server.metrics).toContain('watchmux_apiserver_watchers 0');
  });

  test('TestWatchProtocolSelection: an upgrade to something else is ignored, and so is one that Connection does not name', async () => {
    const { url, call } = await open();
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    for (const headers of [
      'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings',
      'Upgrade: websocket\r\nConnection: keep-alive',
    ]) {
      const socket = raw(url, `GET ${ORDERS_PATH}?watch=1 HTTP/1.1\r\nHost: a\r\n${headers}\r\n\r\n`);
      await socket.until('"ADDED"');
      expect(socket.text).toMatch(/^HTTP\/1.1 200 /);
    }
  });

  test('what comes with a request for such an upgrade is its body, as node does not say', async () => {
    const { url, call } = await open();
    const post = (more: string): ReturnType<typeof raw> =>
      raw(url, `POST ${ORDERS_PATH} HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n${more}`);
    const body = (name: string): string => JSON.stringify({ ...ORDER, metadata: { name }, spec: { item: 'x'.repeat(100_000) } });
    const json = (text: string): string => `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n`;
    const whole = post(json(body('a')) + body('a'));
    await whole.until('HTTP/1.1 201');
    // In two parts, and with something behind it.
    const parts = post(json(body('b')) + body('b').slice(0, 10));
    parts.socket.write(`${body('b').slice(10)}GET /version HTTP/1.1\r\n\r\n`);
    await parts.until('HTTP/1.1 201');
    await expect.poll(() => parts.socket.closed).toBe(true);
    expect(parts.text.match(/HTTP\/1.1/g)).toHaveLength(1);
    expect((await call('GET', ORDERS_PATH)).body.items).toHaveLength(2);
    await post('Content-Type: application/json\r\nContent-Length: 0\r\n\r\n').until('HTTP/1.1 400');
    await post('Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n').until('HTTP/1.1 411');
    await post('Content-Type: application/json\r\nContent-Length: 9999999999\r\n\r\n').until('HTTP/1.1 413');
  });
});

/** A connection of bytes. */
function raw(
  url: string,
  request: string,
): { readonly text: string; readonly socket: Socket; until(text: string): Promise<void> } {
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  closing.push(() => socket.destroy());
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk) => {
    text += chunk;
  });
  socket.on('error', () => {});
  socket.write(request);
  return {
    socket,
    get text(): string {
      return text;
    },
    until: (wanted) => until(() => text.includes(wanted)),
  };
}

test('a server needs a storage and resources that it can serve', () => {
  expect(() => new ApiServer({ storage: {} as never, resources: [] })).toThrow('storage: expected a Storage');
  const storage = new MemoryStorage();
  expect(() => new ApiServer({ storage, resources: [ORDERS as ResourceDefinition, ORDERS as ResourceDefinition] })).toThrow(
    'each resource once',
  );
  expect(() => new ApiServer({ storage, resources: [], maxWatcher: 1 } as never)).toThrow('did you mean maxWatchers?');
});
