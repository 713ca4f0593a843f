// The built root entry point and client in real browsers, loaded without a bundler, and the browser's own EventSource.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server } from 'node:http';
import { createServer } from 'node:http';
import { extname } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { ClientTransport } from '../../src/bridge/client.ts';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import { inBrowsers } from './browsers.ts';
import { until } from './cli.ts';
import { markedBlock } from './documents.mjs';
import { closeAll, start } from './servers.ts';

const DIST = new URL('../../dist/', import.meta.url);
const TRANSPORTS: readonly ClientTransport[] = ['http', 'sse', 'websocket'];
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

afterAll(closeAll);

inBrowsers('the built entry points', ({ name, launch, often }) => {
  let browser: Browser;
  let page: Page;
  let hub: Hub;
  let server: Server;
  let url: string;
  /** The URLs of watches, which a server would log. */
  let asked: string[];
  /** The page at `/late` is on its way until this is called. */
  let answerLate: (() => void) | undefined;

  beforeAll(async () => {
    browser = await launch();
    page = await browser.newPage();
    // Not what playwright calls errors: in Firefox that is also the browser's own word on each connection that could not be made.
    await page.addInitScript(`
      window.faults = [];
      addEventListener('error', ({ message }) => window.faults.push(message));
      addEventListener('unhandledrejection', ({ reason }) => window.faults.push(String(reason)));
    `);
  });

  afterAll(() => browser?.close());

  beforeEach(async () => {
    answerLate = undefined;
    hub = new Hub({ epoch: 'e' });
    asked = [];
    const options = {
      authenticate: ({ headers, url: watched = '' }: IncomingMessage) => {
        asked.push(watched);
        return headers.authorization ?? 'nobody';
      },
    };
    const watch = createHttpHandler(hub, options);
    server = createServer((request, response) => {
      const [path = '/'] = (request.url ?? '/').split('?');
      if (path === '/watch') return watch(request, response);
      const script = extname(path) === '.js';
      response.setHeader('content-type', script ? 'text/javascript' : 'text/html');
      const answer = (): void =>
        void response.end(script ? readFileSync(new URL(`.${path}`, DIST)) : '<!doctype html><title>empty</title>');
      if (path === '/late') answerLate = answer;
      else answer();
    });
    attachWebSocket(server, hub, options);
    ({ url } = await start(server));
    await page.goto(url);
  });

  const clients = (): number => hub.stats().clients.length;

  /** As text: what runs there has neither our types nor our modules. */
  const open = (transport: ClientTransport): Promise<unknown> =>
    page.evaluate(`(async () => {
      const { connect } = await import('/client-browser.js');
      window.got = [];
      window.states = [];
      const watch = window.watch = connect('/watch', {
        transport: '${transport}', resourceVersion: '${hub.version}', capacity: 10, backoff: { minMs: 20 },
        onStateChange: (state) => window.states.push(state),
      });
      (async () => {
        for await (const { object } of watch) {
          window.got.push(object);
          if (window.got.length % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        }
      })();
    })()`);

  test('the root entry point publishes, filters, decodes a fetch body, and streams', async () => {
    const seen = await page.evaluate(`(async () => {
      const { Broadcaster, filter, fromReadableStream, StreamWatcher, toDecoder, toReadableStream } = await import('/index.js');
      const broadcaster = new Broadcaster();
      const fast = filter(broadcaster.watch(), ({ object }) => object * 2);
      const missed = [];
      const slow = broadcaster.watch({ capacity: 1, overflow: 'drop-oldest', onGap: (count) => missed.push(count) });
      const streamed = fromReadableStream(toReadableStream(broadcaster.watch()));
      for (const object of [1, 2, 3]) await broadcaster.publish({ type: 'n', object });
      await broadcaster.shutdown();
      const all = async (watch) => { const list = []; for await (const each of watch) list.push(each); return list; };
      const body = new Response('{"type":"n","object":4}\\n{"type":"n","object":5}\\n').body;
      return {
        fast: await all(fast),
        slow: (await all(slow)).map(({ object }) => object),
        missed,
        streamed: (await all(streamed)).map(({ object }) => object),
        decoded: (await all(new StreamWatcher(toDecoder(body)))).map(({ object }) => object),
      };
    })()`);
    expect(seen).toEqual({ fast: [2, 4, 6], slow: [3], missed: [2], streamed: [1, 2, 3], decoded: [4, 5] });
    expect(await page.evaluate('window.faults')).toEqual([]);
  });

  often('the page in docs/web-pages.md shows the latest price and the state of its connection', async () => {
    const { code: script } = markedBlock('browser');
    expect(script).toContain("from 'watchmux/client'");
    await page.addScriptTag({ type: 'module', content: script.replace('watchmux/client', '/client-browser.js') });
    const shows = (price: number, title: string): Promise<unknown> =>
      page.waitForFunction(`document.body.textContent === '${price}' && document.title === '${title}'`);
    await until(() => clients() === 1);
    await hub.publish({ type: 'price', object: 42 });
    await shows(42, 'open');
    server.closeAllConnections();
    await hub.publish({ type: 'price', object: 43 });
    await shows(43, 'open');
  });

  test.each(TRANSPORTS)('the client, over %s: resumes, and a slow page loses nothing', async (transport) => {
    await open(transport);
    // Before anything has happened.
    await until(() => page.evaluate('window.states[0] === "open"'));
    for (const object of range(300)) {
      await hub.publish({ type: 'ADDED', object });
      if (object === 150) server.closeAllConnections();
      if (object === 150 && transport === 'websocket') hub.disconnect(() => true);
      if (object % 10 === 0) await pause(1);
    }
    await until(() => page.evaluate('window.got.length >= 300'));
    expect(await page.evaluate('window.got')).toEqual(range(300));
    expect(await page.evaluate('window.watch.resourceVersion')).toBe(hub.version);
    expect(await page.evaluate('window.states')).toContain('waiting');
    expect(await page.evaluate('(window.watch.stop(), window.watch.state)')).toBe('closed');
    await until(() => clients() === 0);
    expect(await page.evaluate('window.faults')).toEqual([]);
  });

  test.each(TRANSPORTS)('the client, over %s: a token, asked for anew at each attempt, is in no URL', async (transport) => {
    await page.evaluate(`(async () => {
      const { connect } = await import('/client-browser.js');
      let tokens = 0;
      window.watch = connect('/watch', { transport: '${transport}', resourceVersion: '${hub.version}', backoff: { minMs: 20 },
        token: () => 't0ken+/~' + ++tokens });
    })()`);
    for (const attempt of [1, 2]) {
      await until(() => clients() === 1);
      expect(hub.stats().clients).toMatchObject([{ identity: `Bearer t0ken+/~${attempt}` }]);
      hub.disconnect(() => true);
      await until(() => hub.stats().total.clients > attempt);
    }
    expect(asked.join()).toContain('/watch');
    expect(asked.join()).not.toContain('t0ken');
    await page.evaluate('window.watch.return()');
  });

  test('the client, over http: a page that was left holds no connection', async () => {
    await open('http');
    await until(() => page.evaluate('window.states[0] === "open"'));
    await page.evaluate('setTimeout(() => { location.href = "/late"; })');
    await until(() => answerLate !== undefined);
    // It ends what a page reads as soon as the next page is asked for; the client then connects again.
    if (name === 'Firefox') await until(() => hub.stats().total.clients === 2);
    answerLate?.();
    await page.waitForURL(`${url}/late`);
    await until(() => clients() === 0);
  });

  test('an EventSource that is cut off before its first event, and again later, gets every event once and in order', async () => {
    await page.evaluate(`
      globalThis.got = [];
      globalThis.source = new EventSource('/watch');
      source.onmessage = ({ data, lastEventId }) => got.push([JSON.parse(data).object, lastEventId]);
    `);
    const cutAndPublish = async (...objects: number[]): Promise<void> => {
      await until(() => clients() === 1);
      await until(() => page.evaluate('source.readyState === EventSource.OPEN'));
      server.closeAllConnections();
      for (const object of objects) hub.tryPublish({ type: 'ADDED', object });
    };
    await cutAndPublish(1, 2);
    await until(() => page.evaluate('got.length >= 2'));
    await cutAndPublish(3);
    await until(() => page.evaluate('got.length >= 3'));
    expect(await page.evaluate('got')).toEqual([1, 2, 3].map((n) => [n, `e.${n}`]));
    expect(hub.stats().total).toMatchObject({ clients: 3, resumes: 2, refused: 0 });
    await page.evaluate('source.close()');
  });
});
