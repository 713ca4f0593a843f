// A server with schemas, where the packages that match their patterns and evaluate their rules are not installed.
import { expect, test, vi } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { structuralFaults } from '../../src/apiserver/validation/structural-faults.ts';
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

test('without either, a definition with patterns is refused, and one without patterns and rules is not', async () => {
  const faults = (spec: object) => structuralFaults({ type: 'object', properties: { spec } }, { path: 'S' });
  const why = 'a schema with patterns needs the package re2js: npm install re2js, or leave out its patterns';
  expect(await faults({ type: 'string', pattern: '^a$' })).toEqual([
    { field: 'S', reason: 'FieldValueInvalid', message: `Invalid value: "": ${why}` },
  ]);
  expect(await faults({ type: 'object', properties: { pattern: { type: 'string' } } })).toEqual([]);
});
