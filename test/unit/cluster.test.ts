// Clusters over a real server of TLS: who asks, whom to trust, and how connections are used.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { type AddressInfo, Socket } from 'node:net';
import os from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { createListWatcher, type KubernetesObject } from '../../src/cache/index.ts';
import { Cluster, createNodeFetch, type KubeConfigLike, loadCluster } from '../../src/kubernetes/index.ts';
import { base64, type ClusterServer, json, serveCluster } from './cluster-server.ts';

const LIST = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '7' }, items: [] };

let server: ClusterServer;
const open: Cluster[] = [];

beforeEach(async () => {
  server = await serveCluster();
  server.reply = json(LIST);
});
afterEach(async () => {
  for (const cluster of open.splice(0)) cluster.close();
  vi.unstubAllEnvs();
  await server.close();
});

const load = async (...[options]: Parameters<typeof loadCluster>): Promise<Cluster> => {
  const cluster = await loadCluster(options);
  open.push(cluster);
  return cluster;
};
const list = async (cluster: Cluster): Promise<unknown> => cluster.resource('pods').list();

describe('who asks', () => {
  it('a token, and the CA of the cluster', async () => {
    const cluster = await load({ file: server.kubeconfig({ token: 'abc' }) });
    expect(await list(cluster)).toMatchObject({ items: [], resourceVersion: '7' });
    expect(server.requests).toMatchObject([{ method: 'GET', url: '/api/v1/pods', headers: { authorization: 'Bearer abc' } }]);
    expect(cluster.server.href).toBe(`${server.url}/`);
  });

  it('requests are counted by their answers, also those that have none', async () => {
    const cluster = await load({ file: server.kubeconfig({ token: 'abc' }) });
    const { host } = cluster.server;
    expect(cluster.requestCounts).toEqual([]);
    await list(cluster);
    await list(cluster);
    server.reply = json({ kind: 'Status', code: 409 }, 409);
    await expect(cluster.resource('pods').in('a').patch('b', {})).rejects.toMatchObject({ code: 'REFUSED' });
    expect(cluster.requestCounts).toEqual([
      { code: '200', method: 'GET', host, count: 2 },
      { code: '409', method: 'PATCH', host, count: 1 },
    ]);
    const other = await load({ file: server.kubeconfig({ token: 'abc' }, { 'certificate-authority-data': undefined }) });
    await expect(list(other)).rejects.toThrow(/certificate/);
    expect(other.requestCounts).toEqual([{ code: '<error>', method: 'GET', host, count: 1 }]);
  });

  it('a server that the CA does not know is not asked', async () => {
    const cluster = await load({ file: server.kubeconfig({ token: 'abc' }, { 'certificate-authority-data': undefined }) });
    await expect(list(cluster)).rejects.toThrow(/certificate/);
    expect(server.requests).toEqual([]);
  });

  it('the CA counts also if the context has no user', async () => {
    const cluster = await load({ file: server.kubeconfig({}, {}, { user: undefined }) });
    await list(cluster);
    expect(server.requests[0]?.headers).not.toHaveProperty('authorization');
  });

  it('insecure-skip-tls-verify', async () => {
    const none = { 'certificate-authority-data': undefined, 'insecure-skip-tls-verify': true };
    await list(await load({ file: server.kubeconfig({ token: 'abc' }, none) }));
    expect(server.requests).toHaveLength(1);
  });

  it('tls-server-name is what the certificate must name', async () => {
    const cluster = await load({ file: server.kubeconfig({ token: 'abc' }, { 'tls-server-name': 'other.example' }) });
    await expect(list(cluster)).rejects.toThrow(/other\.example/);
  });

  it('without a kubeconfig, createNodeFetch takes the CA and the client certificate', async () => {
    const url = `${server.url}/api/v1/pods`;
    const { cert, key } = server.client('ann');
    const fetch = createNodeFetch(() => ({ agent: false, ca: server.ca, cert, key }));
    await expect(createListWatcher(url, { fetch }).list()).resolves.toMatchObject({ resourceVersion: '7' });
    expect(server.requests.at(-1)?.client).toBe('ann');
    await expect(createListWatcher(url, { fetch: createNodeFetch() }).list()).rejects.toThrow(/certificate/);
  });

  it('a client certificate in data, and in files that are replaced', async () => {
    const { cert, key } = server.client('alice');
    const files = { 'client-certificate': server.file('crt', cert), 'client-key': server.file('key', key) };
    const data = { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) };
    await list(await load({ file: server.kubeconfig(data) }));
    const cluster = await load({ file: server.kubeconfig(files) });
    await list(cluster);
    const bob = server.client('bob');
    server.file('crt', bob.cert);
    server.file('key', bob.key);
    await list(cluster);
    expect(server.requests.map(({ client }) => client)).toEqual(['alice', 'alice', 'bob']);
  });

  it('a user name and a password', async () => {
    await list(await load({ file: server.kubeconfig({ username: 'u', password: 'p' }) }));
    expect(server.requests[0]?.headers.authorization).toBe(`Basic ${base64('u:p')}`);
  });

  it('an exec plugin is asked again when its token has expired, and once for requests that start together', async () => {
    const count = server.file('count', '0');
    const plugin = server.file(
      'plugin.cjs',
      `const fs = require('node:fs');
       const at = Number(fs.readFileSync(process.argv[2], 'utf8')) + 1;
       fs.writeFileSync(process.argv[2], String(at));
       const expirationTimestamp = at === 3 ? '2999-01-01T00:00:00Z' : '2001-01-01T00:00:00Z';
       console.log(JSON.stringify({ kind: 'ExecCredential', status: { token: 't' + at, expirationTimestamp } }));`,
    );
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: process.execPath, args: [plugin, count] };
    const cluster = await load({ file: server.kubeconfig({ exec }) });
    await Promise.all([list(cluster), list(cluster), list(cluster)]);
    for (let i = 0; i < 3; i++) await list(cluster);
    expect(server.requests.map(({ headers }) => headers.authorization?.slice(7))).toEqual(['t1', 't1', 't1', 't2', 't3', 't3']);
    expect(readFileSync(count, 'utf8')).toBe('3');
  });

  it('a plugin that fails is the error of the request, and what it says is passed on', async () => {
    const passed = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    onTestFinished(() => passed.mockRestore());
    const exec = { command: process.execPath, args: ['-e', 'console.error("no luck"); process.exit(1)'] };
    const cluster = await load({ file: server.kubeconfig({ exec }) });
    await expect(list(cluster)).rejects.toThrow('no luck');
    await expect(list(cluster)).rejects.toThrow('no luck');
    expect(passed.mock.calls.map(([part]) => String(part))).toEqual(['no luck\n', 'no luck\n']);
  });

  it('an abort does not wait for a plugin', async () => {
    const exec = { command: process.execPath, args: ['-e', 'process.stdin.resume(); setTimeout(() => {}, 2_000)'] };
    const cluster = await load({ file: server.kubeconfig({ exec }) });
    const abort = new AbortController();
    const listed = cluster.resource('pods').list({ signal: abort.signal });
    abort.abort(new Error('enough'));
    await expect(listed).rejects.toThrow('enough');
    expect(server.requests).toEqual([]);
  });

  it('a token goes to no other server', async () => {
    const cluster = await load({ file: server.kubeconfig({ token: 'abc' }) });
    const other = createListWatcher('https://127.0.0.1:1/api/v1/pods', { fetch: cluster.fetch });
    await expect(other.list()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('a token over plain HTTP to nobody: such a server is asked without', async () => {
    const seen: (string | undefined)[] = [];
    const plain = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.setHeader('content-type', 'application/json').end(JSON.stringify(LIST));
    });
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(plain.address() as AddressInfo).port}`;
    const cluster = await load({ file: server.kubeconfig({ token: 'abc' }, { server: url }) });
    await list(cluster);
    expect(seen).toEqual([undefined]);
    plain.closeAllConnections();
    await new Promise((resolve) => plain.close(resolve));
  });
});

describe('where the cluster is', () => {
  it('in $KUBECONFIG, in ~/.kube/config', async () => {
    const path = server.kubeconfig({ token: 'abc' });
    vi.stubEnv('KUBECONFIG', path);
    expect((await load()).server.href).toBe(`${server.url}/`);
    vi.stubEnv('KUBECONFIG', '');
    vi.stubEnv('HOME', dirname(path));
    mkdirSync(join(dirname(path), '.kube'));
    writeFileSync(join(dirname(path), '.kube', 'config'), readFileSync(path));
    expect((await load()).server.href).toBe(`${server.url}/`);
  });

  it('in the service account of a pod, whose token may change and end with a line end', async () => {
    const root = dirname(server.file('x', ''));
    const folder = join(root, 'var/run/secrets/kubernetes.io/serviceaccount');
    mkdirSync(folder, { recursive: true });
    const files = { 'ca.crt': server.ca, token: 'from-file\n', namespace: 'home' };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    vi.stubEnv('KUBERNETES_SERVICE_HOST', '127.0.0.1');
    vi.stubEnv('KUBERNETES_SERVICE_PORT', new URL(server.url).port);
    const cluster = await load({ inCluster: root });
    expect(cluster.namespace).toBe('home');
    await list(cluster);
    expect(server.requests[0]?.headers.authorization).toBe('Bearer from-file');
  });

  it('of a user that is a mere number: without a home, its pod still has a service account', async () => {
    const { homedir } = os;
    os.homedir = () => {
      throw new Error('uv_os_homedir returned ENOENT');
    };
    syncBuiltinESMExports();
    onTestFinished(() => {
      os.homedir = homedir;
      syncBuiltinESMExports();
    });
    vi.stubEnv('KUBECONFIG', '');
    vi.stubEnv('HOME', undefined);
    await expect(loadCluster()).rejects.toThrow('kubeconfig: expected $KUBECONFIG, ~/.kube/config, or the service account');
  });

  it('nowhere is an error, not a server at port 8080', async () => {
    vi.stubEnv('KUBECONFIG', '');
    vi.stubEnv('HOME', '/nonexistent');
    await expect(loadCluster()).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('found none'),
    });
    vi.stubEnv('KUBERNETES_SERVICE_HOST', undefined);
    await expect(loadCluster({ inCluster: true })).rejects.toThrow('KUBERNETES_SERVICE_HOST');
  });

  it('a context and its namespace', async () => {
    const file = server.kubeconfig({ token: 'abc' });
    expect((await load({ file })).namespace).toBe('default');
    expect((await load({ file, context: 'y' })).namespace).toBe('team-y');
    await expect(loadCluster({ file, context: 'z' })).rejects.toThrow('context: expected one of x, y, got "z"');
  });

  it.each([
    ['a file that is not there', '/nonexistent/config', 'cannot read /nonexistent/config: ENOENT'],
    ['a file that is empty', '', 'broken: it is not a kubeconfig'],
    ['a file that is no YAML', '{', 'cannot read'],
  ])('%s is an error that names it', async (_what, text, message) => {
    const file = text.startsWith('/') ? text : server.file('broken', text);
    await expect(loadCluster({ file })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(message),
    });
  });

  it('options that make no sense are refused', async () => {
    const file = server.kubeconfig({ token: 'abc' });
    await expect(loadCluster({ file, inCluster: true })).rejects.toThrow('no file together with inCluster');
    await expect(loadCluster({ fil: file } as never)).rejects.toThrow('did you mean file?');
    expect(() => new Cluster({} as KubeConfigLike)).toThrow('a KubeConfig');
    expect(() => new Cluster(own(''), {})).toThrow('a current context that has a cluster');
    expect(() => new Cluster(own('ftp://x'), {})).toThrow('an http(s) URL');
    expect(() => new Cluster(own('http://x', 'http://proxy'), {})).toThrow('together with a proxy');
    expect(() => new Cluster(own('https://x'), { maxListBytes: 0 })).toThrow('maxListBytes');
    expect(() => new Cluster(own('https://x'), { fetch: () => {} } as never)).toThrow('unknown option fetch');
  });
});

/** A configuration of one's own, without client-node. */
function own(url: string, proxyUrl?: string): KubeConfigLike {
  return {
    getCurrentContext: () => 'c',
    getContextObject: () => null,
    getCurrentCluster: () => ({ server: url, proxyUrl }),
    getCurrentUser: () => ({}),
    applyToHTTPSOptions: async (options) => void Object.assign(options, { ca: server.ca }),
  };
}

describe('connections', () => {
  it('are used again, and have keep-alive probes', async () => {
    const cluster = new Cluster(own(server.url));
    open.push(cluster);
    const probes = vi.spyOn(Socket.prototype, 'setKeepAlive');
    for (let i = 0; i < 3; i++) await list(cluster);
    expect(server.sockets).toHaveLength(1);
    expect(probes).toHaveBeenCalledWith(true, 30_000);
    probes.mockRestore();
  });

  it('a GET is sent again if the server closes the connection at that moment', async () => {
    const cluster = new Cluster(own(server.url));
    open.push(cluster);
    await list(cluster);
    let cut = 0;
    const last = server.reply;
    server.reply = (response, noted) => {
      if (cut++ === 0) response.socket?.destroy();
      else last(response, noted);
    };
    expect(await list(cluster)).toMatchObject({ resourceVersion: '7' });
    expect(server.sockets).toHaveLength(2);
  });

  it('a write is not: it may have been done', async () => {
    const cluster = new Cluster(own(server.url));
    open.push(cluster);
    await list(cluster);
    server.reply = (response) => response.socket?.destroy();
    const object: KubernetesObject = { metadata: { name: 'a', namespace: 'b' } };
    await expect(cluster.resource('configmaps').create(object)).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(server.requests.map(({ method }) => method)).toEqual(['GET', 'POST']);
  });

  it('the path of a server is kept', async () => {
    const cluster = new Cluster(own(`${server.url}/k8s/clusters/c-1/`));
    open.push(cluster);
    await cluster.resource('deployments.apps/v1').in('a').list();
    expect(server.requests[0]?.url).toBe('/k8s/clusters/c-1/apis/apps/v1/namespaces/a/deployments');
  });
});
