// The proxy with faults does what its script says, and nothing else; and what each fault is to a list and a watch.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createListWatcher, type KubernetesObject, type ListWatcher, type ListWatcherOptions } from '../../src/cache/index.ts';
import { isWatchError } from '../../src/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { component, isMissing } from '../components.ts';
import { until } from '../eventually.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { type FaultProxy, type Script, seededFaults, startProxy } from './proxy.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;

let server: ApiServer;
let path: string;
let proxy: FaultProxy;

beforeAll(async () => {
  if (missing) return;
  server = await startApiServer();
  path = await server.collection('proxied', 'configmaps');
  for (const name of ['a', 'b', 'c']) await server.put(path, name);
}, START_MS);
afterEach(() => proxy?.close());
afterAll(() => server?.stop(), START_MS);

async function through(script?: Script, options: ListWatcherOptions = {}): Promise<ListWatcher<KubernetesObject>> {
  proxy = await startProxy(server, script);
  return createListWatcher(`${proxy.url}${path}`, options);
}

const always =
  (fault: ReturnType<Script>): Script =>
  () =>
    fault;
const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'nothing',
    (error: unknown) => error,
  );

describe.skipIf(missing)('a proxy with faults before a kube-apiserver', () => {
  it('is not there without a script, and when it is calm', async () => {
    const source = await through(always({ kind: 'cut', after: -1 }));
    await expect(source.list()).rejects.toThrow();
    proxy.calm();
    const direct = createListWatcher(`${server.url}${path}`, { fetch: server.fetch as typeof fetch });
    // The server writes things of its own in between, and its version moves.
    expect((await source.list()).items).toEqual((await direct.list()).items);
    expect([...proxy.counts]).toEqual([['cut', 1]]);
    expect(proxy.requests).toBe(2);
  });

  it('a list that is cut, or not whole, is no list', async () => {
    const whole = JSON.stringify(await server.get(path)).length;
    for (const after of [-1, 0, 1, whole >> 1, whole - 2]) {
      const source = await through(always({ kind: 'cut', after }));
      expect(isWatchError(await failure(source.list()))).toBe(false);
      expect(proxy.counts.get('cut')).toBe(1);
      proxy.play(always({ kind: 'truncate', after: Math.max(after, 0) }));
      expect(await failure(source.list())).toMatchObject({ code: 'INVALID_FRAME' });
      await proxy.close();
    }
  });

  it('a list that stops in the middle times out', async () => {
    const clock = new FakeClock();
    const source = await through(undefined, { responseTimeoutMs: 500, clock });
    for (const [at, after] of [100, -1].entries()) {
      proxy.play(always({ kind: 'halfOpen', after }));
      const failed = failure(source.list());
      await until(() => proxy.counts.get('halfOpen') === at + 1);
      clock.advance(500);
      expect(await failed).toMatchObject({ code: 'TIMEOUT' });
    }
  });

  it('refusals carry their Status, and Retry-After if there is one', async () => {
    const source = await through(always({ kind: 'refuse', code: 429, retryAfterSeconds: 7 }));
    for (const work of [() => source.list(), () => source.watch()]) {
      expect(await failure(work())).toMatchObject({
        code: 'REFUSED',
        status: { code: 429, reason: 'TooManyRequests', details: { retryAfterSeconds: 7 } },
      });
    }
    for (const [code, reason] of [
      [429, 'TooManyRequests'],
      [500, 'InternalError'],
      [504, 'Timeout'],
    ] as const) {
      proxy.play(always({ kind: 'refuse', code }));
      const { status } = (await failure(source.list())) as { status: { code: number; reason: string; details?: object } };
      expect(status).toMatchObject({ code, reason });
      expect(status.details ?? {}).not.toHaveProperty('retryAfterSeconds', expect.any(Number));
    }
    expect([...proxy.counts]).toEqual([
      ['429', 3],
      ['500', 1],
      ['504', 1],
    ]);
  });

  it('a watch that is cut at any byte ends, and what it delivered before is whole', async () => {
    const source = await through();
    const { items } = await source.list();
    const bytes = items.reduce((sum, object) => sum + JSON.stringify({ type: 'ADDED', object }).length + 1, 0);
    for (let after = 0; after < bytes; after += 83) {
      proxy.play(always({ kind: after % 2 ? 'cut' : 'truncate', after }));
      const watch = await source.watch({ resourceVersion: '0' });
      let whole = 0;
      for await (const { type, object } of watch) {
        if (type === 'ERROR') expect(after % 2).toBe(0);
        else expect([type, items]).toEqual(['ADDED', expect.arrayContaining([object])]);
        if (type === 'ADDED') whole++;
      }
      expect(whole).toBeLessThan(items.length);
    }
  });

  it('ends all that is open as if it were complete', async () => {
    const source = await through();
    const { resourceVersion } = await source.list();
    const watch = await source.watch({ resourceVersion });
    proxy.endAll();
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  });

  it('stalls all that is open, and nothing that comes later', async () => {
    const source = await through();
    const { resourceVersion } = await source.list();
    const stalled = await source.watch({ resourceVersion });
    proxy.stallAll();
    await server.put(path, 'stalled');
    const later = await source.watch({ resourceVersion });
    const { value } = await later.next();
    expect(value?.object).toMatchObject({ metadata: { name: 'stalled' } });
    expect(stalled.tryNext()).toBeUndefined();
    for (const watch of [stalled, later]) await watch.return();
  });

  it('the same seed brings the same faults', () => {
    const shares = { none: 3, cut: 1, truncate: 1, halfOpen: 1, delay: 1, refuse: 2 };
    const draw = (seed: number): unknown[] => {
      const script = seededFaults(seed, shares);
      return Array.from({ length: 200 }, (_, number) =>
        script({ number, method: 'GET', url: new URL('http://h/'), isWatch: number % 2 === 0 }),
      );
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
    expect(new Set(draw(7).map((fault) => (fault as { kind?: string } | undefined)?.kind ?? 'none'))).toEqual(
      new Set(Object.keys(shares)),
    );
  });
});
