// The words of refusals, which clients and people read, and the limits of a server that sets none.
import { describe, expect, it } from 'vitest';
import {
  alreadyExists,
  conflict,
  forbidden,
  hasCode,
  invalidObject,
  invalidOptions,
  MODIFIED,
  methodNotAllowed,
  noSuchPath,
  notFound,
  statusOf,
  translated,
  unfinished,
} from '../../src/apiserver/api-status.ts';
import type { ApiServerOptions } from '../../src/apiserver/index.ts';
import { toSettings } from '../../src/apiserver/options.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { systemClock } from '../../src/watch/clock.ts';
import { type WatchError, WatchError as WatchErrorClass } from '../../src/watch/errors.ts';

const orders = {
  ...{ group: 'example.com', plural: 'orders', kind: 'Order' },
  ...{ resourceName: 'orders.example.com', kindName: 'Order.example.com' },
};
const pods = { group: '', plural: 'pods', kind: 'Pod', resourceName: 'pods', kindName: 'Pod' };
const said = ({ status }: WatchError): unknown[] => [status?.code, status?.reason, status?.message, status?.details];

describe('a refusal', () => {
  const details = { name: 'a', group: 'example.com', kind: 'orders' };
  it.each<[string, () => WatchError, unknown[]]>([
    ['of one that is not there', () => notFound(orders, 'a'), [404, 'NotFound', 'orders.example.com "a" not found', details]],
    ['of one without a group', () => notFound(pods, 'a'), [404, 'NotFound', 'pods "a" not found', { name: 'a', kind: 'pods' }]],
    ['of a path', () => noSuchPath(), [404, 'NotFound', 'the server could not find the requested resource', undefined]],
    [
      'of one that is there',
      () => alreadyExists(orders, 'a'),
      [409, 'AlreadyExists', 'orders.example.com "a" already exists', details],
    ],
    [
      'of a conflict',
      () => conflict(orders, 'a', MODIFIED),
      [
        ...[409, 'Conflict'],
        'Operation cannot be fulfilled on orders.example.com "a": the object has been modified; please apply your changes to the latest version and try again',
        details,
      ],
    ],
    [
      'of what is forbidden',
      () => forbidden(orders, 'a', 'no'),
      [403, 'Forbidden', 'orders.example.com "a" is forbidden: no', details],
    ],
    [
      'of a method',
      () => methodNotAllowed(),
      [405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', undefined],
    ],
  ])('%s', (_, error, expected) => expect(said(error())).toEqual(expected));

  it('of an object has its causes, each with a reason', () => {
    const causes = ['Required value', 'Forbidden: x', 'Unsupported value: x', 'Too long: x', 'Invalid value: x'].map(
      (message, at) => ({ field: `f${at}`, message }),
    );
    const own = { field: 'own', message: 'Required value', reason: 'Mine' };
    const error = invalidObject(orders, 'a', [...causes, own]);
    expect(said(error).slice(0, 2)).toEqual([422, 'Invalid']);
    expect(error.status?.message).toBe(
      'Order.example.com "a" is invalid: [f0: Required value, f1: Forbidden: x, f2: Unsupported value: x, f3: Too long: x, f4: Invalid value: x, own: Required value]',
    );
    expect(error.status?.details).toMatchObject({ name: 'a', group: 'example.com', kind: 'Order' });
    expect(error.status?.details?.causes?.map(({ reason }) => reason)).toEqual([
      ...[
        'FieldValueRequired',
        'FieldValueForbidden',
        'FieldValueNotSupported',
        'FieldValueTooLong',
        'FieldValueInvalid',
        'Mine',
      ],
    ]);
    const one = invalidObject(pods, '', [own]);
    expect([one.status?.message, one.status?.details]).toEqual([
      'Pod "" is invalid: own: Required value',
      { kind: 'Pod', causes: [own] },
    ]);
  });

  it('of options names their kind', () => {
    const error = invalidOptions('PatchOptions', [{ field: 'force', message: 'Forbidden: no' }]);
    expect([error.status?.message, error.status?.details]).toEqual([
      'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: no',
      {
        ...{ group: 'meta.k8s.io', kind: 'PatchOptions' },
        causes: [{ reason: 'FieldValueForbidden', message: 'Forbidden: no', field: 'force' }],
      },
    ]);
  });

  it('has at most a hundred causes', () => {
    const causes = (count: number) => Array.from({ length: count }, (_, at) => ({ field: `f${at}`, message: 'x' }));
    expect(invalidObject(pods, 'a', causes(100)).status?.message).not.toContain('more');
    const many = invalidObject(pods, 'a', causes(102)).status;
    expect([many?.details?.causes?.length, many?.message.endsWith('f99: x, and 2 more]')]).toEqual([100, true]);
  });

  it('is short, however long fields, messages and the name are', () => {
    const long = 'x'.repeat(1_000_000);
    const causes = Array.from({ length: 100 }, (_, at) => ({
      field: `a${long}${at}`,
      message: `Invalid value: ${long}: why${at}`,
    }));
    const status = invalidObject(pods, long, causes).status;
    expect(JSON.stringify(status).length).toBeLessThan(80_000);
    const [first] = status?.details?.causes ?? [];
    expect([first?.field?.length, first?.message?.length]).toEqual([255, 999]);
    expect(first?.message).toMatch(/^Invalid value: x+\.\.\.x+: why0$/);
    expect(status?.message).toMatch(/, and \d+ more\]$/);
  });

  it('of a storage becomes one of the kind', () => {
    const of = (code: number, reason: string): unknown => translated(refused(code, reason, 'x'), orders, 'a');
    expect(
      [of(404, 'NotFound'), of(409, 'AlreadyExists'), of(409, 'Conflict')].map((each) => said(each as WatchError)[2]),
    ).toEqual([
      'orders.example.com "a" not found',
      'orders.example.com "a" already exists',
      `Operation cannot be fulfilled on orders.example.com "a": ${MODIFIED}`,
    ]);
    for (const error of [refused(404, 'Other', 'x'), refused(410, 'Expired', 'x'), conflict(pods, 'b', 'x'), new Error('x')]) {
      expect(translated(error, orders, 'a')).toBe(error);
    }
    expect([hasCode(refused(404, 'NotFound', 'x'), 404), hasCode(refused(404, 'NotFound', 'x'), 404, 'Other')]).toEqual([
      true,
      false,
    ]);
    expect([hasCode(new Error('x'), 404), hasCode(refused(404, 'NotFound', 'x'), 409)]).toEqual([false, false]);
  });

  it.each<[unknown, unknown[]]>([
    [refused(410, 'Expired', 'x'), [410, 'Expired', 'x', false]],
    [new WatchErrorClass('INVALID_SELECTOR', 'x'), [400, 'BadRequest', 'x', false]],
    [new WatchErrorClass('INVALID_ARGUMENT', 'x'), [400, 'BadRequest', 'x', false]],
    [new WatchErrorClass('CLOSED', 'x'), [503, 'ServiceUnavailable', 'this server is shutting down', false]],
    [
      new WatchErrorClass('TIMEOUT', 'x'),
      [504, 'Timeout', 'Timeout: request did not complete within the allowed duration', false],
    ],
    [new WatchErrorClass('INVALID_FRAME', 'x'), [500, 'InternalError', 'Internal error occurred', true]],
    [new Error('x'), [500, 'InternalError', 'Internal error occurred', true]],
  ])('%s over HTTP', (error, expected) => {
    const { status, unexpected } = statusOf(error);
    expect([status.code, status.reason, status.message, unexpected]).toEqual(expected);
  });

  it('because a server is leaving says that a request may have been done', () => {
    const error = unfinished(new WatchErrorClass('CLOSED', 'x')) as WatchError;
    expect([error.status?.code, error.status?.message]).toEqual([504, expect.stringContaining('it may have been done anyway')]);
    const other = new Error('x');
    expect(unfinished(other)).toBe(other);
    expect(statusOf(new WatchErrorClass('CLOSED', 'x')).status.details).toEqual({ retryAfterSeconds: 1 });
  });
});

describe('the options of a server', () => {
  const of = (options: Partial<ApiServerOptions> = {}) => toSettings({ storage: new MemoryStorage(), resources: [], ...options });

  it('have limits where none are set', () => {
    expect(of()).toMatchObject({
      ...{ maxBodyBytes: 3_145_728, maxUrlBytes: 16_384, maxSelectorLength: 4_096, maxWatchers: 10_000 },
      ...{ maxWatchersPerAddress: 1_000, maxConcurrentRequests: 400, maxConcurrentRequestsPerAddress: 200 },
      ...{ maxWatchersPerTenant: 2_000, maxConcurrentRequestsPerTenant: 100, maxWritesPerSecondPerTenant: 1_000 },
      ...{ minRequestTimeoutMs: 1_800_000, requestTimeoutMs: 60_000, handshakeTimeoutMs: 10_000 },
      ...{ maxBufferedBytes: 1_048_576, stallTimeoutMs: 30_000 },
      ...{ clock: systemClock, now: Date.now, random: Math.random },
    });
    expect(of().uid()).toMatch(/^[0-9a-f-]{36}$/);
  });

  it.each([
    ['maxBodyBytes', 1],
    ['maxSelectorLength', 0],
    ['maxWatchers', 1],
    ['maxWritesPerSecondPerTenant', 0],
    ['minRequestTimeoutMs', 0],
    ['requestTimeoutMs', 1],
    ['stallTimeoutMs', 0],
  ])('%s is %d or more', (name, least) => {
    expect(of({ [name]: least })).toMatchObject({ [name]: least });
    expect(() => of({ [name]: least - 1 })).toThrow(new RegExp(`^${name}: `));
  });

  it('are what they are said to be', () => {
    const hooks = [
      'authenticate',
      'authorize',
      'tenantOf',
      'clientAddress',
      'now',
      'random',
      'uid',
      'onError',
      'onRequest',
      'onCut',
    ];
    for (const name of hooks) expect(() => of({ [name]: 7 })).toThrow(`${name}: expected a function`);
    expect(() => of({ storage: {} as never })).toThrow('storage: expected a Storage');
    expect(() => of({ clock: {} as never })).toThrow('clock: expected a Clock');
    expect(() => of({ other: 7 } as never)).toThrow('unknown option other');
  });

  it('what is told may throw, and is told all the same', () => {
    const seen: unknown[] = [];
    const fails = (value: unknown): void => {
      seen.push(value);
      throw new Error('no');
    };
    const { onError, onRequest, onCut } = of({ onError: fails, onRequest: fails, onCut: fails });
    for (const [value, tell] of ([onError, onRequest, onCut] as ((value: unknown) => void)[]).entries()) tell(value);
    const thrown = new Error('no'); // goes to onError
    expect(seen).toEqual([0, 1, thrown, 2, thrown]);
  });

  it('what is told may be async and reject: onError hears of it', async () => {
    const seen: unknown[] = [];
    const rejects = async (): Promise<void> => Promise.reject(new Error('later'));
    const { onRequest, onCut } = of({ onError: (error) => seen.push(error), onRequest: rejects, onCut: rejects });
    onRequest({} as never);
    onCut({} as never);
    await new Promise(setImmediate);
    expect(seen).toEqual([new Error('later'), new Error('later')]);
  });
});
