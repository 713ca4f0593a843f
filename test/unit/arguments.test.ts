import { Readable } from 'node:stream';
import { EMPTY, type Observable } from 'rxjs';
import { describe, expect, test } from 'vitest';
import * as nodeStream from '../../src/adapters/node-stream.ts';
import * as rx from '../../src/adapters/rxjs.ts';
import { ApiServer, CONFIG_MAPS } from '../../src/apiserver/index.ts';
import { connect } from '../../src/bridge/client.ts';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import { createConnectionHandler, createHttpHandler, Hub, toBookmark } from '../../src/bridge/http.ts';
import { attachWebSocketServer, createUpgradeHandler } from '../../src/bridge/websocket.ts';
import { createListWatcher, Informer, InformerFactory, listAll, RealFifo, Reflector, Store } from '../../src/cache/index.ts';
import * as root from '../../src/index.ts';
import { createNodeFetch } from '../../src/kubernetes/index.ts';
import {
  allOf,
  anyOf,
  apply,
  createOrUpdate,
  ensureFinalizer,
  FollowedKind,
  isConditionTrue,
  not,
  Operator,
  removeCondition,
  removeFinalizer,
  setCondition,
  updateStatus,
  Webhooks,
} from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { FakeWatcher, HistoryRecorder } from '../../src/testing/index.ts';
import { invalid, shownOf } from '../../src/watch/errors.ts';
import { Controller, LeaderElector, parallelizeUntil, toLeases, WorkQueue } from '../../src/workqueue/index.ts';

const watch = (): root.Watch<root.WatchEvent> => root.emptyWatch<root.WatchEvent>();
const hub = new Hub();
const api = new ApiServer({ storage: new MemoryStorage(), resources: [CONFIG_MAPS] });
/** An option that nothing has, and a nearest one for most. */
const odd = { capacitty: 1 } as never;

describe('a value in a message', () => {
  class Source {
    read(): void {}
  }
  test.each<[string, unknown, string]>([
    ['a text', 'a"b', '"a\\"b"'],
    ['a text that looks like an object', '[object Object]', '"[object Object]"'],
    ['a number', 7, '7'],
    ['nothing', undefined, 'undefined'],
    ['an array of numbers', [1, 2], '1,2'],
    ['an array of objects', [{}, {}], 'Array {0, 1}'],
    ['an empty array', [], 'Array {}'],
    ['an empty object', {}, 'Object {}'],
    ['an object, by the names of its members', { authorization: 'Bearer secret', url: 1 }, 'Object {authorization, url}'],
    ['an instance', new Source(), 'Source {}'],
    ['a promise', Promise.resolve(1), 'Promise {}'],
    ['an object that has no text', Object.create(null), 'object'],
  ])('is for people: %s', (_name, value, shown) => {
    expect(shownOf(value)).toBe(shown);
    expect(invalid('it', value, 'another').message).toBe(`it: expected another, got ${shown}`);
  });
});

const TAKES_OPTIONS: readonly (readonly [string, () => unknown])[] = [
  ['Broadcaster', () => new root.Broadcaster(odd)],
  ['watch', () => new root.Broadcaster().watch(odd)],
  ['shutdown', () => new root.Broadcaster().shutdown(odd)],
  ['filterTransitions', () => root.filterTransitions(watch(), () => true, odd)],
  ['ProxyWatcher', () => new root.ProxyWatcher(watch(), odd)],
  ['sleep', () => root.sleep(0, odd)],
  ['NewlineFramer', () => new root.NewlineFramer(odd)],
  ['LengthPrefixedFramer', () => new root.LengthPrefixedFramer(odd)],
  ['toDecoder', () => root.toDecoder(Readable.from([]), odd)],
  ['jsonCodec', () => root.jsonCodec(odd)],
  ['StreamWatcher', () => new root.StreamWatcher(root.toDecoder(Readable.from([])), odd)],
  ['toReadableStream', () => root.toReadableStream(watch(), odd)],
  ['toReadable', () => nodeStream.toReadable(watch(), odd)],
  ['fromObservable', () => rx.fromObservable(EMPTY as Observable<root.WatchEvent>, odd)],
  ['Hub', () => new Hub(odd)],
  ['metrics of a Hub', () => hub.metrics(odd)],
  ['createHttpHandler', () => createHttpHandler(hub, odd)],
  ['createFetchHandler', () => createFetchHandler(hub, odd)],
  ['createUpgradeHandler', () => createUpgradeHandler(hub, odd)],
  ['attachWebSocketServer', () => attachWebSocketServer(new root.Broadcaster() as never, hub, odd)],
  ['toBookmark', () => toBookmark('1', odd)],
  ['connect', () => connect('http://localhost', odd)],
  ['backoff', () => connect('http://localhost', { backoff: odd })],
  ['FakeWatcher', () => new FakeWatcher(odd)],
  ['HistoryRecorder', () => new HistoryRecorder(new root.Broadcaster(), odd)],
  ['setCondition', () => setCondition({}, { type: 'Ready', status: 'True', reason: 'Ready' }, odd)],
  ['FollowedKind', () => new FollowedKind(api, 'pods/v1', odd)],
  ['a recorded watch', () => new HistoryRecorder(new root.Broadcaster()).watch(odd)],
];

test.each(TAKES_OPTIONS)('%s refuses an option that it does not know', (_name, call) => {
  expect(call).toThrow(
    expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^unknown option capacitty: (did you mean capacity\?|expected one of \w+(, \w+)*)$/),
    }),
  );
});

test('Hub.shutdown rejects with it', async () => {
  await expect(new Hub().shutdown(odd)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
});

describe('what is no object with options, but would pass for one without any', () => {
  const others: readonly (readonly [string, unknown])[] = [
    ['a promise of them, whose await was forgotten', Promise.resolve({ authenticate: () => undefined })],
    ['a signal', new AbortController().signal],
    ['a list, which has a filter', []],
    ['a map', new Map([['capacity', 1]])],
  ];
  test.each(others)('%s is refused', async (_name, value) => {
    const refused = expect.objectContaining({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^options: expected an object/),
    });
    const options = value as never;
    expect(() => createHttpHandler(hub, options)).toThrow(refused);
    expect(() => createFetchHandler(hub, options)).toThrow(refused);
    expect(() => createUpgradeHandler(hub, options)).toThrow(refused);
    expect(() => createConnectionHandler(hub, options)).toThrow(refused);
    expect(() => new Hub(options)).toThrow(refused);
    expect(() => connect('http://localhost', options)).toThrow(refused);
    expect(() => new root.Broadcaster(options)).toThrow(refused);
    expect(() => new root.Broadcaster().watch(options)).toThrow(refused);
    await expect(new Hub().shutdown(options)).rejects.toEqual(refused);
    expect(() => new root.Broadcaster().shutdown(options)).toThrow(refused);
  });

  test('a module, an object without a prototype, an instance and a proxy may have options', () => {
    class Settings {
      readonly capacity: number = 1;
      readonly other: number = 2;
    }
    const bare = Object.assign(Object.create(null), { capacity: 1 });
    const asModule = Object.assign(Object.create(null, { [Symbol.toStringTag]: { value: 'Module' } }), { capacity: 1 });
    for (const options of [bare, asModule, new Settings(), new Proxy({ capacity: 1 }, {})])
      expect(() => new root.Broadcaster(options)).not.toThrow();
  });
});

test.each<[string, string, (value: never) => unknown, readonly unknown[]]>([
  ['Hub', 'random', (random) => new Hub({ random }), [1, 'x', {}]],
  ['Hub', 'nextTurn', (nextTurn) => new Hub({ nextTurn }), [1, 'x', {}]],
  ['NewlineFramer', 'onSkip', (onSkip) => new root.NewlineFramer({ onSkip }), [1, 'x', {}]],
  ['createUpgradeHandler', 'path', (path) => createUpgradeHandler(hub, { path }), ['w', '/w?x=1', '/w#a', 5]],
  ['WorkQueue', 'name', (name) => new WorkQueue({ name }), [1, {}, null]],
  ['MemoryStorage', 'fields', (fields) => new MemoryStorage({ fields }), [1, 'x', [], { a: 1 }, { a: undefined }]],
  ['scope', 'fields', (fields) => new MemoryStorage().scope('a/', { fields }), [1, 'x', { a: null }]],
  ['ApiServer', 'cache', (cache) => new ApiServer({ storage: new MemoryStorage(), resources: [], cache }), [1, 'x', null]],
  ['ApiServer', 'resources', (resources) => new ApiServer({ storage: new MemoryStorage(), resources }), [1, 'x', {}, undefined]],
])('%s refuses a %s of another kind', (_name, option, call, values) => {
  for (const value of values) {
    const message = expect.stringMatching(`^${option}(\\["a"\\])?: expected `);
    expect(() => call(value as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }));
  }
});

test.each<[string, string, (value: never) => unknown]>([
  ['Hub', 'capacity', (capacity) => new Hub({ capacity })],
  ['createHttpHandler', 'stallTimeoutMs', (stallTimeoutMs) => createHttpHandler(hub, { stallTimeoutMs })],
  ['createUpgradeHandler', 'heartbeatMs', (heartbeatMs) => createUpgradeHandler(hub, { heartbeatMs })],
  ['createUpgradeHandler', 'maxInboundBytes', (maxInboundBytes) => createUpgradeHandler(hub, { maxInboundBytes })],
  [
    'createUpgradeHandler',
    'maxInboundBytesPerSecond',
    (maxInboundBytesPerSecond) => createUpgradeHandler(hub, { maxInboundBytesPerSecond }),
  ],
  ['NewlineFramer', 'maxFrameBytes', (maxFrameBytes) => new root.NewlineFramer({ maxFrameBytes })],
  ['MemoryStorage', 'maxBytes', (maxBytes) => new MemoryStorage({ maxBytes })],
  ['createListWatcher', 'maxListBytes', (maxListBytes) => createListWatcher('http://h/', { maxListBytes })],
  ['Reflector', 'resyncMs', (resyncMs) => new Reflector(new MemoryStorage(), new Store(), { resyncMs })],
  ['RealFifo', 'batchSize', (batchSize) => new RealFifo({ batchSize })],
  ['ApiServer', 'maxBodyBytes', (maxBodyBytes) => new ApiServer({ storage: new MemoryStorage(), resources: [], maxBodyBytes })],
  ['LeaderElector', 'retryMs', (retryMs) => new LeaderElector({ name: 'a', leases: toLeases(new MemoryStorage()), retryMs })],
  ['Operator', 'syncTimeoutMs', (syncTimeoutMs) => new Operator({ cluster: api, name: 'a', syncTimeoutMs })],
])('null is no number, so that %s does not take the default of %s', (_name, option, call) => {
  const message = expect.stringMatching(`^${option}: expected a whole number >= \\d, got null$`);
  expect(() => call(null as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message }));
});

describe('an argument of the wrong kind', () => {
  const bad = [1, 2] as never;
  test.each<[string, string, (value: never) => unknown]>([
    ['filter', 'watch', (value) => root.filter(value, () => true)],
    ['Recorder', 'watch', (value) => new root.Recorder(value)],
    ['filterTransitions', 'watch', (value) => root.filterTransitions(value, () => true)],
    ['toReadableStream', 'watch', (value) => root.toReadableStream(value)],
    ['toReadable', 'watch', (value) => nodeStream.toReadable(value)],
    ['toObservable', 'watch', (value) => rx.toObservable(value)],
    ['observe', 'broadcaster', (value) => rx.observe(value)],
    ['fromObservable', 'observable', (value) => rx.fromObservable(value)],
    ['fromAsyncIterable', 'events', (value) => root.fromAsyncIterable(value)],
    ['ProxyWatcher', 'events', (value) => new root.ProxyWatcher(value)],
    ['fromReadableStream', 'stream', (value) => root.fromReadableStream(value)],
    ['fromReadable', 'readable', (value) => nodeStream.fromReadable(value)],
  ])('%s names it', (_name, argument, call) => {
    for (const value of [bad, {} as never, undefined as never, null as never, 'text' as never])
      expect(() => call(value)).toThrow(
        expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(`^${argument}: expected an? `) }),
      );
  });

  test('createNodeFetch takes a function, and not what it returns', () => {
    expect(() => createNodeFetch({ ca: 'pem' } as never)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  test('a hub follows only a watch', async () => {
    await expect(new Hub().follow(bad)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^watch:/),
    });
  });

  test('filter takes only a function, and filterTransitions too', () => {
    expect(() => root.filter(watch(), undefined as never)).toThrow('fn: expected a function, got undefined');
    expect(() => root.filterTransitions(watch(), 5 as never)).toThrow('predicate: expected a function, got 5');
    expect(() => root.filterTransitions(watch(), () => true, { keyOf: 'name' as never })).toThrow('keyOf: expected a function');
  });
});

describe('what no function of this package can use', () => {
  const orders = api.resource(CONFIG_MAPS);
  const informer = new Informer(new MemoryStorage());
  const object = { metadata: { name: 'a', namespace: 'default' } };
  test.each<[string, string, (value: never) => unknown]>([
    ['fetch of an ApiServer', 'request', (value) => api.fetch(value)],
    ['fetch of Webhooks', 'request', (value) => new Webhooks({ validate() {} }).fetch(value)],
    ['createFetchHandler', 'request', async (value) => createFetchHandler(hub)(value)],
    ['resource', 'type', async (value) => api.resource(value)],
    ['attachWebSocketServer', 'sockets', async (value) => attachWebSocketServer(value, hub)],
    ['listAll', 'source', (value) => listAll(value)],
    ['transaction', 'changes', async (value) => new Store().transaction(value)],
    ['parallelizeUntil', 'work', (value) => parallelizeUntil(1, value, { workers: 1 })],
    ['apply', 'resource', (value) => apply(value, object, { fieldManager: 'a' })],
    ['createOrUpdate', 'resource', (value) => createOrUpdate(value, object, () => {})],
    ['createOrUpdate', 'mutate', (value) => createOrUpdate(orders, object, value)],
    ['updateStatus', 'resource', (value) => updateStatus(value, object, () => {})],
    ['ensureFinalizer', 'resource', (value) => ensureFinalizer(value, object, 'a/b')],
    ['ensureFinalizer', 'name', (value) => ensureFinalizer(orders, object, value)],
    ['removeFinalizer', 'name', (value) => removeFinalizer(orders, object, value)],
    ['setCondition', 'object', async (value) => setCondition(value, { type: 'A', status: 'True', reason: 'B' })],
    ['isConditionTrue', 'object', async (value) => isConditionTrue(value, 'A')],
    ['removeCondition', 'object', async (value) => removeCondition(value, 'A')],
    ['allOf', 'when', async (value) => allOf(value)],
    ['anyOf', 'when', async (value) => anyOf(value)],
    ['not', 'when', async (value) => not(value)],
    ['FollowedKind', 'source', async (value) => new FollowedKind(value, 'pods/v1')],
    ['run of a Reflector', 'signal', (value) => new Reflector(new MemoryStorage(), new Store()).run(value)],
    ['run of an Informer', 'signal', (value) => new Informer(new MemoryStorage()).run(value)],
    ['run of a Controller', 'signal', (value) => new Controller({ informers: [informer], reconcile() {} }).run(value)],
    ['run of an Operator', 'signal', (value) => new Operator({ cluster: api, name: 'a' }).run(value)],
    ['start', 'signal', async (value) => new InformerFactory(() => new MemoryStorage()).start(value)],
    ['waitForSync', 'signal', (value) => new InformerFactory(() => new MemoryStorage()).waitForSync(value)],
  ])('%s names it: %s', async (_name, argument, call) => {
    const told = { code: 'INVALID_ARGUMENT', message: expect.stringMatching(`^${argument}: expected `) };
    // No signal is one that never aborts.
    const nothing = argument === 'signal' ? [] : [undefined, null];
    const texts = /^(name|type)$/.test(argument) ? [] : ['text'];
    for (const value of [...nothing, ...texts, 5, /^(type|object)$/.test(argument) ? [] : {}]) {
      await expect(Promise.resolve(value as never).then(call)).rejects.toMatchObject(told);
    }
  });
});
