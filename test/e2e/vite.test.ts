// The Vite configuration of docs/web-pages.md, and the page and the server of docs/react.md behind it, with a real Vite.
import { type ChildProcess, spawn } from 'node:child_process';
import ts from 'typescript';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ClientTransport } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import { freePort } from '../peers/ports.ts';
import { CHROMIUM_BROWSER } from './browsers.ts';
import { until } from './cli.ts';
import { markedBlock, ROOT } from './documents.mjs';
import { Backend, type OrderEvent, Pages } from './vite-pages.ts';

let pages: Pages;
let backend: Backend;

beforeEach(async () => {
  pages = new Pages();
  backend = new Backend();
  await backend.start();
});

afterEach(async () => {
  await pages.close();
  await backend.stop();
});

describe('behind the development server of Vite', () => {
  test.each<ClientTransport>(['http', 'sse', 'websocket'])(
    'over %s, a page notices at once that the server has restarted, and the server that the page was closed',
    async (transport) => {
      const url = await pages.serve(backend.port);
      const watch = connect<OrderEvent>(`${transport === 'websocket' ? url.replace('http', 'ws') : url}/watch`, {
        transport,
        WebSocket,
        onExpired: 'restart',
        backoff: { minMs: 20, maxMs: 50 },
      });
      const copy = new Map<string, number>();
      const reading = (async () => {
        for await (const event of watch) {
          if (event.type === 'ERROR') copy.clear();
          else if (event.type !== 'BOOKMARK') copy.set(event.object.id, event.object.total);
        }
      })();
      await backend.put({ id: 'a', total: 1 });
      await until(() => copy.get('a') === 1);
      await backend.stop();
      await backend.start();
      await backend.put({ id: 'a', total: 2 });
      await until(() => copy.get('a') === 2);
      expect(backend.clients).toBe(1);
      await watch.return();
      await reading;
      await until(() => backend.clients === 0);
    },
  );
});

describe('docs/react.md', () => {
  let child: ChildProcess | undefined;

  afterEach(() => endServer());

  /** The documented server, as a process. */
  async function startServer(port: number): Promise<void> {
    const { code } = markedBlock('react server.ts');
    const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };
    const { outputText } = ts.transpileModule(code.replace('8080', String(port)), { compilerOptions: options });
    child = spawn(process.execPath, ['--input-type=module', '--eval', outputText], { cwd: ROOT, stdio: 'inherit' });
    await until(() =>
      fetch(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      ),
    );
  }

  async function endServer(): Promise<void> {
    const ended = child && new Promise((resolve) => child?.once('exit', resolve));
    child?.kill('SIGKILL');
    child = undefined;
    await ended;
  }

  test.skipIf(CHROMIUM_BROWSER.missing)(
    'the page shows the orders of the server, and what becomes of the connection',
    async () => {
      for (const file of ['session.ts', 'orders.tsx']) pages.write(file, markedBlock(`react ${file}`).code);
      pages.write(
        'main.js',
        `import { createElement, StrictMode } from 'react';
       import { createRoot } from 'react-dom/client';
       import { Orders } from './orders';
       createRoot(document.querySelector('main')).render(createElement(StrictMode, null, createElement(Orders)));`,
      );
      pages.write('index.html', '<!doctype html><main></main><script type="module" src="/main.js"></script>');
      const port = await freePort();
      await startServer(port);
      const url = await pages.serve(port);
      const browser = await CHROMIUM_BROWSER.launch();
      const page = await browser.newPage();
      const faults: string[] = [];
      page.on('pageerror', (error) => faults.push(String(error)));
      const shows = (status: RegExp, more: string = 'true'): Promise<unknown> =>
        page.waitForFunction(`${status}.test(document.querySelector('[role=status]')?.textContent) && ${more}`);
      const orders = "Array.from(document.querySelectorAll('li'), (li) => li.textContent).join()";
      await page.goto(url);
      await shows(/^live $/, `/^tea: \\d+$/.test(${orders}) && document.body.textContent.includes('1 orders')`);
      const before = await page.evaluate(orders);
      await shows(/^live $/, `${orders} !== ${JSON.stringify(before)}`);
      await endServer();
      await shows(/^reconnecting ./, `/^tea: \\d+$/.test(${orders})`);
      // The session is over: the hub gets no token.
      await page.route('**/watch/token', (route) => route.fulfill({ status: 401 }));
      await startServer(port);
      await shows(/^signed out .*Try again$/, `/^tea: \\d+$/.test(${orders})`);
      await page.unroute('**/watch/token');
      await page.click('button');
      await shows(/^live $/);
      expect(faults).toEqual([]);
      await browser.close();
    },
  );
});
