// The root door in a real browser: the built files, served as they are, loaded without a bundler.
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launch, withoutChromium } from './chromium.ts';

const DIST = new URL('../../dist/', import.meta.url);

describe.skipIf(withoutChromium)('the root door in Chromium', () => {
  let browser: Browser;
  let server: Server;
  let url: string;

  beforeAll(async () => {
    server = createServer(({ url: path = '/' }, response) => {
      const script = extname(path) === '.js';
      response.setHeader('content-type', script ? 'text/javascript' : 'text/html');
      response.end(script ? readFileSync(new URL(`.${path}`, DIST)) : '<!doctype html><title>empty</title>');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    browser = await launch();
  });

  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  });

  test('publishes, filters, decodes a fetch body, and streams', async () => {
    const page = await browser.newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(String(error)));
    await page.goto(url);
    // As text: what runs there has neither our types nor our modules.
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
    expect(faults).toEqual([]);
    await page.close();
  });
});
