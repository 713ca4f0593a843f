// `watchmux new operator`: the project builds and passes its test at once, and its manifests grant what the operator asks for.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { freePorts } from '../peers/ports.ts';
import { until } from './cli.ts';
import { newProject } from './new-project.ts';
import { type OperatorServer, serveOperator } from './rights.ts';

const { project, remove } = newProject();
const servers: OperatorServer[] = [];
afterAll(() => {
  for (const server of servers) server.kill();
  remove();
});

const manifest = (name: string): string => join(project, 'manifests', name);

interface Site extends KubernetesObject {
  readonly spec: { readonly message: string };
  readonly status?: { readonly conditions?: readonly { readonly observedGeneration?: number }[] };
}

describe('a new operator', () => {
  test('builds, and passes its test', () => {
    const { status, stdout, stderr } = spawnSync('npm', ['test'], { cwd: project, encoding: 'utf8' });
    expect([status, stderr, stdout]).toEqual([0, '', expect.stringMatching(/^# pass 1$|^ℹ pass 1$/m)]);
    expect(readdirSync(join(project, 'dist/src')).sort()).toEqual(['main.js', 'website.js']);
  });

  test('asks a server for what its manifest grants, and for all of that', async () => {
    const [port] = await freePorts(1);
    const operator = await serveOperator(manifest('crd.yaml'), { namespace: 'website-operator', hook: (right) => race(right) });
    servers.push(operator);
    const sites = operator.api.resource<Site>('websites.example.com/v1').in('default');
    let isRaced = false;
    /** Somebody else is faster, once. */
    async function race(right: string): Promise<void> {
      if (right !== 'update websites.example.com/status' || isRaced) return;
      isRaced = true;
      await sites.patch('a', { metadata: { labels: { raced: 'yes' } } });
    }
    const running = operator.start(join(project, 'dist/src/main.js'), { PORT: String(port) });

    await until(() => operator.has('watch websites.example.com'));
    await sites.create({ metadata: { name: 'a' }, spec: { message: 'one' } });
    const isReady = async (generation: number): Promise<boolean> =>
      (await sites.get('a')).status?.conditions?.[0]?.observedGeneration === generation;
    await until(() => isReady(1));
    await sites.patch('a', { spec: { message: 'two' } }); // the same event, which is counted
    await until(() => isReady(2));
    const probes = await Promise.all(['healthz', 'readyz'].map((path) => fetch(`http://127.0.0.1:${port}/${path}`)));
    expect(probes.map(({ status }) => status)).toEqual([200, 200]);
    expect(await running.stop()).toEqual({ code: 0, out: expect.not.stringMatching(/fail|error/i) });
    expect(operator.compare(manifest('rbac.yaml'))).toEqual({ missing: [], unused: [] });
    await operator.close();
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
