// The operators among the examples, in this process, on an API server and a clock of their own. test/peers/examples.test.ts runs them
// against a kube-apiserver.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { type Condition, findCondition, type Kind, kind, type OperatorControllerOptions } from '../../src/operator/index.ts';
import { type TestOperator, testOperator } from '../../src/testing/test-operator.ts';

const examples = fileURLToPath(new URL('../../examples', import.meta.url));
const load = (name: string): Promise<Record<string, unknown>> => import(join(examples, name, 'operator.mjs'));

interface Owned extends KubernetesObject {
  readonly data?: Record<string, string>;
  readonly spec?: {
    readonly replicas?: number;
    readonly selector?: unknown;
    readonly template?: { readonly metadata?: KubernetesObject['metadata'] };
  };
}
const CONFIG_MAPS = kind<Owned>('configmaps/v1');

let operator: TestOperator;
afterEach(() => operator?.close());
const eventsOf = async (object: KubernetesObject): Promise<string[]> =>
  (await operator.events(object)).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);

describe('website-operator', async () => {
  interface Website extends Owned {
    readonly status?: { readonly replicas?: number; readonly selector?: string; readonly conditions?: readonly Condition[] };
  }
  const { websites, WEBSITES } = (await load('website-operator')) as {
    websites: OperatorControllerOptions;
    WEBSITES: Kind<Website>;
  };
  const manifest = (name: string): KubernetesObject =>
    parse(readFileSync(join(examples, 'website-operator/manifests', name), 'utf8'));
  const [DEPLOYMENTS, SERVICES] = [kind<Owned>('deployments.apps/v1'), kind<Owned>('services/v1')];

  /** The example's website, and what the operator made of it. */
  async function created() {
    operator = await testOperator({ resources: [manifest('crd.yaml')], controllers: [websites] });
    const sites = operator.resource(WEBSITES).in('default');
    const [deployments, services, configMaps] = [DEPLOYMENTS, SERVICES, CONFIG_MAPS].map((each) =>
      operator.resource(each).in('default'),
    ) as [ReturnType<TestOperator['resource']>, ReturnType<TestOperator['resource']>, ReturnType<TestOperator['resource']>];
    await sites.create(manifest('website.yaml'));
    await operator.settled();
    return { sites, deployments, services, configMaps };
  }
  /** What the Deployment controller and its pods do in a cluster. */
  async function deployed(ready: number): Promise<void> {
    const deployments = operator.resource(DEPLOYMENTS).in('default');
    const { metadata, spec } = await deployments.get('hello');
    const replicas = spec?.replicas ?? 0;
    const status = { observedGeneration: metadata?.generation, replicas, updatedReplicas: replicas, readyReplicas: ready };
    await deployments.subresource('status').patch('hello', { status });
    await operator.settled();
  }

  test('makes a Deployment, a Service and a ConfigMap, which are its own', async () => {
    const { sites, deployments, services, configMaps } = await created();
    const labels = { 'app.kubernetes.io/name': 'website', 'app.kubernetes.io/instance': 'hello' };
    const { metadata } = await sites.get('hello');
    const ownerReferences = [expect.objectContaining({ kind: 'Website', name: 'hello', uid: metadata?.uid, controller: true })];
    const configMap = (await configMaps.get('hello')) as Owned;
    expect(configMap).toMatchObject({ metadata: { labels, ownerReferences } });
    expect(configMap.data?.['index.html']).toContain('<h1>Hello</h1>');
    expect(await deployments.get('hello')).toMatchObject({
      metadata: { labels, ownerReferences },
      spec: { replicas: 2, selector: { matchLabels: labels }, template: { metadata: { labels } } },
    });
    expect(await services.get('hello')).toMatchObject({ metadata: { labels, ownerReferences }, spec: { selector: labels } });
  });

  test('says in status and events how far the Deployment is', async () => {
    const { sites } = await created();
    const ready = async (): Promise<unknown> => findCondition(await sites.get('hello'), 'Ready');
    expect(await ready()).toMatchObject({ status: 'False', reason: 'Deploying', message: '0 of 2 pods are ready' });
    await deployed(1);
    expect(await ready()).toMatchObject({ status: 'False', message: '1 of 2 pods are ready', observedGeneration: 1 });
    await deployed(2);
    expect(await ready()).toMatchObject({ status: 'True', reason: 'Available', message: '2 of 2 pods are ready' });
    const site = await sites.get('hello');
    expect(site.status).toMatchObject({
      replicas: 2,
      selector: 'app.kubernetes.io/name=website,app.kubernetes.io/instance=hello',
    });
    expect(await eventsOf(site)).toEqual(['Normal Deploying: 0 of 2 pods are ready', 'Normal Available: 2 of 2 pods are ready']);
  });

  test('scales', async () => {
    const { sites, deployments } = await created();
    await deployed(2);
    await sites.subresource('scale').patch('hello', { spec: { replicas: 3 } });
    await operator.settled();
    expect(((await deployments.get('hello')) as Owned).spec?.replicas).toBe(3);
    expect(findCondition(await sites.get('hello'), 'Ready')).toMatchObject({ status: 'False', observedGeneration: 2 });
    expect(await sites.subresource('scale').get('hello')).toMatchObject({ spec: { replicas: 3 }, status: { replicas: 2 } });
  });

  test('makes new pods of new files, and sets right what others change', async () => {
    const { sites, deployments, services } = await created();
    const hash = async (): Promise<string | undefined> =>
      ((await deployments.get('hello')) as Owned).spec?.template?.metadata?.annotations?.['example.com/files'];
    const before = await hash();
    await sites.patch('hello', { spec: { files: { 'index.html': 'new' } } });
    await operator.settled();
    expect(await hash()).toMatch(/^[0-9a-f]{16}$/);
    expect(await hash()).not.toBe(before);
    await services.delete('hello');
    await deployments.patch('hello', { spec: { replicas: 9 } });
    await operator.settled();
    expect(await services.get('hello')).toMatchObject({ kind: 'Service' });
    expect(((await deployments.get('hello')) as Owned).spec?.replicas).toBe(2);
  });

  test('leaves nothing behind', async () => {
    const { sites, deployments, services, configMaps } = await created();
    await sites.delete('hello');
    await operator.settled();
    const left = await Promise.all([deployments, services, configMaps].map(async (each) => (await each.list()).items.length));
    expect(left).toEqual([0, 0, 0]);
  });
});

describe('config-copier', async () => {
  const { copier, SECRETS } = (await load('config-copier')) as {
    copier: (kind: Kind<Owned>) => OperatorControllerOptions;
    SECRETS: Kind<Owned>;
  };
  const NAMESPACES = kind('namespaces/v1');
  const TO = 'copier.example.com/to';
  const FINALIZERS = ['copier.example.com/copies'];

  async function started(objects: readonly KubernetesObject[] = []): Promise<void> {
    const namespaces = Object.entries({ home: '', red: 'web', blue: 'web', green: 'shop' }).map(([name, team]) => ({
      ...{ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { team } } },
    }));
    operator = await testOperator({
      objects: [...namespaces, ...objects],
      controllers: [copier(CONFIG_MAPS as Kind<Owned>), copier(SECRETS)],
    });
    await operator.settled();
  }
  const banner = (text: string, to?: string): Owned => ({
    metadata: { name: 'banner', namespace: 'home', ...(to !== undefined && { annotations: { [TO]: to } }) },
    data: { text },
  });
  /** What each namespace has. */
  async function texts(of: Kind<Owned> = CONFIG_MAPS): Promise<Record<string, string | undefined>> {
    const { items } = await operator.resource(of).list();
    return Object.fromEntries(items.map(({ metadata, data }) => [metadata?.namespace, data?.text]));
  }

  test('copies into the namespaces that match, and follows the source, the copies and the labels', async () => {
    await started();
    const configMaps = operator.resource(CONFIG_MAPS);
    const source = await configMaps.create(banner('hello', 'team=web'));
    await operator.settled();
    expect(await texts()).toEqual({ home: 'hello', red: 'hello', blue: 'hello' });
    await configMaps.patch('home/banner', { data: { text: 'new' } });
    await operator.settled();
    expect(await texts()).toEqual({ home: 'new', red: 'new', blue: 'new' });
    await configMaps.patch('red/banner', { data: { text: 'other' } });
    await configMaps.delete('blue/banner');
    await operator.settled();
    expect(await texts()).toEqual({ home: 'new', red: 'new', blue: 'new' });
    await operator.resource(NAMESPACES).patch('green', { metadata: { labels: { team: 'web' } } });
    await operator.resource(NAMESPACES).patch('red', { metadata: { labels: { team: null } } });
    await operator.settled();
    expect(await texts()).toEqual({ home: 'new', green: 'new', blue: 'new' });
    expect(await eventsOf(source)).toEqual([]);
  });

  test('keeps secrets apart, with their type', async () => {
    await started();
    const secrets = operator.resource(SECRETS);
    const { metadata } = banner('', 'team=shop');
    await secrets.create({ metadata, type: 'example.com/token', data: { text: 'aGVsbG8=' } } as Owned);
    await operator.settled();
    expect([await texts(), await texts(SECRETS)]).toEqual([{}, { home: 'aGVsbG8=', green: 'aGVsbG8=' }]);
    expect(await secrets.get('green/banner')).toMatchObject({ type: 'example.com/token' });
  });

  test.each([
    ['the source', (configMaps: ReturnType<TestOperator['resource']>) => configMaps.delete('home/banner'), {}],
    [
      'its annotation',
      (configMaps: ReturnType<TestOperator['resource']>) =>
        configMaps.patch('home/banner', { metadata: { annotations: { [TO]: null } } }),
      { home: 'hello' },
    ],
  ])('removes the copies when %s goes', async (_, remove, left) => {
    await started();
    const configMaps = operator.resource(CONFIG_MAPS);
    await configMaps.create(banner('hello', ''));
    await operator.settled();
    expect(Object.keys(await texts())).toEqual(expect.arrayContaining(['blue', 'green', 'home', 'red'])); // of no labels: all
    expect((await configMaps.get('home/banner')).metadata?.finalizers).toEqual(FINALIZERS);
    await remove(configMaps as never);
    await operator.settled();
    expect(await texts()).toEqual(left);
    const { items } = await configMaps.list();
    expect(items.flatMap(({ metadata }) => metadata?.finalizers ?? [])).toEqual([]);
  });

  test('finds at its start what has changed while it was away', async () => {
    const copyOf = (namespace: string): KubernetesObject => ({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', data: { text: 'old' } },
      metadata: { name: 'banner', namespace, annotations: { 'copier.example.com/from': 'home/banner' } },
    });
    const { metadata, data } = banner('hello'); // its annotation is gone, its finalizer is not
    const source = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...metadata, finalizers: FINALIZERS }, data };
    // Of this one, there is no copy left.
    const other = { ...source, metadata: { ...source.metadata, name: 'other', namespace: 'blue' } };
    await started([source, copyOf('red'), copyOf('green'), other]);
    expect(await texts()).toEqual({ home: 'hello', blue: 'hello' });
    const { items } = await operator.resource(CONFIG_MAPS).list();
    expect(items.flatMap(({ metadata }) => metadata?.finalizers ?? [])).toEqual([]);
  });

  test('leaves alone what is no copy, and says so; so it does of a selector that is none', async () => {
    await started();
    const configMaps = operator.resource(CONFIG_MAPS);
    await configMaps.create({ metadata: { name: 'banner', namespace: 'red' }, data: { text: 'mine' } });
    const source = await configMaps.create(banner('hello', 'team=web'));
    await operator.settled();
    expect(await texts()).toEqual({ home: 'hello', red: 'mine', blue: 'hello' });
    expect(await eventsOf(source)).toEqual(['Warning NameTaken: there is another banner in red']);
    await configMaps.patch('home/banner', { metadata: { annotations: { [TO]: 'team in' } } });
    await operator.settled();
    expect((await eventsOf(source)).at(-1)).toContain('Warning InvalidSelector: copier.example.com/to: label selector: expected');
    expect(await texts()).toEqual({ home: 'hello', red: 'mine', blue: 'hello' });
  });
});
