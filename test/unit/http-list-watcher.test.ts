// A list watcher over a real server of node:http, which answers what a test tells it to, well-formed or not.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FetchLike } from '../../src/bridge/client.ts';
import { createListWatcher, type KubernetesObject, type ListWatcher, type ListWatcherOptions } from '../../src/cache/index.ts';
import { type ObjectEvent, type Watch, WatchError } from '../../src/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { fate, macrotask, thrown, turn } from './support.ts';

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

let answer: Answer;
let requests: IncomingMessage[];
let base: string;
let stop: () => Promise<void>;

beforeEach(async () => {
  requests = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answer(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/pods`;
  stop = () =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
});
afterEach(() => stop());

const source = (options?: ListWatcherOptions, query = ''): ListWatcher<KubernetesObject> =>
  createListWatcher(base + query, options);
const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Answer => {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
};
const pod = (name: string, resourceVersion = '1'): KubernetesObject => ({ metadata: { name, resourceVersion } });
const listOf = (...items: unknown[]): object => ({
  kind: 'PodList',
  apiVersion: 'v1',
  metadata: { resourceVersion: '7' },
  items,
});
const status = (code: number, reason: string, more: object = {}): object => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: `because of ${reason}`,
  reason,
  code,
  ...more,
});
const line = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;
const stream = (...lines: string[]): Answer => json(lines.join(''));
/** `fetch` takes no URL with a password; one of one's own may. */
const plain = (url: URL): URL => Object.assign(new URL(url), { username: '', password: '' });
const queryOf = (at: number): Record<string, string> => Object.fromEntries(new URL(requests[at]?.url ?? '', base).searchParams);
/** All events of a watch to its end: their types, and the name or the code of their objects. */
const read = async (watch: Watch<ObjectEvent<KubernetesObject>>): Promise<string[]> => {
  const seen: string[] = [];
  for await (const event of watch) {
    const { object } = event;
    seen.push(`${event.type} ${'code' in object ? object.code : ((object as KubernetesObject).metadata?.name ?? '')}`.trim());
  }
  return seen;
};

describe('list', () => {
  it('resolves with the items and the version; items get the kind of the list', async () => {
    const own = { ...pod('b'), kind: 'Own', apiVersion: 'x/v1' };
    answer = json(listOf(pod('a'), own));
    const list = await source().list();
    expect(list).toEqual({ items: [{ ...pod('a'), kind: 'Pod', apiVersion: 'v1' }, own], resourceVersion: '7' });
    expect(list.bytes).toBe(JSON.stringify(listOf(pod('a'), own)).length);
    expect(requests[0]).toMatchObject({ method: 'GET', headers: { accept: 'application/json' } });
    expect(queryOf(0)).toEqual({});
  });

  it.each<[string, unknown, unknown]>([
    ['items of null', { metadata: { resourceVersion: '7' }, items: null }, { items: [], resourceVersion: '7' }],
    ['a list of no kind', { metadata: { resourceVersion: '7' }, items: [{}] }, { items: [{}], resourceVersion: '7' }],
    ['a plain List', { kind: 'List', metadata: { resourceVersion: '7' }, items: [{}] }, { items: [{}], resourceVersion: '7' }],
    [
      'a page',
      { metadata: { resourceVersion: '7', continue: 'abc', remainingItemCount: 3 }, items: [] },
      { items: [], resourceVersion: '7', continue: 'abc', remainingItemCount: 3 },
    ],
    [
      'a last page',
      { metadata: { resourceVersion: '7', continue: '', remainingItemCount: null }, items: [] },
      { items: [], resourceVersion: '7' },
    ],
  ])('takes %s', async (_, body, list) => {
    answer = json(body);
    expect(await source().list()).toEqual(list);
  });

  it('sends its options as parameters, and those of its URL', async () => {
    answer = json(listOf());
    const pods = source({}, '?pretty=true&watch=1&limit=9');
    await pods.list({
      resourceVersion: '5',
      resourceVersionMatch: 'NotOlderThan',
      limit: 2,
      continue: 'a b&c',
      labelSelector: 'app=web,tier in (a,b)',
      fieldSelector: 'spec.nodeName=n1',
      timeoutSeconds: 30,
    });
    expect(queryOf(0)).toEqual({
      pretty: 'true',
      resourceVersion: '5',
      resourceVersionMatch: 'NotOlderThan',
      limit: '2',
      continue: 'a b&c',
      labelSelector: 'app=web,tier in (a,b)',
      fieldSelector: 'spec.nodeName=n1',
      timeoutSeconds: '30',
    });
    await pods.list({ resourceVersion: '', labelSelector: undefined });
    expect(queryOf(1)).toEqual({ pretty: 'true', limit: '9' });
  });

  it('asks for headers before each request', async () => {
    answer = json(listOf());
    let asked = 0;
    const pods = source({
      headers: async ({ signal }) => ({ authorization: `${++asked} ${signal.aborted}`, accept: 'text/plain' }),
    });
    await pods.list();
    await pods.list();
    expect(requests.map(({ headers }) => [headers.authorization, headers.accept])).toEqual([
      ['1 false', 'application/json'],
      ['2 false', 'application/json'],
    ]);
    const failing = source({ headers: () => Promise.reject(new Error('no token')) });
    await expect(failing.list()).rejects.toThrow('no token');
    await expect(failing.watch()).rejects.toThrow('no token');
  });

  it('sends headers in whatever form fetch takes them', async () => {
    answer = json(listOf());
    const forms = [new Headers({ 'x-a': 'b' }), new Map([['x-a', 'b']]), [['x-a', 'b']]] as unknown as Record<string, string>[];
    for (const form of forms) for (const headers of [form, () => form]) await source({ headers }).list();
    expect(requests.map(({ headers }) => headers['x-a'])).toEqual(Array(6).fill('b'));
    for (const none of [undefined, null] as never[]) await source({ headers: () => none }).list();
    expect(requests).toHaveLength(8);
  });

  it('reads a compressed list, and limits what it becomes', async () => {
    const body = gzipSync(JSON.stringify(listOf({ metadata: { name: 'x'.repeat(100_000) } })));
    answer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      response.end(body);
    };
    expect(body.length).toBeLessThan(1_000);
    expect((await source().list()).items).toHaveLength(1);
    await expect(source({ maxListBytes: 50_000 }).list()).rejects.toMatchObject({
      code: 'FRAME_TOO_LARGE',
      limit: 50_000,
      message: `the list is longer than maxListBytes (50000) (${base})`,
    });
  });

  it('cancels a body that is too long, or that it waits for when its signal aborts', async () => {
    let cancelled = 0;
    const fetch = async (): Promise<Response> => {
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode('x'.repeat(100))),
        cancel: () => void cancelled++,
      });
      return new Response(body, { headers: { 'content-type': 'application/json' } });
    };
    await expect(source({ fetch, maxListBytes: 50 }).list()).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE' });
    const abort = new AbortController();
    const pending = fate(source({ fetch }).list({ signal: abort.signal }));
    await macrotask();
    expect([pending.state, cancelled]).toEqual(['pending', 1]);
    abort.abort('enough');
    await turn();
    expect([pending.error, cancelled]).toEqual(['enough', 2]);
  });

  it('does not read on when a list is too long', async () => {
    let sent = 0;
    let closed: Promise<unknown> | undefined;
    answer = (response) => {
      closed = new Promise((resolve) => response.on('close', resolve));
      response.writeHead(200, { 'content-type': 'application/json' });
      const chunk = 'x'.repeat(65_536);
      const more = (): void => {
        while (!response.destroyed && sent < 2_000 && response.write(chunk)) sent++;
        if (!response.destroyed && sent < 2_000) response.once('drain', more);
      };
      more();
    };
    await expect(source({ maxListBytes: 100_000 }).list()).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE' });
    await closed;
    expect(sent).toBeLessThan(1_000);
  });

  it.each<[string, unknown, string]>([
    ['no JSON', '{"items": [', 'the list is not JSON'],
    ['nothing', '', 'the list is not JSON'],
    ['two lists', '{"kind":"List"}\n {}', 'the list is not JSON'],
    ['null', 'null', 'not a list: it has no metadata'],
    ['an array', [], 'not a list: it has no metadata'],
    ['an object', { kind: 'Pod', metadata: { name: 'a' } }, 'not a list: expected items, got kind Pod'],
    ['a Table', { kind: 'Table', metadata: { resourceVersion: '7' }, rows: [] }, 'not a list: expected items, got kind Table'],
    [
      'items that are no array',
      { metadata: { resourceVersion: '7' }, items: {} },
      'not a list: expected items, got kind undefined',
    ],
    ['no version', { metadata: {}, items: [] }, 'the list has no resourceVersion'],
    ['an empty version', { metadata: { resourceVersion: '' }, items: [] }, 'the list has no resourceVersion'],
    ['a version that is a number', { metadata: { resourceVersion: 7 }, items: [] }, 'the list has no resourceVersion'],
    ['an item of null', listOf(null), 'the list has an item that is not an object'],
    ['an item that is a list', listOf([]), 'the list has an item that is not an object'],
    ['a Status of success', status(200, '', { status: 'Success' }), 'not a list: expected items, got kind Status'],
  ])('refuses %s in place of a list', async (_, body, message) => {
    answer = json(body);
    const named = { name: 'WatchError', code: 'INVALID_FRAME', message: `${message} (${base})` };
    await expect(source().list()).rejects.toMatchObject(named);
  });

  it('does not wait for the end of a stream of events', async () => {
    let response: ServerResponse | undefined;
    answer = (given) => {
      response = given;
      given.writeHead(200, { 'content-type': 'application/json' });
      given.write('{"type":"ADDED","object":{}}\n{"ty');
    };
    await expect(source().list()).rejects.toMatchObject({
      code: 'INVALID_FRAME',
      message: expect.stringContaining('the list is not JSON'),
    });
    await expect.poll(() => response?.destroyed).toBe(true);
  });

  it('refuses a page of HTML', async () => {
    answer = json('<html>log in</html>', 200, { 'content-type': 'text/html; charset=utf-8' });
    const wrong = { code: 'INVALID_FRAME', message: `expected JSON, got text/html; charset=utf-8 (${base})` };
    await expect(source().list()).rejects.toMatchObject(wrong);
    await expect(source().watch()).rejects.toMatchObject(wrong);
  });

  it('is not misled by __proto__', async () => {
    answer = json('{"metadata":{"resourceVersion":"7"},"items":[{"__proto__":{"polluted":true}}]}');
    await source().list();
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  it('rejects when the connection breaks in the middle', async () => {
    answer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      response.write('{"items":');
      setImmediate(() => response.destroy());
    };
    await expect(source().list()).rejects.toThrow(`terminated: other side closed (${base})`);
    await stop();
    stop = async () => {};
    const [, port] = /:(\d+)/.exec(base) ?? [];
    const secret = createListWatcher(base.replace('//', '//user:password@'), { fetch: (url, init) => fetch(plain(url), init) });
    for (const pods of [source({}, '?token=secret'), secret]) {
      await expect(pods.list()).rejects.toMatchObject({
        message: `fetch failed: connect ECONNREFUSED 127.0.0.1:${port} (${base})`,
        cause: { name: 'TypeError', message: 'fetch failed' },
      });
    }
  });

  it('takes no credentials in a URL without a fetch of its own, and shows none', async () => {
    const url = 'http://user:s3cret@127.0.0.1:9/pods?a=1';
    const refused = (given: string | URL) => thrown(() => createListWatcher(given)) as Error;
    expect([refused(url), refused('http://s3cret@h/')]).toMatchObject([
      { code: 'INVALID_ARGUMENT', message: 'url: expected no credentials: use headers, got "...@127.0.0.1:9"' },
      { code: 'INVALID_ARGUMENT', message: 'url: expected no credentials: use headers, got "...@h"' },
    ]);
    const { message } = refused('ftp://u:s3cret@h/');
    expect(message).toBe('url: expected an http(s) URL, got "ftp://...@h/"');
    for (const given of [new URL('ftp://u:s3cret@h/'), 'ws://u:s3cret@h/', 'http://u:s3cret@h:99999/'])
      expect(refused(given).message).toMatch(/^url: expected an http\(s\) URL, got "\w+:\/\/\.\.\.@h/);
    const passedOn = createListWatcher(url, { fetch: (to, init) => fetch(to, init) });
    const error: unknown = await passedOn.list().catch((why) => why);
    expect((error as Error).message).toContain('http://127.0.0.1:9/pods');
    expect((error as Error).message).not.toMatch(/s3cret|a=1/);
  });

  it('tells the code and the cause of a fetch of its own, whatever that throws', async () => {
    const failing = (error: unknown): Promise<unknown> =>
      source({ fetch: () => Promise.reject(error) })
        .list()
        .catch((reason: unknown) => reason);
    const coded = Object.assign(new Error(''), { code: 'ECONNREFUSED' });
    expect(await failing(coded)).toMatchObject({ message: `ECONNREFUSED (${base})`, code: 'ECONNREFUSED', cause: coded });
    const nested = new TypeError('fetch failed', { cause: coded });
    expect(await failing(nested)).toMatchObject({ message: `fetch failed: ECONNREFUSED (${base})`, cause: nested });
    expect(await failing('down')).toMatchObject({ message: `down (${base})`, cause: 'down' });
    expect(await failing(undefined)).toMatchObject({ message: ` (${base})` });
    const own = new WatchError('OVERLOADED', 'enough', { limit: 3 });
    expect(await failing(own)).toMatchObject({ message: `enough (${base})`, code: 'OVERLOADED', limit: 3 });
  });
});

describe('a redirect', () => {
  it.each(['list', 'watch'] as const)('of a %s is not followed with headers, and says where it leads', async (verb) => {
    answer = (response, { url = '' }) => {
      if (url.startsWith('/other')) return json(listOf())(response, {} as never);
      response.writeHead(302, { location: '/other/pods?code=secret' });
      return response.end();
    };
    const where = base.replace('/api/v1/pods', '/other/pods');
    const message = `500 InternalError: the server redirects to ${where}, which is not followed (${base})`;
    await expect(source({ headers: { 'x-secret': '1' } })[verb]()).rejects.toMatchObject({ code: 'REFUSED', message });
    await expect(source({ headers: () => ({ 'x-secret': '1' }) })[verb]()).rejects.toMatchObject({ code: 'REFUSED', message });
    expect(requests.map(({ url = '' }) => url.split('?')[0])).toEqual(['/api/v1/pods', '/api/v1/pods']);
    await source()[verb](); // there is nothing to keep from others
    expect(requests.at(-1)?.url).toContain('/other/pods');
  });

  it('of which a browser tells nothing is refused, too', async () => {
    const opaque = { ...new Response(null), type: 'opaqueredirect', status: 0, body: null, headers: new Headers() };
    const fetch = (async () => opaque) as unknown as FetchLike;
    await expect(source({ fetch, headers: {} }).list()).rejects.toMatchObject({
      message: `500 InternalError: the server redirects, which is not followed (${base})`,
    });
  });

  it.each(['http://[', ''])('that leads nowhere is a refusal like any other: %j', async (location) => {
    answer = (response) => response.writeHead(307, { location }).end();
    await expect(source({ headers: {} }).list()).rejects.toMatchObject({
      message: `500 InternalError: the server answered 307 (${base})`,
    });
  });
});

describe.each(['list', 'watch'] as const)('a refused %s', (verb) => {
  const refused = (options?: ListWatcherOptions): Promise<unknown> => source(options)[verb]();

  it.each<[number, string]>([
    [401, 'Unauthorized'],
    [403, 'Forbidden'],
    [404, 'NotFound'],
    [410, 'Expired'],
    [410, 'Gone'],
    [429, 'TooManyRequests'],
    [500, 'ServerTimeout'],
    [504, 'Timeout'],
  ])('rejects with the Status of the server: %d %s', async (code, reason) => {
    const details = { retryAfterSeconds: 2, causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large' }] };
    answer = json(status(code, reason, { details, metadata: { continue: 'next' } }), code);
    await expect(refused()).rejects.toMatchObject({
      name: 'WatchError',
      code: 'REFUSED',
      message: `${code} ${reason}: because of ${reason} (${base})`,
      status: status(code, reason, { details, metadata: { continue: 'next' } }),
    });
  });

  it.each<[number, string, number]>([
    [429, 'TooManyRequests', 429],
    [502, 'InternalError', 502],
    [418, 'Unknown', 418],
    [204, 'InternalError', 500],
    [304, 'InternalError', 500],
  ])('rejects with a Status of our own for %d without one', async (code, reason, told) => {
    answer = (response) => {
      response.writeHead(code, { 'content-type': 'text/plain' });
      response.end(code === 204 || code === 304 ? undefined : '  slow down  ');
    };
    const message = code === 204 || code === 304 ? `status ${code}` : 'slow down';
    await expect(refused()).rejects.toMatchObject({
      code: 'REFUSED',
      status: { code: told, reason, details: { causes: [{ reason: 'UnexpectedServerResponse', message }] } },
    });
  });

  it.each<[string, Record<string, string>, number | undefined]>([
    ['seconds', { 'retry-after': '7' }, 7],
    ['a date', { 'retry-after': 'Wed, 21 Oct 2026 07:28:30 GMT', date: 'Wed, 21 Oct 2026 07:28:00 GMT' }, 30],
    ['too many seconds', { 'retry-after': '86400' }, 300],
    ['a date in the past', { 'retry-after': 'Wed, 21 Oct 2026 07:27:00 GMT', date: 'Wed, 21 Oct 2026 07:28:00 GMT' }, undefined],
    ['words', { 'retry-after': 'soon' }, undefined],
    ['less than nothing', { 'retry-after': '-5' }, undefined],
    ['nothing', {}, undefined],
  ])('tells a Retry-After of %s in its Status', async (_, headers, seconds) => {
    answer = json(status(429, 'TooManyRequests'), 429, headers);
    const error = (await refused().catch((reason: unknown) => reason)) as {
      status: { details?: { retryAfterSeconds?: number } };
    };
    expect(error.status.details?.retryAfterSeconds).toBe(seconds);
  });

  it('takes the delay of the body rather than that of the header', async () => {
    answer = json(status(429, 'TooManyRequests', { details: { retryAfterSeconds: 3 } }), 429, { 'retry-after': '9' });
    await expect(refused()).rejects.toMatchObject({ status: { details: { retryAfterSeconds: 3 } } });
  });

  it.each<[string, object]>([
    ['a code that is none', { kind: 'Status', code: 1e9 }],
    ['parts of wrong types', { kind: 'Status', code: 410, message: {}, reason: 5, details: 'x', metadata: null }],
    ['a delay that is none', { kind: 'Status', code: 410, details: { retryAfterSeconds: 'soon' } }],
  ])('does not believe a Status with %s', async (_, body) => {
    answer = json(body, 410);
    const error = (await refused().catch((reason: unknown) => reason)) as { status: Record<string, unknown> };
    expect(error.status).toMatchObject({ kind: 'Status', status: 'Failure', code: 410, reason: 'Expired', message: '' });
    expect((error.status.details as { retryAfterSeconds?: unknown } | undefined)?.retryAfterSeconds).toBeUndefined();
  });

  it('reads no more than the beginning of a long refusal', async () => {
    answer = json('x'.repeat(10_000_000), 500);
    const error = (await refused().catch((reason: unknown) => reason)) as {
      status: { details: { causes: { message: string }[] } };
    };
    expect(error.status.details.causes[0]?.message).toBe('x'.repeat(200));
  });

  it('rejects with the reason of a signal, before and during the request; no listener stays', async () => {
    const early = AbortSignal.abort('too late');
    await expect(source()[verb]({ signal: early })).rejects.toBe('too late');
    expect(requests).toEqual([]);
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    let closed: Promise<unknown> | undefined;
    const arrived = new Promise<void>((resolve) => {
      answer = (response) => {
        closed = new Promise((gone) => response.on('close', gone));
        resolve();
      };
    });
    const pending = source()[verb]({ signal: abort.signal });
    await arrived;
    expect(listeners.count).toBe(1);
    abort.abort('enough');
    await expect(pending).rejects.toBe('enough');
    await closed;
    expect(listeners.count).toBe(0);
  });

  it.each<[string, object, string]>([
    ['an unknown option', { resourceversion: '1' }, 'unknown option resourceversion: did you mean resourceVersion?'],
    ['a version that is a number', { resourceVersion: 7 }, 'resourceVersion: expected a string, got 7'],
    ['a selector that is none', { labelSelector: {} }, 'labelSelector: expected a string, got Object {}'],
    [
      'a match that is none',
      { resourceVersionMatch: 'exact' },
      'resourceVersionMatch: expected one of Exact, NotOlderThan, got "exact"',
    ],
    ['a negative timeout', { timeoutSeconds: -1 }, 'timeoutSeconds: expected a whole number >= 0, got -1'],
  ])('has %s', async (_, options, message) => {
    await expect(source()[verb](options)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
    expect(requests).toEqual([]);
  });

  describe('by a server that says nothing', () => {
    const clock = new FakeClock();
    const silent = (): Promise<Response> => new Promise(() => {});

    it('rejects with TIMEOUT after responseTimeoutMs; no timer stays', async () => {
      const pending = fate<unknown>(source({ fetch: silent, clock, responseTimeoutMs: 500 })[verb]());
      await turn();
      clock.advance(499);
      await turn();
      expect(pending.state).toBe('pending');
      clock.advance(1);
      await turn();
      const message = `the server was silent for 500 ms (${base})`;
      expect(pending.error).toMatchObject({ code: 'TIMEOUT', limit: 500, message });
      expect(clock.pending).toBe(0);
    });

    it('waits for ever with 0', async () => {
      const abort = new AbortController();
      const pending = fate<unknown>(source({ fetch: silent, clock, responseTimeoutMs: 0 })[verb]({ signal: abort.signal }));
      await turn();
      expect([pending.state, clock.pending]).toEqual(['pending', 0]);
      abort.abort('enough');
      await turn();
      expect(pending.error).toBe('enough');
    });

    it('releases a response that comes too late from a fetch without signals', async () => {
      let cancelled = 0;
      const body = (): ReadableStream => new ReadableStream({ cancel: () => void cancelled++ });
      let settle = (_: Response): void => {};
      const fetch = (): Promise<Response> =>
        new Promise((resolve) => {
          settle = resolve;
        });
      const pending = fate<unknown>(source({ fetch, clock, responseTimeoutMs: 500 })[verb]());
      await turn();
      clock.advance(500);
      settle(new Response(body()));
      await macrotask();
      expect([pending.state, cancelled]).toEqual(['rejected', 1]);
      // And one of the wrong type, whose body nobody has read.
      const html = new Response(body(), { headers: { 'content-type': 'text/html' } });
      await expect(source({ fetch: async () => html, clock })[verb]()).rejects.toMatchObject({ code: 'INVALID_FRAME' });
      await macrotask();
      expect([cancelled, clock.pending]).toEqual([2, 0]);
    });
  });
});

describe('watch', () => {
  it('delivers events to the end of the response', async () => {
    answer = stream(
      line('ADDED', pod('a')),
      line('MODIFIED', pod('a', '2')),
      line('DELETED', pod('a', '3')),
      line('BOOKMARK', pod('')),
    );
    expect(await read(await source().watch({ resourceVersion: '1' }))).toEqual([
      'ADDED a',
      'MODIFIED a',
      'DELETED a',
      'BOOKMARK',
    ]);
    expect(queryOf(0)).toEqual({ watch: 'true', resourceVersion: '1' });
  });

  it('sends its options as parameters; initial events need a match and bookmarks', async () => {
    answer = stream();
    const pods = source({}, '?pretty=true');
    await pods.watch({ resourceVersion: '5', allowWatchBookmarks: true, timeoutSeconds: 300, labelSelector: 'a=b' });
    await pods.watch({ sendInitialEvents: true });
    await pods.watch({ sendInitialEvents: true, allowWatchBookmarks: false, resourceVersion: '' });
    await pods.watch({ sendInitialEvents: false });
    expect([0, 1, 2, 3].map(queryOf)).toEqual([
      {
        pretty: 'true',
        watch: 'true',
        resourceVersion: '5',
        allowWatchBookmarks: 'true',
        timeoutSeconds: '300',
        labelSelector: 'a=b',
      },
      {
        pretty: 'true',
        watch: 'true',
        sendInitialEvents: 'true',
        resourceVersionMatch: 'NotOlderThan',
        allowWatchBookmarks: 'true',
      },
      {
        pretty: 'true',
        watch: 'true',
        sendInitialEvents: 'true',
        resourceVersionMatch: 'NotOlderThan',
        allowWatchBookmarks: 'false',
      },
      // A kube-apiserver refuses it without a match, too.
      {
        pretty: 'true',
        watch: 'true',
        sendInitialEvents: 'false',
        resourceVersionMatch: 'NotOlderThan',
        allowWatchBookmarks: 'false',
      },
    ]);
  });

  it.each<[string, string, string[]]>([
    ['a line that is no JSON', '{"type":"ADDED"\n', ['ADDED a', 'ERROR 500']],
    ['an unknown type', line('CHANGED', pod('b')), ['ADDED a', 'ERROR 500']],
    ['a type in small letters', line('added', pod('b')), ['ADDED a', 'ERROR 500']],
    ['an event of null', line('ADDED', null), ['ADDED a', 'ERROR 500']],
    ['an event of an array', line('MODIFIED', []), ['ADDED a', 'ERROR 500']],
    ['an object without metadata', line('DELETED', {}), ['ADDED a', 'ERROR 500']],
    ['a BOOKMARK without metadata', line('BOOKMARK', { kind: 'Pod' }), ['ADDED a', 'ERROR 500']],
    ['an ERROR without a Status', line('ERROR', { message: 'x' }), ['ADDED a', 'ERROR 500']],
    ['an ERROR', line('ERROR', status(410, 'Expired')), ['ADDED a', 'ERROR 410']],
    ['a Status that is no event', `${JSON.stringify(status(410, 'Expired'))}\n`, ['ADDED a', 'ERROR 410']],
    ['a line that the end has cut off', '{"type":"ADDED","object":{"meta', ['ADDED a']],
    ['a last line without a line end', line('ADDED', pod('b')).trim(), ['ADDED a', 'ADDED b']],
    ['blank lines', '\n\r\n', ['ADDED a']],
  ])('answers %s', async (_, text, seen) => {
    answer = stream(line('ADDED', pod('a')), text);
    expect(await read(await source().watch())).toEqual(seen);
  });

  it('ends with an ERROR of code 413 when an event is longer than maxFrameBytes', async () => {
    answer = stream(line('ADDED', pod('a')), line('ADDED', pod('x'.repeat(1_000))), line('ADDED', pod('b')));
    expect(await read(await source({ maxFrameBytes: 500 }).watch())).toEqual(['ADDED a', 'ERROR 413']);
  });

  it('ends without an ERROR when the connection breaks', async () => {
    answer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json;stream=watch' });
      response.write(line('ADDED', pod('a')) + line('ADDED', pod('b')).slice(0, 20), () =>
        setImmediate(() => response.destroy()),
      );
    };
    expect(await read(await source().watch())).toEqual(['ADDED a']);
  });

  it('may be silent for ever once it is open', async () => {
    const clock = new FakeClock();
    answer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.flushHeaders();
    };
    const watch = await source({ clock, responseTimeoutMs: 500 }).watch();
    expect(clock.pending).toBe(0);
    expect(watch.stopped).toBe(false);
    await watch.return();
  });

  it.each<[string, (watch: Watch<unknown>, abort: AbortController) => void]>([
    ['stop', (watch) => watch.stop()],
    ['return', (watch) => void watch.return()],
    ['an abort', (_watch, abort) => abort.abort('enough')],
  ])('ends by %s: a read settles, the connection closes, no listener stays', async (_, end) => {
    let closed: Promise<unknown> | undefined;
    answer = (response) => {
      closed = new Promise((resolve) => response.on('close', resolve));
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write(line('ADDED', pod('a')));
    };
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const watch = await source().watch({ signal: abort.signal });
    expect((await watch.next()).done).toBe(false);
    const pending = watch.next();
    end(watch, abort);
    expect(await pending).toEqual({ done: true, value: undefined });
    await closed;
    expect([watch.stopped, listeners.count]).toEqual([true, 0]);
  });

  it('rejects if the signal aborts while the answer is on its way through promises', async () => {
    const abort = new AbortController();
    let cancelled = false;
    const body = new ReadableStream({
      cancel: () => {
        cancelled = true;
      },
    });
    /** Its body fails with the reason of the signal, as that of a real one does. */
    const fetch: FetchLike = async (_, { signal }) => {
      const failing = new ReadableStream({
        start: (controller) => signal.addEventListener('abort', () => controller.error(signal.reason)),
      });
      return new Response(failing, { headers: { 'content-type': 'application/json' } });
    };
    for (let ticks = 0; ticks < 20; ticks++) {
      const one = new AbortController();
      const pending = fate(source({ fetch }).watch({ signal: one.signal }));
      for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
      one.abort('enough');
      await turn();
      if (pending.state === 'rejected') expect(pending.error).toBe('enough');
      else expect(await (pending.value as Watch<unknown>).next()).toEqual({ done: true, value: undefined });
    }
    const watch = await source({ fetch: async () => new Response(body) }).watch({ signal: abort.signal });
    abort.abort();
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    await macrotask();
    expect(cancelled).toBe(true);
  });

  it('takes a response without a body for an empty one', async () => {
    expect(await read(await source({ fetch: async () => new Response(null) }).watch())).toEqual([]);
  });
});

describe('createListWatcher', () => {
  it.each<[string, () => unknown, string]>([
    ['a URL that is none', () => createListWatcher('pods'), 'url: expected an http(s) URL, got "pods"'],
    ['a WebSocket', () => createListWatcher('ws://h/'), 'url: expected an http(s) URL, got "ws://h/"'],
    ['a fetch of no function', () => createListWatcher('http://h/', { fetch: 5 as never }), 'fetch: expected a function, got 5'],
    [
      'an unknown option',
      () => createListWatcher('http://h/', { header: {} } as never),
      'unknown option header: did you mean headers?',
    ],
    [
      'a limit of 0',
      () => createListWatcher('http://h/', { maxListBytes: 0 }),
      'maxListBytes: expected a whole number >= 1, got 0',
    ],
    [
      'a frame of 0',
      () => createListWatcher('http://h/', { maxFrameBytes: 0 }),
      'maxFrameBytes: expected a whole number >= 1, got 0',
    ],
    [
      'a negative time',
      () => createListWatcher('http://h/', { responseTimeoutMs: -1 }),
      'responseTimeoutMs: expected a whole number >= 0, got -1',
    ],
  ])('refuses %s', (_, call, message) => {
    expect(call).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }));
  });

  it('refuses headers that are none', () => {
    expect(() => createListWatcher('http://h/', { headers: { 'a b': 'c' } })).toThrow();
  });
});
