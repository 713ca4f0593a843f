// Webhooks that clients register: who is asked about what, in which order, and what becomes of the answers.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type ApiServer,
  BUILT_IN_KINDS,
  kubernetesKinds,
  type ResourceDefinition,
  WEBHOOK_CONFIGURATIONS,
} from '../../src/apiserver/index.ts';
import { RegisteredWebhooks } from '../../src/apiserver/webhooks/registered-webhooks.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { eventually } from '../eventually.ts';
import { ORDER, ORDERS, ORDERS_PATH, rig } from './apiserver-rig.ts';
import { patched, type ReviewServer, startReviewServer } from './review-server.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects
type Any = any;

const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1';
const MAPS = '/api/v1/namespaces/default/configmaps';

let reviews: ReviewServer;
let servers: ApiServer[] = [];
beforeAll(async () => {
  reviews = await startReviewServer();
});
afterEach(async () => {
  for (const server of servers) await server.shutdown();
  servers = [];
  reviews.asked.length = 0;
  reviews.decide.clear();
});
afterAll(() => reviews.stop());

const RULE = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] };

/** A webhook at a path, which is also its name. */
const webhook = (path: string, more: object = {}): object => ({
  ...{ name: `${path}.example.com`, admissionReviewVersions: ['v1'], sideEffects: 'None', rules: [RULE] },
  clientConfig: { url: `${reviews.url}/${path}`, caBundle: reviews.ca },
  ...more,
});

type Call = ReturnType<typeof rig>['call'];

function start(options: Parameters<typeof rig>[0] = {}): { call: Call; errors: unknown[]; server: ApiServer } {
  const errors: unknown[] = [];
  const resources = [...BUILT_IN_KINDS, ORDERS, ...WEBHOOK_CONFIGURATIONS] as readonly ResourceDefinition[];
  const { server, call } = rig({ resources, onError: (error) => void errors.push(error), ...options });
  servers.push(server);
  return { call, errors, server };
}

/** Registers webhooks, and waits until they are asked. */
async function register(call: Call, kind: 'Mutating' | 'Validating', ...webhooks: readonly object[]): Promise<void> {
  const plural = `${kind.toLowerCase()}webhookconfigurations`;
  const name = `${kind.toLowerCase()}-${servers.length}`;
  const probe = webhook('probe', { rules: [{ ...RULE, resources: ['secrets'] }] });
  const answer = await call('POST', `${CONFIGURATIONS}/${plural}`, { metadata: { name }, webhooks: [...webhooks, probe] });
  expect([answer.code, answer.body]).toMatchObject([201, {}]);
  await eventually(async () => {
    await call('POST', '/api/v1/namespaces/default/secrets?dryRun=All', { metadata: { name: 'probe' } });
    expect(reviews.asked.some(({ path }) => path.startsWith('/probe'))).toBe(true);
  });
  reviews.asked.length = 0;
}

const map = (name: string, data: object = {}, labels: object = {}): object => ({ metadata: { name, labels }, data });
const WARNING = /299 - "([^"]*)"/g;
const warningsOf = ({ headers }: { headers: Headers }): string[] =>
  [...(headers.get('warning') ?? '').matchAll(WARNING)].map(([, text]) => text as string);
const paths = (): string[] => reviews.asked.map(({ path }) => path.split('?')[0] as string);

describe('a registered webhook', () => {
  it('is asked about a creation, an update, a patch and a deletion, with who does it', async () => {
    const { call } = start({ authenticate: () => ({ username: 'jo', uid: '7', groups: ['dev'], extra: { team: ['a'] } }) });
    await register(call, 'Validating', webhook('all'));
    await call('POST', `${MAPS}?fieldManager=me`, map('a', { x: '1' }));
    await call('PUT', `${MAPS}/a?dryRun=All`, map('a', { x: '2' }));
    await call('PATCH', `${MAPS}/a`, { data: { x: '3' } }, { 'content-type': 'application/merge-patch+json' });
    await call('DELETE', `${MAPS}/a`);
    const resource = { group: '', version: 'v1', resource: 'configmaps' };
    const kind = { group: '', version: 'v1', kind: 'ConfigMap' };
    const common = {
      ...{ kind, resource, requestKind: kind, requestResource: resource, name: 'a', namespace: 'default' },
      userInfo: { username: 'jo', uid: '7', groups: ['dev'], extra: { team: ['a'] } },
    };
    const options = (verb: string, more: object = {}): object => ({
      kind: `${verb}Options`,
      apiVersion: 'meta.k8s.io/v1',
      ...more,
    });
    const data = (x: string): object => ({ apiVersion: 'v1', kind: 'ConfigMap', data: { x } });
    expect(reviews.asked.map(({ path, review }) => [path, review.apiVersion, review.request])).toMatchObject([
      [
        '/all?timeout=10s',
        'admission.k8s.io/v1',
        {
          ...common,
          operation: 'CREATE',
          object: data('1'),
          oldObject: null,
          dryRun: false,
          options: options('Create', { fieldManager: 'me' }),
        },
      ],
      [
        '/all?timeout=10s',
        'admission.k8s.io/v1',
        {
          ...common,
          operation: 'UPDATE',
          object: data('2'),
          oldObject: data('1'),
          dryRun: true,
          options: options('Update', { dryRun: ['All'] }),
        },
      ],
      [
        '/all?timeout=10s',
        'admission.k8s.io/v1',
        { ...common, operation: 'UPDATE', object: data('3'), oldObject: data('1'), dryRun: false, options: options('Update') },
      ],
      [
        '/all?timeout=10s',
        'admission.k8s.io/v1',
        { ...common, operation: 'DELETE', object: null, oldObject: data('3'), dryRun: false, options: options('Delete') },
      ],
    ]);
  });

  it('is told the options that count, and no others', async () => {
    const { call } = start();
    await register(call, 'Validating', webhook('all'));
    const told = (): object => reviews.asked.splice(0).map(({ review }) => review.request.options);
    const head = (verb: string): object => ({ kind: `${verb}Options`, apiVersion: 'meta.k8s.io/v1' });
    const own = 'fieldManager=me&fieldValidation=Strict';
    await call('POST', `${MAPS}?propagationPolicy=Orphan&gracePeriodSeconds=3&${own}`, map('a'));
    expect(told()).toEqual([{ ...head('Create'), fieldManager: 'me', fieldValidation: 'Strict' }]);
    const body = { gracePeriodSeconds: -3, propagationPolicy: 'Background' };
    await call('DELETE', `${MAPS}/a?gracePeriodSeconds=5&propagationPolicy=Orphan&${own}`, body);
    expect(told()).toEqual([{ ...head('Delete'), gracePeriodSeconds: 1, propagationPolicy: 'Background' }]);
    for (const name of ['a', 'b']) await call('POST', MAPS, map(name));
    reviews.asked.length = 0;
    await call('DELETE', `${MAPS}?gracePeriodSeconds=-3`);
    // Of a collection, each object is told, but no name. That it is still the one that was listed is not a precondition of the client.
    const listed = reviews.asked.map(({ review: { request } }) => [
      request.name,
      request.namespace,
      request.oldObject.metadata.name,
    ]);
    expect(listed).toEqual(['a', 'b'].map((name) => [undefined, 'default', name]));
    expect(told()).toEqual([1, 2].map(() => ({ ...head('Delete'), gracePeriodSeconds: -3 })));
    await call('POST', MAPS, map('a'));
    const unsafe = 'ignoreStoreReadErrorWithClusterBreakingPotential';
    expect((await call('DELETE', `${MAPS}/a?${unsafe}=true`)).code).toBe(409);
    expect((await call('DELETE', `${MAPS}/a`, { [unsafe]: true })).code).toBe(409);
    expect((await call('DELETE', `${MAPS}/a`, { [unsafe]: false })).code).toBe(200);
  });

  it('is told the preconditions of a deletion, and no others', async () => {
    const { call } = start();
    await register(call, 'Validating', webhook('all'));
    for (const members of [['uid'], ['resourceVersion'], ['uid', 'resourceVersion'], []]) {
      const { metadata } = (await call('POST', MAPS, map('a'))).body;
      reviews.asked.length = 0;
      const preconditions = Object.fromEntries(members.map((name) => [name, metadata[name]]));
      expect((await call('DELETE', `${MAPS}/a`, { preconditions })).code).toBe(200);
      const { review } = reviews.asked[0] as { review: Any };
      expect(review.request.options.preconditions).toEqual(members.length > 0 ? preconditions : undefined);
    }
  });

  it('is told that the server itself deletes what is in a namespace', async () => {
    const { call } = start();
    await call('POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
    await call('POST', '/api/v1/namespaces/n/configmaps', map('a'));
    await register(call, 'Validating', webhook('maps', { rules: [{ ...RULE, resources: ['configmaps'] }] }));
    await call('DELETE', '/api/v1/namespaces/n');
    await eventually(() => expect(paths()).toEqual(['/maps']));
    expect(reviews.asked[0]?.review.request).toMatchObject({
      ...{ operation: 'DELETE', namespace: 'n', oldObject: { metadata: { name: 'a' } } },
      userInfo: { username: 'system:apiserver', groups: ['system:masters', 'system:authenticated'] },
    });
  });

  it('is asked as its registration says last', async () => {
    const { call } = start();
    await register(call, 'Validating', webhook('old'));
    const path = `${CONFIGURATIONS}/validatingwebhookconfigurations/validating-1`;
    expect((await call('PATCH', path, { webhooks: [webhook('new')] })).code).toBe(200);
    await eventually(async () => {
      reviews.asked.length = 0;
      await call('POST', `${MAPS}?dryRun=All`, map('a'));
      expect(paths()).toEqual(['/new']);
    });
    expect((await call('PATCH', path, { webhooks: null })).code).toBe(200);
    await eventually(async () => {
      reviews.asked.length = 0;
      expect((await call('POST', `${MAPS}?dryRun=All`, map('a'))).code).toBe(201);
      expect(paths()).toEqual([]);
    });
  });

  it('refuses with its code, reason, words and details, and warns', async () => {
    const { call } = start();
    await register(call, 'Validating', webhook('a'), webhook('b'));
    const details = { name: 'x', causes: [{ field: 'data.x', message: 'no' }] };
    for (const [status, expected] of [
      [
        { code: 422, reason: 'Invalid', message: 'bad', details },
        { code: 422, reason: 'Invalid', message: ': bad', details },
      ],
      [
        { code: 403, reason: 'Forbidden' },
        { code: 403, message: ': Forbidden' },
      ],
      [undefined, { code: 400, message: ' without explanation' }],
      [
        { code: 200, message: 'fine' },
        { code: 400, message: ': fine' },
      ],
      ...[
        [399, 400],
        [400, 400],
        [599, 599],
        [600, 400],
      ].map(([code, told]) => [{ code }, { code: told, message: ' without explanation' }] as const),
      [
        { code: 999, message: null, reason: null, details: null },
        { code: 400, message: ' without explanation' },
      ],
    ] as const) {
      reviews.decide.set('/b', () => ({ allowed: false, status, warnings: ['careful'] }));
      const answer = await call('POST', MAPS, map('a'));
      const message = `admission webhook "b.example.com" denied the request${expected.message}`;
      expect([answer.code, answer.body]).toMatchObject([expected.code, { ...expected, message }]);
      expect(warningsOf(answer)).toEqual(['careful']);
    }
    expect((await call('GET', `${MAPS}/a`)).code).toBe(404);
  });

  it('is not asked about registrations, or a wrong one could not be mended', async () => {
    const { call } = start();
    const everything = { ...RULE, resources: ['*/*'] };
    await register(call, 'Validating', webhook('none', { rules: [everything] }));
    reviews.decide.set('/none', () => ({ allowed: false }));
    expect((await call('POST', MAPS, map('a'))).code).toBe(400);
    expect((await call('DELETE', `${CONFIGURATIONS}/validatingwebhookconfigurations/validating-1`)).code).toBe(200);
    await eventually(async () => expect((await call('POST', MAPS, map('a'))).code).toBe(201));
  });

  it.each([0, 1])(
    'is not asked if the kind of its registration is only one of this name, beside %i that is not',
    async (known) => {
      const plain = ({ group, version, plural, kind }: ResourceDefinition): ResourceDefinition => ({
        ...{ group, version, plural, kind, namespaced: false },
      });
      const kinds = [...WEBHOOK_CONFIGURATIONS.slice(0, known), ...WEBHOOK_CONFIGURATIONS.slice(known).map(plain)];
      const { call } = start({ resources: [...BUILT_IN_KINDS, ...kinds] });
      const path = `${CONFIGURATIONS}/validatingwebhookconfigurations`;
      const head = { apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingWebhookConfiguration' };
      const { code } = await call('POST', path, { ...head, metadata: { name: 'x' }, webhooks: [webhook('a')] });
      const { code: made } = await call('POST', MAPS, map('a'));
      // One that would be asked is known by the time of the second write.
      expect([code, made, (await call('DELETE', `${MAPS}/a`)).code, paths()]).toEqual([201, 201, 200, []]);
    },
  );

  it('that was registered before the server started is asked about the first write', async () => {
    const first = rig({ resources: [...BUILT_IN_KINDS, ...WEBHOOK_CONFIGURATIONS] });
    servers.push(first.server);
    const stored = await first.call('POST', `${CONFIGURATIONS}/validatingwebhookconfigurations`, {
      ...{ metadata: { name: 'x' }, webhooks: [webhook('no')] },
    });
    expect(stored.code).toBe(201);
    reviews.decide.set('/no', () => ({ allowed: false }));
    const { call } = start({ storage: first.storage, resources: [...BUILT_IN_KINDS, ...WEBHOOK_CONFIGURATIONS] });
    expect((await call('POST', MAPS, map('a'))).code).toBe(400);
  });

  it('is asked about a Binding and an Eviction as creations', async () => {
    const [pods] = await kubernetesKinds('pods/v1');
    const { call } = start({ resources: [...BUILT_IN_KINDS, pods, ...WEBHOOK_CONFIGURATIONS] });
    await register(call, 'Validating', webhook('pods', { rules: [{ ...RULE, resources: ['*/*'] }] }));
    const path = '/api/v1/namespaces/default/pods';
    const containers = [{ name: 'a', image: 'a' }];
    await call('POST', path, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers } });
    const target = { kind: 'Node', name: 'n' };
    const bound = await call('POST', `${path}/a/binding`, { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'a' }, target });
    expect(bound.code).toBe(201);
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'a' } };
    for (const query of ['?dryRun=All', '']) expect((await call('POST', `${path}/a/eviction${query}`, eviction)).code).toBe(201);
    expect(reviews.asked.map(({ review }) => review.request)).toMatchObject([
      { operation: 'CREATE', kind: { kind: 'Pod' } },
      {
        ...{ operation: 'CREATE', kind: { kind: 'Binding' }, subResource: 'binding', requestSubResource: 'binding' },
        ...{ object: { target }, oldObject: null },
      },
      ...[true, false].map((dryRun) => ({ operation: 'CREATE', kind: { kind: 'Eviction' }, subResource: 'eviction', dryRun })),
    ]);
    expect(reviews.asked).toHaveLength(4);
    for (const name of ['subResource', 'requestSubResource']) expect(reviews.asked[0]?.review.request).not.toHaveProperty(name);
  });

  it('is asked by a server that has only its kind of registrations', async () => {
    const { call } = start({ resources: [...BUILT_IN_KINDS, ...WEBHOOK_CONFIGURATIONS.slice(1)] });
    await register(call, 'Validating', webhook('a'));
    await call('POST', MAPS, map('a'));
    expect(paths()).toEqual(['/a']);
  });
});

describe('which webhooks are asked', () => {
  const asked = async (...writes: readonly (() => Promise<unknown>)[]): Promise<string[][]> => {
    const all: string[][] = [];
    for (const write of writes) {
      reviews.asked.length = 0;
      await write();
      all.push(
        paths()
          .map((path) => path.slice(1))
          .sort(),
      );
    }
    return all;
  };

  it('say their rules', async () => {
    const { call } = start();
    const rules: Readonly<Record<string, object>> = {
      'all.of': { resources: ['*/*'] },
      'no.parts': {},
      'only.parts': { resources: ['*/status'] },
      'own.parts': { resources: ['orders/*'] },
      'create.delete': { operations: ['CREATE', 'DELETE'] },
      'update.of': { operations: ['UPDATE'], resources: ['*/*'] },
      'the.core': { apiGroups: [''] },
      'the.group': { apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['orders', 'orders/status'] },
      'a.version': { apiVersions: ['v2'] },
      'in.namespaces': { scope: 'Namespaced' },
      'in.none': { scope: 'Cluster' },
    };
    const hooks = [
      ...Object.entries(rules).map(([name, more]) => webhook(name, { rules: [{ ...RULE, ...more }] })),
      webhook('of.two', { rules: ['none', 'configmaps', 'other'].map((plural) => ({ ...RULE, resources: [plural] })) }),
      webhook('no.rules', { rules: undefined }),
    ];
    await register(call, 'Validating', ...hooks);
    const status = { metadata: { name: 'o' }, status: { phase: 'x' } };
    const path = '/apis/example.com/v1/namespaces/default/orders';
    expect(
      await asked(
        () => call('POST', MAPS, map('a')),
        () => call('POST', path, { ...ORDER, metadata: { name: 'o' } }),
        () => call('PUT', `${path}/o/status`, { ...ORDER, ...status }),
        () => call('POST', '/api/v1/namespaces', { metadata: { name: 'n' } }),
        () => call('DELETE', `${path}/o`),
      ),
    ).toEqual([
      ['all.of', 'create.delete', 'in.namespaces', 'no.parts', 'of.two', 'the.core'],
      ['all.of', 'create.delete', 'in.namespaces', 'no.parts', 'own.parts', 'the.group'],
      ['all.of', 'only.parts', 'own.parts', 'the.group', 'update.of'],
      ['all.of', 'create.delete', 'in.none', 'no.parts', 'the.core'],
      ['all.of', 'create.delete', 'in.namespaces', 'no.parts', 'own.parts', 'the.group'],
    ]);
  });

  it('say labels, of the object before or after, and of the namespace', async () => {
    const { call } = start();
    const only = (member: string, matchLabels: object): object => ({ [member]: { matchLabels } });
    await call('POST', '/api/v1/namespaces', { metadata: { name: 'n', labels: { env: 'dev' } } });
    await register(
      call,
      'Validating',
      webhook('of.web', only('objectSelector', { app: 'web' })),
      webhook('in.dev', only('namespaceSelector', { env: 'dev' })),
      webhook('in.n', only('namespaceSelector', { 'kubernetes.io/metadata.name': 'n' })),
      webhook('not.n', {
        namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['n'] }] },
      }),
    );
    const inN = '/api/v1/namespaces/n/configmaps';
    expect(
      await asked(
        () => call('POST', MAPS, map('a', {}, { app: 'web' })),
        () => call('PUT', `${MAPS}/a`, map('a')),
        () => call('PUT', `${MAPS}/a`, map('a', { x: '1' })),
        () => call('POST', inN, map('a')),
        () => call('POST', '/api/v1/namespaces', { metadata: { name: 'm', labels: { env: 'dev', app: 'web' } } }),
        () => call('PUT', '/api/v1/namespaces/n', { metadata: { name: 'n', labels: { env: 'live' } } }),
        () => call('POST', inN, map('b')),
      ),
    ).toEqual([
      ['not.n', 'of.web'],
      ['not.n', 'of.web'],
      ['not.n'],
      ['in.dev', 'in.n'],
      ['in.dev', 'not.n', 'of.web'],
      ['in.n'],
      ['in.n'],
    ]);
  });

  it('say conditions, which see the object, the old one and the request', async () => {
    const { call, errors } = start({ authenticate: () => ({ username: 'jo', groups: ['dev'] }) });
    const when = (...expressions: readonly string[]): object => ({
      matchConditions: expressions.map((expression, at) => ({ name: `c${at}`, expression })),
    });
    const broken = { ...when('object.data.none == "x"'), failurePolicy: 'Ignore' };
    await register(
      call,
      'Validating',
      webhook('by.dev', when('"dev" in request.userInfo.groups', 'request.namespace == "default"')),
      webhook('by.op', when('"ops" in request.userInfo.groups')),
      webhook('of.change', when('oldObject != null && object != null && oldObject.data.x != object.data.x')),
      webhook('of.deletion', when('object == null')),
      webhook('of.none', { ...when('object.data.none == "x"', 'false'), failurePolicy: 'Fail' }),
      webhook('of.errors', broken),
    );
    errors.length = 0;
    expect(
      await asked(
        () => call('POST', MAPS, map('a', { x: '1' })),
        () => call('PATCH', `${MAPS}/a`, { data: { x: '2' } }),
        () => call('DELETE', `${MAPS}/a`),
      ),
    ).toEqual([['by.dev'], ['by.dev', 'of.change'], ['by.dev', 'of.deletion']]);
    const why =
      'conditions of webhook "of.errors.example.com": expression \'object.data.none == "x"\' resulted in error: no such key: ';
    expect((errors[0] as Error).cause).toMatchObject({ message: expect.stringContaining('no such key: none') });
    expect(errors.map((error) => (error as Error).message)).toEqual([
      `${why}none`,
      `${why}none`,
      expect.stringContaining('of.errors'),
    ]);
  });

  it('say labels of a namespace that is deleted, and of one that a server without namespaces does not have', async () => {
    const only = (matchLabels: object): object => ({ namespaceSelector: { matchLabels } });
    const { call } = start();
    await call('POST', '/api/v1/namespaces', { metadata: { name: 'n', labels: { env: 'dev' } } });
    const hooks = [webhook('in.dev', only({ env: 'dev' })), webhook('in.n', only({ 'kubernetes.io/metadata.name': 'n' }))];
    await register(call, 'Validating', ...hooks);
    expect(
      await asked(
        () => call('DELETE', '/api/v1/namespaces/n?dryRun=All'),
        () => call('DELETE', '/api/v1/namespaces/default?dryRun=All'),
      ),
    ).toEqual([['in.dev', 'in.n'], []]);
    const secrets = BUILT_IN_KINDS.filter(({ plural }) => plural !== 'namespaces');
    const { call: bare } = start({ resources: [...secrets, ...WEBHOOK_CONFIGURATIONS] });
    await register(bare, 'Validating', ...hooks);
    expect(
      await asked(
        () => bare('POST', '/api/v1/namespaces/n/configmaps', map('a')),
        () => bare('POST', MAPS, map('a')),
      ),
    ).toEqual([['in.n'], []]);
  });

  it('do not say the namespace of what is in none, or of what is left of one', async () => {
    const storage = new MemoryStorage();
    const boxes = { ...ORDERS, plural: 'boxes', kind: 'Box', namespaced: false } as ResourceDefinition;
    const { call } = start({ storage, resources: [...BUILT_IN_KINDS, boxes, ...WEBHOOK_CONFIGURATIONS] });
    await call('POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
    for (const name of ['a', 'b']) await call('POST', '/api/v1/namespaces/n/configmaps', map(name));
    const inDev = { namespaceSelector: { matchLabels: { env: 'dev' } } };
    await register(call, 'Validating', webhook('all', { rules: [{ ...RULE, operations: ['DELETE'] }] }));
    expect((await storage.delete('core/namespaces/n')).metadata?.name).toBe('n');
    const left = (name: string): string => `/api/v1/namespaces/n/configmaps/${name}`;
    expect(await asked(() => call('DELETE', left('a')))).toEqual([['all']]);
    await register(call, 'Mutating', webhook('in.dev', inDev));
    expect(await asked(() => call('POST', '/apis/example.com/v1/boxes', { metadata: { name: 'x' } }))).toEqual([['in.dev']]);
    const { code, body } = await call('DELETE', left('b'));
    expect([code, body.message]).toEqual([404, 'namespaces "n" not found']);
  });

  it('say conditions, which see no options that were not given', async () => {
    const { call } = start();
    const names = ['dryRun', 'fieldManager', 'fieldValidation', 'propagationPolicy', 'gracePeriodSeconds', 'preconditions'];
    const expression = `${JSON.stringify(names)}.all(name, !(name in request.options))`;
    await register(call, 'Validating', webhook('no.options', { matchConditions: [{ name: 'a', expression }] }));
    expect(
      await asked(
        () => call('POST', MAPS, map('a')),
        () => call('POST', `${MAPS}?dryRun=All`, map('b')),
        () => call('DELETE', `${MAPS}/a`),
      ),
    ).toEqual([['no.options'], [], ['no.options']]);
  });

  it('a condition that fails, or costs too much, refuses the write', async () => {
    const { call } = start();
    const rules = [{ ...RULE, resources: ['configmaps'] }];
    const dear = 'object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != "x")))';
    const matchConditions = [
      { name: 'a', expression: 'object.data.none == "x"' },
      { name: 'b', expression: dear },
    ];
    await register(call, 'Mutating', webhook('a', { matchConditions, rules }));
    const data = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`k${at}`, '']));
    const { code, body } = await call('POST', MAPS, map('a', data));
    const [first, second] = [matchConditions[0]?.expression, dear];
    const why = `[expression '${first}' resulted in error: no such key: none, expression '${second}' resulted in error: operation cancelled: actual cost limit exceeded]`;
    expect([code, body.message]).toEqual([403, `configmaps "a" is forbidden: ${why}`]);
    expect((await call('POST', MAPS, map('b', { none: 'x' }))).code).toBe(201);
    expect(paths()).toEqual(['/a']);
  });

  it('conditions that stay as they are, are not checked again', async () => {
    const storage = new MemoryStorage();
    const { call } = start({ storage });
    const path = `${CONFIGURATIONS}/validatingwebhookconfigurations`;
    const named = (expression: string, more: object = {}): object =>
      webhook('a', { matchConditions: [{ name: 'a', expression }], ...more });
    expect((await call('POST', path, { metadata: { name: 'x' }, webhooks: [named('true')] })).code).toBe(201);
    // As a server has written it that has what this one lacks.
    const unknown = named('authorizer.x()');
    const written = await storage.update(
      'admissionregistration.k8s.io/validatingwebhookconfigurations/x',
      (old) => ({ ...old, webhooks: [unknown, webhook('b')] }) as typeof old,
    );
    expect(written.metadata?.name).toBe('x');
    expect((await call('PATCH', `${path}/x`, { metadata: { labels: { a: 'b' } } })).code).toBe(200);
    const changed = [named('authorizer.x()', { timeoutSeconds: 3 }), webhook('b')];
    const { code, body } = await call('PATCH', `${path}/x`, { webhooks: changed });
    expect([code, body.webhooks[0].timeoutSeconds]).toEqual([200, 3]);
    expect((await call('PATCH', `${path}/x`, { webhooks: [named('authorizer.y()')] })).code).toBe(422);
  });

  it('that are registered for another version get the object in that one, unless they say Exact', async () => {
    const v2 = { ...ORDERS, version: 'v2' } as ResourceDefinition;
    const { call } = start({
      resources: [...BUILT_IN_KINDS, ORDERS as ResourceDefinition, v2, ...WEBHOOK_CONFIGURATIONS],
      convert: {
        'orders.example.com': (object: Any, apiVersion) => {
          const { item, thing } = object.spec;
          return { ...object, apiVersion, spec: apiVersion.endsWith('v2') ? { thing: item } : { item: thing } };
        },
      },
    });
    const rules = ['none', 'orders'].map((plural) => ({ ...RULE, apiVersions: ['v2'], resources: [plural] }));
    await register(call, 'Mutating', webhook('a', { rules }), webhook('b', { rules, matchPolicy: 'Exact' }));
    reviews.decide.set('/a', () => patched({ op: 'replace', path: '/spec/thing', value: 'tea' }));
    const made = await call('POST', '/apis/example.com/v1/namespaces/default/orders', {
      ...{ ...ORDER, metadata: { name: 'o' }, spec: { item: 'salt' } },
    });
    expect(made.body).toMatchObject({ apiVersion: 'example.com/v1', spec: { item: 'tea' } });
    expect(paths()).toEqual(['/a']);
    expect(reviews.asked[0]?.review.request).toMatchObject({
      ...{
        kind: { version: 'v2' },
        resource: { version: 'v2' },
        requestKind: { version: 'v1' },
        requestResource: { version: 'v1' },
      },
      object: { apiVersion: 'example.com/v2', spec: { thing: 'salt' } },
    });
    reviews.decide.set('/a', () => patched({ op: 'replace', path: '/apiVersion', value: 'example.com/v1' }));
    const wrong = await call('POST', '/apis/example.com/v1/namespaces/default/orders', {
      ...{ ...ORDER, metadata: { name: 'p' }, spec: { item: 'salt' } },
    });
    expect([wrong.code, wrong.body.message]).toEqual([
      500,
      expect.stringContaining('expected a Order of example.com/v2, got a Order of example.com/v1'),
    ]);
    reviews.decide.clear();
    reviews.asked.length = 0;
    const seen = (item: string): object => ({ name: `is-${item}`, expression: `object.spec.thing == "${item}"` });
    await register(
      call,
      'Validating',
      webhook('is.tea', { rules, matchConditions: [seen('tea')] }),
      webhook('was.tea', { rules, matchConditions: [{ name: 'a', expression: 'oldObject.spec.thing == "tea"' }] }),
      webhook('of.maps', { rules: [{ ...RULE, resources: ['configmaps'] }] }),
    );
    await call('PATCH', '/apis/example.com/v1/namespaces/default/orders/o', { spec: { item: 'salt' } });
    expect(paths()).toEqual(['/a', '/was.tea']);
    const [object, oldObject] = ['salt', 'tea'].map((thing) => ({ apiVersion: 'example.com/v2', spec: { thing } }));
    for (const { review } of reviews.asked) expect(review.request).toMatchObject({ object, oldObject });
  });
});

describe('mutating webhooks', () => {
  it('may change a Binding, and not a deletion', async () => {
    const [pods] = await kubernetesKinds('pods/v1');
    const { call } = start({ resources: [...BUILT_IN_KINDS, pods, ...WEBHOOK_CONFIGURATIONS] });
    await register(call, 'Mutating', webhook('pods', { rules: [{ ...RULE, resources: ['pods', 'pods/*'] }] }));
    const path = '/api/v1/namespaces/default/pods';
    const containers = [{ name: 'a', image: 'a' }];
    await call('POST', path, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers } });
    reviews.decide.set('/pods', () => patched({ op: 'add', path: '/target/name', value: 'other' }));
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'a' }, target: { kind: 'Node', name: 'n' } };
    expect((await call('POST', `${path}/a/binding`, binding)).code).toBe(201);
    expect((await call('GET', `${path}/a`)).body.spec.nodeName).toBe('other');
    const { code, body } = await call('DELETE', `${path}/a?gracePeriodSeconds=0`);
    const why = 'admission webhook "pods.example.com": a deletion cannot be changed';
    expect([code, body.message]).toEqual([500, `Internal error occurred: ${why}`]);
    reviews.decide.set('/pods', () => patched());
    expect((await call('DELETE', `${path}/a?gracePeriodSeconds=0`)).code).toBe(200);
  });

  /** Adds its letter to what others have written. */
  const adds =
    (letter: string, most: number = 9) =>
    (request: Any): object => {
      const { trace = '' } = request.object.data ?? {};
      const times = trace.split(letter).length - 1;
      return times >= most ? { allowed: true } : patched({ op: 'add', path: '/data/trace', value: trace + letter });
    };

  it('are asked one after the other, by the names of their registrations, and again only if they want', async () => {
    const { call } = start();
    const again = { reinvocationPolicy: 'IfNeeded' };
    for (const [name, hooks] of [
      ['z', [webhook('d', again)]],
      ['a', [webhook('a'), webhook('b', again)]],
      ['m', [webhook('c')]],
    ] as const) {
      await call('POST', `${CONFIGURATIONS}/mutatingwebhookconfigurations`, { metadata: { name }, webhooks: hooks });
    }
    for (const letter of ['a', 'b', 'c', 'd']) reviews.decide.set(`/${letter}`, adds(letter));
    await eventually(async () => {
      reviews.asked.length = 0;
      await call('POST', `${MAPS}?dryRun=All`, map('probe', { trace: '' }));
      expect(new Set(paths())).toEqual(new Set(['/a', '/b', '/c', '/d']));
    });
    reviews.asked.length = 0;
    const made = await call('POST', MAPS, map('x', { trace: '' }));
    // Nobody has changed it after d.
    expect([made.body.data, paths()]).toEqual([{ trace: 'abcdb' }, ['/a', '/b', '/c', '/d', '/b']]);
    reviews.asked.length = 0;
    for (const letter of ['b', 'c', 'd']) reviews.decide.set(`/${letter}`, adds(letter, 0));
    expect((await call('POST', MAPS, map('y', { trace: '' }))).body.data).toEqual({ trace: 'a' });
    expect(paths()).toEqual(['/a', '/b', '/c', '/d']);
  });

  it.each<[string, object, string]>([
    ['no JSON', { raw: 'x' }, 'received invalid webhook response'],
    ['no response', { raw: '{}' }, 'received invalid webhook response: webhook response was absent'],
    ['another uid', { uid: 'y' }, 'received invalid webhook response: expected response.uid='],
    [
      'a review of another kind',
      { raw: '{"kind":"Review","apiVersion":"v1","response":{"uid":"uid-U"}}' },
      'expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Review',
    ],
    ['a patch without its type', { allowed: true, patch: 'W10=' }, 'webhook returned response.patch but not response.patchType'],
    [
      'a type without a patch',
      { allowed: true, patchType: 'JSONPatch' },
      'webhook returned response.patchType but not response.patch',
    ],
    ['a patch of another type', { allowed: true, patch: 'W10=', patchType: 'Merge' }, 'unsupported patch type'],
    ['a patch that is not base64', { allowed: true, patch: '%', patchType: 'JSONPatch' }, 'received undecodable patch'],
    ['a patch that is no list', { allowed: true, patch: 'e30=', patchType: 'JSONPatch' }, 'received undecodable patch'],
    ['no verdict', { allowed: 'yes' }, 'response.allowed: expected true or false'],
    [
      'a wrong warning',
      { allowed: true, warnings: ['careful', 7] },
      'response.warnings: expected a list of strings, got ["careful",7]',
    ],
    ['a status that is none', { allowed: false, status: 'no' }, 'response.status: expected an object, got "no"'],
    ['a message that is none', { allowed: false, status: { message: 7 } }, 'response.status.message: expected a string, got 7'],
    ['a reason that is none', { allowed: false, status: { reason: [] } }, 'response.status.reason: expected a string, got []'],
    [
      'a code that is none',
      { allowed: false, status: { code: '403' } },
      'response.status.code: expected a whole number, got "403"',
    ],
    ['details that are none', { allowed: false, status: { details: 9 } }, 'response.status.details: expected an object, got 9'],
    [
      'a patch that was not encoded',
      { allowed: true, patchType: 'JSONPatch', patch: [{ op: 'add', path: '/data', value: {} }] },
      'response.patch: expected base64, got [{"op":"add",',
    ],
    ['annotations that are none', { allowed: true, auditAnnotations: { a: 1 } }, 'response.auditAnnotations: expected an object'],
    [
      'causes that are none',
      { allowed: false, status: { details: { causes: 'x' } } },
      'response.status.details.causes: expected',
    ],
    [
      'a time to wait that is none',
      { allowed: false, status: { details: { retryAfterSeconds: 'x' } } },
      'response.status.details.retryAfterSeconds: expected a whole number, got "x"',
    ],
    ['a code that is too large', { allowed: false, status: { code: 1e20 } }, 'response.status.code: expected a whole number'],
    ['503', { raw: 'gone', httpStatus: 503 }, 'failed to call webhook: the server is currently unable to handle the request'],
    ['500', { raw: 'gone', httpStatus: 500 }, 'an error on the server ("gone") has prevented the request from succeeding'],
    ['404', { raw: 'gone', httpStatus: 404 }, 'the server could not find the requested resource'],
    ['a Status', { raw: '{"kind":"Status","message":"not now"}', httpStatus: 504 }, 'failed to call webhook: not now'],
    ['half an answer', { raw: '{', cut: true }, 'failed to call webhook: Post "https://127.0.0.1:'],
    ['too much', { raw: `{"a":"${'x'.repeat(6_291_456)}"}` }, 'the answer is longer than 6291456 bytes'],
  ])('that answer with %s have not been asked: the write fails, or goes on without them', async (_, answer, words) => {
    const { call, errors } = start();
    const only = (app: string): object => ({ objectSelector: { matchLabels: { app } } });
    await register(call, 'Mutating', webhook('a', only('fail')), webhook('b', { ...only('ignore'), failurePolicy: 'Ignore' }));
    const decide = ({ uid }: Any): object => JSON.parse(JSON.stringify(answer).replace('uid-U', uid));
    for (const path of ['/a', '/b']) reviews.decide.set(path, decide);
    const failed = await call('POST', MAPS, map('x', {}, { app: 'fail' }));
    expect([failed.code, failed.body.reason]).toEqual([500, 'InternalError']);
    expect(failed.body.message).toContain('Internal error occurred: failed calling webhook "a.example.com": ');
    expect(failed.body.message).toContain(words);
    expect(errors).toEqual([]);
    expect((await call('POST', MAPS, map('x', {}, { app: 'ignore' }))).code).toBe(201);
    expect(errors).toMatchObject([{ message: expect.stringContaining(words) }]);
  });

  it.each([
    ['in lines', (patch: string) => `${patch.slice(0, 8)}\r\n${patch.slice(8)}\n`, 201, { a: 'b' }],
    ['null', () => Buffer.from('null').toString('base64'), 201, undefined],
    ['of another alphabet', (patch: string) => `${patch}_`, 500, undefined],
  ])('may send a patch %s if a decoder of Go reads it', async (_, encode, code, data) => {
    const { call } = start();
    await register(call, 'Mutating', webhook('a'));
    const { patch, ...more } = patched({ op: 'add', path: '/data', value: { a: 'b' } }) as { patch: string };
    reviews.decide.set('/a', () => ({ ...more, patch: encode(patch) }));
    const answer = await call('POST', MAPS, { metadata: { name: 'x' } });
    expect([answer.code, answer.body.data]).toEqual([code, data]);
  });

  it('may warn of nothing, which is left out', async () => {
    const { call } = start();
    await register(call, 'Mutating', webhook('a'));
    reviews.decide.set('/a', () => ({ allowed: true, warnings: ['', null, 'careful'] }));
    const answer = await call('POST', MAPS, map('x'));
    expect([answer.code, warningsOf(answer)]).toEqual([201, ['careful']]);
  });

  it('that say null instead of a verdict refuse', async () => {
    const { call } = start();
    await register(call, 'Mutating', webhook('a', { failurePolicy: 'Ignore' }));
    reviews.decide.set('/a', () => ({ allowed: null }));
    const { code, body } = await call('POST', MAPS, map('x'));
    expect([code, body.message]).toEqual([400, 'admission webhook "a.example.com" denied the request without explanation']);
  });

  it('get what an update sends as they get a creation: without unknown fields, and with defaults', async () => {
    const size = { type: 'integer', default: 5 };
    const schema = { type: 'object', properties: { spec: { type: 'object', properties: { size, item: { type: 'string' } } } } };
    const orders = { ...ORDERS, schema, preserveUnknownFields: false } as ResourceDefinition;
    const { call } = start({ resources: [...BUILT_IN_KINDS, orders, ...WEBHOOK_CONFIGURATIONS] });
    await register(call, 'Mutating', webhook('a'));
    const order = (item: string): object => ({ ...ORDER, metadata: { name: 'o' }, spec: { item, junk: 1 } });
    await call('POST', ORDERS_PATH, order('tea'));
    await call('PUT', `${ORDERS_PATH}/o`, order('salt'));
    await call('PATCH', `${ORDERS_PATH}/o`, { spec: { size: null, item: 'milk', junk: 2 } });
    expect(reviews.asked.map(({ review }) => review.request.object.spec)).toEqual([
      { item: 'tea', size: 5 },
      { item: 'salt', size: 5 },
      { item: 'milk', size: 5 },
    ]);
  });

  it('whose patch does not fit fail the write, whatever their policy', async () => {
    const { call } = start();
    await register(call, 'Mutating', webhook('a', { failurePolicy: 'Ignore' }));
    reviews.decide.set('/a', () => patched({ op: 'remove', path: '/data/missing' }));
    const { code, body } = await call('POST', MAPS, map('x', {}));
    expect([code, body.message]).toMatchObject([500, expect.stringMatching(/^Internal error occurred: admission webhook "a/)]);
  });

  it('cannot make an object that its kind does not allow', async () => {
    const { call } = start();
    await register(call, 'Mutating', webhook('a'));
    reviews.decide.set('/a', () => patched({ op: 'add', path: '/data', value: { 'not a key': 'x' } }));
    expect((await call('POST', MAPS, map('x', {}))).code).toBe(422);
    reviews.decide.set('/a', () => patched({ op: 'add', path: '/data', value: 7 }));
    expect((await call('POST', MAPS, map('x', {}))).code).toBe(500);
    reviews.decide.set('/a', () => patched({ op: 'add', path: '/kind', value: 'Secret' }));
    const { code, body } = await call('POST', MAPS, map('x', {}));
    const why = 'admission webhook "a.example.com": expected a ConfigMap of v1, got a Secret of v1';
    expect([code, body.message]).toEqual([500, `Internal error occurred: ${why}`]);
    reviews.decide.set('/a', () => patched({ op: 'add', path: '/kind', value: 'x'.repeat(300) }));
    expect((await call('POST', MAPS, map('x', {}))).body.message).toMatch(/expected a ConfigMap of v1, got a x{200}$/);
  });
});

describe('validating webhooks', () => {
  it('are asked 32 at once, and no others once one has refused', async () => {
    const { call } = start();
    await register(call, 'Validating', ...Array.from({ length: 65 }, (_, at) => webhook(`a${at}`)));
    expect((await call('POST', `${MAPS}?dryRun=All`, map('x'))).code).toBe(201);
    expect(paths()).toHaveLength(65);
    reviews.asked.length = 0;
    reviews.decide.set('/a40', () => ({ allowed: false }));
    expect((await call('POST', MAPS, map('x'))).code).toBe(400);
    expect(paths()).toHaveLength(64);
  });

  it('are asked at once, and must not change anything', async () => {
    const { call } = start();
    await register(call, 'Validating', webhook('a'), webhook('b'));
    let waiting: (() => void) | undefined;
    // Each waits for the other.
    const meet = (): Promise<object> =>
      new Promise((resolve) => {
        const go = waiting;
        waiting = () => resolve({ allowed: true });
        if (go) {
          go();
          waiting();
        }
      });
    for (const path of ['/a', '/b']) reviews.decide.set(path, meet);
    expect((await call('POST', MAPS, map('x'))).code).toBe(201);
    for (const path of ['/a', '/b']) reviews.decide.set(path, () => patched({ op: 'add', path: '/data', value: {} }));
    const { code, body } = await call('POST', MAPS, map('y'));
    expect([code, body.message]).toMatchObject([
      500,
      expect.stringContaining('validating webhook may not return response.patch'),
    ]);
  });

  it('that take too long have not been asked', async () => {
    const clock = new FakeClock();
    const { call } = start({ clock });
    await register(call, 'Validating', webhook('slow', { timeoutSeconds: 2 }));
    reviews.decide.set('/slow', () => new Promise(() => {}));
    const answer = call('POST', MAPS, map('x'));
    await eventually(() => expect(paths()).toEqual(['/slow']));
    clock.advance(1_999);
    clock.advance(1);
    const { code, body } = await answer;
    const url = `${reviews.url}/slow?timeout=2s`;
    expect([code, body.message]).toEqual([
      500,
      `Internal error occurred: failed calling webhook "slow.example.com": failed to call webhook: Post "${url}": context deadline exceeded`,
    ]);
  });

  it('of a service are found by its name, and have the certificate of that name', async () => {
    const services: object[] = [];
    const { call } = start({
      serviceAddress: (service) => {
        services.push(service);
        return service.name === 'known' ? reviews.address : undefined;
      },
    });
    const of = (name: string, labels: object): object =>
      webhook(name, {
        clientConfig: { service: { namespace: 'n', name, path: `/${name}` }, caBundle: reviews.ca },
        objectSelector: { matchLabels: labels },
      });
    await register(call, 'Validating', of('known', { a: 'known' }), of('other', { a: 'other' }));
    const [known, other] = [
      await call('POST', MAPS, map('x', {}, { a: 'known' })),
      await call('POST', MAPS, map('x', {}, { a: 'other' })),
    ];
    expect(services).toEqual(['known', 'other'].map((name) => ({ namespace: 'n', name, path: `/${name}`, port: 443 })));
    // The certificate is for another name.
    expect([known.code, known.body.message]).toMatchObject([500, expect.stringContaining('known.n.svc')]);
    expect(other.body.message).toContain(
      'failed to call webhook: Post "https://other.n.svc:443/other?timeout=10s": service "other" not found',
    );
  });

  it('of a service that nobody knows cannot be asked, whatever its name', async () => {
    const { call, errors } = start();
    const service = { namespace: 'n', name: 'a b?/', path: '' };
    await register(call, 'Validating', webhook('a', { clientConfig: { service }, failurePolicy: 'Ignore' }));
    errors.length = 0;
    expect((await call('POST', MAPS, map('x'))).code).toBe(201);
    expect(errors).toMatchObject([{ message: expect.stringContaining('Post "https://a b?/.n.svc:443/?timeout=10s"') }]);
  });

  it('of a service whose address cannot be told cannot be asked', async () => {
    const serviceAddress = ({ name }: { name: string }): string => {
      if (name === 'one') throw new Error('no table of services');
      return 'a b';
    };
    const { call, errors } = start({ serviceAddress });
    const at = (name: string): object => ({ clientConfig: { service: { namespace: 'n', name } }, failurePolicy: 'Ignore' });
    await register(call, 'Validating', webhook('a', at('one')), webhook('b', at('other')));
    errors.length = 0;
    expect((await call('POST', MAPS, map('x'))).code).toBe(201);
    expect(errors).toMatchObject([
      { message: 'failed calling webhook "a.example.com": serviceAddress: no table of services' },
      { message: expect.stringContaining('failed calling webhook "b.example.com": serviceAddress: Invalid URL') },
    ]);
  });

  it('are not asked again when the server has cut a write in process', async () => {
    const { call, errors, server } = start();
    await register(call, 'Validating', webhook('slow', { failurePolicy: 'Ignore' }));
    reviews.decide.set('/slow', () => new Promise(() => {}));
    const write = server.resource('configmaps/v1').create({ metadata: { name: 'x', namespace: 'default' } });
    const refused = expect(write).rejects.toMatchObject({ code: 'REFUSED' });
    await eventually(() => expect(paths()).toEqual(['/slow']));
    await server.shutdown({ signal: AbortSignal.abort() });
    await refused;
    await eventually(() => expect(errors).toMatchObject([{ message: expect.stringContaining('socket hang up') }]));
    expect(paths()).toEqual(['/slow']);
  });

  it('end with the server, and leave nothing open', async () => {
    const { call } = start();
    await register(call, 'Validating', webhook('slow'));
    reviews.decide.set('/slow', () => new Promise(() => {}));
    const answer = call('POST', MAPS, map('x'));
    await eventually(() => expect(paths()).toEqual(['/slow']));
    await servers[0]?.shutdown({ signal: AbortSignal.abort() });
    expect((await answer).code).toBe(504);
  });
});

describe('a write before registrations are known', () => {
  type Deps = ConstructorParameters<typeof RegisteredWebhooks>[0];
  /** Of a server without registrations. */
  const waiting = (signal?: AbortSignal): { webhooks: RegisteredWebhooks; writes: readonly Promise<unknown>[] } => {
    const webhooks = new RegisteredWebhooks({ catalog: { find: () => undefined } } as unknown as Deps);
    const hooks = webhooks.of({ group: '', main: {} } as Any);
    const asked = { operation: 'CREATE', place: { name: 'x' }, dryRun: false, signal } as Any;
    const writer = { options: {}, user: undefined, warn: () => {} } as Any;
    const object = { metadata: { name: 'x' } };
    return { webhooks, writes: [hooks?.mutate(object, asked, writer), hooks?.validate(object, asked, writer)] as Any };
  };

  it('waits for them', async () => {
    const { webhooks, writes } = waiting();
    let over = 0;
    const all = writes.map((write) => write.then(() => over++));
    await new Promise(setImmediate);
    expect(over).toBe(0);
    await webhooks.prepare();
    await Promise.all(all);
    await webhooks.stop();
  });

  it('is refused if they will not be known, or if its client leaves', async () => {
    const { webhooks, writes } = waiting();
    webhooks.giveUp(new Error('leaving'));
    for (const write of writes) await expect(write).rejects.toThrow('leaving');
    const abort = new AbortController();
    const [one, other] = waiting(abort.signal).writes;
    abort.abort(new Error('gone'));
    await expect(one).rejects.toThrow('gone');
    await expect(other).rejects.toThrow('gone');
  });
});
