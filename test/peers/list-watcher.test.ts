// Lists and watches over HTTP against a real kube-apiserver: with its watch cache (secrets), and without one (configmaps).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createListWatcher,
  isInitialEventsEnd,
  type KubernetesObject,
  type ListWatcher,
  listAll,
} from '../../src/cache/index.ts';
import { isErrorEvent, isWatchError, type ObjectEvent, type Watch } from '../../src/index.ts';
import { LIST_WATCHER_CONTRACT, type ListWatcherSubject, type ListWatcherTrait } from '../../src/testing/index.ts';
import { component, isMissing } from '../components.ts';
import { type ApiServer, startApiServer, WITHOUT_WATCH_CACHE, WITHOUT_WATCH_LIST, withoutWatchCache } from './apiserver.ts';
import { type FaultProxy, startProxy } from './proxy.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;

let server: ApiServer;
let proxy: FaultProxy;
let namespaces = 0;

beforeAll(async () => {
  if (missing) return;
  server = await startApiServer({ flags: [withoutWatchCache('configmaps')] });
  proxy = await startProxy(server);
}, START_MS);
afterAll(async () => {
  await proxy?.close();
  await server?.stop();
}, START_MS);

interface Thing extends KubernetesObject {
  readonly data?: Record<string, string>;
}

/** A collection of its own, which is empty. */
const collection = (plural: string): Promise<string> => server.collection(`test-${namespaces++}`, plural);
/** With the host's own `fetch`, which unpacks what the server compresses. */
const plain = (path: string): ListWatcher<Thing> => createListWatcher<Thing>(`${proxy.url}${path}`);
const secure = (path: string): ListWatcher<Thing> =>
  createListWatcher<Thing>(`${server.url}${path}`, { fetch: server.fetch as typeof fetch });

async function nextOf<T>(watch: Watch<ObjectEvent<T>>): Promise<ObjectEvent<T>> {
  const { done, value } = await watch.next();
  if (done) throw new Error('the watch has ended');
  return value;
}

/** The events of a watch up to the end of its initial ones. */
async function initialOf(watch: Watch<ObjectEvent<Thing>>): Promise<ObjectEvent<Thing>[]> {
  const events: ObjectEvent<Thing>[] = [];
  for (;;) {
    const event = await nextOf(watch);
    if (isInitialEventsEnd(event)) return events;
    events.push(event);
  }
}

/** The code with which a watch is told that it cannot be served. */
async function codeOf(watching: Promise<Watch<ObjectEvent<Thing>>>): Promise<number | undefined> {
  try {
    const watch = await watching;
    const event = await nextOf(watch);
    await watch.return();
    return isErrorEvent(event) ? event.object.code : undefined;
  } catch (error) {
    return isWatchError(error, 'REFUSED') ? error.status?.code : undefined;
  }
}

const nameOf = (object: Thing): string => object.metadata?.name ?? '';

type Kind = readonly [string, string, (path: string) => ListWatcher<Thing>, readonly ListWatcherTrait[]];
const KINDS: readonly Kind[] = [
  ['without a watch cache, over plain HTTP', 'configmaps', plain, ['pages', 'initial', 'expires']],
  ['with a watch cache, over TLS', 'secrets', secure, ['pages', 'initial']],
];

describe.skipIf(missing).each(KINDS)('the contract of a list watcher, a kube-apiserver %s', (_, plural, connect, traits) => {
  for (const { name, needs, run } of LIST_WATCHER_CONTRACT) {
    if (needs !== undefined && !traits.includes(needs)) continue;
    it(name, () =>
      run(async () => {
        const path = await collection(plural);
        const subject: ListWatcherSubject<Thing> = {
          source: connect(path),
          put: async (each) => void (await server.put(path, each)),
          remove: async (each) => void (await server.delete(`${path}/${each}`)),
          expire: async () => void (await server.compact()),
        };
        return subject as ListWatcherSubject<never>;
      }),
    );
  }
});

describe.skipIf(missing).each(KINDS)('lists and watches, a kube-apiserver %s', (_, plural, connect) => {
  it('all pages are the whole list, also while objects come and go', async () => {
    const path = await collection(plural);
    await Promise.all(Array.from({ length: 23 }, (_, n) => server.put(path, `n${n}`)));
    const source = connect(path);
    const whole = await source.list();
    let turn = 0;
    const busy: ListWatcher<Thing> = {
      list: async (options) => {
        if (turn++ > 0) await server.delete(`${path}/n${turn}`);
        return source.list(options);
      },
      watch: (options) => source.watch(options),
    };
    const { items, paged } = await listAll(busy, { pageSize: 5 });
    expect(paged).toBe(true);
    expect(items).toEqual(whole.items);
  });

  it('initial events are the list, whether or not the server compresses them', async () => {
    const path = await collection(plural);
    // More than one chunk, and objects that compress.
    await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        server.put(path, `n${n}`, { metadata: { name: `n${n}`, annotations: { text: `${n} is good `.repeat(300) } } }),
      ),
    );
    const source = connect(path);
    const { items } = await source.list();
    for (const encoding of ['gzip', 'identity']) {
      let got: string | null = null;
      const fetching = async (url: string | URL, init: RequestInit): Promise<Response> => {
        const response = await (connect === plain ? fetch : (server.fetch as typeof fetch))(url, {
          ...init,
          headers: { ...init.headers, 'accept-encoding': encoding },
        });
        got = response.headers.get('content-encoding');
        return response;
      };
      const base = connect === plain ? proxy.url : server.url;
      const watch = await createListWatcher<Thing>(`${base}${path}`, { fetch: fetching as typeof fetch }).watch({
        sendInitialEvents: true,
      });
      const events = await initialOf(watch);
      expect(got).toBe(encoding === 'gzip' ? 'gzip' : null);
      expect(events.map(({ type, object }) => [type, object])).toEqual(
        expect.arrayContaining(items.map((item) => ['ADDED', item])),
      );
      expect(events).toHaveLength(items.length);
      await server.put(path, `later-${encoding}`);
      expect(await nextOf(watch)).toMatchObject({ type: 'ADDED', object: { metadata: { name: `later-${encoding}` } } });
      await watch.return();
      await server.delete(`${path}/later-${encoding}`);
    }
  });

  it('selectors choose what is listed, and an object that ceases to match is DELETED', async () => {
    const path = await collection(plural);
    for (const [name, app] of [
      ['a', 'web'],
      ['b', 'api'],
      ['c', 'web'],
    ] as const) {
      await server.create(path, { metadata: { name, labels: { app } } });
    }
    const source = connect(path);
    const list = await source.list({ labelSelector: 'app=web' });
    expect(list.items.map(nameOf)).toEqual(['a', 'c']);
    expect((await source.list({ fieldSelector: 'metadata.name!=a' })).items.map(nameOf)).toEqual(['b', 'c']);
    expect((await source.list({ labelSelector: 'app=web', fieldSelector: 'metadata.name=c' })).items.map(nameOf)).toEqual(['c']);
    const watch = await source.watch({ labelSelector: 'app=web', resourceVersion: list.resourceVersion });
    const changed = await server.patch(`${path}/a`, { metadata: { labels: { app: 'api' } } });
    const gone = await nextOf(watch);
    // Its last matching content, and the version of the change.
    expect(gone).toMatchObject({
      type: 'DELETED',
      object: { metadata: { name: 'a', labels: { app: 'web' }, resourceVersion: changed.metadata.resourceVersion } },
    });
    await server.patch(`${path}/b`, { metadata: { labels: { app: 'web' } } });
    expect(await nextOf(watch)).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'b' } } });
    await watch.return();
  });

  it('a refusal carries the Status of the server', async () => {
    const source = connect(await collection(plural));
    const refusal = (work: Promise<unknown>): Promise<unknown> =>
      work.catch((error: unknown) => (error as { status?: { code: number } }).status?.code);
    expect(await refusal(source.list({ labelSelector: 'a=b=c' }))).toBe(400);
    expect(await refusal(source.list({ fieldSelector: 'spec.nodeName=a' }))).toBe(400);
    expect(await refusal(connect('/api/v1/namespaces/default/nothings').list())).toBe(404);
    expect(await refusal(createListWatcher(`${proxy.url}/api/v1/configmaps`, { headers: { accept: 'x' } }).list())).not.toBe(406); // ours counts
  });
});

describe.skipIf(missing)('versions that are too old, a kube-apiserver', () => {
  it('after a compaction: the pages of a list start over, and a watch is told 410', async () => {
    const path = await collection('configmaps');
    for (const name of ['a', 'b', 'c', 'd']) await server.put(path, name);
    const source = plain(path);
    const { resourceVersion } = await source.list();
    const codes: unknown[] = [];
    const expiring: ListWatcher<Thing> = {
      list: async (options = {}) => {
        if (options.continue) {
          await server.put(path, 'e');
          await server.compact();
        }
        return source.list(options).catch((error: unknown) => {
          codes.push(isWatchError(error, 'REFUSED') && error.status?.code);
          throw error;
        });
      },
      watch: (options) => source.watch(options),
    };
    const { items, resourceVersion: later } = await listAll(expiring, { pageSize: 2 });
    expect(codes).toEqual([410]);
    expect(items.map(nameOf)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(await codeOf(source.watch({ resourceVersion }))).toBe(410);
    // The list that it started over with is a place to go on from.
    const watch = await source.watch({ resourceVersion: later });
    await server.put(path, 'f');
    expect(await nextOf(watch)).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'f' } } });
    await watch.return();
  });

  it(
    'after a crash: an open watch ends, its version is too old, and the list is as it was',
    async () => {
      const path = await collection('secrets');
      for (const name of ['a', 'b']) await server.put(path, name);
      const source = plain(path);
      const before = await source.list();
      const watch = await source.watch({ resourceVersion: before.resourceVersion });
      await server.put(path, 'c');
      expect(await nextOf(watch)).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'c' } } });
      await server.kill();
      expect(await watch.next()).toEqual({ done: true, value: undefined });
      await expect(source.list()).rejects.toThrow();
      await server.start();
      expect((await source.list()).items.map(nameOf)).toEqual(['a', 'b', 'c']);
      expect(await codeOf(source.watch({ resourceVersion: before.resourceVersion }))).toBe(410);
    },
    START_MS,
  );

  it(
    'servers without WatchList refuse initial events with 422; without any watch cache they send them',
    async () => {
      const path = await collection('secrets');
      await server.put(path, 'a');
      const [flagsBefore] = [[withoutWatchCache('configmaps')]];
      await server.restart([WITHOUT_WATCH_LIST]);
      expect(await codeOf(plain(path).watch({ sendInitialEvents: true }))).toBe(422);
      await server.restart([WITHOUT_WATCH_CACHE]);
      const watch = await plain(path).watch({ sendInitialEvents: true });
      expect((await initialOf(watch)).map(({ object }) => nameOf(object as Thing))).toEqual(['a']);
      await watch.return();
      await server.restart(flagsBefore);
    },
    START_MS,
  );
});
