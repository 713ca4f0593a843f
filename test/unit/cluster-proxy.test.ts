// Clusters behind the proxy of a kubeconfig, and users of OpenID Connect.
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Cluster, loadCluster } from '../../src/kubernetes/index.ts';
import { eventually } from '../eventually.ts';
import { base64, type ClusterServer, json, serveCluster } from './cluster-server.ts';

const LIST = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '7' }, items: [] };

interface Proxy {
  readonly url: string;
  /** What it was asked to connect to, with what it was sent besides. */
  readonly asked: string[];
  readonly tunnels: Set<Socket>;
  answer: string;
  close(): Promise<void>;
}

/** A proxy of HTTP that only knows CONNECT. */
async function serveProxy(): Promise<Proxy> {
  const server = createServer((_request, response) => response.writeHead(405).end());
  const proxy: Proxy = {
    url: '',
    asked: [],
    tunnels: new Set(),
    answer: '200 Connection established',
    close: () =>
      new Promise((resolve) => {
        for (const tunnel of proxy.tunnels) tunnel.destroy();
        server.close(() => resolve());
      }),
  };
  server.on('connect', (request, socket: Socket) => {
    const { port, hostname } = new URL(`tcp://${request.url}`);
    proxy.asked.push([request.url, request.headers.authorization, request.headers['proxy-authorization']].join(' ').trim());
    proxy.tunnels.add(socket.on('close', () => proxy.tunnels.delete(socket)).on('error', () => {}));
    socket.write(`HTTP/1.1 ${proxy.answer}\r\n\r\n`);
    if (!proxy.answer.startsWith('200')) return void socket.end();
    const there = connect(Number(port), hostname).on('error', () => socket.destroy());
    socket.on('close', () => there.destroy());
    there.on('close', () => socket.destroy());
    socket.pipe(there).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(proxy, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

let server: ClusterServer;
let proxy: Proxy;
const open: Cluster[] = [];

beforeEach(async () => {
  [server, proxy] = await Promise.all([serveCluster(), serveProxy()]);
  server.reply = json(LIST);
});
afterEach(async () => {
  for (const cluster of open.splice(0)) cluster.close();
  await Promise.all([server.close(), proxy.close()]);
});

const load = async (user: object, cluster: object = {}): Promise<Cluster> => {
  const loaded = await loadCluster({ file: server.kubeconfig(user, cluster) });
  open.push(loaded);
  return loaded;
};
const list = async (cluster: Cluster): Promise<unknown> => cluster.resource('pods').list();

describe('a proxy-url', () => {
  it('is where all requests go; the proxy sees neither token nor request', async () => {
    const cluster = await load({ token: 'abc' }, { 'proxy-url': proxy.url.replace('//', '//me:secret@') });
    for (let i = 0; i < 3; i++) expect(await list(cluster)).toMatchObject({ items: [], resourceVersion: '7' });
    expect(server.requests).toHaveLength(3);
    expect(server.requests[0]?.headers).toMatchObject({ authorization: 'Bearer abc' });
    expect(server.requests[0]?.headers).not.toHaveProperty('proxy-authorization');
    expect(new Set(proxy.asked)).toEqual(new Set([`${new URL(server.url).host}  Basic ${base64('me:secret')}`]));
  });

  it('the server is checked as without', async () => {
    const cluster = await load({ token: 'abc' }, { 'proxy-url': proxy.url, 'certificate-authority-data': undefined });
    await expect(list(cluster)).rejects.toThrow(/certificate/);
    expect(server.requests).toEqual([]);
  });

  it('a client certificate is shown to the server', async () => {
    const { cert, key } = server.client('alice');
    const data = { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) };
    await list(await load(data, { 'proxy-url': proxy.url }));
    expect(server.requests[0]?.client).toBe('alice');
  });

  it('one that refuses is the error of the request', async () => {
    proxy.answer = '407 Proxy Authentication Required';
    const cluster = await load({ token: 'abc' }, { 'proxy-url': proxy.url });
    await expect(list(cluster)).rejects.toThrow('407');
  });

  it('each request has a connection of its own, which does not stay', async () => {
    const cluster = await load({ token: 'abc' }, { 'proxy-url': proxy.url });
    for (let i = 0; i < 5; i++) await list(cluster);
    expect(proxy.asked).toHaveLength(5);
    await eventually(() => expect(proxy.tunnels.size).toBe(0));
  });

  it('a watch goes through it, and its end ends the connection', async () => {
    server.reply = (response) => response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    const cluster = await load({ token: 'abc' }, { 'proxy-url': proxy.url });
    const watch = await cluster.resource('pods').watch({ resourceVersion: '7' });
    expect(proxy.tunnels.size).toBe(1);
    watch.stop();
    await eventually(() => expect(proxy.tunnels.size).toBe(0));
  });
});

describe('OpenID Connect', () => {
  const idToken = (expires: number): string =>
    [{ alg: 'none' }, { exp: expires }, {}].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  const user = (expires: number): object => ({
    'auth-provider': {
      name: 'oidc',
      config: {
        'client-id': 'c',
        'id-token': idToken(expires),
        'refresh-token': 'r',
        'idp-issuer-url': 'https://127.0.0.1:1/issuer',
      },
    },
  });

  it('a token of OpenID Connect is sent as long as it is good', async () => {
    const good = Date.now() / 1_000 + 3_600;
    await list(await load(user(good)));
    expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${idToken(good)}`);
  });

  it('one that cannot be refreshed is the error of the request, which is not sent', async () => {
    const cluster = await load(user(1));
    await expect(list(cluster)).rejects.toThrow(/^kubeconfig: no credentials for this request: /);
    expect(server.requests).toEqual([]);
  });
});
