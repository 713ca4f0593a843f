// The operators among the examples, as programs: they ask a server for what their manifests grant, and for all of that.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { until } from './cli.ts';
import { type OperatorServer, serveOperator } from './rights.ts';

const examples = fileURLToPath(new URL('../../examples', import.meta.url));
let operator: OperatorServer;
afterEach(() => operator?.kill());

interface Site extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly { readonly reason: string }[] };
}

describe('the examples', () => {
  test('website-operator', async () => {
    const manifests = join(examples, 'website-operator/manifests');
    let isRaced = false;
    operator = await serveOperator(join(manifests, 'crd.yaml'), {
      namespace: 'default',
      hook: async (right) => {
        if (right !== 'update websites.example.com/status' || isRaced) return;
        isRaced = true;
        await sites.patch('hello', { metadata: { labels: { raced: 'yes' } } });
      },
    });
    const sites = operator.api.resource<Site>('websites.example.com/v1').in('default');
    const running = operator.start(join(examples, 'website-operator/operator.mjs'), { PORT: '0' });
    await until(() => operator.has('watch websites.example.com'));
    await sites.create(parse(readFileSync(join(manifests, 'website.yaml'), 'utf8')));
    const deployments = operator.api.resource('deployments.apps/v1').in('default');
    const turn = async (readyReplicas: number, reason: string): Promise<void> => {
      await until(async () => (await deployments.get('hello').catch(() => undefined)) !== undefined);
      const status = { observedGeneration: 1, updatedReplicas: 2, readyReplicas };
      await deployments.subresource('status').patch('hello', { status });
      await until(async () => (await sites.get('hello')).status?.conditions?.[0]?.reason === reason);
    };
    for (const [ready, reason] of [
      [2, 'Available'],
      [0, 'Deploying'],
      [2, 'Available'],
    ] as const)
      await turn(ready, reason); // events are counted
    expect(await running.stop()).toMatchObject({ code: 0 });
    expect(operator.compare(join(manifests, 'rbac.yaml'))).toEqual({ missing: [], unused: [] });
  });

  test('config-copier', async () => {
    const raced = new Set<string>();
    operator = await serveOperator(undefined, {
      namespace: 'default',
      hook: async (right) => {
        const kind = { 'patch configmaps': configMaps, 'patch secrets': secrets }[right];
        if (kind === undefined || raced.has(right)) return;
        raced.add(right);
        await kind.in('default').patch('banner', { metadata: { finalizers: ['example.com/other'] } });
      },
    });
    const { api } = operator;
    const [configMaps, secrets] = [api.resource('configmaps/v1'), api.resource('secrets/v1')];
    for (const name of ['red', 'blue'])
      await api.resource('namespaces/v1').create({ metadata: { name, labels: { team: 'web' } } });
    const taken = { metadata: { name: 'banner' } };
    await configMaps.in('blue').create(taken);
    const running = operator.start(join(examples, 'config-copier/operator.mjs'));
    await until(() => operator.has('watch secrets') && operator.has('watch namespaces'));
    const source = { metadata: { name: 'banner', annotations: { 'copier.example.com/to': 'team=web' } } };
    for (const kind of [configMaps, secrets]) {
      await kind.in('default').create(source);
      await until(
        async () =>
          (await kind
            .in('red')
            .get('banner')
            .catch(() => undefined)) !== undefined,
      );
      await kind.in('default').patch('banner', { data: { text: 'aGVsbG8=' } }); // the same event is counted
      await until(async () => 'data' in (await kind.in('red').get('banner')));
      await kind.in('default').patch('banner', { metadata: { finalizers: ['copier.example.com/copies'] } });
      await kind.in('default').delete('banner');
      await until(
        async () =>
          (await kind
            .in('default')
            .get('banner')
            .catch(() => undefined)) === undefined,
      );
    }
    expect(await running.stop()).toMatchObject({ code: 0 });
    expect(operator.compare(join(examples, 'config-copier/manifests/rbac.yaml'))).toEqual({ missing: [], unused: [] });
  });
});
