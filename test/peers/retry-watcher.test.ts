// A RetryWatcher against a real kube-apiserver delivers every event once, in order, through all that its connections suffer. What a
// watch without faults has delivered, from the same version to the same end, is the measure.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createListWatcher, type KubernetesObject, type ListWatcher, RetryWatcher, until } from '../../src/cache/index.ts';
import type { ObjectEvent, Watch } from '../../src/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { type ApiServer, startApiServer, withoutWatchCache } from './apiserver.ts';
import { type FaultProxy, type Shares, seededFaults, startProxy } from './proxy.ts';
import { Writers } from './writers.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;
const QUICK = { minMs: 5, maxMs: 50 };
const FAULTS = 40;

let server: ApiServer;
let proxy: FaultProxy;
let writers: Writers | undefined;
let runs = 0;

beforeAll(async () => {
  if (!missing) server = await startApiServer({ flags: [withoutWatchCache('configmaps')] });
}, START_MS);
afterEach(async () => {
  await writers?.stop();
  await proxy?.close();
});
afterAll(() => server?.stop(), START_MS);

type Event = ObjectEvent<KubernetesObject>;

const nameOf = (object: KubernetesObject): string => object.metadata?.name ?? '';

async function start(plural: string): Promise<{ path: string; source: ListWatcher<KubernetesObject>; resourceVersion: string }> {
  const path = await server.collection(`watched-${runs++}`, plural);
  await server.put(path, 'a');
  proxy = await startProxy(server);
  // The server ends each watch after a second.
  const source = createListWatcher(`${proxy.url}${path}?timeoutSeconds=1`, { responseTimeoutMs: 1_000 });
  const { resourceVersion } = (await server.get(path)).metadata;
  writers = new Writers(server, path, runs);
  return { path, source, resourceVersion };
}

/** Every event up to the one that adds the object `end`. */
async function upToEnd(watch: Watch<Event>): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of watch) {
    events.push(event);
    if (event.type === 'ADDED' && nameOf(event.object) === 'end') return events;
  }
  throw new Error(`the watch has ended after ${events.length} events: ${JSON.stringify(events.at(-1))}`);
}

const SHARES: readonly (readonly [string, string, Shares])[] = [
  ['cuts at any byte', 'secrets', { cut: 1 }],
  ['cuts at any byte, without a watch cache', 'configmaps', { cut: 1 }],
  ['every fault', 'configmaps', { none: 1, cut: 10, truncate: 6, halfOpen: 2, delay: 1, refuse: 6 }],
];

describe.skipIf(missing)('a RetryWatcher, a kube-apiserver', () => {
  it.each(SHARES)(
    'S1: through %s (%s) it delivers what an uncut watch does',
    async (_, plural, shares) => {
      const { path, source, resourceVersion } = await start(plural);
      const uncut = createListWatcher(`${server.url}${path}`, { fetch: server.fetch as typeof fetch });
      const expected = upToEnd(await uncut.watch({ resourceVersion }));
      proxy.play(seededFaults(runs, shares));
      const watch = new RetryWatcher(source, { resourceVersion, idleTimeoutMs: 400, ...QUICK, onError: () => {} });
      const seen = upToEnd(watch);
      await eventually(() => expect(proxy.faults).toBeGreaterThanOrEqual(FAULTS));
      await writers?.stop();
      const end = await server.put(path, 'end');
      proxy.calm();
      expect(await seen).toEqual(await expected);
      expect(watch.resourceVersion).toBe(end.metadata.resourceVersion);
      await eventually(() => expect(proxy.open).toBe(0));
    },
    START_MS,
  );

  it('after a compaction that it has missed, it tells 410 and ends', async () => {
    const { path, source, resourceVersion } = await start('configmaps');
    await eventually(() => expect(writers?.written).toBeGreaterThan(10));
    await server.put(path, 'more');
    await server.compact();
    const watch = new RetryWatcher(source, { resourceVersion, ...QUICK });
    expect((await watch.next()).value).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  });

  it(
    'until waits through cuts for what is to happen, and leaves nothing open',
    async () => {
      const { path, source, resourceVersion } = await start('secrets');
      let cuts = 0;
      proxy.play(() => (cuts++ < 5 ? { kind: 'cut', after: 500 } : undefined));
      const found = until({ source, resourceVersion, ...QUICK }, [
        ({ type, object }) => type === 'ADDED' && nameOf(object as KubernetesObject) === 'done',
        ({ type, object }) => type === 'DELETED' && nameOf(object as KubernetesObject) === 'done',
      ]);
      await eventually(() => expect(proxy.faults).toBe(5));
      await server.put(path, 'done');
      await server.delete(`${path}/done`);
      expect(await found).toMatchObject({ type: 'DELETED', object: { metadata: { name: 'done' } } });
      await eventually(() => expect(proxy.open).toBe(0));
    },
    START_MS,
  );
});
