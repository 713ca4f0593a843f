import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launch, withoutChromium } from './chromium.ts';
import { killAll, pipe, until, webSocket } from './cli.ts';

describe.skipIf(withoutChromium)('the live page in Chromium', () => {
  let browser: Browser;
  let pictures: string;

  beforeAll(async () => {
    browser = await launch();
    pictures = process.env.WATCHMUX_PICTURES ?? (await mkdtemp(join(tmpdir(), 'watchmux-pictures-')));
  });

  afterAll(async () => {
    await browser?.close();
    killAll();
    if (process.env.WATCHMUX_PICTURES === undefined) await rm(pictures, { recursive: true, force: true });
  });

  async function visit(url: string, options: Parameters<Browser['newPage']>[0] = {}): Promise<{ page: Page; faults: string[] }> {
    const page = await browser.newPage(options);
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text());
    });
    await page.goto(url);
    await page.waitForSelector('#state[data-state=live]');
    return { page, faults };
  }

  test('shows events as they come, who watches, and that the stream is live', async () => {
    const server = await pipe('--replay', '2', '--capacity', '10');
    server.write({ type: 'placed', object: { id: 1, note: '<b>no markup</b>' } }, 'plain text');
    await until(async () => (await server.stats()).accepted === 2);
    const { page, faults } = await visit(server.url, { viewport: { width: 1000, height: 640 } });
    const slow = await webSocket(server.url);
    slow.pause();
    await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 2);
    server.write(
      ...Array.from({ length: 12 }, (_, i) => ({
        type: i % 3 === 2 ? 'DELETED' : 'MODIFIED',
        object: { metadata: { name: `pod-${i}` } },
      })),
    );
    await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 14);
    const cells = await page
      .locator('#rows tr')
      .evaluateAll((rows) => rows.map((row) => Array.from((row as HTMLTableRowElement).cells, (cell) => cell.textContent)));
    expect(cells[0]).toEqual(['14', 'DELETED', '{"metadata":{"name":"pod-11"}}']);
    expect(cells.slice(-2)).toEqual([
      ['2', 'ADDED', 'plain text'],
      ['1', 'placed', '{"id":1,"note":"<b>no markup</b>"}'],
    ]);
    await page.waitForFunction(() => document.querySelectorAll('#clients tr').length === 2);
    const clients = await page.locator('#clients tr').evaluateAll((rows) => rows.map((row) => row.children[1]?.textContent));
    expect(clients).toEqual(['sse', 'websocket']);
    await page.waitForFunction(() => document.querySelector('#numbers')?.textContent === '14 events here of 14 accepted');
    await page.screenshot({ path: join(pictures, 'page-light.png') });
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.screenshot({ path: join(pictures, 'page-dark.png') });
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 375, height: 700 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    expect(wide).toBe(false);
    await page.screenshot({ path: join(pictures, 'page-phone.png') });
    expect(faults).toEqual([]);
    slow.close();
    server.child.kill('SIGTERM');
    await page.waitForSelector('#state[data-state=off]');
    expect(await server.exit).toBe(0);
    await page.close();
  });

  test('keeps up with a flood, and keeps only the newest rows', async () => {
    const server = await pipe('--capacity', '10000');
    const { page, faults } = await visit(server.url);
    server.write(...Array.from({ length: 20_000 }, (_, i) => i));
    await page.waitForFunction(() => document.querySelector('#numbers')?.textContent?.startsWith('20000 events'));
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '20000');
    expect(await page.locator('#rows tr').count()).toBe(300);
    expect(faults).toEqual([]);
    await page.close();
    server.child.kill('SIGTERM');
    expect(await server.exit).toBe(0);
  });
});
