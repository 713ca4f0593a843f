// `watchmux new operator`: the project builds and passes its test at once, and its manifests grant what the operator asks for.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { ApiServer, type ApiServerOptions, CONFIG_MAPS, EVENTS, LEASES } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { freePorts } from '../peers/ports.ts';
import { CLI, until } from './cli.ts';
import { UsedRights } from './rights.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const parent = mkdtempSync(join(tmpdir(), 'watchmux-new-'));
const project = join(parent, 'website-operator');
const children: Set<ChildProcess> = new Set();
const servers: Set<Server> = new Set();

/** As `npm install` does it, but from what is installed here. */
function install(): void {
  const packages = { watchmux: '.', typescript: 'node_modules/typescript-7', yaml: 'node_modules/yaml' };
  const modules = join(project, 'node_modules');
  mkdirSync(join(modules, '.bin'), { recursive: true });
  mkdirSync(join(modules, '@types'));
  for (const [name, path] of Object.entries(packages)) symlinkSync(join(root, path), join(modules, name));
  symlinkSync(join(root, 'node_modules/@types/node'), join(modules, '@types/node'));
  symlinkSync('../typescript/bin/tsc', join(modules, '.bin/tsc'));
}

beforeAll(() => {
  const created = spawnSync(process.execPath, [CLI, 'new', 'operator', 'website-operator'], { cwd: parent, encoding: 'utf8' });
  expect([created.status, created.stderr]).toEqual([0, '']);
  install();
});
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
  for (const server of servers) server.close().closeAllConnections();
  rmSync(parent, { recursive: true, force: true });
});

const manifest = (name: string): string => join(project, 'manifests', name);

/** A server of what a cluster has, and a kubeconfig for it. */
async function serve(authorize: NonNullable<ApiServerOptions['authorize']>): Promise<ApiServer> {
  const api = new ApiServer({
    storage: new MemoryStorage(),
    resources: [CONFIG_MAPS, ...EVENTS, LEASES] as ApiServerOptions['resources'],
    customResourceDefinitions: true,
    garbageCollection: true,
    authorize,
  });
  await api
    .resource('customresourcedefinitions.apiextensions.k8s.io/v1')
    .create(parse(readFileSync(manifest('crd.yaml'), 'utf8')));
  const server = createServer(api.handler);
  servers.add(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const config = {
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } }],
    contexts: [{ name: 'x', context: { cluster: 'c', namespace: 'website-operator' } }],
    'current-context': 'x',
  };
  writeFileSync(join(parent, 'config'), JSON.stringify(config));
  return api;
}

describe('a new operator', () => {
  test('builds, and passes its test', () => {
    const { status, stdout, stderr } = spawnSync('npm', ['test'], { cwd: project, encoding: 'utf8' });
    expect([status, stderr, stdout]).toEqual([0, '', expect.stringMatching(/^# pass 1$|^ℹ pass 1$/m)]);
    expect(readdirSync(join(project, 'dist/src')).sort()).toEqual(['main.js', 'website.js']);
  });

  test('asks a server for what its manifest grants, and for all of that', async () => {
    const rights = new UsedRights();
    let isRaced = false;
    const api: ApiServer = await serve(async (verb, resource, ...more) => {
      // Somebody else is faster, once.
      if (resource === 'websites.example.com/status' && !isRaced) {
        isRaced = true;
        await sites.patch('a', { metadata: { labels: { raced: 'yes' } } });
      }
      return rights.authorize(verb, resource, ...more);
    });
    const [port] = await freePorts(1);
    const env = { ...process.env, KUBECONFIG: join(parent, 'config'), PORT: String(port) };
    const child = spawn(process.execPath, ['dist/src/main.js'], { cwd: project, env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.add(child);
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (out += text));
    const ended = new Promise((resolve) => child.on('close', resolve));

    interface Site {
      readonly status?: { readonly conditions?: readonly { readonly status: string; readonly observedGeneration?: number }[] };
    }
    const sites = api.resource<Site>('websites.example.com/v1').in('default');
    await until(() => rights.has('watch websites.example.com') || child.exitCode !== null);
    await sites.create({ metadata: { name: 'a' }, spec: { message: 'one' } } as Site);
    const isReady = async (generation: number): Promise<boolean> =>
      (await sites.get('a')).status?.conditions?.[0]?.observedGeneration === generation;
    await until(() => isReady(1));
    await sites.patch('a', { spec: { message: 'two' } }); // the same event, which is counted
    await until(() => isReady(2));
    const probes = await Promise.all(['healthz', 'readyz'].map((path) => fetch(`http://127.0.0.1:${port}/${path}`)));
    expect(probes.map(({ status }) => status)).toEqual([200, 200]);
    child.kill('SIGTERM');
    expect([await ended, out]).toEqual([0, expect.not.stringMatching(/fail|error/i)]);
    expect(rights.compare(manifest('rbac.yaml'))).toEqual({ missing: [], unused: [] });
    await api.shutdown();
  });

  test('has manifests that fit together', () => {
    const [namespace, account, deployment] = parseAllDocuments(readFileSync(manifest('deployment.yaml'), 'utf8')).map((each) =>
      each.toJS(),
    );
    expect([namespace.kind, account.kind, deployment.kind]).toEqual(['Namespace', 'ServiceAccount', 'Deployment']);
    expect(account.metadata.namespace).toBe(namespace.metadata.name);
    expect(deployment.metadata.namespace).toBe(namespace.metadata.name);
    const { spec } = deployment.spec.template;
    expect(spec.serviceAccountName).toBe(account.metadata.name);
    const [container] = spec.containers;
    expect(container.livenessProbe.httpGet.path).toBe('/healthz');
    expect(container.readinessProbe.httpGet.path).toBe('/readyz');
    const bindings = parseAllDocuments(readFileSync(manifest('rbac.yaml'), 'utf8')).map((each) => each.toJS());
    const subjects = bindings.flatMap((binding) => binding.subjects ?? []);
    const { name, namespace: at } = account.metadata;
    expect(subjects).toEqual([1, 2].map(() => ({ kind: 'ServiceAccount', name, namespace: at })));
    expect(readFileSync(join(project, 'Dockerfile'), 'utf8')).toMatch(/^USER [1-9]\d*/m);
  });
});
