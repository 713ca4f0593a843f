// Whole runs of an informer with every option that a source or a store can feel, against a server that fails in the middle of a page, of
// the initial events or of a watch, repeats events, sends broken ones, and is restored from a copy. What user code refuses is told, and
// the rest of the store is what the server has; handlers and indexes fit to it at each step.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { filter } from '../../src/broadcast/filter.ts';
import {
  createListWatcher,
  Informer,
  type InformerOptions,
  type KubernetesObject,
  type List,
  type ListOptions,
  type ListWatcher,
  type ListWatchOptions,
} from '../../src/cache/index.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { type ObjectEvent, toStatus } from '../../src/watch/event.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { runs } from '../runs.ts';
import { settle } from '../unit/faulty-source.ts';

const RUNS = runs(600);

interface Item extends KubernetesObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly resourceVersion?: string;
  };
  /** Its key, which no transform changes. */
  readonly id: string;
  readonly value: number;
}

type WatchFault =
  | { readonly is: 'end' | 'throw' | 'mute' | 'repeat' | 'endsInitial' }
  | { readonly is: 'error'; readonly code: number }
  | {
      readonly is: 'inject';
      readonly what: 'unknown type' | 'no metadata' | 'nothing' | 'no version' | 'old bookmark' | 'ERROR alone';
    };

/** A server, and the network before it. */
class Server implements ListWatcher<Item> {
  fake: FakeListWatcher<Item>;
  readonly #clock: FakeClock;
  pageFault: { readonly page: number; readonly error: unknown } | undefined;
  readonly watchFaults: { readonly after: number; readonly fault: WatchFault }[] = [];
  repeatsItems: boolean = false;
  streams: 'yes' | 'refused' | 'ignored' = 'yes';
  open: number = 0;
  lives: number = 1;
  /** Whether it accepts a watch from a version that it has not reached, and is silent until it has, as kube-apiservers do. */
  acceptsFuture: boolean = false;
  readonly #mutes: Set<() => void> = new Set();

  constructor(clock: FakeClock) {
    this.#clock = clock;
    this.fake = new FakeListWatcher<Item>({ clock, history: 12, firstVersion: '5' });
  }

  /** It begins again with these objects, as after a disaster. */
  restore(objects: readonly Item[], firstVersion: string): void {
    this.lives++;
    this.fake.cut();
    this.fake = new FakeListWatcher<Item>({ clock: this.#clock, history: 12, objects, firstVersion });
  }

  async list(options: ListOptions = {}): Promise<List<Item>> {
    const page = options.continue === undefined ? 1 : Number(options.continue.split(' ')[0]);
    if (this.pageFault?.page === page) {
      const { error } = this.pageFault;
      this.pageFault = undefined;
      throw error;
    }
    const inner = options.continue?.slice(options.continue.indexOf(' ') + 1);
    const list = await this.fake.list({ ...options, ...(inner !== undefined && { continue: inner }) });
    const items = this.repeatsItems && list.items[0] ? [...list.items, list.items[0]] : list.items;
    const bytes = 100 * items.length;
    return { ...list, items, bytes, ...(list.continue && { continue: `${page + 1} ${list.continue}` }) };
  }

  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<Item>>> {
    const { sendInitialEvents, ...plain } = options;
    if (sendInitialEvents && this.streams === 'refused') throw FakeListWatcher.refusal(422, 'Invalid');
    const asked = this.streams === 'ignored' ? plain : options;
    const { resourceVersion = '' } = asked;
    const isFuture = Number(resourceVersion) > Number(this.fake.resourceVersion);
    const accepted = isFuture && this.acceptsFuture && !sendInitialEvents;
    const watch = await this.fake.watch(accepted ? { ...asked, resourceVersion: this.fake.resourceVersion } : asked);
    const later = accepted ? filter(watch, (event) => (versionOf(event) > Number(resourceVersion) ? event : undefined)) : watch;
    this.open++;
    return fromAsyncIterable<ObjectEvent<Item>>(this.#told(later, options));
  }

  /** No link that is dead stays so. */
  wake(): void {
    for (const wake of this.#mutes) wake();
  }

  #told(watch: Watch<ObjectEvent<Item>>, { onBytes }: ListWatchOptions): AsyncIterator<ObjectEvent<Item>, undefined> {
    const planned = this.watchFaults.shift();
    const queue: ObjectEvent<Item>[] = [];
    let count = 0;
    let over = false;
    const done = { done: true, value: undefined } as const;
    const leave = async (): Promise<typeof done> => {
      if (!over) this.open--;
      over = true;
      await watch.return();
      return done;
    };
    const next = async (): Promise<IteratorResult<ObjectEvent<Item>, undefined>> => {
      const ready = queue.shift();
      if (ready) return { done: false, value: ready };
      if (planned && count++ === planned.after) {
        const { fault } = planned;
        if (fault.is === 'end') return leave();
        if (fault.is === 'throw') {
          await leave();
          throw new TypeError('network');
        }
        if (fault.is === 'mute') await new Promise<void>((resolve) => this.#mutes.add(resolve)).then(leave);
        if (fault.is === 'error') {
          await leave();
          return {
            done: false,
            value: { type: 'ERROR', object: toStatus({ code: fault.code, reason: reasonOf(fault.code), message: '' }) },
          };
        }
        if (fault.is === 'inject') return { done: false, value: INJECTED[fault.what] as ObjectEvent<Item> };
      }
      const result = over ? done : await watch.next();
      if (result.done) return leave();
      onBytes?.(100);
      if (planned?.fault.is === 'repeat') queue.push(result.value);
      return result;
    };
    return { next, return: leave };
  }
}

const versionOf = ({ object }: ObjectEvent<Item>): number => Number((object as Item).metadata?.resourceVersion ?? 0);

/** What happens to a response: it breaks or ends at any byte, or goes on with bytes that are no JSON. */
interface WireFault {
  readonly at: number;
  readonly how: 'breaks' | 'ends' | 'garbles';
}

/** The same server behind HTTP, as bytes that are cut anywhere. */
class Wire {
  readonly faults: WireFault[] = [];
  readonly #server: Server;
  readonly #chunk: number;

  constructor(server: Server, chunk: number) {
    this.#server = server;
    this.#chunk = chunk;
  }

  readonly fetch = async (url: URL, { signal }: { signal?: AbortSignal }): Promise<Response> => {
    const { limit, timeoutSeconds, watch, ...rest } = Object.fromEntries(url.searchParams) as Record<string, string>;
    const numbers = { ...(limit && { limit: Number(limit) }), ...(timeoutSeconds && { timeoutSeconds: Number(timeoutSeconds) }) };
    const { sendInitialEvents, allowWatchBookmarks, ...texts } = rest;
    const flags = {
      ...(sendInitialEvents && { sendInitialEvents: sendInitialEvents === 'true' }),
      ...(allowWatchBookmarks && { allowWatchBookmarks: allowWatchBookmarks === 'true' }),
    };
    try {
      if (watch) return this.#answer(this.#lines(await this.#server.watch({ ...numbers, ...flags, ...texts, signal })));
      const { items, resourceVersion, continue: next } = await this.#server.list({ ...numbers, ...texts, signal });
      const metadata = { resourceVersion, ...(next && { continue: next }) };
      const text = JSON.stringify({ kind: 'ThingList', apiVersion: 'v1', metadata, items });
      return this.#answer([Promise.resolve(text)].values());
    } catch (error) {
      if (!isWatchError(error, 'REFUSED')) throw error;
      return this.#answer([Promise.resolve(JSON.stringify(error.status))].values(), error.status?.code);
    }
  };

  #lines(watch: Watch<ObjectEvent<Item>>): Iterator<Promise<string | undefined>> {
    const next = (): Promise<string | undefined> =>
      watch.next().then(({ done, value }) => (done ? undefined : `${JSON.stringify(value)}\n`));
    return {
      next: () => ({ done: false, value: next() }),
      return: () => {
        void watch.return();
        return { done: true, value: undefined };
      },
    };
  }

  /** One response. Nothing is asked for before it is read. */
  #answer(texts: Iterator<Promise<string | undefined>>, status: number = 200): Response {
    const fault = this.faults.shift();
    let sent = 0;
    let rest: Uint8Array = new Uint8Array(0);
    const body = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          if (fault && sent >= fault.at) {
            texts.return?.();
            if (fault.how === 'breaks') throw new TypeError('network');
            if (fault.how === 'garbles') controller.enqueue(new TextEncoder().encode('\0}\n'));
            return controller.close();
          }
          while (rest.length === 0) {
            const { done, value } = texts.next();
            const text = done ? undefined : await value;
            if (text === undefined) return controller.close();
            rest = new TextEncoder().encode(text);
          }
          const size = Math.min(this.#chunk, fault ? fault.at - sent : Number.POSITIVE_INFINITY);
          controller.enqueue(rest.slice(0, size));
          sent += Math.min(size, rest.length);
          rest = rest.subarray(size);
        },
        cancel: () => void texts.return?.(),
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { status, headers: { 'content-type': 'application/json' } });
  }
}

const INJECTED: Readonly<Record<Extract<WatchFault, { is: 'inject' }>['what'], unknown>> = {
  'unknown type': { type: 'MOVED', object: { metadata: { name: 'a', resourceVersion: '3' } } },
  'no metadata': { type: 'ADDED', object: { kind: 'Thing' } },
  nothing: null,
  'no version': { type: 'BOOKMARK', object: { metadata: {} } },
  'old bookmark': { type: 'BOOKMARK', object: { metadata: { resourceVersion: '1' } } },
  'ERROR alone': { type: 'ERROR' },
};

function reasonOf(code: number): string {
  return { 410: 'Expired', 429: 'TooManyRequests', 500: 'InternalError', 403: 'Forbidden' }[code] ?? 'Timeout';
}

// Options, as functions of an object, so that the model can ask the same.

type Transform = 'none' | 'same' | 'copies' | 'renames' | 'throws' | 'drops' | 'promises';
const TRANSFORMS: Readonly<Record<Transform, ((one: Item) => Item) | undefined>> = {
  none: undefined,
  same: (one) => one,
  copies: (one) => ({ ...one }),
  renames: (one) => ({ ...one, metadata: { ...one.metadata, name: `${one.metadata.name}-renamed` } }),
  throws: (one) => {
    if (one.value % 3 === 0) throw new Error('transform');
    return one;
  },
  drops: (one) => (one.value % 3 === 0 ? (undefined as never) : one),
  promises: (one) => (one.value % 3 === 0 ? (Promise.resolve(one) as never) : one),
};
type Index = 'none' | 'app' | 'throws' | 'repeats' | 'changes';
const shared: string[] = [];
const INDEXES: Readonly<Record<Index, ((one: Item) => readonly string[]) | undefined>> = {
  none: undefined,
  app: (one) => [one.metadata.labels.app ?? ''],
  throws: (one) => {
    if (one.value % 4 === 0) throw new Error('index');
    return [`${one.value % 4}`];
  },
  repeats: (one) => ['all', `${one.value}`, 'all'],
  // The same array for all objects: what was returned before changes under the index.
  changes: (one) => {
    shared.length = 0;
    shared.push(`${one.value % 2}`);
    return shared;
  },
};

const plans = fc.record({
  streamingList: fc.boolean(),
  pageSize: fc.constantFrom(undefined, 0, 1, 2),
  labelSelector: fc.constantFrom(undefined, undefined, 'app=web', 'app notin (db)'),
  fieldSelector: fc.constantFrom(undefined, undefined, 'metadata.namespace=x'),
  maxObjects: fc.constantFrom(undefined, undefined, 3),
  maxTotalListBytes: fc.constantFrom(undefined, undefined, 500),
  resyncMs: fc.constantFrom(undefined, 1_000),
  minWatchTimeoutMs: fc.constantFrom(1_000, 30_000, 300_000),
  idleTimeoutMs: fc.constantFrom(0, 20_000),
  internalErrorRetryMs: fc.constantFrom(0, 60_000),
  resetMs: fc.constantFrom(0, 120_000),
  transform: fc.constantFrom<Transform[]>('none', 'none', 'same', 'copies', 'renames', 'throws', 'drops', 'promises'),
  index: fc.constantFrom<Index[]>('none', 'app', 'throws', 'repeats', 'changes'),
  lateIndex: fc.constantFrom<Index[]>('none', 'app', 'repeats', 'changes'),
  ownKey: fc.boolean(),
  random: fc.double({ min: 0, max: 0.999, noNaN: true }),
  /** The size of chunks over HTTP; 0: in process. */
  chunk: fc.constantFrom(0, 0, 7, 64, 10_000),
});
type Plan = typeof plans extends fc.Arbitrary<infer P> ? P : never;

const id = fc.constantFrom('x/a', 'x/b', 'y/a', 'y/b', 'y/c');
const pageError = fc.constantFrom<unknown[]>(
  FakeListWatcher.refusal(410, 'Expired'),
  FakeListWatcher.refusal(429, 'TooManyRequests', { retryAfterSeconds: 2 }),
  FakeListWatcher.refusal(500, 'InternalError'),
  new TypeError('network'),
);
const watchFault: fc.Arbitrary<WatchFault> = fc.oneof(
  fc.record({ is: fc.constantFrom('end' as const, 'throw', 'mute', 'repeat') }),
  fc.record({ is: fc.constant('error' as const), code: fc.constantFrom(410, 410, 429, 500, 504, 403) }),
  fc.record({
    is: fc.constant('inject' as const),
    what: fc.constantFrom(...(Object.keys(INJECTED) as (keyof typeof INJECTED)[])),
  }),
);

type Step =
  | { readonly do: 'put'; readonly id: string; readonly app: string; readonly anew: boolean }
  | { readonly do: 'delete'; readonly id: string }
  | { readonly do: 'cut' | 'expire' | 'bookmark' | 'future' | 'repeatItems' | 'lateIndex' | 'settle' | 'wake' }
  | { readonly do: 'restore'; readonly id: string; readonly before: number; readonly writes: number }
  | { readonly do: 'failPage'; readonly page: number; readonly error: unknown }
  | { readonly do: 'failWatch'; readonly after: number; readonly cuts: boolean; readonly fault: WatchFault }
  | ({ readonly do: 'failWire' } & WireFault)
  | { readonly do: 'streams'; readonly how: Server['streams'] }
  | {
      readonly do: 'join';
      readonly filtered: boolean;
      readonly resyncMs: number | undefined;
      readonly way: 'returns' | 'throws' | 'awaits';
    }
  | { readonly do: 'leave'; readonly at: number }
  | { readonly do: 'turns'; readonly count: number }
  | { readonly do: 'advance'; readonly ms: number };

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({ do: fc.constant('put' as const), id, app: fc.constantFrom('web', 'db'), anew: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), id }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('cut' as const, 'cut', 'expire', 'bookmark', 'future', 'repeatItems', 'lateIndex', 'wake'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restore' as const), id, before: fc.nat(4), writes: fc.nat(3) }) },
  { weight: 10, arbitrary: fc.constant({ do: 'settle' as const }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('failPage' as const), page: fc.integer({ min: 1, max: 3 }), error: pageError }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('failWatch' as const), after: fc.nat(5), cuts: fc.boolean(), fault: watchFault }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('failWire' as const),
      at: fc.nat(700),
      how: fc.constantFrom<WireFault['how'][]>('breaks', 'ends', 'garbles'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('streams' as const),
      how: fc.constantFrom<Server['streams'][]>('yes', 'refused', 'ignored'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('join' as const),
      filtered: fc.boolean(),
      resyncMs: fc.constantFrom(undefined, 0, 700),
      way: fc.constantFrom('returns' as const, 'throws', 'awaits'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), at: fc.nat(3) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('turns' as const), count: fc.integer({ min: 1, max: 40 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 900, 5_000, 40_000, 700_000) }),
  },
);

/** What a handler was told, by the key that no transform changes. */
class Reader {
  readonly known: Map<string, Item> = new Map();
  readonly matches: (one: Item) => boolean;
  readonly remove: () => void;
  readonly wrong: unknown[] = [];
  over: boolean = false;
  calls: number = 0;
  /** The versions that it was told last, by key and life of the server: they rise. */
  readonly #told: Map<string, number> = new Map();

  constructor(informer: Informer<Item>, lifeOf: () => number | undefined, { filtered, resyncMs, way }: Step & { do: 'join' }) {
    this.matches = filtered ? ({ value }) => value % 2 === 0 : () => true;
    const checked = (code: () => void): unknown => {
      this.calls++;
      try {
        expect(this.over).toBe(false);
        code();
        if (lifeOf() !== undefined) for (const one of this.known.values()) this.#rises(one, lifeOf());
      } catch (error) {
        this.wrong.push(error);
      }
      if (way === 'throws') throw new Error('handler');
      return way === 'awaits' ? settle() : undefined;
    };
    const registration = informer.addHandler(
      {
        onAdd: (one, initial) =>
          checked(() => {
            expect([this.known.has(one.id), this.matches(one)]).toEqual([false, true]);
            if (initial) expect(registration.hasSynced).toBe(false);
            this.known.set(one.id, one);
          }),
        onUpdate: (old, one) =>
          checked(() => {
            expect(this.known.get(one.id)).toBe(old);
            expect(this.matches(one)).toBe(true);
            this.known.set(one.id, one);
          }),
        onDelete: (one) => checked(() => expect(this.known.delete(one.id)).toBe(true)),
      },
      { ...(filtered && { filter: this.matches }), resyncMs },
    );
    registration.synced.catch(() => {});
    this.remove = () => {
      this.over = true;
      registration.remove();
    };
  }

  #rises({ id: key, metadata }: Item, life: number | undefined): void {
    const version = Number(metadata.resourceVersion);
    expect(version).toBeGreaterThanOrEqual(this.#told.get(`${life} ${key}`) ?? 0);
    this.#told.set(`${life} ${key}`, version);
  }
}

class World {
  readonly clock: FakeClock = new FakeClock(1_000);
  readonly server: Server = new Server(this.clock);
  readonly wire: Wire;
  readonly informer: Informer<Item, string>;
  readonly readers: Reader[] = [];
  readonly refused: Set<string> = new Set();
  readonly tooMuch: unknown[] = [];
  readonly run: Promise<void>;
  readonly plan: Plan;
  #value: number = 0;
  #late: boolean = false;
  /** Whether the informer may still have a state of the life before. */
  #isUnsettled: boolean = false;
  /** The version of the store: it never goes back while the server lives. */
  #reached: number = 0;

  constructor(plan: Plan) {
    const { transform, index, lateIndex: _, ownKey, random, chunk, ...others } = plan;
    this.plan = plan;
    const { clock, server } = this;
    this.wire = new Wire(server, chunk);
    const fetch = this.wire.fetch as never;
    const own = INDEXES[index];
    const options: InformerOptions<Item, string> = {
      ...others,
      clock: this.clock,
      random: () => random,
      transform: TRANSFORMS[transform],
      indexers: own && { own },
      keyOf: ownKey ? (one) => `key of ${one.metadata.namespace} ${one.metadata.name}` : undefined,
      onError: (error, failure) => {
        if (failure.kind === 'object') this.refused.add(`${failure.object.id} ${failure.object.value}`);
        if (isWatchError(error, 'OVERLOADED')) this.tooMuch.push(error);
      },
    };
    this.informer = new Informer<Item, string>(
      chunk === 0 ? server : createListWatcher<Item>('http://server/things', { fetch, clock }),
      options,
    );
    this.run = this.informer.run();
  }

  async take(step: Step): Promise<void> {
    const { server, clock, readers, informer } = this;
    const { fake } = server;
    switch (step.do) {
      case 'put':
        this.put(step);
        return;
      case 'delete':
        fake.delete(itemOf(step.id));
        return;
      case 'cut':
      case 'expire':
      case 'bookmark':
        return fake[step.do]();
      case 'restore':
        return await this.restore(step);
      case 'future':
        server.acceptsFuture = !server.acceptsFuture;
        return;
      case 'repeatItems':
        server.repeatsItems = !server.repeatsItems;
        return;
      case 'lateIndex': {
        const late = INDEXES[this.plan.lateIndex];
        if (late && !this.#late) informer.store.addIndexers({ late });
        this.#late = late !== undefined;
        return;
      }
      case 'settle':
        return await settle();
      case 'wake':
        return server.wake();
      case 'failPage':
        server.pageFault = step;
        return;
      case 'failWatch':
        if (server.watchFaults.length < 4) server.watchFaults.push(step);
        if (step.cuts) fake.cut();
        return;
      case 'failWire':
        if (this.wire.faults.length < 4) this.wire.faults.push(step);
        return;
      case 'streams':
        server.streams = step.how;
        return;
      case 'join':
        if (readers.length < 4) readers.push(new Reader(informer, () => (this.#isUnsettled ? undefined : server.lives), step));
        return;
      case 'leave':
        return readers[step.at]?.remove();
      case 'turns':
        for (let i = 0; i < step.count; i++) await undefined;
        return;
      default:
        return clock.advance(step.ms);
    }
  }

  put({ id: key, app, anew }: { id: string; app: string; anew: boolean }): void {
    const { fake } = this.server;
    const now = fake.objects.find((one) => one.id === key);
    if (anew && now) fake.delete(now);
    const value = ++this.#value;
    const uid = anew || !now ? `${value}` : now.metadata.uid;
    fake.add({ ...itemOf(key), metadata: { ...itemOf(key).metadata, uid, labels: { app } }, value });
  }

  /** The server is restored from a copy that lacks some writes. */
  async restore({ id: key, before, writes }: Step & { do: 'restore' }): Promise<void> {
    const { server, informer } = this;
    const { objects, resourceVersion } = server.fake;
    const put = (at: number): void => this.put({ id: at === 0 ? key : 'y/c', app: at % 2 ? 'web' : 'db', anew: false });
    for (let at = 0; at < before; at++) put(at);
    await settle();
    server.restore([...objects], resourceVersion);
    this.#isUnsettled = true;
    // What is written before its client asks it has versions that were given before. If there are more, nothing tells them apart.
    for (let at = 0; at < writes && Number(server.fake.resourceVersion) + 2 < Number(informer.resourceVersion); at++) put(at);
    this.#clear();
    await this.pass(1_300_000);
    this.#isUnsettled = Number(informer.resourceVersion) > Number(server.fake.resourceVersion);
    this.#reached = 0;
  }

  async pass(ms: number): Promise<void> {
    for (let spent = 0; spent < ms; spent += 25_000) {
      await settle();
      this.clock.advance(25_000);
    }
    await settle();
  }

  /** What holds at any time. */
  check(): void {
    const { store } = this.informer;
    const all = store.list();
    expect([store.size, store.keys().length]).toEqual([all.length, all.length]);
    for (const [name, own] of [
      ['own', INDEXES[this.plan.index]],
      ['late', this.#late ? INDEXES[this.plan.lateIndex] : undefined],
    ] as const) {
      if (!own) continue;
      const expected = new Map<string, Set<Item>>();
      for (const one of all) for (const value of [...own(one)]) expected.set(value, (expected.get(value) ?? new Set()).add(one));
      const found = new Map(store.indexValues(name).map((value) => [value, new Set(store.byIndex(name, value))]));
      expect(found).toEqual(expected);
    }
    const reached = Number(store.resourceVersion);
    if (!this.#isUnsettled) expect(reached).toBeGreaterThanOrEqual(this.#reached);
    this.#reached = reached;
    if (!this.informer.hasSynced) expect([all.length, store.resourceVersion]).toEqual([0, '']);
    for (const { wrong } of this.readers) if (wrong.length > 0) throw wrong[0];
  }

  #clear(): void {
    const { server } = this;
    server.pageFault = undefined;
    server.watchFaults.length = this.wire.faults.length = 0;
    server.repeatsItems = false;
    server.wake();
  }

  /** Whether it has too many objects for a list since it was restored, so that writes will make its version pass for a newer one. */
  get isLost(): boolean {
    return this.#isUnsettled;
  }

  /** All faults stop. */
  async mend(): Promise<void> {
    const { server, plan } = this;
    this.#clear();
    this.tooMuch.length = 0;
    server.streams = server.streams === 'ignored' ? 'ignored' : 'yes';
    await this.pass(plan.minWatchTimeoutMs > 30_000 ? 900_000 : 200_000);
    this.check();
    this.#expectState();
    this.put({ id: 'y/c', app: 'web', anew: false });
    await this.pass(100_000);
    this.check();
    this.#expectState();
  }

  #expectState(): void {
    const { plan, server, informer } = this;
    const selected = server.fake.objects.filter(
      ({ metadata: { labels, namespace } }) =>
        (plan.labelSelector === undefined || labels.app === 'web') && (plan.fieldSelector === undefined || namespace === 'x'),
    );
    const tooMany = selected.length > (plan.maxObjects ?? 1e9) || selected.length * 100 > (plan.maxTotalListBytes ?? 1e9);
    const stored = new Map(informer.store.list().map((one) => [one.id, one]));
    const isLimited = (plan.maxObjects ?? plan.maxTotalListBytes) !== undefined;
    if ((plan.chunk > 0 ? isLimited : tooMany) && this.tooMuch.length > 0) return; // it was told
    expect(informer.hasSynced).toBe(true);
    for (const one of selected) {
      if (this.#isRefused(one)) {
        expect(this.refused).toContain(`${one.id} ${one.value}`);
        const before = stored.get(one.id);
        if (before) expect(before.value).toBeLessThan(one.value); // its previous state
      } else expect(this.#shown(stored.get(one.id))).toEqual(this.#shown(TRANSFORMS[plan.transform]?.(one) ?? one));
    }
    const ids = new Set(selected.map((one) => one.id));
    for (const key of stored.keys()) expect(ids).toContain(key);
    for (const { known, matches, over } of this.readers) {
      if (over) continue;
      expect(known).toEqual(new Map([...stored].filter(([, one]) => matches(one))));
    }
  }

  /** An object; of a server that was restored, without its version: the fake one gives all objects the version of the copy. */
  #shown(one: Item | undefined): unknown {
    return this.server.lives === 1 ? one : { ...one, metadata: { ...one?.metadata, resourceVersion: '' } };
  }

  #isRefused({ value }: Item): boolean {
    const { transform, index } = this.plan;
    const refuses = ['throws', 'drops', 'promises'].includes(transform) && value % 3 === 0;
    return refuses || (index === 'throws' && value % 4 === 0);
  }

  async end(): Promise<void> {
    const { clock, server, informer, readers } = this;
    const stop = informer.stop();
    const calls = readers.map((each) => each.calls);
    await stop;
    await this.run;
    await Promise.allSettled([informer.synced]);
    await settle();
    expect(readers.map((each) => each.calls)).toEqual(calls);
    for (const { wrong } of readers) if (wrong.length > 0) throw wrong[0];
    expect([server.open, server.fake.openWatches, informer.state.phase]).toEqual([0, 0, 'stopped']);
    expect(clock.pending).toBe(0);
  }
}

function itemOf(key: string): Item {
  const [namespace = '', name = ''] = key.split('/');
  return { kind: 'Thing', apiVersion: 'v1', metadata: { name, namespace, uid: '', labels: {} }, id: key, value: 0 };
}

describe('an informer with any options', { timeout: 60_000 + RUNS * 300 }, () => {
  test('its store is what the server has, but for what user code refuses, which is told; handlers and indexes fit; a stop leaves nothing', async () => {
    const property = fc.asyncProperty(
      plans,
      fc.array(steps, { minLength: 5, maxLength: 45, size: 'max' }),
      fc.boolean(),
      async (plan, all, stops) => {
        const world = new World(plan);
        for (const step of all) {
          await world.take(step);
          world.check();
          if (world.isLost) break;
        }
        if (!stops && !world.isLost) await world.mend();
        await world.end();
      },
    );
    await fc.assert(property, { numRuns: RUNS });
  });
});
