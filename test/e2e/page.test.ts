// The live page of `watchmux pipe` in a real browser. WATCHMUX_PICTURES names a directory for its screenshots.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PipeStats } from '../../src/pages/words.ts';
import { inBrowsers } from './browsers.ts';
import { atFreePort, killAll, type Pipe, pipe, run, text, until, webSocket } from './cli.ts';

interface Visit {
  readonly page: Page;
  readonly faults: string[];
}

/** For tests that do not say how a server is started, or end it. Events of others have come before theirs. */
let shared: Promise<Pipe> | undefined;

afterAll(() => killAll());

inBrowsers('the live page', ({ name, launch, often }) => {
  let browser: Browser;
  let page: Page;
  let faults: string[] = [];
  let pictures: string;
  /** For what is the same in all of them: there in one of them only. */
  const once = (title: string, body: () => Promise<void>): void => {
    if (name === 'Chromium') test(title, body);
  };

  beforeAll(async () => {
    shared ??= pipe('--capacity', '20000');
    browser = await launch();
    page = await browser.newPage({ acceptDownloads: true });
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('console', (message) => {
      if (message.type() === 'error') faults.push(message.text());
    });
    pictures = process.env.WATCHMUX_PICTURES ?? (await mkdtemp(join(tmpdir(), 'watchmux-pictures-')));
    await shared;
  });

  afterAll(async () => {
    await browser?.close();
    if (process.env.WATCHMUX_PICTURES === undefined) await rm(pictures, { recursive: true, force: true });
  });

  /** Opens the page anew, as large as a screen of a desk unless it says otherwise. */
  async function visit(url: string, { width = 1280, height = 800 } = {}): Promise<Visit> {
    // What the page of the test before says of its server, which has ended, is no fault of this one.
    await page.goto('about:blank');
    faults = [];
    await page.setViewportSize({ width, height });
    await page.goto(url);
    await page.waitForSelector('#state[data-state=live]');
    return { page, faults };
  }

  /** The server that tests share, and the number of the last event before theirs. */
  async function common(): Promise<Pipe & { readonly before: number }> {
    const server = await (shared as Promise<Pipe>);
    return { ...server, before: (await server.stats()).accepted };
  }

  /** Waits until the first row has this number. */
  const newest = (number: number): Promise<unknown> =>
    page.waitForFunction((text) => document.querySelector('#rows td')?.textContent === text, String(number));
  const numbers = async (before: number): Promise<number[]> => (await rows(page)).map(([number]) => Number(number) - before);

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

  /** What a test leaves open would keep the server from its end. */
  async function end(server: Pipe): Promise<void> {
    await page.goto('about:blank');
    server.child.kill('SIGTERM');
    expect(await server.exit).toBe(0);
  }

  test('shows events as they arrive, the clients, and that the stream is live', async () => {
    const server = await pipe('--replay', '2', '--capacity', '10');
    server.write({ type: 'placed', object: { id: 1, note: '<b>no markup</b>' } }, 'plain text');
    await until(async () => (await server.stats()).accepted === 2);
    const { page, faults } = await visit(server.url);
    // It is one file, and small.
    expect((await text(server.url)).length).toBeLessThan(85_000);
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
    // The column of types is there since there are several.
    await page.waitForFunction(() => document.querySelectorAll('#head th').length === 4);
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
      // On a phone, events come first.
      const [row] = await page.locator('#rows tr').evaluateAll((all) => all.map((each) => each.getBoundingClientRect().top));
      if (width === 390) expect(row).toBeLessThan(300);
    }
    expect(await page.locator('#lost').innerText()).toMatch(/^\d+ lost$|^nothing lost$/);
    await shoot({ page, faults }, 'page-phone', true);
    expect(faults).toEqual([]);
    slow.close();
    server.child.kill('SIGTERM');
    expect(await server.exit).toBe(0);
    await page.waitForSelector('#state[data-state=off]');
  });

  once('keeps up with a flood, holds the newest events, and shows any of them with few elements', async () => {
    const { url, write, before } = await common();
    const { faults } = await visit(url);
    write(...Array.from({ length: 20_000 }, (_, i) => ({ n: i, level: (i % 5) * 10 + 10 })));
    await newest(before + 20_000);
    expect(await page.locator('#note').textContent()).toBe('the last 10,000 events');
    const elements = (): Promise<number> => page.locator('#rows tr').count();
    expect(await elements()).toBeGreaterThan(30);
    expect(await elements()).toBeLessThan(100);
    expect(await page.locator('#events-table').getAttribute('aria-rowcount')).toBe('10001');
    // By key and by wheel, up to the oldest.
    await page.focus('#rows .open[tabindex="0"]');
    const focused = (): Promise<number> => page.evaluate(() => Number(document.activeElement?.textContent));
    await page.keyboard.press('End');
    expect(await focused()).toBe(before + 10_001);
    await page.keyboard.press('ArrowUp');
    expect(await focused()).toBe(before + 10_002);
    await page.keyboard.press('Home');
    expect(await focused()).toBe(before + 20_000);
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    // Not before: the first rows are as many as fit if all are 27 px high. From then on their height is known.
    const many = await elements();
    expect(many).toBeGreaterThan(30);
    expect(many).toBeLessThan(100);
    for (const share of [0.5, 0.25, 0.26, 1, 0.9]) {
      const shown = await page.evaluate(async (at) => {
        const scroll = document.querySelector('#scroll') as HTMLElement;
        scroll.scrollTop = at * scroll.scrollHeight;
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        const box = scroll.getBoundingClientRect();
        const places = [80, box.height / 2, box.height - 20].map((y) => document.elementFromPoint(box.left + 30, box.top + y));
        return places.map((element) => element?.closest('#rows tr')?.querySelector('.open')?.textContent ?? 'empty');
      }, share);
      for (const number of shown) expect(Number(number)).toBeGreaterThan(before + 10_000);
      expect(await elements()).toBe(many);
    }
    // It stands still for who reads.
    write(1, 2);
    await page.waitForFunction(() => document.querySelector('#pause')?.textContent === 'Continue, 2 new');
    await page.click('#pause');
    await newest(before + 20_002);
    await page.fill('#filter', 'level>=error n>=15000');
    await page.waitForFunction(() => document.querySelector('#note')?.textContent === '1,000 of the last 10,000 events');
    expect(faults).toEqual([]);
  });

  often('filters events by text, field and type, pauses on request, and opens a row by keyboard', async () => {
    const { url, write, before } = await common();
    const { faults } = await visit(url);
    write(
      ...['ann', 'bob', 'ann', 'eve'].map((name, i) => ({ type: i === 2 ? 'paid' : 'placed', object: { name, deep: { i } } })),
    );
    await newest(before + 4);
    await page.fill('#filter', 'ANN');
    expect(await numbers(before)).toEqual([3, 1]);
    await page.selectOption('#type', 'placed');
    expect(await numbers(before)).toEqual([1]);
    expect(await page.locator('#note').textContent()).toBe('1 of the last 4 events');
    await page.fill('#filter', 'nobody');
    expect(await page.locator('#none').innerText()).toBe('Nothing matches.');
    await page.fill('#filter', 'deep.i>=1 name!=eve');
    expect(await numbers(before)).toEqual([2]);
    // What is not valid says what was expected, and changes nothing.
    await page.fill('#filter', 'deep.i>=1 name!=eve level>=none');
    expect(await page.locator('#hint').innerText()).toMatch(/^expected a level after level>=, not none: trace, debug/);
    expect(await page.locator('#filter').getAttribute('aria-invalid')).toBe('true');
    expect(await numbers(before)).toEqual([2]);
    await page.fill('#filter', '');
    await page.selectOption('#type', '');
    // One stop of the tab key, arrows from there, Enter opens.
    await page.focus('#pause');
    await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(String(before + 3));
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-expanded'))).toBe('true');
    expect(await page.locator('#rows .detail pre').textContent()).toBe('{\n  "name": "ann",\n  "deep": {\n    "i": 2\n  }\n}');
    // Nothing moves under who reads it.
    write('five', 'six');
    await page.waitForFunction(() => document.querySelector('#pause')?.textContent === 'Continue, 2 new');
    expect(await page.locator('#rows tr[data-id]').count()).toBe(4);
    await page.click('#pause');
    await newest(before + 6);
    expect(await page.locator('#pause').textContent()).toBe('Pause');
    await page.click('#pause');
    write('seven');
    await page.waitForFunction(() => document.querySelector('#pause')?.textContent === 'Continue, 1 new');
    await page.click('#pause');
    await newest(before + 7);
    // A search closes the row that was open, so there is no reason left to stand still.
    await page.click('#rows tr');
    expect(await page.locator('#pause').textContent()).toBe('Continue');
    await page.fill('#filter', 'e');
    expect(await page.locator('#rows .detail').count()).toBe(0);
    expect(await page.locator('#pause').textContent()).toBe('Pause');
    write('eight');
    await newest(before + 8);
    expect(faults).toEqual([]);
  });

  often('shows what was sent: numbers with all their digits, and nothing that is invisible or reorders the rest', async () => {
    const { url, write, child, before } = await common();
    const { faults } = await visit(url);
    child.stdin.write('{"type":"id","object":{"id":12345678901234567890,"at":0.12345678901234567890,"n":1}}\n');
    write({ type: '\u202eDEDDA', object: '\u001b[2K\u200b\u2066a b' }, { type: 'x'.repeat(100), object: 1 });
    await newest(before + 3);
    expect((await rows(page)).map(([, , type, object]) => [type, object]).slice(1)).toEqual([
      ['\\u202eDEDDA', '\\u001b[2K\\u200b\\u2066a b'],
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
  });

  test('shows levels and the colours of terminals, saves and copies what is shown, and a link shows the same', async () => {
    const { url, write, before, stats } = await common();
    const { faults } = await visit(url);
    write({ level: 50, msg: 'disk \u001b[1;31mfull\u001b[0m <b>', req: { id: 7 } }, 'Jan 1 host: WARN low', {
      level: 30,
      msg: 'fine',
      req: { id: 8 },
    });
    await newest(before + 3);
    // No column of types: all have the same. Levels and messages have one as soon as there are any.
    await page.waitForFunction(() => document.querySelectorAll('#head th').length === 5);
    const heads = (): Promise<string[]> => page.locator('#head th').allInnerTexts();
    expect(await heads()).toEqual(['no.', 'received', 'level', 'msg', 'object']);
    expect((await rows(page)).map(([, , ...cells]) => cells)).toEqual([
      ['info', 'fine', '{"level":30,"msg":"fine","req":{"id":8}}'],
      ['warn', 'Jan 1 host: WARN low', 'Jan 1 host: WARN low'],
      ['error', 'disk full <b>', '{"level":50,"msg":"disk full <b>","req":{"id":7}}'],
    ]);
    expect(await page.locator('#rows .fg1.bold').allTextContents()).toEqual(['full', 'full']);
    // By keyboard: columns that are fields, in an order, with a width.
    await page.click('#columns');
    await page.check('#columns-list [data-key="shown req.id"]');
    for (const name of ['received', 'object']) await page.uncheck(`#columns-list [data-key="shown ${name}"]`);
    await page.focus('#columns-list [data-key="earlier req.id"]');
    await page.keyboard.press('Enter');
    expect(await heads()).toEqual(['no.', 'level', 'req.id', 'msg']);
    await page.focus('#columns-list [data-key="later req.id"]');
    await page.keyboard.press('Enter');
    expect(await page.evaluate(() => (document.activeElement as HTMLElement).dataset.key)).toBe('later req.id');
    await page.focus('#columns-list [data-key="width level"]');
    await page.keyboard.type('90');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Escape');
    expect(await page.locator('#columns-panel').isVisible()).toBe(false);
    expect(await heads()).toEqual(['no.', 'level', 'msg', 'req.id']);
    expect((await rows(page)).map(([, ...cells]) => cells)).toEqual([
      ['info', 'fine', '8'],
      ['warn', 'Jan 1 host: WARN low', ''],
      ['error', 'disk full <b>', '7'],
    ]);
    // By mouse: the edge of a head.
    const grip = await page.locator('#head th:nth-child(3) .grip').boundingBox();
    if (grip === null) throw new Error('no edge to take');
    await page.mouse.move(grip.x + 3, grip.y + 5);
    await page.mouse.down();
    await page.mouse.move(grip.x + 63, grip.y + 5);
    await page.mouse.up();
    // Each is written when it has settled, behind those that are there.
    const written = (part: string): Promise<unknown> => page.waitForFunction((text) => location.search.includes(text), part);
    await written('columns=level*90+');
    await page.click('#wrap');
    await written('wrap=on');
    await page.fill('#filter', 'req.id~7');
    await written('filter=req.id%7E7');
    expect(await page.evaluate(() => location.href)).toMatch(/\?columns=level\*90\+msg\*\d+\+req.id&wrap=on&filter=req.id%7E7$/);
    // Firefox would show a panel, which takes the focus, and tell nobody: there, what would be saved is read in the page.
    await page.evaluate((isFirefox) => {
      if (isFirefox) HTMLAnchorElement.prototype.click = () => {};
      const create = URL.createObjectURL;
      URL.createObjectURL = (blob) => {
        Object.assign(globalThis, { saved: (blob as Blob).text() });
        return create(blob);
      };
    }, name === 'Firefox');
    const saving = name === 'Chromium' ? page.waitForEvent('download') : undefined;
    await page.click('#download');
    const saved = await page.evaluate(() => (globalThis as { saved?: Promise<string> }).saved);
    const file = await saving;
    if (file !== undefined) {
      expect(file.suggestedFilename()).toBe('events.ndjson');
      expect(await readFile((await file.path()) as string, 'utf8')).toBe(saved);
    }
    const version = (await stats()).version.replace(/\d+$/, String(before + 1));
    const line = `{"type":"ADDED","object":{"level":50,"msg":"disk \\u001b[1;31mfull\\u001b[0m <b>","req":{"id":7}},"resourceVersion":"${version}"}`;
    expect(saved).toBe(`${line}\n`);
    await page.evaluate(() => {
      const copied: string[] = [];
      Object.assign(globalThis, { copied });
      Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text: string) => void copied.push(text) } });
    });
    await page.click('#rows tr');
    for (const label of ['Copy text', 'Copy JSON']) await page.click(`text=${label}`);
    expect(await page.evaluate(() => (globalThis as { copied?: string[] }).copied)).toEqual(['error\tdisk full <b>\t7', line]);
    await page.waitForFunction(() => document.querySelector('#announcer')?.textContent === 'Copy JSON: done.');
    // The link, elsewhere: the same columns, filter and widths.
    const link = await page.evaluate(() => location.href);
    const width = (): Promise<number> =>
      page.locator('#head th:nth-child(3)').evaluate((head) => (head as HTMLElement).offsetWidth);
    const before3 = await width();
    await visit(link);
    expect(await heads()).toEqual(['no.', 'level', 'msg', 'req.id']);
    expect(await page.locator('#filter').inputValue()).toBe('req.id~7');
    expect(await page.locator('#wrap').getAttribute('aria-pressed')).toBe('true');
    expect(await width()).toBe(before3);
    write({ msg: 'no', req: { id: 8 } }, { msg: 'yes', req: { id: 17 } });
    await newest(before + 5);
    expect(await numbers(before)).toEqual([5]);
    expect(faults).toEqual([]);
  });

  once('has a name for everything that can be reached, and announces little', async () => {
    const { url, write, before } = await common();
    await visit(url);
    write(...Array.from({ length: 30 }, (_, i) => ({ level: 'warn', i })));
    await newest(before + 30);
    await page.click('#columns');
    const session = await page.context().newCDPSession(page);
    const { nodes } = await session.send('Accessibility.getFullAXTree');
    const reached = nodes.filter(({ ignored, properties = [] }) => {
      return !ignored && properties.some(({ name, value }) => name === 'focusable' && value.value === true);
    });
    const nameless = reached.filter(({ name, role }) => !name?.value && role?.value !== 'RootWebArea');
    expect(reached.length).toBeGreaterThan(30);
    expect(nameless.map(({ role, backendDOMNodeId }) => [role?.value, backendDOMNodeId])).toEqual([]);
    const live = await page
      .locator('[aria-live], [role=status], [role=alert], [role=log]')
      .evaluateAll((all) => all.map(({ id }) => id));
    expect(live).toEqual(['announcer']);
    const ids = await page.locator('[id]').evaluateAll((all) => all.map(({ id }) => id));
    expect(new Set(ids).size).toBe(ids.length);
    for (const attribute of ['aria-controls', 'aria-describedby', 'aria-labelledby', 'for']) {
      const named = await page
        .locator(`[${attribute}]`)
        .evaluateAll((all, name) => all.map((each) => each.getAttribute(name) ?? ''), attribute);
      for (const id of named) expect(ids).toContain(id);
    }
    // 250 events, and nothing of it is read out.
    const announced = await page.locator('#announcer').textContent();
    write(...Array.from({ length: 250 }, (_, i) => i));
    await newest(before + 280);
    expect(await page.locator('#announcer').textContent()).toBe(announced);
  });

  once('searches long lines in slices, as it does many', async () => {
    const server = await pipe('--replay', '200', '--capacity', '1000');
    server.write(...Array.from({ length: 120 }, (_, at) => ({ msg: `${'x'.repeat(100_000)} ${at}` })));
    await until(async () => (await server.stats()).accepted === 120);
    await visit(server.url);
    await newest(120);
    // A clock that says that each look at it comes three milliseconds later, and a count of the pauses.
    await page.evaluate(() => {
      let nowMs = performance.now();
      performance.now = () => {
        nowMs += 3;
        return nowMs;
      };
      const { setTimeout: later } = window;
      const counted = window as unknown as { setTimeout: unknown; pauses: number };
      counted.pauses = 0;
      counted.setTimeout = (code: () => void, delayMs?: number) => {
        if (delayMs === undefined) counted.pauses++;
        return later(code, delayMs);
      };
    });
    await page.fill('#filter', 'msg~119');
    await page.waitForFunction(() => document.querySelectorAll('#rows tr').length === 1);
    expect(await page.evaluate(() => (window as unknown as { pauses: number }).pauses)).toBeGreaterThan(5);
    await page.fill('#filter', '');
    await end(server);
  });

  test('by keyboard alone a row can be opened however fast events arrive', async () => {
    const { url, write, before } = await common();
    const { faults } = await visit(url);
    const more = (): void => write(...Array.from({ length: 300 }, (_, i) => i));
    more();
    await newest(before + 300);
    const focused = async (): Promise<number> =>
      (await page.evaluate(() => Number(document.activeElement?.textContent?.replace(/\D/g, '')))) - before;
    await page.focus('#pause');
    await page.keyboard.press('Tab');
    more();
    await page.waitForFunction(() => document.querySelector('#pause')?.textContent === 'Continue, 300 new');
    expect(await focused()).toBe(300);
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toBe(299);
    // The button goes on saying what it does when it is reached.
    await page.keyboard.press('Shift+Tab');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Continue, 300 new');
    await page.keyboard.press('Enter');
    await newest(before + 600);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.locator('#rows .detail').count()).toBe(1);
    // Closed, it has the focus still, so nothing moves.
    await page.keyboard.press('Enter');
    expect(await page.locator('#rows .detail').count()).toBe(0);
    write('last');
    await page.waitForFunction(() => document.querySelector('#pause')?.textContent === 'Continue, 1 new');
    expect(await focused()).toBe(600);
    // A button whose name changes is not pressed as well.
    expect(await page.locator('#pause').getAttribute('aria-pressed')).toBe(null);
    expect(faults).toEqual([]);
  });

  once('on a phone, the number of an event does not run into its type, however long the stream is', async () => {
    const { url } = await common();
    const events = ['ADDED', 'OTHER'].map((type, i) => `{"type":"${type}","object":1,"resourceVersion":"e.123456789${i}"}\n`);
    await page.route('**/watch*', (route) => route.fulfill({ body: events.join(''), contentType: 'application/json' }));
    await page.setViewportSize({ width: 320, height: 700 });
    await page.goto(url);
    const edges = await page
      .locator('#rows tr')
      .first()
      .evaluate((row) => {
        const [number, type] = (row as HTMLTableRowElement).cells;
        const range = document.createRange();
        range.selectNodeContents(type as Node);
        return [number?.querySelector('button')?.getBoundingClientRect().right, range.getBoundingClientRect().left] as number[];
      });
    await page.unroute('**/watch*');
    expect(edges[0]).toBeLessThan(edges[1] as number);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    expect(wide).toBe(false);
  });

  once('at a zoom of 400 % the bar does not cover the rows; with forced colours a pressed button differs', async () => {
    const { url, write, before } = await common();
    const { faults } = await visit(`${url}/?slow`, { width: 320, height: 256 });
    write(...Array.from({ length: 50 }, (_, i) => i));
    await newest(before + 50);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    expect(wide).toBe(false);
    await page.locator('#scroll').evaluate((scroll) => scroll.scrollIntoView({ block: 'center' }));
    const [bar, box] = await page.locator('.bar, #scroll').evaluateAll((all) => all.map((each) => each.getBoundingClientRect()));
    expect(bar?.bottom).toBeLessThanOrEqual(box?.top as number);
    expect(box?.height).toBeGreaterThan(120);
    await page.emulateMedia({ forcedColors: 'active' });
    for (const button of ['#slow', '#wrap']) {
      const colour = (): Promise<string> => page.locator(button).evaluate((each) => getComputedStyle(each).backgroundColor);
      const plain = await colour();
      await page.click(button);
      expect(await colour()).not.toBe(plain);
    }
    await page.emulateMedia({ forcedColors: 'none' });
    expect(faults).toEqual([]);
  });

  often('slow on purpose: its queue fills, it is cut and told what it missed; at full speed it loses nothing', async () => {
    const server = await pipe('--capacity', '10');
    const { page, faults } = await visit(`${server.url}/?slow`);
    const fast = await webSocket(server.url);
    server.write(1);
    await page.waitForFunction(() => document.querySelector('#rows td')?.textContent === '1');
    await page.click('#slow');
    await page.waitForSelector('#state[data-state=slow]');
    expect((await history(page))[0]).toContain('resumed after event 1: nothing is missing');
    const filler = 'x'.repeat(100);
    // Few at a time: the other client has room for ten.
    for (let i = 0; i < 60; i += 6) {
      server.write(...Array.from({ length: 6 }, (_, at) => ({ type: 'n', object: { i: i + at, filler } })));
      await until(async () => (await server.stats()).accepted === i + 7 && fast.texts.length === i + 7);
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
    await end(server);
    expect(server.err()).toContain(`${recovered} dropped, ${recovered} of them recovered\n`);
  });

  once(
    'slow on purpose with a policy that drops events: the numbers show how many, and full speed gets them after all',
    async () => {
      const server = await pipe('--capacity', '5', '--overflow', 'drop-oldest');
      const { page, faults } = await visit(`${server.url}/?slow`);
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
      await end(server);
    },
  );

  often('shows that a server is gone, and when it is back; the 410 of the restarted server is explained', async () => {
    const first = await pipe('--replay', '5', ...(await atFreePort()));
    await visit(first.url);
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
    await page.goto('about:blank');
    second.child.kill('SIGTERM');
    expect(await second.exit).toBe(0);
  });

  once('shows at once that the network is lost, and resumes when it is back', async () => {
    const { url, write, stats, before } = await common();
    await visit(url);
    write('before');
    await newest(before + 1);
    await page.context().setOffline(true);
    await page.waitForSelector('#state[data-state=off]');
    write('meanwhile');
    await until(async () => (await stats()).accepted === before + 2);
    await page.context().setOffline(false);
    await page.waitForSelector('#state[data-state=live]');
    await newest(before + 2);
    expect(await page.locator('#rows tr').first().textContent()).toContain('meanwhile');
  });

  often('says of a source that has ended what it is: an end, and no lost connection', async () => {
    const server = await pipe('--replay', '5');
    await visit(server.url);
    server.write('last');
    await newest(1);
    server.child.stdin.end();
    await page.waitForSelector('#state[data-state=off]');
    await until(async () => (await history(page)).join('\n').includes('The stream has ended'));
    expect((await history(page)).join('\n')).not.toContain('status 200');
    await page.goto('about:blank');
    expect(await server.exit).toBe(0);
  });

  test('in the back/forward cache it holds no connection; restored, it resumes', async () => {
    const { url, write, stats, before } = await common();
    const { faults } = await visit(url);
    write(1);
    await newest(before + 1);
    await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true })));
    await until(async () => (await stats()).clients.length === 0);
    write(2, 3);
    await until(async () => (await stats()).accepted === before + 3);
    await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })));
    await newest(before + 3);
    expect(await numbers(before)).toEqual([3, 2, 1]);
    await page.waitForFunction(() => document.querySelector('#resumes')?.textContent === '1');
    expect(faults).toEqual([]);
  });
});
