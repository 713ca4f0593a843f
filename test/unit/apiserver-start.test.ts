// A server that ends, or whose storage fails, while it starts; and one that ends, or changes, while something is asked in process.
import { describe, expect, test } from 'vitest';
import { ApiServer, type ApiServerOptions } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { Latch } from '../../src/watch/abort.ts';
import { closers } from '../closing.ts';
import { EVERYTHING } from '../garbage-world.ts';
import { crdOf } from './crd-rig.ts';
import { preceded, sightOf } from './shared-storage.ts';

const closing = closers();
const ORDERS = 'orders.example.com/v1';
const WIDGETS = 'widgets.example.com/v1';
const CRDS = 'customresourcedefinitions.apiextensions.k8s.io/v1';

function server(options: Partial<ApiServerOptions> & Pick<ApiServerOptions, 'storage'>): ApiServer {
  const more = { resources: EVERYTHING, customResourceDefinitions: true, garbageCollection: true, onError: () => {} };
  const made = new ApiServer({ ...more, ...options });
  closing.push(() => made.shutdown());
  return made;
}

const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 60; turn++) await new Promise((resolve) => void setImmediate(resolve));
};

test.each([0, 1, 2, 3, 5, 8, 12, 20, 40])('a shutdown %i ticks after the start leaves nothing running', async (ticks) => {
  const clock = new FakeClock();
  const { storage } = sightOf(new MemoryStorage());
  const ended = server({ storage, clock });
  for (let tick = 0; tick < ticks; tick++) await Promise.resolve();
  await ended.shutdown();
  const version = await storage.currentVersion();
  await settled();
  expect([clock.pending, await storage.currentVersion()]).toEqual([0, version]);
});

describe('while the definitions are not there', () => {
  const paths = ['/apis', '/apis/no.such/v1/things'];
  const ask = (asked: ApiServer, path: string): Promise<number> =>
    asked.fetch(new Request(`http://127.0.0.1${path}`)).then(({ status }) => status);

  test.each(paths)('because the start has failed, nobody is told that there is nothing, or waits: %s', async (path) => {
    const away = (): Promise<never> => Promise.reject(refused(500, 'InternalError', 'away'));
    const failed = server({ storage: preceded(sightOf(new MemoryStorage()).storage, away) });
    const early = ask(failed, path);
    await expect(failed.ready).rejects.toMatchObject({ status: { code: 500 } });
    expect([await early, await ask(failed, path)]).toEqual([503, 503]);
    await expect(failed.kind(WIDGETS)).rejects.toMatchObject({ status: { code: 503 } });
    expect(await ask(failed, '/apis/example.com/v1/orders')).toBe(200);
    expect(await ask(failed, '/version')).toBe(200);
  });

  test.each(paths)('because the storage does not answer, requests end in time: %s', async (path) => {
    const clock = new FakeClock();
    const never = new Promise<never>(() => {});
    const waiting = server({ storage: preceded(sightOf(new MemoryStorage()).storage, () => never), clock });
    const answer = ask(waiting, path);
    for (let seconds = 0; seconds < 120; seconds++) await clock.advanceAsync(1_000);
    expect(await answer).toBe(504);
    expect(await ask(waiting, '/version')).toBe(200);
  });

  test.each(paths)('because the storage does not answer, a request does not hold up a shutdown: %s', async (path) => {
    const never = new Promise<never>(() => {});
    const waiting = server({ storage: preceded(sightOf(new MemoryStorage()).storage, () => never), clock: new FakeClock() });
    const answer = ask(waiting, path);
    await settled();
    await waiting.shutdown();
    expect(await answer).toBe(503);
  });
});

describe('a request in process', () => {
  /** A server whose hook holds each creation. */
  function held(cache: ApiServerOptions['cache']) {
    const [asked, open] = [new Latch(), new Latch()];
    const validate = async ({ resource }: { readonly resource: string }): Promise<void> => {
      if (resource === 'customresourcedefinitions.apiextensions.k8s.io') return;
      asked.open();
      await open.promise;
    };
    const { storage } = sightOf(new MemoryStorage());
    return {
      storage,
      asked: asked.promise,
      open: () => open.open(),
      server: server({ storage, cache, admission: { validate } }),
    };
  }

  test.each([true, false])('is over before its server has shut down, with a cache or without: %s', async (cache) => {
    const { storage, asked, open, server: ending } = held(cache);
    await ending.ready;
    const created = ending
      .resource(ORDERS)
      .in('default')
      .create({ metadata: { name: 'a' } });
    await asked;
    let isDown = false;
    const down = ending.shutdown().then(() => {
      isDown = true;
    });
    await settled();
    expect(isDown).toBe(false);
    open();
    expect((await created).metadata?.name).toBe('a');
    await down;
    expect(await storage.get('example.com/orders/default/a')).toBeDefined();
  });

  test('does not hold up a shutdown that is cut', async () => {
    const { asked, open, server: ending } = held(true);
    await ending.ready;
    const created = ending
      .resource(ORDERS)
      .in('default')
      .create({ metadata: { name: 'a' } });
    const refusal = expect(created).rejects.toMatchObject({ status: { code: 503 } });
    await asked;
    await ending.shutdown({ signal: AbortSignal.abort() });
    await refusal;
    open();
  });

  test('is finished if the definition of its kind changes meanwhile', async () => {
    const { asked, open, server: serving } = held(true);
    await serving.ready;
    const crds = serving.resource(CRDS);
    await crds.create(crdOf());
    await expect.poll(async () => serving.kind(WIDGETS).then(Boolean, () => false)).toBe(true);
    const created = serving
      .resource(WIDGETS)
      .in('default')
      .create({ metadata: { name: 'a' } });
    await asked;
    await crds.patch('widgets.example.com', { spec: { names: { shortNames: ['w'] } } });
    await expect.poll(async () => serving.kind('w').then(Boolean, () => false)).toBe(true);
    await settled();
    open();
    expect((await created).metadata?.name).toBe('a');
  });
});
