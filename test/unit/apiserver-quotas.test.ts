// What one address and one tenant may cost: a client that wants more gets a 429, and no other notices.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Quotas, Rates } from '../../src/apiserver/http/quotas.ts';
import type { ApiServerOptions, CutReport } from '../../src/apiserver/index.ts';
import { toSettings } from '../../src/apiserver/options.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { eventually } from '../eventually.ts';
import { runs } from '../runs.ts';
import { ORDER, ORDERS_PATH, rig } from './apiserver-rig.ts';

const closing = closers();

interface Asked {
  readonly answer: Promise<Response>;
  readonly abort: () => void;
}

type Ask = (more?: { from?: string; who?: string; method?: string; path?: string; body?: unknown }) => Asked;

/** A server whose clients say who they are and where they come from. */
function open(options: Partial<ApiServerOptions<string>> = {}): ReturnType<typeof rig> & { ask: Ask } {
  const made = rig(options as Partial<ApiServerOptions>);
  closing.push(() => made.server.shutdown({ signal: AbortSignal.abort() }));
  const ask: Ask = ({ from = '', who = '', method = 'GET', path = ORDERS_PATH, body } = {}) => {
    const abort = new AbortController();
    const headers = { ...(who && { authorization: who }), ...(body !== undefined && { 'content-type': 'application/json' }) };
    const init = { method, headers, signal: abort.signal, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const answer = made.server.fetch(new Request(`http://a${path}`, init), { remoteAddr: { hostname: from } });
    return { answer, abort: () => abort.abort() };
  };
  return { ...made, ask };
}

const authenticate = (request: unknown): string | undefined => (request as Request).headers.get('authorization') ?? undefined;

/** What is answered only when a test says so. */
function gate(): { readonly opened: Promise<boolean>; readonly open: () => void } {
  let open!: () => void;
  const opened = new Promise<boolean>((resolve) => {
    open = () => resolve(true);
  });
  return { opened, open };
}

describe('an address', () => {
  test('gets no more than its share of requests; the others go on, and its places come back', async () => {
    const { opened, open: let_in } = gate();
    const { ask, server } = open({ maxConcurrentRequests: 10, maxConcurrentRequestsPerAddress: 3, authorize: () => opened });
    const held = Array.from({ length: 3 }, () => ask({ from: '10.0.0.1' }));
    const refused = await ask({ from: '10.0.0.1' }).answer;
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await refused.json()).toMatchObject({
      kind: 'Status',
      reason: 'TooManyRequests',
      message: '3 requests are being answered for this address, which is the limit',
    });
    const other = ask({ from: '10.0.0.2' });
    let_in();
    for (const { answer } of [...held, other]) expect((await answer).status).toBe(200);
    expect((await ask({ from: '10.0.0.1' }).answer).status).toBe(200);
    expect(server.metrics).toContain('watchmux_apiserver_requests_limited_total{limit="address"} 1');
  });

  test('of IPv6 shares with its network', async () => {
    const { ask } = open({ maxWatchersPerAddress: 1 });
    const watched = async (from: string): Promise<number> => (await ask({ from, path: `${ORDERS_PATH}?watch=1` }).answer).status;
    expect([await watched('2001:db8::1'), await watched('2001:db8::2'), await watched('2001:db8:1::1')]).toEqual([200, 429, 200]);
  });

  test('that nobody knows counts only in all', async () => {
    const { opened, open: let_in } = gate();
    const { ask } = open({ maxConcurrentRequests: 4, maxConcurrentRequestsPerAddress: 1, authorize: () => opened });
    const held = Array.from({ length: 4 }, () => ask());
    expect(await (await ask().answer).json()).toMatchObject({
      code: 429,
      message: expect.stringMatching(/^4 requests are being/),
    });
    let_in();
    for (const { answer } of held) expect((await answer).status).toBe(200);
  });

  test('is what clientAddress says; what that throws admits nobody', async () => {
    const errors: unknown[] = [];
    const { opened, open: let_in } = gate();
    const { ask } = open({
      maxConcurrentRequestsPerAddress: 1,
      authorize: () => opened,
      onError: (error) => errors.push(error),
      clientAddress: (request) => {
        const { search } = new URL((request as Request).url);
        if (search === '?broken') throw new Error('broken');
        return search;
      },
    });
    const one = ask({ from: '10.0.0.1', path: `${ORDERS_PATH}?a` });
    const other = ask({ from: '10.0.0.1', path: `${ORDERS_PATH}?b` });
    expect((await ask({ path: `${ORDERS_PATH}?a` }).answer).status).toBe(429);
    expect((await ask({ path: `${ORDERS_PATH}?broken` }).answer).status).toBe(503);
    expect(errors).toHaveLength(1);
    let_in();
    for (const { answer } of [one, other]) expect((await answer).status).toBe(200);
  });

  test('has places for documents, too, while it is asked who it is; health is told without', async () => {
    const { ask, server } = open({ maxConcurrentRequestsPerAddress: 1, authenticate: () => new Promise<never>(() => {}) });
    await server.ready;
    const first = ask({ from: '10.0.0.1', path: '/openapi/v2' });
    expect((await ask({ from: '10.0.0.1', path: '/metrics' }).answer).status).toBe(429);
    expect((await ask({ from: '10.0.0.1', path: '/readyz' }).answer).status).toBe(200);
    first.abort();
    expect((await first.answer).status).toBe(499);
    const again = ask({ from: '10.0.0.1', path: '/metrics' });
    again.abort();
    expect((await again.answer).status).toBe(499);
  });
});

describe('a tenant', () => {
  test('that floods is told 429, and another is answered as if it were alone', async () => {
    const { opened, open: let_in } = gate();
    const { ask, server } = open({
      authenticate,
      maxConcurrentRequests: 50,
      maxConcurrentRequestsPerTenant: 4,
      authorize: (_verb, _resource, _namespace, _name, who) => (who === 'loud' ? opened : true),
    });
    // From an address each: those are no bound for it.
    const flood = Array.from({ length: 40 }, (_, at) => ask({ who: 'loud', from: `10.0.0.${at}` }));
    for (let turn = 0; turn < 20; turn++) expect((await ask({ who: 'quiet' }).answer).status).toBe(200);
    let_in();
    const codes = await Promise.all(flood.map(async ({ answer }) => (await answer).status));
    expect(codes.filter((code) => code === 200)).toHaveLength(4);
    expect(codes.filter((code) => code === 429)).toHaveLength(36);
    expect(server.metrics).toContain('watchmux_apiserver_requests_limited_total{limit="tenant"}');
    expect((await ask({ who: 'loud' }).answer).status).toBe(200);
  });

  test('has so many watches, whoever of it opens them', async () => {
    const { ask } = open({
      authenticate,
      maxWatchersPerTenant: 2,
      tenantOf: (who) => who.split('/')[0],
    });
    const watch = (who: string): Asked => ask({ who, path: `${ORDERS_PATH}?watch=1` });
    const first = watch('ada/1');
    expect((await first.answer).status).toBe(200);
    expect((await watch('ada/2').answer).status).toBe(200);
    const refused = await watch('ada/3').answer;
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect((await watch('bob/1').answer).status).toBe(200);
    await (await first.answer).body?.cancel();
    expect((await watch('ada/3').answer).status).toBe(200);
  });

  test('is none where an identity is no text and nobody says whose it is', async () => {
    const ada = { name: 'ada' };
    const { ask } = open({ authenticate: (() => ada) as never, maxWatchersPerTenant: 1 });
    const opened = [ask({ path: `${ORDERS_PATH}?watch=1` }), ask({ path: `${ORDERS_PATH}?watch=1` })];
    for (const { answer } of opened) expect((await answer).status).toBe(200);
  });

  test('writes so often within any second; reads do not count, nor what it may not do', async () => {
    const clock = new FakeClock();
    const { ask } = open({
      authenticate,
      clock,
      maxWritesPerSecondPerTenant: 5,
      authorize: (verb) => verb !== 'delete',
    });
    let names = 0;
    const write = async (who: string): Promise<number> =>
      (await ask({ who, method: 'POST', body: { ...ORDER, metadata: { name: `a${names++}` } } }).answer).status;
    for (let turn = 0; turn < 10; turn++) {
      expect((await ask({ who: 'ada', method: 'DELETE', path: `${ORDERS_PATH}/x` }).answer).status).toBe(403);
    }
    for (let turn = 0; turn < 5; turn++) expect(await write('ada')).toBe(201);
    expect(await write('ada')).toBe(429);
    expect((await ask({ who: 'ada' }).answer).status).toBe(200);
    expect(await write('bob')).toBe(201);
    clock.advance(2_000);
    expect(await write('ada')).toBe(201);
  });

  test.each(['tenantOf', 'clientAddress'])(
    'whom %s does not name by a text is not admitted: nothing would limit it',
    async (hook) => {
      for (const say of [() => 7, () => ['a'], async () => 'a', () => Promise.reject(new Error('no database'))]) {
        const errors: unknown[] = [];
        const { ask } = open({ authenticate: () => 'ann', [hook]: say as never, onError: (error) => errors.push(error) });
        expect((await ask().answer).status).toBe(503);
        expect(errors).toMatchObject([{ message: expect.stringMatching(`^${hook}: expected a string, got `) }]);
      }
    },
  );

  test('is nobody if the identity is no text and tenantOf does not say; what tenantOf throws admits nobody', async () => {
    const limits = { maxConcurrentRequestsPerTenant: 1, maxWritesPerSecondPerTenant: 1 };
    const objects = open({ ...limits, authenticate: (() => ({ name: 'ada' })) as never });
    for (let turn = 0; turn < 3; turn++) {
      expect((await objects.ask({ method: 'POST', body: { ...ORDER, metadata: { name: `a${turn}` } } }).answer).status).toBe(201);
    }
    const broken = open({
      authenticate,
      tenantOf: () => {
        throw new Error('broken');
      },
    });
    expect((await broken.ask({ who: 'ada' }).answer).status).toBe(503);
  });

  test('that is known too late holds nothing', async () => {
    const clock = new FakeClock();
    const late = gate();
    let asked = 0;
    const { ask } = open({
      clock,
      cache: false,
      authenticate: async () => {
        if (++asked === 1) await late.opened;
        return 'ada';
      },
      maxConcurrentRequestsPerTenant: 1,
    });
    const first = ask();
    await eventually(() => expect(asked).toBe(1));
    clock.advance(10_000);
    expect((await first.answer).status).toBe(504);
    late.open();
    await new Promise((resolve) => setImmediate(resolve));
    expect((await ask().answer).status).toBe(200);
  });
});

describe('an answer that nobody takes', () => {
  const item = 'x'.repeat(1_000_000);

  test('of one large object holds its place until its client is cut, and that is told', async () => {
    const clock = new FakeClock();
    const cuts: CutReport[] = [];
    const { ask } = open({ clock, cache: false, maxConcurrentRequestsPerAddress: 1, onCut: (report) => cuts.push(report) });
    const from = '10.0.0.1';
    const created = ask({ from, method: 'POST', body: { ...ORDER, metadata: { name: 'a' }, spec: { item } } });
    expect((await created.answer).status).toBe(201);
    expect((await ask({ from }).answer).status).toBe(429);
    for (let tick = 0; tick < 8; tick++) clock.advance(7_500);
    expect(cuts).toMatchObject([{ verb: 'create', reason: 'stalled', path: ORDERS_PATH, address: from }]);
    expect((await ask({ from, path: `${ORDERS_PATH}/a` }).answer).status).toBe(200);
    expect(cuts).toHaveLength(1);
  });

  test('is given to whoever does take it, whole, and its place is free again', async () => {
    const { ask } = open({ maxConcurrentRequestsPerAddress: 1 });
    const from = '10.0.0.1';
    const sent = { from, method: 'POST', body: { ...ORDER, metadata: { name: 'a' }, spec: { item } } };
    expect(await (await ask(sent).answer).json()).toMatchObject({ spec: { item } });
    expect(await (await ask({ from, path: `${ORDERS_PATH}/a` }).answer).json()).toMatchObject({ spec: { item } });
    expect((await ask({ from }).answer).status).toBe(200);
  });
});

describe('a watch that is too slow', () => {
  test('is told 410, and so is the owner of the server; one that asks for the past only is not slow', async () => {
    const cuts: CutReport[] = [];
    const { ask, server, call } = open({
      storage: new MemoryStorage({ maxHistoryItems: 100 }),
      maxBufferedBytes: 1,
      onCut: (report) => cuts.push(report),
    });
    const orders = server.resource('orders.example.com/v1').in('default');
    const path = `${ORDERS_PATH}?watch=1`;
    const slow = await ask({ path, from: '10.0.0.1' }).answer;
    for (let at = 0; at < 300; at++) await orders.create({ metadata: { name: `a${at}` } });
    expect(await slow.text()).toMatch(/"ADDED"[\s\S]*"code":410/);
    expect(cuts).toMatchObject([{ verb: 'watch', reason: 'expired', address: '10.0.0.1' }]);
    expect(await (await ask({ path: `${path}&resourceVersion=1` }).answer).text()).toContain('"code":410');
    expect(cuts).toHaveLength(1);
    expect((await call('GET', `${ORDERS_PATH}/a299`)).code).toBe(200);
  });
});

describe('a place', () => {
  const quotas = (): { of: Quotas; clock: FakeClock; cuts: CutReport[]; reasons: string[] } => {
    const [clock, cuts, reasons] = [new FakeClock(), [] as CutReport[], [] as string[]];
    const limits = { maxConcurrentRequests: 3, maxConcurrentRequestsPerAddress: 2, maxConcurrentRequestsPerTenant: 1 };
    const options = { storage: new MemoryStorage(), resources: [], clock, onCut: (cut: CutReport) => void cuts.push(cut) };
    const of = new Quotas(toSettings({ ...options, ...limits, maxWatchers: 1, maxWritesPerSecondPerTenant: 1 }), (reason) => {
      reasons.push(reason);
    });
    return { of, clock, cuts, reasons };
  };
  const limit = (message: string): object => ({ status: expect.objectContaining({ code: 429, message }) });

  test('is given back once, to its address and its tenant', () => {
    const { of } = quotas();
    const [one, two] = [of.enter('request', 'x'), of.enter('request', 'x')];
    one.join('t');
    expect(() => two.join('t')).toThrow(
      expect.objectContaining(limit('1 requests are being answered for this tenant, which is the limit')),
    );
    expect(() => of.enter('request', 'x')).toThrow(
      expect.objectContaining(limit('2 requests are being answered for this address, which is the limit')),
    );
    for (let twice = 0; twice < 2; twice++) one.release();
    two.join('t');
    of.enter('request', 'x');
    expect(() => of.enter('request', 'x')).toThrow();
    of.enter('request', 'y');
    expect(() => of.enter('request', 'z')).toThrow(
      expect.objectContaining(limit('3 requests are being answered, which is the limit')),
    );
    const late = of.enter('watch', 'x');
    expect(() => of.enter('watch', 'y')).toThrow(expect.objectContaining(limit('1 watches are open, which is the limit')));
    late.release();
    late.join('t'); // holds nothing any more
    of.enter('watch', 'y').join('t');
  });

  test('of a stream that is cut is told, with what was asked for and how long it took', () => {
    const { of, clock, cuts } = quotas();
    clock.advance(500);
    const place = of.enter('request', 'x').hold({ target: '/apis?watch=1', verb: 'watch' });
    clock.advance(700);
    place.release('stalled');
    place.release('stalled');
    expect(cuts).toEqual([{ path: '/apis', verb: 'watch', reason: 'stalled', address: 'x', durationMs: 700 }]);
    of.enter('request', 'x').hold({ target: '/apis', verb: 'list' }).release();
    of.enter('request', 'x').release('stalled');
    expect(cuts).toHaveLength(1);
  });

  test('of writes: so many within a second, of whoever is known; each refusal has its reason', () => {
    const { of, reasons } = quotas();
    for (let twice = 0; twice < 2; twice++) of.write('');
    of.write('t');
    expect(() => of.write('t')).toThrow(
      expect.objectContaining(limit('this tenant may write 1 times per second, which is the limit')),
    );
    of.write('u');
    expect(reasons).toEqual(['writes']);
  });
});

describe('rates', () => {
  test('count for a second and a tenth of it at most', () => {
    for (const [gapMs, taken] of [
      [999, false],
      [1_000, false],
      [1_099, false],
      [1_100, true],
      [1_101, true],
      [5_000, true],
    ] as const) {
      const rates = new Rates(1);
      expect([rates.take('a', 0), rates.take('b', 0), rates.take('a', gapMs)]).toEqual([true, true, taken]);
    }
  });

  /** The most that were taken within any second. */
  const most = (taken: readonly number[]): number =>
    Math.max(...taken.map((from) => taken.filter((ms) => ms >= from && ms < from + 1_000).length));

  test('in no second there are more than allowed, however they are spread; whoever asks all the time gets nine tenths', () => {
    const gaps = fc.array(fc.oneof(fc.nat(5), fc.nat(120), fc.nat(3_000)), { maxLength: 300, size: 'max' });
    const property = fc.property(gaps, (all) => {
      const rates = new Rates(10);
      const taken: number[] = [];
      let ms = 0;
      for (const gap of all) {
        ms += gap;
        if (rates.take('a', ms)) taken.push(ms);
      }
      if (taken.length > 0) expect(most(taken)).toBeLessThanOrEqual(10);
    });
    fc.assert(property, { numRuns: runs(200) });
    const rates = new Rates(10);
    let count = 0;
    for (let ms = 0; ms < 11_000; ms += 7) if (rates.take('a', ms)) count++;
    expect(count).toBeGreaterThanOrEqual(100);
  });

  test('whoever is quiet is forgotten', () => {
    const rates = new Rates(1);
    for (let at = 0; at < 1_000; at++) expect(rates.take(`${at}`, 0)).toBe(true);
    expect(rates.take('a', 5_000)).toBe(true);
    expect((rates as unknown as { parts: Map<string, number>[] }).parts.map(({ size }) => size)).toContain(1);
    expect((rates as unknown as { parts: Map<string, number>[] }).parts.some(({ size }) => size > 1)).toBe(false);
  });

  test('0 is no limit', () => {
    const rates = new Rates(0);
    for (let at = 0; at < 1_000; at++) expect(rates.take('a', 0)).toBe(true);
  });
});
