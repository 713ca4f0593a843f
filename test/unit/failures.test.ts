// What is said of failures when nobody listens: one rule for every class (docs/monitoring.md, "Failures").
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeClock } from '../../src/testing/index.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { toExpired, toStatus } from '../../src/watch/event.ts';
import { Failures, oneLine, reporter } from '../../src/watch/failures.ts';

const refused = (code: number, message = 'no'): WatchError =>
  new WatchError('REFUSED', `${code}: ${message}`, { status: toStatus({ code, reason: 'No', message }) });

let said: string[] = [];
beforeEach(() => {
  said = [];
  vi.spyOn(console, 'error').mockImplementation((...words) => void said.push(words.join(' | ')));
});
afterEach(() => void vi.restoreAllMocks());

describe('what does not work until it works again', () => {
  test('gets a line for the first failure, for each other kind, and when it is over', () => {
    const failures = new Failures('informer', { clock: new FakeClock() });
    for (let n = 0; n < 10_000; n++) failures.down('the source', refused(403, `number ${n}`), ' (denied)');
    for (let n = 0; n < 3; n++) failures.down('the source', refused(500));
    failures.up('the source');
    failures.up('the source');
    expect(said).toEqual([
      'watchmux informer: the source failed (denied): WatchError: 403: number 0',
      'watchmux informer: the source failed: WatchError: 500: no (and 9999 untold before)',
      'watchmux informer: the source works again, after 10003 failures',
    ]);
  });

  test('says nothing of an end of which it has said no beginning', () => {
    const failures = new Failures('hub', { clock: new FakeClock() });
    failures.up('the source');
    expect(said).toEqual([]);
  });

  test('that comes and goes takes two lines a minute, and one that lasts is told all the same', () => {
    const clock = new FakeClock();
    const failures = new Failures('hub', { clock });
    for (let second = 0; second < 60; second++) {
      failures.down('the source', refused(503));
      failures.up('the source');
      clock.advance(1_000);
    }
    expect(said).toHaveLength(2);
    failures.down('the source', refused(503));
    failures.down('the source', refused(503));
    expect(said.slice(2)).toEqual(['watchmux hub: the source failed: WatchError: 503: no (and 59 untold before)']);
  });

  test('and two kinds that alternate take a line a minute each', () => {
    const clock = new FakeClock();
    const failures = new Failures('hub', { clock });
    for (let second = 0; second < 120; second++) {
      failures.down('the source', refused(second % 2 === 0 ? 503 : 500));
      clock.advance(1_000);
    }
    expect(said).toHaveLength(4);
  });
});

describe('what has no end', () => {
  test('is over when nothing has happened for a minute', () => {
    const clock = new FakeClock();
    const failures = new Failures('informer', { clock });
    for (let n = 0; n < 100; n++) {
      failures.failed('a handler', refused(500), ` for ${n}`);
      clock.advance(59_999);
    }
    expect(said).toEqual(['watchmux informer: a handler failed for 0: WatchError: 500: no']);
    clock.advance(1);
    failures.failed('a handler', refused(500));
    expect(said[1]).toBe('watchmux informer: a handler failed: WatchError: 500: no (and 99 untold before)');
  });

  test('does not mix with another subject, and has a bounded number of kinds', () => {
    const failures = new Failures('controller', { clock: new FakeClock() });
    failures.failed('reconcile', refused(500));
    failures.failed('an event', refused(500));
    expect(said).toHaveLength(2);
    for (let code = 100; code < 1_100; code++) failures.failed('reconcile', refused(code));
    expect(said).toHaveLength(2 + 16); // 15 kinds more, and one for all others
  });
});

describe('a line', () => {
  test('has one line, says why, and where a program is wrong', () => {
    const wrong = (): Error => new TypeError('x is\nnot a\u009b31m function\u202e');
    expect(oneLine(wrong())).toMatch(/^TypeError: x is not a 31m function {1,2}\(at wrong \(.*failures\.test\.ts:\d+:\d+\)\)$/);
    expect(oneLine(new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') }))).toBe(
      'TypeError: fetch failed: connect ECONNREFUSED',
    );
    expect(oneLine(Object.assign(new Error('disk full'), { code: 'ENOSPC' }))).toBe('Error: disk full');
    expect(oneLine('a text')).toBe('a text');
    expect(oneLine({ status: 401 })).toBe('{"status":401}');
    expect(oneLine(toExpired('version 3 is not kept'))).toBe('version 3 is not kept');
    expect(oneLine(new WatchError('CLOSED', 'y'.repeat(10_000))).length).toBe(501);
  });

  test('tells two places of a program apart, and the texts of one do not matter', () => {
    const failures = new Failures('work queue', { clock: new FakeClock() });
    const first = (n: number): Error => new Error(`${n}`);
    const second = (n: number): Error => new Error(`${n}`);
    for (let n = 0; n < 5; n++) failures.failed('work', first(n));
    failures.failed('work', second(1));
    expect(said).toHaveLength(2);
  });

  test('never throws, whatever the error and the console are', () => {
    const failures = new Failures('hub');
    const hostile = new Proxy({}, { get: () => { throw new Error('get'); } }); // biome-ignore format: one line
    const stringless = { toString: () => { throw new Error('no text'); } }; // biome-ignore format: one line
    for (const error of [hostile, stringless, undefined, null, Object.create(null), Symbol('s'), 1n])
      failures.failed(`${said.length}`, error);
    expect(said).toHaveLength(7);
    vi.mocked(console.error).mockImplementation(() => {
      throw new Error('no console');
    });
    failures.failed('again', new Error('x'));
    vi.stubGlobal('console', undefined);
    failures.failed('once more', new Error('x'));
    vi.unstubAllGlobals();
  });
});

describe('with onError', () => {
  test('nothing is printed, every failure is told, and what it throws is ignored', () => {
    const told: unknown[] = [];
    const onError = (error: unknown): void => {
      told.push(error);
      throw new Error('mine');
    };
    const failures = new Failures('cacher', { onError });
    failures.down('storage', 1);
    failures.down('storage', 2);
    failures.up('storage');
    failures.failed('a field', 3);
    reporter('memory storage', { onError })(4);
    expect([told, said]).toEqual([[1, 2, 3, 4], []]);
    expect(() => new Failures('cacher', { onError: 5 as never })).toThrow('onError: expected a function, got 5');
  });

  test('an async function may reject: no rejection is left over', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    const told: unknown[] = [];
    // No vi.fn, which looks at what its promises become.
    const onError = async (error: unknown): Promise<void> => {
      told.push(error);
      throw new Error('mine');
    };
    new Failures('cacher', { onError }).failed('a field', 1);
    await new Promise(setImmediate);
    process.off('unhandledRejection', unhandled);
    expect([told, unhandled.mock.calls]).toEqual([[1], []]);
  });
});
