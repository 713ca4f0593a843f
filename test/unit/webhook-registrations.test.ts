// Registrations of webhooks: which are refused, with which words, and what is filled in. registered-webhooks.test.ts has what they do.
import { afterEach, describe, expect, it } from 'vitest';
import { type ApiServer, WEBHOOK_CONFIGURATIONS } from '../../src/apiserver/index.ts';
import { rig } from './apiserver-rig.ts';
import { CAUSE_CHARS, RIGHT_REGISTRATIONS, WRONG_REGISTRATIONS } from './wrong-registrations.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects
type Any = any;

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1';

let servers: ApiServer[] = [];
afterEach(async () => {
  for (const server of servers) await server.shutdown();
  servers = [];
});

function start(): Pick<ReturnType<typeof rig>, 'call'> {
  const { server, call } = rig({ resources: WEBHOOK_CONFIGURATIONS });
  servers.push(server);
  return { call };
}

const RULE = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] };

const webhook = (path: string, more: object = {}): object => ({
  ...{ name: `${path}.example.com`, admissionReviewVersions: ['v1'], sideEffects: 'None', rules: [RULE] },
  clientConfig: { url: `https://hooks.example.com/${path}` },
  ...more,
});

describe('registrations', () => {
  it.each(WRONG_REGISTRATIONS)('with %s are refused, in the words of a kube-apiserver', async (_, more, causes) => {
    const { call } = start();
    for (const kind of ['mutating', 'validating']) {
      const path = `${CONFIGURATIONS}/${kind}webhookconfigurations`;
      const { code, body } = await call('POST', path, { metadata: { name: 'x' }, webhooks: [webhook('a', more)] });
      const told = body.details.causes.map(({ reason, field, message }: Any) =>
        `${reason.replace('FieldValue', '')} ${field}: ${message}`.slice(0, CAUSE_CHARS),
      );
      expect([code, told]).toEqual([422, causes]);
    }
  });

  it.each(RIGHT_REGISTRATIONS)('with %s are accepted', async (_, more) => {
    const { call } = start();
    for (const kind of ['mutating', 'validating']) {
      const path = `${CONFIGURATIONS}/${kind}webhookconfigurations`;
      const { code, text } = await call('POST', path, { metadata: { name: 'x' }, webhooks: [webhook('a', more)] });
      expect([code, text]).toEqual([201, expect.anything()]);
    }
  });

  it('with a URL that cannot be parsed are refused, without what exactly is wrong', async () => {
    const { call } = start();
    const webhooks = [webhook('a', { clientConfig: { url: 'https://[1:2/x' } })];
    const path = `${CONFIGURATIONS}/validatingwebhookconfigurations`;
    const { code, body } = await call('POST', path, { metadata: { name: 'x' }, webhooks });
    const why =
      'Required value: url must be a valid URL: parse "https://[1:2/x": it is none; desired format: https://host[/path]';
    expect([code, body.details.causes]).toEqual([
      422,
      [{ reason: 'FieldValueRequired', field: 'webhooks[0].clientConfig.url', message: why }],
    ]);
  });

  it('say all that is wrong with a name, and which others a rule must not have', async () => {
    const { call } = start();
    const path = `${CONFIGURATIONS}/validatingwebhookconfigurations`;
    const mixed = { operations: ['*', 'CREATE'], apiGroups: ['*', 'a'], apiVersions: ['*', 'v1'], resources: ['x'] };
    const webhooks = [webhook('a', { name: 'A'.repeat(254), rules: [mixed] })];
    const { body } = await call('POST', path, { metadata: { name: 'x' }, webhooks });
    expect(body.details.causes.map(({ message }: Any) => message)).toEqual([
      expect.stringContaining(': must be no more than 253 characters,a lowercase RFC 1123 subdomain must consist of'),
      `Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`,
      `Invalid value: ["*","a"]: if '*' is present, must not specify other API groups`,
      `Invalid value: ["*","v1"]: if '*' is present, must not specify other API versions`,
    ]);
  });

  it('of no webhooks are accepted, and counted', async () => {
    const { call } = start();
    const path = `${CONFIGURATIONS}/validatingwebhookconfigurations`;
    expect((await call('POST', path, { metadata: { name: 'x' } })).code).toBe(201);
    const table = await call('GET', path, undefined, { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' });
    expect(table.body.rows.map(({ cells }: Any) => cells.slice(0, 2))).toEqual([['x', 0]]);
  });

  it('with very many mistakes are refused for the first hundred', async () => {
    const { call } = start();
    const many = (name: string): string[] => Array.from({ length: 20_000 }, (_, at) => `${name}${at}`);
    const matchConditions = [{ name: 'a b', expression: '' }];
    for (const more of [
      { admissionReviewVersions: ['v1', ...many('A')], matchConditions },
      { rules: [{ operations: many('x'), apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }] },
      { objectSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: many('-') }] } },
    ]) {
      const webhooks = [webhook('a', more)];
      const { code, body } = await call('POST', `${CONFIGURATIONS}/validatingwebhookconfigurations`, {
        metadata: { name: 'x' },
        webhooks,
      });
      const told = body.details.causes.length;
      // Long ones are fewer.
      expect([code, told > 50]).toEqual([422, true]);
      expect(body.message.slice(-20)).toContain(`, and ${101 - told} more]`);
    }
  });

  it('have their defaults, and names once', async () => {
    const { call } = start();
    const path = `${CONFIGURATIONS}/mutatingwebhookconfigurations`;
    const service = { namespace: 'n', name: 's' };
    const made = await call('POST', path, { metadata: { name: 'x' }, webhooks: [webhook('a', { clientConfig: { service } })] });
    const [own] = made.body.webhooks;
    expect([own, made.body.metadata.generation]).toMatchObject([
      {
        ...{ failurePolicy: 'Fail', matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {}, timeoutSeconds: 10 },
        ...{ reinvocationPolicy: 'Never', clientConfig: { service: { ...service, port: 443 } }, rules: [{ scope: '*' }] },
      },
      1,
    ]);
    const refused = await call('POST', path, {
      metadata: { name: 'y', finalizers: ['mine'] },
      webhooks: [
        webhook('a', { reinvocationPolicy: 'Often', matchConditions: [{ name: 'c', expression: 'authorizer.x' }] }),
        webhook('a'),
        webhook('b', { name: '' }),
        webhook('c', { name: '' }),
      ],
    });
    const fields = refused.body.details.causes.map(({ reason, field }: Any) => `${reason} ${field}`);
    expect(fields).toEqual([
      'FieldValueInvalid metadata.finalizers[0]',
      'FieldValueNotSupported webhooks[0].reinvocationPolicy',
      'FieldValueDuplicate webhooks[1].name',
      'FieldValueRequired webhooks[2].name',
      'FieldValueRequired webhooks[3].name',
      'FieldValueInvalid webhooks[0].matchConditions[0].expression',
    ]);
    expect(refused.body.details.causes.at(-1).message).toContain(
      'authorizer: a kube-apiserver has it, but CEL of this server does not',
    );
    expect((await call('PUT', `${path}/x`, { metadata: { name: 'x' }, webhooks: [] })).code).toBe(422);
    const table = await call('GET', path, undefined, { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' });
    expect(table.body.rows.map(({ cells }: Any) => cells.slice(0, 2))).toEqual([['x', 1]]);
  });
});

it('a registration with very many versions is checked in a moment', async () => {
  const { call } = start();
  const versions = ['v1', ...Array.from({ length: 150_000 }, (_, at) => `a${at}`)];
  const webhooks = [webhook('a', { admissionReviewVersions: versions })];
  const path = `${CONFIGURATIONS}/validatingwebhookconfigurations`;
  expect((await call('POST', path, { metadata: { name: 'x' }, webhooks })).code).toBe(201);
});
