// The site that `npm run docs` has written, in a real browser: .ci/full alone writes it, and runs this. WATCHMUX_PICTURES names a
// directory for screenshots. test/measured/site.test.ts has what Lighthouse says of it.
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { check, serve } from '../../config/site/parts.mjs';
import manifest from '../../package.json' with { type: 'json' };
import { component, isMissing } from '../components.ts';
import { accessFaults } from './axe.ts';
import { CHROMIUM_BROWSER } from './browsers.ts';

const SITE = component('site');
const FOLDER = dirname(SITE.path);
/** Not the root, which works too if this does. */
const BASE = '/some/where/';
const START = 'index.html';
const GUIDE = 'docs/bridge.html';
const API = 'reference/http/Hub.html';

describe.skipIf(isMissing(SITE) || CHROMIUM_BROWSER.missing)('the site', () => {
  let browser: Browser;
  let server: Server;
  let address: string;

  beforeAll(async () => {
    server = await serve(FOLDER, { base: BASE });
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}${BASE}`;
    browser = await CHROMIUM_BROWSER.launch();
  });

  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  });

  /** Opens a page, runs the code in it, and expects that nothing went wrong and nothing was asked of others. */
  async function visit(
    path: string,
    look: (page: Page) => Promise<void>,
    options: Parameters<Browser['newContext']>[0] = {},
  ): Promise<void> {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
    page.on(
      'request',
      (request) => !/^data:/.test(request.url()) && !request.url().startsWith(address) && faults.push(request.url()),
    );
    await page.goto(`${address}${path}`);
    await look(page);
    expect(faults).toEqual([]);
    await context.close();
  }

  const shoot = async (page: Page, name: string): Promise<unknown> => {
    const folder = process.env.WATCHMUX_PICTURES;
    return folder === undefined ? undefined : page.screenshot({ path: join(folder, `site-${name}.png`) });
  };
  const backgroundOf = (page: Page): Promise<string> => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

  test('has no dead link, and none to a repository that has no address yet', () => {
    const nowhere = 'repository' in manifest ? [] : ['/watchmux']; // a release fills it in
    const { faults, pages, links } = check(FOLDER, { forbidden: nowhere });
    expect(faults).toEqual([]);
    expect(pages).toBeGreaterThan(500);
    expect(links).toBeGreaterThan(10_000);
  });

  test('leads from the start page to a guide, to the reference of what it names, and back', async () => {
    await visit(START, async (page) => {
      await shoot(page, 'start');
      await page.getByRole('link', { name: 'PROTOCOL.md' }).first().click();
      await page.goBack();
      await page.locator('#tsd-nav-container').getByRole('link', { name: 'Bridge to WebSocket, SSE and HTTP' }).click();
      expect(page.url()).toBe(`${address}${GUIDE}`);
      await page.locator('.tsd-typography').getByRole('link', { name: 'Hub', exact: true }).first().click();
      expect(page.url()).toBe(`${address}${API}`);
      await shoot(page, 'reference');
      await page.locator('.tsd-tag-explainedIn').first().getByRole('link', { name: 'Bridge to WebSocket, SSE and HTTP' }).click();
      expect(page.url()).toBe(`${address}${GUIDE}`);
    });
  });

  test('finds a section of a guide, and an option, by the keyboard alone', async () => {
    await visit(API, async (page) => {
      await page.keyboard.press('/');
      await page.keyboard.type('one of several programs');
      const results = page.locator('#tsd-search-results [role=option]');
      await expect.poll(() => results.first().textContent()).toContain('One of several programs');
      await shoot(page, 'search');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.waitForURL(`${address}docs/workqueue.html#one-of-several-programs`);
      await expect
        .poll(() => page.locator('#one-of-several-programs').evaluate((it) => it.getBoundingClientRect().top < 500))
        .toBe(true);
      await page.keyboard.press('Control+k');
      await page.keyboard.type('bookmarkIntervalMs');
      await expect.poll(() => results.first().textContent()).toContain('bookmarkIntervalMs');
      await page.locator('#tsd-search-input').fill('no such thing at all, whatsoever');
      await expect.poll(() => page.locator('#tsd-search-status').textContent()).toContain('No results found');
    });
  });

  test('loads the index of the search when somebody searches, and not before', async () => {
    const asked: string[] = [];
    await visit(GUIDE, async (page) => {
      page.on('request', (request) => asked.push(request.url()));
      expect(
        await page.evaluate(() =>
          performance
            .getEntriesByType('resource')
            .map(({ name }) => name)
            .join(),
        ),
      ).not.toContain('search.js');
      await page.locator('#tsd-search-trigger').click();
      await expect.poll(() => asked.join()).toContain('assets/search.js');
    });
  });

  test('has every example with a button that copies it as it is', async () => {
    await visit(GUIDE, async (page) => {
      expect(await page.locator('pre').count()).toBeGreaterThan(5);
      expect(await page.locator('pre:not(:has(> button))').count()).toBe(0);
      const example = page.locator('pre').first();
      await example.hover();
      await example.getByRole('button', { name: 'Copy' }).click();
      await expect
        .poll(() => page.evaluate(() => navigator.clipboard.readText()))
        .toContain("import { createServer } from 'node:http';\n");
    });
    // A file that a guide links to is a page.
    await visit('docs/operation/alerts.yaml.html', async (page) => {
      expect(await page.locator('pre > code').first().innerText()).toContain('\ngroups:\n  - name: watchmux\n');
    });
  });

  test('axe-core finds nothing on its pages, nor in the search and the menu', async () => {
    const faults: string[] = [];
    for (const path of [START, GUIDE, API, 'reference.html', 'docs/operation/alerts.yaml.html'])
      await visit(path, async (page) => void faults.push(...(await accessFaults(page, path))));
    await visit(GUIDE, async (page) => {
      await page.keyboard.press('/');
      await page.keyboard.type('bookmark');
      await page.waitForSelector('#tsd-search-results [role=option]');
      faults.push(...(await accessFaults(page, 'search')));
      await page.locator('#tsd-search-input').fill('no such thing at all, whatsoever');
      await expect.poll(() => page.locator('#tsd-search-status').textContent()).toContain('No results found');
      faults.push(...(await accessFaults(page, 'nothing found')));
    });
    const phone = { viewport: { width: 390, height: 844 } };
    await visit(
      API,
      async (page) => {
        await page.locator('#tsd-toolbar-menu-trigger').click();
        faults.push(...(await accessFaults(page, 'menu', [phone.viewport])));
      },
      phone,
    );
    expect(faults).toEqual([]);
  }, 180_000);

  test('is light and dark, as the system is or as the reader chooses', async () => {
    const seen: string[] = [];
    for (const colorScheme of ['light', 'dark'] as const)
      await visit(GUIDE, async (page) => void seen.push(await backgroundOf(page)), { colorScheme });
    expect(new Set(seen).size).toBe(2);
    await visit(GUIDE, async (page) => {
      await page.locator('.tsd-theme-toggle summary, summary', { hasText: 'Settings' }).first().click();
      await page.locator('#tsd-theme').selectOption('dark');
      expect(await backgroundOf(page)).toBe(seen[1]);
      await page.goto(`${address}${API}`);
      expect(await backgroundOf(page)).toBe(seen[1]);
      await shoot(page, 'dark');
    });
  });

  test.each([START, GUIDE, API, 'docs/limits.html', 'reference.html'])('fits a phone: %s', async (path) => {
    await visit(
      path,
      async (page) => {
        await shoot(page, `phone-${path.replaceAll('/', '-')}`);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
      },
      { viewport: { width: 390, height: 844 } },
    );
  });
});
