// What a server says of itself to balancers and to its owner, whatever its storage does; and how it goes away.
import { request } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { HealthChecks } from '../../src/apiserver/health.ts';
import type { ApiServer, ApiServerOptions } from '../../src/apiserver/index.ts';
import { WatchError } from '../../src/index.ts';
import { Cacher, MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { eventually } from '../eventually.ts';
import { listening } from '../listening.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';

const closing = closers();

function open(options: Partial<ApiServerOptions> = {}): ReturnType<typeof rig> {
  const made = rig(options);
  closing.push(() => made.server.shutdown({ signal: AbortSignal.abort() }));
  return made;
}

/** A storage that answers for its version as a test says. */
function storageThat(): { storage: Storage; asked: () => number; answer: (how: () => Promise<string>) => void } {
  const memory = new MemoryStorage();
  const own = memory.currentVersion.bind(memory);
  let how: () => Promise<string> = own;
  let asked = 0;
  const storage = Object.assign(memory, {
    currentVersion: () => {
      asked++;
      return how();
    },
  }) as Storage;
  return {
    storage,
    asked: () => asked,
    answer: (other) => {
      how = other;
    },
  };
}

const isHeld = (server: ApiServer): Promise<boolean> => server.health().then(({ ready }) => !ready);

describe('health', () => {
  test('what a server says is text that nobody keeps, and nobody takes for something else', async () => {
    const { call } = open();
    for (const [path, type] of [
      ['/livez', 'text/plain; charset=utf-8'],
      ['/readyz?verbose', 'text/plain; charset=utf-8'],
      ['/stats', 'application/json'],
    ] as const) {
      const { headers } = await call('GET', path);
      const told = ['content-type', 'cache-control', 'x-content-type-options'].map((name) => headers.get(name));
      expect(told).toEqual([type, 'no-store', 'nosniff']);
    }
  });

  test('a shutdown leaves nothing on the signal that may cut it short', async () => {
    const { server } = rig();
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    await server.shutdown({ signal: abort.signal });
    expect(listeners.count).toBe(0);
  });

  test('what is public is so by its whole path', async () => {
    const { server, call } = open({ authenticate: () => undefined as never });
    await server.ready;
    for (const [path, code] of [
      ['/livez', 200],
      ['/readyz', 200],
      ['/livez/ping', 404],
      ['/livez/ping/more', 401],
      ['/nothing', 401],
      ['/metrics', 401],
    ] as const) {
      expect([path, (await call('GET', path)).code]).toEqual([path, code]);
    }
  });

  test('ready is who has nothing against it', async () => {
    const clock = new FakeClock();
    const [one, other] = [{ phase: 'ready' }, { phase: 'ready' }];
    const caches = (): unknown => [
      ['a', one],
      ['b', other],
    ];
    const storage = new MemoryStorage();
    const checks = new HealthChecks({ storage, clock, caches, closing: new AbortController().signal } as never);
    expect((await checks.now()).ready).toBe(false); // it has not started
    checks.start = { name: 'start', ok: true };
    const named = async (): Promise<unknown> => (await checks.now()).checks;
    const ok = ['start', 'storage', 'cache/a', 'cache/b', 'shutdown'].map((name) => ({ name, ok: true }));
    expect([(await checks.now()).ready, await named()]).toStrictEqual([true, ok]);
    const lost = new Error('lost');
    Object.assign(other, { phase: 'failed', error: lost });
    expect((await checks.now()).ready).toBe(false);
    expect(await named()).toEqual(ok.map((each) => (each.name === 'cache/b' ? { ...each, ok: false, error: lost } : each)));
    Object.assign(other, { phase: 'ready', error: undefined });
    checks.isLeaving = true;
    expect((await checks.now()).ready).toBe(false);
    const error = expect.objectContaining({ code: 'CLOSED', message: 'the server is shutting down' });
    expect(await named()).toEqual(ok.map((each) => (each.name === 'shutdown' ? { ...each, ok: false, error } : each)));
  });

  test('the storage is asked for its version, and for its health if it has any; in time, or no more', async () => {
    const clock = new FakeClock();
    const signals: AbortSignal[] = [];
    const currentVersion = vi.fn(({ signal }: { signal: AbortSignal }) => {
      signals.push(signal);
      return Promise.resolve('1');
    });
    const checks = (storage: object): HealthChecks =>
      new HealthChecks({ storage, clock, caches: () => [], closing: new AbortController().signal } as never);
    const ofStorage = async (of: HealthChecks): Promise<unknown> =>
      (await of.now()).checks.find(({ name }) => name === 'storage');
    expect(await ofStorage(checks({ currentVersion }))).toEqual({ name: 'storage', ok: true });
    const sick = new Error('sick');
    expect(await ofStorage(checks({ currentVersion, checkHealth: () => Promise.reject(sick) }))).toEqual({
      ...{ name: 'storage', ok: false, error: sick },
    });
    currentVersion.mockImplementation(({ signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    });
    const late = ofStorage(checks({ currentVersion }));
    clock.advance(1_999);
    expect(signals.at(-1)?.aborted).toBe(false);
    clock.advance(1);
    expect(await late).toMatchObject({
      ok: false,
      error: { code: 'TIMEOUT', message: 'the storage has not answered within 2000 ms' },
    });
    expect([signals.at(-1)?.aborted, clock.pending]).toEqual([true, 0]);
  });

  test('a storage that fails: not ready, not healthy, but alive; clients do not learn why, the owner does', async () => {
    const clock = new FakeClock();
    const { storage, answer } = storageThat();
    const { server, call } = open({ storage, clock });
    await server.ready;
    for (const path of ['/readyz', '/healthz', '/livez'])
      expect(await call('GET', path)).toMatchObject({ code: 200, text: 'ok' });
    const secret = new Error('connect ECONNREFUSED 10.1.2.3:2379');
    answer(() => Promise.reject(secret));
    clock.advance(1_000);
    const refused = await call('GET', '/readyz');
    expect([refused.code, refused.text]).toEqual([
      503,
      '[+]start ok\n[-]storage failed: reason withheld\n[+]cache/namespaces ok\n[+]shutdown ok\nreadyz check failed\n',
    ]);
    expect((await call('GET', '/healthz')).code).toBe(503);
    expect((await call('GET', '/livez')).code).toBe(200);
    expect((await server.health()).checks).toContainEqual({ name: 'storage', ok: false, error: secret });
    answer(() => Promise.resolve('1'));
    clock.advance(1_000);
    expect((await call('GET', '/readyz?verbose')).text).toMatch(/^\[\+\]start ok\n[\s\S]*readyz check passed\n$/);
  });

  test('a storage that answers but takes no writes: not ready, and the owner learns why', async () => {
    const clock = new FakeClock();
    const full = new Error('no space left on device');
    const storage = Object.assign(new MemoryStorage(), { checkHealth: () => Promise.reject(full) });
    const { server, call } = open({ storage, clock });
    await server.ready;
    expect((await call('GET', '/readyz')).text).toContain('[-]storage failed');
    expect((await server.health()).checks).toContainEqual({ name: 'storage', ok: false, error: full });
    Object.assign(storage, { checkHealth: () => Promise.resolve() });
    clock.advance(1_000);
    expect((await call('GET', '/readyz')).code).toBe(200);
  });

  test('a storage that only another start can help: `/livez` fails as of the next look, and stays so', async () => {
    const clock = new FakeClock();
    const closed = new WatchError('CLOSED', 'the journal has failed');
    const storage = Object.assign(new MemoryStorage(), { checkHealth: () => Promise.reject(closed) });
    const { server, call } = open({ storage, clock });
    await server.ready;
    expect((await call('GET', '/livez')).code).toBe(200); // nobody has looked before
    await eventually(async () => expect((await call('GET', '/livez')).code).toBe(503));
    expect((await call('GET', '/livez')).text).toBe('[-]storage failed: reason withheld\nlivez check failed\n');
    Object.assign(storage, { checkHealth: () => Promise.resolve() });
    clock.advance(1_000);
    expect((await call('GET', '/readyz')).code).toBe(200);
    expect((await call('GET', '/livez')).code).toBe(503);
  });

  test('a shutdown is no reason for `/livez` to fail, whatever a storage says then', async () => {
    const closed = new WatchError('CLOSED', 'closed');
    const storage = new MemoryStorage();
    const { server, call } = open({ storage });
    await server.ready;
    await server.shutdown();
    Object.assign(storage, { checkHealth: () => Promise.reject(closed) });
    await server.health();
    expect((await call('GET', '/livez')).code).not.toBe(500);
    expect((await call('GET', '/livez')).text).not.toContain('storage');
  });

  test('the same behind a cacher of ones own', async () => {
    const full = new Error('no space left on device');
    const storage = Object.assign(new MemoryStorage(), { checkHealth: () => Promise.reject(full) });
    const cacher = new Cacher(storage);
    const { server } = open({ storage: cacher });
    expect((await server.health()).checks).toContainEqual({ name: 'storage', ok: false, error: full });
    await cacher.close();
  });

  test('a storage that does not answer: told within two seconds, and nothing is left', async () => {
    const clock = new FakeClock();
    const { storage, answer } = storageThat();
    const { server, call } = open({ storage, clock, cache: false });
    await server.ready;
    answer(() => new Promise(() => {}));
    const pending = call('GET', '/readyz');
    await eventually(() => expect(clock.pending).toBe(1));
    clock.advance(2_000);
    expect((await pending).code).toBe(503);
    expect(clock.pending).toBe(0);
    const checked = (await server.health()).checks.find(({ name }) => name === 'storage');
    expect(checked?.error).toMatchObject({ code: 'TIMEOUT', message: 'the storage has not answered within 2000 ms' });
  });

  test('however many ask, the storage is asked once per second', async () => {
    const clock = new FakeClock();
    const { storage, asked } = storageThat();
    const { server, call } = open({ storage, clock, cache: false });
    await server.ready;
    await Promise.all(Array.from({ length: 50 }, () => call('GET', '/readyz')));
    expect(asked()).toBe(1);
    clock.advance(999);
    await call('GET', '/readyz');
    expect(asked()).toBe(1);
    clock.advance(1);
    await call('GET', '/readyz');
    expect(asked()).toBe(2);
  });

  test('a cache that has lost its storage is named; so is a start that has failed', async () => {
    const storage = new MemoryStorage();
    const { server, call } = open({ storage });
    await server.ready;
    await call('GET', ORDERS_PATH);
    await storage.close();
    await eventually(async () => {
      const { checks } = await server.health();
      expect(checks.find(({ name }) => name === 'cache/orders.example.com')).toMatchObject({ ok: false });
    });
    const failed = open({ storage });
    await expect(failed.server.ready).rejects.toMatchObject({ code: 'CLOSED' });
    const start = (await failed.server.health()).checks.find(({ name }) => name === 'start');
    expect(start).toMatchObject({ ok: false, error: { code: 'CLOSED' } });
  });

  test('metrics have what the caches count, by resource', async () => {
    const { server, call } = open();
    await server.ready;
    await call('POST', ORDERS_PATH, { metadata: { name: 'a' } });
    await call('GET', ORDERS_PATH);
    expect(server.metrics).toContain('watchmux_apiserver_cache_ready{resource="orders.example.com"} 1');
    expect(server.metrics).toContain('watchmux_apiserver_cache_objects{resource="orders.example.com"} 1');
  });
});

/** A validation that waits, so that a write is under way as long as a test likes. */
function slowOrders(): { options: Partial<ApiServerOptions>; begun: Promise<void>; finish: () => void } {
  let finish!: () => void;
  let begin!: () => void;
  const finished = new Promise<undefined>((resolve) => {
    finish = () => resolve(undefined);
  });
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const validate = (): Promise<undefined> => {
    begin();
    return finished;
  };
  const slow = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order', validate };
  return { options: { resources: [slow] }, begun, finish };
}

const order = { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'a' } };

describe('a shutdown', () => {
  test('lets a write that has begun finish, and refuses those that come: with 503, and when to come back', async () => {
    const { options, begun, finish } = slowOrders();
    const { server, call } = open(options);
    const write = call('POST', ORDERS_PATH, order);
    await begun;
    const down = server.shutdown();
    const refused = await call('GET', ORDERS_PATH);
    expect([refused.code, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect((await call('GET', '/livez')).code).toBe(200);
    expect((await call('GET', '/readyz')).code).toBe(503);
    finish();
    expect((await write).code).toBe(201);
    await down;
  });

  test('that may wait no longer answers 504 to a write that has not finished: it may have been done', async () => {
    const { options, begun } = slowOrders();
    const { server, call } = open(options);
    const write = call('POST', ORDERS_PATH, order);
    await begun;
    const cut = new AbortController();
    const down = server.shutdown({ signal: cut.signal });
    cut.abort();
    expect((await write).code).toBe(504);
    await down;
  });

  test('with a delay: /readyz says no, and everything else goes on as before until it is over', async () => {
    const clock = new FakeClock();
    const { server, call } = open({ clock, cache: false });
    await server.ready;
    const down = server.shutdown({ delayMs: 3_000 });
    const refused = await call('GET', '/readyz');
    expect(refused.text).toContain('[-]shutdown failed');
    expect((await call('GET', '/healthz')).code).toBe(200);
    expect((await call('POST', ORDERS_PATH, order)).code).toBe(201);
    clock.advance(2_999);
    expect((await call('GET', ORDERS_PATH)).code).toBe(200);
    clock.advance(1);
    await down;
    expect((await call('GET', ORDERS_PATH)).code).toBe(503);
    expect(clock.pending).toBe(0);
  });

  test('a delay ends when nobody waits any more', async () => {
    const { server } = open({ clock: new FakeClock() });
    const cut = new AbortController();
    const down = server.shutdown({ delayMs: 1_000_000, signal: cut.signal });
    cut.abort();
    await down;
    expect(await isHeld(server)).toBe(true);
  });

  test('watches end one after the other, a thousand per second at least, and each is told its end', async () => {
    const clock = new FakeClock();
    let draws = 0;
    const { server } = open({
      clock,
      cache: false,
      stallTimeoutMs: 0,
      minRequestTimeoutMs: 0,
      random: () => (draws++ % 64) / 64,
    });
    await server.ready;
    const ended: number[] = [];
    for (let at = 0; at < 64; at++) {
      const { body } = await server.fetch(new Request(`http://a${ORDERS_PATH}?watch=1`));
      const reader = (body as ReadableStream<Uint8Array>).getReader();
      reader.read().then(
        ({ done }) => done && ended.push(clock.now()),
        () => {},
      );
    }
    draws = 0;
    const begunMs = clock.now();
    const down = server.shutdown({ spreadMs: 5_000 });
    for (let ms = 0; ms < 64; ms++) {
      await new Promise((resolve) => setImmediate(resolve));
      expect(ended.length).toBe(ms + 1);
      clock.advance(1);
    }
    await down;
    expect(ended.at(-1)).toBe(begunMs + 63);
    expect(clock.pending).toBe(0);
  });

  test.each([
    [{ delayMs: -1 }, 'delayMs'],
    [{ spreadMs: 0.5 }, 'spreadMs'],
    [{ retryAfterMs: 1 }, 'unknown option'],
  ])('refuses %o', (options, name) => {
    const { server } = open();
    expect(() => server.shutdown(options as object)).toThrow(name);
  });

  test('a client in the middle of a request over a socket is answered', async () => {
    const { options, begun, finish } = slowOrders();
    const { server } = open(options);
    const { url, close } = await listening(server);
    closing.push(close);
    const code = new Promise<number | undefined>((resolve, reject) => {
      const headers = { 'content-type': 'application/json' };
      const sent = request(`${url}${ORDERS_PATH}`, { method: 'POST', headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.on('error', reject).end(JSON.stringify(order));
    });
    await begun;
    const down = server.shutdown();
    finish();
    expect(await code).toBe(201);
    await down;
  });
});
