// The built package in Cloudflare's runtime, workerd, with its own tool's conditions: what docs/platforms.md says of it.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { connect } from '../../src/bridge/client.ts';
import type { HubStats } from '../../src/bridge/hub/hub.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { component, isMissing } from '../components.ts';
import { hear, text, until } from './cli.ts';
import { closeAll, get, raw } from './servers.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const workerd = component('workerd');

/** Like that of a browser, which takes no headers. */
function PlainWebSocket(url: string, protocols: string[]): WebSocket {
  return new WebSocket(url, protocols);
}

const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .worker) ],
  sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "main") ],
);
const worker :Workerd.Worker = (
  modules = [ (name = "worker", esModule = embed "worker.mjs") ],
  compatibilityDate = "2025-09-01",
  compatibilityFlags = ["nodejs_compat"],
  durableObjectNamespaces = [ (className = "Room", uniqueKey = "room"), (className = "Objects", uniqueKey = "objects") ],
  durableObjectStorage = (inMemory = void),
  bindings = [ (name = "ROOM", durableObjectNamespace = "Room"), (name = "OBJECTS", durableObjectNamespace = "Objects") ],
);
`;

describe.skipIf(isMissing(workerd))('workerd', () => {
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-workers-'));
  let end = (): void => {};
  let said = (): string => '';
  let url = '';
  let port = 0;

  beforeAll(async () => {
    await build({
      root,
      configFile: false,
      logLevel: 'error',
      resolve: { conditions: ['workerd', 'worker', 'browser', 'module'] },
      build: {
        lib: { entry: 'test/runtimes/worker.mjs', formats: ['es'], fileName: () => 'worker.mjs' },
        outDir: folder,
        minify: false,
        rollupOptions: { external: [/^node:/, 'ajv', 're2js', 'yaml', '@marcbachmann/cel-js'] },
      },
    });
    writeFileSync(join(folder, 'config.capnp'), CONFIG);
    const child = spawn(workerd.path, ['serve', join(folder, 'config.capnp'), '--control-fd=1']);
    const { out, err } = hear(child);
    said = err;
    end = () => void child.kill('SIGKILL'); // SIGTERM waits for clients
    await until(() => out().includes('"port"') || child.exitCode !== null);
    port = Number(/"port":(\d+)/.exec(out())?.[1]);
    if (!port) throw new Error(`workerd does not listen: ${err()}`);
    url = `http://127.0.0.1:${port}`;
  });

  afterAll(async () => {
    end();
    await closeAll();
    rmSync(folder, { recursive: true, force: true });
  });

  const stats = async (): Promise<HubStats> => JSON.parse(await text(`${url}/stats`)) as HubStats;
  const isEmpty = async (): Promise<boolean> => (await stats()).clients.length === 0;

  test('broadcaster, work queue, client and informer run in a Worker', async () => {
    const policies = {
      wait: [1, 2, 3, 4, 5],
      'drop-newest': [1, 2],
      'drop-oldest': [4, 5],
      disconnect: [1, 2, 410],
      coalesce: [5],
    };
    expect(JSON.parse(await text(`${url}/tried?policies=${Object.keys(policies)}`))).toEqual({
      policies,
      queued: ['a', 'b', 'a'],
      connected: [0, 1, 2],
      informed: { statuses: [201, 409, 201], names: ['a', 'b'] },
    });
  });

  test.each(['http', 'sse', 'websocket'] as const)('%s: every event once and in order, with a token', async (transport) => {
    await until(isEmpty);
    const { version } = await stats();
    const watch = connect<WatchEvent<'n', number>>(`${url}/watch`, {
      ...{ transport, token: 'me', resourceVersion: version },
      WebSocket: PlainWebSocket as never,
    });
    await until(async () => !(await isEmpty()));
    const published = text(`${url}/publish?n=50`);
    for (let i = 0; i < 50; i++) expect(await watch.next()).toMatchObject({ value: { object: i } });
    await published;
    await watch.return();
    await until(isEmpty);
  });

  test.each([
    ['lines', get('/watch')],
    ['BOOKMARKs', get('/watch?allowWatchBookmarks=true')],
    ['SSE', get('/watch', 'Accept: text/event-stream')],
  ])('a client that has left a quiet stream is noticed within two intervals of signs of life: %s', async (_, request) => {
    const client = await raw(port);
    client.socket.write(request);
    await until(async () => (await stats()).clients.length === 1);
    client.socket.destroy();
    await until(isEmpty);
  });

  test('an API server: a watch begins with what there is, and ends in time', async () => {
    const watch = await raw(port);
    watch.socket.write(get('/apis/example.com/v1/namespaces/default/orders?watch=1&timeoutSeconds=1'));
    await until(() => watch.heard().includes('"ADDED"'));
    await until(() => watch.heard().endsWith('\r\n0\r\n\r\n'));
  });

  test('nothing was logged but that clients have left', () => {
    expect(said().replace(/^.*(disconnected|Broken pipe).*\n/gm, '')).toBe('');
  });
});
