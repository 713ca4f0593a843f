// The bridge behind nginx and HAProxy, on every transport. What is not installed is skipped, and says so.
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ClientEvent, WebSocketConstructor } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { freePort } from '../peers/ports.ts';
import { text, until } from './cli.ts';
import { closeAll, get, raw, serve } from './servers.ts';

const COUNT = 5_000;

const directory = mkdtempSync(join(tmpdir(), 'watchmux-proxies-'));
const children: ChildProcess[] = [];

afterAll(async () => {
  await Promise.all(
    children.map((child) => {
      const ended = new Promise((resolve) => child.once('close', resolve));
      child.kill();
      return ended;
    }),
  );
  await closeAll();
  rmSync(directory, { recursive: true, force: true });
});

interface Ports {
  readonly port: number;
  readonly upstream: number;
}

/** Connections to the server are kept and used for several clients. */
const nginx = ({ port, upstream }: Ports): string => `daemon off; pid ${directory}/nginx.pid; worker_processes 1;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path ${directory}/a; proxy_temp_path ${directory}/b; fastcgi_temp_path ${directory}/c;
  uwsgi_temp_path ${directory}/d; scgi_temp_path ${directory}/e;
  map $http_upgrade $connection_header { default upgrade; '' ''; }
  upstream hub { server 127.0.0.1:${upstream}; keepalive 8; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://hub; proxy_http_version 1.1; proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_header;
    }
  }
}
`;

const haproxy = ({ port, upstream }: Ports): string => `defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  timeout tunnel 60s
  option abortonclose
frontend clients
  bind 127.0.0.1:${port}
  default_backend hub
backend hub
  http-reuse always
  server one 127.0.0.1:${upstream}
`;

const PROXIES = [
  {
    name: 'nginx',
    binary: '/usr/sbin/nginx',
    config: nginx,
    args: (file: string) => ['-c', file, '-e', `${directory}/nginx.log`],
  },
  { name: 'HAProxy', binary: '/usr/sbin/haproxy', config: haproxy, args: (file: string) => ['-db', '-f', file] },
];

for (const { name, binary, config, args } of PROXIES) {
  const missing = !existsSync(binary) && process.env.REQUIRE_COMPONENTS !== '1';
  if (missing) console.warn(`skipped: there is no ${binary} (REQUIRE_COMPONENTS=1 makes that a failure)`);

  describe.skipIf(missing)(name, () => {
    const start = async (upstream: number): Promise<string> => {
      const port = await freePort();
      const file = join(directory, `${name}-${port}.conf`);
      writeFileSync(file, config({ port, upstream }));
      children.push(spawn(binary, args(file), { stdio: 'ignore' }));
      const url = `http://127.0.0.1:${port}`;
      await until(() =>
        text(`${url}/watch?resourceVersion=nonsense`).then(
          () => true,
          () => false,
        ),
      );
      return url;
    };

    test(`${COUNT} events arrive in order on every transport, while connections are reused`, async () => {
      const hub = new Hub<WatchEvent<string, number>>({ overflow: 'wait' });
      const { port } = await serve(hub as unknown as Hub);
      const url = await start(port);
      for (let i = 0; i < 20; i++) expect(await text(`${url}/watch?resourceVersion=nonsense`)).toContain('BadRequest');
      const read = async (transport: 'http' | 'sse' | 'websocket'): Promise<number[]> => {
        const got: number[] = [];
        const options = { transport, WebSocket: WebSocket as unknown as WebSocketConstructor };
        const events: AsyncIterable<ClientEvent<WatchEvent<string, number>>> = connect(`${url}/watch`, options);
        for await (const { type, object } of events) if (type === 'ADDED') got.push(object as number);
        return got;
      };
      const reads = (['http', 'sse', 'websocket'] as const).map(read);
      await until(() => hub.stats().clients.length === reads.length);
      for (let i = 0; i < COUNT; i++) await hub.publish({ type: 'ADDED', object: i });
      await hub.shutdown();
      const expected = Array.from({ length: COUNT }, (_, i) => i);
      for (const got of await Promise.all(reads)) expect(got).toEqual(expected);
      expect(hub.stats().total.refusals.pipelined).toBeUndefined();
    });

    test('a client that pipelines through the proxy ends no connection but its own, and is noticed when it goes', async () => {
      const hub = new Hub();
      const { port } = await serve(hub);
      const proxied = await start(port);
      const [rude, other] = [await raw(Number(new URL(proxied).port)), await raw(Number(new URL(proxied).port))];
      other.socket.write(get('/watch'));
      rude.socket.write(get('/watch').repeat(100));
      await until(() => hub.stats().clients.length === 2);
      rude.socket.destroy();
      await until(() => hub.stats().clients.length === 1);
      await hub.publish({ type: 'ADDED', object: 'still here' });
      await until(() => other.heard().includes('still here'));
      other.socket.destroy();
      await until(() => hub.stats().clients.length === 0);
    });
  });
}
