import { equal } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { findCondition, kind } from 'watchmux/operator';
import { testOperator } from 'watchmux/operator-testing';
import { parse } from 'yaml';
import { SAMPLES, samples } from '../src/sample.ts';

const crd = parse(readFileSync('manifests/crd.yaml', 'utf8'));
const CONFIG_MAPS = kind<{ data?: Record<string, string> }>('configmaps/v1');

test('the ConfigMap has the message, also after a change', async () => {
  await using operator = await testOperator({ resources: [crd], controllers: [samples] });
  const resource = operator.resource(SAMPLES).in('default');
  const configMaps = operator.resource(CONFIG_MAPS).in('default');

  await resource.create({ metadata: { name: 'one' }, spec: { message: 'hello' } });
  await operator.settled();
  equal((await configMaps.get('one')).data?.message, 'hello');
  equal(findCondition(await resource.get('one'), 'Ready')?.status, 'True');

  await resource.patch('one', { spec: { message: 'good night' } });
  await operator.settled();
  equal((await configMaps.get('one')).data?.message, 'good night');

  await configMaps.delete('one');
  await operator.settled();
  equal((await configMaps.get('one')).data?.message, 'good night');
});
