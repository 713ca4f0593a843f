import { equal } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { testOperator } from 'watchmux/testing';
import { parse } from 'yaml';
import { SAMPLES, samples } from '../src/sample.ts';

const crd = parse(readFileSync('manifests/crd.yaml', 'utf8'));

test('the ConfigMap has the message, also when that changes', async () => {
  const { cluster, settled, stop } = await testOperator({ crds: [crd], controllers: [samples] });
  const resource = cluster.resource(SAMPLES).in('default');
  const configMaps = cluster.resource<{ data?: Record<string, string> }>('configmaps/v1').in('default');

  await resource.create({ metadata: { name: 'one' }, spec: { message: 'hello' } });
  await settled();
  equal((await configMaps.get('one')).data?.message, 'hello');
  const [ready] = (await resource.get('one')).status?.conditions ?? [];
  equal(ready?.status, 'True');

  await resource.patch('one', { spec: { message: 'good night' } });
  await settled();
  equal((await configMaps.get('one')).data?.message, 'good night');
  await stop();
});
