// `watchmux get` against a real kube-apiserver, as a program: its tables, its pages, and changes across a restart.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { component, isMissing } from '../components.ts';
import { killAll, type Run, run, until } from '../e2e/cli.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;
const folder = mkdtempSync(join(tmpdir(), 'watchmux-get-'));
const file = join(folder, 'config');
const MAPS = '/api/v1/namespaces/default/configmaps';

let server: ApiServer;

beforeAll(async () => {
  if (missing) return;
  server = await startApiServer();
  const clusters = [{ name: 'c', cluster: { server: server.url, 'certificate-authority': server.caFile } }];
  const contexts = [{ name: 'x', context: { cluster: 'c', user: 'u' } }];
  const users = [{ name: 'u', user: { token: server.token } }];
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters, users, contexts, 'current-context': 'x' }));
  for (const name of ['a', 'b']) {
    await server.create(MAPS, { metadata: { name, labels: { of: name } }, data: { k: 'v' } });
  }
}, START_MS);
afterEach(killAll);
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}, START_MS);

const get = (...args: string[]): Run => run('get', ...args, '--kubeconfig', file);
async function printed(...args: string[]): Promise<string> {
  const got = get(...args);
  const code = await got.exit;
  expect([got.err(), code]).toEqual(['', 0]);
  return got.out();
}

describe.skipIf(missing)('watchmux get', () => {
  it('a table with the columns of the server', async () => {
    expect(await printed('configmaps')).toMatch(/^NAME {3}DATA {3}AGE\na {6}1 {6}\d+s\nb {6}1 {6}\d+s\n$/);
    expect(await printed('cm', '-A')).toMatch(/^NAMESPACE {5}NAME .*\ndefault {7}a /);
    expect(await printed('cm', '-l', 'of=b', '-o', 'name')).toBe('default/b\n');
    expect(await printed('namespaces', 'default')).toMatch(/^NAME {6}STATUS {3}AGE\ndefault {3}Active {3}\d+/);
  });

  it('JSON: a list, or one object', async () => {
    const list = JSON.parse(await printed('cm', '-o', 'json', '--field-selector', 'metadata.name!=b'));
    expect(list).toMatchObject({ kind: 'List', metadata: { resourceVersion: expect.stringMatching(/^\d+$/) } });
    expect(list.items).toMatchObject([{ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' } }]);
    expect(JSON.parse(await printed('cm', 'a', '-o', 'json'))).toEqual(list.items[0]);
  });

  it('groups, versions, custom resource definitions', async () => {
    expect(await printed('flowschemas.flowcontrol.apiserver.k8s.io/v1', '-o', 'name')).toContain('catch-all\n');
    const none = get('deploy');
    expect([await none.exit, none.err()]).toEqual([0, 'watchmux get: there are no objects\n']);
    const unknown = get('unicorns');
    expect([await unknown.exit, unknown.err()]).toEqual([2, 'watchmux get: the server has no resource "unicorns"\n']);
    const absent = get('cm', 'nowhere');
    expect([await absent.exit, absent.err()]).toEqual([1, 'watchmux get: there is no object "nowhere"\n']);
  });

  it('more than one page', async () => {
    const path = await server.collection('many', 'configmaps');
    for (let at = 0; at < 1_100; at += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, i) => server.create(path, { metadata: { name: `m-${at + i}` } })));
    }
    expect((await printed('cm', '-n', 'many', '-o', 'name')).split('\n')).toHaveLength(1_101);
    expect((await printed('cm', '-n', 'many')).split('\n')).toHaveLength(1_102);
    expect(JSON.parse(await printed('cm', '-n', 'many', '-o', 'json')).items).toHaveLength(1_100);
    expect((await printed('cm', '-n', 'many', '-o', 'name', '--limit', '501')).split('\n')).toHaveLength(502);
  }, 60_000);

  it.each([['table'], ['json'], ['name']])(
    'changes as %s, also those that happen while the server is away',
    async (format) => {
      const path = await server.collection(`watched-${format}`, 'configmaps');
      await server.create(path, { metadata: { name: 'old' } });
      const got = get('configmaps', '-n', `watched-${format}`, '-w', '-o', format);
      const lines = (): string[] =>
        got
          .out()
          .split('\n')
          .filter((line) => /^(ADDED|MODIFIED|DELETED|\{)/.test(line))
          .map((line) => (format === 'json' ? `${JSON.parse(line).type} ${JSON.parse(line).object.metadata.name}` : line))
          .map((line) => line.replace(/ +/, ' ').replace(/ (watched-\w+\/)?(\S+).*/, ' $2'));
      await until(() => lines().includes('ADDED old'));
      await server.put(path, 'old');
      await until(() => lines().includes('MODIFIED old'));
      await server.create(path, { metadata: { name: 'new' } });
      await until(() => lines().includes('ADDED new'));
      await server.restart(); // after which its watch is refused with 410
      await server.delete(`${path}/old`);
      await until(() => lines().includes('DELETED old'));
      expect(lines()).toEqual(['ADDED old', 'MODIFIED old', 'ADDED new', 'DELETED old'].filter((line) => lines().includes(line)));
      got.child.kill('SIGINT');
      expect(await got.exit).toBe(0);
      if (format === 'table') expect(got.out()).toMatch(/^EVENT {6}NAME +DATA +AGE\n/);
    },
    60_000,
  );
});
