// The same webhooks, registered at a real kube-apiserver and at an ApiServer: they are asked the same, and clients get the same answers.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BUILT_IN_KINDS, kubernetesKinds, ApiServer as OurServer, WEBHOOK_CONFIGURATIONS } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { patched, type ReviewServer, startReviewServer } from '../unit/review-server.ts';
import { RIGHT_REGISTRATIONS, WRONG_REGISTRATIONS } from '../unit/wrong-registrations.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { caughtUp } from './caught-up.ts';

const START_MS = 90_000;
const MAPS = '/api/v1/namespaces/default/configmaps';
const PODS = '/api/v1/namespaces/default/pods';
const BOXES = '/apis/example.com/v1/namespaces/default/boxes';
const REGISTRATIONS = '/apis/admissionregistration.k8s.io/v1';
const MERGE = 'application/merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';
const APPLY = 'application/apply-patch+yaml';

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects
type Any = any;

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
// What they have no field for is removed, and defaults are added, before webhooks are asked.
const text = { type: 'string' };
const spec = { type: 'object', properties: { replicas: { type: 'integer' }, size: { type: 'integer', default: 5 }, seen: text } };
const version = (name: string, storage: boolean): object => ({
  ...{ name, served: true, storage },
  subresources: { status: {}, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
  schema: { openAPIV3Schema: { type: 'object', properties: { spec, status: open } } },
});
const BOXES_CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'boxes.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'boxes', singular: 'box', kind: 'Box', listKind: 'BoxList' },
    versions: [version('v1', true), version('v2', false)],
  },
};

const real = component('kube-apiserver');
const test = it.skipIf(isMissing(real));

let theirs: ApiServer;
let ours: OurServer;
let http: Server;
let url = '';
let reviews: ReviewServer;

beforeAll(async () => {
  if (isMissing(real)) return;
  const [pods] = await kubernetesKinds('pods/v1');
  ours = new OurServer({
    ...{ storage: new MemoryStorage(), customResourceDefinitions: true, managedFields: 'always' },
    resources: [...BUILT_IN_KINDS, pods, ...WEBHOOK_CONFIGURATIONS],
    ...{ authenticate: () => ({ username: 'admin' }), onError: () => {} },
  });
  http = createServer(ours.handler);
  await ours.ready;
  await new Promise<void>((resolve) => void http.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  [theirs, reviews] = await Promise.all([startApiServer(), startReviewServer()]);
  for (const base of [theirs.url, url]) {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(BOXES_CRD) };
    expect((await theirs.fetch(`${base}/apis/apiextensions.k8s.io/v1/customresourcedefinitions`, init)).status).toBe(201);
    await eventually(async () => expect((await theirs.fetch(base + BOXES)).status).toBe(200));
  }
}, START_MS);

afterAll(async () => {
  await theirs?.stop();
  await ours?.shutdown();
  http?.closeAllConnections();
  http?.close();
  await reviews?.stop();
}, START_MS);

type Asked = readonly [method: string, path: string, body?: object | readonly unknown[], type?: string];

interface Got {
  readonly code: number;
  readonly body: Any;
  readonly warnings: string | null;
}

/** What each server makes by itself. */
function content(object: Any): unknown {
  if (object === null || typeof object !== 'object') return object;
  const { uid, creationTimestamp, resourceVersion, managedFields, generation, ...metadata } = object.metadata ?? {};
  if (metadata.deletionTimestamp) metadata.deletionTimestamp = 'SET';
  // Upstream says so of a list of custom resources.
  if (metadata.continue === '') delete metadata.continue;
  return { ...object, metadata, ...(object.items && { items: object.items.map(content) }) };
}

async function ask(base: string, [method, path, body, type = 'application/json']: Asked): Promise<Got> {
  const sent = body === undefined ? '' : JSON.stringify(body);
  const headers = { 'content-type': type, 'content-length': String(Buffer.byteLength(sent)) };
  const response = await theirs.fetch(base + path, { method, headers: method === 'GET' ? {} : headers, body: sent });
  const made = (await response.json()) as Any;
  const { details, ...status } = made;
  // A deletion's Status has the uid; clients read no reason and an empty one alike.
  if (status.reason === '') delete status.reason;
  const told = made.kind === 'Status' ? (made.status === 'Success' ? status : { ...status, details }) : content(made);
  return { code: response.status, body: told, warnings: response.headers.get('warning') };
}

/** What a webhook was asked, but for who asks and what each server makes by itself. */
function shown({ path, review }: ReviewServer['asked'][number]): object {
  const { uid, userInfo, object, oldObject, ...request } = review.request;
  expect([typeof uid, typeof userInfo.username]).toEqual(['string', 'string']);
  return { path, ...review, request: { ...request, object: content(object), oldObject: content(oldObject) } };
}

/** Asks both servers. Their answers, and what webhooks are asked, must be the same. */
async function both(...asked: Asked): Promise<Got & { readonly seen: readonly Any[] }> {
  if (asked[0] !== 'GET') await caughtUp(theirs, asked[1]);
  const sides: { got: Got; seen: readonly object[] }[] = [];
  for (const base of [theirs.url, url]) {
    reviews.asked.length = 0;
    const got = await ask(base, asked);
    // Validating webhooks are asked at once.
    const seen = reviews.asked.map(shown).sort((one, other) => ((one as Any).path < (other as Any).path ? -1 : 1));
    sides.push({ got, seen });
  }
  const [one, other] = sides as [(typeof sides)[0], (typeof sides)[0]];
  expect({ asked, ...other.got }).toEqual({ asked, ...one.got });
  expect({ asked, seen: other.seen }).toEqual({ asked, seen: one.seen });
  return { ...one.got, seen: one.seen };
}

const RULE = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['configmaps'] };
const webhook = (path: string, more: object = {}): object => ({
  ...{ name: `${path}.example.com`, admissionReviewVersions: ['v1'], sideEffects: 'None', rules: [RULE] },
  clientConfig: { url: `${reviews.url}/${path}`, caBundle: reviews.ca },
  ...more,
});

/** Registers webhooks at both servers for the time of a test, and waits until they are asked. */
async function registered(
  kind: 'Mutating' | 'Validating',
  webhooks: readonly object[],
  use: () => Promise<void>,
  name: string = 'hooks',
): Promise<void> {
  const path = `${REGISTRATIONS}/${kind.toLowerCase()}webhookconfigurations`;
  const rules = [{ ...RULE, resources: ['secrets'] }];
  const body = { apiVersion: 'admissionregistration.k8s.io/v1', kind: `${kind}WebhookConfiguration`, metadata: { name } };
  const probe = webhook('probe', { rules });
  await both('POST', path, { ...body, webhooks: [...webhooks, probe] });
  const probed = async (base: string, isAsked: boolean): Promise<void> => {
    reviews.asked.length = 0;
    await ask(base, ['POST', '/api/v1/namespaces/default/secrets?dryRun=All', { metadata: { name: 'probe' } }]);
    expect(reviews.asked.some((each) => each.path.startsWith('/probe'))).toBe(isAsked);
  };
  for (const base of [theirs.url, url]) await eventually(() => probed(base, true));
  try {
    await use();
  } finally {
    reviews.decide.clear();
    for (const base of [theirs.url, url]) {
      await ask(base, ['DELETE', `${path}/${name}`]);
      await eventually(() => probed(base, false));
    }
  }
}

/** The conditions of webhooks; some are only met by some of the writes. */
const CONDITIONS: readonly (readonly string[])[] = [
  ['true'],
  ['false'],
  ['request.operation == "CREATE"', 'object.metadata.labels["example.com/app"] == "x"'],
  ['request.operation != "DELETE" || oldObject.metadata.name == "c"'],
  ['object == null || object.kind == "ConfigMap"', 'request.namespace == "default"'],
  ['!("system:nodes" in request.userInfo.groups)'],
  ['request.resource.resource == "boxes" && has(request.subResource) && request.subResource == "scale"'],
  ['request.?subResource.orValue("") == ""', 'request.kind.kind in ["ConfigMap", "Box"]'],
  ['has(request.options.fieldManager) && request.options.fieldManager == "me"'],
  ['has(request.options.gracePeriodSeconds) && request.options.gracePeriodSeconds == 5'],
  ['oldObject == null', '!request.dryRun'],
  ['request.requestKind == request.kind && request.name.startsWith("c")'],
  ['object != null && has(object.spec) && object.spec.replicas > 2'],
  ['object.metadata.name.matches("^c.*")||true'],
  ['size(request.userInfo.groups) >= 0 && request.userInfo.username != ""'],
];

/** Answers with a member of another type. */
const WRONG_TYPES: readonly object[] = [
  { allowed: true, patchType: 'JSONPatch', patch: [{ op: 'add', path: '/data/x', value: 'y' }] },
  { allowed: true, patchType: 'JSONPatch', patch: 5 },
  { allowed: true, auditAnnotations: { a: 1 } },
  { allowed: false, status: { details: { causes: 'x' } } },
  { allowed: false, status: { details: { retryAfterSeconds: 'x' } } },
  { allowed: false, status: { details: { name: 5 } } },
  { allowed: false, status: { code: 1e20 } },
];

/** The query and the body of deletions. */
const DELETIONS: readonly (readonly [query: string, body?: object])[] = [
  [''],
  ['?gracePeriodSeconds=7&propagationPolicy=Background'],
  ['', { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 7, propagationPolicy: 'Background', dryRun: ['All'] }],
  ['', { propagationPolicy: 'Background', gracePeriodSeconds: 0 }],
  ['?gracePeriodSeconds=-1'],
  ['', { gracePeriodSeconds: -5 }],
];

const map = (name: string, data: object, labels?: object): object => ({ metadata: { name, ...(labels && { labels }) }, data });

describe('registrations', () => {
  test('with mistakes are refused for the same reasons', async () => {
    for (const kind of ['Mutating', 'Validating']) {
      const path = `${REGISTRATIONS}/${kind.toLowerCase()}webhookconfigurations`;
      const head = { apiVersion: 'admissionregistration.k8s.io/v1', kind: `${kind}WebhookConfiguration` };
      const metadata = { name: 'wrong' };
      for (const [, more] of WRONG_REGISTRATIONS) {
        const { code } = await both('POST', path, { ...head, metadata, webhooks: [webhook('a', more)] });
        expect(code).toBeGreaterThanOrEqual(400);
      }
      const twins = [webhook('a', { reinvocationPolicy: 'Often' }), webhook('a')];
      expect((await both('POST', path, { ...head, metadata, webhooks: twins })).code).toBe(422);
    }
  });

  test('without mistakes are accepted', async () => {
    for (const kind of ['Mutating', 'Validating']) {
      const path = `${REGISTRATIONS}/${kind.toLowerCase()}webhookconfigurations?dryRun=All`;
      const head = { apiVersion: 'admissionregistration.k8s.io/v1', kind: `${kind}WebhookConfiguration` };
      for (const [name, more] of RIGHT_REGISTRATIONS) {
        const { code } = await both('POST', path, { ...head, metadata: { name: 'right' }, webhooks: [webhook('a', more)] });
        expect([name, code]).toEqual([name, 201]);
      }
    }
  });

  test('have the same defaults, and change in the same way', async () => {
    for (const kind of ['Mutating', 'Validating']) {
      const path = `${REGISTRATIONS}/${kind.toLowerCase()}webhookconfigurations`;
      const head = { apiVersion: 'admissionregistration.k8s.io/v1', kind: `${kind}WebhookConfiguration` };
      const service = { namespace: 'n', name: 's' };
      const none = { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['none'] };
      const rules = [none];
      const webhooks = [webhook('a', { clientConfig: { service }, rules }), webhook('b', { rules: undefined })];
      await both('POST', path, { ...head, metadata: { name: 'right' }, webhooks });
      await both(
        'PATCH',
        `${path}/right`,
        { webhooks: [{ name: 'a.example.com', timeoutSeconds: 3 }] },
        'application/strategic-merge-patch+json',
      );
      await both('PATCH', `${path}/right`, { webhooks: [] }, MERGE);
      await both('PUT', `${path}/right`, { ...head, metadata: { name: 'right' }, webhooks: [] });
      await both('GET', `${path}/right`);
      await both('DELETE', `${path}/right`);
    }
  });
});

describe('webhooks', () => {
  test('are asked the same about each write', async () => {
    const everything = { rules: [{ ...RULE, resources: ['configmaps', 'pods/*', 'pods', 'boxes/*', 'boxes', 'namespaces'] }] };
    await registered('Validating', [webhook('all', everything)], async () => {
      const made = await both('POST', `${MAPS}?fieldManager=me&fieldValidation=Strict`, map('a', { k: '1' }));
      expect([made.code, made.seen.length]).toEqual([201, 1]);
      await both('PUT', `${MAPS}/a?dryRun=All`, map('a', { k: '2' }));
      await both('PATCH', `${MAPS}/a`, { data: { k: '3' } }, MERGE);
      await both('PATCH', `${MAPS}/a?fieldManager=x`, [{ op: 'add', path: '/data/l', value: '4' }], JSON_PATCH);
      const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'b' }, data: { k: '5' } };
      await both('PATCH', `${MAPS}/b?fieldManager=me&force=true`, applied, APPLY);
      await both('PATCH', `${MAPS}/b?fieldManager=me`, { ...applied, data: { k: '6' } }, APPLY);
      await both('DELETE', `${MAPS}/a`);
      const box = { apiVersion: 'example.com/v1', kind: 'Box', metadata: { name: 'box' }, spec: { replicas: 1 } };
      await both('POST', BOXES, box);
      await both('PATCH', `${BOXES}/box/status`, { status: { replicas: 1 } }, MERGE);
      await both('PATCH', `${BOXES}/box/scale`, { spec: { replicas: 3 } }, MERGE);
      await both('PUT', `${BOXES.replace('v1', 'v2')}/box/scale?dryRun=All`, {
        ...{
          apiVersion: 'autoscaling/v1',
          kind: 'Scale',
          metadata: { name: 'box', namespace: 'default' },
          spec: { replicas: 4 },
        },
      });
      await both('DELETE', `${BOXES}/box`);
      await both('POST', '/api/v1/namespaces', { metadata: { name: 'hooked', labels: { a: 'b' } } });
    });
  });

  test('registered for another version get the object in that one', async () => {
    const rules = [{ ...RULE, apiGroups: ['example.com'], apiVersions: ['v2'], resources: ['boxes', 'boxes/*'] }];
    const exact = { rules, matchPolicy: 'Exact' };
    await registered('Mutating', [webhook('other', { rules }), webhook('exact', exact)], async () => {
      reviews.decide.set('/other', ({ object }) => patched({ op: 'add', path: '/spec/seen', value: object.apiVersion }));
      const box = { apiVersion: 'example.com/v1', kind: 'Box', metadata: { name: 'two' }, spec: { replicas: 1 } };
      const { body, seen } = await both('POST', BOXES, box);
      expect([body.spec.seen, seen.length]).toEqual(['example.com/v2', 1]);
      // A patch that changes nothing.
      reviews.decide.set('/other', () => patched({ op: 'test', path: '/spec/replicas', value: 1 }));
      await both('PATCH', `${BOXES}/two`, { spec: { more: 1 } }, MERGE);
      await both('PATCH', `${BOXES.replace('v1', 'v2')}/two`, { spec: { more: 2, size: null } }, MERGE);
      reviews.decide.clear();
      await both('PATCH', `${BOXES}/two/status`, { status: { replicas: 1 } }, MERGE);
      await both('PATCH', `${BOXES}/two/scale`, { spec: { replicas: 3 } }, MERGE);
      await both('DELETE', `${BOXES.replace('v1', 'v2')}/two`);
    });
  });

  test('with selectors', async () => {
    const hooks = [
      webhook('web', { objectSelector: { matchLabels: { app: 'web' } } }),
      webhook('here', { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } } }),
      webhook('elsewhere', {
        namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: ['default'] }] },
      }),
    ];
    await registered('Validating', hooks, async () => {
      await both('POST', MAPS, map('s', {}, { app: 'web' }));
      await both('PATCH', `${MAPS}/s`, { metadata: { labels: null } }, MERGE);
      await both('PATCH', `${MAPS}/s`, { data: { x: 'y' } }, MERGE);
      await both('DELETE', `${MAPS}/s`);
      await both('POST', MAPS.replace('default', 'missing'), map('s', {}));
    });
  });

  test('with conditions', async () => {
    const when = (...expressions: readonly string[]): object => ({
      matchConditions: expressions.map((expression, at) => ({ name: `example.com/c-${at}`, expression })),
    });
    const rules = [{ ...RULE, resources: ['configmaps', 'boxes', 'boxes/*'] }];
    const hooks = CONDITIONS.map((each, at) => webhook(`c${at}`, { rules, ...when(...each) }));
    const hooksToo = [
      webhook('error', { ...when('object.data.none == "x"'), failurePolicy: 'Ignore' }),
      webhook('other-version', {
        rules: [{ ...RULE, apiVersions: ['v2'], resources: ['boxes'] }],
        ...when('object.apiVersion.endsWith("2")'),
      }),
    ];
    await registered('Validating', [...hooks, ...hooksToo], async () => {
      const { seen } = await both('POST', `${MAPS}?fieldManager=me`, map('c', { k: '1' }, { 'example.com/app': 'x' }));
      expect(seen.length).toBeGreaterThan(5);
      await both('PATCH', `${MAPS}/c`, { data: { k: '2' } }, MERGE);
      await both('DELETE', `${MAPS}/c`, { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 5 });
      const box = { apiVersion: 'example.com/v1', kind: 'Box', metadata: { name: 'cond' }, spec: { replicas: 1 } };
      await both('POST', BOXES, box);
      await both('PATCH', `${BOXES}/cond/scale`, { spec: { replicas: 3 } }, MERGE);
      await both('PATCH', `${BOXES}/cond/status`, { status: { replicas: 3 } }, MERGE);
      await both('DELETE', `${BOXES}/cond`);
    });
    await registered('Mutating', [webhook('b', when('object.data.none == "x"', 'object.data.k == "1"'))], async () => {
      expect((await both('POST', MAPS, map('c2', { k: '1' }))).code).toBe(403);
      expect((await both('POST', MAPS, { metadata: { generateName: 'c2-' } })).code).toBe(403);
    });
    await registered('Mutating', [webhook('b', when('has(object.data)', 'object.data.none == 1'))], async () => {
      expect((await both('POST', MAPS, map('c3', { k: '1' }))).code).toBe(403);
      expect((await both('POST', MAPS, { metadata: { name: 'c3' } })).code).toBe(201);
    });
  });

  test('are told the options of a deletion', async () => {
    await registered('Validating', [webhook('all')], async () => {
      for (const [query, body] of DELETIONS) {
        const { body: made } = await both('POST', MAPS, map('d', {}));
        expect(made.kind).toBe('ConfigMap');
        await both('DELETE', `${MAPS}/d${query}`, body);
        for (const base of [theirs.url, url]) await ask(base, ['DELETE', `${MAPS}/d`]);
      }
      const said = [];
      for (const base of [theirs.url, url]) {
        const made = await theirs.fetch(base + MAPS, {
          ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(map('d', {})) },
        });
        const { uid, resourceVersion } = ((await made.json()) as Any).metadata;
        const plain = (text: unknown): string =>
          JSON.stringify(text)
            .replaceAll(uid, 'UID')
            .replaceAll(`(${resourceVersion})`, '(VERSION)')
            .replaceAll(`"${resourceVersion}"`, '"VERSION"');
        for (const preconditions of [{ uid: 'x' }, { resourceVersion: '1' }, { uid, resourceVersion }]) {
          reviews.asked.length = 0;
          const { body } = await ask(base, ['DELETE', `${MAPS}/d`, { preconditions }]);
          said.push(JSON.parse(plain([body, ...reviews.asked.map((each) => each.review.request.options)])));
        }
      }
      expect(said.slice(3)).toEqual(said.slice(0, 3));
      expect(said[2][1].preconditions).toEqual({ uid: 'UID', resourceVersion: 'VERSION' });
    });
  });

  test('are asked about each object of a collection', async () => {
    for (const kind of ['Mutating', 'Validating'] as const) {
      await registered(kind, [webhook('all', { rules: [{ ...RULE, resources: ['configmaps', 'boxes'] }] })], async () => {
        const options = { gracePeriodSeconds: 7, propagationPolicy: 'Background' };
        for (const [query, body] of [
          [''],
          ['&dryRun=All'],
          ['&gracePeriodSeconds=3'],
          ['&gracePeriodSeconds=-3'],
          ['', options],
          [''],
        ] as const) {
          for (const name of ['all-1', 'all-2']) await both('POST', MAPS, map(name, {}, { app: 'all' }));
          const { seen, code } = await both('DELETE', `${MAPS}?labelSelector=app=all${query}`, body);
          expect([code, seen.length]).toEqual([200, 2]);
        }
        for (const name of ['a', 'b']) {
          await both('POST', BOXES, { apiVersion: 'example.com/v1', kind: 'Box', metadata: { name, finalizers: ['x.io/held'] } });
        }
        expect((await both('DELETE', BOXES)).seen).toHaveLength(2);
        for (const name of ['a', 'b']) await both('PATCH', `${BOXES}/${name}`, { metadata: { finalizers: null } }, MERGE);
        for (const name of ['all-1', 'all-2']) await both('POST', MAPS, map(name, {}, { app: 'all' }));
        reviews.decide.set('/all', ({ oldObject }) => ({ allowed: oldObject?.metadata.name !== 'all-1' }));
        expect((await both('DELETE', `${MAPS}?labelSelector=app=all`)).code).toBe(400);
        reviews.decide.clear();
        await both('DELETE', `${MAPS}?labelSelector=app=all`);
      });
    }
  });

  test('are told the grace of a Pod, and of each of its two steps', async () => {
    const spec = { nodeName: 'n', containers: [{ name: 'a', image: 'a' }], automountServiceAccountToken: false };
    const pod = (name: string, more: object = {}): object => ({ metadata: { name }, spec: { ...spec, ...more } });
    await ask(theirs.url, ['POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } }]);
    await registered(
      'Validating',
      [webhook('all', { rules: [{ ...RULE, operations: ['DELETE'], resources: ['pods'] }] })],
      async () => {
        const create = async (name: string, more?: object): Promise<void> => {
          for (const base of [theirs.url, url]) expect((await ask(base, ['POST', PODS, pod(name, more)])).code).toBe(201);
        };
        const remove = async (name: string, options?: object): Promise<Any> => {
          const found = [];
          for (const base of [theirs.url, url]) {
            reviews.asked.length = 0;
            await ask(base, ['DELETE', `${PODS}${name && `/${name}`}`, options ?? {}]);
            const told = reviews.asked.map(({ review: { request } }) => {
              const { name: said, options: sent, oldObject } = request;
              return { said, sent, of: oldObject.metadata.name, grace: oldObject.metadata.deletionGracePeriodSeconds };
            });
            // Upstream asks again if its cache was late.
            found.push(told.filter((each, at) => !isDeepStrictEqual(each, told[at - 1])));
          }
          expect(found[1]).toEqual(found[0]);
          return found[1];
        };
        await create('a');
        for (const options of [
          undefined,
          undefined,
          { gracePeriodSeconds: 50 },
          { gracePeriodSeconds: 5 },
          { gracePeriodSeconds: 0 },
        ])
          await remove('a', options);
        await create('b', { nodeName: undefined });
        expect(await remove('b', { gracePeriodSeconds: -1 })).toHaveLength(2);
        await create('c');
        await create('d', { nodeName: undefined });
        await remove('');
        await remove('', { gracePeriodSeconds: 0 });
      },
    );
  });

  test('refuse, warn, and change with the same answers', async () => {
    await registered('Mutating', [webhook('a', { reinvocationPolicy: 'IfNeeded' }), webhook('b')], async () => {
      let turn = 0;
      for (const response of [
        { allowed: false },
        {
          allowed: false,
          status: { code: 422, reason: 'Invalid', message: 'no "x"', details: { name: 'n', causes: [{ field: 'f' }] } },
        },
        { allowed: false, status: { code: 200, status: 'Success', message: 'fine' } },
        { allowed: false, status: { reason: 'Forbidden' } },
        { allowed: true, warnings: ['mind "it"', 'and this'] },
        patched({ op: 'add', path: '/data/b', value: 'b' }),
        patched({ op: 'add', path: '/metadata/labels', value: { 'not a label': 'x' } }),
        patched(),
        { allowed: true, patch: '', patchType: null },
        { allowed: null },
        { allowed: true, patch: 'bnVsbA==', patchType: 'JSONPatch' },
        { allowed: true, patch: 'W10\r\n=\n', patchType: 'JSONPatch' },
        { allowed: true, warnings: ['', null] },
      ]) {
        reviews.decide.set('/b', () => response);
        await both('POST', MAPS, map(`r-${turn++}`, { k: 'k' }));
      }
    });
  });

  test('that cannot be asked: the same codes and reasons', async () => {
    const policies = [webhook('fail'), webhook('ignore', { failurePolicy: 'Ignore' })];
    await registered('Mutating', policies, async () => {
      for (const response of [
        { allowed: true, uid: 'another' },
        { allowed: true, patch: 'W10=' },
        { allowed: true, patchType: 'JSONPatch' },
        { raw: '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}' },
        ...WRONG_TYPES,
        { raw: 'no', httpStatus: 400 },
        { raw: 'no', httpStatus: 404 },
        { raw: '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not now","code":504}', httpStatus: 504 },
      ]) {
        reviews.decide.set('/fail', () => response);
        const bodies = [];
        for (const base of [theirs.url, url]) bodies.push(await ask(base, ['POST', `${MAPS}?dryRun=All`, map('f', {})]));
        const [one, other] = bodies as [Got, Got];
        const plain = ({ code, body: { message, details, ...status } }: Got): object => ({
          ...{ code, status },
          message: message.replace(/"[0-9a-f]{8}-[-0-9a-f]*"/g, 'UID'),
        });
        // Go's decoder names the type in Go.
        const isTyped = (WRONG_TYPES as readonly object[]).includes(response);
        expect(isTyped ? { code: other.code } : plain(other)).toEqual(isTyped ? { code: one.code } : plain(one));
        expect(one.code).toBe(500);
        reviews.decide.clear();
        reviews.decide.set('/ignore', () => response);
        await both('POST', `${MAPS}?dryRun=All`, map('f', {}));
        reviews.decide.clear();
      }
    });
  });

  test('of a service that does not exist cannot be asked, in the same words', async () => {
    const service = { namespace: 'n', name: 'nobody', path: '/x' };
    await registered('Validating', [webhook('s', { clientConfig: { service } })], async () => {
      await both('POST', MAPS, map('s', {}));
    });
  });

  test('a Pod, its binding and its ephemeral containers', async () => {
    await registered('Validating', [webhook('pods', { rules: [{ ...RULE, resources: ['pods/binding'] }] })], async () => {
      for (const base of [theirs.url, url]) {
        const spec = {
          containers: [{ name: 'a', image: 'a' }],
          terminationGracePeriodSeconds: 0,
          automountServiceAccountToken: false,
        };
        await ask(base, ['POST', PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec }]);
      }
      const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'p' }, target: { kind: 'Node', name: 'n' } };
      const { seen } = await both('POST', `${PODS}/p/binding`, binding);
      expect(seen.length).toBe(1);
    });
  });
});
