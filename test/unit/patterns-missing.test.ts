// A server with schemas, where the packages that match their patterns and evaluate their rules are not installed.
import { expect, test, vi } from 'vitest';
import { ApiServer, WEBHOOK_CONFIGURATIONS } from '../../src/apiserver/index.ts';
import { structuralFaults } from '../../src/apiserver/validation/structural-faults.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage } from '../../src/storage/index.ts';

vi.mock('re2js', () => {
  throw new Error("Cannot find package 're2js'");
});

vi.mock('@marcbachmann/cel-js', () => {
  throw new Error("Cannot find package '@marcbachmann/cel-js'");
});

const ORDERS = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' };
const start = (spec: object): ApiServer =>
  new ApiServer({
    storage: new MemoryStorage(),
    resources: [{ ...ORDERS, schema: { type: 'object', properties: { spec } } }],
    onError: () => {},
  });

test.each([
  { type: 'string', pattern: '^a$' },
  { type: 'object', patternProperties: { '^a$': { type: 'string' } } },
])('without re2js, the schema %j is refused when the server starts, with what to install', async (spec) => {
  const server = start(spec);
  const message = 'a schema with patterns needs the package re2js: npm install re2js, or leave out its patterns';
  await expect(server.ready).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message, cause: expect.any(Error) });
  await server.shutdown();
});

test('without re2js, a schema without patterns is served, whatever its properties are called', async () => {
  const server = start({ type: 'object', properties: { pattern: { type: 'string' } } });
  await server.ready;
  await server.shutdown();
});

test('without cel-js, a schema with rules is refused when the server starts, with what to install', async () => {
  const server = start({ type: 'string', 'x-kubernetes-validations': [{ rule: 'true' }] });
  const how = 'npm install @marcbachmann/cel-js, or leave out x-kubernetes-validations';
  const message = `a schema with rules needs the package @marcbachmann/cel-js: ${how}`;
  await expect(server.ready).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message, cause: expect.any(Error) });
  await server.shutdown();
});

test('without cel-js, a registration of webhooks with conditions is refused, and one without is not', async () => {
  const server = new ApiServer({ storage: new MemoryStorage(), resources: WEBHOOK_CONFIGURATIONS });
  const hooks = server.resource('validatingwebhookconfigurations.admissionregistration.k8s.io/v1');
  const webhook = {
    ...{
      name: 'a.example.com',
      clientConfig: { url: 'https://127.0.0.1:1' },
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
    },
  };
  const matchConditions = [{ name: 'a', expression: 'true' }];
  const create = (name: string, more: object): Promise<unknown> =>
    hooks.create({ metadata: { name }, webhooks: [{ ...webhook, ...more }] } as KubernetesObject);
  const why =
    'a webhook with conditions needs the package @marcbachmann/cel-js: npm install @marcbachmann/cel-js, or leave out matchConditions';
  await expect(create('a', { matchConditions })).rejects.toMatchObject({
    status: {
      code: 422,
      details: {
        causes: [{ reason: 'FieldValueForbidden', field: 'webhooks[0].matchConditions', message: `Forbidden: ${why}` }],
      },
    },
  });
  await expect(create('b', {})).resolves.toMatchObject({ metadata: { name: 'b' } });
  await server.shutdown();
});

test('without either, a definition with patterns is refused, and one without patterns and rules is not', async () => {
  const faults = (spec: object) => structuralFaults({ type: 'object', properties: { spec } }, { path: 'S' });
  const why = 'a schema with patterns needs the package re2js: npm install re2js, or leave out its patterns';
  expect(await faults({ type: 'string', pattern: '^a$' })).toEqual([
    { field: 'S', reason: 'FieldValueInvalid', message: `Invalid value: "": ${why}` },
  ]);
  expect(await faults({ type: 'object', properties: { pattern: { type: 'string' } } })).toEqual([]);
});
