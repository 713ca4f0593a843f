// What a failure is, and what an event is, to a reader who trusts nothing that comes from a wire.
import { describe, expect, test } from 'vitest';
import {
  fromErrorEvent,
  isOlder,
  shapeOf,
  toBroken,
  toFailure,
  versionBeside,
  versionIn,
} from '../../src/cache/reflector/events.ts';
import { InitialState } from '../../src/cache/reflector/requests.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { toStatus } from '../../src/watch/event.ts';

const TOO_LARGE = 'Too large resource version';

describe('a failure', () => {
  test.each<[string, number, string, object, string]>([
    ['410', 410, 'No', {}, 'expired'],
    ['the reason Expired', 400, 'Expired', {}, 'expired'],
    ['the reason Gone', 400, 'Gone', {}, 'expired'],
    ['a cause of 504', 504, 'No', { details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } }, 'expired'],
    ['a cause of a Timeout', 500, 'Timeout', { details: { causes: [null, { message: TOO_LARGE }] } }, 'expired'],
    ['the message of 504', 504, 'Timeout', { message: `${TOO_LARGE}: 5, current: 4` }, 'expired'],
    ['the message of a Timeout', 400, 'Timeout', { message: TOO_LARGE }, 'expired'],
    ['the same of another status', 500, 'No', { message: TOO_LARGE, details: { causes: [{ message: TOO_LARGE }] } }, 'other'],
    ['504 for another cause', 504, 'Timeout', { details: { causes: [{ reason: 'Other', message: 'other' }] } }, 'other'],
    ['504 with causes that are none', 504, 'Timeout', { details: { causes: 'ResourceVersionTooLarge' } }, 'other'],
    ['429', 429, 'No', {}, 'throttled'],
    ['the reason TooManyRequests', 400, 'TooManyRequests', {}, 'throttled'],
    ['503 without a time to come back', 503, 'ServiceUnavailable', {}, 'other'],
    ['401', 401, 'No', {}, 'denied'],
    ['403', 403, 'No', {}, 'denied'],
    ['500 InternalError', 500, 'InternalError', {}, 'internal'],
    ['500 of another reason', 500, 'No', {}, 'other'],
    ['InternalError of another code', 400, 'InternalError', {}, 'other'],
    ['404', 404, 'NotFound', {}, 'other'],
  ])('%s: of a request, and of a watch', (_, code, reason, more, kind) => {
    const status = { ...toStatus({ code, reason, message: 'no' }), ...more };
    expect(toFailure(new WatchError('REFUSED', 'no', { status }))).toMatchObject({ kind, hintMs: undefined });
    expect(fromErrorEvent(status)).toMatchObject({ kind, error: { code: 'REFUSED', status } });
  });

  test('has the delay that was asked for, if that is a number', () => {
    const of = (retryAfterSeconds: unknown) =>
      fromErrorEvent({ ...toStatus({ code: 429, reason: 'No', message: '' }), details: { retryAfterSeconds } }).hintMs;
    expect([of(3), of(0), of('3'), of(undefined)]).toEqual([3_000, 0, undefined, undefined]);
  });

  test('503 with a time to come back is that of a server that goes away, or is busy: the version is as good as before', () => {
    const status = toStatus({ code: 503, reason: 'ServiceUnavailable', message: '', details: { retryAfterSeconds: 1 } });
    expect(fromErrorEvent(status)).toMatchObject({ kind: 'throttled', hintMs: 1_000 });
  });

  test('of the network, or of code that has no error of ours, is that of a source that is not reached', () => {
    const kindOf = (error: unknown): string => toFailure(error).kind;
    expect(kindOf(new TypeError('fetch failed'))).toBe('unreachable');
    expect(kindOf(undefined)).toBe('unreachable');
    expect(kindOf(new WatchError('TIMEOUT', 'the server was silent', { limit: 1 }))).toBe('unreachable');
    expect(kindOf(new WatchError('INVALID_FRAME', 'no JSON'))).toBe('other');
    expect(kindOf(new WatchError('REFUSED', 'without a Status'))).toBe('other');
    const status = toStatus({ code: 410, reason: 'Gone', message: '' });
    expect(kindOf(new WatchError('CLOSED', 'not refused', { status }))).toBe('other');
  });

  test('of an ERROR says its code and the beginning of its message; without a Status, it says that', () => {
    const { error } = fromErrorEvent(toStatus({ code: 418, reason: 'Teapot', message: 'x'.repeat(2_000) }));
    expect((error as Error).message).toBe(`418: ${'x'.repeat(1_000)}`);
    for (const object of [undefined, null, {}, 'gone']) {
      expect(fromErrorEvent(object)).toMatchObject({
        kind: 'other',
        error: { code: 'INVALID_FRAME', message: expect.stringContaining('an ERROR without a Status') },
      });
    }
  });
});

describe('an event', () => {
  const metadata = { name: 'a', resourceVersion: '5' };
  const end = { 'k8s.io/initial-events-end': 'true' };

  test.each<[string, unknown]>([
    ['change', { type: 'ADDED', object: { metadata } }],
    ['change', { type: 'MODIFIED', object: { metadata } }],
    ['change', { type: 'DELETED', object: { metadata: {} } }],
    ['change', { type: 'ADDED', object: { kind: 'Table', apiVersion: 'example.org/v1', metadata } }],
    ['change', { type: 'ADDED', object: { kind: 'Pod', apiVersion: 'meta.k8s.io/v1', metadata } }],
    ['change', { type: 'ADDED', object: 5, resourceVersion: '7' }],
    ['bookmark', { type: 'BOOKMARK', object: { metadata } }],
    ['initialEnd', { type: 'BOOKMARK', object: { metadata: { ...metadata, annotations: end } } }],
    ['error', { type: 'ERROR', object: null }],
    ['broken', { type: 'BOOKMARK', object: { metadata: {} } }],
    ['broken', { type: 'ADDED', object: { kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata } }],
    ['broken', { type: 'ADDED', object: { kind: 'Table', metadata: 'a' } }],
    ['broken', { type: 'ADDED', object: {} }],
    ['broken', { type: 'ADDED', object: null }],
    ['broken', { type: 'ADDED', object: 5, resourceVersion: 7 }],
    ['broken', { type: 'added', object: { metadata } }],
    ['broken', {}],
    ['broken', null],
  ])('is a %s: %j', (shape, event) => {
    expect(shapeOf(event as never)).toBe(shape);
  });

  test('has the version beside its object, or that of its object, or none', () => {
    const versions = [{ object: { metadata }, resourceVersion: '7' }, { object: { metadata }, resourceVersion: 7 }, null, {}];
    expect(versions.map((event) => versionIn(event as never))).toEqual(['7', '5', '', '']);
    expect(versions.map((event) => versionBeside(event as never))).toEqual(['7', undefined, undefined, undefined]);
  });

  test('that is broken is told with its type, but not all of a long one', () => {
    const textOf = (event: unknown): string => toBroken(event as never).message;
    expect(toBroken({ type: 'ADDED' } as never).code).toBe('INVALID_FRAME');
    expect(textOf({ type: 'ADDED' })).toContain('ADDED without an object that has metadata');
    expect(textOf({ type: 'BOOKMARK' })).toContain('BOOKMARK without an object that has metadata');
    expect(textOf({ type: 'X'.repeat(200) })).toMatch(/an event of the unknown type X{80}$/);
    expect(textOf(null)).toBe('expected an event, got null');
  });
});

test('a version is older only if both are known to be numbers', () => {
  const pairs = [
    ['9', '10'],
    ['10', '10'],
    ['10', '9'],
    ['e1.5', 'e1.6'],
    ['5', ''],
  ] as const;
  expect(pairs.map(([a, b]) => isOlder(a, b))).toEqual([true, false, false, false, false]);
});

test('objects without a key are all kept: the store will say what it thinks of them', () => {
  const state = new InitialState<{ name?: string }>(({ name }) => {
    if (name === undefined) throw new Error('no name');
    return name;
  });
  const objects = [{}, { name: 'a' }, {}, { name: 'b' }];
  for (const object of objects) state.take({ type: 'ADDED', object });
  state.take({ type: 'DELETED', object: { name: 'a' } });
  expect([...state.objects]).toEqual([{}, {}, { name: 'b' }]);
});
