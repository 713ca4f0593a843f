// A browser's own EventSource, which is told nothing of versions and resumes by itself: Last-Event-ID, real sockets, real cuts.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub.ts';
import { launch, withoutChromium } from './chromium.ts';
import { until } from './cli.ts';
import { closeAll, serve } from './servers.ts';

describe.skipIf(withoutChromium)('an EventSource in Chromium', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch();
  });

  afterAll(async () => {
    await browser?.close();
    await closeAll();
  });

  test('that is cut off before the first event, and again later, gets every event once and in order', async () => {
    const hub = new Hub({ epoch: 'e' });
    const { url, server } = await serve(hub);
    const page = await browser.newPage();
    // A page of the same origin; the server has nothing but streams.
    await page.route(`${url}/page`, (route) => route.fulfill({ contentType: 'text/html', body: '' }));
    await page.goto(`${url}/page`);
    await page.evaluate(`
      globalThis.got = [];
      globalThis.source = new EventSource(${JSON.stringify(`${url}/watch`)});
      source.onmessage = ({ data, lastEventId }) => got.push([JSON.parse(data).object, lastEventId]);
    `);
    const cutAndPublish = async (...objects: number[]): Promise<void> => {
      await until(() => hub.stats().clients.length === 1);
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
    await page.close();
  });
});
