// The Vite configuration and the React hook of docs/web-pages.md, with a real Vite in front of a hub.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ViteDevServer } from 'vite';
import { createServer as createVite, loadConfigFromFile } from 'vite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ClientTransport } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { CHROMIUM_BROWSER } from './browsers.ts';
import { until } from './cli.ts';
import { markedBlock, ROOT } from './documents.mjs';

type Order = { id: string; total: number };
type OrderEvent = WatchEvent<'ADDED' | 'MODIFIED' | 'DELETED', Order>;

let folder: string;
let vite: ViteDevServer | undefined;
let orders: Map<string, Order>;
let backend: Backend;

interface Backend {
  readonly hub: Hub<OrderEvent>;
  readonly server: Server;
  readonly port: number;
}

beforeEach(async () => {
  mkdirSync(join(ROOT, 'reports'), { recursive: true });
  // Inside of the package, where `vite` and `react` are found.
  folder = mkdtempSync(join(ROOT, 'reports', 'vite-'));
  orders = new Map();
  backend = await serve(0);
});

afterEach(async () => {
  await vite?.close();
  vite = undefined;
  await stop();
  rmSync(folder, { recursive: true, force: true });
});

async function serve(port: number): Promise<Backend> {
  const hub = new Hub<OrderEvent>({ snapshot: () => orders.values() });
  const server = createServer(createHttpHandler(hub));
  attachWebSocket(server, hub);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return { hub, server, port: (server.address() as AddressInfo).port };
}

/** As when the process is killed: connections break. */
async function stop(): Promise<void> {
  const { hub, server } = backend;
  const closed = new Promise((resolve) => server.close(resolve));
  hub.disconnect(({ transport }) => transport === 'websocket');
  server.closeAllConnections();
  await closed;
  await until(() => hub.stats().clients.length === 0);
}

/** The state is there again; earlier versions mean nothing. */
async function startAgain(): Promise<void> {
  backend = await serve(backend.port);
}

async function put(order: Order): Promise<void> {
  const type = orders.has(order.id) ? 'MODIFIED' : 'ADDED';
  orders.set(order.id, order);
  await backend.hub.publish({ type, object: order });
}

/** Starts Vite with the documented configuration. Answers its address. */
async function startVite(): Promise<string> {
  const code = markedBlock('vite').code.replace('8080', String(backend.port));
  writeFileSync(join(folder, 'vite.config.ts'), code);
  const file = join(folder, 'vite.config.ts');
  const { config } = (await loadConfigFromFile({ command: 'serve', mode: 'development' }, file)) ?? {};
  if (config?.server?.proxy === undefined) throw new Error('the configuration has no proxy');
  vite = await createVite({
    ...config,
    configFile: false,
    root: folder,
    cacheDir: join(folder, '.cache'),
    logLevel: 'silent',
    resolve: { alias: { 'watchmux/client': fileURLToPath(new URL('../../dist/client-browser.js', import.meta.url)) } },
    server: { ...config.server, host: '127.0.0.1', port: 0, hmr: false },
  });
  await vite.listen();
  const [url] = vite.resolvedUrls?.local ?? [];
  if (url === undefined) throw new Error('Vite does not listen');
  return url.replace(/\/$/, '');
}

describe('behind the development server of Vite', () => {
  test.each<ClientTransport>(['http', 'sse', 'websocket'])(
    'over %s, a page notices at once that the server has restarted, and the server that the page was closed',
    async (transport) => {
      const url = await startVite();
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
      await put({ id: 'a', total: 1 });
      await until(() => copy.get('a') === 1);
      await stop();
      await startAgain();
      await put({ id: 'a', total: 2 });
      await until(() => copy.get('a') === 2);
      expect(backend.hub.stats().clients).toHaveLength(1);
      await watch.return();
      await reading;
      await until(() => backend.hub.stats().clients.length === 0);
    },
  );

  test.skipIf(CHROMIUM_BROWSER.missing)('the React component shows the orders, also after a restart of the server', async () => {
    for (const file of ['use-watch.ts', 'orders.tsx']) writeFileSync(join(folder, file), markedBlock(`react ${file}`).code);
    writeFileSync(
      join(folder, 'main.js'),
      `import { createElement, StrictMode } from 'react';
       import { createRoot } from 'react-dom/client';
       import { OrderList } from './orders';
       window.root = createRoot(document.querySelector('main'));
       root.render(createElement(StrictMode, null, createElement(OrderList)));`,
    );
    writeFileSync(join(folder, 'index.html'), '<!doctype html><main></main><script type="module" src="/main.js"></script>');
    const url = await startVite();
    const browser = await CHROMIUM_BROWSER.launch();
    const page = await browser.newPage();
    const faults: string[] = [];
    page.on('pageerror', (error) => faults.push(String(error)));
    const shows = (state: string, ...lines: string[]): Promise<unknown> =>
      page.waitForFunction(
        `document.querySelector('p')?.textContent === '${state}' &&
         Array.from(document.querySelectorAll('li'), (li) => li.textContent).join() === '${lines.join()}'`,
      );
    await put({ id: 'a', total: 1 });
    await page.goto(url);
    await shows('live', 'a: 1');
    await put({ id: 'b', total: 2 });
    await shows('live', 'a: 1', 'b: 2');
    orders.delete('a');
    await backend.hub.publish({ type: 'DELETED', object: { id: 'a', total: 1 } });
    await shows('live', 'b: 2');
    // Strict Mode has run the effect twice, and left one connection.
    await until(() => backend.hub.stats().clients.length === 1);
    expect(backend.hub.stats().total.clients).toBeLessThanOrEqual(2);
    // What happens while the page is not connected is in the next snapshot.
    await stop();
    await shows('connecting', 'b: 2');
    orders.delete('b');
    orders.set('c', { id: 'c', total: 3 });
    await startAgain();
    await shows('live', 'c: 3');
    await put({ id: 'c', total: 4 });
    await shows('live', 'c: 4');
    await page.evaluate('root.unmount()');
    await until(() => backend.hub.stats().clients.length === 0);
    expect(faults).toEqual([]);
    await browser.close();
  });
});
