// A hub, and a real Vite in front of it that serves pages written by a test.
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createServer as createVite, loadConfigFromFile, type ViteDevServer } from 'vite';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { freePort } from '../peers/ports.ts';
import { until } from './cli.ts';
import { markedBlock, ROOT } from './documents.mjs';

export type Order = { id: string; total: number };
export type OrderEvent = WatchEvent<'ADDED' | 'MODIFIED' | 'DELETED', Order>;

/** A hub of orders that can be stopped and started again at the same port. */
export class Backend {
  readonly orders: Map<string, Order> = new Map();
  hub: Hub<OrderEvent> = new Hub();
  port: number = 0;
  /** What the server answers instead of events, if not 0. */
  refusal: number = 0;
  #server: Server | undefined;

  /** The state is there again; earlier versions mean nothing. */
  async start(): Promise<void> {
    const hub = new Hub<OrderEvent>({ snapshot: () => this.orders.values() });
    const handle = createHttpHandler(hub);
    const server = createServer((request, response) => {
      if (this.refusal > 0) response.writeHead(this.refusal).end('refused');
      else handle(request, response);
    });
    attachWebSocket(server, hub);
    this.port ||= await freePort();
    await new Promise<void>((resolve) => server.listen(this.port, '127.0.0.1', resolve));
    this.hub = hub;
    this.#server = server;
  }

  /** As when the process is killed: connections break. */
  async stop(): Promise<void> {
    const server = this.#server as Server;
    const closed = new Promise((resolve) => server.close(resolve));
    this.hub.disconnect(({ transport }) => transport === 'websocket');
    server.closeAllConnections();
    await closed;
    await until(() => this.clients === 0);
  }

  get clients(): number {
    return this.hub.stats().clients.length;
  }

  async put(order: Order): Promise<void> {
    const type = this.orders.has(order.id) ? 'MODIFIED' : 'ADDED';
    this.orders.set(order.id, order);
    await this.hub.publish({ type, object: order });
  }

  async remove(id: string): Promise<void> {
    const object = this.orders.get(id);
    if (object && this.orders.delete(id)) await this.hub.publish({ type: 'DELETED', object });
  }
}

const dist = (file: string): string => fileURLToPath(new URL(`../../dist/${file}`, import.meta.url));

/** Pages in a folder of their own, behind the documented configuration of Vite. */
export class Pages {
  /** Inside of the package, where `vite` and `react` are found. */
  readonly folder: string;
  #vite: ViteDevServer | undefined;

  constructor() {
    mkdirSync(join(ROOT, 'reports'), { recursive: true });
    this.folder = mkdtempSync(join(ROOT, 'reports', 'vite-'));
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.folder, file), text);
  }

  /** Serves them, with requests for `/watch` forwarded to `port`. `modules`: where another React is. Answers the address. */
  async serve(port: number, modules?: string): Promise<string> {
    if (modules !== undefined) cpSync(modules, join(this.folder, 'node_modules'), { recursive: true });
    this.write('vite.config.ts', markedBlock('vite').code.replace('8080', String(port)));
    const file = join(this.folder, 'vite.config.ts');
    const { config } = (await loadConfigFromFile({ command: 'serve', mode: 'development' }, file)) ?? {};
    if (config?.server?.proxy === undefined) throw new Error('the configuration has no proxy');
    const names = {
      'watchmux/client': dist('client-browser.js'),
      'watchmux/react': dist('react.js'),
      'watchmux/cache': dist('cache.js'),
    };
    this.#vite = await createVite({
      ...config,
      configFile: false,
      root: this.folder,
      cacheDir: join(this.folder, '.cache'),
      logLevel: 'silent',
      resolve: { alias: names, dedupe: ['react', 'react-dom'] },
      optimizeDeps: { include: ['react', 'react/jsx-dev-runtime', 'react-dom/client'] },
      server: { ...config.server, host: '127.0.0.1', port: 0, hmr: false },
    });
    await this.#vite.listen();
    const [url] = this.#vite.resolvedUrls?.local ?? [];
    if (url === undefined) throw new Error('Vite does not listen');
    return url.replace(/\/$/, '');
  }

  async close(): Promise<void> {
    await this.#vite?.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
