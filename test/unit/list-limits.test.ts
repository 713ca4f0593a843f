// What is held of a list until it is complete: its bytes are limited, however it comes, and objects are transformed as they come.
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  createListWatcher,
  DeltaFifo,
  Informer,
  type InformerOptions,
  type KubernetesObject,
  type ListWatcher,
  RealFifo,
  Reflector,
  type ReflectorStore,
  Store,
} from '../../src/cache/index.ts';
import { INITIAL_EVENTS_END } from '../../src/watch/event.ts';
import { until } from './fake-sink.ts';
import { settle } from './faulty-source.ts';
import { bookmark, CLEAN, change, list as listOf, Rig, ScriptedSource, ScriptedWatch } from './reflector-rig.ts';
import { collectedUntil, NO_GC } from './support.ts';

interface Thing extends KubernetesObject {
  readonly metadata: { readonly name: string; readonly resourceVersion: string; readonly uid?: string };
  readonly data?: string;
}

/** A response, written piece by piece. */
interface Answered {
  readonly url: URL;
  readonly response: ServerResponse;
}

let asked: Answered[];
let base: string;
let close: () => Promise<void>;

beforeEach(async () => {
  asked = [];
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    asked.push({ url: new URL(request.url as string, 'http://h/'), response });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/things`;
  close = () =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    });
});
afterEach(() => close());

const thing = (name: string, resourceVersion: string = '1'): Thing => ({
  metadata: { name, resourceVersion, uid: name },
  data: 'x'.repeat(1_000),
});
const HEAD = '{"kind":"ThingList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[';
const line = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;
const END = line('BOOKMARK', {
  kind: 'Thing',
  metadata: { resourceVersion: '9', annotations: { [INITIAL_EVENTS_END]: 'true' } },
});

/** The nth request, once it has come. */
async function request(at: number): Promise<Answered> {
  await until(() => asked.length > at);
  return asked[at] as Answered;
}

/** An informer whose transform keeps only the metadata, and notes what it got. */
function slim(options: InformerOptions<Thing> = {}): { informer: Informer<Thing>; seen: string[]; errors: unknown[] } {
  const [seen, errors]: [string[], unknown[]] = [[], []];
  const informer = new Informer<Thing>(createListWatcher<Thing>(base), {
    transform: ({ kind, metadata }) => {
      seen.push(`${kind ?? '?'} ${metadata.name}`);
      return { metadata };
    },
    onError: (error) => void errors.push(error),
    ...options,
  });
  void informer.run();
  return { informer, seen, errors };
}

describe('transform is called for each object as it comes', () => {
  test('in a stream', async () => {
    const { informer, seen, errors } = slim();
    const { response } = await request(0);
    response.write(line('ADDED', { kind: 'Thing', ...thing('a') }) + line('ADDED', { kind: 'Thing', ...thing('b') }));
    await until(() => seen.length === 2);
    response.write(line('MODIFIED', { kind: 'Thing', ...thing('a', '2') }));
    await until(() => seen.length === 3);
    expect([seen, informer.hasSynced]).toEqual([['Thing a', 'Thing b', 'Thing a'], false]);
    response.write(END);
    await informer.synced;
    expect(informer.store.list()).toEqual([{ metadata: thing('a', '2').metadata }, { metadata: thing('b').metadata }]);
    expect([seen.length, errors]).toEqual([3, []]);
    await informer.stop();
  });

  test('in a list, with the kind that the list says', async () => {
    const { informer, seen, errors } = slim({ streamingList: false });
    const { response } = await request(0);
    response.write(`${HEAD}${JSON.stringify(thing('a'))},${JSON.stringify(thing('b'))},`);
    await until(() => seen.length === 2);
    expect([seen, informer.hasSynced]).toEqual([['Thing a', 'Thing b'], false]);
    response.end(`${JSON.stringify(thing('c'))}]}`);
    await informer.synced;
    expect(informer.store.list()).toEqual(['a', 'b', 'c'].map((name) => ({ metadata: thing(name).metadata })));
    expect([seen.length, errors]).toEqual([3, []]);
    await informer.stop();
  });

  test('in the pages of a list, and not again for what has not changed', async () => {
    const { informer, seen, errors } = slim({ streamingList: false, pageSize: 1, minMs: 1 });
    const page = (name: string, next?: string): string =>
      JSON.stringify({ kind: 'ThingList', metadata: { resourceVersion: '9', continue: next }, items: [thing(name)] });
    (await request(0)).response.end(page('a', 'more'));
    await until(() => seen.length === 1);
    (await request(1)).response.end(page('b'));
    await informer.synced;
    (await request(2)).response.end(line('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: '' }));
    (await request(3)).response.end(page('a', 'more'));
    (await request(4)).response.end(page('c'));
    await until(() => informer.store.size === 2 && informer.store.get('c') !== undefined);
    expect(seen).toEqual(['Thing a', 'Thing b', 'Thing c']);
    expect(errors).toMatchObject([{ status: { code: 410 } }]);
    await informer.stop();
  });

  test('at the end of a list that says its kind after its items', async () => {
    const { informer, seen } = slim({ streamingList: false });
    const { response } = await request(0);
    response.end(
      `{"metadata":{"resourceVersion":"9"},"items":[${JSON.stringify(thing('a'))}],"kind":"ThingList","apiVersion":"v1"}`,
    );
    await informer.synced;
    expect([seen, informer.store.list()]).toEqual([['Thing a'], [{ metadata: thing('a').metadata }]]);
    await informer.stop();
  });

  test('that throws for one object leaves that out, and is reported with the object once the list is complete', async () => {
    for (const streamingList of [true, false]) {
      asked = [];
      const errors: unknown[] = [];
      const informer = new Informer<Thing>(createListWatcher<Thing>(base), {
        streamingList,
        transform: (object) => {
          if (object.metadata.name === 'b') throw new Error('no b');
          return object;
        },
        onError: (error, failure) => void errors.push(error, failure),
      });
      void informer.run();
      const { response } = await request(0);
      const [a, b] = [thing('a'), thing('b')];
      response.write(
        streamingList ? line('ADDED', a) + line('ADDED', b) + END : `${HEAD}${JSON.stringify(a)},${JSON.stringify(b)}]}`,
      );
      if (!streamingList) response.end();
      await informer.synced;
      expect(errors).toMatchObject([{ message: 'no b' }, { kind: 'object', object: { data: b.data } }]);
      expect(informer.store.keys()).toEqual(['a']);
      await informer.stop();
    }
  });

  type Kept = { readonly metadata: { readonly name: string }; readonly seen?: number };
  const stores: [string, (transform: (one: Kept) => Kept) => ReflectorStore<Kept> & { size: number }][] = [
    ['a Store', (transform) => new Store<Kept>({ transform })],
    ['a DeltaFifo', (transform) => new DeltaFifo<Kept>({ transform })],
    ['a RealFifo', (transform) => new RealFifo<Kept>({ transform, knownObjects: new Store<Kept>() })],
  ];

  test.each(stores)('by %s', async (_name, open) => {
    let seen = 0;
    const store = open((one) => ({ ...one, seen: ++seen }));
    const rig = new Rig({ streamingList: true }, store as never);
    const watch = new ScriptedWatch([change('ADDED', 'a', '1'), change('ADDED', 'b', '1')]);
    rig.source.toWatch = [watch];
    await rig.start();
    expect([seen, store.size]).toEqual([2, 0]);
    watch.push(bookmark('2', 'true'));
    await settle();
    expect([seen, store.size]).toEqual([2, 2]);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test.each(stores)('by %s, whose replace throws what it has thrown', async (_name, open) => {
    const store = open(() => {
      throw new Error('no');
    });
    const rig = new Rig({}, store as never);
    rig.source.toList = [listOf('1', 'a')];
    await rig.start();
    expect(rig.failures).toMatchObject([{ kind: 'store', error: { message: 'no' } }]);
    expect(store.size).toBe(0);
    expect(await rig.stop()).toEqual(CLEAN);
  });

  test('unless there is none: then a list stays what the source has sent', async () => {
    const store = new Store<Kept>();
    const rig = new Rig({}, store as never);
    const sent = listOf('1', 'a');
    rig.source.toList = [sent];
    await rig.start();
    expect(store.get('a')).toBe(sent.items[0]);
    expect(await rig.stop()).toEqual(CLEAN);
  });
});

describe.skipIf(globalThis.gc === undefined)(`with garbage collection${NO_GC}`, () => {
  test.each([true, false])(
    'what transform has read is held no longer, while the list goes on; streamed: %s',
    async (streamingList) => {
      const refs: WeakRef<object>[] = [];
      const transform = (object: Thing): Thing => {
        refs.push(new WeakRef(object));
        return { metadata: { ...object.metadata } };
      };
      const { informer } = slim({ streamingList, transform });
      const { response } = await request(0);
      const names = Array.from({ length: 10 }, (_, n) => `a${n}`);
      response.write(
        streamingList
          ? names.map((name) => line('ADDED', { kind: 'Thing', ...thing(name) })).join('')
          : HEAD + names.map((name) => `${JSON.stringify(thing(name))},`).join(''),
      );
      await until(() => refs.length === names.length);
      // The last one may still be in a variable of whoever reads.
      expect(await collectedUntil(() => refs.filter((ref) => ref.deref() !== undefined).length <= 1)).toBe(true);
      expect(informer.hasSynced).toBe(false);
      await informer.stop();
    },
  );
});

describe('a streamed list', () => {
  const three = ['a', 'b', 'c'].map((name) => line('ADDED', thing(name))).join('');

  test('ends with 413 when it has more bytes than maxListBytes', async () => {
    const things = createListWatcher<Thing>(base, { maxListBytes: 2_500 });
    const opening = things.watch({ sendInitialEvents: true });
    (await request(0)).response.write(three + END);
    const watch = await opening;
    const events = [];
    for await (const event of watch) events.push(event);
    expect(events.map(({ type }) => type)).toEqual(['ADDED', 'ADDED', 'ERROR']);
    expect(events[2]?.object).toMatchObject({
      code: 413,
      reason: 'RequestEntityTooLarge',
      message: 'cannot decode the watch stream: the initial state is longer than maxListBytes (2500)',
    });
  });

  test.each([
    ['after its end, events do not count', { sendInitialEvents: true }, three.slice(0, three.length / 3) + END + three],
    ['a watch without an initial state is not limited', { resourceVersion: '1' }, three],
  ])('%s', async (_name, options, text) => {
    const things = createListWatcher<Thing>(base, { maxListBytes: 2_500 });
    const opening = things.watch(options);
    (await request(0)).response.end(text);
    const watch = await opening;
    const types = [];
    for await (const { type } of watch) types.push(type);
    expect(types.filter((type) => type === 'ADDED').length).toBeGreaterThanOrEqual(3);
    expect(types).not.toContain('ERROR');
  });

  test('tells the bytes of each event', async () => {
    const sizes: number[] = [];
    const opening = createListWatcher<Thing>(base).watch({ onBytes: (bytes) => void sizes.push(bytes) });
    (await request(0)).response.end(three);
    for await (const _ of await opening);
    expect(sizes).toEqual(Array(3).fill(three.length / 3 - 1));
  });

  test('is refused by an informer when it has more than maxTotalListBytes, and so are the pages that it asks for then', async () => {
    const errors: unknown[] = [];
    const informer = new Informer<Thing>(createListWatcher<Thing>(base), {
      maxTotalListBytes: 2_500,
      onError: (error, failure) => void errors.push(error, failure.kind),
    });
    void informer.run();
    const stream = await request(0);
    expect(stream.url.searchParams.get('sendInitialEvents')).toBe('true');
    stream.response.write(three + END);
    (await request(1)).response.end(`${HEAD}${['a', 'b', 'c'].map((name) => JSON.stringify(thing(name))).join()}]}`);
    await until(() => errors.length === 4);
    const refused = { code: 'OVERLOADED', limit: 2_500, message: expect.stringContaining('more than maxTotalListBytes (2500)') };
    expect(errors).toMatchObject([refused, 'other', refused, 'other']);
    expect([informer.hasSynced, informer.store.size]).toEqual([false, 0]);
    await informer.stop();
  });

  test('of a reflector counts what the source tells of this stream alone', async () => {
    const rig = new Rig({ streamingList: true, maxTotalListBytes: 100 });
    const counted =
      (...sizes: number[]): (() => ScriptedWatch) =>
      () => {
        for (const bytes of sizes) rig.source.watches.at(-1)?.onBytes?.(bytes);
        return new ScriptedWatch([change('ADDED', 'a', '1'), ...(sizes.length > 1 ? [bookmark('2', 'true')] : [])]);
      };
    rig.source.toWatch = [counted(101), counted(60, 40)];
    rig.source.toList = [new Error('down')];
    await rig.start();
    expect(rig.failures[0]).toMatchObject({ kind: 'other', error: { code: 'OVERLOADED', limit: 100 } });
    await rig.pass(60_000);
    expect(rig.store.notes).toContain('replace 2 a');
    expect(await rig.stop()).toEqual(CLEAN);
  });
});

test('a ListWatcher that does not know how works as before', async () => {
  const source: ListWatcher<Thing> = new ScriptedSource() as never;
  const store = new Store<Thing>({ transform: ({ metadata }) => ({ metadata }) });
  const reflector = new Reflector<Thing>(source, store, { streamingList: false });
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  await settle();
  expect(store.resourceVersion).toBe('1');
  stop.abort();
  await running;
});
