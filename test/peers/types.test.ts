// `watchmux types` of a real kube-apiserver and of real definitions: all of it compiles, a definition leads to the same types in a file
// and in a cluster, and built-in kinds are those of the package kubernetes-types.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { faultsOf } from '../compile.ts';
import { component, isMissing } from '../components.ts';
import { killAll, run } from '../e2e/cli.ts';
import { type Answer, type ApiServer, startApiServer } from './apiserver.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;
const COMPILE_MS = 120_000;
const WEBSITE = fileURLToPath(new URL('../types/website-crd.yaml', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'watchmux-types-'));
const config = join(folder, 'config');

let server: ApiServer;

beforeAll(async () => {
  if (missing) return;
  server = await startApiServer();
  const clusters = [{ name: 'c', cluster: { server: server.url, 'certificate-authority': server.caFile } }];
  const contexts = [{ name: 'x', context: { cluster: 'c', user: 'u' } }];
  const users = [{ name: 'u', user: { token: server.token } }];
  writeFileSync(config, JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters, users, contexts, 'current-context': 'x' }));
}, START_MS);
afterEach(killAll);
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}, START_MS);

async function types(...args: string[]): Promise<string> {
  const done = run('types', ...args);
  const code = await done.exit;
  expect([code, done.err()]).toEqual([0, '']);
  return done.out();
}

/** What the package kubernetes-types 1.30 has otherwise than a server of today, which has made it optional or required since. */
const USE = `
import type * as theirs from 'kubernetes-types/apps/v1';
import type * as core from 'kubernetes-types/core/v1';
import type { ConfigMap, Deployment, Pod, Service } from './kinds.ts';

interface Named { metadata: { name: string } }
interface Since { hostAliases?: never[] }

export const deployment = (of: theirs.Deployment & Named & { spec: { template: { spec: Since } }; status?: never }): Deployment => of;
export const map = (of: core.ConfigMap & Named): ConfigMap => of;
export const service = (of: core.Service & Named): Service => of;
export const pod = (of: core.Pod & Named & { spec?: Since; status?: never }): Pod => of;

export const back = (of: Deployment): theirs.Deployment => ({ metadata: of.metadata, spec: of.spec });
export const mapBack = (of: ConfigMap): core.ConfigMap => of;
export const serviceBack = (of: Service): core.Service => of;
export const podBack = (of: Pod): core.Pod => of;
`;

describe.skipIf(missing)('watchmux types of a kube-apiserver', () => {
  it('has all its kinds, in a few seconds, and the types compile', { timeout: COMPILE_MS }, async () => {
    const started = performance.now();
    const text = await types('--kubeconfig', config, '--context', 'x');
    console.info(`${text.split('\n').length} lines in ${Math.round(performance.now() - started)} ms`);
    expect(await types('--kubeconfig', config, '--context', 'x')).toBe(text);
    for (const path of [
      'api/v1',
      'apis/apps/v1',
      'apis/batch/v1',
      'apis/autoscaling/v2',
      'apis/autoscaling/v1',
      'apis/events.k8s.io/v1',
    ]) {
      const { resources } = (await (await server.fetch(new URL(`/${path}`, server.url))).json()) as Answer;
      for (const { name, kind, namespaced } of resources) {
        if (name.includes('/')) continue;
        expect(text).toContain(`  plural: '${name}',\n  kind: '${kind}',\n  namespaced: ${namespaced},\n`);
      }
    }
    expect(faultsOf({ 'kinds.ts': text, 'use.ts': USE })).toEqual([]);
  });

  it('is the same for a definition as for its file', async () => {
    await server.create(
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      parse(readFileSync(WEBSITE, 'utf8')) as object,
    );
    const own = (await types(WEBSITE)).replace('/** @deprecated use v1 */\n', '');
    await expect.poll(() => types('--kubeconfig', config, '--kind', 'websites.example.com').catch(() => '')).toBe(own);
  });
});

/** Where Go keeps the modules with which the peers were built, if it is there. */
function modules(): string {
  try {
    return execFileSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' }).trim();
  } catch {
    return '';
  }
}

/** Definitions that people use, or that upstream tests with, in modules of any version. */
const REAL = [
  ['k8s.io', 'apiextensions-apiserver', 'test/integration/ratcheting_test_cases/crds'],
  ['k8s.io', 'kubernetes', 'cluster/addons/calico-policy-controller'],
  ['k8s.io', 'kubernetes', 'cluster/addons/volumesnapshots/crd'],
  ['k8s.io', 'kubernetes', 'hack/testdata/CRD'],
  ['k8s.io', 'kubernetes', 'test/e2e/testing-manifests/storage-csi/external-snapshotter'],
  ['sigs.k8s.io', 'controller-runtime', 'pkg/envtest/testdata/crds'],
  ['sigs.k8s.io', 'controller-runtime', 'pkg/controller/testdata/crds'],
  ['sigs.k8s.io', 'gateway-api', 'config/crd/experimental'],
  ['github.com/cert-manager', 'cert-manager', 'deploy/crds'],
] as const;

/** The folders of these that are there. */
function realDefinitions(): readonly string[] {
  const cache = modules();
  if (cache === '') return [];
  return REAL.flatMap(([group, name, path]) => {
    const versions = namesIn(join(cache, group)).filter((each) => each.startsWith(`${name}@`));
    return versions.map((version) => join(cache, group, version, path)).filter((each) => namesIn(each).length > 0);
  });
}

function namesIn(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

const found = realDefinitions();

describe.skipIf(missing || found.length === 0)('watchmux types of real definitions', () => {
  it.each(found)('compiles: %s', { timeout: COMPILE_MS }, async (path) => {
    expect(faultsOf({ 'kinds.ts': await types(path) })).toEqual([]);
  });
});
