// Nobody fails in silence: what each class that works in the background prints when nobody has asked (docs/monitoring.md, "Failures").
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { Hub } from '../../src/bridge/http.ts';
import { Informer, type KubernetesObject, Reflector, RetryWatcher, Store, until } from '../../src/cache/index.ts';
import { EventRecorder, Webhooks } from '../../src/operator/index.ts';
import { Cacher, MemoryStorage } from '../../src/storage/index.ts';
import { FakeClock, FakeListWatcher, FakeSource } from '../../src/testing/index.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { FaultyStorage } from './faulty-storage.ts';

const forbidden = FakeListWatcher.refusal(403, 'Forbidden');
const down = new Error('no answer');
const random = (): number => 0;
const resources = [{ group: 'example.com', version: 'v1', kind: 'Order', plural: 'orders' }];

let said: string[] = [];
beforeEach(() => {
  said = [];
  vi.spyOn(console, 'error').mockImplementation((...words) => void said.push(words.join(' | ')));
});
afterEach(() => void vi.restoreAllMocks());

/** A collection that refuses what it is asked for so many times. */
function refusing(times: number, error: Error = forbidden): FakeListWatcher<KubernetesObject> {
  const source = new FakeListWatcher<KubernetesObject>({ objects: [{ metadata: { name: 'a' } }] });
  source.failList(error, times);
  source.failWatch(error, times);
  return source;
}

describe('a source that fails, and works again', () => {
  test.each([
    ['informer', (clock: FakeClock, signal: AbortSignal) => new Informer(refusing(9), { clock, random }).run(signal)],
    [
      'reflector',
      (clock: FakeClock, signal: AbortSignal) => new Reflector(refusing(9), new Store(), { clock, random }).run(signal),
    ],
  ])('of a %s: two lines', async (who, run) => {
    const [clock, stop] = [new FakeClock(), new AbortController()];
    const ran = run(clock, stop.signal);
    await clock.advanceAsync(600_000);
    stop.abort();
    await ran;
    expect(said).toEqual([
      expect.stringMatching(new RegExp(`^watchmux ${who}: the source failed \\(denied\\): WatchError: 403`)),
      `watchmux ${who}: the source works again, after 9 failures`,
    ]);
  });

  test('of an informer, if it should have refused to stream: one line says so', async () => {
    const [clock, stop] = [new FakeClock(), new AbortController()];
    const source = new FakeListWatcher<KubernetesObject>({ objects: [{ metadata: { name: 'a' } }] });
    const live = async (): ReturnType<typeof source.watch> => source.watch({ resourceVersion: source.resourceVersion });
    const informer = new Informer({ list: () => source.list(), watch: live }, { clock, random });
    const ran = informer.run(stop.signal);
    source.modify({ metadata: { name: 'a', labels: { is: 'new' } } });
    await informer.synced;
    stop.abort();
    await ran;
    expect([informer.store.size, said]).toEqual([
      1,
      [
        expect.stringMatching(
          /^watchmux informer: the initial state failed: WatchError: .* began with MODIFIED .* must refuse sendInit/,
        ),
      ],
    ]);
  });

  test('of a retry watcher, and of until', async () => {
    const clock = new FakeClock();
    const watch = new RetryWatcher(refusing(9, down), { resourceVersion: '1', clock, random });
    void watch.next();
    const wait = until({ source: refusing(9, down), resourceVersion: '1', random }, [() => false], { clock });
    const failed = wait.catch(() => {});
    await clock.advanceAsync(600_000);
    watch.stop();
    expect(said.filter((line) => line.includes('no answer'))).toHaveLength(2);
    expect(said.filter((line) => line.endsWith('the source works again, after 9 failures'))).toHaveLength(2);
    void failed;
  });

  test('of a retry watcher with onError: each failure, and what it throws is ignored', async () => {
    const clock = new FakeClock();
    let told = 0;
    const onError = (): never => {
      told++;
      throw new Error('mine');
    };
    const watch = new RetryWatcher(refusing(9, down), { resourceVersion: '1', clock, random, onError });
    void watch.next();
    await clock.advanceAsync(600_000);
    expect([told, watch.stopped, said]).toEqual([9, false, []]);
    watch.stop();
  });

  test('that has expired, and is listed again at once, is no news', async () => {
    const clock = new FakeClock();
    const source = refusing(0);
    const stop = new AbortController();
    const ran = new Informer(source, { clock, random }).run(stop.signal);
    await clock.advanceAsync(2_000);
    source.failWatch(FakeListWatcher.refusal(410, 'Expired'));
    source.cut();
    await clock.advanceAsync(60_000);
    stop.abort();
    await ran;
    expect(said).toEqual([]);
  });

  test('of a hub', async () => {
    const clock = new FakeClock();
    const source = new FakeSource();
    const follow = source.follow.bind(source);
    let failures = 12;
    source.follow = async (...asked) => {
      if (failures-- > 0) throw down;
      return follow(...asked);
    };
    const hub = new Hub({ source, clock, random });
    await clock.advanceAsync(600_000);
    await hub.shutdown();
    expect(said).toEqual([
      expect.stringMatching(/^watchmux hub: the source failed: Error: no answer/),
      'watchmux hub: the source works again, after 12 failures',
    ]);
  });

  test('of a cacher', async () => {
    const clock = new FakeClock();
    const storage = new FaultyStorage();
    storage.faults.codes.list.push(500, 500, 500, 500);
    const cacher = new Cacher(storage, { clock, random, pastRevisions: 0 });
    await clock.advanceAsync(30_000);
    await cacher.close();
    expect(said).toEqual([
      expect.stringMatching(/^watchmux cacher: storage failed: WatchError: /),
      'watchmux cacher: storage works again, after 4 failures',
    ]);
  });
});

describe('code of the application that throws', () => {
  const wrong = (): never => {
    throw new Error('wrong');
  };

  test.each([
    ['authenticate', 503],
    ['clientAddress', 503],
    ['authorize', 500],
  ])('%s of an API server: the answer is %i, and one line', async (hook, code) => {
    const server = new ApiServer({ storage: new MemoryStorage(), resources, [hook]: wrong });
    const answer = (): Promise<Response> => server.fetch(new Request('http://localhost/apis/example.com/v1/orders'));
    for (let n = 0; n < 20; n++) expect((await answer()).status).toBe(code);
    await server.shutdown();
    expect(said).toEqual([expect.stringMatching(/^watchmux API server: Error: wrong \(at .*wrong/)]);
  });

  test('authorize of an API server whose own question fails: that is no answer of this server, and not silent', async () => {
    for (const failure of [
      new WatchError('TIMEOUT', 'late'),
      new WatchError('CLOSED', 'closed'),
      FakeListWatcher.refusal(404, 'NotFound'),
    ]) {
      said = [];
      const authorize = (): never => {
        throw failure;
      };
      const server = new ApiServer({ storage: new MemoryStorage(), resources, authorize });
      expect((await server.fetch(new Request('http://localhost/apis/example.com/v1/orders'))).status).toBe(500);
      await server.shutdown();
      expect(said).toEqual([expect.stringContaining(`authorize failed: ${failure.message}`)]);
    }
    const authorize = (): never => {
      throw forbidden;
    };
    const server = new ApiServer({ storage: new MemoryStorage(), resources, authorize });
    expect((await server.fetch(new Request('http://localhost/apis/example.com/v1/orders'))).status).toBe(403);
    await server.shutdown();
    expect(said).toHaveLength(1);
  });

  test('a function of a field, in a storage and in a cacher', async () => {
    const fields = { 'spec.n': wrong };
    const storage = new MemoryStorage<KubernetesObject>({ fields });
    for (let n = 0; n < 50; n++) await storage.create(`a/${n}`, { metadata: { name: `${n}`, namespace: 'a' } });
    expect((await storage.list({ fieldSelector: 'spec.n=1' })).items).toEqual([]);
    const cacher = new Cacher(storage, { fields });
    expect((await cacher.list({ fieldSelector: 'spec.n=1' })).items).toEqual([]);
    await cacher.close();
    expect(said).toEqual([
      expect.stringMatching(/^watchmux memory storage: Error: wrong/),
      expect.stringMatching(/^watchmux cacher: a field failed: Error: wrong/),
    ]);
  });

  test('a hook of webhooks: each review is refused with 500, and one line', async () => {
    const webhooks = new Webhooks({ validate: wrong });
    const object = { metadata: { name: 'a' } };
    const [kind, resource] = [{ kind: 'Order' }, { resource: 'orders' }].map((of) => ({
      group: 'example.com',
      version: 'v1',
      ...of,
    }));
    const request = { uid: 'u', operation: 'CREATE', object, kind, resource, userInfo: {}, options: {} };
    const body = JSON.stringify({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', request });
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
    for (let n = 0; n < 20; n++) {
      const answer = await (await webhooks.fetch(new Request('http://localhost/validate', init))).json();
      expect(answer).toMatchObject({ response: { allowed: false, status: { code: 500 } } });
    }
    expect(said).toEqual(['watchmux webhooks: Error: webhook: validate of orders.example.com failed: wrong']);
  });

  test('events that cannot be written, however many', async () => {
    const server = new ApiServer({ storage: new MemoryStorage(), resources });
    const recorder = new EventRecorder({ cluster: server, name: 'a', clock: new FakeClock() });
    for (let n = 0; n < 20; n++) {
      recorder.normal(
        { apiVersion: 'v1', kind: 'A', metadata: { name: `a${n}`, namespace: 'default', uid: `${n}` } },
        'Synced',
        'x',
      );
      await recorder.flush();
    }
    await server.shutdown();
    expect(said).toEqual([expect.stringMatching(/^watchmux events: WatchError: /)]);
  });

  test('a handler, 10,000 times', async () => {
    const objects = Array.from({ length: 10_000 }, (_, n) => ({ metadata: { name: `${n}` } }));
    const informer = new Informer<KubernetesObject>(new FakeListWatcher({ objects }));
    const handler = informer.addHandler({ onAdd: wrong });
    const ran = informer.run();
    await handler.synced;
    await informer.stop();
    await ran;
    expect(said).toHaveLength(1);
  });
});
