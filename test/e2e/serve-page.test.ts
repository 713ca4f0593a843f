// The page of `watchmux serve` in a real browser. WATCHMUX_PICTURES names a directory for its screenshots.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHROMIUM_BROWSER } from './browsers.ts';
import { atFreePort, killAll, type Serving, serve } from './cli.ts';

const ORDERS = ['--resource', 'orders.example.com/v1=Order', '--resource', 'regions.example.com/v1=Region:cluster'];
const MAPS = '/api/v1/namespaces/default/configmaps';
const SHOP = '/apis/example.com/v1/namespaces/shop/orders';
/** Other processes have their say in when. */
const eventually = <T>(read: () => T): ReturnType<typeof expect.poll<T>> => expect.poll(read, { timeout: 20_000 });
/** A browser that takes this for markup runs it. */
const HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u202e';

describe.skipIf(CHROMIUM_BROWSER.missing)('the page of serve', () => {
  let browser: Browser;
  let pictures: string;

  beforeAll(async () => {
    browser = await CHROMIUM_BROWSER.launch();
    pictures = process.env.WATCHMUX_PICTURES ?? (await mkdtemp(join(tmpdir(), 'watchmux-pictures-')));
  });

  afterAll(async () => {
    await browser?.close();
    killAll();
    if (process.env.WATCHMUX_PICTURES === undefined) await rm(pictures, { recursive: true, force: true });
  });

  interface Visit {
    readonly page: Page;
    /** What went wrong in the page, and whatever it has asked of others than the server. */
    readonly faults: string[];
  }

  async function visit(url: string, options: Parameters<Browser['newPage']>[0] = {}): Promise<Visit> {
    const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, ...options });
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('console', (message) => {
      // That a request was refused, or broke, is a message of the browser.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) faults.push(message.text());
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(new URL(url).origin) && !request.url().startsWith('data:')) faults.push(request.url());
    });
    await page.goto(url);
    return { page, faults };
  }

  const shoot = ({ page }: Visit, of: string, fullPage: boolean = false): Promise<unknown> =>
    page.screenshot({ path: join(pictures, `serve-${of}.png`), fullPage });

  /** The texts of the rows of objects. */
  const rows = (page: Page): Promise<string[][]> =>
    page
      .locator('#object-rows tr[data-id]')
      .evaluateAll((all) => all.map((row) => Array.from((row as HTMLTableRowElement).cells, (cell) => cell.textContent ?? '')));

  async function send(server: Serving, method: string, path: string, body?: object): Promise<void> {
    const headers = {
      'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      ...(server.token !== undefined && { authorization: `Bearer ${server.token}` }),
    };
    const response = await fetch(`${server.url}${path}`, { method, headers, body: body ? JSON.stringify(body) : null });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  }

  async function define(server: Serving): Promise<void> {
    await send(server, 'POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', KIND);
    await eventually(async () => (await fetch(`${server.url}${SIZED}`)).status).toBe(200);
  }

  const map = (name: string, { data = {}, labels = {} }: { data?: object; labels?: object } = {}): object => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels }, data },
  });

  test('lists resources, follows their objects live, and shows what the server counts', async () => {
    const server = await serve(...ORDERS);
    await send(server, 'POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
    for (const [at, name] of ['tea', 'coffee', 'milk', 'sugar'].entries()) {
      const labels = { app: at % 2 ? 'web' : 'api' };
      await send(server, 'POST', SHOP, {
        apiVersion: 'example.com/v1',
        kind: 'Order',
        metadata: { name, labels },
        spec: { count: at },
      });
    }
    const visited = await visit(`${server.url}/`);
    const { page, faults } = visited;
    await page.waitForSelector('#state[data-state=live]');
    await page.waitForFunction(() => document.querySelectorAll('#object-rows tr[data-id]').length === 4);
    expect((await rows(page)).map(([namespace, name]) => `${namespace}/${name}`)).toEqual([
      'shop/coffee',
      'shop/milk',
      'shop/sugar',
      'shop/tea',
    ]);
    expect(await page.locator('#resources tr th').allInnerTexts()).toEqual([
      'orders\nexample.com/v1',
      'regions\nexample.com/v1',
      'customresourcedefinitions\napiextensions.k8s.io/v1',
      'events\nevents.k8s.io/v1',
      'leases\ncoordination.k8s.io/v1',
      'configmaps\nv1',
      'events\nv1',
      'namespaces\nv1',
      'secrets\nv1',
      'serviceaccounts\nv1',
    ]);
    expect(await page.locator('#note').textContent()).toBe('4 objects');
    // Its own watch is one of the watchers, and every resource is counted, also those that nobody else has asked for.
    const figures = (at: number): Promise<string[]> => page.locator(`#resources tr:nth-child(${at}) td > span`).allTextContents();
    await eventually(() => figures(1)).toEqual(['4', '1', '0']);
    await eventually(() => figures(8)).toEqual(['2', '0', '0']);
    await eventually(() => page.locator('#cache-window').textContent()).toMatch(/^Window: a watch can begin at any version from/);
    await eventually(() => page.locator('#history li').first().textContent()).toContain(
      'Following orders in all namespaces: 4 objects',
    );
    // Changes arrive by themselves.
    await send(server, 'POST', SHOP, { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'bread' } });
    await send(server, 'DELETE', `${SHOP}/milk`);
    await eventually(async () => (await rows(page)).map(([, name]) => name)).toEqual(['bread', 'coffee', 'sugar', 'tea']);
    // One is opened by keyboard, and followed. Behind the headings, all rows are one stop.
    await page.focus('#object-head th:last-child button');
    await page.keyboard.press('Tab');
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await eventually(() => page.locator('#detail').textContent()).toContain('count: 0');
    expect(await page.locator('#object-rows .open .name button').getAttribute('aria-expanded')).toBe('true');
    await shoot(visited, 'wide');
    // Closed, it gives back the focus. A row that goes away gives it to the one that takes its place.
    await page.keyboard.press('Escape');
    const focused = (): Promise<string | null> => page.evaluate(() => document.activeElement?.textContent ?? null);
    await eventually(focused).toBe('tea');
    await send(server, 'DELETE', `${SHOP}/tea`);
    await eventually(async () => (await rows(page)).map(([, name]) => name)).toEqual(['bread', 'coffee', 'sugar']);
    expect(await focused()).toBe('sugar');
    await page.emulateMedia({ colorScheme: 'dark' });
    await shoot(visited, 'dark');
    await page.emulateMedia({ colorScheme: 'light' });
    for (const width of [390, 320]) {
      await page.setViewportSize({ width, height: 844 });
      // The objects are the first that is seen, once their rows are made anew for this width.
      await eventually(async () => (await page.locator('#object-rows tr').first().boundingBox())?.y ?? Infinity).toBeLessThan(
        500,
      );
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
      expect(wide).toBe(false);
      await shoot(visited, `phone-${width}`, true);
    }
    expect(faults).toEqual([]);
    await page.close();
  });

  test('filters by namespace, labels and name; a selector that is wrong is marked, and not asked for', async () => {
    const server = await serve(...ORDERS);
    for (const [name, app] of [
      ['a', 'web'],
      ['b', 'api'],
      ['c', 'web'],
    ] as const) {
      await send(server, 'POST', MAPS, map(name, { labels: { app }, data: { k: 'v' } }));
    }
    const visited = await visit(`${server.url}/#configmaps%2Fv1`);
    const { page, faults } = visited;
    const names = async (): Promise<string> => (await rows(page)).map((cells) => cells.slice(0, -2).join(' ')).join(', ');
    await eventually(names).toBe('default a 1, default b 1, default c 1');
    expect(await page.locator('#objects-title').textContent()).toBe('configmaps');
    await page.fill('#selector', 'app in (web');
    await page.keyboard.press('Enter');
    expect(await page.locator('#fault').textContent()).toBe(
      'label selector: expected "," or ")" at character 12, got the end\n  app in (web\n             ^',
    );
    expect(await page.locator('#selector').getAttribute('aria-invalid')).toBe('true');
    await shoot(visited, 'selector');
    await page.fill('#selector', 'app in (web)');
    await page.keyboard.press('Enter');
    await eventually(names).toBe('default a 1, default c 1');
    expect(await page.locator('#fault').isVisible()).toBe(false);
    await page.fill('#text', 'C');
    expect(await page.locator('#note').textContent()).toBe('1 of 2 objects');
    await page.fill('#text', '');
    await eventually(() => page.locator('#namespace option').allTextContents()).toEqual(['all namespaces', 'default']);
    await page.selectOption('#namespace', 'default');
    await eventually(names).toBe('a 1, c 1');
    // Another resource, without namespaces, by keyboard; its own selector stays.
    await page.focus('#resources [aria-current]');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await eventually(() => page.locator('#none').textContent()).toBe('No object is selected.');
    expect(await page.locator('#namespace').isVisible()).toBe(false);
    expect(await page.evaluate(() => location.href)).toContain(
      '?labelSelector=app+in+%28web%29&namespace=default#namespaces%2Fv1',
    );
    // The browser's button goes back, step by step.
    await page.goBack();
    await eventually(names).toBe('a 1, c 1');
    expect(await page.locator('#kind').inputValue()).toBe('configmaps/v1');
    await page.goBack();
    await eventually(names).toBe('default a 1, default c 1');
    expect(faults).toEqual([]);
    await page.close();
  });

  test('what objects say is text, whatever it looks like', async () => {
    const server = await serve();
    const data = { key: HOSTILE, [`n${'x'.repeat(200)}`]: HOSTILE.repeat(10) };
    await send(server, 'POST', MAPS, { ...map('a', { data }), metadata: { name: 'a', annotations: { note: HOSTILE } } });
    const { page, faults } = await visit(`${server.url}/#configmaps%2Fv1`);
    await page.click('#object-rows tr[data-id]');
    await eventually(() => page.locator('#detail').textContent()).toContain('<img src=x onerror=');
    // What the server checks, another one might not: so names and cells are hostile, too, and columns, and kinds.
    await page.route('**/api/v1/configmaps**', (route) => {
      const object = {
        metadata: { name: HOSTILE, namespace: '<img src=x onerror=window.hacked=1>', resourceVersion: '9', uid: 'x' },
      };
      const columnDefinitions = [{ name: HOSTILE }, { name: `<b>${HOSTILE}` }].map((each) => ({ ...each, priority: 0 }));
      const table = {
        kind: 'Table',
        metadata: { resourceVersion: '9' },
        columnDefinitions,
        rows: [{ cells: [HOSTILE, HOSTILE], object }],
      };
      const end = { kind: 'Table', metadata: { resourceVersion: '9' }, rows: [{ cells: [], object: BOOKMARK }] };
      const events = [
        { type: 'ADDED', object: table },
        { type: 'BOOKMARK', object: end },
      ];
      const watches = route.request().url().includes('watch=');
      const body = watches ? events.map((event) => `${JSON.stringify(event)}\n`).join('') : JSON.stringify(table);
      return route.fulfill({ contentType: 'application/json', body });
    });
    await page.route(`**/api`, (route) => {
      const resource = { resource: HOSTILE, scope: 'Namespaced', verbs: ['list', 'watch'] };
      const kinds = [
        { ...resource, responseKind: { group: '', version: 'v1', kind: HOSTILE } },
        { ...resource, resource: 'configmaps', responseKind: { group: '', version: 'v1', kind: 'ConfigMap' } },
      ];
      const body = JSON.stringify({ items: [{ versions: [{ resources: kinds }] }] });
      return route.fulfill({ contentType: 'application/json', body });
    });
    await page.reload();
    await eventually(async () => (await rows(page)).flat().join()).toContain('<img src=x onerror=');
    await eventually(() => page.locator('#resources').textContent()).toContain('<img src=x onerror=');
    expect(await page.evaluate(() => (window as { hacked?: unknown }).hacked)).toBeUndefined();
    expect(await page.locator('main img, main script').count()).toBe(0);
    // A character that reorders others is shown as what it is.
    expect((await rows(page)).flat().join()).not.toContain('\u202e');
    expect(faults).toEqual([]);
    await page.close();
  });

  test('asks for the token, keeps it out of the URL and out of every storage, and forgets it', async () => {
    const server = await serve('--token', 'secret-1');
    await send({ ...server, token: 'secret-1' }, 'POST', MAPS, map('a'));
    const visited = await visit(`${server.url}/#configmaps%2Fv1`);
    const { page, faults } = visited;
    await page.waitForSelector('#ask', { state: 'visible' });
    expect(await page.locator('#objects').isVisible()).toBe(false);
    expect(await page.locator('#state').textContent()).toBe('a token is needed');
    await shoot(visited, 'token');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('token');
    await page.keyboard.type('wrong');
    await page.keyboard.press('Enter');
    await eventually(() => page.locator('#ask-fault').textContent()).toBe('The server does not accept this token.');
    await page.keyboard.type('secret-1');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#state[data-state=live]');
    await eventually(async () => (await rows(page)).map(([, name]) => name)).toEqual(['a']);
    expect(await page.locator('#ask').isVisible()).toBe(false);
    const kept = await page.evaluate(() => [
      ...[location.href, document.documentElement.outerHTML, document.cookie],
      ...[
        JSON.stringify(localStorage),
        JSON.stringify(sessionStorage),
        (document.getElementById('token') as HTMLInputElement).value,
      ],
    ]);
    expect(kept.filter((text) => text.includes('secret-1'))).toEqual([]);
    await page.reload();
    await page.waitForSelector('#ask', { state: 'visible' });
    expect(faults).toEqual([]);
    await page.close();
  });

  test('columns of the server, wide ones on demand; sorted by any of them; labels that filter; all of it in the URL', async () => {
    const server = await serve();
    await define(server);
    for (const [name, size, count] of [
      ['order-10', '2Gi', 3],
      ['order-2', '512Mi', 20],
      ['order-1', '1Gi', 100],
    ] as const) {
      const labels = { app: count > 3 ? 'web' : 'api' };
      await send(server, 'POST', SIZED, {
        apiVersion: 'example.com/v1',
        kind: 'Sized',
        metadata: { name, labels },
        spec: { size, count },
      });
    }
    const { page, faults } = await visit(`${server.url}/#sizeds.example.com%2Fv1`);
    const names = async (): Promise<string> => (await rows(page)).map(([, name]) => name).join(' ');
    await eventually(names).toBe('order-1 order-2 order-10');
    const heads = (): Promise<string[]> => page.locator('#object-head th').allInnerTexts();
    expect(await heads()).toEqual(['namespace', 'name', 'size', 'age', 'labels']);
    await page.click('#object-head th:has-text("size") button');
    await eventually(names).toBe('order-2 order-1 order-10');
    expect(await page.locator('#object-head th[aria-sort=ascending]').allInnerTexts()).toEqual(['size']);
    // By keyboard, the other way round.
    await page.keyboard.press('Enter');
    await eventually(names).toBe('order-10 order-1 order-2');
    expect(await page.locator('#object-head th[aria-sort=descending]').count()).toBe(1);
    await page.selectOption('#breadth', 'all');
    await eventually(heads).toEqual(['namespace', 'name', 'size', 'count', 'age', 'labels']);
    // What changes moves to where it belongs, and the focus goes with it.
    await page.focus('#object-rows tr:last-child .name button');
    await send(server, 'PATCH', `${SIZED}/order-2`, { spec: { size: '3Gi' } });
    await eventually(names).toBe('order-2 order-10 order-1');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('order-2');
    // To the labels of the row, one of which filters; the server does that.
    await page.keyboard.press('ArrowRight');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('app=web');
    const asked = page.waitForRequest((request) => request.url().includes('labelSelector=app%3Dweb'));
    await page.keyboard.press('Enter');
    await asked;
    await eventually(names).toBe('order-2 order-1');
    expect(await page.locator('#selector').inputValue()).toBe('app=web');
    // What is shown can be searched, in all columns.
    await page.fill('#text', '100');
    await eventually(names).toBe('order-1');
    expect(await page.locator('#note').textContent()).toBe('1 of 2 objects');
    await page.fill('#text', '');
    expect(new URL(await page.evaluate(() => location.href)).search).toBe('?sort=-size&columns=all&labelSelector=app%3Dweb');
    await page.fill('#fields', 'metadata.name=order-2');
    await page.keyboard.press('Enter');
    await eventually(names).toBe('order-2');
    await page.reload();
    await eventually(names).toBe('order-2');
    expect(await heads()).toContain('count');
    expect(await page.locator('#fields').inputValue()).toBe('metadata.name=order-2');
    // A field that the kind does not have.
    await page.fill('#fields', 'spec.x=1');
    await page.keyboard.press('Enter');
    await eventually(() => page.locator('#fault').textContent()).toContain('field label not supported');
    await eventually(() => page.locator('#state').textContent()).toMatch(/^refused, /);
    // The chip, pressed again, no longer filters.
    await page.fill('#fields', '');
    await page.keyboard.press('Enter');
    await eventually(names).toBe('order-2 order-1');
    await page.click('.chip[aria-pressed=true] >> nth=0');
    await eventually(names).toBe('order-2 order-10 order-1');
    expect(new URL(await page.evaluate(() => location.href)).search).toBe('?sort=-size&columns=all');
    // Where there is little room, few of them are shown.
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${server.url}/?sort=name#sizeds.example.com%2Fv1`);
    await eventually(heads).toEqual(['namespace', 'name', 'age']);
    await eventually(async () => (await rows(page)).map((cells) => cells.slice(1).join(' '))).toEqual([
      ...[expect.stringMatching(/^order-1 \d+[sm]/), expect.stringMatching(/^order-2 \d+[sm]/)],
      expect.stringMatching(/^order-10 \d+[sm]/),
    ]);
    expect(faults).toEqual([]);
    await page.close();
  });

  test('a version that was pasted shows what there was; one that is too old is named', async () => {
    const server = await serve();
    await send(server, 'POST', MAPS, map('a'));
    const { page, faults } = await visit(`${server.url}/#configmaps%2Fv1`);
    const names = async (): Promise<string> => (await rows(page)).map(([, name]) => name).join(' ');
    await eventually(names).toBe('a');
    const then = (await page.locator('#history').textContent())?.match(/at version ([\d,]+)/)?.[1] ?? '';
    await send(server, 'POST', MAPS, map('b'));
    await send(server, 'DELETE', `${MAPS}/a`);
    await eventually(names).toBe('b');
    await page.fill('#version', `resourceVersion: "${then}"`);
    await page.keyboard.press('Enter');
    await eventually(names).toBe('a');
    expect(await page.locator('#state').textContent()).toBe(`version ${then}, not live`);
    expect(await page.locator('#lost').textContent()).toBe(`This is how it was at version ${then}. Nothing changes here.`);
    expect(new URL(await page.evaluate(() => location.href)).search).toBe(`?resourceVersion=${then.replaceAll(',', '')}`);
    await page.click('#go-live');
    await eventually(names).toBe('b');
    await page.waitForSelector('#state[data-state=live]');
    expect(await page.locator('#lost').isVisible()).toBe(false);
    for (const version of ['1', '999999999']) {
      await page.fill('#version', version);
      await page.keyboard.press('Enter');
      await eventually(() => page.locator('#fault').textContent()).toMatch(/^The server does not (have|show) version /);
      expect(await page.locator('#state').textContent()).toBe('not live');
    }
    expect(faults).toEqual([]);
    await page.close();
  });

  test('many objects: few rows in the document, and all can be reached; the page goes on answering', async () => {
    const server = await serve();
    const names = Array.from({ length: 320 }, (_, at) => `m-${at}`);
    for (let at = 0; at < names.length; at += 50) {
      await Promise.all(names.slice(at, at + 50).map((name) => send(server, 'POST', MAPS, map(name))));
    }
    const visited = await visit(`${server.url}/#configmaps%2Fv1`);
    const { page, faults } = visited;
    await eventually(() => page.locator('#note').textContent()).toBe('320 objects');
    expect(await page.locator('#object-rows tr').count()).toBeLessThan(80);
    expect(await page.locator('#objects-table').getAttribute('aria-rowcount')).toBe('321');
    await page.fill('#text', 'm-31');
    await eventually(async () => (await rows(page)).map(([, name]) => name)).toEqual(['m-31', ...names.slice(310)]);
    expect(await page.locator('#note').textContent()).toBe('11 of 320 objects');
    await page.fill('#text', '');
    await shoot(visited, 'many');
    const focused = (): Promise<unknown> =>
      page.evaluate(() => [
        document.activeElement?.textContent,
        document.activeElement?.closest('tr')?.getAttribute('aria-rowindex'),
      ]);
    await page.focus('#object-rows button');
    await page.keyboard.press('End');
    expect(await focused()).toEqual(['m-319', '321']);
    await page.keyboard.press('ArrowUp');
    expect(await focused()).toEqual(['m-318', '320']);
    // Rows that come above those in view do not move them, and the focus stays.
    const top = await page.locator('#object-rows tr:focus-within').boundingBox();
    await Promise.all(Array.from({ length: 20 }, (_, at) => send(server, 'POST', MAPS, map(`a-${at}`))));
    await eventually(() => page.locator('#note').textContent()).toBe('340 objects');
    expect(await focused()).toEqual(['m-318', '340']);
    expect((await page.locator('#object-rows tr:focus-within').boundingBox())?.y).toBeCloseTo(top?.y ?? 0, -1);
    // A row out of view leaves the document; the keys continue where it was.
    await page.locator('#object-list').evaluate((list) => list.scrollTo(0, 0));
    await eventually(async () => (await rows(page))[0]?.[1]).toBe('a-0');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('object-list');
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toEqual(['m-319', '341']);
    expect(faults).toEqual([]);
    await page.close();
  });

  test('a server that goes away and comes back: the state says so, and what happened meanwhile is there', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'watchmux-page-'));
    const file = join(folder, 'data');
    const first = await serve('--data', file, ...(await atFreePort()));
    await send(first, 'POST', MAPS, map('a'));
    const { page, faults } = await visit(`${first.url}/#configmaps%2Fv1`);
    await page.waitForSelector('#state[data-state=live]');
    first.child.kill('SIGKILL');
    await first.exit;
    await eventually(() => page.locator('#state').textContent()).toMatch(/^reconnecting, (next attempt in|trying)/);
    // The table does not look live, and its ages stop; the state stays in view.
    await eventually(() => page.locator('#lost').textContent()).toMatch(
      /^Not live: this is how it was at [\d:]+\. Later changes are/,
    );
    const age = await page.locator('#object-rows .age').textContent();
    await page.evaluate(() => scrollTo(0, 10_000));
    expect((await page.locator('#state').boundingBox())?.y).toBeLessThan(60);
    await eventually(() => page.locator('.old').isVisible()).toBe(true);
    // Nothing but the button asks what the server has while it is away.
    const asked = page.waitForRequest((request) => new URL(request.url()).pathname === '/apis');
    await page.click('#retry');
    await asked;
    expect(await page.locator('#object-rows .age').textContent()).toBe(age);
    const second = await serve('--data', file, '--port', new URL(first.url).port);
    await send(second, 'POST', MAPS, map('b'));
    // The page itself may be faster: then there is nothing left to click.
    const live = page.waitForSelector('#state[data-state=live]');
    await Promise.race([page.click('#retry').catch(() => {}), live]);
    await live;
    await eventually(async () => (await rows(page)).map(([, name]) => name)).toEqual(['a', 'b']);
    await eventually(() => page.locator('.old').isVisible()).toBe(false);
    await eventually(() => page.locator('#lost').isVisible()).toBe(false);
    // A network that is lost leaves the watch open, but questions get no answer.
    await page.route('**/stats', (route) => route.abort());
    await eventually(() => page.locator('#state').textContent()).toBe('the server does not answer');
    expect(await page.locator('#lost').isVisible()).toBe(true);
    await page.context().setOffline(true);
    await eventually(() => page.locator('#state').textContent()).toMatch(/^offline/);
    await page.context().setOffline(false);
    await page.unroute('**/stats');
    await eventually(() => page.locator('#state').textContent()).toBe('live');
    expect(await page.locator('#lost').isVisible()).toBe(false);
    expect(await page.locator('#history').textContent()).toContain('Connection lost');
    expect(faults).toEqual([]);
    await page.close();
    await rm(folder, { recursive: true, force: true });
  }, 120_000);
});

const SIZED = '/apis/example.com/v1/namespaces/default/sizeds';

/** Defines a kind with columns, one of which is wide. */
const KIND = {
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: 'sizeds.example.com' } },
  spec: {
    ...{ group: 'example.com', scope: 'Namespaced', names: { plural: 'sizeds', kind: 'Sized' } },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        additionalPrinterColumns: [
          { name: 'Size', type: 'string', jsonPath: '.spec.size' },
          { name: 'Count', type: 'integer', jsonPath: '.spec.count', priority: 1 },
          { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
        ],
      },
    ],
  },
};

const BOOKMARK = { metadata: { resourceVersion: '9', annotations: { 'k8s.io/initial-events-end': 'true' } } };
