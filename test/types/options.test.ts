// Every optional member also accepts undefined. With exactOptionalPropertyTypes these differ, and callers pass values on.
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { ReadableOptions } from '../../src/adapters/node-stream.ts';
import { toReadable } from '../../src/adapters/node-stream.ts';
import type { FromObservableOptions } from '../../src/adapters/rxjs.ts';
import type { Backoff, ConnectOptions } from '../../src/bridge/client.ts';
import type { FetchOptions } from '../../src/bridge/fetch.ts';
import type { ClientOptions, HttpOptions, HubOptions, Identified, ShutdownOptions, toBookmark } from '../../src/bridge/http.ts';
import type { WebSocketOptions, WebSocketServerOptions } from '../../src/bridge/websocket.ts';
import type {
  BroadcasterOptions,
  FramerOptions,
  ProxyWatcherOptions,
  ReadableStreamOptions,
  StatusDetails,
  StreamWatcherOptions,
  sleep,
  ToDecoderOptions,
  TransitionOptions,
  WatchEvent,
  WatchOptions,
} from '../../src/index.ts';
import {
  Broadcaster,
  emptyWatch,
  filterTransitions,
  fromAsyncIterable,
  jsonCodec,
  ProxyWatcher,
  StreamWatcher,
  toDecoder,
  toReadableStream,
  toStatus,
} from '../../src/index.ts';
import type { FakeWatcherOptions, HistoryRecorderOptions, RecordedWatchOptions } from '../../src/testing/index.ts';
import { FakeWatcher } from '../../src/testing/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';

type Orders = WatchEvent<'placed', { total: number }> | WatchEvent<'cancelled', { id: string }>;

/** Every option, and none of them said. */
type Unsaid<Options> = { readonly [Name in keyof Options]-?: undefined };
type Lax<Options> = Assignable<Unsaid<Options>, Options>;

function options(): void {
  claim<Lax<Parameters<typeof sleep>[1] & object>>();
  claim<Lax<StatusDetails>>();
  claim<Lax<FramerOptions>>();
  claim<Lax<ToDecoderOptions<Orders>>>();
  claim<Lax<Parameters<typeof jsonCodec>[0] & object>>();
  claim<Lax<StreamWatcherOptions>>();
  claim<Lax<BroadcasterOptions<Orders>>>();
  claim<Lax<WatchOptions<Orders>>>();
  claim<Lax<TransitionOptions<Orders>>>();
  claim<Lax<ProxyWatcherOptions>>();
  claim<Lax<ReadableOptions>>();
  claim<Lax<ReadableStreamOptions>>();
  claim<Lax<FromObservableOptions<Orders>>>();
  claim<Lax<HubOptions<Orders>>>();
  claim<Lax<ClientOptions<Orders>>>();
  claim<Lax<ShutdownOptions>>();
  claim<Lax<HttpOptions<string, Orders>>>();
  claim<Lax<FetchOptions<string, Orders>>>();
  claim<Lax<WebSocketOptions<string, Orders>>>();
  claim<Lax<WebSocketServerOptions<string, Orders>>>();
  claim<Lax<Parameters<typeof toBookmark>[1] & object>>();
  claim<Lax<ConnectOptions<Orders>>>();
  claim<Lax<Backoff>>();
  claim<Lax<FakeWatcherOptions>>();
  claim<Lax<HistoryRecorderOptions<Orders>>>();
  claim<Lax<RecordedWatchOptions<Orders>>>();
  claim<Assignable<{ status: 403; message: undefined }, Identified<string>>>();
  claim<Equal<Lax<{ readonly strict?: number }>, false>>();
}

describe('an option that is undefined', () => {
  it('compiles for every option', () => {
    expect(compiles(options)).toBe(1);
  });

  it('means the default', async () => {
    const lines = (): PassThrough => new PassThrough().end('{"type":"a","object":1}\n');
    const unsaid = { framing: undefined, codec: undefined, maxFrameBytes: undefined, oversize: undefined, onSkip: undefined };
    const decoded = new StreamWatcher<WatchEvent>(toDecoder(lines(), unsaid), { reportError: undefined });
    expect((await decoded.next()).value).toEqual({ type: 'a', object: 1 });
    expect(jsonCodec({ types: undefined }).decode(new TextEncoder().encode('{"type":"a","object":1}'))).toHaveProperty(
      'type',
      'a',
    );
    expect(toReadable(emptyWatch(), { highWaterMark: undefined }).readableHighWaterMark).toBe(
      toReadable(emptyWatch()).readableHighWaterMark,
    );
    await toReadableStream(emptyWatch(), { highWaterMark: undefined }).cancel();
    const proxy = new ProxyWatcher(new Broadcaster().watch(), { endOnStop: undefined });
    proxy.stop();
    expect(await proxy.next()).toEqual({ done: true, value: undefined });
    expect(await new FakeWatcher({ capacity: undefined }).return()).toHaveProperty('done', true);
    const named = { type: 'ADDED', object: { metadata: { name: 'a' } } };
    const source = fromAsyncIterable(new Broadcaster().watch({ prefix: [named] }));
    expect(await filterTransitions(source, () => true, { keyOf: undefined, previousOf: undefined }).next()).toHaveProperty(
      'value',
      named,
    );
    const failure = { code: 500, reason: 'InternalError', message: 'so', details: undefined };
    expect(JSON.parse(JSON.stringify(toStatus(failure)))).not.toHaveProperty('details');
  });
});
