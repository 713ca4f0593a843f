// Reflectors that fill queues and stores, and a controller with two informers, against a real kube-apiserver while four writers write:
// a proxy that cuts at any byte, half-opens, delays, refuses and truncates; a compaction while they are cut off; a server that is killed
// and comes back with an empty watch cache. Afterwards each store and each fold of a pop loop equals a fresh list, what the controller
// had to do is done, and nothing pends.
//
// No flag makes a watch cache tiny: `--watch-cache-sizes` knows 0, and all else is the same. One that has just started holds no past at
// all, which is the smallest there is: see the kill.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  createListWatcher,
  DeltaFifo,
  Informer,
  type KubernetesObject,
  keyOf,
  type RealDelta,
  RealFifo,
  Reflector,
  type ReflectorOptions,
  type ReflectorStore,
  Store,
  splitKey,
} from '../../src/cache/index.ts';
import { type Clock, systemClock } from '../../src/watch/clock.ts';
import { Controller, exponential, WorkQueue } from '../../src/workqueue/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually, until } from '../eventually.ts';
import { type Answer, type ApiServer, startApiServer, withoutWatchCache } from './apiserver.ts';
import { versionsOf } from './fold.ts';
import { type FaultProxy, randomOf, seededFaults, startProxy } from './proxy.ts';
import { Writers } from './writers.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;
/** How long a condition may take to come true, on a busy machine. */
const PATIENCE_MS = 60_000;
const WRITES = 30;
const SHARES = { none: 1, cut: 10, truncate: 6, halfOpen: 2, delay: 1, refuse: 6 };
/** 429, 500, 504, a cut, a delay, a half-open link, and JSON that is not whole. */
const KINDS_OF_FAULTS = 7;

/** The host's clock. It knows what is still to come. */
class KnownClock implements Clock {
  readonly pending: Set<() => void> = new Set();

  now(): number {
    return systemClock.now();
  }

  schedule(delayMs: number, callback: () => void): () => void {
    const cancel = systemClock.schedule(delayMs, () => {
      this.pending.delete(cancel);
      callback();
    });
    this.pending.add(cancel);
    return () => {
      this.pending.delete(cancel);
      cancel();
    };
  }
}

const clock = new KnownClock();
const QUICK = { minMs: 5, maxMs: 50, minWatchTimeoutMs: 1_000, idleTimeoutMs: 400, clock };
const PATIENT = { responseTimeoutMs: 1_000, clock };

let server: ApiServer;
let releases: (() => unknown)[] = [];
let namespaces = 0;

beforeAll(async () => {
  if (!missing) server = await startApiServer({ flags: [withoutWatchCache('configmaps')] });
}, START_MS);
afterEach(async () => {
  for (const release of releases.reverse()) await release();
  releases = [];
});
afterAll(() => server?.stop(), START_MS);

const versionOf = (object: KubernetesObject | undefined): bigint => BigInt(object?.metadata?.resourceVersion ?? 0);

const freshList = async (path: string): Promise<readonly KubernetesObject[]> => (await server.get(path)).items;

async function proxyOf(): Promise<FaultProxy> {
  const proxy = await startProxy(server);
  releases.push(() => proxy.close());
  return proxy;
}

function writersOf(path: string): Writers {
  const writers = new Writers(server, path, namespaces);
  releases.push(() => writers.stop());
  return writers;
}

function writes(writers: Writers): Promise<void> {
  const goal = writers.written + WRITES;
  return until(() => writers.written >= goal);
}

function cutOff(proxies: readonly FaultProxy[]): void {
  for (const proxy of proxies) {
    proxy.play(() => ({ kind: 'cut', after: -1 }));
    proxy.cutAll();
  }
}

interface Storm {
  readonly proxies: readonly FaultProxy[];
  readonly writers: readonly Writers[];
  /** Number of faults, on each proxy. */
  readonly faults: number;
  /** Who has not seen the last writes when the server is killed; default none. */
  readonly behind?: readonly FaultProxy[];
  /** Whether everybody follows again: what is behind must have had something to go on with. */
  readonly follows?: () => boolean;
  /** Whether everybody who should has felt the compaction. Otherwise there is another one. */
  readonly felt?: () => boolean;
}

/** What happens to them, one after the other, while the writers write. Then all is well again. */
async function storm({ proxies, writers, faults, behind = [], follows = () => true, felt = () => true }: Storm): Promise<void> {
  const written = (): Promise<unknown> => Promise.all(writers.map(writes));
  await written();
  for (const [seed, proxy] of proxies.entries()) proxy.play(seededFaults(seed, SHARES));
  await until(() => proxies.every((each) => each.faults >= faults && each.counts.size === KINDS_OF_FAULTS));
  // Only who watches when it is cut off feels a compaction: a list shows what is there by now.
  do {
    for (const proxy of proxies) proxy.calm();
    await until(follows);
    cutOff(proxies);
    await written();
    await server.compact();
    for (const proxy of proxies) proxy.calm();
    await written();
    await until(follows);
  } while (!felt());
  cutOff(behind);
  await written();
  await server.kill();
  for (const proxy of behind) proxy.calm();
  await server.start();
  await written();
  for (const each of writers) await each.stop();
}

/** Nothing is asked any more: no answer is waited for, and no retry is to come. */
async function quiet(proxies: readonly FaultProxy[]): Promise<void> {
  expect([...clock.pending]).toEqual([]);
  await until(() => proxies.every(({ open }) => open === 0));
  const requests = proxies.map((proxy) => proxy.requests);
  await server.get('/version');
  expect([...clock.pending]).toEqual([]);
  expect(proxies.map((proxy) => proxy.requests)).toEqual(requests);
}

/** What a loop of pops has come to, and what does not follow from what came before. */
class Popped {
  objects: Map<string, KubernetesObject> = new Map();
  readonly faults: string[] = [];
  #last: bigint = 0n;

  /** `ordered`: changes come in the order of their versions, over all keys. */
  apply(deltas: readonly RealDelta<KubernetesObject>[], ordered: boolean): void {
    for (const delta of deltas) {
      if (delta.type === 'ReplacedAll') this.objects = new Map(delta.objects);
      if (delta.type === 'ReplacedAll' || delta.type === 'Bookmark') this.#reach(BigInt(delta.resourceVersion), 0n);
      if (!('key' in delta)) continue;
      const { type, key, object } = delta;
      const known = this.objects.get(key);
      const isNew = type === 'Added' || type === 'Updated' || (type === 'Deleted' && !delta.finalStateUnknown);
      if (isNew && ordered) this.#reach(versionOf(object), 1n);
      if (isNew && versionOf(object) <= versionOf(known)) this.faults.push(`${type} ${key} is not newer`);
      if (type === 'Added' && known) this.faults.push(`${type} ${key}, which is there`);
      if ((type === 'Updated' || type === 'Deleted') && !known) this.faults.push(`${type} ${key}, which is not there`);
      if (versionOf(object) < versionOf(known)) this.faults.push(`${type} ${key} goes back`);
      if (type === 'Deleted') this.objects.delete(key);
      else this.objects.set(key, object);
    }
  }

  #reach(version: bigint, step: bigint): void {
    if (version < this.#last + step) this.faults.push(`${version} after ${this.#last}`);
    this.#last = version;
  }
}

/** A reflector, and what reads from what it fills. */
class Reflected {
  readonly store: Store<KubernetesObject> = new Store();
  readonly popped: Popped = new Popped();
  readonly failures: string[] = [];
  readonly #stop: AbortController = new AbortController();
  readonly #ran: Promise<unknown>;
  readonly #popping: Promise<void> | undefined;
  readonly #reflector: Reflector<KubernetesObject>;

  constructor(url: string, into: (typeof INTO)[number], options: ReflectorOptions<KubernetesObject>) {
    const ordered = into === 'RealFifo';
    const known = { knownObjects: this.store, capacity: 5 };
    const queue =
      into === 'DeltaFifo'
        ? new DeltaFifo({ ...known, emitReplaced: true })
        : into === 'Store'
          ? undefined
          : new RealFifo<KubernetesObject>(ordered ? {} : known);
    const target: ReflectorStore<KubernetesObject> = queue ?? this.store;
    const onError = (_: unknown, { kind }: { kind: string }): unknown => this.failures.push(kind);
    this.#reflector = new Reflector(createListWatcher(url, PATIENT), target, { ...options, onError });
    this.#ran = this.#reflector.run(this.#stop.signal).finally(() => queue?.close());
    this.#popping = queue && this.#pop(queue, ordered);
    releases.push(() => this.end());
  }

  async #pop(queue: DeltaFifo<KubernetesObject> | RealFifo<KubernetesObject>, ordered: boolean): Promise<void> {
    const process = (deltas: readonly RealDelta<KubernetesObject>[]): void => {
      this.popped.apply(deltas, ordered);
      for (const delta of deltas) {
        if (delta.type === 'ReplacedAll') this.store.replace(delta.objects.values(), delta.resourceVersion);
        else if (delta.type === 'Deleted') this.store.delete(delta.object);
        else if ('key' in delta) this.store.update(delta.object);
      }
    };
    while (!queue.closed || queue.size > 0) await queue.pop(process).catch((error) => queue.closed || Promise.reject(error));
    expect(queue.size).toBe(0);
  }

  get folded(): Iterable<KubernetesObject> {
    return this.#popping ? this.popped.objects.values() : this.store.list();
  }

  get isWatching(): boolean {
    return this.#reflector.state.phase === 'watching';
  }

  /** Resolves when it has stopped, and everything was popped. */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.#ran;
    await this.#popping;
    expect(this.#reflector.state.phase).toBe('stopped');
  }
}

const INTO = ['DeltaFifo', 'RealFifo', 'RealFifo with knownObjects', 'Store'] as const;
const KINDS = [
  ['secrets', true],
  ['configmaps', false],
] as const;

/** Keeps a copy of each secret in a config map of its name, by requests that suffer as those of its informers do. */
class Copier {
  readonly faults: string[] = [];
  /** Attempts that failed and were made again. */
  retries: number = 0;
  /** Copies whose last write was answered, with its version. */
  readonly written: Map<string, bigint> = new Map();
  readonly #working: Set<string> = new Set();
  readonly #url: string;
  readonly secrets: Informer<KubernetesObject>;
  readonly copies: Informer<Answer>;
  readonly controller: Controller<KubernetesObject>;

  constructor(url: string) {
    this.#url = url;
    const informer = (plural: string): Informer<KubernetesObject> =>
      new Informer(createListWatcher(`${url}/${plural}`, PATIENT), { ...QUICK, onError: () => {} });
    this.secrets = informer('secrets');
    // Every namespace gets a config map with the certificate of the cluster by itself, where the controllers of Kubernetes run.
    this.copies = informer('configmaps');
    this.controller = new Controller<KubernetesObject>({
      informers: [this.secrets, this.copies],
      queue: new WorkQueue({ rateLimiter: exponential({ baseMs: 5, maxMs: 200 }), clock }),
      concurrency: 4,
      wroteTimeoutMs: PATIENCE_MS,
      reconcile: async (key, { wrote, signal }) => {
        if (this.#working.has(key)) this.faults.push(`${key} is in work twice`);
        this.#working.add(key);
        const version = await this.#reconcile(key, signal).finally(() => this.#working.delete(key));
        if (version) wrote({ metadata: { resourceVersion: version } }, this.copies);
      },
      onError: (error, { during }) => {
        if (during === 'reconcile') this.retries++;
        else if (during !== 'source') this.faults.push(`${during}: ${error}`); // sources fail, as they are told to
      },
    });
  }

  /** Resolves with the version that it has written, if it had to. */
  async #reconcile(key: string, signal: AbortSignal): Promise<string | undefined> {
    const of = this.secrets.store.get(key)?.metadata?.resourceVersion;
    const copy = this.copies.store.get(key);
    if (versionOf(copy) < (this.written.get(key) ?? 0n)) this.faults.push(`${key} does not see what it wrote`);
    if (of === copy?.data?.of) return undefined;
    const { name } = splitKey(key);
    this.written.delete(key); // without an answer, nobody knows
    const ask = async (method: string, path: string, body?: object): Promise<Answer> => {
      const patch = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      const within = AbortSignal.any([signal, AbortSignal.timeout(1_000)]);
      const sent = { method, signal: within, headers: { 'content-type': patch }, body: body && JSON.stringify(body) };
      const response = await fetch(`${this.#url}/configmaps${path}`, sent as RequestInit);
      if (!response.ok && !(method === 'DELETE' && response.status === 404)) throw new Error(`${response.status}`);
      return response.json();
    };
    if (of === undefined) {
      await ask('DELETE', `/${name}`);
      return undefined;
    }
    const now = copy
      ? await ask('PATCH', `/${name}`, { data: { of } })
      : await ask('POST', '', { metadata: { name }, data: { of } });
    this.written.set(key, versionOf(now));
    return now.metadata.resourceVersion;
  }
}

describe.skipIf(missing)('a kube-apiserver', () => {
  it(
    'reflectors into a DeltaFifo, a RealFifo and a Store: each is at the end what a fresh list has, and its pop loop, too',
    async () => {
      const proxies: FaultProxy[] = [];
      const writers: Writers[] = [];
      const runs: (readonly [string, string, Reflected])[] = [];
      for (const [plural, streamingList] of KINDS) {
        const path = await server.collection(`reflected-${namespaces++}`, plural);
        await server.put(path, 'a');
        const proxy = await proxyOf();
        proxies.push(proxy);
        for (const [seed, into] of INTO.entries()) {
          const options = { ...QUICK, streamingList, pageSize: 3, random: randomOf(seed) };
          runs.push([path, `${plural}, ${into}`, new Reflected(`${proxy.url}${path}`, into, options)]);
        }
        writers.push(writersOf(path));
      }
      const follows = (): boolean => runs.every(([, , run]) => run.isWatching);
      const felt = (): boolean => runs.every(([, what, run]) => what.startsWith('secrets') || run.failures.includes('expired'));
      await storm({ proxies, writers, faults: 60, behind: proxies.slice(0, 1), follows, felt });
      for (const [path, what, run] of runs) {
        await server.put(path, 'end');
        const items = await freshList(path);
        const expected = versionsOf(items);
        await eventually(() => expect(versionsOf(run.store.list()), what).toEqual(expected));
        expect(versionsOf(run.folded), what).toEqual(expected);
        expect(run.popped.faults, what).toEqual([]);
        expect(run.failures, what).toContain('unreachable');
        // Config maps feel the compaction, secrets that the server has come back with an empty watch cache.
        expect(run.failures, what).toContain('expired');
      }
      for (const [, , run] of runs) await run.end();
      await quiet(proxies);
    },
    2 * START_MS,
  );

  it(
    'a controller reconciles everything, and never works with less than it wrote',
    async () => {
      const path = await server.collection(`copied-${namespaces++}`, 'secrets');
      const proxy = await proxyOf();
      const copier = new Copier(`${proxy.url}${path.slice(0, path.lastIndexOf('/'))}`);
      const stop = new AbortController();
      const ran = copier.controller.run(stop.signal);
      releases.push(async () => {
        stop.abort();
        await ran;
      });
      await storm({ proxies: [proxy], writers: [writersOf(path)], faults: 100 });
      const secrets = await freshList(path);
      const wanted = Object.fromEntries(secrets.map((each) => [keyOf(each), each.metadata?.resourceVersion]).sort());
      const copies = async (): Promise<readonly Answer[]> => freshList(path.replace('secrets', 'configmaps'));
      await eventually(
        async () =>
          expect(Object.fromEntries((await copies()).map((each) => [keyOf(each), each.data.of]).sort())).toEqual(wanted),
        { intervalMs: 100 },
      );
      await until(() => copier.controller.queue.size === 0);
      const answered = (await copies()).filter((each) => copier.written.has(keyOf(each)));
      expect(answered.length).toBeGreaterThan(0);
      expect(copier.faults).toEqual([]);
      expect(copier.retries).toBeGreaterThan(0);
      stop.abort();
      await ran;
      expect([copier.secrets.state.phase, copier.copies.state.phase]).toEqual(['stopped', 'stopped']);
      await quiet([proxy]);
    },
    2 * START_MS,
  );
});
