// Whether the pages of `pipe` and `serve` can be used by everyone: in every state what axe-core finds, in Chromium; and what it cannot
// see: what is read out and how often, and where the focus goes.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accessFaults } from './axe.ts';
import { CHROMIUM_BROWSER } from './browsers.ts';
import { killAll, pipe, type Serving, serve } from './cli.ts';

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
});

interface Stored {
  readonly metadata: { readonly uid: string };
}
