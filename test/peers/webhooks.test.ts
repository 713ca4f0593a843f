// The same hooks behind a real kube-apiserver, as webhooks over HTTPS, and in an ApiServer: they see the same of each write, and its
// client gets the same answer, but for the name of the webhook.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type AdmissionHooks,
  type AdmissionReview,
  BUILT_IN_KINDS,
  type Convert,
  ApiServer as OurServer,
} from '../../src/apiserver/index.ts';
import { type UserInfo, WebhookServer, Webhooks, webhookConfigurations } from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { canonical, edited, type Json } from '../property/json-edits.ts';
import { runs } from '../runs.ts';
import { certify } from '../unit/certificates.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';

const START_MS = 90_000;
const MAPS = '/api/v1/namespaces/default/configmaps';
const BOXES = '/apis/example.com/v1/namespaces/default/boxes';

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects
type Any = any;

const BOXES_CRD = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'boxes.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'boxes', singular: 'box', kind: 'Box', listKind: 'BoxList' },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        subresources: { status: {}, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
              status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        },
      },
    ],
  },
};

const CRATES = '/apis/example.com';
const cratesCrd = (url: string, ca: string): object => ({
  ...BOXES_CRD,
  metadata: { name: 'crates.example.com' },
  spec: {
    ...BOXES_CRD.spec,
    names: { plural: 'crates', singular: 'crate', kind: 'Crate', listKind: 'CrateList' },
    versions: [
      { ...BOXES_CRD.spec.versions[0], subresources: {} },
      { ...BOXES_CRD.spec.versions[0], subresources: {}, name: 'v2', storage: false },
    ],
    conversion: {
      strategy: 'Webhook',
      webhook: {
        conversionReviewVersions: ['v1'],
        clientConfig: { url: `${url}/convert`, caBundle: Buffer.from(ca).toString('base64') },
      },
    },
  },
});

/** Of a crate: v1 says its size in one text, v2 in two numbers. */
const convert: Convert = (object, apiVersion) => {
  const { size = '0x0', width, height, fail } = (object as Any).spec;
  if (fail) throw new Error('secret');
  const [w, h] = size.split('x').map(Number);
  return {
    ...object,
    apiVersion,
    spec: apiVersion.endsWith('v2') ? { width: w, height: h } : { size: `${width}x${height}` },
  } as Any;
};

/** What `mutate` makes of the specs of boxes, by name. */
const changes = new Map<string, Json>();

/** What hooks do is said in the data of a ConfigMap. */
const hooks: AdmissionHooks = {
  mutate({ object, name, operation, deny, warn }) {
    if (changes.has(name)) return { ...object, spec: changes.get(name) };
    const data = (object as Any)?.data ?? {};
    if (data.warn) warn(`mutate of ${operation}: ${data.warn}`);
    if (data.never) deny(data.never);
    if (data.add) {
      data.added = `${data.add}/~`;
      return { ...object, metadata: { ...object?.metadata, annotations: { 'example.com/by': 'hook' } }, data };
    }
    delete data.remove;
    return undefined;
  },
  validate({ object, oldObject, operation, subresource, deny, warn }) {
    const { data = {}, spec } = (object ?? oldObject) as Any;
    if (data.warn) warn(`validate: ${data.warn}`);
    if (data.keep && operation === 'DELETE') deny('it is kept', { code: 409, reason: 'Conflict' });
    if (data.no) deny(data.no);
    if (data.silent) deny('', { code: 418, reason: data.silent === 'reason' ? 'Teapot' : '' });
    if (data.code) deny('code', { code: Number(data.code), reason: data.reason ?? 'Other' });
    if (data.throw) throw new Error('secret');
    if (subresource === 'scale' && spec.replicas > 9) deny('at most 9');
  },
};

/** Hooks that never come to an end. */
const SLOW: AdmissionHooks = { validate: () => new Promise(() => {}) };

/** What a review said. */
const shown = ({
  operation,
  resource,
  subresource,
  namespace,
  name,
  dryRun,
  object,
  oldObject,
  options,
  user,
}: AdmissionReview): object => ({
  ...{ operation, resource, subresource, namespace, name, dryRun, options, username: (user as UserInfo).username },
  object: content(object),
  oldObject: content(oldObject),
});

/** An object, but for what each server makes by itself. */
function content(object: Any): unknown {
  if (object === undefined) return undefined;
  const { uid, creationTimestamp, resourceVersion, managedFields, generation, ...metadata } = object.metadata ?? {};
  return { ...object, metadata };
}

const folder = mkdtempSync(join(tmpdir(), 'watchmux-webhooks-'));
const real = component('kube-apiserver');
const test = it.skipIf(isMissing(real));

let theirs: ApiServer;
let ours: OurServer;
let http: Server;
let url = '';
let stop: () => Promise<void> = async () => {};
/** What hooks have seen, and thrown. */
const seen: { theirs: object[]; ours: object[] } = { theirs: [], ours: [] };
const thrown: { theirs: unknown[]; ours: unknown[] } = { theirs: [], ours: [] };

/** The hooks, which write down what they see, of what has been asked by a test. */
const watched = (side: 'theirs' | 'ours'): AdmissionHooks => ({
  mutate: (review) => hooks.mutate?.(review),
  validate: (review) => {
    if (review.namespace === 'default' || review.name === 'hooked') seen[side].push(shown(review));
    return hooks.validate?.(review);
  },
});

/** Registers webhooks at the kube-apiserver, and waits until they are asked. */
async function register(at: string, ca: string): Promise<void> {
  const custom = ['boxes.example.com/v1', 'crates.example.com/v1', 'crates.example.com/v2'];
  const registered = { name: 'hooks.example.com', resources: ['configmaps/v1', 'namespaces/v1', ...custom], at, ca };
  const slow = { name: 'slow.example.com', resources: ['secrets/v1'], at: `${at}/slow`, ca };
  const policy = (failurePolicy: string): object => ({ failurePolicy, objectSelector: { matchLabels: { slow: failurePolicy } } });
  const configurations = [
    ...webhookConfigurations(hooks, registered),
    ...['Fail', 'Ignore'].flatMap((each) =>
      webhookConfigurations(SLOW, { ...slow, name: `${each.toLowerCase()}.${slow.name}`, more: { ...policy(each) } }),
    ),
  ];
  for (const each of configurations) {
    await theirs.create(`/apis/admissionregistration.k8s.io/v1/${each.kind?.toLowerCase()}s`, each);
  }
  const probe = (data: object): Promise<unknown> => theirs.create(`${MAPS}?dryRun=All`, { metadata: { name: 'probe' }, data });
  for (const data of [{ never: 'yet' }, { no: 'yet' }]) await eventually(() => expect(probe(data)).rejects.toThrow(/denied/));
}

async function startOurs(): Promise<void> {
  const identity = { username: 'admin' };
  ours = new OurServer({
    ...{ storage: new MemoryStorage(), resources: BUILT_IN_KINDS, customResourceDefinitions: true, managedFields: 'always' },
    convert: { 'crates.example.com': convert },
    ...{ admission: watched('ours'), authenticate: () => identity, onError: (error) => void thrown.ours.push(error) },
  });
  http = createServer(ours.handler);
  await ours.ready;
  await new Promise<void>((resolve) => void http.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  if (isMissing(real)) return;
  const { ca, server: pair } = certify();
  const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  writeFileSync(certFile, pair.cert);
  writeFileSync(keyFile, pair.key);
  const webhooks = new Webhooks({ ...watched('theirs'), convert, onError: (error) => void thrown.theirs.push(error) });
  const slow = new Webhooks({ ...SLOW, timeoutMs: 100 });
  const handler: Webhooks['handler'] = (request, response) =>
    (request.url?.startsWith('/slow/') ? slow : webhooks).handler(request, response);
  const server = new WebhookServer({ webhooks: { handler }, certFile, keyFile, port: 0, host: '127.0.0.1' });
  const abort = new AbortController();
  const ran = server.run(abort.signal);
  stop = () => {
    abort.abort();
    return ran;
  };
  [theirs] = await Promise.all([startApiServer(), startOurs()]);
  const at = await server.ready;
  for (const base of [theirs.url, url]) {
    for (const crd of [BOXES_CRD, cratesCrd(at, ca)]) {
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(crd) };
      expect((await theirs.fetch(`${base}/apis/apiextensions.k8s.io/v1/customresourcedefinitions`, init)).status).toBe(201);
    }
    for (const path of [BOXES, `${CRATES}/v2/crates`]) {
      await eventually(async () => expect((await theirs.fetch(base + path)).status).toBe(200));
    }
  }
  await register(at, ca);
}, START_MS);

afterAll(async () => {
  await theirs?.stop();
  await ours?.shutdown();
  http?.closeAllConnections();
  http?.close();
  await stop();
  rmSync(folder, { recursive: true, force: true });
}, START_MS);

beforeEach(() => {
  for (const all of [seen, thrown]) all.theirs.length = all.ours.length = 0;
});

interface Got {
  readonly code: number;
  readonly body: Any;
  readonly warnings: string | null;
}

type Asked = readonly [method: string, path: string, body?: object | readonly unknown[], type?: string];

async function ask(base: string, [method, path, body, type = 'application/json']: Asked): Promise<Got> {
  const sent = body === undefined ? '' : JSON.stringify(body);
  const headers = { 'content-type': type, 'content-length': String(Buffer.byteLength(sent)) };
  const response = await theirs.fetch(base + path, { method, headers: method === 'GET' ? {} : headers, body: sent });
  const text = await response.text();
  if (!/^\{/.test(text)) throw new Error(`${base} ${method} ${path}: ${response.status} ${text}`);
  const made = JSON.parse(text.replace(/webhook \\"(mutate|validate)\.[^"\\]*\\"/g, 'webhook \\"$1\\"'));
  const { metadata, details, ...status } = made;
  // Clients read none and an empty one alike.
  if (status.reason === '') delete status.reason;
  const told = made.kind === 'Status' ? status : content(made);
  return { code: response.status, body: told, warnings: response.headers.get('warning') };
}

/** Asks both servers. Their answers, and what their hooks have seen, must be the same. */
async function both(...asked: Asked): Promise<Got> {
  const [one, other] = [await ask(theirs.url, asked), await ask(url, asked)];
  expect({ asked, ...other }).toEqual({ asked, ...one });
  expect({ asked, seen: seen.ours }).toEqual({ asked, seen: seen.theirs });
  return one;
}

const map = (name: string, data: object, more: object = {}): object => ({ metadata: { name, ...more }, data });
const MERGE = 'application/merge-patch+json';

/** What kubectl prints, without the names of webhooks and the address. Its warnings are on standard error. */
async function kubectl(base: string, args: readonly string[]): Promise<string> {
  const secure = base === theirs.url ? ['--certificate-authority', theirs.caFile, '--token', theirs.token] : [];
  const all = ['--server', base, ...secure, '--cache-dir', join(folder, base === url ? 'ours' : 'theirs'), ...args];
  const env = { PATH: process.env.PATH, HOME: folder, KUBECONFIG: join(folder, 'none') };
  const run = promisify(execFile)(component('kubectl').path, all, { env });
  const { stdout, stderr, code } = await run.then(
    (printed) => ({ ...printed, code: 0 }),
    (error: { stdout: string; stderr: string; code: number }) => error,
  );
  return `${code}\n${stdout}${stderr}`.replace(/webhook "(mutate|validate)\.[^"]*"/g, 'webhook "$1"');
}

describe('webhooks of a kube-apiserver and hooks of an ApiServer', () => {
  test('create, update, patch, apply, delete: allowed, changed', async () => {
    expect((await both('POST', MAPS, map('a', { k: '1' }))).code).toBe(201);
    const added = await both('POST', `${MAPS}?fieldManager=me&fieldValidation=Strict`, map('b', { add: 'x', remove: 'y' }));
    expect(added.body).toMatchObject({ metadata: { annotations: { 'example.com/by': 'hook' } }, data: { added: 'x/~' } });
    expect((await both('PUT', `${MAPS}/a`, map('a', { remove: 'me', stay: '1' }))).body.data).toEqual({ stay: '1' });
    await both('PATCH', `${MAPS}/a`, { data: { add: '2' } }, MERGE);
    await both('PATCH', `${MAPS}/a`, [{ op: 'remove', path: '/data/stay' }], 'application/json-patch+json');
    const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' }, data: { add: '3' } };
    await both('PATCH', `${MAPS}/c?fieldManager=me&force=true`, applied, 'application/apply-patch+yaml');
    await both('PATCH', `${MAPS}/c?fieldManager=me`, { ...applied, data: { add: '4' } }, 'application/apply-patch+yaml');
    await both('DELETE', `${MAPS}/a`, { propagationPolicy: 'Background' });
    await both('DELETE', `${MAPS}/b`);
    expect(seen.theirs.length).toBe(9);
  });

  test('dry runs are told, and change nothing', async () => {
    await both('POST', `${MAPS}?dryRun=All`, map('dry', { add: 'x' }));
    await both('GET', `${MAPS}/dry`);
    await both('POST', MAPS, map('wet', {}));
    await both('PUT', `${MAPS}/wet?dryRun=All`, map('wet', { add: 'x' }));
    await both('DELETE', `${MAPS}/wet?dryRun=All`);
    await both('GET', `${MAPS}/wet`);
    expect(seen.theirs.map((each) => (each as Any).dryRun)).toEqual([true, false, true, true]);
  });

  test('denials, with their codes, reasons and texts', async () => {
    const denied = await both('POST', MAPS, map('no', { no: 'not "here"' }));
    expect([denied.code, denied.body.message]).toEqual([403, 'admission webhook "validate" denied the request: not "here"']);
    for (const data of [
      { never: 'x' },
      { silent: 'reason' },
      { silent: 'all' },
      { code: '409' },
      { code: '200' },
      { code: '599' },
    ]) {
      expect((await both('POST', MAPS, map('no', data))).code).toBeGreaterThanOrEqual(400);
    }
    await both('POST', MAPS, map('kept', { keep: 'y' }));
    for (const [code, reason] of [
      [409, 'Conflict'],
      [404, 'NotFound'],
      [409, 'AlreadyExists'],
      [410, 'Expired'],
      [504, 'Timeout'],
    ] as const) {
      expect((await both('PATCH', `${MAPS}/kept`, { data: { code: `${code}`, reason } }, MERGE)).body.message).toMatch(/: code$/);
      expect((await both('POST', MAPS, map('no', { code: `${code}`, reason }))).body.reason).toBe(reason);
    }
    expect((await both('DELETE', `${MAPS}/kept`)).code).toBe(409);
    expect((await both('PATCH', `${MAPS}/kept`, { data: { no: 'change' } }, MERGE)).code).toBe(403);
    await both('GET', `${MAPS}/kept`);
  });

  test('warnings', async () => {
    const { warnings } = await both('POST', MAPS, map('warned', { warn: 'mind "it"' }));
    expect(warnings).toBe('299 - "mutate of CREATE: mind \\"it\\"", 299 - "validate: mind \\"it\\""');
    await both('POST', MAPS, map('warned-no', { warn: 'x', no: 'y' }));
    await both('DELETE', `${MAPS}/warned`);
  });

  test('custom kinds with status and scale', async () => {
    const box = { apiVersion: 'example.com/v1', kind: 'Box', metadata: { name: 'box' }, spec: { replicas: 1 } };
    await both('POST', BOXES, box);
    await both('PATCH', `${BOXES}/box/status`, { status: { replicas: 1 } }, MERGE);
    await both('PATCH', `${BOXES}/box/scale`, { spec: { replicas: 3 } }, MERGE);
    expect((await both('PATCH', `${BOXES}/box/scale`, { spec: { replicas: 10 } }, MERGE)).body.message).toMatch(/at most 9/);
    await both('DELETE', `${BOXES}/box`);
  });

  test('an object whose name the server makes, and namespaces', async () => {
    await both('POST', '/api/v1/namespaces', { metadata: { name: 'hooked' } });
    for (const side of ['theirs', 'ours'] as const) seen[side].length = 0;
    const named = [theirs.url, url].map((base) => ask(base, ['POST', MAPS, { metadata: { generateName: 'made-' } }]));
    for (const { code } of await Promise.all(named)) expect(code).toBe(201);
    const without = (each: Any): object => ({ ...each, object: undefined, name: each.name.slice(0, 5) });
    expect(seen.ours.map(without)).toEqual(seen.theirs.map(without));
  });

  it.skipIf(isMissing(real) || isMissing(component('kubectl')))('what kubectl prints', async () => {
    const printed = async (...args: readonly string[]): Promise<string> => {
      const [one, other] = [await kubectl(theirs.url, args), await kubectl(url, args)];
      expect({ args, text: other }).toEqual({ args, text: one });
      return one;
    };
    const create = (name: string, literal: string): Promise<string> =>
      printed('create', 'configmap', name, `--from-literal=${literal}`);
    expect(await create('said', 'no=not here')).toBe(
      '1\nerror: failed to create configmap: admission webhook "validate" denied the request: not here\n',
    );
    expect(await create('said', 'warn=mind it')).toBe(
      '0\nconfigmap/said created\nWarning: mutate of CREATE: mind it\nWarning: validate: mind it\n',
    );
    await printed('annotate', 'configmap', 'said', 'a=b');
    await printed('patch', 'configmap', 'said', '--patch', '{"data":{"code":"409"}}');
    await printed('delete', 'configmap', 'said', '--dry-run=server');
    await printed('delete', 'configmap', 'said');
  });

  test('a hook that throws is a 500, and only onError learns why', async () => {
    const [one, other] = [
      await ask(theirs.url, ['POST', MAPS, map('x', { throw: '1' })]),
      await ask(url, ['POST', MAPS, map('x', { throw: '1' })]),
    ];
    expect([one.code, other.code, one.body.reason, other.body.reason]).toEqual([500, 500, 'InternalError', 'InternalError']);
    expect(JSON.stringify([one, other])).not.toContain('secret');
    expect([thrown.theirs.length, thrown.ours.length]).toEqual([1, 1]);
  });

  test('one that takes too long has failed: what becomes of the write is up to the failurePolicy', async () => {
    const secret = (slow: string): Asked => [
      'POST',
      '/api/v1/namespaces/default/secrets?dryRun=All',
      map('s', {}, { labels: { slow } }),
    ];
    expect((await ask(theirs.url, secret('Ignore'))).code).toBe(201);
    const { code, body } = await ask(theirs.url, secret('Fail'));
    expect([code, body.reason]).toEqual([500, 'InternalError']);
    expect(body.message).toMatch(
      /failed calling webhook "validate": failed to call webhook: .*did not complete within the allowed/,
    );
  });

  test('versions of a kind', async () => {
    const crate = (version: string, spec: object, name: string): Asked => [
      ...(['POST', `${CRATES}/${version}/namespaces/default/crates`] as const),
      { apiVersion: `example.com/${version}`, kind: 'Crate', metadata: { name }, spec },
    ];
    await both(...crate('v1', { size: '2x3' }, 'one'));
    await both(...crate('v2', { width: 4, height: 5 }, 'two'));
    const got = await both('GET', `${CRATES}/v2/namespaces/default/crates/one`);
    expect(got.body).toMatchObject({ apiVersion: 'example.com/v2', spec: { width: 2, height: 3 } });
    for (const version of ['v1', 'v2']) {
      const specs = await Promise.all([theirs.url, url].map((base) => ask(base, ['GET', `${CRATES}/${version}/crates`])));
      const [one, other] = specs.map(({ body }) => body.items.map(({ spec }: Any) => spec));
      expect(other).toEqual(one);
    }
    expect((await ask(theirs.url, crate('v2', { fail: true }, 'three'))).code).toBe(500);
    expect((await ask(url, crate('v2', { fail: true }, 'three'))).code).toBe(500);
  });

  test('any change arrives as it is', async () => {
    const sample = fc.sample(edited, { numRuns: runs(200), seed: 1 });
    for (const { before, after } of sample) {
      const box = { apiVersion: 'example.com/v1', kind: 'Box', metadata: { name: 'any' }, spec: before };
      changes.set('any', after);
      const got = await ask(theirs.url, ['POST', `${BOXES}?dryRun=All`, box]);
      expect([got.code, canonical(got.body.spec)]).toEqual([201, canonical(after)]);
    }
  });
});
