// One question to one webhook: what is sent, which answers count, and when it is sent again. registered-webhooks.test.ts has what becomes of
// the answers.
import { getEventListeners } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CallFailed, Calls, type WebhookAnswer } from '../../src/apiserver/webhooks/calls.ts';
import type { WebhookDefinition } from '../../src/apiserver/webhooks/configurations.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { type Clock, systemClock } from '../../src/watch/clock.ts';
import { setPace } from '../../src/watch/fair-queue.ts';
import { eventually } from '../eventually.ts';
import { patched, type ReviewServer, startReviewServer } from './review-server.ts';

let reviews: ReviewServer;
let calls: Calls;
beforeAll(async () => {
  reviews = await startReviewServer();
});
afterEach(() => {
  calls.stop();
  reviews.asked.length = 0;
  reviews.decide.clear();
});
afterAll(() => reviews.stop());

const hook = (more: object = {}): WebhookDefinition => ({
  ...{ name: 'a.example.com', admissionReviewVersions: ['v1'], sideEffects: 'None', timeoutSeconds: 7 },
  ...{ failurePolicy: 'Fail', matchPolicy: 'Exact', namespaceSelector: {}, objectSelector: {} },
  clientConfig: { url: `${reviews.url}/a`, caBundle: reviews.ca },
  ...more,
});

interface Asking {
  readonly more?: object | undefined;
  readonly isMutating?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly serviceAddress?: () => string | undefined;
  readonly clock?: Clock;
  readonly request?: object;
}

function ask({ serviceAddress, clock = systemClock, ...asking }: Asking = {}): Promise<WebhookAnswer> {
  calls = new Calls({ clock, uid: () => 'uid-1', serviceAddress });
  return again(asking);
}

const again = ({ more, isMutating = true, signal, request = { name: 'é' } }: Asking = {}): Promise<WebhookAnswer> =>
  calls.ask(hook(more), request, { isMutating, signal });

async function errorOf(asked: Promise<unknown>): Promise<Error> {
  const error = await asked.then(
    (answer) => new Error(`answered ${JSON.stringify(answer)}`),
    (reason: Error) => reason,
  );
  expect(error).toBeInstanceOf(CallFailed);
  return error;
}

/** Why it could not be asked, without the name of the webhook. */
async function failureOf(asked: Promise<unknown>): Promise<string> {
  const error = await errorOf(asked);
  return error.message.replace('failed calling webhook "a.example.com": ', '').replace(reviews.url, 'https://hook');
}

const POST = 'failed to call webhook: Post "https://hook/a?timeout=7s": ';
const INVALID = 'received invalid webhook response: ';

describe('a question', () => {
  it('has a uid, is JSON, and says its size in bytes', async () => {
    await ask();
    const [asked] = reviews.asked;
    expect([asked?.method, asked?.path]).toEqual(['POST', '/a?timeout=7s']);
    const request = { uid: 'uid-1', name: 'é' };
    expect(asked?.review).toEqual({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', request });
    expect(asked?.headers).toMatchObject({
      ...{ 'content-type': 'application/json', accept: 'application/json' },
      'content-length': `${new TextEncoder().encode(JSON.stringify(asked?.review)).length}`,
    });
  });

  it('is in the first version of reviews that is known', async () => {
    reviews.decide.set('/a', () => ({ uid: 'other', allowed: true, patchType: 'Merge', warnings: ['w'] }));
    // In v1beta1, neither the uid nor the type of a patch counts.
    const more = { admissionReviewVersions: ['v2', 'v1beta1', 'v1'] };
    expect(await ask({ more })).toEqual({ allowed: true, status: {}, warnings: ['w'], patch: undefined });
    expect(reviews.asked[0]?.review.apiVersion).toBe('admission.k8s.io/v1beta1');
  });

  it('goes over a connection that is kept', async () => {
    await ask();
    await again();
    const [first, second] = reviews.asked.map(({ port }) => port);
    expect([second, reviews.asked.length]).toEqual([first, 2]);
  });

  it('goes over connections of its own server', async () => {
    await ask();
    await ask();
    const [first, second] = reviews.asked.map(({ port }) => port);
    expect(second).not.toBe(first);
  });

  it('goes to the address of a service, whose certificate has its name, and to its path', async () => {
    const service = { namespace: 'n', name: 'hooks', port: 443 };
    for (const [path, expected] of [
      [undefined, '/?timeout=7s'],
      ['', '/?timeout=7s'],
      ['/x', '/x?timeout=7s'],
    ]) {
      reviews.asked.length = 0;
      const more = { clientConfig: { service: { ...service, path }, caBundle: reviews.ca } };
      await ask({ more, serviceAddress: () => reviews.address });
      expect(reviews.asked).toMatchObject([{ path: expected, servername: 'hooks.n.svc' }]);
    }
  });

  it('is not put to a webhook whose certificate nobody vouches for', async () => {
    const more = { clientConfig: { url: `${reviews.url}/a` } };
    expect(await failureOf(ask({ more }))).toMatch(/^failed to call webhook: Post "https:.*": .*certificate/);
    expect(reviews.asked).toEqual([]);
  });

  it('is sent once more if a connection was closed without a word, and no more than that', async () => {
    let closed = 0;
    reviews.decide.set('/a', () => (++closed < 2 ? { wire: '' } : { allowed: true }));
    expect(await ask()).toMatchObject({ allowed: true });
    expect(reviews.asked).toHaveLength(2);
    reviews.decide.set('/a', () => ({ wire: '' }));
    expect(await failureOf(again())).toBe(`${POST}socket hang up`);
    expect(reviews.asked).toHaveLength(4);
  });

  it('is not sent again after anything else', async () => {
    reviews.decide.set('/a', () => ({ wire: 'nonsense' }));
    expect(await failureOf(ask())).toMatch(/Parse Error/);
    expect(reviews.asked).toHaveLength(1);
  });

  it('ends with its signal, whatever has happened until then', async () => {
    const abort = new AbortController();
    reviews.decide.set('/a', () => new Promise(() => {}));
    const asked = ask({ signal: abort.signal });
    const ended = expect(asked).rejects.toThrow('enough');
    await eventually(() => expect(reviews.asked).toHaveLength(1));
    abort.abort(new Error('enough'));
    await ended;
    await expect(ask({ signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow('before');
    expect(reviews.asked).toHaveLength(1);
  });

  it('leaves nothing at its signal', async () => {
    const { signal } = new AbortController();
    await ask({ signal });
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('that takes too long ends, and says what it waited for', async () => {
    const clock = new FakeClock();
    reviews.decide.set('/a', () => new Promise(() => {}));
    let isOver = false;
    const failed = errorOf(ask({ clock })).finally(() => {
      isOver = true;
    });
    await eventually(() => expect(reviews.asked).toHaveLength(1));
    clock.advance(6_999);
    await again({ more: { clientConfig: { url: `${reviews.url}/b`, caBundle: reviews.ca } } });
    expect(isOver).toBe(false);
    clock.advance(1);
    const { message, cause } = await failed;
    expect(message).toContain(': context deadline exceeded');
    expect(cause).toMatchObject({ message: 'gave up after 7000 ms on the webhook' });
  });

  it('is written, and its answer read, at the pace of its signal', async () => {
    const pausesOf = async (asking: Asking): Promise<[before: number, after: number]> => {
      const { signal } = new AbortController();
      const pauses: [number, number] = [0, 0];
      const pause = (): undefined => {
        pauses[reviews.asked.length === 0 ? 0 : 1]++;
      };
      setPace(signal, { turn: () => undefined, pause });
      reviews.asked.length = 0;
      await ask({ ...asking, signal });
      return pauses;
    };
    expect(await pausesOf({})).toEqual([0, 0]);
    const [asking, none] = await pausesOf({ request: { object: Array.from({ length: 100_000 }, () => ({})) } });
    expect([asking > 0, none]).toEqual([true, 0]);
    reviews.decide.set('/a', () => patched(...Array.from({ length: 40_000 }, () => ({ op: 'test' }))));
    // In v1beta1, a patch that cannot be meant is not read.
    const more = { admissionReviewVersions: ['v1beta1'] };
    const [, reading] = await pausesOf({ more, isMutating: false });
    const [, decoding] = await pausesOf({ more });
    expect([reading > 0, decoding > reading]).toEqual([true, true]);
  });

  it('is not put once they have stopped', async () => {
    await ask();
    calls.stop();
    expect(await failureOf(again())).toBe(`${POST}the server has shut down`);
    expect(reviews.asked).toHaveLength(1);
  });

  it('to nobody is not put', async () => {
    const more = { clientConfig: { service: { namespace: 'n', name: 's', port: 8443, path: '/p' } } };
    const where = 'Post "https://s.n.svc:8443/p?timeout=7s"';
    expect(await failureOf(ask({ more }))).toBe(`failed to call webhook: ${where}: service "s" not found`);
  });
});

/** With this many characters as a member, a Status has as many as are read. */
const LONGEST = 65_536 - JSON.stringify({ kind: 'Status', message: 'no', more: '' }).length;

describe('an answer', () => {
  it.each([
    [300, 'the server responded with the status code 300 but did not return more information'],
    [400, 'the server rejected our request for an unknown reason'],
    [404, 'the server could not find the requested resource'],
    [499, 'the server responded with the status code 499 but did not return more information'],
    [500, 'an error on the server ("gone") has prevented the request from succeeding'],
    [503, 'the server is currently unable to handle the request'],
  ])('of %i is none', async (code, words) => {
    reviews.decide.set('/a', () => ({ raw: ' gone ', httpStatus: code }));
    expect(await failureOf(ask())).toBe(`failed to call webhook: ${words}`);
  });

  it.each([200, 201, 299])('of %i counts', async (httpStatus) => {
    reviews.decide.set('/a', () => ({ allowed: true, httpStatus }));
    expect(await ask()).toEqual({ allowed: true, status: {}, warnings: [], patch: undefined });
  });

  it.each<[string, unknown, string]>([
    ['a Status', { kind: 'Status', message: 'no' }, 'no'],
    ['a long Status', { kind: 'Status', message: 'x'.repeat(1_001) }, 'x'.repeat(1_000)],
    ['a Status without a message', { kind: 'Status', message: 1 }, 'could not find'],
    ['another kind', { kind: 'Other', message: 'no' }, 'could not find'],
    ['null', null, 'could not find'],
    ['the longest Status', { kind: 'Status', message: 'no', more: 'x'.repeat(LONGEST) }, 'no'],
    ['one that is longer', { kind: 'Status', message: 'no', more: 'x'.repeat(LONGEST + 1) }, 'could not find'],
  ])('that refuses with %s is as good as that', async (_, said, words) => {
    reviews.decide.set('/a', () => ({ raw: JSON.stringify(said), httpStatus: 404 }));
    const failure = await failureOf(ask());
    expect(failure.replace('the server could not find the requested resource', 'could not find')).toBe(
      `failed to call webhook: ${words}`,
    );
  });

  it('with another protocol is none', async () => {
    reviews.decide.set('/a', () => ({ wire: 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n' }));
    expect(await failureOf(ask())).toBe(`${POST}the server switched to another protocol`);
  });

  it.each([
    [true, 6_291_456],
    [false, 1_048_576],
  ])('of a webhook that may change objects (%s) has at most %i bytes', async (isMutating, bytes) => {
    const text = (length: number): string => {
      const start =
        '{"response":{"uid":"uid-1","allowed":true},"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","x":"';
      return `${start}${'é'.repeat((length - start.length) / 2 - 2)}${'x'.repeat((length - start.length) % 2)}12"}`;
    };
    reviews.decide.set('/a', () => ({ raw: text(bytes) }));
    expect(await ask({ isMutating })).toMatchObject({ allowed: true });
    reviews.decide.set('/a', () => ({ raw: `${text(bytes)} ` }));
    expect(await failureOf(ask({ isMutating }))).toBe(`${POST}the answer is longer than ${bytes} bytes`);
  });

  it('may be in pieces, of any size', async () => {
    const json = JSON.stringify({
      ...{ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' },
      response: { uid: 'uid-1', allowed: true, warnings: ['é'] },
    });
    const bytes = [...Buffer.from(json)].map((byte) => `1\r\n${String.fromCharCode(byte)}\r\n`).join('');
    const head = 'HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';
    reviews.decide.set('/a', () => ({ wire: Buffer.from(`${head}${bytes}0\r\n\r\n`, 'latin1') }));
    expect((await ask()).warnings).toEqual(['é']);
  });

  it('has a patch in base64, which only a webhook may send that may change objects', async () => {
    const operation = { op: 'add', path: '/é', value: 1 };
    reviews.decide.set('/a', () => patched(operation));
    expect((await ask()).patch).toEqual([operation]);
    expect(await failureOf(ask({ isMutating: false }))).toBe(`${INVALID}validating webhook may not return response.patch`);
    reviews.decide.set('/a', () => ({ allowed: true, patchType: 'JSONPatch' }));
    expect(await failureOf(ask({ isMutating: false }))).toBe(`${INVALID}validating webhook may not return response.patchType`);
    const more = { admissionReviewVersions: ['v1beta1'] };
    reviews.decide.set('/a', () => patched(operation));
    expect((await ask({ isMutating: false, more })).patch).toBeUndefined();
    expect((await ask({ more })).patch).toEqual([operation]);
    reviews.decide.set('/a', () => ({ allowed: true, patchType: 'JSONPatch', patch: btoa('null') }));
    expect((await ask()).patch).toEqual([]);
  });

  it.each<[string, object]>([
    ['empty', { patch: '', patchType: '' }],
    ['null', { patch: null, patchType: null }],
  ])('has none if it is %s', async (_, more) => {
    reviews.decide.set('/a', () => ({ allowed: true, ...more }));
    expect((await ask()).patch).toBeUndefined();
    expect((await ask({ isMutating: false })).patch).toBeUndefined();
  });

  it.each<[string, object, string]>([
    ['of a text', { raw: '"x"' }, 'webhook response was absent'],
    ['with another uid', { uid: 'other' }, 'expected response.uid="uid-1", got "other"'],
    ['without a uid', { uid: null }, 'expected response.uid="uid-1", got ""'],
    ['with a type of patches alone', { patchType: 'x' }, 'webhook returned response.patchType but not response.patch'],
    ['with another type of patches', { patch: 'x', patchType: 'x' }, 'unsupported patch type "x"'],
    [
      'with a patch that is not base64',
      { patch: '*W10=', patchType: 'JSONPatch' },
      'received undecodable patch in webhook response: it is not base64',
    ],
    [
      'with more after a patch',
      { patch: 'W10===', patchType: 'JSONPatch' },
      'received undecodable patch in webhook response: it is not base64',
    ],
    [
      'with a patch that is no list',
      { patch: 'e30=', patchType: 'JSONPatch' },
      'received undecodable patch in webhook response: it is not a list',
    ],
    [
      'of another kind',
      { raw: '{"kind":"Review","apiVersion":"v1","response":{"uid":"uid-1"}}' },
      'expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Review',
    ],
    ['with a patch alone', { patch: 'W10=' }, 'webhook returned response.patch but not response.patchType'],
    ['without a verdict', { allowed: 'yes' }, 'response.allowed: expected true or false, got "yes"'],
    ['with a number as a warning', { warnings: ['w', 7] }, 'response.warnings: expected a list of strings, got ["w",7]'],
    ['with a number as its message', { status: { message: 7 } }, 'response.status.message: expected a string, got 7'],
    ['with a list as its reason', { status: { reason: [] } }, 'response.status.reason: expected a string, got []'],
    ['with a number as details', { status: { details: 9 } }, 'response.status.details: expected an object, got 9'],
    ['with one warning', { warnings: 'w' }, 'response.warnings: expected a list of strings, got "w"'],
    ['with a list as its status', { status: [] }, 'response.status: expected an object, got []'],
    [
      'of a kind with a long name',
      { raw: `{"kind":"${'x'.repeat(300)}","apiVersion":"v1","response":{"uid":"uid-1"}}` },
      `expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=${'x'.repeat(191)}`,
    ],
    ['with a large code', { status: { code: 2 ** 31 } }, 'response.status.code: expected a whole number, got 2147483648'],
    ['with a number as a name', { status: { details: { name: 7 } } }, 'response.status.details.name: expected a string, got 7'],
    [
      'with a list of annotations',
      { auditAnnotations: ['a'] },
      'response.auditAnnotations: expected an object of strings, got ["a"]',
    ],
    [
      'with a number among annotations',
      { auditAnnotations: { a: 'b', c: 1 } },
      'response.auditAnnotations: expected an object of strings, got {"a":"b","c":1}',
    ],
    [
      'with one cause',
      { status: { details: { causes: 'x' } } },
      'response.status.details.causes: expected a list of causes, got "x"',
    ],
    ...[7, { reason: 7 }, { message: 7 }, { field: 7 }].map((cause): [string, object, string] => [
      `with the cause ${JSON.stringify(cause)}`,
      { status: { details: { causes: [{}, cause] } } },
      `response.status.details.causes: expected a list of causes, got [{},${JSON.stringify(cause)}]`,
    ]),
    ['with half a code', { status: { code: 0.5 } }, 'response.status.code: expected a whole number, got 0.5'],
  ])('%s is none', async (_, answer, words) => {
    reviews.decide.set('/a', () => ({ allowed: true, ...answer }));
    expect(await failureOf(ask())).toBe(`${INVALID}${words}`);
  });

  it('may say much, and warn of nothing', async () => {
    const causes = [null, {}, { reason: null, message: 'm', field: 'f' }];
    const status = { code: 2 ** 31 - 1, details: { name: 'x', retryAfterSeconds: -3, causes } };
    const auditAnnotations = { a: 'b', c: null };
    reviews.decide.set('/a', () => ({ allowed: false, status, auditAnnotations, warnings: ['', null, 'w'] }));
    expect(await ask()).toEqual({ allowed: false, status, warnings: ['w'], patch: undefined });
  });

  it('may say null of everything', async () => {
    const status = { message: null, reason: null, code: null, details: null };
    reviews.decide.set('/a', () => ({ allowed: null, warnings: null, status }));
    expect(await ask()).toEqual({ allowed: false, status, warnings: [], patch: undefined });
    reviews.decide.set('/a', () => ({ allowed: false, status: null }));
    expect(await ask()).toEqual({ allowed: false, status: {}, warnings: [], patch: undefined });
  });
});
