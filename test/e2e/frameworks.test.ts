// The recipes of docs/frameworks.md in Chromium: a plain page, Vue and Svelte, with the one server of that page.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { build, type Plugin } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { component, isMissing } from '../components.ts';
import { freePort } from '../peers/ports.ts';
import { CHROMIUM_BROWSER } from './browsers.ts';
import { text, until } from './cli.ts';
import { markedBlock, ROOT } from './documents.mjs';

const FRAMEWORKS = component('frameworks');
const code = (file: string): string => markedBlock(`frameworks ${file}`).code;

/** As a template of Vite does it, with the compiler of each framework. */
function compilers(): Plugin {
  const { resolve } = createRequire(join(FRAMEWORKS.path, 'package.json'));
  const load = (name: string): Promise<Record<string, unknown>> => import(resolve(name));
  return {
    name: 'compilers',
    enforce: 'pre',
    async resolveId(id) {
      return /^(vue|svelte)(\/|$)/.test(id) ? this.resolve(id, join(FRAMEWORKS.path, 'package.json')) : undefined;
    },
    async transform(source, path) {
      if (path.endsWith('.svelte')) {
        const { compile } = (await load('svelte/compiler')) as unknown as typeof SvelteCompiler;
        return { code: compile(source, { filename: path, generate: 'client' }).js.code, map: null };
      }
      if (!path.endsWith('.vue')) return undefined;
      const { parse, compileScript } = (await load('vue/compiler-sfc')) as unknown as typeof VueCompiler;
      const { descriptor } = parse(source, { filename: path });
      return { code: compileScript(descriptor, { id: 'x', inlineTemplate: true }).content, map: null };
    },
  };
}

/** The used part of the compilers. */
declare const SvelteCompiler: { compile(source: string, options: object): { js: { code: string } } };
declare const VueCompiler: {
  parse(source: string, options: object): { descriptor: unknown };
  compileScript(descriptor: unknown, options: object): { content: string };
};

const MAINS = {
  vue: `import { createApp } from 'vue';
    import Orders from './Orders.vue';
    const app = createApp(Orders);
    app.mount('#app');
    window.leave = () => app.unmount();`,
  svelte: `import { mount, unmount } from 'svelte';
    import Orders from './Orders.svelte';
    const app = mount(Orders, { target: document.querySelector('#app') });
    window.leave = () => unmount(app);`,
};

describe.skipIf(CHROMIUM_BROWSER.missing)('docs/frameworks.md', () => {
  let folder = '';
  let port = 0;
  let server: ChildProcess | undefined;
  let browser: Browser;

  beforeAll(async () => {
    mkdirSync(join(ROOT, 'reports'), { recursive: true });
    folder = mkdtempSync(join(ROOT, 'reports', 'frameworks-')); // inside of the package, which it imports
    for (const file of ['page.html', 'use-store.js', 'Orders.vue', 'from-store.js', 'Orders.svelte'])
      writeFileSync(join(folder, file), code(file));
    port = await freePort();
    writeFileSync(join(folder, 'server.mjs'), code('server.mjs').replace('8080', String(port)).replace('1_000', '50'));
    await start();
    browser = await CHROMIUM_BROWSER.launch();
  });

  afterAll(async () => {
    await browser?.close();
    await stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(): Promise<void> {
    server = spawn(process.execPath, [join(folder, 'server.mjs')], { stdio: 'inherit' });
    await until(() =>
      text(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      ),
    );
  }

  async function stop(): Promise<void> {
    const ended = server && new Promise((resolve) => server?.once('exit', resolve));
    server?.kill('SIGKILL');
    await ended;
  }

  /** Puts a framework's page in the place of the plain one, built as for production. */
  async function bundle(name: keyof typeof MAINS): Promise<void> {
    writeFileSync(join(folder, 'main.js'), MAINS[name]);
    const built = await build({
      root: folder,
      configFile: false,
      logLevel: 'error',
      plugins: [compilers()],
      define: { 'process.env.NODE_ENV': '"production"' },
      build: { write: false, lib: { entry: 'main.js', formats: ['es'], fileName: 'main' } },
    });
    const [{ output }] = built as unknown as [{ output: [{ code: string }] }];
    const script = output[0].code.replaceAll('</script', '<\\/script');
    writeFileSync(join(folder, 'page.html'), `<!doctype html><div id="app"></div><script type="module">${script}</script>`);
  }

  /** The page shows the state of the server, what changes, and what becomes of the connection. */
  async function check(): Promise<Page> {
    const page = await browser.newPage();
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(String(error)));
    await page.goto(`http://127.0.0.1:${port}/`);
    const rows = (): Promise<string[]> => page.locator('li').allTextContents();
    const total = async (): Promise<number> => Number(/tea: (\d+)/.exec((await rows()).join())?.[1] ?? 0);
    await until(async () => (await rows()).length === 2);
    expect((await rows()).map((row) => row.split(':')[0])).toEqual((await total()) > 30 ? ['tea', 'jam'] : ['jam', 'tea']);
    await until(async () => (await page.locator('[role=status]').textContent()) === 'live');
    const before = await total();
    await until(async () => (await total()) > before);
    expect(errors).toEqual([]);
    return page;
  }

  test('a plain page, with an import map and the file that is served; it outlives a restart of the server', async () => {
    const page = await check();
    await page.evaluate(() => document.querySelector('ul')?.setAttribute('data-kept', ''));
    await stop();
    await until(async () => (await page.locator('[role=status]').textContent()) === 'reconnecting');
    expect(await page.locator('li').count()).toBe(2);
    await start();
    await until(async () => (await page.locator('[role=status]').textContent()) === 'live');
    const before = await page.locator('ul').textContent();
    await until(async () => (await page.locator('ul').textContent()) !== before);
    expect(await page.locator('ul[data-kept]').count()).toBe(1);
    await page.close();
  });

  describe.skipIf(isMissing(FRAMEWORKS))('with a framework', () => {
    test.each(['vue', 'svelte'] as const)('%s; a component that goes leaves no connection', async (name) => {
      await bundle(name);
      const page = await check();
      const ended = page.waitForEvent('requestfailed', (request) => request.url().includes('/watch'));
      await page.evaluate(() => (globalThis as unknown as { leave(): void }).leave());
      await ended;
      expect(await page.locator('li').count()).toBe(0);
      await page.close();
    });
  });
});
