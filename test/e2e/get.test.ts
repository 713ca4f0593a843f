// `watchmux get` as a program, against a server of objects that makes no tables.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { FakeListWatcher } from '../../src/testing/index.ts';
import { type CollectionServer, serveCollection } from '../unit/collection-server.ts';
import { killAll, run, until } from './cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'watchmux-get-'));
const servers: Server[] = [];
const collections: CollectionServer[] = [];

afterEach(async () => {
  killAll();
  for (const each of collections.splice(0)) await each.close();
});
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections();
  rmSync(folder, { recursive: true, force: true });
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Thing extends KubernetesObject {
  readonly n?: number;
}

async function collection(count = 0): Promise<{ source: FakeListWatcher<Thing>; url: string }> {
  const source = new FakeListWatcher<Thing>();
  for (let n = 0; n < count; n++) source.add({ metadata: { name: `t-${n}`, namespace: 'x' }, n });
  const served = await serveCollection(source);
  collections.push(served);
  return { source, url: served.url };
}

describe('watchmux get URL', () => {
  test('objects without a table', async () => {
    const { url } = await collection(2);
    const got = run('get', url);
    expect([await got.exit, got.out(), got.err()]).toEqual([
      0,
      'NAMESPACE   NAME   AGE\nx           t-0    <unknown>\nx           t-1    <unknown>\n',
      '',
    ]);
  });

  test('all pages', async () => {
    const { url } = await collection(1_234);
    const names = run('get', url, '-o', 'name');
    expect(await names.exit).toBe(0);
    expect(names.out().split('\n')).toHaveLength(1_235);
    const json = run('get', url, '-o', 'json');
    expect(await json.exit).toBe(0);
    expect(JSON.parse(json.out()).items).toHaveLength(1_234);
    const some = run('get', url, '-o', 'name', '--limit', '501');
    expect(await some.exit).toBe(0);
    expect(some.out().split('\n')).toHaveLength(502);
  });

  test('nothing is said beside the output', async () => {
    const { url } = await collection();
    const got = run('get', url, '-o', 'json');
    expect([await got.exit, got.err()]).toEqual([0, 'watchmux get: there are no objects\n']);
    expect(JSON.parse(got.out()).items).toEqual([]);
  });

  test('a list that expires while it is read goes on where the server says', async () => {
    let asked = 0;
    const url = await serve((_request, response) => {
      response.setHeader('content-type', 'application/json');
      const list = (name: string, more: object): string =>
        JSON.stringify({ kind: 'L', metadata: { resourceVersion: '1', ...more }, items: [{ metadata: { name } }] });
      asked++;
      if (asked === 1) response.end(list('a', { continue: 'old' }));
      else if (asked === 2) {
        const status = { kind: 'Status', code: 410, reason: 'Expired', message: 'gone', metadata: { continue: 'new' } };
        response.writeHead(410).end(JSON.stringify(status));
      } else response.end(list('b', {}));
    });
    const got = run('get', url, '-o', 'name');
    expect([await got.exit, got.out(), got.err()]).toEqual([
      0,
      'a\nb\n',
      'watchmux get: the list changed while it was being read: what follows is newer\n',
    ]);
  });

  test('headers and a token are sent', async () => {
    const seen: unknown[] = [];
    const url = await serve(({ headers }, response) => {
      seen.push([headers.authorization, headers['x-a'], headers.accept?.split(';')[0]]);
      response.writeHead(403, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'not you' }));
    });
    const got = run('get', `${url}/pods`, '--token', 't', '--header', 'X-A: b');
    expect([await got.exit, got.out(), got.err()]).toEqual([
      1,
      '',
      `watchmux get: ${url}/pods answered 403 Forbidden: not you\n`,
    ]);
    expect(seen).toEqual([['Bearer t', 'b', 'application/json']]);
  });

  test('a path where no collection is: a hint where they are', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ kind: 'Status', code: 404, reason: 'NotFound', message: 'no such' }));
    });
    const hint = '; collections of Kubernetes are at /api/v1/PLURAL or /apis/GROUP/VERSION/PLURAL';
    const paths: [string, string][] = [
      ['/orders', hint],
      ['/apis/example.com/orders', hint],
      ['/api/v1/orders', ''],
      ['/apis/example.com/v1/namespaces/a/orders', ''],
    ];
    for (const [path, more] of paths) {
      const got = run('get', url + path);
      expect([await got.exit, got.err()]).toEqual([1, `watchmux get: ${url}${path} answered 404 NotFound: no such${more}\n`]);
    }
  });

  test('what is wrong with a selector is on lines of its own, under which the caret points', async () => {
    const message = 'label selector: expected "," or ")" at character 8, got "c"\n  a in (b c)\n          ^';
    const url = await serve((_request, response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ kind: 'Status', code: 400, reason: 'BadRequest', message }));
    });
    for (const more of [[], ['--watch'], ['-o', 'json'], ['-o', 'json', '--watch']]) {
      const got = run('get', `${url}/api/v1/pods`, '-l', 'a in (b c)', ...more);
      expect([await got.exit, got.err()]).toEqual([1, `watchmux get: ${url}/api/v1/pods answered 400 BadRequest: ${message}\n`]);
    }
  });

  test('a message of several lines that points at nothing is on one', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ kind: 'Status', code: 400, reason: 'BadRequest', message: 'a\n  b\nwatchmux get: c' }));
    });
    const got = run('get', `${url}/api/v1/pods`);
    expect([await got.exit, got.err()]).toEqual([
      1,
      `watchmux get: ${url}/api/v1/pods answered 400 BadRequest: a.  b.watchmux get: c\n`,
    ]);
  });

  test('no server, no collection, no answer', async () => {
    const none = run('get', 'http://user:secret@127.0.0.1:1/pods');
    expect(await none.exit).toBe(1);
    expect(none.err()).toBe('watchmux get: cannot read http://127.0.0.1:1/pods: connect ECONNREFUSED 127.0.0.1:1\n');
    const page = await serve((_request, response) => void response.setHeader('content-type', 'text/html').end('<html>'));
    const other = run('get', page);
    expect(await other.exit).toBe(1);
    expect(other.err()).toBe(`watchmux get: ${page}/ is not a collection: expected JSON, got text/html\n`);
    const pod = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } });
    const one = await serve((_request, response) => void response.setHeader('content-type', 'application/json').end(pod));
    const json = run('get', one, '-o', 'json');
    expect(await json.exit).toBe(1);
    expect(json.err()).toContain('got kind Pod; for one object, give the URL of its collection, and its name\n');
    const silent = run('get', await serve(() => {}), '--timeout', '0.2');
    expect(await silent.exit).toBe(1);
    expect(silent.err()).toContain('the server was silent for 200 ms');
  });

  test('a reader that ends is no failure', async () => {
    const { url } = await collection(5_000);
    const got = run('get', url, '-o', 'json');
    got.child.stdout.once('data', () => got.child.stdout.destroy());
    expect(await got.exit).toBe(0);
    expect(got.err()).toBe('');
  });
});

describe('watchmux get URL --watch', () => {
  test('what there is, then changes, through broken connections and 410; Ctrl-C ends it', async () => {
    const { source, url } = await collection(2);
    const got = run('get', url, '-w', '-o', 'name');
    const lines = (): string[] => got.out().split('\n').slice(0, -1);
    await until(() => lines().length === 2);
    expect(lines()).toEqual(['ADDED x/t-0', 'ADDED x/t-1']);
    source.modify({ metadata: { name: 't-0', namespace: 'x' }, n: 9 });
    await until(() => lines().includes('MODIFIED x/t-0'));
    source.cut();
    source.add({ metadata: { name: 't-2', namespace: 'x' } });
    await until(() => lines().includes('ADDED x/t-2'));
    source.delete({ metadata: { name: 't-1', namespace: 'x' } });
    source.expire();
    source.cut();
    await until(() => lines().includes('DELETED x/t-1'));
    expect(lines()).toHaveLength(5);
    got.child.kill('SIGINT');
    expect(await got.exit).toBe(0);
  });

  test('events as JSON, and a reader that ends', async () => {
    const { source, url } = await collection(1);
    const got = run('get', url, '--watch', '--output', 'json');
    await until(() => got.out().includes('\n'));
    expect(JSON.parse(got.out())).toMatchObject({ type: 'ADDED', object: { metadata: { name: 't-0' }, n: 0 } });
    got.child.stdout.destroy();
    const writing = setInterval(() => source.modify({ metadata: { name: 't-0', namespace: 'x' } }), 20);
    expect(await got.exit).toBe(0);
    clearInterval(writing);
    expect(got.err()).toBe('');
  });

  test('a first failure ends it; SIGTERM does, too', async () => {
    const { source, url } = await collection(1);
    const none = run('get', 'http://127.0.0.1:1/pods', '-w');
    expect([await none.exit, none.err()]).toEqual([
      1,
      'watchmux get: cannot read http://127.0.0.1:1/pods: connect ECONNREFUSED 127.0.0.1:1\n',
    ]);
    const got = run('get', url, '-w');
    await until(() => source.openWatches > 0 && got.out().includes('t-0'));
    expect(got.out()).toBe('EVENT      NAMESPACE   NAME   AGE\nADDED      x           t-0    <unknown>\n');
    got.child.kill('SIGTERM');
    expect(await got.exit).toBe(0);
  });
});

describe('watchmux get RESOURCE NAME', () => {
  test('asks for that object, and for no list', async () => {
    const asked: string[] = [];
    const url = await serve((request, response) => {
      asked.push(`${request.headers.accept?.startsWith('application/json;as=Table') ? 'table ' : ''}${request.url}`);
      const answers: Readonly<Record<string, object>> = {
        '/api/v1': { resources: [{ name: 'pods', kind: 'Pod', namespaced: true }] },
        '/api/v1/namespaces/x/pods/web': { kind: 'Pod', metadata: { name: 'web', namespace: 'x' }, n: 1 },
      };
      const path = request.url ?? '';
      const refused = { kind: 'Status', code: 403, reason: 'Forbidden', message: 'cannot list' };
      const absent = { kind: 'Status', code: 404, reason: 'NotFound', message: 'not found', details: { name: 'gone' } };
      const body = answers[path] ?? (path.endsWith('/gone') ? absent : refused);
      response.writeHead((body as { code?: number }).code ?? 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    });
    const file = join(folder, 'config');
    writeFileSync(
      file,
      JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: url } }],
        contexts: [{ name: 'x', context: { cluster: 'c', namespace: 'x' } }],
        'current-context': 'x',
      }),
    );
    const got = async (...args: string[]): Promise<unknown[]> => {
      const ended = run('get', ...args, '--kubeconfig', file);
      return [await ended.exit, ended.out(), ended.err()];
    };
    expect(await got('pods', 'web')).toEqual([0, 'NAME   AGE\nweb    <unknown>\n', '']);
    expect(await got('pods', 'web', '-o', 'name')).toEqual([0, 'x/web\n', '']);
    const [code, json] = await got('pods', 'web', '-o', 'json');
    expect([code, JSON.parse(json as string)]).toEqual([0, { kind: 'Pod', metadata: { name: 'web', namespace: 'x' }, n: 1 }]);
    expect(await got('pods', 'gone')).toEqual([1, '', 'watchmux get: there is no object "gone"\n']);
    expect(await got('pods', 'web', '-l', 'a=b')).toEqual([1, '', expect.stringContaining('403 Forbidden: cannot list')]);
    expect(asked.filter((path) => !path.endsWith('/api/v1'))).toEqual([
      'table /api/v1/namespaces/x/pods/web',
      '/api/v1/namespaces/x/pods/web',
      '/api/v1/namespaces/x/pods/web',
      'table /api/v1/namespaces/x/pods/gone',
      expect.stringMatching(/^table .*labelSelector=a%3Db/),
    ]);
    const byUrl = run('get', `${url}/api/v1/namespaces/x/pods`, 'web', '-o', 'name');
    expect([await byUrl.exit, byUrl.out()]).toEqual([0, 'x/web\n']);
  });
});

describe('watchmux get RESOURCE', () => {
  test('without a kubeconfig', async () => {
    const got = run('get', 'pods', '--kubeconfig', '/nonexistent');
    expect(await got.exit).toBe(2);
    expect(got.err()).toMatch(/^watchmux get: kubeconfig: cannot read \/nonexistent: ENOENT.*\n$/);
    const context = run('get', 'pods', '--kubeconfig', '/nonexistent', '--context', 'x');
    expect(await context.exit).toBe(2);
  });
});
