// `watchmux serve` as a program: what it prints, whom it lets in, how it ends, and what is left after a crash.
import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { get as secureGet } from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { eventually } from '../eventually.ts';
import { certify } from '../unit/certificates.ts';
import { startReviewServer } from '../unit/review-server.ts';
import { killAll, run, serve, until } from './cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'watchmux-serve-'));
const ORDERS = ['--resource', 'orders.example.com/v1=Order'];
const JSON_BODY = { 'content-type': 'application/json' };
afterEach(killAll);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The names of the events that it has logged. */
const eventsOf = (err: string): string[] => Array.from(err.matchAll(/^watchmux serve: ([\w-]+)/gm), ([, event = '']) => event);

const maps = '/api/v1/namespaces/default/configmaps';
const create = (url: string, name: string, headers: object = {}): Promise<Response> =>
  fetch(`${url}${maps}`, {
    method: 'POST',
    headers: { ...JSON_BODY, ...headers },
    body: JSON.stringify({ metadata: { name }, data: { k: 'v' } }),
  });

describe('watchmux serve', () => {
  it('serves configmaps, namespaces and what --resource names', async () => {
    const { url } = await serve(...ORDERS);
    expect((await create(url, 'a')).status).toBe(201);
    const list = (await (await fetch(`${url}${maps}`)).json()) as { items: { metadata: { name: string } }[] };
    expect(list.items.map(({ metadata }) => metadata.name)).toEqual(['a']);
    const order = { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'o' }, spec: { count: 1 } };
    const init = { method: 'POST', headers: JSON_BODY, body: JSON.stringify(order) };
    expect((await fetch(`${url}/apis/example.com/v1/namespaces/default/orders`, init)).status).toBe(201);
    expect(await (await fetch(`${url}/readyz`)).text()).toBe('ok');
  });

  it('--webhook-service asks the webhooks that clients register', async () => {
    const reviews = await startReviewServer();
    try {
      const { url } = await serve('--webhook-service', `shop/hooks=${reviews.address}`);
      const registration = (clientConfig: object): object => ({
        metadata: { name: 'x' },
        webhooks: [
          {
            ...{ name: 'no.example.com', clientConfig: { ...clientConfig, caBundle: reviews.ca }, sideEffects: 'None' },
            rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
            admissionReviewVersions: ['v1'],
          },
        ],
      });
      const path = `${url}/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations`;
      const put = async (method: string, name: string, clientConfig: object): Promise<number> =>
        (await fetch(path + name, { method, headers: JSON_BODY, body: JSON.stringify(registration(clientConfig)) })).status;
      const told = async (name: string): Promise<string> =>
        ((await (await create(url, name)).json()) as { message: string }).message;
      expect(await put('POST', '', { service: { namespace: 'shop', name: 'hooks' } })).toBe(201);
      // The certificate is for an address.
      await eventually(async () => expect(await told('a')).toContain('hooks.shop.svc'));
      reviews.decide.set('/no', () => ({ allowed: false, status: { code: 403, message: 'never' } }));
      const removed = await fetch(`${path}/x`, { method: 'DELETE' });
      expect([removed.status, await put('POST', '', { url: `${reviews.url}/no` })]).toEqual([200, 201]);
      await eventually(async () => expect(await told('b')).toBe('admission webhook "no.example.com" denied the request: never'));
    } finally {
      await reviews.stop();
    }
  });

  it('without --data tells 410 to whoever comes from before a restart, however many writes there were', async () => {
    const first = await serve();
    for (let n = 0; n < 20; n++) await create(first.url, `a${n}`);
    const { metadata } = (await (await fetch(`${first.url}${maps}`)).json()) as { metadata: { resourceVersion: string } };
    first.child.kill('SIGTERM');
    await first.exit;
    const { url } = await serve();
    const since = `resourceVersion=${metadata.resourceVersion}`;
    const told = await (await fetch(`${url}${maps}?watch=true&timeoutSeconds=5&${since}`)).text();
    expect(told).toMatch(/^\{"type":"ERROR".*"code":410/);
    const exact = await fetch(`${url}${maps}?resourceVersionMatch=Exact&${since}`);
    expect(exact.status).toBe(410);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)('%s ends watches and the process, with 0', async (signal) => {
    const { url, child, exit, err } = await serve();
    await until(() => err().includes('ready'));
    const watch = await fetch(`${url}${maps}?watch=true&resourceVersion=0`);
    await create(url, 'a');
    child.kill(signal);
    expect(await watch.text()).toContain('"ADDED"');
    expect(await exit).toBe(0);
    expect(eventsOf(err())).toEqual(['start', 'listening', 'ready', 'shutdown', 'stopped']);
    expect(err()).toContain(`reason=${signal}`);
  });

  it.each([
    ['h2c', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__'],
    [
      'websocket',
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ],
  ])('an upgrade to %s behind an unanswered request ends its connection, and is counted', async (_name, headers) => {
    const { url } = await serve();
    const ask = `GET ${maps} HTTP/1.1\r\nHost: 127.0.0.1\r\n`;
    const closed = Array.from({ length: 50 }, () => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
      socket.write(`${ask}\r\n${ask.replace(' HTTP', '?watch=1 HTTP')}${headers}\r\n\r\n`);
      return new Promise((resolve) => socket.resume().once('close', resolve));
    });
    await Promise.all(closed);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('requests_limited_total{limit="pipelined"} 50');
  });

  it('a second signal exits at once', async () => {
    const { url, child, exit } = await serve();
    // A client that takes nothing holds up the first: more is on the way to it than fits into a connection.
    const data = { k: 'v'.repeat(900_000) };
    for (let at = 0; at < 16; at++) {
      const init = { method: 'POST', headers: JSON_BODY, body: JSON.stringify({ metadata: { name: `a${at}` }, data }) };
      expect((await fetch(`${url}${maps}`, init)).status).toBe(201);
    }
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
    socket.write(`GET ${maps} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    await new Promise((resolve) => socket.once('readable', resolve));
    child.kill('SIGINT');
    await until(async () => (await fetch(`${url}${maps}`).catch(() => ({ status: 503 }))).status === 503);
    child.kill('SIGTERM');
    expect(await exit).toBe(143);
    socket.destroy();
  });

  it('a token: without it 401, with it everything; kubectl is hinted at', async () => {
    const { url, err } = await serve('--token', 'secret-1');
    const code = async (headers: Record<string, string>): Promise<number> => (await fetch(`${url}${maps}`, { headers })).status;
    expect(await code({})).toBe(401);
    expect(await code({ authorization: 'Bearer secret-2' })).toBe(401);
    expect(await code({ authorization: 'Basic secret-1' })).toBe(401);
    expect(await code({ authorization: 'Bearer secret-1' })).toBe(200);
    expect((await create(url, 'a')).status).toBe(401);
    expect(err()).toContain('kubectl does not send it at all');
    expect(err()).not.toContain('secret-1');
  });

  it('--token-file: each tenant has its own, and limits of its own; --client-address: so has each client behind a proxy', async () => {
    const file = join(folder, 'tokens');
    writeFileSync(file, 'secret-1 ada\nsecret-2 bob\n', { mode: 0o600 });
    const limits = ['--max-watchers-per-address', '1', '--client-address', 'x-forwarded-for'];
    const { url, err } = await serve('--token-file', file, ...limits, '--log', 'json');
    await until(() => err().includes('"event":"token-unencrypted"'));
    const watch = async (token: string, from: string): Promise<number> => {
      const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': from };
      return (await fetch(`${url}${maps}?watch=1`, { headers })).status;
    };
    expect(await watch('secret-3', '10.0.0.1')).toBe(401);
    expect(await watch('secret-1', '10.0.0.1')).toBe(200);
    // What stands before the last entry, a client may have made up.
    expect(await watch('secret-2', '10.0.0.2, 10.0.0.1')).toBe(429);
    expect(await watch('secret-2', '10.0.0.1, 10.0.0.2')).toBe(200);
    await until(() => err().includes('"429:1"'));
    for (const line of err().trim().split('\n')) {
      expect(JSON.parse(line)).toMatchObject({ time: expect.any(String), level: expect.any(String), event: expect.any(String) });
    }
    expect(err()).not.toContain('secret-');
  });

  it('SIGHUP reads tokens and certificates again, and ends nothing; a broken file leaves the old ones in use', async () => {
    const files = { tokens: join(folder, 'swapped'), cert: join(folder, 'swapped.crt'), key: join(folder, 'swapped.key') };
    const [old, next] = [certify(), certify()];
    const write = (tokens: string, { cert, key }: { cert: string; key: string }): void => {
      for (const [file, text] of [
        [files.tokens, tokens],
        [files.cert, cert],
        [files.key, key],
      ] as const) {
        writeFileSync(`${file}.new`, text);
        renameSync(`${file}.new`, file);
      }
    };
    write('secret-1 ada\nsecret-3 bob\n', old.server);
    const options = ['--tls-cert', files.cert, '--tls-key', files.key, '--token-file', files.tokens];
    const { url, child, exit, err } = await serve(...options);
    /** The code, or why there is none, over a connection of its own. */
    const code = (token: string, ca: string): Promise<unknown> =>
      new Promise((resolve) => {
        const headers = { authorization: `Bearer ${token}` };
        const options = { ca, headers, agent: false, checkServerIdentity: () => undefined };
        secureGet(`${url}${maps}`, options, ({ statusCode }) => resolve(statusCode)).on('error', ({ code }: { code?: string }) =>
          resolve(code),
        );
      });
    expect(await code('secret-1', old.ca)).toBe(200);
    /** Names whose watch has ended. */
    const ended: string[] = [];
    for (const [token, name, as] of [
      ['secret-1', 'ada'],
      ['secret-3', 'bob'],
      ['secret-1', 'ada as bob', 'bob'],
      ['secret-3', 'bob as ada', 'ada'],
    ] as const) {
      const headers = { authorization: `Bearer ${token}`, ...(as && { 'impersonate-user': as }) };
      await new Promise<void>((resolve) => {
        secureGet(`${url}${maps}?watch=1`, { ca: old.ca, headers, checkServerIdentity: () => undefined }, (watch) => {
          watch.resume().on('close', () => ended.push(name));
          resolve();
        });
      });
    }
    const hangUp = async (event: string): Promise<void> => {
      const count = eventsOf(err()).filter((each) => each === event).length;
      child.kill('SIGHUP');
      await until(() => eventsOf(err()).filter((each) => each === event).length === count + 2);
    };
    write('secret-2 ada\nsecret-3 bob\n', next.server);
    await hangUp('reloaded');
    await until(() => ended.length > 1);
    expect([await code('secret-1', next.ca), await code('secret-2', next.ca)]).toEqual([401, 200]);
    expect(await code('secret-2', old.ca)).not.toBe(200);
    expect(ended.sort()).toEqual(['ada', 'ada as bob']);
    write('broken\n', { cert: 'none', key: 'none' });
    await hangUp('reload-failed');
    expect(await code('secret-2', next.ca)).toBe(200);
    expect(err()).not.toMatch(/secret-|broken|token-unencrypted/);
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
  });

  // Each side may end a connection: this one does not.
  const over = (socket: Socket): Promise<void> => new Promise((resolve) => void socket.resume().once('close', resolve));

  it('connections are kept for two minutes, or for --keep-alive', async () => {
    const kept = await fetch(`${(await serve()).url}/livez`);
    expect(kept.headers.get('keep-alive')).toBe('timeout=120');
    const { url, child, exit } = await serve('--keep-alive', '1', '--metrics', '0', '--drain', '60');
    expect((await fetch(`${url}/livez`)).headers.get('keep-alive')).toBe('timeout=1');
    /** A connection on which there has been an answer. */
    const used = async (path: string): Promise<Socket> => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
      socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
      await new Promise((resolve) => socket.once('readable', resolve));
      return socket;
    };
    await over(await used('/livez'));
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
  });

  it('SIGTERM closes connections that are idle at once', async () => {
    const draining = await serve('--drain', '60');
    const data = { k: 'v'.repeat(900_000) };
    for (let at = 0; at < 16; at++) {
      const init = { method: 'POST', headers: JSON_BODY, body: JSON.stringify({ metadata: { name: `a${at}` }, data }) };
      expect((await fetch(`${draining.url}${maps}`, init)).status).toBe(201);
    }
    const port = Number(new URL(draining.url).port);
    const [reader, idle] = [maps, '/livez'].map((path) => {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
      return socket;
    }) as [Socket, Socket];
    await Promise.all([reader, idle].map((socket) => new Promise((resolve) => socket.once('readable', resolve))));
    draining.child.kill('SIGTERM');
    await over(idle);
    expect(draining.child.exitCode).toBeNull();
    draining.child.kill('SIGTERM');
    expect(await draining.exit).toBe(143);
    reader.destroy();
  });

  it('a URL that is too long is 414; a head that is, 431', async () => {
    const { url } = await serve();
    const code = async (length: number): Promise<unknown> => {
      const response = await fetch(`${url}${maps}?labelSelector=${'x'.repeat(length)}`);
      return [response.status, ((await response.json()) as { code: number }).code];
    };
    expect(await code(16_000)).toEqual([400, 400]);
    expect(await code(30_000)).toEqual([414, 414]);
    expect(await code(40_000)).toEqual([431, 431]);
  });

  it('--metrics: numbers and health at another port, without a token; they go on while the server drains', async () => {
    const { url, child, exit, out, err } = await serve('--token', 'secret-1', '--metrics', '0', '--drain-delay', '3');
    const metrics = /^metrics on (http:\/\/127\.0\.0\.1:\d+)\/metrics\n$/m.exec(out())?.[1] as string;
    const code = async (path: string): Promise<number> => (await fetch(`${metrics}${path}`)).status;
    expect((await fetch(`${url}/metrics`)).status).toBe(401);
    const page = await fetch(`${metrics}/metrics`);
    expect(page.headers.get('content-type')).toContain('text/plain; version=0.0.4');
    expect(await page.text()).toContain('watchmux_apiserver_cache_ready{resource="namespaces"} 1');
    for (const path of ['/readyz', '/livez', '/healthz']) expect(await code(path)).toBe(200);
    for (const path of ['/', maps, '/metrics/x']) expect(await code(path)).toBe(404);
    expect((await fetch(`${metrics}/metrics`, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`${metrics}/metrics`, { method: 'HEAD' })).status).toBe(200);
    const headers = { authorization: 'Bearer secret-1' };
    const watch = await fetch(`${url}${maps}?watch=1`, { headers });
    child.kill('SIGTERM');
    await until(async () => (await code('/readyz')) === 503);
    expect(await (await fetch(`${metrics}/readyz`)).text()).toContain('[-]shutdown failed');
    // Still served, but on a connection that ends: the next one leads elsewhere.
    const served = await create(url, 'late', headers);
    expect([served.status, served.headers.get('connection')]).toEqual([201, 'close']);
    expect(await code('/livez')).toBe(200);
    expect(await watch.text()).toContain('"late"');
    expect(await exit).toBe(0);
    expect(err()).toMatch(/^watchmux serve: stopped afterMs=\d+ inTime=true$/m);
    expect(err()).not.toContain('secret-1');
  });

  it('a client that holds up the shutdown is cut when --drain is over; the exit code is 0 all the same', async () => {
    const { url, child, exit, err } = await serve('--drain', '0.5');
    const data = { k: 'v'.repeat(900_000) };
    for (let at = 0; at < 16; at++) {
      const init = { method: 'POST', headers: JSON_BODY, body: JSON.stringify({ metadata: { name: `a${at}` }, data }) };
      expect((await fetch(`${url}${maps}`, init)).status).toBe(201);
    }
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {});
    socket.write(`GET ${maps} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    await new Promise((resolve) => socket.once('readable', resolve));
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
    expect(eventsOf(err()).slice(-3)).toEqual(['shutdown', 'client-cut', 'stopped']);
    expect(err()).toContain('inTime=false');
    socket.destroy();
  });

  it('HTTPS, with a certificate and its key', async () => {
    const { ca, server } = certify();
    const { cert, key } = server;
    const files = [join(folder, 'cert.pem'), join(folder, 'key.pem')] as const;
    writeFileSync(files[0], cert);
    writeFileSync(files[1], key);
    const { url } = await serve('--tls-cert', files[0], '--tls-key', files[1]);
    expect(url).toMatch(/^https:/);
    const code = await new Promise((resolve, reject) => {
      secureGet(`${url}/healthz`, { ca, checkServerIdentity: () => undefined }, ({ statusCode }) => resolve(statusCode)).on(
        'error',
        reject,
      );
    });
    expect(code).toBe(200);
    const missing = run('serve', '--tls-cert', '/nothing', '--tls-key', files[1]);
    expect(await missing.exit).toBe(2);
    expect(missing.err()).toMatch(/^watchmux serve: --tls-cert: ENOENT/);
    const none = run('serve', '--tls-cert', files[0], '--tls-key', CLI_SOURCE);
    expect([await none.exit, none.err()]).toEqual([2, `watchmux serve: --tls-key: ${CLI_SOURCE} is not in PEM\n`]);
  });

  it('a name that is not this machine’s own is refused: a foreign page could have it', async () => {
    const { url } = await serve();
    const { get } = await import('node:http');
    const code = await new Promise((resolve) => {
      get(`${url}${maps}`, { headers: { host: 'evil.example' } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
    });
    expect(code).toBe(421);
    expect((await fetch(`${url}${maps}`, { headers: { origin: 'http://evil.example' } })).status).toBe(403);
  });

  it('browsers get a page at /, and nobody else does', async () => {
    const { url } = await serve('--token', 'secret-1');
    const html = await fetch(url, { headers: { accept: 'text/html,*/*;q=0.8' } });
    expect([html.status, html.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(html.headers.get('content-security-policy')).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/);
    expect(html.headers.get('vary')).toBe('Accept');
    expect(await html.text()).toMatch(/^<!doctype html>/);
    const json = await fetch(url, { headers: { accept: 'application/json, */*', authorization: 'Bearer secret-1' } });
    expect([json.status, json.headers.get('content-type')]).toEqual([200, 'application/json']);
    // The page has nothing of the server in it; its figures are for those with a token.
    expect((await fetch(`${url}/stats`)).status).toBe(401);
    const stats = await fetch(`${url}/stats`, { headers: { authorization: 'Bearer secret-1' } });
    expect(await stats.json()).toMatchObject({ watchers: 0, requests: { 401: 1, 200: 1 } });
  });

  it('a watch may be a WebSocket, with a token as a subprotocol, under this server’s own name', async () => {
    const { url } = await serve('--token', 'secret-1');
    await create(url, 'a', { authorization: 'Bearer secret-1' });
    const target = `${url.replace('http', 'ws')}${maps}?watch=true&resourceVersion=0`;
    const bearer = (token: string): string => `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString('base64url')}`;
    const first = (protocols: string[], headers: Record<string, string> = {}): Promise<string> =>
      new Promise((resolve) => {
        const socket = new WebSocket(target, protocols, { headers });
        socket.on('unexpected-response', (_request, response) => resolve(String(response.statusCode)));
        socket.on('error', () => {});
        socket.on('message', (data) => {
          resolve(`${socket.protocol} ${(JSON.parse(String(data)) as { type: string }).type}`);
          socket.close();
        });
      });
    expect(await first([], { authorization: 'Bearer secret-1' })).toBe(' ADDED');
    expect(await first([bearer('secret-1'), 'watch.example'])).toBe('watch.example ADDED');
    expect(await first([bearer('secret-1')])).toBe('400');
    expect(await first([bearer('secret-1'), 'a', 'b'])).toBe('400');
    expect(await first([bearer('wrong'), 'a'])).toBe('401');
    expect(await first([])).toBe('401');
    expect(await first([], { authorization: 'Bearer secret-1', host: 'evil.example' })).toBe('421');
    expect(await first([], { authorization: 'Bearer secret-1', origin: 'http://evil.example' })).toBe('403');
  });

  it('--data: what was answered is there after a crash', async () => {
    const file = join(folder, 'data');
    const first = await serve('--data', file);
    for (const name of ['a', 'b', 'c']) expect((await create(first.url, name)).status).toBe(201);
    await fetch(`${first.url}${maps}/b`, { method: 'DELETE' });
    first.child.kill('SIGKILL');
    await first.exit;
    const { url } = await serve('--data', file);
    const list = (await (await fetch(`${url}${maps}`)).json()) as { items: { metadata: { name: string } }[] };
    expect(list.items.map(({ metadata }) => metadata.name)).toEqual(['a', 'c']);
    expect((await create(url, 'a')).status).toBe(409);
  });

  it('--data with a file that cannot be continued: writes are refused, reads go on, and balancers are told', async () => {
    const file = join(folder, 'foreign');
    const { url, err } = await serve('--data', file);
    expect((await create(url, 'a')).status).toBe(201);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    appendFileSync(file, 'somebody else');
    expect((await create(url, 'b')).status).toBe(500);
    await until(async () => (await fetch(`${url}/readyz`)).status === 503);
    expect((await fetch(`${url}${maps}/a`)).status).toBe(200);
    expect((await fetch(`${url}${maps}/b`)).status).toBe(404);
    expect(err()).toContain('storage-failed');
  });

  it('a file that is none of ours, a port that is taken, a host of others: one line, and exit code 2', async () => {
    const file = join(folder, 'foreign');
    writeFileSync(file, 'something else\n'.repeat(10));
    const foreign = run('serve', '--port', '0', '--data', file);
    expect(await foreign.exit).toBe(2);
    expect(foreign.err()).toMatch(/^watchmux serve: --data ".*foreign": .*\n$/);
    const other = createServer();
    await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    const taken = run('serve', '--port', String(port));
    expect([await taken.exit, taken.err()]).toEqual([
      2,
      `watchmux serve: port ${port} is in use; choose another with --port, or any free one with --port 0\n`,
    ]);
    other.close();
    const open = run('serve', '--host', '0.0.0.0');
    expect(await open.exit).toBe(2);
    expect(open.err()).toContain('needs --token; kubectl sends a token over HTTPS only');
    const unreachable = run('serve', '--port', '0', '--etcd', 'http://127.0.0.1:1');
    expect(await unreachable.exit).toBe(2);
    expect(unreachable.err()).toMatch(/^(watchmux serve: waiting .*\n)?watchmux serve: --etcd: .*\n$/);
  }, 60_000);

  it('says what it waits for', async () => {
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    const waiting = run('serve', '--port', '0', '--etcd', `http://user:secret@127.0.0.1:${port}`);
    await until(() => waiting.err().includes('\n'));
    expect(waiting.err()).toBe(`watchmux serve: waiting etcd=http://127.0.0.1:${port}\n`);
    waiting.child.kill('SIGKILL');
    await waiting.exit;
    silent.close();
  }, 30_000);

  it('--help', async () => {
    const help = run('serve', '--help');
    expect([await help.exit, help.err()]).toEqual([0, '']);
    expect(help.out()).toMatch(/^watchmux serve: an API server for your own objects/);
  });
});

/** A file that is there, and is no key. */
const CLI_SOURCE = new URL('./cli.ts', import.meta.url).pathname;
