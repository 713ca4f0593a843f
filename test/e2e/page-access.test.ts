// Whether the pages of `pipe` and `serve` can be used by everyone: in every state what axe-core finds, in Chromium; and what it cannot
// see: what is read out and how often, and where the focus goes.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accessFaults } from './axe.ts';
import { CHROMIUM_BROWSER } from './browsers.ts';
import { atFreePort, killAll, pipe, type Serving, serve } from './cli.ts';

const LONG_MS = 180_000;
const ORDERS = '/apis/example.com/v1/namespaces/default/orders';
const eventually = <T>(read: () => T): ReturnType<typeof expect.poll<T>> => expect.poll(read, { timeout: 20_000 });

describe.skipIf(CHROMIUM_BROWSER.missing)('the pages for everyone', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await CHROMIUM_BROWSER.launch();
  });

  afterAll(async () => {
    await browser?.close();
    killAll();
  });

  async function send(server: Serving, method: string, path: string, body?: object): Promise<Stored> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const init = { method, headers: { 'content-type': type }, body: body ? JSON.stringify(body) : null };
    const response = await fetch(`${server.url}${path}`, init);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Stored;
  }

  const order = (name: string, more: object = {}): object => ({
    ...{ apiVersion: 'example.com/v1', kind: 'Order', metadata: { name, labels: { app: 'web', tier: name } }, ...more },
  });

  const open = (): Promise<Page> => browser.newPage({ viewport: { width: 1_440, height: 900 } });

  test(
    'axe-core finds nothing on the page of pipe, in any state',
    async () => {
      const faults: string[] = [];
      const server = await pipe('--replay', '100');
      const page = await open();
      const look = async (state: string): Promise<unknown> => faults.push(...(await accessFaults(page, state)));
      await page.goto(`${server.url}/?slow`);
      await page.waitForSelector('#state[data-state=live]');
      await look('empty');
      const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];
      server.write(
        ...levels.map((level, at) => ({ level, msg: `message ${at}`, status: 200 + at, nested: { at, on: true } })),
        ...['ADDED', 'MODIFIED', 'DELETED'].map((type) => ({ type, object: { metadata: { name: 'a' } } })),
        Array.from(
          { length: 9 },
          (_, at) => `\u001b[${30 + at}mink\u001b[0m \u001b[${40 + at}mground\u001b[0m \u001b[7mboth\u001b[0m`,
        ).join(' '),
      );
      await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 10);
      await look('rows');
      await page.click('#rows tr:nth-child(5) button');
      await page.waitForSelector('#rows .detail');
      await page.click('#columns');
      await page.click('#wrap');
      await look('a row and the columns open, wrapped');
      await page.fill('#filter', 'level>=');
      await look('a filter that is wrong');
      await page.fill('#filter', 'nothing has this');
      await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 0);
      await look('nothing found');
      await page.fill('#filter', '');
      await page.click('#slow');
      server.write('more');
      await page.focus('#rows button[tabindex="0"]');
      await look('slow on purpose, paused');
      server.child.kill('SIGKILL');
      await page.waitForSelector('#state[data-state=off]');
      await page.waitForSelector('body.stale');
      await look('connection lost');
      expect(faults).toEqual([]);
      await page.close();
    },
    LONG_MS,
  );

  test(
    'axe-core finds nothing on the page of serve, in any state',
    async () => {
      const faults: string[] = [];
      const server = await serve('--resource', 'orders.example.com/v1=Order');
      const page = await open();
      const look = async (state: string): Promise<unknown> => faults.push(...(await accessFaults(page, state)));
      await page.goto(`${server.url}/#orders.example.com%2Fv1`);
      await page.waitForSelector('#state[data-state=live]');
      await eventually(() => page.locator('#none').textContent()).toBe('No objects yet. They appear here as they are created.');
      await look('empty');
      const { metadata } = await send(server, 'POST', ORDERS, order('a-tea', { spec: { count: 1, list: [1, 'two', null] } }));
      for (let at = 0; at < 60; at++) await send(server, 'POST', ORDERS, order(`order-${at}`));
      const about = { apiVersion: 'example.com/v1', kind: 'Order', name: 'a-tea', namespace: 'default', uid: metadata.uid };
      await send(server, 'POST', '/api/v1/namespaces/default/events', {
        ...{ metadata: { name: 'tea.1', namespace: 'default' }, involvedObject: about, type: 'Warning', reason: 'Spilled' },
        ...{ message: 'on the floor', lastTimestamp: '2026-01-02T03:04:05Z', count: 3 },
      });
      await page.waitForFunction(() => document.getElementById('objects-table')?.ariaRowCount === '62');
      await look('rows');
      await page.click('#more summary');
      await page.fill('#selector', 'app in (web');
      await page.keyboard.press('Enter');
      await look('filters open, one of them wrong');
      await page.fill('#selector', 'app=web');
      await page.keyboard.press('Enter');
      await page.waitForSelector('#object-rows [aria-pressed=true]');
      await look('a label that filters');
      await page.fill('#selector', '');
      await page.keyboard.press('Enter');
      const opener = page.locator('#object-rows tr[data-id="default/a-tea"] button').first();
      await opener.focus();
      await page.keyboard.press('Enter');
      await eventually(() => page.locator('#detail-phase').textContent()).toBe('live');
      await send(server, 'PATCH', `${ORDERS}/a-tea`, { spec: { count: 2 } });
      await page.waitForSelector('#detail-text mark');
      await look('YAML, with a change');
      await page.selectOption('#detail-format', 'json');
      await look('JSON');
      await page.click('#detail-tab-history');
      await page.waitForFunction(() => document.querySelectorAll('#detail-entries > li').length > 1);
      await look('history');
      await page.click('#detail-tab-events');
      await page.waitForSelector('#detail-events-rows tr');
      await look('events');
      await page.click('#detail-tab-edit');
      const area = page.locator('#edit-text');
      await eventually(() => area.inputValue()).toContain('count');
      await look('edit');
      await area.fill((await area.inputValue()).replace('"web"', '"not a label!"'));
      await page.click('#edit-save');
      await page.waitForSelector('#edit-faults li');
      await look('edit, with a fault');
      await area.fill((await area.inputValue()).replace('"not a label!"', '"mine"'));
      await send(server, 'PATCH', `${ORDERS}/a-tea`, { spec: { count: 3 } });
      await page.click('#edit-save');
      await page.waitForSelector('#edit-other:not([hidden])');
      await look('edit, with a conflict');
      await page.click('#edit-reset');
      await page.click('#detail-delete');
      await look('delete');
      await page.keyboard.press('Escape');
      await page.click('#detail-tab-object');
      await send(server, 'DELETE', `${ORDERS}/a-tea`);
      await eventually(() => page.locator('#detail-facts').textContent()).toMatch(/^Deleted at/);
      await look('an object that is gone');
      server.child.kill('SIGKILL');
      await page.waitForSelector('#detail-phase[data-state=off]');
      await look('connection lost, object');
      await page.keyboard.press('Escape');
      await page.waitForSelector('#lost:not([hidden])');
      await look('connection lost');
      expect(faults).toEqual([]);
      await page.close();
    },
    LONG_MS,
  );

  test(
    'axe-core finds nothing on the page of serve that asks for a token',
    async () => {
      const server = await serve('--token', 'secret');
      const page = await open();
      await page.goto(server.url);
      await page.waitForSelector('#ask', { state: 'visible' });
      const faults = await accessFaults(page, 'token');
      await page.keyboard.type('wrong');
      await page.keyboard.press('Enter');
      await eventually(() => page.locator('#ask-fault').textContent()).toBe('The server does not accept this token.');
      faults.push(...(await accessFaults(page, 'wrong token')));
      expect(faults).toEqual([]);
      await page.close();
    },
    LONG_MS,
  );

  /** The live regions, as a screen reader knows them. */
  async function liveRegions(page: Page): Promise<string[]> {
    const session = await page.context().newCDPSession(page);
    const { nodes } = await session.send('Accessibility.getFullAXTree');
    const property = (node: (typeof nodes)[number], name: string): unknown =>
      node.properties?.find((each) => (each.name as string) === name)?.value.value;
    const textOf = (id: string): string => {
      const node = nodes.find(({ nodeId }) => nodeId === id);
      return node?.role?.value === 'StaticText' ? String(node.name?.value) : (node?.childIds ?? []).map(textOf).join('');
    };
    return nodes
      .filter((node) => property(node, 'live') !== undefined && !node.ignored)
      .map((node) => `${node.role?.value} ${property(node, 'live')}: ${textOf(node.nodeId)}`);
  }

  /** What a screen reader finds on a page, without what is in its rows: roles and names, in its order. */
  async function outline(page: Page, roles: RegExp): Promise<string[]> {
    const lines = (await page.locator('body').ariaSnapshot()).split('\n').map((line) => line.trim().replace(/^- |:$/g, ''));
    return lines.filter((line) => roles.test(line));
  }

  test('pages are read in their order; a heading is its words, and what is hidden has no label', async () => {
    const stream = await pipe('--replay', '10');
    const page = await open();
    await page.goto(stream.url);
    stream.write({ level: 'info', msg: 'one' });
    await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 1);
    const parts = /^(?:link|banner|main|region|table|columnheader|status|text: Event type)/;
    expect(await outline(page, parts)).toEqual([
      ...['link "Skip to the events"', 'banner', 'main', 'region "Events"', 'table "Events"'],
      ...['no.', 'received', 'level', 'msg', 'object'].map((head) => `columnheader "${head}"`),
      ...['region "The stream"', 'region "This page"', 'region "Clients"', 'table "Clients"'],
      ...['client', 'queue', 'lag', 'dropped'].map((head) => `columnheader "${head}"`),
      expect.stringMatching(/^status: ./),
    ]);
    const server = await serve('--resource', 'orders.example.com/v1=Order');
    await send(server, 'POST', ORDERS, order('tea'));
    await page.goto(`${server.url}/?sort=-name#orders.example.com%2Fv1`);
    await page.waitForSelector('#object-head [aria-sort=descending]');
    const orders = page.locator('#objects');
    expect(await orders.getByRole('columnheader', { name: 'name', exact: true }).count()).toBe(1);
    expect((await outline(page, /^(?:link|banner|main|region)/)).slice(0, 7)).toEqual([
      ...['link "Skip to the objects"', 'banner', 'main', 'region "orders"', 'region "The server"', 'region "Resources"'],
      'region "Cache of orders"',
    ]);
    await page.close();
  });

  test('nothing is cut off: on a phone no hint in a field, at a desk no name of a resource', async () => {
    const server = await serve();
    const page = await open();
    await page.goto(`${server.url}/#configmaps%2Fv1`);
    const name = page.locator('#resources button', { hasText: 'customresourcedefinitions' });
    expect(
      await name.evaluate(({ firstChild }) => {
        const range = document.createRange();
        range.selectNodeContents(firstChild as Node);
        return range.getClientRects().length;
      }),
    ).toBe(1);
    await page.setViewportSize({ width: 390, height: 844 });
    const cut = (): Promise<string[]> =>
      page.locator('input:visible').evaluateAll((inputs) =>
        (inputs as HTMLInputElement[]).flatMap((input) => {
          input.value = input.placeholder; // a hint has no size of its own
          const { scrollWidth, clientWidth, placeholder } = input;
          input.value = '';
          return scrollWidth > clientWidth ? [placeholder] : [];
        }),
      );
    expect(await page.locator('input:visible').count()).toBeGreaterThan(1);
    expect(await cut()).toEqual([]);
    const skip = page.locator('.skip');
    expect((await skip.boundingBox())?.y).toBeLessThan(-20);
    await skip.focus();
    expect((await skip.boundingBox())?.y).toBeGreaterThan(0);
    await page.close();
  });

  /** Counts how often something is read out from now on. */
  async function countSpoken(page: Page): Promise<() => Promise<number>> {
    await page.evaluate(() => {
      const counted = window as { spoken?: number };
      counted.spoken = 0;
      const observer = new MutationObserver((changes) => {
        // A screen reader reads once what has changed in one region at one time.
        counted.spoken = (counted.spoken ?? 0) + new Set(changes.map(({ target }) => target)).size;
      });
      for (const region of document.querySelectorAll('[aria-live], [role=status], [role=alert], [role=log]'))
        observer.observe(region, { subtree: true, childList: true, characterData: true });
    });
    return () => page.evaluate(() => (window as { spoken?: number }).spoken ?? 0);
  }

  test('a row and an object that change a hundred times a second are read out every few seconds at most', async () => {
    const server = await serve('--resource', 'orders.example.com/v1=Order');
    await send(server, 'POST', ORDERS, order('busy', { spec: { count: 0 } }));
    const page = await open();
    await page.goto(`${server.url}/#orders.example.com%2Fv1`);
    await page.locator('#object-rows tr[data-id="default/busy"] button').first().focus();
    await eventually(() => liveRegions(page)).toEqual([expect.stringMatching(/^status polite: Following orders/)]);
    await page.keyboard.press('Enter');
    await eventually(() => page.locator('#detail-phase').textContent()).toBe('live');
    const spoken = await countSpoken(page);
    const begun = performance.now();
    let sent = 0;
    for (; performance.now() - begun < 3_000 || sent < 300; sent++) {
      await send(server, 'PATCH', `${ORDERS}/busy`, { spec: { count: sent }, metadata: { labels: { tier: `t${sent}` } } });
    }
    await eventually(() => page.locator('#detail-text').innerText()).toContain(`count: ${sent - 1}\n`);
    const seconds = (performance.now() - begun) / 1_000;
    // Each of the two regions: at once, and then one every three seconds.
    expect(await spoken()).toBeGreaterThan(0);
    expect(await spoken()).toBeLessThanOrEqual(2 * (1 + Math.ceil(seconds / 3)));
    await page.close();
  });

  test('five thousand events a second are not read out; that the connection is lost is, once', async () => {
    const server = await pipe('--replay', '100', '--capacity', '50000');
    const page = await open();
    await page.goto(server.url);
    await page.waitForSelector('#state[data-state=live]');
    expect(await liveRegions(page)).toEqual([expect.stringMatching(/^status polite: ./)]);
    const spoken = await countSpoken(page);
    for (let at = 0; at < 20; at++) {
      server.write(...Array.from({ length: 500 }, (_, more) => ({ level: 'info', at: at * 500 + more })));
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
    }
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '10000');
    expect(await spoken()).toBe(0);
    server.child.kill('SIGKILL');
    // However often the page tries in vain, it says so once.
    await eventually(() => liveRegions(page)).toEqual([expect.stringMatching(/^status polite: (Connection lost|Not connected)/)]);
    const tries = (times: number): Promise<unknown> =>
      page.waitForFunction((count) => {
        const told = /\((\d+) times\)/.exec(document.querySelector('#history li')?.textContent ?? '');
        if (Number(told?.[1]) >= count) return true;
        const retry = document.getElementById('retry');
        if (retry?.hidden === false) retry.click();
        return false;
      }, times);
    await tries(2);
    const again = await countSpoken(page);
    await tries(5);
    expect(await again()).toBe(0);
    await page.close();
  });

  test('the focus is never lost: not with a token, not by a deletion, not when the token is refused while it is asked for', async () => {
    const first = await serve('--token', 'one', '--resource', 'orders.example.com/v1=Order', ...(await atFreePort()));
    const { port } = new URL(first.url);
    const create = (name: string, token: string): Promise<unknown> =>
      fetch(`${first.url}${ORDERS}`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` } },
        body: JSON.stringify(order(name)),
      });
    await create('a', 'one');
    await create('b', 'one');
    const page = await open();
    const focused = (): Promise<string> =>
      page.evaluate(() => document.activeElement?.id || (document.activeElement?.localName ?? ''));
    await page.goto(`${first.url}/#orders.example.com%2Fv1`);
    await page.waitForSelector('#ask', { state: 'visible' });
    await page.keyboard.type('one');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#object-rows tr[data-id="default/a"]');
    expect(await focused()).toBe('objects');
    // All by keyboard: to the rows, into one, to the button that deletes it, and to the answer.
    for (let presses = 0; (await focused()) !== 'button' || presses === 0; presses++) {
      await page.keyboard.press('Tab');
      expect(presses).toBeLessThan(30);
    }
    while (!(await page.evaluate(() => document.activeElement?.closest('#object-rows')))) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await eventually(() => page.locator('#detail-phase').textContent()).toBe('live');
    expect(await focused()).toBe('detail');
    await eventually(() => page.locator('#detail-delete').isDisabled()).toBe(false);
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('detail-delete');
    await page.keyboard.press('Enter');
    expect(await focused()).toBe('delete-no');
    await page.keyboard.press('Tab');
    expect(await focused()).toBe('delete-yes');
    await page.keyboard.press('Enter');
    await eventually(() => page.locator('#detail-facts').textContent()).toMatch(/^Deleted at/);
    await eventually(focused).toBe('detail');
    await page.keyboard.press('Escape');
    await eventually(() => page.evaluate(() => document.activeElement?.closest('tr')?.dataset.id)).toBe('default/b');
    await page.keyboard.press('Enter');
    await eventually(() => page.locator('#detail-phase').textContent()).toBe('live');
    await eventually(() => page.locator('#detail-delete').isDisabled()).toBe(false);
    await page.focus('#detail-delete');
    await page.keyboard.press('Enter');
    expect(await focused()).toBe('delete-no');
    // The server comes back with another token, while the page asks.
    first.child.kill('SIGKILL');
    await first.exit;
    await serve('--token', 'two', '--resource', 'orders.example.com/v1=Order', '--port', port);
    await page.waitForSelector('#ask', { state: 'visible' });
    await eventually(focused).toBe('token');
    await page.keyboard.type('two');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#ask', { state: 'hidden' });
    await eventually(focused).toBe('detail');
    await page.close();
  }, 60_000);
});

interface Stored {
  readonly metadata: { readonly uid: string };
}
