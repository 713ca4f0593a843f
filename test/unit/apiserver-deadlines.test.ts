import { expect, test } from 'vitest';
import { Deadline, Deadlines } from '../../src/apiserver/http/deadline.ts';
import { ApiServer, type ApiServerOptions, CONFIG_MAPS, NAMESPACES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { eventually } from '../eventually.ts';
import { without } from './storage-without.ts';

const late = (): Error => new Error('too late');

test('a signal ends those that are open with its reason, those that come later at once, and no others', async () => {
  const clock = new FakeClock();
  const abort = new AbortController();
  const all = new Deadlines(abort.signal);
  const [open, done, after] = [0, 1, 2].map(() => new Deadline(1_000, { clock, late })) as [Deadline, Deadline, Deadline];
  all.add(open);
  all.add(done);
  all.delete(done);
  const waiting = open.during(new Promise(() => {}));
  abort.abort(new Error('the server closes'));
  await expect(waiting).rejects.toThrow('the server closes');
  all.add(after);
  expect([open, done, after].map(({ signal }) => signal.aborted)).toEqual([true, false, true]);
  for (const each of [open, done, after]) each.done();
  expect(clock.pending).toBe(0);
});

test('work as a part of other work takes nothing from the limit of the whole', async () => {
  const clock = new FakeClock();
  const deadline = new Deadline(1_000, { clock, late });
  const whole = deadline.during(
    (async () => {
      await deadline.during(Promise.resolve());
      await deadline.during(Promise.reject(new Error('no'))).catch(() => {});
      await new Promise(() => {});
    })(),
  );
  const part = deadline.during(new Promise(() => {}));
  clock.advance(1_000);
  await expect(part).rejects.toThrow('too late');
  await expect(whole).rejects.toThrow('too late');
});

test('an apply that may create what is not there ends in its time, though the storage does not', async () => {
  const clock = new FakeClock();
  const hanging = (storage: Storage): Storage =>
    new Proxy(without(storage as MemoryStorage, 'served'), {
      get: (target, name) => {
        if (name === 'scope') return (...args: Parameters<Storage['scope']>) => hanging(target.scope(...args) as Storage);
        return name === 'create' ? () => new Promise(() => {}) : target[name as keyof MemoryStorage];
      },
    });
  const resources = [CONFIG_MAPS as ResourceDefinition];
  const server = new ApiServer({
    storage: hanging(new MemoryStorage()),
    resources,
    cache: false,
    clock,
    authorize: () => true,
    requestTimeoutMs: 5_000,
  });
  await server.ready;
  const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { a: 'b' } });
  const url = 'http://a/api/v1/namespaces/default/configmaps/a?fieldManager=me';
  const headers = { 'content-type': 'application/apply-patch+yaml' };
  const answer = server.fetch(new Request(url, { method: 'PATCH', headers, body }), undefined);
  let code = 0;
  void answer.then(({ status }) => {
    code = status;
  });
  await eventually(() => {
    clock.advance(1_000);
    expect(code).toBe(504);
  });
});

test('a watch that still waits for its admission is told when the server shuts down', async () => {
  const server = new ApiServer({ storage: new MemoryStorage(), resources: [], authenticate: () => new Promise(() => {}) });
  await server.ready;
  const answer = server.fetch(new Request('http://a/api/v1/namespaces?watch=1'), undefined);
  await server.shutdown();
  expect((await answer).status).toBe(503);
});

test('who admits has the time of a handshake, a request and a document alike, and nothing runs when it is over', async () => {
  for (const hook of [{ authenticate: () => 'ada' }, {}]) {
    for (const path of ['/api/v1/namespaces', '/openapi/v2']) {
      const clock = new FakeClock();
      let allow: (() => void) | undefined;
      const asked: unknown[] = [];
      const authorize = (...args: unknown[]): Promise<boolean> => {
        asked.push(args);
        return new Promise((resolve) => {
          allow = () => resolve(true);
        });
      };
      const resources = [NAMESPACES as ResourceDefinition];
      const options = { storage: new MemoryStorage(), resources, cache: false, clock, handshakeTimeoutMs: 2_000, ...hook };
      const server = new ApiServer({ ...options, authorize } as ApiServerOptions);
      await server.ready;
      const before = clock.pending;
      // An answer is over when it has been read: a list is made while it is sent.
      const ask = async (): Promise<number> => {
        const answer = await server.fetch(new Request(`http://a${path}`), undefined);
        await answer.text();
        return answer.status;
      };
      const late = ask();
      await eventually(() => expect(asked).toHaveLength(1));
      expect(clock.pending).toBeGreaterThan(before);
      await clock.advance(2_000);
      expect(await late, path).toBe(504);
      const answered = ask();
      await eventually(() => expect(asked).toHaveLength(2));
      allow?.();
      expect(await answered, path).toBe(200);
      expect(clock.pending, path).toBe(before);
      const who = 'authenticate' in hook ? 'ada' : undefined;
      expect(asked[1]).toEqual(
        path === '/openapi/v2' ? ['get', path, undefined, undefined, who] : ['list', 'namespaces', undefined, undefined, who],
      );
      await server.shutdown();
      expect(await ask(), path).toBe(503);
    }
  }
});

/** A storage that creates what it is told to, and then does what `after` does. */
function unanswered(storage: Storage, after: () => Promise<never>): Storage {
  return Object.assign(Object.create(storage) as Storage, {
    scope: (prefix: string) => unanswered(storage.scope(prefix), after),
    served: undefined,
    create: (key: string, object: KubernetesObject) => storage.create(key, object).then(after),
    ...Object.fromEntries(
      (['list', 'watch', 'get', 'currentVersion', 'requestProgress', 'close'] as const).map((name) => [
        name,
        storage[name].bind(storage),
      ]),
    ),
  });
}

// client-go, and so kubectl, makes any request again that is answered with a Retry-After; the second answer would be 409.
test.each([
  ['its time is over', () => new Promise<never>(() => {})],
  ['its storage is closed', () => Promise.reject(new WatchError('CLOSED', 'the storage is closed'))],
])(
  'a write that is under way when a server goes away, and %s: 504, as it may have happened, and not “try again”',
  async (_, after) => {
    const storage = new MemoryStorage();
    const resources = [CONFIG_MAPS as ResourceDefinition];
    const server = new ApiServer({ storage: unanswered(storage, after), resources });
    const post = (name: string): Promise<Response> => {
      const init = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ metadata: { name } }),
      };
      return server.fetch(new Request('http://a/api/v1/namespaces/default/configmaps', init), undefined);
    };
    const answer = post('a');
    await eventually(async () => expect((await storage.list()).items).toHaveLength(1));
    const cut = new AbortController();
    const gone = server.shutdown({ signal: cut.signal });
    cut.abort();
    const answered = await answer;
    expect([answered.status, answered.headers.get('retry-after')]).toEqual([504, null]);
    expect((await answered.json()).message).toContain('may have been done');
    // What comes now has not begun.
    const refused = await post('b');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    await gone;
    expect((await storage.list()).items).toHaveLength(1);
  },
);
