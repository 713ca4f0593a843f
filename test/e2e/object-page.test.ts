// What opens for one object on the page of `watchmux serve`, in Chromium. WATCHMUX_PICTURES names a directory for its screenshots.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHROMIUM_BROWSER } from './browsers.ts';
import { killAll, type Serving, serve } from './cli.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
const ORDERS = '/apis/example.com/v1/namespaces/default/orders';
const eventually = <T>(read: () => T): ReturnType<typeof expect.poll<T>> => expect.poll(read, { timeout: 20_000 });
const HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u202e';
const pictures = process.env.WATCHMUX_PICTURES;

interface Stored {
  readonly metadata: { readonly uid: string; readonly resourceVersion: string };
  readonly data?: unknown;
}

describe.skipIf(CHROMIUM_BROWSER.missing)('an object on the page of serve', () => {
  let browser: Browser;
  let server: Serving;

  beforeAll(async () => {
    [browser, server] = await Promise.all([CHROMIUM_BROWSER.launch(), serve('--resource', 'orders.example.com/v1=Order')]);
  });

  afterAll(async () => {
    await browser?.close();
    killAll();
  });

  async function send(method: string, path: string, body?: object): Promise<Stored> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const response = await fetch(`${server.url}${path}`, {
      method,
      headers: { 'content-type': type },
      body: body ? JSON.stringify(body) : null,
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Stored;
  }

  async function apply(path: string, body: object): Promise<void> {
    const headers = { 'content-type': 'application/apply-patch+yaml' };
    const response = await fetch(`${server.url}${path}?fieldManager=test&force=true`, {
      method: 'PATCH',
      headers,
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(200);
  }

  const create = (
    path: string,
    name: string,
    more: object = {},
  ): Promise<{ metadata: { uid: string; resourceVersion: string } }> =>
    send('POST', path, {
      ...(path === MAPS ? { apiVersion: 'v1', kind: 'ConfigMap' } : { apiVersion: 'example.com/v1', kind: 'Order' }),
      metadata: { name, ...(more as { metadata?: object }).metadata },
      ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== 'metadata')),
    });

  interface Visit {
    readonly page: Page;
    readonly faults: string[];
  }

  /** Opens the page, and in it the detail of an object, by keyboard. */
  async function open(kind: string, name: string, options: Parameters<Browser['newPage']>[0] = {}): Promise<Visit> {
    const page = await browser.newPage({ viewport: { width: 1_440, height: 900 }, ...options });
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(String(error)));
    page.on('console', (message) => {
      // That a request was refused is a message of the browser.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) faults.push(message.text());
    });
    await page.goto(`${server.url}/#${encodeURIComponent(kind)}`);
    await page.locator(`#object-rows tr[data-id="default/${name}"] button`).first().focus();
    await page.keyboard.press('Enter');
    await eventually(() => page.locator('#detail-phase').textContent()).toBe('live');
    return { page, faults };
  }

  const text = (page: Page): Promise<string> => page.locator('#detail-text').innerText();
  const shoot = async (page: Page, of: string): Promise<void> => {
    if (pictures !== undefined) await page.screenshot({ path: join(pictures, `object-${of}.png`) });
  };

  test('is shown as YAML and JSON, live: what changes is marked, kept in the history, and read out; a deletion stays', async () => {
    await create(ORDERS, 'tea', { spec: { count: 1, note: 'a\nb\n', big: '12345678901234567890' } });
    await apply(`${ORDERS}/tea`, { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'tea' }, spec: { count: 2 } });
    const { page, faults } = await open('orders.example.com/v1', 'tea');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('detail');
    await eventually(() => text(page)).toContain('spec:\n  count: 2\n  note: |\n    a\n    b\n  big: "12345678901234567890"\n');
    expect(await text(page)).not.toContain('managedFields');
    await page.check('#detail-managed');
    await eventually(() => text(page)).toContain('managedFields:\n');
    await page.uncheck('#detail-managed');
    await page.selectOption('#detail-format', 'json');
    await eventually(() => text(page)).toContain('"count": 2,\n');
    await page.selectOption('#detail-format', 'yaml');
    // Each of three changes, however fast they come.
    for (const count of [3, 4, 5]) await send('PATCH', `${ORDERS}/tea`, { spec: { count } });
    await eventually(() => page.locator('#detail-text mark').allInnerTexts()).toEqual(['  count: 5']);
    expect(await page.locator('#detail-changed').innerText()).toMatch(/^± Changed at \d\d:\d\d:\d\d: .*spec\.count/);
    await eventually(() => page.locator('#detail-announcer').textContent()).toContain('spec.count');
    await shoot(page, 'light');
    await page.focus('#detail-tab-object');
    await page.keyboard.press('ArrowRight');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-selected'))).toBe('true');
    const entries = (): Promise<string[]> => page.locator('#detail-entries > li').allInnerTexts();
    const counts = async (): Promise<string[]> => (await entries()).map((entry) => /spec\.count (.*)/.exec(entry)?.[1] ?? '');
    // Those before the page was opened are from the window of the server.
    await eventually(counts).toEqual(['4 5', '3 4', '2 3', '1 2', '']);
    expect((await entries()).at(-1)).toMatch(/created version \d+$/);
    await send('DELETE', `${ORDERS}/tea`);
    await eventually(async () => (await entries())[0]).toMatch(/deleted version \d+/);
    expect(await page.locator('#detail-facts').textContent()).toMatch(/^Deleted at .* This was its last state\.$/);
    expect(await page.locator('#detail-delete').isDisabled()).toBe(true);
    await shoot(page, 'history');
    await page.click('#detail-tab-object');
    await eventually(() => text(page)).toContain('count: 5');
    await create(ORDERS, 'tea');
    await eventually(() => page.locator('#detail-facts').textContent()).toMatch(/^version \d+, created \d\d:\d\d:\d\d$/);
    // A link shows the same.
    expect(new URL(await page.evaluate(() => location.href)).searchParams.get('object')).toBe(
      'orders.example.com/v1 default/tea',
    );
    await page.reload();
    await eventually(() => page.locator('#detail-title').textContent()).toBe('Order default/tea');
    await page.waitForSelector('#object-rows button');
    await page.keyboard.press('Escape');
    expect(await page.locator('#detail').isVisible()).toBe(false);
    expect(new URL(await page.evaluate(() => location.href)).search).not.toContain('object');
    expect(await page.evaluate(() => document.activeElement?.closest('tr')?.dataset.id)).toBe('default/tea');
    expect(faults).toEqual([]);
    await page.close();
  });

  test('is edited: dry run, faults with their fields, a conflict that keeps the text, and saved; then deleted', async () => {
    const { metadata } = await create(MAPS, 'settings', { data: { color: 'red', size: '1' } });
    const { page, faults } = await open('configmaps/v1', 'settings');
    await page.click('#detail-tab-edit');
    const area = page.locator('#edit-text');
    const said = page.locator('#edit-said');
    await eventually(() => area.inputValue()).toContain('color: red');
    const yaml = await area.inputValue();
    expect(yaml).not.toContain('managedFields');
    await area.fill(yaml.replace('color: red', 'color: blue'));
    await page.click('#edit-try');
    await eventually(() => said.textContent()).toBe('The server accepts it. Nothing is saved yet.');
    expect(await page.locator('#edit-differences').innerText()).toBe('data.color "red" "blue"');
    await area.fill(yaml.replace('color: red', '"not a name": blue').replace(/^data:/m, 'dada: 1\ndata:'));
    await page.click('#edit-save');
    await eventually(() => said.textContent()).toMatch(/^Not saved: .*unknown field "dada"/);
    await area.fill(yaml.replace('color: red', '"not a name": blue'));
    await page.click('#edit-save');
    await eventually(() => page.locator('#edit-faults').innerText()).toMatch(/^data\[not a name\] Invalid value: "not a name"/);
    await shoot(page, 'faults');
    await page.click('#edit-faults button');
    expect(await page.evaluate(() => getSelection()?.toString())).toBe('"not a name": blue');
    // It changes while the text is being written: nothing of either is lost.
    const mine = yaml.replace('color: red', 'color: green');
    // Without a version, it would undo what others have changed.
    await area.fill(mine.replace(/^ *resourceVersion:.*\n/m, ''));
    await page.click('#edit-save');
    await eventually(() => said.textContent()).toMatch(/^Not saved: without resourceVersion \d+/);
    await area.fill(mine);
    await send('PATCH', `${MAPS}/settings`, { data: { size: '2' } });
    await page.click('#edit-save');
    await eventually(() => said.textContent()).toMatch(/^Not saved: .*the object has been modified/);
    expect(await area.inputValue()).toBe(mine);
    await eventually(() => page.locator('#edit-differences').innerText()).toBe('data.size "1" "2"');
    // Its blocks are laid out with the next frame.
    await eventually(() => page.locator('#edit-theirs').innerText()).toContain('size: "2"');
    await shoot(page, 'conflict');
    // Nor by Escape.
    await area.focus();
    await page.keyboard.press('Escape');
    await eventually(() => said.textContent()).toContain('This text is not saved');
    await page.click('#edit-save');
    await page.click('#edit-rebase');
    expect(await area.inputValue()).not.toContain(`resourceVersion: "${metadata.resourceVersion}"`);
    await page.click('#edit-save');
    await eventually(() => said.textContent()).toMatch(/^Saved as version \d+\.$/);
    expect((await send('GET', `${MAPS}/settings`)).data).toEqual({ color: 'green', size: '1' });
    // Deleted: asked first, by keyboard, where "no" has the focus.
    await page.focus('#detail-delete');
    await page.keyboard.press('Enter');
    expect(await page.locator('#delete-title').textContent()).toBe('Delete ConfigMap default/settings?');
    await page.keyboard.press('Enter');
    expect(await page.locator('#delete').isVisible()).toBe(false);
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('detail-delete');
    // Asked twice in a moment.
    await page.evaluate(() =>
      ['detail-delete', 'delete-no', 'detail-delete'].forEach((id) => void document.getElementById(id)?.click()),
    );
    await page.selectOption('#delete-policy', 'Foreground');
    await page.click('#delete-yes');
    await eventually(() => page.locator('#detail-facts').textContent()).toMatch(/^Deleted at/);
    expect(faults).toEqual([]);
    await page.close();
  });

  test('shows its events and its owners, copies, and downloads', async () => {
    const { metadata: owner } = await create(ORDERS, 'owner');
    const reference = { apiVersion: 'example.com/v1', kind: 'Order', name: 'owner', uid: owner.uid };
    const { metadata } = await create(MAPS, 'owned', { data: { k: HOSTILE }, metadata: { ownerReferences: [reference] } });
    for (const [name, uid] of [
      ['mine', metadata.uid],
      ['other', 'x'],
    ] as const) {
      await send('POST', '/api/v1/namespaces/default/events', {
        ...{ metadata: { name }, type: 'Warning', reason: 'Late', message: `about ${name} ${HOSTILE}`, count: 3 },
        ...{ lastTimestamp: new Date().toISOString().replace(/\.\d+/, ''), source: { component: 'watch' } },
        involvedObject: { kind: 'ConfigMap', name: 'owned', namespace: 'default', uid },
      });
    }
    const context = await browser.newContext({ acceptDownloads: true, permissions: ['clipboard-read', 'clipboard-write'] });
    const { page, faults } = await open('configmaps/v1', 'owned');
    await eventually(() => text(page)).toContain('<img src=x');
    await page.click('#detail-tab-events');
    const cells = (): Promise<string[]> => page.locator('#detail-events-rows td').allTextContents();
    await eventually(async () => (await cells()).slice(1)).toEqual([
      'Warning',
      'Late',
      expect.stringContaining('about mine <img src=x'),
      'watch',
    ]);
    await page.click('#detail-tab-object');
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#detail-download')]);
    expect(download.suggestedFilename()).toBe('configmaps-owned.yaml');
    expect(await readFile(await download.path(), 'utf8')).toBe(`${(await text(page)).trimEnd()}\n`);
    await page.click('#detail-copy');
    await eventually(() => page.locator('#detail-changed').textContent()).toMatch(/^Copied [\d,]+ characters\.$/);
    // A server without YAML, and a user who may only read. (This one reads YAML, and lets everybody write.)
    await page.route('**/selfsubjectaccessreviews', (route) => {
      const isYaml = route.request().headers()['content-type'] === 'application/yaml';
      const status = {
        kind: 'Status',
        apiVersion: 'v1',
        status: 'Failure',
        code: 415,
        reason: 'UnsupportedMediaType',
        message: 'no',
      };
      const body = JSON.stringify(isYaml ? status : { status: { allowed: false } });
      return route.fulfill({ status: isYaml ? 415 : 201, contentType: 'application/json', body });
    });
    // A number that JavaScript has not.
    await page.route(/orders\?fieldSelector=[^&]*$/, async (route) => {
      const body = (await (await route.fetch()).text()).replace('"items":[{', '"items":[{"big":12345678901234567890,');
      return route.fulfill({ contentType: 'application/json', body });
    });
    await page.click('#detail-owners a');
    await eventually(() => page.locator('#detail-title').textContent()).toBe('Order default/owner');
    await eventually(() => text(page)).toContain('name: owner');
    await eventually(() => text(page)).toContain('big: 12345678901234567890\n');
    await eventually(() => page.locator('#detail-delete').isDisabled()).toBe(true);
    await page.click('#detail-tab-edit');
    await eventually(() => page.locator('#edit-about').textContent()).toBe('You may read it, but not change it.');
    expect(await page.locator('#edit-text').inputValue()).toContain('"name": "owner"');
    expect(await page.locator('#edit-text').getAttribute('readonly')).toBe('');
    expect(await page.locator('#edit-save').isDisabled()).toBe(true);
    expect(await page.evaluate(() => (window as { hacked?: unknown }).hacked)).toBeUndefined();
    expect(await page.locator('#detail img, #detail script').count()).toBe(0);
    expect(faults).toEqual([]);
    await page.close();
    await context.close();
  });

  test('may be 3 MB: its beginning is shown, and all of it if asked for, in blocks; the page fits every screen', async () => {
    const data = Object.fromEntries(
      Array.from({ length: 250 }, (_, at) => [`key-${at}`, `${at} ${'line of text\n'.repeat(800)}`]),
    );
    await create(ORDERS, 'large', { spec: { data, long: 'x'.repeat(200_000) } });
    const { page, faults } = await open('orders.example.com/v1', 'large', { colorScheme: 'dark' });
    await eventually(() => text(page)).toContain('key-0');
    expect((await text(page)).length).toBeLessThan(70_000);
    await page.click('#detail-all');
    const shown = page.locator('#detail-text');
    await eventually(() => shown.evaluate((element) => (element.textContent ?? '').length)).toBeGreaterThan(3_000_000);
    // In few blocks, of which only those in view are laid out. What does not change keeps its block.
    await shown.evaluate(({ children }) => Object.assign(children[1] as Element, { kept: 1 }));
    await send('PATCH', `${ORDERS}/large`, { spec: { count: 7 } });
    await eventually(() => shown.locator('mark').allTextContents()).toEqual(['  count: 7']);
    const [blocks, elements, visibility, kept] = await shown.evaluate(
      (element) =>
        [
          ...[element.children.length, element.querySelectorAll('div *').length],
          getComputedStyle(element.children[1] as Element).getPropertyValue('content-visibility'),
          (element.children[1] as { kept?: unknown }).kept,
        ] as const,
    );
    // Only the beginning, which was there before, is in colours.
    expect([blocks < 3_000, elements < 10_000, visibility, kept]).toEqual([true, true, 'auto', 1]);
    await shoot(page, 'dark');
    await page.click('#detail-tab-edit');
    expect(await page.locator('#edit-about').textContent()).toMatch(/^It is longer than 512 KiB/);
    await page.click('#detail-tab-history');
    await eventually(() => page.locator('#detail-entries > li').first().innerText()).toContain('spec.count 7');
    for (const [width, tab] of [
      [1_440, 'history'],
      [390, 'object'],
      [390, 'edit'],
      [390, 'events'],
      [390, 'history'],
    ] as const) {
      await page.setViewportSize({ width, height: 844 });
      await page.click(`#detail-tab-${tab}`);
      const fits = await page
        .locator('#detail')
        .evaluate(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth && clientWidth <= innerWidth);
      expect([width, tab, fits]).toEqual([width, tab, true]);
    }
    await page.emulateMedia({ colorScheme: 'light' });
    await shoot(page, 'phone');
    expect(faults).toEqual([]);
    await page.close();
  });

  test('a link to an object that is gone tells what happened to it; it cannot be saved, and Escape leaves it', async () => {
    await create(ORDERS, 'short-lived', { spec: { count: 1 } });
    await send('PATCH', `${ORDERS}/short-lived`, { spec: { count: 2 } });
    await send('DELETE', `${ORDERS}/short-lived`);
    const page = await browser.newPage({ viewport: { width: 1_440, height: 900 } });
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(String(error)));
    // In a namespace where there is nothing else.
    const link = (kind: string, object: string): string =>
      `${server.url}/?namespace=kube-system&object=${encodeURIComponent(`${kind} ${object}`)}#orders.example.com%2Fv1`;
    await page.goto(link('orders.example.com/v1', 'default/short-lived'));
    await eventually(() => page.locator('#detail-facts').textContent()).toBe('There is no such object.');
    await page.click('#detail-tab-edit');
    expect(await page.locator('#edit-about').textContent()).toBe('There is no such object.');
    expect(await page.locator('#edit-save').isDisabled()).toBe(true);
    await page.click('#detail-tab-history');
    const words = async (): Promise<string[]> =>
      (await page.locator('#detail-entries > li > b').allTextContents()).filter((word) => word !== 'gap');
    await eventually(words).toEqual(['deleted', 'changed', 'created']);
    await page.keyboard.press('Escape');
    expect(await page.locator('#detail').isVisible()).toBe(false);
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('object-list');
    await page.goto('about:blank');
    await page.goto(link('nothing.example.com/v1', 'default/a'));
    await eventually(() => page.locator('#history').textContent()).toContain('of a kind that this server does not have');
    expect(page.url()).not.toContain('object=');
    expect(faults).toEqual([]);
    await page.close();
  });

  test('goes and comes with the back and forward buttons, but for text that is not saved', async () => {
    await create(MAPS, 'back', { data: { k: 'v' } });
    const { page, faults } = await open('configmaps/v1', 'back');
    await page.selectOption('#kind', 'orders.example.com/v1');
    await page.keyboard.press('Escape');
    await page.goBack();
    await eventually(() => page.locator('#detail-title').textContent()).toBe('ConfigMap default/back');
    await eventually(() => page.locator('#detail').isVisible()).toBe(true);
    await page.goForward();
    await eventually(() => page.locator('#detail').isVisible()).toBe(false);
    await page.goBack();
    await eventually(() => page.locator('#detail-phase').textContent()).toBe('live');
    await page.click('#detail-tab-edit');
    await eventually(() => page.locator('#edit-text').inputValue()).toContain('k: v');
    await page.fill('#edit-text', 'mine');
    await page.goForward();
    await eventually(() => page.locator('#edit-said').textContent()).toContain('This text is not saved');
    expect(await page.locator('#edit-text').inputValue()).toBe('mine');
    expect(new URL(page.url()).searchParams.get('object')).toBe('configmaps/v1 default/back');
    expect(faults).toEqual([]);
    await page.close();
  });

  test('is printed in full, and alone; texts from right to left stay at their keys', async () => {
    const lines = Array.from({ length: 300 }, (_, at) => `line-${at}`).join('\n');
    await create(MAPS, 'printed', { data: { lines } });
    await create(ORDERS, 'rtl', { spec: { '\u0645\u0641\u062a\u0627\u062d': '\u0645\u0631\u062d\u0628\u0627 123' } });
    const { page, faults } = await open('configmaps/v1', 'printed');
    await eventually(() => page.locator('#detail-text').textContent()).toContain('line-299');
    await page.emulateMedia({ media: 'print' });
    expect(await page.locator('#objects').isVisible()).toBe(false);
    const [inner, outer] = await page.locator('#detail-text').evaluate((it) => [it.scrollHeight, it.clientHeight]);
    expect(inner).toBeGreaterThan(300 * 15);
    expect(outer).toBe(inner);
    expect(await page.locator('#detail').evaluate((it) => getComputedStyle(it).position)).toBe('static');
    await page.close();
    const other = await open('orders.example.com/v1', 'rtl');
    await eventually(() => text(other.page)).toContain(' 123');
    const [key, value] = await other.page
      .locator('#detail-text .key', { hasText: '\u0645' })
      .evaluate((it) => [it, it.nextElementSibling].map((each) => (each as Element).getBoundingClientRect().left) as number[]);
    expect(key).toBeLessThan(value as number);
    expect([...faults, ...other.faults]).toEqual([]);
    await other.page.close();
  });

  test('cannot be written by the page of another origin, in none of the ways that a browser offers', async () => {
    await create(MAPS, 'safe', { data: { k: 'v' } });
    const before = await send('GET', `${MAPS}/safe`);
    const foreign = createServer((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>foreign</title>'),
    );
    await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve));
    const page = await browser.newPage();
    await page.goto(`http://localhost:${(foreign.address() as AddressInfo).port}/`);
    const results = await page.evaluate(
      async ([url, path]) => {
        const map = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'foreign' } });
        const attempts: [string, RequestInit][] = [
          ['/safe', { method: 'DELETE' }],
          ['/safe', { method: 'PUT', headers: { 'content-type': 'application/json' }, body: map }],
          ['/safe', { method: 'PATCH', headers: { 'content-type': 'application/merge-patch+json' }, body: '{"data":{"k":"w"}}' }],
          ['', { method: 'POST', headers: { 'content-type': 'application/json' }, body: map }],
          ['', { method: 'POST', headers: { 'content-type': 'application/yaml' }, body: map }],
          ['', { method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body: map }],
          ['', { method: 'POST', mode: 'no-cors', body: new Blob([map]) }],
        ];
        const results = await Promise.all(
          attempts.map(([at, init]) =>
            fetch(`${url}${path}${at}`, init).then(
              ({ type, status }) => `${type} ${status}`,
              () => 'refused',
            ),
          ),
        );
        navigator.sendBeacon(`${url}${path}`, new Blob([map], { type: 'text/plain' }));
        const form = document.body.appendChild(document.createElement('form'));
        Object.assign(form, { method: 'post', enctype: 'text/plain', action: `${url}${path}` });
        const field = form.appendChild(document.createElement('input'));
        Object.assign(field, { name: map.slice(0, -1), value: '}' });
        form.submit();
        return results;
      },
      [server.url, MAPS] as const,
    );
    expect(results.slice(0, 5)).toEqual(Array.from({ length: 5 }, () => 'refused'));
    expect(results.slice(5)).toEqual(['opaque 0', 'opaque 0']);
    // The form has been answered.
    await page.waitForURL(`${server.url}${MAPS}`);
    expect(await page.textContent('body')).toMatch(/"code":\s*403/);
    expect(await send('GET', `${MAPS}/safe`)).toEqual(before);
    await expect(send('GET', `${MAPS}/foreign`)).rejects.toThrow('404');
    await page.close();
    await new Promise((resolve) => foreign.close(resolve));
  });
});
