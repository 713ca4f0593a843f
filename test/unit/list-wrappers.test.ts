// Sources that wrap another one, and stores with a transform: a wrapper gets objects, whatever its reflector makes of them.
import { describe, expect, test } from 'vitest';
import { toHttpSettings } from '../../src/cache/http/exchange.ts';
import {
  createListWatcher,
  DeltaFifo,
  fromHub,
  Indexer,
  Informer,
  type List,
  type ListOptions,
  type ListWatcher,
  RealFifo,
  Reflector,
  type ReflectorStore,
  Store,
} from '../../src/cache/index.ts';
import { Resource } from '../../src/kubernetes/resource.ts';
import { RecordedSource } from '../../src/testing/recorder/recorded-source.ts';
import { until } from './fake-sink.ts';
import { bookmark, type Pod, ScriptedWatch } from './reflector-rig.ts';

interface Thing extends Pod {
  readonly data?: string;
}
type Source = ListWatcher<Thing>;

const TYPE = { group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing' };
const URL_OF_THINGS = 'http://127.0.0.1/apis/example.com/v1/things';
const thing = (name: string): Thing => ({ metadata: { name, resourceVersion: '1' }, data: 'much' });
const HEAD = '{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[';
const SOME = `${HEAD}${['a', 'b', 'x'].map((name) => JSON.stringify(thing(name))).join()}`;

/** Answers a list with what `part` gives, and a watch never. */
const server =
  (part: () => BodyInit) =>
  async (url: string | URL, { signal }: RequestInit = {}): Promise<Response> => {
    if (!new URL(url).searchParams.has('watch')) return new Response(part(), { headers: { 'content-type': 'application/json' } });
    return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
  };
const http = (part: () => BodyInit = () => `${SOME}]}`): Source =>
  createListWatcher<Thing>(URL_OF_THINGS, { fetch: server(part) });
const resourceDeps = (part: () => BodyInit = () => `${SOME}]}`) => ({
  server: new URL('http://127.0.0.1'),
  means: toHttpSettings({ fetch: server(part) }),
  collection: () => http(part),
});
const hub = (): Source =>
  fromHub<Thing>(({ resourceVersion }) => {
    if (resourceVersion) return new ScriptedWatch() as never;
    const added = ['a', 'b', 'x'].map((name) => ({ type: 'ADDED' as const, object: thing(name) }));
    return new ScriptedWatch([...added, bookmark('9', 'true')]) as never;
  });

const without = (list: List<Thing>): Thing[] => list.items.filter(({ metadata }) => metadata.name !== 'x');
const filtering =
  (inner: Source): Source['list'] =>
  async (options) => {
    const list = await inner.list(options);
    return { ...list, items: without(list) };
  };

class OwnResource extends Resource<Thing> {
  override async list(options?: ListOptions): Promise<List<Thing>> {
    const list = await super.list(options);
    return { ...list, items: without(list) };
  }
}

const wrappers: [string, () => Source][] = [];
for (const [name, open] of [['a server', http] as const, ['a hub', hub] as const]) {
  wrappers.push(
    [
      `${name}, filtered`,
      () => {
        const inner = open();
        return { list: filtering(inner), watch: (options) => inner.watch(options) };
      },
    ],
    [
      `${name}, with lists made anew`,
      () => {
        const inner = open();
        return {
          list: async (options) => {
            const list = await inner.list(options);
            return { items: without(list), resourceVersion: list.resourceVersion };
          },
          watch: (options) => inner.watch(options),
        };
      },
    ],
    [`${name}, with a list of its own`, () => Object.assign(open(), { list: filtering(open()) })],
    [
      `${name}, as a prototype`,
      () => {
        const inner = open();
        return Object.assign(Object.create(inner) as Source, { list: filtering(inner), watch: inner.watch.bind(inner) });
      },
    ],
  );
}
wrappers.push(['a resource whose class is derived', () => new OwnResource(resourceDeps() as never, TYPE)]);

/** What there is in a store in the end. */
interface Opened {
  readonly store: ReflectorStore<Thing>;
  has(): Promise<readonly unknown[]> | readonly unknown[];
}
type Transform = (object: Thing) => Thing;
const ofStore = (store: Store<Thing>): Opened => ({ store, has: () => store.list() });
const ofFifo = (fifo: DeltaFifo<Thing> | RealFifo<Thing>): Opened => ({
  store: fifo,
  has: async () => {
    const objects: unknown[] = [];
    while (fifo.size > 0)
      await fifo.pop((deltas) => void objects.push(...deltas.flatMap((delta) => ('object' in delta ? delta.object : []))));
    return objects;
  },
});
const stores: [string, (transform: Transform) => Opened][] = [
  ['a Store', (transform) => ofStore(new Store({ transform }))],
  ['an Indexer', (transform) => ofStore(new Indexer({ transform, indexers: { all: ({ metadata }) => [metadata.name] } }))],
  ['a DeltaFifo', (transform) => ofFifo(new DeltaFifo({ transform }))],
  ['a RealFifo', (transform) => ofFifo(new RealFifo({ transform, knownObjects: new Store<Thing>() }))],
];

/** A transform that keeps only the metadata, and notes whose. */
function slim(): { transform: Transform; seen: string[] } {
  const seen: string[] = [];
  const transform = ({ metadata }: Thing): Thing => {
    seen.push(metadata.name);
    return { metadata };
  };
  return { transform, seen };
}
const AB = ['a', 'b'].map((name) => ({ metadata: thing(name).metadata }));

describe.each(wrappers)('%s', (_name, wrap) => {
  test.each(stores)('fills %s with a transform', async (_store, open) => {
    const { transform, seen } = slim();
    const { store, has } = open(transform);
    const errors: unknown[] = [];
    const reflector = new Reflector<Thing>(wrap(), store, {
      streamingList: false,
      onError: (error) => void errors.push(error),
    });
    const stop = new AbortController();
    const running = reflector.run(stop.signal);
    await until(() => reflector.resourceVersion === '9' || errors.length > 0);
    expect([errors, seen, await has()]).toEqual([[], ['a', 'b'], AB]);
    stop.abort();
    await running;
  });

  test('fills an informer with a transform', async () => {
    const { transform, seen } = slim();
    const errors: unknown[] = [];
    const informer = new Informer<Thing>(wrap(), {
      transform,
      streamingList: false,
      onError: (error) => void errors.push(error),
    });
    void informer.run();
    await until(() => informer.hasSynced || errors.length > 0);
    expect([errors, seen, informer.store.list()]).toEqual([[], ['a', 'b'], AB]);
    await informer.stop();
  });
});

test('a wrapper is passed nothing but what a list is documented to take', async () => {
  const asked: unknown[][] = [];
  const inner = http();
  const { transform } = slim();
  const source = {
    list: (...given: [ListOptions?]) => {
      asked.push([given.length, Object.keys(given[0] ?? {}).sort()]);
      return inner.list(...given);
    },
    watch: inner.watch.bind(inner),
  };
  const informer = new Informer<Thing>(source, { transform, streamingList: false });
  void informer.run();
  await informer.synced;
  expect(asked).toEqual([[1, ['fieldSelector', 'labelSelector', 'limit', 'resourceVersion', 'signal']]]);
  await informer.stop();
});

describe('sources of this package that pass a list on transform each object as it comes', () => {
  const notebook = { write: () => {}, keyOf: () => '', idOf: () => '', stateOf: () => ({}), nameFor: () => 'l1' };
  const passing: [string, (part: () => BodyInit) => Source][] = [
    ['a collection', http],
    ['with methods besides', (part) => Object.assign(http(part), { get: () => undefined })],
    ['a resource', (part) => new Resource<Thing>(resourceDeps(part) as never, TYPE)],
    [
      'a recorder, which does not record lists with a selector',
      (part) => new RecordedSource(http(part), { client: 'c', notebook }),
    ],
  ];

  test.each(passing)('%s', async (_name, open) => {
    const body = new TransformStream<Uint8Array, Uint8Array>();
    const writer = body.writable.getWriter();
    const write = (text: string): void => void writer.write(new TextEncoder().encode(text));
    const { transform, seen } = slim();
    const informer = new Informer<Thing>(
      open(() => body.readable),
      { transform, streamingList: false, labelSelector: 'app=web' },
    );
    void informer.run();
    write(`${SOME},`);
    await until(() => seen.length === 3);
    expect(informer.hasSynced).toBe(false);
    write(`${JSON.stringify(thing('y'))}]}`);
    void writer.close();
    await informer.synced;
    expect([seen, informer.store.keys()]).toEqual([
      ['a', 'b', 'x', 'y'],
      ['a', 'b', 'x', 'y'],
    ]);
    await informer.stop();
  });

  test('a hub', async () => {
    const { transform, seen } = slim();
    const snapshot = new ScriptedWatch([{ type: 'ADDED', object: thing('a') }]);
    const source = fromHub<Thing>(({ resourceVersion }) => (resourceVersion ? new ScriptedWatch() : snapshot) as never);
    const informer = new Informer<Thing>(source, { transform, streamingList: false });
    void informer.run();
    await until(() => seen.length === 1);
    expect(informer.hasSynced).toBe(false);
    snapshot.push({ type: 'ADDED', object: thing('b') }, bookmark('9', 'true'));
    await informer.synced;
    expect([seen, informer.store.list()]).toEqual([['a', 'b'], AB]);
    await informer.stop();
  });

  test('a recorder records what the source has sent, and hands over what becomes of it', async () => {
    const states: unknown[] = [];
    const stateOf = (objects: Iterable<Thing>): Record<string, string> =>
      Object.fromEntries(Array.from(objects, ({ metadata, data }) => [metadata.name, `${data}`]));
    const noting = { ...notebook, stateOf, write: (step: object) => 'state' in step && states.push(step.state) };
    const { transform, seen } = slim();
    const recorder = new RecordedSource(http(), { client: 'c', notebook: noting as never });
    const informer = new Informer<Thing>(recorder, { transform, streamingList: false });
    void informer.run();
    await informer.synced;
    expect([seen, states]).toEqual([['a', 'b', 'x'], [{ a: 'much', b: 'much', x: 'much' }]]);
    expect(informer.store.list()[0]).toEqual(AB[0]);
    await informer.stop();
  });
});

test.each([
  ['a DeltaFifo', (transform: Transform) => new DeltaFifo<Thing>({ transform })],
  ['a RealFifo', (transform: Transform) => new RealFifo<Thing>({ transform, knownObjects: new Store<Thing>() })],
])('%s leaves what it has prepared as it is', (_name, open) => {
  const { transform, seen } = slim();
  const { prepare } = open(transform);
  const once = prepare?.(thing('a')) as Thing;
  expect([prepare?.(once) === once, seen]).toEqual([true, ['a']]);
});

/** A class that looks at its lists, as a user writes it. */
function looking<S extends new (...args: never[]) => ReflectorStore<Thing>>(Base: S, looked: Thing[]): S {
  return class extends (Base as new (...args: never[]) => ReflectorStore<Thing>) {
    override replace(list: Iterable<Thing>, resourceVersion: string): void {
      const things = [...list];
      looked.push(...things);
      super.replace(things, resourceVersion);
    }
  } as S;
}

test.each([
  ['a Store', (looked: Thing[]) => looking(Store<Thing>, looked)],
  ['an Indexer', (looked: Thing[]) => looking(Indexer<Thing>, looked)],
  ['a DeltaFifo', (looked: Thing[]) => looking(DeltaFifo<Thing>, looked)],
  ['a RealFifo', (looked: Thing[]) => looking(RealFifo<Thing>, looked)],
])('%s whose class overrides replace gets objects, and transforms them', async (_name, open) => {
  const { transform, seen } = slim();
  const looked: Thing[] = [];
  const store = new (open(looked) as new (options: object) => ReflectorStore<Thing>)({ transform });
  expect(store.prepare).toBeUndefined();
  const reflector = new Reflector<Thing>(http(), store, { streamingList: false });
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  await until(() => reflector.resourceVersion === '9');
  expect([looked.map(({ data }) => data), seen]).toEqual([
    ['much', 'much', 'much'].slice(0, looked.length),
    looked.map(({ metadata }) => metadata.name),
  ]);
  expect(looked.length).toBeGreaterThan(1);
  stop.abort();
  await running;
});
