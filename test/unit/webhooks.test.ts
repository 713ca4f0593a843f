// The hooks of an ApiServer, as webhooks: the same functions give the same answers in process, over node:http and by fetch; and what is
// no review, too much, or too slow, is refused.
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { AdmissionHooks, AdmissionReview } from '../../src/apiserver/index.ts';
import { jsonPatch, toOperations } from '../../src/apiserver/patch/json-patch.ts';
import { type UserInfo, Webhooks, type WebhooksOptions } from '../../src/operator/index.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { eventually } from '../eventually.ts';
import { type Answered, ORDERS_PATH, rig } from './apiserver-rig.ts';
import { macrotask } from './support.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

// biome-ignore lint/suspicious/noExplicitAny: tests look into what came over the wire
type Any = any;

/** Sends a body to a path. */
type Send = (path: string, body: unknown, init?: RequestInit) => Promise<Answered>;

async function answered(response: Response): Promise<Answered> {
  const text = await response.text();
  return { code: response.status, headers: response.headers, text, body: text === '' ? undefined : JSON.parse(text) };
}

const post = (body: unknown, init: RequestInit = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: typeof body === 'string' ? body : JSON.stringify(body),
  ...init,
});

const byFetch =
  (webhooks: Webhooks): Send =>
  async (path, body, init) =>
    answered(await webhooks.fetch(new Request(`http://127.0.0.1${path}`, post(body, init))));

async function urlOf(webhooks: Webhooks): Promise<string> {
  const server = createServer(webhooks.handler);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function byNode(webhooks: Webhooks): Promise<Send> {
  const url = await urlOf(webhooks);
  return async (path, body, init) => answered(await fetch(url + path, post(body, init)));
}

const ORDER = { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'a', namespace: 'default' }, spec: { item: 'x' } };

/** A request, as a kube-apiserver makes it. */
const reviewOf = (request: object = {}): object => ({
  kind: 'AdmissionReview',
  apiVersion: 'admission.k8s.io/v1',
  request: {
    uid: 'u-1',
    kind: { group: 'example.com', version: 'v1', kind: 'Order' },
    resource: { group: 'example.com', version: 'v1', resource: 'orders' },
    requestKind: { group: 'example.com', version: 'v1', kind: 'Order' },
    name: 'a',
    namespace: 'default',
    operation: 'CREATE',
    userInfo: { username: 'ann', groups: ['g'], extra: { scopes: ['s'] } },
    object: ORDER,
    oldObject: null,
    dryRun: false,
    options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', fieldManager: 'me', dryRun: ['All'] },
    ...request,
  },
});

const patchIn = ({ patch }: { readonly patch?: string }): unknown[] =>
  patch === undefined ? [] : (JSON.parse(Buffer.from(patch, 'base64').toString()) as unknown[]);

/** What becomes of a write. */
interface Outcome {
  readonly code: number;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly spec?: unknown;
  readonly labels?: unknown;
  readonly warnings: readonly string[];
}

/** What a kube-apiserver makes of the answers: it calls both webhooks, applies the patch, and says why not. */
async function written(send: Send, hooks: AdmissionHooks): Promise<Outcome> {
  let object: Any = ORDER;
  const warnings: string[] = [];
  for (const hook of ['mutate', 'validate'] as const) {
    if (!hooks[hook]) continue;
    const { code, body } = await send(`/${hook}`, reviewOf({ object }));
    expect([code, body.kind, body.apiVersion, body.response.uid]).toEqual([200, 'AdmissionReview', 'admission.k8s.io/v1', 'u-1']);
    const { allowed, status, warnings: told = [], patchType } = body.response;
    warnings.push(...told);
    if (!allowed) {
      const why = status.message || status.reason;
      const text = `admission webhook "${hook}.orders.example.com" denied the request${why ? `: ${why}` : ' without explanation'}`;
      return { code: Math.max(status.code, 400), reason: status.reason ?? '', message: text, warnings };
    }
    const patch = patchIn(body.response);
    expect(patchType).toBe(patch.length > 0 ? 'JSONPatch' : undefined);
    object = atOnce(jsonPatch(object, atOnce(toOperations(patch))));
  }
  return { code: 201, spec: object.spec, labels: object.metadata.labels, warnings };
}

async function inProcess(hooks: AdmissionHooks): Promise<Outcome> {
  const { call, server } = rig({ admission: hooks });
  closing.push(() => server.shutdown());
  const { code, body, headers } = await call('POST', ORDERS_PATH, ORDER);
  const warnings = (headers.get('warning') ?? '').split(', ').flatMap((each) => /^299 - "(.*)"$/.exec(each)?.[1] ?? []);
  if (code >= 400) return { code, reason: body.reason ?? '', message: body.message, warnings };
  return { code, spec: body.spec, labels: body.metadata.labels, warnings };
}

const CASES: readonly (readonly [name: string, hooks: AdmissionHooks<never>, expected: Partial<Outcome>])[] = [
  ['allow', { validate: () => {} }, { code: 201, spec: { item: 'x' } }],
  ['allow later', { validate: async () => {} }, { code: 201 }],
  [
    'deny',
    { validate: ({ deny }) => deny('no') },
    { code: 403, reason: 'Forbidden', message: expect.stringMatching(/: no$/) as Any },
  ],
  ['deny later', { validate: async ({ deny }) => deny('no') }, { code: 403 }],
  [
    'deny with a code and a reason',
    { validate: ({ deny }) => deny('no', { code: 409, reason: 'Conflict' }) },
    { code: 409, reason: 'Conflict' },
  ],
  ['deny with an impossible code', { validate: ({ deny }) => deny('no', { code: 200 }) }, { code: 400 }],
  ['deny without a text', { validate: ({ deny }) => deny('') }, { message: expect.stringMatching(/: Forbidden$/) as Any }],
  [
    'deny without anything',
    { validate: ({ deny }) => deny('', { reason: '' }) },
    { message: expect.stringMatching(/ without explanation$/) as Any },
  ],
  [
    'deny in mutate',
    { mutate: ({ deny }) => deny('no') },
    { code: 403, message: expect.stringMatching(/"mutate\..*: no$/) as Any },
  ],
  ['promise nothing', { validate: async () => {} }, { code: 201 }],
  [
    'change what only mutate may change',
    {
      validate: ({ object }) => {
        (object as Any).spec = { item: 7 };
        (object as Any).metadata.labels = { a: 'b' };
      },
    },
    { code: 201, spec: { item: 'x' } },
  ],
  ['warn', { validate: ({ warn }) => ['one', 'two'].forEach(warn) }, { code: 201, warnings: ['one', 'two'] }],
  [
    'warn and deny',
    {
      validate: ({ warn, deny }) => {
        warn('one');
        deny('no');
      },
    },
    { code: 403, warnings: ['one'] },
  ],
  [
    'warn in both',
    { mutate: ({ warn }) => warn('one'), validate: ({ warn }) => warn('two') },
    { code: 201, warnings: ['one', 'two'] },
  ],
  [
    'change in place',
    {
      mutate: ({ object }) => {
        (object as Any).spec.count = 2;
        delete (object as Any).spec.item;
      },
    },
    { spec: { count: 2 } },
  ],
  [
    'change by another object, with what JSON knows otherwise',
    { mutate: async ({ object }) => ({ ...object, spec: { count: undefined, item: 'y', at: new Date(0) } }) },
    { spec: { item: 'y', at: '1970-01-01T00:00:00.000Z' } },
  ],
  ['a name that needs escapes', { mutate: ({ object }) => ({ ...object, spec: { 'a/b~c': '1' } }) }, { spec: { 'a/b~c': '1' } }],
  [
    'validate sees what mutate has made',
    {
      mutate: ({ object }) => ({ ...object, spec: { item: 'made' } }),
      validate: ({ object, deny }) => deny((object as Any).spec.item),
    },
    { code: 403, message: expect.stringMatching(/: made$/) as Any },
  ],
];

describe('the same functions', () => {
  test.each(CASES)('%s', async (_, hooks, expected) => {
    const outcome = await inProcess(hooks);
    expect(outcome).toMatchObject(expected);
    expect(await written(byFetch(new Webhooks(hooks)), hooks)).toEqual(outcome);
    expect(await written(await byNode(new Webhooks(hooks)), hooks)).toEqual(outcome);
  });

  test.each<[string, AdmissionHooks]>([
    ['validate', { validate: () => Promise.reject(new Error('secret')) }],
    [
      'mutate',
      {
        mutate: () => {
          throw new Error('secret');
        },
      },
    ],
    ['mutate', { mutate: () => 'text' }],
    ...[false, true, 0, 'secret', [], [{ field: 'spec.item', message: 'secret' }], { allowed: false }].flatMap(
      (said): [string, AdmissionHooks][] => [
        ['validate', { validate: () => said as never }],
        ['validate', { validate: () => Promise.resolve(said) as never }],
      ],
    ),
  ])('what %s throws, or returns without a meaning, is a 500 without the reason, which onError gets', async (hook, hooks) => {
    const errors: unknown[] = [];
    const outcome = await inProcess(hooks);
    const { code, body, text } = await byFetch(new Webhooks({ ...hooks, onError: (error) => errors.push(error) }))(
      `/${hook}`,
      reviewOf(),
    );
    expect([code, body.response.allowed, body.response.uid]).toEqual([200, false, 'u-1']);
    expect([body.response.status.code, body.response.status.reason]).toEqual([outcome.code, outcome.reason]);
    expect(outcome.code).toBe(500);
    expect(text).not.toContain('secret');
    expect(errors).toEqual([expect.objectContaining({ message: `webhook: ${hook} of orders.example.com failed` })]);
  });

  test('see the same of a write', async () => {
    const seen: AdmissionReview[] = [];
    const validate = (review: AdmissionReview): void => void seen.push(review);
    const { call, server } = rig({ admission: { validate }, authenticate: () => ({ username: 'ann' }) });
    closing.push(() => server.shutdown());
    await call('POST', `${ORDERS_PATH}?fieldManager=me`, ORDER);
    await byFetch(new Webhooks({ validate }))('/validate', reviewOf());
    const shown = seen.map(({ object, user, ...rest }) => ({
      ...rest,
      who: (user as UserInfo).username,
      item: (object as Any).spec.item,
    }));
    expect(shown[1]).toEqual({ ...shown[0], signal: expect.any(AbortSignal), warn: expect.any(Function) });
    expect(shown[0]).toMatchObject({ operation: 'CREATE', resource: 'orders.example.com', options: { fieldManager: 'me' } });
  });
});

describe('a review', () => {
  test('of the core group, of a part of an object, of a deletion, of a connection', async () => {
    const seen: AdmissionReview<UserInfo>[] = [];
    const send = byFetch(
      new Webhooks({ validate: (review) => void seen.push(review), mutate: (review) => void seen.push(review) }),
    );
    const pods = { resource: { group: '', version: 'v1', resource: 'pods' }, operation: 'CONNECT', subResource: 'exec' };
    await send('/validate', reviewOf({ ...pods, object: { kind: 'PodExecOptions', command: ['sh'] } }));
    const gone = {
      operation: 'DELETE',
      object: null,
      oldObject: ORDER,
      options: { propagationPolicy: 'Orphan', gracePeriodSeconds: 0 },
    };
    await send('/validate', reviewOf({ ...gone, namespace: undefined, dryRun: undefined }));
    expect((await send('/mutate', reviewOf(gone))).body.response).toEqual({ uid: 'u-1', allowed: true });
    expect(seen).toMatchObject([
      { operation: 'CONNECT', resource: 'pods', subresource: 'exec', object: { kind: 'PodExecOptions' }, oldObject: undefined },
      {
        ...{ operation: 'DELETE', namespace: undefined, object: undefined, oldObject: ORDER, dryRun: false },
        options: { propagationPolicy: 'Orphan', gracePeriodSeconds: '0' },
        user: { username: 'ann', groups: ['g'], extra: { scopes: ['s'] } },
      },
    ]);
    expect(seen).toHaveLength(2);
  });

  test.each<[what: string, body: unknown, code: number, message: RegExp]>([
    ['no JSON', '{', 400, /not JSON in UTF-8/],
    ['a list', [], 400, /the body: expected an object of the kind AdmissionReview/],
    ['another kind', { kind: 'Pod' }, 400, /kind: expected AdmissionReview, got "Pod"/],
    ['another version', { ...reviewOf(), apiVersion: 'admission.k8s.io/v1beta1' }, 400, /expected admission.k8s.io\/v1, got/],
    ['no request', { ...reviewOf(), request: undefined }, 400, /request: expected an object/],
    ['no uid', reviewOf({ uid: '' }), 400, /uid: expected a text, got ""/],
    ['an operation that is none', reviewOf({ operation: 'create' }), 400, /request.operation: expected one of CREATE/],
    ['no resource', reviewOf({ resource: 'orders' }), 400, /request.resource: expected an object/],
    ['a nameless resource', reviewOf({ resource: { group: 'g' } }), 400, /resource: expected a text/],
    ['an object that is none', reviewOf({ object: [] }), 400, /request.object: expected an object/],
    ['an old object that is none', reviewOf({ oldObject: 'x' }), 400, /request.oldObject: expected an object/],
    ['a user that is none', reviewOf({ userInfo: 'ann' }), 400, /request.userInfo: expected an object/],
    ['a dry run that is none', reviewOf({ dryRun: 'All' }), 400, /request.dryRun: expected true or false/],
    ['a number that cannot be kept', JSON.stringify(reviewOf()).replace('"x"', '9007199254740993'), 400, /cannot be kept/],
    ['nesting', JSON.stringify(reviewOf()).replace('"x"', `${'['.repeat(200)}${']'.repeat(200)}`), 400, /nested deeper/],
    ['too many parts', reviewOf({ object: { list: Array.from({ length: 210_000 }, () => []) } }), 413, /exceeds the limit/],
    ['too many bytes', reviewOf({ object: { text: 'x'.repeat(7 * 2 ** 20) } }), 413, /limit is 7340032/],
  ])('that is %s is refused before a hook is called', async (_, body, code, message) => {
    let calls = 0;
    const webhooks = new Webhooks({ validate: () => void calls++ });
    const answers = await Promise.all([byFetch(webhooks)('/validate', body), (await byNode(webhooks))('/validate', body)]);
    for (const answer of answers) {
      expect([answer.code, answer.body.kind, answer.body.code]).toEqual([code, 'Status', code]);
      expect(answer.body.message).toMatch(message);
    }
    expect([calls, webhooks.inWork]).toEqual([0, 0]);
  });

  test.each<[path: string, init: RequestInit, code: number, message: RegExp]>([
    ['/', {}, 404, /could not find/],
    ['/mutate', {}, 404, /could not find/], // there is no such function
    ['/validates', {}, 404, /could not find/],
    ['/validate/orders', {}, 404, /could not find/],
    ['/validate', { method: 'GET', body: null }, 405, /expected POST, got GET/],
    [
      '/validate',
      { headers: { 'content-type': 'text/json' } },
      415,
      /expected the content type application\/json, got "text\/json"/,
    ],
    ['/validate?timeout=soon', {}, 400, /timeout: expected a time such as 10s, got "soon"/],
    ['/validate?timeout=0s', {}, 400, /timeout: expected/],
    ['/validate', {}, 200, /^$/],
    ['/any/where/validate?timeout=5s', {}, 200, /^$/],
    ['/validate-example-com-v1-order', { headers: { 'content-type': 'Application/JSON; charset=utf-8' } }, 200, /^$/],
  ])('at %s with %o is answered with %d', async (path, init, code, message) => {
    const webhooks = new Webhooks({ validate: () => {} });
    for (const send of [byFetch(webhooks), await byNode(webhooks)]) {
      const answer = await send(path, reviewOf(), init);
      expect(answer.code).toBe(code);
      expect(answer.body.message ?? '').toMatch(message);
    }
  });
});

describe('time', () => {
  const never = (): Promise<never> => new Promise(() => {});

  test.each([
    ['', 10_000],
    ['?timeout=3s', 3_000],
    ['?timeout=30s', 10_000],
    ['?timeout=500ms', 500],
  ])('with %j, a hook has %d ms, and hears that they are over', async (query, limitMs) => {
    const clock = new FakeClock();
    let heard: AbortSignal | undefined;
    const validate = ({ signal }: AdmissionReview): Promise<never> => {
      heard = signal;
      return never();
    };
    const webhooks = new Webhooks({ validate, clock });
    const answer = byFetch(webhooks)(`/validate${query}`, reviewOf());
    await eventually(() => expect(heard).toBeDefined());
    clock.advance(limitMs - 1);
    expect([heard?.aborted, webhooks.inWork]).toEqual([false, 1]);
    clock.advance(1);
    expect(heard?.aborted).toBe(true);
    expect([(await answer).code, webhooks.inWork]).toEqual([504, 0]);
  });

  test('a hook that fails after that is told, unless it has only heeded the signal, or denied', async () => {
    const clock = new FakeClock();
    const told: string[] = [];
    for (const failure of [() => new Error('late'), ({ signal }: AdmissionReview) => signal.reason, undefined]) {
      let end = (): void => {};
      const validate = async (review: AdmissionReview): Promise<void> => {
        await new Promise<void>((resolve) => {
          end = resolve;
        });
        if (failure) throw failure(review);
        review.deny('no');
      };
      const onError = async (error: unknown): Promise<never> => {
        told.push(`${(error as Error).message}: ${((error as Error).cause as Error).message}`);
        throw new Error('an async onError that rejects ends nothing');
      };
      const webhooks = new Webhooks({ validate, clock, onError });
      const answer = byFetch(webhooks)('/validate', reviewOf());
      await eventually(() => expect(String(end)).toContain('native'));
      clock.advance(10_000);
      expect((await answer).code).toBe(504);
      end();
      await macrotask();
    }
    expect(told).toEqual(['webhook: validate of orders.example.com failed after its timeout: late']);
  });

  test('a body that does not come is not waited for', async () => {
    const clock = new FakeClock();
    const webhooks = new Webhooks({ validate: () => {}, clock });
    const headers = { 'content-type': 'application/json', 'content-length': '100' };
    const request = httpRequest(`${await urlOf(webhooks)}/validate`, { method: 'POST', headers });
    const code = new Promise((resolve) => request.on('response', (response) => resolve(response.resume().statusCode)));
    request.on('error', () => {});
    request.write('{');
    await eventually(() => expect(webhooks.inWork).toBe(1));
    clock.advance(10_000);
    expect(await code).toBe(504);
    request.destroy();
    expect(webhooks.inWork).toBe(0);
  });

  test('nobody waits for a client that has left, and its hook hears of it', async () => {
    const errors: unknown[] = [];
    let heard: AbortSignal | undefined;
    const validate = ({ signal }: AdmissionReview): Promise<never> => {
      heard = signal;
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const webhooks = new Webhooks({ validate, clock: new FakeClock(), onError: (error) => errors.push(error) });
    for (const send of [byFetch(webhooks), await byNode(webhooks)]) {
      const abort = new AbortController();
      heard = undefined;
      const gone = send('/validate', reviewOf(), { signal: abort.signal }).catch(() => 'gone');
      await eventually(() => expect(heard).toBeDefined());
      abort.abort();
      await eventually(() => expect(webhooks.inWork).toBe(0));
      expect(heard).toMatchObject({ aborted: true });
      await gone;
    }
    expect(errors).toEqual([]);
  });

  test('so many at a time, and no more', async () => {
    const calls: (() => void)[] = [];
    const validate = (): Promise<void> => new Promise((resolve) => void calls.push(resolve));
    const webhooks = new Webhooks({ validate, maxConcurrentRequests: 2 });
    const send = byFetch(webhooks);
    const two = [send('/validate', reviewOf()), send('/validate', reviewOf())];
    await eventually(() => expect(calls.length).toBe(2));
    const third = await send('/validate', reviewOf());
    expect([third.code, third.headers.get('retry-after')]).toEqual([429, '1']);
    for (const end of calls) end();
    expect((await Promise.all(two)).map(({ code }) => code)).toEqual([200, 200]);
    const again = send('/validate', reviewOf());
    await eventually(() => expect(calls.length).toBe(3));
    calls[2]?.();
    expect((await again).code).toBe(200);
  });
});

describe('convert', () => {
  const reviewed = (objects: unknown): object => ({
    ...{ kind: 'ConversionReview', apiVersion: 'apiextensions.k8s.io/v1' },
    request: { uid: 'u-2', desiredAPIVersion: 'example.com/v2', objects },
  });
  const convert: WebhooksOptions['convert'] = (object, apiVersion) => {
    if (object.metadata?.name === 'bad') throw new Error('secret');
    return { ...object, apiVersion };
  };

  test('turns each object', async () => {
    const { body } = await byFetch(new Webhooks({ convert }))('/convert', reviewed([ORDER, ORDER]));
    const converted = { ...ORDER, apiVersion: 'example.com/v2' };
    expect(body).toEqual({
      ...{ kind: 'ConversionReview', apiVersion: 'apiextensions.k8s.io/v1' },
      response: { uid: 'u-2', result: { status: 'Success' }, convertedObjects: [converted, converted] },
    });
  });

  test('fails as a whole, and says why to onError alone', async () => {
    const errors: unknown[] = [];
    const webhooks = new Webhooks({ convert, onError: (error) => errors.push(error) });
    const { code, body, text } = await byFetch(webhooks)('/convert', reviewed([ORDER, { metadata: { name: 'bad' } }]));
    expect([code, body.response.uid, body.response.result.status, body.response.convertedObjects]).toEqual([
      200,
      'u-2',
      'Failure',
      undefined,
    ]);
    expect([text.includes('secret'), errors.length]).toEqual([false, 1]);
    expect((await byFetch(webhooks)('/convert', reviewed({}))).code).toBe(400);
  });

  test('takes lists that are longer than one object may be', async () => {
    const page = Array.from({ length: 500 }, () => ({ ...ORDER, spec: { item: 'x'.repeat(20_000) } }));
    const { code, body } = await byFetch(new Webhooks({ convert }))('/convert', reviewed(page));
    expect([code, body.response.convertedObjects.length]).toEqual([200, 500]);
    const small = byFetch(new Webhooks({ convert, validate: () => {}, maxBodyBytes: 1_000 }));
    expect((await small('/validate', reviewOf({ object: { text: 'x'.repeat(1_000) } }))).code).toBe(413);
    expect((await small('/convert', reviewed([{ text: 'x'.repeat(15_000) }]))).code).toBe(200);
    expect((await small('/convert', reviewed([{ text: 'x'.repeat(16_000) }]))).text).toContain('limit is 16000');
  });
});

describe('options', () => {
  test.each<[Any, RegExp]>([
    [{}, /at least one of mutate, validate and convert/],
    [{ validate: true }, /validate: expected a function/],
    [{ validate: () => {}, timeoutMs: 0 }, /timeoutMs: expected a whole number >= 1/],
    [{ validate: () => {}, maxBodyBytes: -1 }, /maxBodyBytes/],
    [{ validate: () => {}, validates: 1 }, /did you mean validate/],
  ])('%o is refused', (options, message) => {
    expect(() => new Webhooks(options)).toThrow(message);
  });
});
