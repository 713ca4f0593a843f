// The objects that register webhooks.
import { expect, test } from 'vitest';
import type { AdmissionHooks } from '../../src/apiserver/index.ts';
import { webhookConfigurations } from '../../src/operator/index.ts';

const both: AdmissionHooks = { mutate: () => {}, validate: () => {} };
const NAME = 'hooks.example.com';

test('are one for each hook, which is asked what an ApiServer asks', () => {
  const made = webhookConfigurations(both, {
    name: NAME,
    resources: ['orders.example.com/v1', { version: 'v1', plural: 'configmaps' }],
    at: { namespace: 'system', name: 'hooks', port: 9_443 },
    ca: 'pem',
    more: { failurePolicy: 'Ignore' },
  });
  const webhook = (hook: string, operations: readonly string[]): object => ({
    name: `${hook}.${NAME}`,
    rules: [
      { operations, apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['orders', 'orders/*'] },
      { operations, apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps', 'configmaps/*'] },
    ],
    clientConfig: { service: { namespace: 'system', name: 'hooks', port: 9_443, path: `/${hook}` }, caBundle: 'cGVt' },
    ...{ sideEffects: 'None', admissionReviewVersions: ['v1'], failurePolicy: 'Ignore' },
  });
  const common = { apiVersion: 'admissionregistration.k8s.io/v1', metadata: { name: NAME } };
  expect(made).toEqual([
    { ...common, kind: 'MutatingWebhookConfiguration', webhooks: [webhook('mutate', ['CREATE', 'UPDATE'])] },
    { ...common, kind: 'ValidatingWebhookConfiguration', webhooks: [webhook('validate', ['CREATE', 'UPDATE', 'DELETE'])] },
  ]);
});

test('name the URL, and no authority, if that is all', () => {
  const [made, ...others] = webhookConfigurations(
    { validate: () => {} },
    { name: NAME, resources: ['a/v1'], at: 'https://h:1/x' },
  );
  expect([made?.kind, others]).toEqual(['ValidatingWebhookConfiguration', []]);
  expect(made).toMatchObject({ webhooks: [{ clientConfig: { url: 'https://h:1/x/validate' } }] });
  expect(JSON.stringify(made)).not.toContain('caBundle');
});

test.each([
  [{ at: 1 }, /at: expected a URL, or a service/],
  [{ resources: 'a/v1' }, /resources: expected a list/],
  [{ resources: ['a/b/c'] }, /resource: expected "PLURAL.GROUP\/VERSION"/],
  [{ name: undefined }, /name: expected a string/],
  [{ rules: [] }, /unknown option rules/],
])('%o is refused', (options, message) => {
  const all = { name: NAME, resources: ['a/v1'], at: 'https://h', ...options } as Parameters<typeof webhookConfigurations>[1];
  expect(() => webhookConfigurations(both, all)).toThrow(message);
});
