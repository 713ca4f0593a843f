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
import { type AdmissionHooks, type AdmissionReview, BUILT_IN_KINDS, ApiServer as OurServer } from '../../src/apiserver/index.ts';
import { type UserInfo, WebhookServer, Webhooks } from '../../src/operator/index.ts';
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

const RULES = [
  { operations: ['*'], apiVersions: ['*'], apiGroups: [''], resources: ['configmaps', 'namespaces'] },
  { operations: ['*'], apiVersions: ['*'], apiGroups: ['example.com'], resources: ['boxes', 'boxes/*'] },
];

/** Registers webhooks at the kube-apiserver, and waits until they are asked. */
async function register(at: string, ca: string): Promise<void> {
  for (const [kind, hook] of [
    ['Mutating', 'mutate'],
    ['Validating', 'validate'],
  ] as const) {
    await theirs.create(`/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}webhookconfigurations`, {
      ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: `${kind}WebhookConfiguration`, metadata: { name: hook } },
      webhooks: [
        {
          ...{ name: `${hook}.hooks.example.com`, rules: RULES, timeoutSeconds: 10 },
          clientConfig: { url: `${at}/${hook}`, caBundle: Buffer.from(ca).toString('base64') },
          ...{ sideEffects: 'None', admissionReviewVersions: ['v1'], failurePolicy: 'Fail' },
        },
      ],
    });
  }
  const probe = (data: object): Promise<unknown> => theirs.create(`${MAPS}?dryRun=All`, { metadata: { name: 'probe' }, data });
  for (const data of [{ never: 'yet' }, { no: 'yet' }]) await eventually(() => expect(probe(data)).rejects.toThrow(/denied/));
}

async function startOurs(): Promise<void> {
  const identity = { username: 'admin' };
  ours = new OurServer({
    ...{ storage: new MemoryStorage(), resources: BUILT_IN_KINDS, customResourceDefinitions: true, managedFields: 'always' },
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
  const webhooks = new Webhooks({ ...watched('theirs'), onError: (error) => void thrown.theirs.push(error) });
  const server = new WebhookServer({ webhooks, certFile, keyFile, port: 0, host: '127.0.0.1' });
  const abort = new AbortController();
  const ran = server.run(abort.signal);
  stop = () => {
    abort.abort();
    return ran;
  };
  [theirs] = await Promise.all([startApiServer(), startOurs()]);
  for (const [at, fetch] of [
    [theirs.url, theirs.fetch],
    [url, theirs.fetch],
  ] as const) {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(BOXES_CRD) };
    expect((await fetch(`${at}/apis/apiextensions.k8s.io/v1/customresourcedefinitions`, init)).status).toBe(201);
    await eventually(async () => expect((await fetch(`${at}${BOXES}`)).status).toBe(200));
  }
  await register(await server.ready, ca);
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
  const { stdout, stderr, code = 0 } = await run.catch((error: { stdout: string; stderr: string; code: number }) => error);
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
