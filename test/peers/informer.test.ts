// Informers against a real kube-apiserver while four writers write, through everything that can go wrong between the two. After
// each run the store equals a fresh list, the fold of every handler equals the store, and nothing pends.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  createListWatcher,
  Informer,
  type InformerOptions,
  type KubernetesObject,
  type ReflectorFailureKind,
} from '../../src/cache/index.ts';
import { component, isMissing } from '../components.ts';
import { until } from '../eventually.ts';
import { type ApiServer, startApiServer, WITHOUT_WATCH_LIST, withoutWatchCache } from './apiserver.ts';
import { Fold, versionsOf } from './fold.ts';
import { type FaultProxy, randomOf, seededFaults, startProxy } from './proxy.ts';
import { Writers } from './writers.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;
const FLAGS = [withoutWatchCache('configmaps')];
/** Writes that a run sees at least, on each side of what happens to it. */
const WRITES = 60;
/** 429, 500, 504, a cut, a delay, a half-open link, and JSON that is not whole. */
const FAULTS = 7;
/** How long a condition may take to come true, on a busy machine. */
const PATIENCE_MS = 60_000;

let server: ApiServer;
let runs = 0;
let running: Run[] = [];

beforeAll(async () => {
  if (!missing) server = await startApiServer({ flags: FLAGS });
}, START_MS);
afterEach(async () => {
  for (const each of running) await each.release();
  running = [];
});
afterAll(() => server?.stop(), START_MS);

/** `responseTimeoutMs`: only where answers stop coming. A busy server takes its time, and an informer lists after two vain streams. */
type RunOptions = InformerOptions<KubernetesObject> & { readonly responseTimeoutMs?: number };

/** An informer behind a proxy, its handlers, and the writers. */
class Run {
  readonly path: string;
  readonly proxy: FaultProxy;
  readonly informer: Informer<KubernetesObject>;
  readonly failures: string[] = [];
  readonly folds: Fold[] = [new Fold(), new Fold(), new Fold()];
  readonly writers: Writers;
  readonly #ran: Promise<void>;

  constructor(path: string, proxy: FaultProxy, { responseTimeoutMs, ...options }: RunOptions) {
    this.path = path;
    this.proxy = proxy;
    const source = createListWatcher(`${proxy.url}${path}`, { responseTimeoutMs });
    const quick = { minMs: 20, maxMs: 200, random: randomOf(runs), minWatchTimeoutMs: 2_000 };
    this.informer = new Informer(source, { ...quick, onError: (_, { kind }) => this.failures.push(kind), ...options });
    const [all, odd, later] = this.folds as [Fold, Fold, Fold];
    this.informer.addHandler(all.handler);
    this.informer.addHandler(odd.handler, { filter: isOdd });
    this.writers = new Writers(server, path, runs);
    this.#ran = this.informer.run();
    // One that comes while objects come and go.
    void this.informer.synced.then(
      () => this.informer.addHandler(later.handler),
      () => {},
    );
  }

  /** Waits for some more writes. */
  async writes(count: number = WRITES): Promise<void> {
    const goal = this.writers.written + count;
    await until(() => this.writers.written >= goal);
  }

  failed(kind: ReflectorFailureKind): Promise<void> {
    return until(() => this.failures.includes(kind));
  }

  /** What must hold when the faults have stopped. */
  async converges(): Promise<void> {
    this.proxy.calm();
    await this.writers.stop();
    const { metadata } = await server.put(this.path, 'end', { metadata: { name: 'end', labels: { parity: 'odd' } } });
    await this.informer.atLeast(metadata.resourceVersion, { timeoutMs: PATIENCE_MS });
    const { items } = (await server.get(this.path)) as { items: KubernetesObject[] };
    expect(versionsOf(this.informer.store.list())).toEqual(versionsOf(items));
    const bare = ({ metadata, ...rest }: KubernetesObject): object => ({ metadata, ...rest, kind: '', apiVersion: '' });
    const byName = (objects: readonly KubernetesObject[]): object[] =>
      objects.map(bare).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    expect(byName(this.informer.store.list())).toEqual(byName(items));
    const [all, odd, later] = this.folds as [Fold, Fold, Fold];
    await until(() => this.folds.every(({ objects }) => [...objects.keys()].some((key) => key.endsWith('/end'))));
    expect(all.versions).toEqual(versionsOf(items));
    expect(later.versions).toEqual(versionsOf(items));
    expect(odd.versions).toEqual(versionsOf(items.filter(isOdd)));
    expect(this.folds.flatMap(({ faults }) => faults)).toEqual([]);
    await this.ends();
  }

  /** Nothing pends afterwards. */
  async ends(): Promise<void> {
    await this.informer.stop();
    await this.#ran;
    expect(this.informer.state.phase).toBe('stopped');
    const { requests } = this.proxy;
    await until(() => this.proxy.open === 0);
    expect(this.proxy.requests).toBe(requests);
  }

  async release(): Promise<void> {
    await this.writers.stop();
    await this.informer.stop();
    await this.#ran.catch(() => {});
    await this.proxy.close();
  }
}

const nameOf = (object: KubernetesObject): string => object.metadata?.name ?? '';
const isOdd = ({ metadata }: KubernetesObject): boolean => metadata?.labels?.parity === 'odd';

async function start(plural: string, options: RunOptions = {}): Promise<Run> {
  const path = await server.collection(`run-${runs++}`, plural);
  for (const name of ['a', 'b', 'c']) await server.put(path, name);
  const run = new Run(path, await startProxy(server), options);
  running.push(run);
  return run;
}

const KINDS = [
  ['a watch cache', 'secrets', true],
  ['a watch cache', 'secrets', false],
  ['no watch cache', 'configmaps', true],
  ['no watch cache', 'configmaps', false],
] as const;

describe.skipIf(missing)('informers, a kube-apiserver', () => {
  it.each(KINDS)(
    'with %s (%s), streaming list %s: follows writers, and the ends of watches',
    async (_, plural, streamingList) => {
      const run = await start(plural, { streamingList, minWatchTimeoutMs: 1_000, pageSize: 2 });
      await run.informer.synced;
      await run.writes();
      // The server ends a watch when its time is over; the next one goes on where it has ended.
      const watches = (): number => run.proxy.seen.filter(({ isWatch }) => isWatch).length;
      await until(() => watches() >= 3);
      await run.writes();
      expect(run.proxy.seen.filter(({ isWatch }) => !isWatch).length > 0).toBe(!streamingList);
      await run.converges();
      // On a busy machine a list may come too late.
      expect(run.failures.filter((kind) => kind !== 'unreachable')).toEqual([]);
    },
    START_MS,
  );

  it.each([true, false])(
    'a compaction while it is cut off (410), streaming list %s: lists again, and infers what was deleted',
    async (streamingList) => {
      const run = await start('configmaps', { streamingList });
      await run.informer.synced;
      await run.writes();
      run.proxy.play(() => ({ kind: 'cut', after: -1 }));
      run.proxy.cutAll();
      await server.delete(`${run.path}/b`);
      await run.writes();
      await server.compact();
      run.proxy.calm();
      await run.failed('expired');
      await run.writes();
      await run.converges();
      expect(run.folds[0]?.inferred.some((key) => key.endsWith('/b'))).toBe(true);
    },
    START_MS,
  );

  it(
    'compactions while it watches',
    async () => {
      const run = await start('configmaps');
      await run.informer.synced;
      for (let n = 0; n < 3; n++) {
        await run.writes(20);
        await server.compact();
      }
      await run.converges();
    },
    START_MS,
  );

  it(
    'a proxy that cuts, delays, half-opens, truncates and refuses',
    async () => {
      const options = { responseTimeoutMs: 1_000, idleTimeoutMs: 400, minWatchTimeoutMs: 1_000, minMs: 5, maxMs: 50 };
      const both = [await start('secrets', options), await start('configmaps', options)];
      const shares = { none: 1, cut: 10, truncate: 6, halfOpen: 2, delay: 1, refuse: 6 };
      for (const [seed, { proxy }] of both.entries()) proxy.play(seededFaults(seed, shares));
      for (const run of both) {
        await until(() => run.proxy.faults >= 40 && run.proxy.counts.size === FAULTS);
        await run.converges();
      }
    },
    START_MS,
  );

  it(
    'the server is killed and started again, and then as one that does not know WatchList: goes on',
    async () => {
      const both = [await start('secrets'), await start('configmaps')];
      for (const flags of [FLAGS, [...FLAGS, WITHOUT_WATCH_LIST]]) {
        for (const run of both) {
          await run.informer.synced;
          await run.writes();
        }
        await server.kill();
        for (const run of both) await run.failed('unreachable');
        await server.start(flags);
      }
      const late = await start('secrets');
      for (const run of [...both, late]) {
        await run.writes();
        await run.converges();
      }
      expect(late.proxy.seen.filter(({ isWatch }) => !isWatch)).not.toEqual([]);
    },
    2 * START_MS,
  );
});
