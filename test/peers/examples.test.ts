// The examples for Kubernetes, each in its own process, against a real kube-apiserver. Nothing runs Pods there: they stay Pending. No
// controllers but those of the examples run.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { component, isMissing } from '../components.ts';
import { until } from '../e2e/cli.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;
const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'watchmux-examples-'));
const PODS = '/api/v1/namespaces/default/pods';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';

let server: ApiServer;
const children: Set<ChildProcessWithoutNullStreams> = new Set();

beforeAll(async () => {
  if (missing) return;
  server = await startApiServer();
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: server.url, 'certificate-authority': server.caFile } }],
    users: [{ name: 'u', user: { token: server.token } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(join(folder, 'config'), JSON.stringify(config));
}, START_MS);
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
});
afterAll(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
}, START_MS);

interface Running {
  readonly out: () => string;
  /** Waits until it has printed this. */
  readonly prints: (text: string) => Promise<void>;
  /** Ends it as Ctrl-C does, and resolves with its exit code. */
  readonly stop: () => Promise<number>;
  readonly exit: Promise<number>;
}

function start(script: string, ...args: readonly string[]): Running {
  const env = { ...process.env, KUBECONFIG: join(folder, 'config'), PORT: '0' };
  const child = spawn(process.execPath, [join(root, 'examples', script), ...args], { cwd: root, env });
  children.add(child);
  let out = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
  }
  const exit = once(child, 'close').then(([code]) => {
    children.delete(child);
    return code as number;
  });
  return {
    out: () => out,
    prints: (text) =>
      until(() => {
        if (child.exitCode !== null && !out.includes(text)) throw new Error(`it ended without ${text}: ${out}`);
        return out.includes(text);
      }),
    stop: () => {
      child.kill('SIGINT');
      return exit;
    },
    exit,
  };
}

const containers = [{ name: 'main', image: 'none' }];
const pod = (name: string): object => ({ metadata: { name }, spec: { containers } });
const deployment = (name: string, replicas: number): object => ({
  metadata: { name },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers } },
  },
});
/** Pods are deleted at once: there is no kubelet to wait for. */
const removePod = (name: string): Promise<unknown> => server.delete(`${PODS}/${name}?gracePeriodSeconds=0`);

describe.skipIf(missing)('the examples against a real kube-apiserver', () => {
  test('list and watch of Pods, printed as they change', async () => {
    await server.create(PODS, pod('web'));
    const example = start('kubernetes-watch/watch.mjs');
    await example.prints('LISTED default/web Pending');
    await server.create(PODS, pod('demo'));
    await example.prints('ADDED default/demo Pending');
    await removePod('demo');
    await example.prints('DELETED default/demo');
    expect(await example.stop()).toBe(0);
    expect(example.out()).toMatch(
      /^1 pods in default at version \d+\nLISTED default\/web Pending\nADDED default\/demo Pending\n/,
    );
    await removePod('web');
  });

  test('a watch with a timeout', async () => {
    const begin = (): Running => start('kubernetes-timeout/watch.mjs', '4');
    let example = begin();
    // When the watch is open is not printed, so Pods are created until one shows. A busy server may show none before it is over.
    for (let n = 0; !example.out().includes('ADDED'); n++) {
      if (example.out().includes('has ended')) example = begin();
      await server.create(PODS, pod(`timed-${n}`));
      await removePod(`timed-${n}`);
    }
    expect(await example.exit).toBe(0);
    expect(example.out()).toMatch(/^((ADDED|MODIFIED|DELETED) timed-\d+\n)+the watch has ended after 4 s: \d+ events\n$/);
  });

  test(
    'the reflector into a DeltaFifo, and the pop loop',
    async () => {
      await server.create(PODS, pod('web'));
      const example = start('kubernetes-delta-fifo/watch.mjs');
      await example.prints('Replaced: web\n');
      await server.create(PODS, pod('demo'));
      await example.prints('Added: demo\n');
      await removePod('demo');
      await example.prints('Deleted: demo\n');
      // What is deleted while the server is away is found with the next list.
      await server.restart();
      await removePod('web');
      await example.prints('Deleted: web\n');
      expect(await example.stop()).toBe(0);
    },
    START_MS,
  );

  test('informers on Services and Deployments, a factory and a lister', async () => {
    const example = start('kubernetes-informers/informers.mjs');
    await example.prints(
      'synced: 1 services in default, 0 deployments in all\nthe service kubernetes has the address 10.0.0.1\n',
    );
    await server.create(DEPLOYMENTS, deployment('web', 2));
    await example.prints('deployment web: 2 replicas\n');
    await server.patch(`${DEPLOYMENTS}/web`, { spec: { replicas: 3 } });
    await example.prints('deployment web: 2 -> 3 replicas\n');
    await server.delete(`${DEPLOYMENTS}/web`);
    await example.prints('deployment web deleted\n');
    expect(await example.stop()).toBe(0);
  });

  test('the controller: test-deployment fails, is tried again five times, and is dropped', async () => {
    const example = start('kubernetes-controller/controller.mjs');
    await example.prints('starting the controller\n');
    await server.create(DEPLOYMENTS, deployment('test-deployment', 1));
    await server.create(DEPLOYMENTS, deployment('web', 2));
    await example.prints('default/web has 2 replicas\n');
    await example.prints('dropped default/test-deployment out of the queue: attempt 6 fails on purpose\n');
    const failures = example.out().match(/^error syncing default\/test-deployment: attempt \d fails on purpose$/gm);
    expect(failures).toHaveLength(5);
    await server.delete(`${DEPLOYMENTS}/test-deployment`);
    await example.prints('default/test-deployment does not exist any more\n');
    expect(await example.stop()).toBe(0);
    expect(example.out()).toMatch(/the controller has stopped\n$/);
    await server.delete(`${DEPLOYMENTS}/web`);
  });

  test(
    'the website operator: what it makes, its status, its scale, and what changed while it was away',
    async () => {
      const manifest = (name: string): object =>
        parse(readFileSync(join(root, 'examples/website-operator/manifests', name), 'utf8'));
      await server.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', manifest('crd.yaml'));
      const WEBSITES = '/apis/example.com/v1/namespaces/default/websites';
      const ready = async (): Promise<unknown> => {
        const { status } = await server.get(`${WEBSITES}/hello`);
        return status?.conditions?.map(
          ({ status, reason, message }: Record<string, string>) => `${status} ${reason}: ${message}`,
        )[0];
      };
      /** As the Deployment controller does, once pods run. */
      const deploy = async (): Promise<void> => {
        const { metadata, spec } = await server.get(`${DEPLOYMENTS}/hello`);
        const { replicas } = spec;
        const status = { replicas, updatedReplicas: replicas, readyReplicas: replicas, availableReplicas: replicas };
        await server.patch(`${DEPLOYMENTS}/hello/status`, { status: { ...status, observedGeneration: metadata.generation } });
      };
      let example = start('website-operator/operator.mjs');
      await until(async () => (await server.get(WEBSITES).catch(() => undefined)) !== undefined);
      await server.create(WEBSITES, manifest('website.yaml'));
      await until(async () => (await ready()) === 'False Deploying: 0 of 2 pods are ready');
      const { metadata } = await server.get(`${WEBSITES}/hello`);
      for (const path of [DEPLOYMENTS, '/api/v1/namespaces/default/services', '/api/v1/namespaces/default/configmaps'])
        expect((await server.get(`${path}/hello`)).metadata.ownerReferences).toMatchObject([
          { uid: metadata.uid, controller: true },
        ]);
      await deploy();
      await until(async () => (await ready()) === 'True Available: 2 of 2 pods are ready');
      await server.patch(`${WEBSITES}/hello/scale`, { spec: { replicas: 3 } });
      await until(async () => (await ready()) === 'False Deploying: 0 of 3 pods are ready');
      expect(await server.get(`${WEBSITES}/hello/scale`)).toMatchObject({
        spec: { replicas: 3 },
        status: { replicas: 2, selector: 'app.kubernetes.io/name=website,app.kubernetes.io/instance=hello' },
      });
      expect(await example.stop()).toBe(0);

      await deploy();
      await server.delete('/api/v1/namespaces/default/services/hello');
      await server.patch(`${WEBSITES}/hello`, { spec: { files: { 'index.html': 'new' } } });
      example = start('website-operator/operator.mjs'); // at once: the lease was given back
      await until(
        async () => (await server.get('/api/v1/namespaces/default/services/hello').catch(() => undefined)) !== undefined,
      );
      await deploy();
      await until(async () => (await ready()) === 'True Available: 3 of 3 pods are ready');
      expect((await server.get('/api/v1/namespaces/default/configmaps/hello')).data).toEqual({ 'index.html': 'new' });
      expect(await example.stop()).toBe(0);
      const { items } = await server.get('/apis/events.k8s.io/v1/namespaces/default/events');
      const told = items.filter(({ regarding }: { regarding: { kind: string } }) => regarding.kind === 'Website');
      expect(told.map(({ reason }: { reason: string }) => reason)).toEqual(expect.arrayContaining(['Deploying', 'Available']));
    },
    START_MS,
  );

  test(
    'the copier: copies follow their source and the labels of namespaces, and go with the source',
    async () => {
      const named = (name: string, team: string): object => ({ metadata: { name, labels: { team } } });
      await server.create('/api/v1/namespaces', named('red', 'web'));
      await server.create('/api/v1/namespaces', named('blue', 'shop'));
      const at = (namespace: string, kind = 'configmaps'): string => `/api/v1/namespaces/${namespace}/${kind}`;
      const metadata = { name: 'banner', annotations: { 'copier.example.com/to': 'team=web' } };
      const example = start('config-copier/operator.mjs');
      const got = async (path: string): Promise<unknown> => (await server.get(`${path}/banner`).catch(() => undefined))?.data;
      await server.create(at('default'), { metadata, data: { text: 'hello' } });
      await server.create(at('default', 'secrets'), { metadata, data: { text: 'aGVsbG8=' } });
      await until(async () => JSON.stringify(await got(at('red'))) === '{"text":"hello"}');
      await until(async () => JSON.stringify(await got(at('red', 'secrets'))) === '{"text":"aGVsbG8="}');
      expect([await got(at('blue')), await got(at('blue', 'secrets'))]).toEqual([undefined, undefined]);
      await server.delete(`${at('red')}/banner`);
      await server.patch(`${at('default')}/banner`, { data: { text: 'new' } });
      await server.patch('/api/v1/namespaces/blue', { metadata: { labels: { team: 'web' } } });
      for (const path of [at('red'), at('blue')]) await until(async () => JSON.stringify(await got(path)) === '{"text":"new"}');
      await server.delete(`${at('default')}/banner`);
      for (const path of [at('default'), at('red'), at('blue')]) await until(async () => (await got(path)) === undefined);
      await server.patch(`${at('default', 'secrets')}/banner`, { metadata: { annotations: { 'copier.example.com/to': null } } });
      for (const path of [at('red', 'secrets'), at('blue', 'secrets')]) await until(async () => (await got(path)) === undefined);
      await until(async () => (await server.get(`${at('default', 'secrets')}/banner`)).metadata.finalizers === undefined);
      expect(await example.stop()).toBe(0);
    },
    START_MS,
  );
});
