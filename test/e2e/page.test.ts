// The live page of `watchmux pipe` in a real browser. WATCHMUX_PICTURES names a directory for its screenshots.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PipeStats } from '../../src/pages/words.ts';
import { inBrowsers } from './browsers.ts';
import { killAll, type Pipe, pipe, run, until, webSocket } from './cli.ts';

interface Visit {
  readonly page: Page;
  readonly faults: string[];
}

inBrowsers('the live page', ({ name, launch }) => {
  let browser: Browser;
  let pictures: string;
  /** For what is the same in all of them: there in one of them only. */
  const once = (title: string, body: () => Promise<void>): void => {
    if (name === 'Chromium') test(title, body);
  };

  beforeAll(async () => {
    browser = await launch();
    pictures = process.env.WATCHMUX_PICTURES ?? (await mkdtemp(join(tmpdir(), 'watchmux-pictures-')));
  });

  afterAll(async () => {
    await browser?.close();
    killAll();
    if (process.env.WATCHMUX_PICTURES === undefined) await rm(pictures, { recursive: true, force: true });
  });

  async function visit(url: string, options: Parameters<Browser['newPage']>[0] = {}): Promise<Visit> {
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

  /** For a picture playwright adds a style, which the page's policy refuses; Firefox reports that, and it is no fault of the page. */
  async function shoot({ page, faults }: Visit, of: string, fullPage: boolean = false): Promise<void> {
    expect(faults).toEqual([]);
    await page.screenshot({ path: join(pictures, `${of}-${name.toLowerCase()}.png`), fullPage });
    faults.length = 0;
  }

  const rows = (page: Page): Promise<(string | null)[][]> =>
    page
      .locator('#rows tr')
      .evaluateAll((all) => all.map((row) => Array.from((row as HTMLTableRowElement).cells, (cell) => cell.textContent)));
  const history = (page: Page): Promise<string[]> => page.locator('#history li').allTextContents();

  async function end(server: Pipe): Promise<void> {
    server.child.kill('SIGTERM');
    expect(await server.exit).toBe(0);
  }

  test('shows events as they arrive, the clients, and that the stream is live', async () => {
    const server = await pipe('--replay', '2', '--capacity', '10');
    server.write({ type: 'placed', object: { id: 1, note: '<b>no markup</b>' } }, 'plain text');
    await until(async () => (await server.stats()).accepted === 2);
    const { page, faults } = await visit(server.url, { viewport: { width: 1280, height: 800 } });
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
    const cells = (await rows(page)).map(([number, , type, object]) => [number, type, object]);
    expect(cells[0]).toEqual(['14', 'DELETED', '{"metadata":{"name":"pod-11"}}']);
    expect(cells.slice(-2)).toEqual([
      ['2', 'ADDED', 'plain text'],
      ['1', 'placed', '{"id":1,"note":"<b>no markup</b>"}'],
    ]);
    await page.waitForFunction(() => document.querySelectorAll('#clients tr').length === 2);
    const who = await page.locator('#clients .who').evaluateAll((all) => all.map((each) => (each as HTMLElement).innerText));
    expect(who).toEqual(['1 http this page', '2 websocket']);
    // The page asks for the server's numbers once a second. What it has received by then, it says beside them.
    for (const total of ['accepted', 'received']) {
      await page.waitForFunction((id) => document.querySelector(id)?.textContent === '14', `#total-${total}`);
    }
    expect(await page.locator('#policy').textContent()).toBe('queue per client: 10 events, overflow: disconnect');
    await shoot({ page, faults }, 'page-light');
    await page.emulateMedia({ colorScheme: 'dark' });
    await shoot({ page, faults }, 'page-dark');
    await page.emulateMedia({ colorScheme: 'light' });
    for (const width of [390, 320]) {
      await page.setViewportSize({ width, height: 844 });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
      expect(wide).toBe(false);
    }
    await shoot({ page, faults }, 'page-phone', true);
    expect(faults).toEqual([]);
    slow.close();
    await end(server);
    await page.waitForSelector('#state[data-state=off]');
    await page.close();
  });

  once('keeps up with a flood, and keeps only the newest rows', async () => {
    const server = await pipe('--capacity', '10000');
    const { page, faults } = await visit(server.url);
    server.write(...Array.from({ length: 20_000 }, (_, i) => i));
    await page.waitForFunction(() => document.querySelector('#total-received')?.textContent === '20,000');
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '20000');
    expect(await page.locator('#rows tr').count()).toBe(200);
    expect(await page.locator('#note').textContent()).toBe('the last 2,000 events');
    expect(faults).toEqual([]);
    await page.close();
    await end(server);
  });

  test('searches events by text and type, pauses on request, and opens a row by keyboard', async () => {
    const server = await pipe();
    const { page, faults } = await visit(server.url);
    server.write(
      ...['ann', 'bob', 'ann', 'eve'].map((name, i) => ({ type: i === 2 ? 'paid' : 'placed', object: { name, deep: { i } } })),
    );
    await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 4);
    await page.fill('#text', 'ANN');
    expect((await rows(page)).map(([number]) => number)).toEqual(['3', '1']);
    await page.selectOption('#type', 'placed');
    expect((await rows(page)).map(([number]) => number)).toEqual(['1']);
    expect(await page.locator('#note').textContent()).toBe('1 of the last 4 events');
    await page.fill('#text', 'nobody');
    expect(await page.locator('#none').innerText()).toBe('Nothing matches.');
    await page.fill('#text', '');
    await page.selectOption('#type', '');
    // One stop of the tab key, arrows from there, Enter opens.
    await page.focus('#pause');
    await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('3');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-expanded'))).toBe('true');
    expect(await page.locator('#rows .detail pre').textContent()).toBe('{\n  "name": "ann",\n  "deep": {\n    "i": 2\n  }\n}');
    // Nothing moves under who reads it.
    server.write('five', 'six');
    await page.waitForFunction(() => document.querySelector('#pause')?.textContent === 'Continue, 2 new');
    expect(await page.locator('#rows tr[data-id]').count()).toBe(4);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '6');
    expect(await page.locator('#pause').textContent()).toBe('Pause');
    await page.click('#pause');
    server.write('seven');
    await page.waitForFunction(() => document.querySelector('#pause')?.textContent === 'Continue, 1 new');
    await page.click('#pause');
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '7');
    // A search closes the row that was open, so there is no reason left to stand still.
    await page.focus('#rows button');
    await page.keyboard.press('Enter');
    expect(await page.locator('#pause').textContent()).toBe('Continue');
    await page.fill('#text', 'e');
    expect(await page.locator('#rows .detail').count()).toBe(0);
    expect(await page.locator('#pause').textContent()).toBe('Pause');
    server.write('eight');
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '8');
    expect(faults).toEqual([]);
    await page.close();
    await end(server);
  });

  test('shows what was sent: numbers with all their digits, and nothing that is invisible or reorders the rest', async () => {
    const server = await pipe('--replay', '5');
    const { page, faults } = await visit(server.url);
    server.child.stdin.write('{"type":"id","object":{"id":12345678901234567890,"at":0.12345678901234567890,"n":1}}\n');
    server.write({ type: '\u202eDEDDA', object: '\u001b[31m\u200b\u2066a b' }, { type: 'x'.repeat(100), object: 1 });
    await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 3);
    expect((await rows(page)).map(([, , type, object]) => [type, object]).slice(1)).toEqual([
      ['\\u202eDEDDA', '\\u001b[31m\\u200b\\u2066a b'],
      ['id', '{"id":12345678901234567890,"at":0.12345678901234567890,"n":1}'],
    ]);
    expect(await page.locator('#type option').nth(1).textContent()).toBe('id');
    for (const row of await page.locator('#rows tr[data-id]').all()) await row.click();
    const details = await page.locator('#rows .detail').allInnerTexts();
    // A type that its column cuts off is there in full.
    expect(details[0]).toContain(`type ${'x'.repeat(100)}\n`);
    expect(details[1]).toContain('\\u2066a b');
    expect(details[2]).toContain('"id": 12345678901234567890');
    expect(faults).toEqual([]);
    await page.close();
    await end(server);
  });

  test('by keyboard alone a row can be opened however fast events arrive', async () => {
    const server = await pipe('--capacity', '5000');
    const { page, faults } = await visit(server.url);
    server.write(...Array.from({ length: 300 }, (_, i) => i));
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '300');
    const focused = (): Promise<string | null | undefined> => page.evaluate(() => document.activeElement?.textContent);
    await page.focus('#pause');
    await page.keyboard.press('Tab');
    server.write(...Array.from({ length: 300 }, (_, i) => i));
    await page.waitForFunction(() => document.querySelector('#pause')?.textContent === 'Continue, 300 new');
    expect(await focused()).toBe('300');
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toBe('299');
    // The button goes on saying what it does when it is reached.
    await page.keyboard.press('Shift+Tab');
    expect(await focused()).toBe('Continue, 300 new');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '600');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.locator('#rows .detail').count()).toBe(1);
    // Closed, it is pushed out of the table; the focus is not.
    await page.keyboard.press('Enter');
    server.write(...Array.from({ length: 300 }, (_, i) => i));
    await page.waitForFunction(() => document.activeElement?.textContent === '900');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Shift+Tab');
    server.write('last');
    await page.waitForFunction(() => document.querySelector('#pause')?.textContent === 'Continue, 1 new');
    // A button whose name changes is not pressed as well.
    expect(await page.locator('#pause').getAttribute('aria-pressed')).toBe(null);
    expect(faults).toEqual([]);
    await page.close();
    await end(server);
  });

  once('on a phone, the number of an event does not run into its type, however long the stream is', async () => {
    const server = await pipe();
    const page = await browser.newPage({ viewport: { width: 320, height: 700 } });
    const body = '{"type":"ADDED","object":1,"resourceVersion":"e.1234567890"}\n';
    await page.route('**/watch*', (route) => route.fulfill({ body, contentType: 'application/json' }));
    await page.goto(server.url);
    const edges = await page.locator('#rows tr').evaluate((row) => {
      const [number, , type] = (row as HTMLTableRowElement).cells;
      const range = document.createRange();
      range.selectNodeContents(type as Node);
      return [number?.querySelector('button')?.getBoundingClientRect().right, range.getBoundingClientRect().left] as number[];
    });
    expect(edges[0]).toBeLessThan(edges[1] as number);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    expect(wide).toBe(false);
    await page.close();
    await end(server);
  });

  once(
    'at a zoom of 400 % the bar above the rows does not cover them; with forced colours a pressed button differs',
    async () => {
      const server = await pipe();
      const { page, faults } = await visit(server.url, { viewport: { width: 320, height: 256 } });
      server.write(...Array.from({ length: 50 }, (_, i) => i));
      await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 50);
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      const bottom = await page.locator('.bar').evaluate((bar) => bar.getBoundingClientRect().bottom);
      expect(bottom).toBeLessThan(64);
      await page.emulateMedia({ forcedColors: 'active' });
      const colour = (): Promise<string> => page.locator('#slow').evaluate((button) => getComputedStyle(button).backgroundColor);
      const before = await colour();
      await page.click('#slow');
      expect(await colour()).not.toBe(before);
      expect(faults).toEqual([]);
      await page.close();
      await end(server);
    },
  );

  test('slow on purpose: its queue fills, it is cut and told what it missed; at full speed it loses nothing', async () => {
    const server = await pipe('--capacity', '10');
    const { page, faults } = await visit(server.url);
    const fast = await webSocket(server.url);
    server.write(1);
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '1');
    await page.click('#slow');
    await page.waitForSelector('#state[data-state=slow]');
    expect((await history(page))[0]).toContain('resumed after event 1: nothing is missing');
    const filler = 'x'.repeat(100);
    for (let i = 0; i < 60; i++) {
      server.write({ type: 'n', object: { i, filler } });
      await until(async () => (await server.stats()).accepted === i + 2);
    }
    await page.waitForFunction(() => Number(document.querySelector('#own-dropped')?.textContent) > 0);
    expect(await page.locator('#slow-note').textContent()).toContain('the server has cut this page');
    // Nobody else notices.
    await until(() => fast.texts.length === 61);
    await shoot({ page, faults }, 'page-slow');
    await page.click('#slow');
    await page.waitForSelector('#state[data-state=live]');
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '61');
    const places = (await rows(page)).map(([place]) => Number(place));
    expect(places).toEqual(Array.from({ length: 61 }, (_, i) => 61 - i));
    // The counters say what the history says: nothing is missing.
    await page.waitForFunction(() => document.querySelector('#total-dropped')?.textContent === '0');
    const { total, recovered, clients } = (await server.stats()) as unknown as PipeStats;
    expect(recovered).toBe(total.dropped);
    expect(recovered).toBeGreaterThan(0);
    expect(clients.find(({ transport }) => transport === 'http')?.recovered).toBe(recovered);
    for (const id of ['total-recovered', 'own-recovered'])
      expect(await page.locator(`#${id}`).textContent()).toBe(String(recovered));
    expect(await page.locator('#total-dropped').getAttribute('class')).toBe('');
    expect(await page.locator('[data-part=recovered]:visible').textContent()).toBe(`recovered ${recovered}`);
    expect(faults).toEqual([]);
    fast.close();
    await page.close();
    await end(server);
    expect(server.err()).toContain(`${recovered} dropped, ${recovered} of them recovered\n`);
  });

  once(
    'slow on purpose with a policy that drops events: the numbers show how many, and full speed gets them after all',
    async () => {
      const server = await pipe('--capacity', '5', '--overflow', 'drop-oldest');
      const { page, faults } = await visit(server.url);
      server.write(1);
      await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '1');
      await page.selectOption('#share', '100');
      await page.click('#slow');
      await page.waitForSelector('#state[data-state=slow]');
      const filler = 'x'.repeat(5_000);
      for (let i = 0; i < 30; i++) {
        server.write({ type: 'n', object: { i, filler } });
        await until(async () => (await server.stats()).accepted === i + 2);
      }
      await page.waitForFunction(() => Number(document.querySelector('#own-dropped')?.textContent) > 0);
      const { clients } = await server.stats();
      const dropped = clients.map((client) => client.dropped);
      expect(dropped).toEqual([24]); // 30, of which one is on its way and five are queued
      await page.click('#slow');
      await page.waitForSelector('#state[data-state=live]');
      // What was dropped for a slow client is still there for one that comes back.
      await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '31');
      expect(await page.locator('#rows tr').count()).toBe(31);
      expect(faults).toEqual([]);
      await page.close();
      await end(server);
    },
  );

  test('shows that a server is gone, and when it is back; the 410 of the restarted server is explained', async () => {
    const first = await pipe('--replay', '5');
    const { page } = await visit(first.url);
    first.write('before');
    await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 1);
    first.child.kill('SIGKILL');
    await page.waitForSelector('#state[data-state=off]');
    await page.waitForSelector('body.stale');
    expect(await page.locator('.old').isVisible()).toBe(true);
    const { port } = new URL(first.url);
    const second = run('pipe', '--port', port, '--replay', '5');
    await until(() => second.out().includes('listening'));
    second.child.stdin.write('"after"\n');
    // The page itself may be faster: then there is nothing left to click.
    const live = page.waitForSelector('#state[data-state=live]');
    await Promise.race([page.click('#retry').catch(() => {}), live]);
    await live;
    await page.waitForFunction(() => document.querySelector('#rows tr')?.textContent?.includes('after'));
    expect((await history(page)).join('\n')).toContain('Expired (410): the server cannot resume after event 1');
    expect(await page.locator('#rows .gap').first().textContent()).toBe('the server has restarted');
    await page.waitForSelector('body:not(.stale)');
    expect(await page.locator('#announcer').textContent()).not.toBe('');
    await page.close();
    second.child.kill('SIGTERM');
    expect(await second.exit).toBe(0);
  });

  once('shows at once that the network is lost, and resumes when it is back', async () => {
    const server = await pipe();
    const { page } = await visit(server.url);
    server.write('before');
    await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 1);
    await page.context().setOffline(true);
    await page.waitForSelector('#state[data-state=off]');
    server.write('meanwhile');
    await until(async () => (await server.stats()).accepted === 2);
    await page.context().setOffline(false);
    await page.waitForSelector('#state[data-state=live]');
    await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 2);
    expect(await page.locator('#rows tr').first().textContent()).toContain('meanwhile');
    await page.close();
    await end(server);
  });

  test('says of a source that has ended what it is: an end, and no lost connection', async () => {
    const server = await pipe('--replay', '5');
    const { page } = await visit(server.url);
    server.write('last');
    await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 1);
    server.child.stdin.end();
    await page.waitForSelector('#state[data-state=off]');
    await until(async () => (await history(page)).join('\n').includes('The stream has ended'));
    expect((await history(page)).join('\n')).not.toContain('status 200');
    await page.close();
    expect(await server.exit).toBe(0);
  });

  test('in the back/forward cache it holds no connection; restored, it resumes', async () => {
    const server = await pipe();
    const { page, faults } = await visit(server.url);
    server.write(1);
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '1');
    await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true })));
    await until(async () => (await server.stats()).clients.length === 0);
    server.write(2, 3);
    await until(async () => (await server.stats()).accepted === 3);
    await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })));
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '3');
    expect((await rows(page)).map(([place]) => place)).toEqual(['3', '2', '1']);
    await page.waitForFunction(() => document.querySelector('#total-resumes')?.textContent === '1');
    expect(faults).toEqual([]);
    await page.close();
    await end(server);
  });
});
