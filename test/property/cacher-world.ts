// A cacher before a storage that fails, its watches, and the commands that move them.
import fc from 'fast-check';
import { expect } from 'vitest';
import type { ListOptions, ListWatchOptions } from '../../src/cache/index.ts';
import { versionOf } from '../../src/cache/object.ts';
import { Cacher, type CacherOptions, type Storage, type StorageEvent } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { FIELDS, type Pod, Pods, settle } from '../unit/faulty-storage.ts';
import { type Begin, type Judge, matches, Reader, type Selected, selected } from './cacher-model.ts';

export type Command =
  | { readonly do: 'put'; readonly key: string; readonly app: string; readonly node: string }
  | { readonly do: 'remove'; readonly key: string }
  | { readonly do: 'burst'; readonly key: string; readonly count: number }
  | { readonly do: 'lose' | 'elsewhere' | 'cut' | 'hold' | 'release' | 'compact' | 'drop' | 'mute' | 'settle' | 'progress' }
  | { readonly do: 'error' | 'failWatch' | 'failList' | 'failVersion'; readonly code: number }
  | { readonly do: 'get'; readonly key: string; readonly how: 'newest' | 'any' | 'fresh' }
  | { readonly do: 'abort'; readonly verb: 'list' | 'watch' | 'get'; readonly turns: number }
  | { readonly do: 'watch'; readonly what: Selected; readonly begin: Begin; readonly eager: boolean; readonly bookmarks: boolean }
  | { readonly do: 'read'; readonly at: number; readonly how: 'one' | 'batch' | 'all' }
  | { readonly do: 'stop'; readonly at: number }
  | { readonly do: 'list'; readonly what: Selected; readonly how: 'newest' | 'any' | 'fresh' | 'exact'; readonly back: number }
  | { readonly do: 'pages'; readonly what: Selected; readonly limit: number; readonly writes: boolean }
  | { readonly do: 'advance'; readonly ms: number };

const key = fc.constantFrom('x/a', 'x/b', 'x/c', 'y/a', 'y/b');

/** What has happened in a storage before a cacher begins. */
export type Past = 'elsewhere' | 'compact' | { readonly is: 'put' | 'remove'; readonly key: string; readonly app: string };
export const past: fc.Arbitrary<Past> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ is: fc.constantFrom('put' as const, 'put', 'remove'), key, app: fc.constantFrom('web', 'db') }),
  },
  { weight: 2, arbitrary: fc.constantFrom<Past>('elsewhere', 'compact') },
);
const begin: fc.Arbitrary<Begin> = fc.oneof(
  fc.constantFrom<Begin>('state', 'initial', 'now'),
  fc.record({ back: fc.integer({ min: 0, max: 12 }) }),
);
export const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('put' as const),
      key,
      app: fc.constantFrom('web', 'db', 'job'),
      node: fc.constantFrom('n1', 'n2'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('remove' as const), key }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom(
        ...(['elsewhere', 'lose', 'cut', 'hold', 'release', 'compact', 'drop', 'mute', 'settle', 'settle', 'progress'] as const),
      ),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('burst' as const), key, count: fc.integer({ min: 2, max: 8 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('error' as const, 'failWatch', 'failList', 'failVersion'),
      code: fc.constantFrom(410, 429, 500),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('get' as const), key, how: fc.constantFrom('newest' as const, 'any', 'fresh') }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('abort' as const),
      verb: fc.constantFrom('list' as const, 'watch', 'get'),
      turns: fc.nat(20),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('watch' as const),
      what: selected,
      begin,
      eager: fc.boolean(),
      bookmarks: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('read' as const),
      at: fc.nat(20),
      how: fc.constantFrom('one' as const, 'batch', 'all'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop' as const), at: fc.nat(20) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('list' as const),
      what: selected,
      how: fc.constantFrom('newest' as const, 'any', 'fresh', 'exact'),
      back: fc.integer({ min: 0, max: 10 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('pages' as const),
      what: selected,
      limit: fc.integer({ min: 1, max: 3 }),
      writes: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(50, 1_000, 4_000, 61_000, 200_000) }),
  },
);

export class World implements Judge {
  readonly pods: Pods;
  /** The version of the storage when the cacher began. */
  readonly begun: number;
  readonly clock: FakeClock = new FakeClock(1_000);
  readonly cacher: Cacher<Pod>;
  readonly readers: Reader[] = [];
  readonly #shared: Map<string, object> = new Map();
  readonly following: Promise<unknown>[] = [];
  #n: number = 0;

  private constructor(options: CacherOptions<Pod>, { pods, begun }: { pods: Pods; begun: number }) {
    this.pods = pods;
    this.begun = begun;
    this.cacher = new Cacher<Pod>(this.pods.storage, { ...options, fields: FIELDS, clock: this.clock });
  }

  /** A world in which something has happened before the cacher begins. */
  static async after(before: readonly Past[], options: CacherOptions<Pod>, isBacked: boolean = false): Promise<World> {
    const pods = new Pods();
    pods.storage.faults.isBacked = isBacked;
    let n = 1_000_000;
    for (const step of before) {
      if (step === 'elsewhere') await pods.elsewhere();
      else if (step === 'compact') pods.memory.compact();
      else if (step.is === 'put') await pods.put(step.key, { ...step, n: n++ });
      else await pods.remove(step.key);
    }
    return new World(options, { pods, begun: Number(await pods.memory.currentVersion()) });
  }

  /** A watch may be ended with 410 only if more has happened than is kept, or the storage has lost something. */
  expectLost({ told }: Reader): void {
    const { fellBehind, gaps, window } = this.cacher.stats;
    expect(fellBehind + gaps).toBeGreaterThan(0);
    if (gaps === 0) expect(told).toBeLessThan(Number(window.since));
  }

  /** Watches of one selection get the same event. */
  expectShared(what: Selected, event: StorageEvent<Pod>): void {
    if (event.type === 'BOOKMARK' || event.type === 'ERROR' || this.cacher.stats.gaps > 0) return;
    const { namespace, name } = event.object.metadata ?? {};
    const id = `${event.type === 'DELETED' ? JSON.stringify(what) : ''} ${namespace}/${name} ${versionOf(event.object)}`;
    const first = this.#shared.get(id) ?? event.object;
    expect(event.object).toBe(first);
    this.#shared.set(id, first);
  }

  async within<R>(promise: Promise<R>): Promise<R | { readonly code: number }> {
    let outcome: { readonly value: R } | { readonly code: number } | undefined;
    promise.then(
      (value) => (outcome = { value }),
      (error: unknown) => {
        if (!isWatchError(error, 'REFUSED')) throw error;
        outcome = { code: error.status?.code ?? 0 };
      },
    );
    for (let turn = 0; turn < 100 && !outcome; turn++) {
      await settle();
      if (!outcome) this.clock.advance(50);
    }
    expect(outcome).toBeDefined();
    const settled = outcome as { readonly value: R } | { readonly code: number };
    return 'value' in settled ? settled.value : settled;
  }

  async take(step: Command): Promise<void> {
    const { pods, clock } = this;
    const { storage } = pods;
    switch (step.do) {
      case 'put':
        await pods.put(step.key, { app: step.app, node: step.node, n: this.#n++ });
        return;
      case 'remove':
        await pods.remove(step.key);
        return;
      case 'burst':
        for (let i = 0; i < step.count; i++) {
          await pods.put(step.key, { app: i % 2 ? 'web' : 'db', node: i % 3 ? 'n1' : 'n2', n: this.#n++ });
        }
        return;
      case 'lose':
        storage.cut();
        await pods.put('x/a', { n: this.#n++ });
        await pods.remove('y/a');
        return pods.memory.compact();
      case 'elsewhere':
        return await pods.elsewhere();
      case 'cut':
        return storage.cut();
      case 'error':
        return storage.cut(step.code);
      case 'hold':
        return storage.hold();
      case 'release':
        return storage.release();
      case 'compact':
        return pods.memory.compact();
      case 'drop':
        return this.cacher.compact();
      case 'mute':
        storage.faults.mutesProgress = !storage.faults.mutesProgress;
        return;
      case 'failVersion':
        storage.faults.codes.currentVersion.push(step.code === 410 ? 503 : step.code);
        return;
      case 'get':
        return await this.get(step);
      case 'abort':
        return await this.abort(step);
      case 'settle':
        return await settle();
      case 'progress':
        await this.within(this.cacher.requestProgress());
        return;
      case 'failWatch':
        storage.faults.codes.watch.push(step.code);
        return;
      case 'failList':
        storage.faults.codes.list.push(step.code === 410 ? 503 : step.code);
        return;
      case 'watch':
        return await this.watch(step);
      case 'read':
        this.readers[step.at % this.readers.length]?.readNow(step.how);
        return;
      case 'stop': {
        const reader = this.readers[step.at % this.readers.length];
        if (reader) reader.stopped = true;
        reader?.watch.stop();
        return;
      }
      case 'list':
        return await this.list(step);
      case 'pages':
        return await this.pages(step);
      default:
        return clock.advance(step.ms);
    }
  }

  #of({ scope }: Selected): Storage<Pod> {
    return scope ? this.cacher.scope(scope) : this.cacher;
  }

  #version(back: number): number {
    return Math.max(1, Number(this.cacher.stats.resourceVersion) - back);
  }

  async watch({ what, begin: how, eager, bookmarks }: Command & { do: 'watch' }): Promise<void> {
    const { scope: _, ...selectors } = what;
    const low = Number(this.cacher.stats.resourceVersion);
    const back = typeof how === 'object' ? this.#version(how.back) : undefined;
    const options: ListWatchOptions = {
      ...selectors,
      ...(bookmarks && { allowWatchBookmarks: true }),
      ...(how === 'initial' && { sendInitialEvents: true, allowWatchBookmarks: true }),
      ...(how === 'now' && { sendInitialEvents: false }),
      ...(back !== undefined && { resourceVersion: `${back}` }),
    };
    const since = Number(this.cacher.stats.window.since);
    const watch = await this.within(this.#of(what).watch(options));
    if ('code' in watch) {
      if (watch.code === 410) expect(back).toBeLessThan(Number(this.cacher.stats.window.since));
      else expect([429, 500, 503, 504]).toContain(watch.code);
      return;
    }
    if (back !== undefined) expect(back).toBeGreaterThanOrEqual(since);
    const high = Number(this.cacher.stats.resourceVersion);
    const reader = new Reader(this, watch, { what, begin: how, from: back === undefined ? [low, high] : [back, back] });
    this.readers.push(reader);
    if (eager) this.following.push(reader.follow());
  }

  expectList(what: Selected, { items, resourceVersion }: { items: readonly Pod[]; resourceVersion: string }): void {
    const state = [...this.pods.at(Number(resourceVersion))]
      .filter(([, pod]) => matches(what, pod))
      .sort(([a], [b]) => (a < b ? -1 : 1));
    expect(items).toEqual(state.map(([, pod]) => pod));
  }

  async list({ what, how, back }: Command & { do: 'list' }): Promise<void> {
    const { scope: _, ...selectors } = what;
    const asked = how === 'newest' ? undefined : how === 'any' ? '0' : `${this.#version(back)}`;
    const done = this.pods.revisions.at(-1)?.version ?? 0;
    const options: ListOptions = {
      ...selectors,
      resourceVersion: asked,
      ...(how === 'exact' && { resourceVersionMatch: 'Exact' }),
    };
    const list = await this.within(this.#of(what).list(options));
    if ('code' in list) {
      expect(how === 'exact' ? [410, 429, 500, 503, 504] : [429, 500, 503, 504]).toContain(list.code);
      return;
    }
    this.expectList(what, list);
    const version = Number(list.resourceVersion);
    // However far it goes back, nobody is told what was old when it began.
    if (how !== 'exact') expect(version).toBeGreaterThanOrEqual(this.begun);
    if (how === 'newest') expect(version).toBeGreaterThanOrEqual(done);
    if (how === 'fresh') expect(version).toBeGreaterThanOrEqual(Number(asked));
    if (how === 'exact') expect(version).toBe(Number(asked));
  }

  async get({ key: name, how }: Command & { do: 'get' }): Promise<void> {
    const done = this.pods.revisions.at(-1)?.version ?? 0;
    const low = Number(this.cacher.stats.resourceVersion);
    const resourceVersion = how === 'newest' ? undefined : how === 'any' ? '0' : `${Math.max(low, done)}`;
    const found = await this.within(this.cacher.get(name, { resourceVersion }).then((object) => ({ object })));
    if ('code' in found) {
      expect([429, 500, 503, 504]).toContain(found.code);
      return;
    }
    const high = this.pods.revisions.at(-1)?.version ?? 0;
    const states = new Set<Pod | undefined>();
    const from = how === 'any' ? Math.max(low, this.begun) : done;
    for (let version = from; version <= Math.max(high, from); version++) states.add(this.pods.at(version).get(name));
    expect([...states]).toContainEqual(found.object);
  }

  /** A caller that gives up: nothing pends, and nothing of it stays. */
  async abort({ verb, turns }: Command & { do: 'abort' }): Promise<void> {
    const abort = new AbortController();
    const { signal } = abort;
    const version = `${Number(this.cacher.stats.resourceVersion || 1) + 1}`;
    const asked: Promise<unknown> =
      verb === 'get'
        ? this.cacher.get('x/a', { resourceVersion: version, signal })
        : verb === 'list'
          ? this.cacher.list({ resourceVersion: version, signal })
          : this.cacher.watch({ sendInitialEvents: true, signal }).then(async (watch) => {
              while (!(await watch.next()).done);
            });
    const outcome = asked.then(
      () => 'done',
      (error: unknown) => (error === signal.reason || isWatchError(error, 'REFUSED') ? 'refused' : error),
    );
    await settle(turns);
    abort.abort(new Error('enough'));
    expect(['done', 'refused']).toContain(await this.within(outcome));
  }

  async pages({ what, limit, writes }: Command & { do: 'pages' }): Promise<void> {
    const { scope: _, ...selectors } = what;
    const items: Pod[] = [];
    let token: string | undefined;
    let version: string | undefined;
    for (let turn = 0; turn < 10; turn++) {
      const page = await this.within(this.#of(what).list({ ...selectors, limit, continue: token }));
      if ('code' in page) {
        expect([410, 429, 500, 503, 504]).toContain(page.code);
        return;
      }
      version ??= page.resourceVersion;
      expect(page.resourceVersion).toBe(version);
      items.push(...page.items);
      expect(page.items.length).toBeLessThanOrEqual(limit);
      if (page.remainingItemCount !== undefined) {
        const total = [...this.pods.at(Number(version)).values()].filter((pod) => matches(what, pod)).length;
        expect(items.length + page.remainingItemCount).toBe(total);
      }
      if (!page.continue) break;
      token = page.continue;
      if (writes) await this.pods.put('x/b', { n: this.#n++ });
      if (writes) await this.pods.remove('x/a');
    }
    this.expectList(what, { items, resourceVersion: version as string });
  }

  /** All faults stop, and all is read. */
  async mend(): Promise<void> {
    const { storage } = this.pods;
    storage.release();
    storage.faults.mutesProgress = false;
    for (const codes of Object.values(storage.faults.codes)) codes.length = 0;
    for (let turn = 0; turn < 8; turn++) {
      await settle();
      this.clock.advance(10_000);
    }
    await this.pods.put('y/b', { n: this.#n++ });
    await settle();
    const list = await this.within(this.cacher.list());
    expect('code' in list).toBe(false);
    await settle();
  }
}
