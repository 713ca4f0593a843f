// Clusters behind the proxy of a kubeconfig, and users of OpenID Connect.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Cluster, loadCluster } from '../../src/kubernetes/index.ts';
import { eventually } from '../eventually.ts';
import { base64, type ClusterServer, json, serveCluster } from './cluster-server.ts';
import { type ConnectProxy, serveProxy } from './connect-proxy.ts';

const LIST = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '7' }, items: [] };

let server: ClusterServer;
let proxy: ConnectProxy;
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

  it('the certificate must be for the name of the server, or for tls-server-name', async () => {
    const { port } = new URL(server.url);
    const through = (more: object): Promise<unknown> => load({ token: 'abc' }, { 'proxy-url': proxy.url, ...more }).then(list);
    await through({ server: `https://cluster.example:${port}` });
    await through({ 'tls-server-name': 'cluster.example' });
    await expect(through({ server: `https://localhost:${port}` })).rejects.toThrow(/altnames: Host: localhost/);
    await expect(through({ server: `https://127.0.0.2:${port}` })).rejects.toThrow(/altnames|127\.0\.0\.2/);
    await expect(through({ 'tls-server-name': 'other.example' })).rejects.toThrow(/altnames: Host: other\.example/);
    expect(server.requests).toHaveLength(2);
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

  it('an abort ends a connection that it does not answer', async () => {
    proxy.answer = undefined;
    const cluster = await load({ token: 'abc' }, { 'proxy-url': proxy.url });
    const abort = new AbortController();
    const listed = cluster.resource('pods').list({ signal: abort.signal });
    await eventually(() => expect(proxy.tunnels.size).toBe(1));
    abort.abort(new Error('enough'));
    await expect(listed).rejects.toThrow('enough');
    await eventually(() => expect(proxy.tunnels.size).toBe(0));
  });

  it("its refusal is not the server's: no credentials are renewed", async () => {
    proxy.answer = '401 Unauthorized';
    const cluster = await load({ token: 'abc' }, { 'proxy-url': proxy.url });
    await expect(list(cluster)).rejects.toThrow(`the proxy answered 401 to CONNECT ${new URL(server.url).host}`);
    expect(proxy.asked).toHaveLength(1);
  });

  it('one that is no URL, or of another kind, is refused', async () => {
    await expect(load({}, { 'proxy-url': 'ftp://me:secret@x' })).rejects.toThrow('got "ftp://x"');
    await expect(load({}, { 'proxy-url': 'http://' })).rejects.toThrow('an http, https or socks5 URL');
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

/** A proxy of SOCKS 5, without authentication. Notes the names that it is asked to connect to, as long as they are names. */
async function serveSocks(): Promise<{ readonly port: number; readonly asked: string[]; close(): void }> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const socks = createServer((socket) => {
    sockets.add(socket.on('error', () => {}).on('close', () => sockets.delete(socket)));
    socket.once('data', () => {
      socket.write(Buffer.from([5, 0]));
      socket.once('data', (request) => {
        const length = request[4] as number;
        const port = request.readUInt16BE(5 + length);
        asked.push(request[3] === 3 ? request.toString('latin1', 5, 5 + length) : 'an address');
        const there = connect(port, '127.0.0.1').on('error', () => socket.destroy());
        socket.on('close', () => there.destroy());
        socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
        socket.pipe(there).pipe(socket);
      });
    });
  });
  await new Promise<void>((resolve) => socks.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    for (const socket of sockets) socket.destroy();
    socks.close();
  };
  return { port: (socks.address() as AddressInfo).port, asked, close };
}

describe('a proxy-url of SOCKS', () => {
  it('resolves names itself', async () => {
    const socks = await serveSocks();
    const place = {
      server: `https://cluster.example:${new URL(server.url).port}`,
      'proxy-url': `socks5://127.0.0.1:${socks.port}`,
    };
    expect(await list(await load({ token: 'abc' }, place))).toMatchObject({ resourceVersion: '7' });
    expect([socks.asked, server.requests.length]).toEqual([['cluster.example'], 1]);
    socks.close();
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
