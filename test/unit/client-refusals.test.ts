// How a client handles a response that is not a stream, and a missing response.
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { connect, type FetchLike } from '../../src/bridge/client.ts';
import { FakeNetwork, KINDS, settle } from './client-network.ts';
import type { Event } from './client-rig.ts';
import { at, error, open, status } from './client-rig.ts';

/** The WebSocket of a browser does not tell why it was refused. */
const readingStatus = KINDS.filter((kind) => kind !== 'browser');

describe('refusals', () => {
  test.each(readingStatus)("%s: 4xx is final, with the server's Status", async (kind) => {
    for (const code of [400, 401, 403, 404, 405, 421]) {
      const { network, read, expectOver, details } = open(kind);
      await settle();
      network.link.refuse(code, JSON.stringify(status(code, { reason: 'Told' })));
      expect(await read()).toEqual([code]);
      expect(details.at(-1)?.error?.reason).toBe('Told');
      await expectOver();
    }
  });

  test.each(readingStatus)('%s: 408, 429 and 5xx are not final, and Retry-After is respected', async (kind) => {
    for (const code of [408, 429, 500, 502, 503]) {
      const { network, watch, details } = open(kind);
      await settle();
      network.link.refuse(code, 'text', code === 503 ? { 'retry-after': '7' } : {});
      await settle();
      expect(watch.state).toBe('waiting');
      expect(details[0]).toMatchObject({ error: { code, message: 'text' }, delayMs: code === 503 ? 7_500 : 500 });
      await watch.return();
    }
  });

  const ws = readingStatus.filter((kind) => kind === 'ws');
  test.each(ws)('%s: a server that answers with a page, or with nothing, has no WebSocket there: that is final', async (kind) => {
    for (const code of [200, 204]) {
      const { network, read, expectOver, details } = open(kind);
      await settle();
      network.link.refuse(code);
      expect(await read()).toEqual([422]);
      expect(details.at(-1)?.error?.message).toBe(`status ${code}`);
      await expectOver();
    }
  });

  test.each(['http', 'sse'] as const)('%s: with headers, a redirect is final, and says where it leads', async (transport) => {
    const asked: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url?.split('?')[0]);
      response.writeHead(302, { location: 'http://other.example/login?code=secret' }).end('<p>moved</p>');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const watch = connect<Event>(`http://127.0.0.1:${port}/here`, { transport, headers: { 'x-secret': '1' } });
    expect(await watch.next()).toMatchObject({
      value: { object: { code: 503, message: 'a redirect to http://other.example/login' } },
    });
    expect([await watch.next(), asked]).toEqual([{ done: true, value: undefined }, ['/here']]);
    await new Promise((resolve) => server.close(resolve));
  });

  test('with headers, a redirect of which a browser tells nothing is final', async () => {
    const asked: unknown[] = [];
    const fetch = (async (_url: URL, { redirect }: { redirect?: string }) => {
      asked.push(redirect);
      return { status: 0, type: 'opaqueredirect', body: null, headers: new Headers() };
    }) as unknown as FetchLike;
    const watch = connect<Event>('http://127.0.0.1:1/', { fetch, headers: { 'x-secret': '1' } });
    expect(await watch.next()).toMatchObject({ value: { object: { code: 503, message: 'status 302' } } });
    expect([await watch.next(), asked]).toEqual([{ done: true, value: undefined }, ['manual']]);
  });

  test.each([
    [1006, '', 'the connection broke, or could not be made'],
    [1011, '', 'closed by the server: 1011'],
    [1008, 'flooding', 'closed by the server: 1008 flooding'],
  ])('a WebSocket that is closed with %i and the reason "%s" says what has happened', async (code, reason, message) => {
    const { network, watch, details } = open('ws');
    await settle();
    network.link.end(code, reason);
    expect(details[0]?.error?.message).toBe(message);
    await watch.return();
  });

  test.each(readingStatus)('%s: the page of a proxy is no message, but a cause', async (kind) => {
    const { network, watch, details } = open(kind);
    await settle();
    const page = `<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>${'nginx '.repeat(100)}</body></html>`;
    network.link.refuse(502, page);
    await settle();
    expect(details[0]?.error).toMatchObject({
      code: 502,
      message: 'status 502, with a page',
      details: { causes: [{ reason: 'UnexpectedServerResponse', message: expect.stringMatching(/^<html>.{150,200}$/s) }] },
    });
    await watch.return();
  });

  test('a WebSocket that tells no reason and never closes has failed when it emits an error', async () => {
    const { network, watch, details } = open('browser');
    await settle();
    network.link.refuse(404);
    expect(watch.state).toBe('waiting');
    expect(details).toMatchObject([{ error: { code: 503, message: expect.stringContaining('no handshake') }, delayMs: 500 }]);
    expect(network.link.closed).toBe(true);
    await watch.return();
  });

  test('the hint may be in the Status; it is limited to five minutes', async () => {
    const { network, details, watch } = open('http');
    await settle();
    network.link.refuse(503, JSON.stringify(status(503, { details: { retryAfterSeconds: 1e9 } })));
    await settle();
    expect(details[0]?.delayMs).toBe(300_500);
    await watch.return();
  });

  test.each(readingStatus.flatMap((kind) => [[kind, 'lines', '\n'] as const, [kind, 'one line', 'x'] as const]))(
    '%s: an endless body of %s is neither read to its end nor kept, and the refusal counts',
    async (kind, _name, end) => {
      const { network, expectOver, read, details } = open(kind);
      await settle();
      const line = `${'x'.repeat(999)}${end}`;
      network.link.refuse(
        404,
        Array.from({ length: 20 }, () => line),
      );
      expect(await read()).toEqual([404]);
      expect(details[0]?.error?.message.length).toBeLessThan(300);
      await expectOver();
    },
  );

  test.each(readingStatus)('%s: a refusal whose body stalls is that refusal when the time is over', async (kind) => {
    for (const code of [403, 429]) {
      const { network, clock, details, watch, read, expectOver } = open(kind);
      await settle();
      network.link.refuse(code, ['the first half\n'], { 'retry-after': '7' });
      await settle();
      expect(watch.state).toBe('connecting');
      clock.advance(10_000);
      expect(await read()).toEqual(code === 403 ? [403] : []);
      expect(details[0]?.error).toMatchObject({ code, message: 'the first half' });
      if (code === 403) await expectOver();
      else expect(details[0]?.delayMs).toBe(7_500);
      // What one connection was refused for is nothing that the next one says.
      if (code === 429) {
        clock.advance(7_500);
        await settle();
        network.link.cut();
        await settle();
        expect(details.at(-1)?.error?.code).toBe(503);
      }
      await watch.return();
    }
  });

  test.each(readingStatus)('%s: the words of a refusal may be cut into chunks within a character', async (kind) => {
    const { network, clock, read, details } = open(kind);
    await settle();
    const bytes = new TextEncoder().encode('nö 😀\n');
    network.link.refuse(
      403,
      Array.from(bytes, (byte) => Uint8Array.of(byte)),
    );
    await settle();
    clock.advance(10_000);
    expect(await read()).toEqual([403]);
    expect(details[0]?.error?.message).toBe('nö 😀');
  });

  test.each(readingStatus)('%s: a refusal whose body breaks off is that refusal', async (kind) => {
    const server = createServer((request, response) => {
      response.writeHead(403, { 'content-length': 1_000 }).write('the first half\n', () => request.socket.destroy());
    });
    server.on('upgrade', (_request, socket: Socket) => {
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 1000\r\n\r\nthe first half\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const means = kind === 'ws' ? ({ transport: 'websocket', WebSocket } as const) : ({ transport: kind as 'http' } as const);
    const watch = connect<Event>(`http://127.0.0.1:${port}/`, { ...means, maxAttempts: 0 });
    expect(await watch.next()).toMatchObject({ value: { object: { code: 403, message: 'the first half' } } });
    expect((await watch.next()).done).toBe(true);
    await new Promise((resolve) => server.close(resolve));
  });

  describe.each(readingStatus)('%s: a Retry-After that is a date', (kind) => {
    test.each([
      ['as HTTP writes it', 'Sun, 06 Nov 1994 08:49:37 GMT'],
      ['as RFC 850 wrote it', 'Sunday, 06-Nov-94 08:49:37 GMT'],
      ['as asctime() writes it, in GMT without saying so', 'Sun Nov  6 08:49:37 1994'],
    ])('%s, counts from the time of the server', async (_, date) => {
      const { network, details, watch } = open(kind);
      await settle();
      network.link.refuse(503, '', { 'retry-after': date, date: 'Sun, 06 Nov 1994 08:49:30 GMT' });
      await settle();
      expect(details[0]?.delayMs).toBe(7_500);
      await watch.return();
    });

    test('counts from the time of the client if the server does not tell its own; a past one is no hint', async () => {
      vi.useFakeTimers({ now: Date.UTC(2026, 0, 1), toFake: ['Date'] });
      try {
        for (const [seconds, delayMs] of [
          [9, 9_500],
          [-9, 500],
          [1e6, 300_500],
        ] as const) {
          const { network, details, watch } = open(kind);
          await settle();
          network.link.refuse(429, '', { 'retry-after': new Date(Date.now() + seconds * 1_000).toUTCString(), date: 'today' });
          await settle();
          expect(details[0]?.delayMs).toBe(delayMs);
          await watch.return();
        }
      } finally {
        vi.useRealTimers();
      }
    });
  });

  test('an invalid hint is ignored', async () => {
    for (const hint of ['-100', 'soon', 'NaN', '', 'GMT', '99 Foo 2099 GMT']) {
      const { network, details, watch } = open('http');
      await settle();
      network.link.refuse(503, '', { 'retry-after': hint });
      await settle();
      expect(details[0]?.delayMs).toBe(500);
      await watch.return();
    }
    const { accept, details, watch } = open('http', { resourceVersion: at(1) });
    await accept(error(503, { details: { retryAfterSeconds: 'soon' } } as object));
    expect(details.at(-1)?.delayMs).toBe(500);
    await watch.return();
  });

  test('a fetch that ignores its signal leaves nothing open, however late it responds', async () => {
    const cancelled: number[] = [];
    const answers: (() => void)[] = [];
    const fetch = (): Promise<Response> =>
      new Promise((resolve) => {
        const at = answers.length;
        const body = new ReadableStream({ cancel: () => void cancelled.push(at) });
        answers.push(() =>
          resolve(new Response(body, { headers: { 'content-type': at === 2 ? 'text/html' : 'application/json' } })),
        );
      });
    const [early, late, page] = [0, 1, 2].map(() => open('http', { fetch }));
    answers[0]?.();
    answers[2]?.();
    await settle();
    expect(early?.watch.state).toBe('open');
    expect(page?.watch.state).toBe('closed');
    early?.watch.stop();
    late?.watch.stop();
    answers[1]?.();
    await settle();
    expect(cancelled.sort()).toEqual([0, 1, 2]);
    expect([early, late, page].map((each) => each?.clock.pending)).toEqual([0, 0, 0]);
  });

  test('a response that is not a stream is final', async () => {
    for (const kind of ['http', 'sse'] as const) {
      const network = new FakeNetwork();
      const fetch = async (): Promise<Response> => new Response('<p>', { headers: { 'content-type': 'text/html' } });
      const watch = connect<Event>('http://h/', { ...network.options(kind), fetch });
      expect((await watch.next()).value?.object).toMatchObject({ code: 422, message: 'not a stream: text/html' });
      expect((await watch.next()).done).toBe(true);
    }
  });

  test.each([
    ['http', 'Application/JSON; Charset=UTF-8'],
    ['http', 'application/x-NDJSON'],
    ['sse', 'Text/Event-Stream;charset=utf-8'],
  ] as const)('over %s, a response of type %s is a stream: types have no letter case', async (kind, type) => {
    const fetch = async (): Promise<Response> => new Response(new ReadableStream(), { headers: { 'content-type': type } });
    const { watch } = open(kind, { fetch });
    await settle();
    expect(watch.state).toBe('open');
    await watch.return();
  });

  test('204 is the end of the stream', async () => {
    const { network, expectOver } = open('sse');
    await settle();
    network.link.refuse(204);
    await expectOver();
  });

  test('a WebSocket constructor that throws is final', async () => {
    class Refusing {
      constructor() {
        throw new Error('insecure');
      }
    }
    const watch = connect<Event>('http://h/', { transport: 'websocket', WebSocket: Refusing as never });
    expect((await watch.next()).value?.object).toMatchObject({ code: 400, message: 'insecure' });
    expect((await watch.next()).done).toBe(true);
  });

  test.each(['bad port', 'invalid connection header'])('what no attempt can cure is final: %s', async (why) => {
    const fetch = (): Promise<Response> => Promise.reject(new TypeError('fetch failed', { cause: new Error(why) }));
    const { read, expectOver, details } = open('http', { fetch });
    expect(await read()).toEqual([400]);
    expect(details.at(-1)?.error?.message).toBe(why);
    await expectOver();
  });

  test("so the host's own fetch is not asked for ever for a port that it does not connect to", async () => {
    const watch = connect<Event>('http://127.0.0.1:6000/watch');
    expect((await watch.next()).value?.object).toMatchObject({ code: 400, message: 'bad port' });
    expect((await watch.next()).done).toBe(true);
  });

  test('any thrown value is a failure like any other', async () => {
    for (const [reason, message] of [
      [undefined, 'undefined'],
      [null, 'null'],
      ['so', 'so'],
      [{ status: 5 }, 'Object {status}'],
    ] as const) {
      const fetch = (): Promise<Response> => Promise.reject(reason);
      const { watch, details } = open('http', { fetch });
      await settle();
      expect(watch.state).toBe('waiting');
      expect(details[0]?.error).toMatchObject({ code: 503, message });
      await watch.return();
    }
  });
});
