// A transport of one's own, over a MessagePort, written with public imports only.
import type { MessagePort } from 'node:worker_threads';
import { MessageChannel } from 'node:worker_threads';
import { afterEach, describe, expect, test } from 'vitest';
import type { Status, WatchEvent } from 'watchmux';
import { isWatchError, StreamWatcher, toDecoder } from 'watchmux';
import type { ConnectionHandlerOptions, Form, HubOptions, Served, Sink } from 'watchmux/fetch';
import { createConnectionHandler, Hub, LINE, RECORD } from 'watchmux/fetch';
import { FakeClock } from 'watchmux/testing';
import { until } from '../eventually.ts';

type N = WatchEvent<'n', number>;

const ports: MessagePort[] = [];
afterEach(() => {
  for (const port of ports.splice(0)) port.close();
});

/** Writes to a port. The other side answers with how many bytes it has read. */
class PortSink implements Sink {
  readonly form: Form;
  readonly maxBufferedBytes: number;
  bufferedBytes: number = 0;
  session: Served | undefined = undefined;
  readonly ends: unknown[] = [];
  private readonly port: MessagePort;

  constructor(port: MessagePort, { form = LINE, maxBufferedBytes = 100 }: { form?: Form; maxBufferedBytes?: number } = {}) {
    this.port = port;
    this.form = form;
    this.maxBufferedBytes = maxBufferedBytes;
  }

  opened(session: Served): void {
    this.session = session;
    this.port.on('message', (readBytes: number) => {
      this.bufferedBytes -= readBytes;
      if (this.bufferedBytes < this.maxBufferedBytes) session.relieved();
    });
    this.port.on('close', () => session.gone());
  }

  write(bytes: Uint8Array): boolean {
    this.bufferedBytes += bytes.length;
    this.port.postMessage(bytes);
    return this.bufferedBytes < this.maxBufferedBytes;
  }

  end(...how: unknown[]): void {
    this.ends.push(how);
    this.port.postMessage('end');
    this.port.close();
  }

  destroy(...how: unknown[]): void {
    this.ends.push(['destroyed', ...how]);
    this.port.close();
  }
}

function channel(sinkOptions?: ConstructorParameters<typeof PortSink>[1]): { sink: PortSink; client: MessagePort } {
  const { port1, port2 } = new MessageChannel();
  ports.push(port1, port2);
  return { sink: new PortSink(port1, sinkOptions), client: port2 };
}

/** The client's side: one message after another, each acknowledged when it is read. */
function read(port: MessagePort): ReadableStream<Uint8Array> {
  const queue: (Uint8Array | 'end')[] = [];
  let wake = (): void => {};
  const say = (message: Uint8Array | 'end'): void => {
    queue.push(message);
    wake();
  };
  port.on('message', say).on('close', () => say('end'));
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        while (queue.length === 0) await new Promise<void>((resolve) => (wake = resolve));
        const message = queue.shift();
        if (!(message instanceof Uint8Array)) return controller.close();
        port.postMessage(message.length);
        controller.enqueue(message);
      },
      cancel: () => port.close(),
    },
    { highWaterMark: 0 },
  );
}

const watchOf = (port: MessagePort): StreamWatcher<N> => new StreamWatcher(toDecoder<N>(read(port)));

interface Rig {
  readonly hub: Hub<N>;
  readonly serve: ReturnType<typeof createConnectionHandler<{ token?: string }>>;
  readonly publish: (...numbers: number[]) => Promise<void>;
}

function rig(hubOptions: HubOptions<N> = {}, options: ConnectionHandlerOptions<{ token?: string }, string, N> = {}): Rig {
  const hub = new Hub<N>({ epoch: 'e', ...hubOptions });
  return {
    hub,
    serve: createConnectionHandler(hub, { transport: 'port', ...options }),
    publish: async (...numbers) => {
      for (const object of numbers) await hub.publish({ type: 'n', object });
    },
  };
}

const codeOf = (refusal: Status | undefined): number | undefined => refusal?.code;

describe('createConnectionHandler', () => {
  test('a client gets live events, statistics name the transport, and the end of the stream', async () => {
    const { hub, serve, publish } = rig();
    const { sink, client } = channel();
    const answer = serve(sink, { request: {}, address: 'here' });
    await publish(1, 2, 3); // within the turn of the call: it is served already
    expect(await answer).toBeUndefined();
    expect(hub.stats().clients).toMatchObject([{ transport: 'port', address: 'here' }]);
    const watch = watchOf(client);
    const objects: number[] = [];
    const reading = (async () => {
      for await (const { object } of watch) objects.push(object);
    })();
    await hub.shutdown();
    await reading;
    expect(objects).toEqual([1, 2, 3]);
    expect(sink.ends).toEqual([['complete', undefined]]);
    expect(sink.session?.over).toBe(true);
    expect(hub.stats()).toMatchObject({ clients: [], total: { clients: 1, delivered: 3, cut: 0 } });
  });

  test('it resumes right after a version, and answers 410 to one that is not kept', async () => {
    const { hub, serve, publish } = rig({ replayItems: 2 });
    await publish(1, 2, 3);
    const { sink, client } = channel({ form: LINE });
    expect(await serve(sink, { request: {}, search: 'resourceVersion=e.1' })).toBeUndefined();
    const watch = watchOf(client);
    expect([(await watch.next()).value, (await watch.next()).value]).toMatchObject([{ object: 2 }, { object: 3 }]);
    const late = channel();
    expect(codeOf(await serve(late.sink, { request: {}, search: 'resourceVersion=e.0' }))).toBe(410);
    expect(codeOf(await serve(late.sink, { request: {}, search: 'timeoutSeconds=x' }))).toBe(400);
    expect(late.sink.session).toBeUndefined();
    expect(hub.stats().total).toMatchObject({ resumes: 1, refusals: { expired: 1, badRequest: 1 } });
    await watch.return();
  });

  test('the hooks decide who is admitted and what they see; a refusal gives the place back', async () => {
    const { hub, serve, publish } = rig(
      { maxClients: 1 },
      {
        authenticate: async ({ token }) => token,
        watchOptions: (_request, name) => ({ filter: ({ object }) => object % 2 === 0 && name === 'ann' }),
      },
    );
    const { sink, client } = channel();
    expect(codeOf(await serve(sink, { request: {} }))).toBe(401);
    expect(await serve(sink, { request: { token: 'ann' } })).toBeUndefined();
    expect(hub.stats().clients).toMatchObject([{ identity: 'ann' }]);
    expect(codeOf(await serve(channel().sink, { request: { token: 'ann' } }))).toBe(503); // one place, and it is taken
    await publish(1, 2);
    const watch = watchOf(client);
    expect((await watch.next()).value).toMatchObject({ object: 2 });
    await watch.return();
    await until(() => hub.stats().clients.length === 0);
    const next = channel();
    expect(await serve(next.sink, { request: { token: 'ann' } })).toBeUndefined();
  });

  test('a page of another origin is refused; a client without an origin is none', async () => {
    const { serve } = rig();
    const request = { request: {}, host: 'shop.example' };
    expect(codeOf(await serve(channel().sink, { ...request, origin: 'https://evil.example' }))).toBe(403);
    expect(await serve(channel().sink, { ...request, origin: 'https://shop.example' })).toBeUndefined();
    expect(await serve(channel().sink, request)).toBeUndefined();
  });

  test('a client that reads nothing gets no more than its buffer holds, is told what it missed, and delays nobody', async () => {
    const { hub, serve, publish } = rig({ capacity: 4 });
    const { sink, client } = channel();
    await serve(sink, { request: {} });
    for (let n = 0; n < 100; n++) {
      await publish(n);
      await new Promise(setImmediate);
    }
    expect(sink.bufferedBytes).toBeLessThan(200);
    const [stats] = hub.stats().clients;
    const seen: (WatchEvent | undefined)[] = [];
    for await (const event of watchOf(client) as AsyncIterable<WatchEvent>) seen.push(event);
    const delivered = seen.length - 1;
    expect(stats?.bufferedBytes).toBeGreaterThan(0);
    expect(seen.at(-1)).toMatchObject({ type: 'ERROR', object: { code: 410, details: { missed: 100 - delivered } } });
    expect(sink.ends).toEqual([['expired', undefined]]);
  });

  test('a client that takes nothing for stallTimeoutMs is cut, and no timer stays', async () => {
    const clock = new FakeClock();
    const { hub, serve, publish } = rig({ clock }, { clock, stallTimeoutMs: 1_000 });
    const { sink } = channel({ maxBufferedBytes: 10 });
    await serve(sink, { request: {} });
    await publish(1);
    await until(() => sink.bufferedBytes > 0);
    clock.advance(1_250);
    expect(hub.stats().total.cuts).toEqual({ stalled: 1 });
    expect(sink.ends).toEqual([['destroyed', undefined]]);
    expect(clock.pending).toBe(0);
  });

  test('a client that leaves while the hooks decide takes no place, and neither does one that leaves inside them', async () => {
    const clock = new FakeClock();
    const gone = new AbortController();
    const inside = new AbortController();
    const { hub, serve } = rig(
      { maxClients: 1 },
      {
        clock,
        authenticate: ({ token = '' }) => {
          if (token === 'slow') return new Promise<string>(() => {});
          if (token === 'inside') inside.abort();
          return token;
        },
      },
    );
    const { sink } = channel();
    const answer = serve(sink, { request: { token: 'slow' }, signal: gone.signal });
    expect(clock.pending).toBe(1);
    gone.abort();
    expect(await answer).toBeUndefined();
    expect(clock.pending).toBe(0);
    expect(await serve(sink, { request: { token: 'inside' }, signal: inside.signal })).toBeUndefined();
    expect(sink.session).toBeUndefined();
    // The one place is free.
    expect(await serve(sink, { request: { token: 'ann' } })).toBeUndefined();
    expect(hub.stats()).toMatchObject({ clients: [{ identity: 'ann' }], total: { clients: 1, refused: 0 } });
  });

  test.each([
    ['when clients are looked at', 0],
    ['when a timer looks for those that take nothing', 1_250],
  ])('a sink whose `bufferedBytes` throws loses only its own client, %s', async (_when, passMs) => {
    const clock = new FakeClock();
    const { hub, serve, publish } = rig({ clock }, { clock, stallTimeoutMs: 1_000 });
    const [broken, slow] = [channel().sink, channel({ maxBufferedBytes: 10 }).sink];
    for (const sink of [broken, slow]) await serve(sink, { request: {} });
    const fails = (): never => {
      throw new Error('closed');
    };
    await publish(1);
    await until(() => slow.bufferedBytes > 0);
    Object.defineProperty(broken, 'bufferedBytes', { get: fails });
    clock.advance(passMs);
    const { clients, total } = hub.stats();
    expect(clients).toHaveLength(passMs > 0 ? 0 : 1);
    expect(total).toMatchObject({ delivered: 2, cuts: passMs > 0 ? { failed: 1, stalled: 1 } : { failed: 1 } });
    expect(broken.ends).toEqual([['destroyed', undefined]]);
    clock.advance(1_250);
    expect(clock.pending).toBe(0);
  });

  test('a sink that throws loses only its own client', async () => {
    const { hub, serve, publish } = rig();
    const broken = channel();
    broken.sink.write = () => {
      throw new Error('broken');
    };
    const { sink, client } = channel();
    await serve(broken.sink, { request: {} });
    await serve(sink, { request: {} });
    await publish(1);
    const watch = watchOf(client);
    expect((await watch.next()).value).toMatchObject({ object: 1 });
    expect(hub.stats().total.cuts).toEqual({ failed: 1 });
    await watch.return();
  });

  test('RECORD is the form of Server-Sent Events; mark tells a version without an event', async () => {
    const clock = new FakeClock();
    const { serve, publish } = rig({ clock, bookmarkIntervalMs: 100 }, { clock });
    const { sink, client } = channel({ form: RECORD, maxBufferedBytes: 10_000 });
    const marks: string[] = [];
    const texts: string[] = [];
    client.on('message', (bytes: Uint8Array) => texts.push(new TextDecoder().decode(bytes)));
    await serve(Object.assign(sink, { mark: (version: string) => marks.push(version) }), { request: {} });
    await publish(7);
    await until(() => texts.length > 0);
    expect(texts).toEqual(['id: e.1\ndata: {"type":"n","object":7,"resourceVersion":"e.1"}\n\n']);
    clock.advance(100);
    expect(marks).toEqual(['e.1']);
  });

  test('a form of one’s own: length-prefixed frames', async () => {
    const prefixed: Form = {
      chunked: false,
      size: ({ bytes }) => bytes.length + 4,
      put({ bytes }, to, at) {
        new DataView(to.buffer, to.byteOffset).setUint32(at, bytes.length);
        to.set(bytes, at + 4);
        return at + 4 + bytes.length;
      },
    };
    const { hub, serve, publish } = rig();
    const { sink, client } = channel({ form: prefixed });
    await serve(sink, { request: {} });
    await publish(1, 2);
    const watch = new StreamWatcher(toDecoder<N>(read(client), { framing: 'length-prefixed' }));
    expect([(await watch.next()).value, (await watch.next()).value]).toMatchObject([{ object: 1 }, { object: 2 }]);
    await watch.return();
    await hub.shutdown();
  });

  test('after the end of the stream, 204 is the answer; during a shutdown, 503', async () => {
    const { hub, serve, publish } = rig();
    await publish(1);
    const { sink } = channel({ maxBufferedBytes: 1 });
    await serve(sink, { request: {} });
    const closing = hub.shutdown();
    expect(codeOf(await serve(channel().sink, { request: {} }))).toBe(503);
    sink.session?.gone();
    await closing;
    expect(codeOf(await serve(channel().sink, { request: {}, search: 'resourceVersion=e.1' }))).toBe(204);
  });

  test('invalid arguments are named', async () => {
    const hub = new Hub();
    expect(() => createConnectionHandler({} as Hub)).toThrow(/hub/);
    expect(() => createConnectionHandler(hub, { transport: '' })).toThrow(/transport.*non-empty string/);
    expect(() => createConnectionHandler(hub, { stallTimeoutMs: -1 })).toThrow(/stallTimeoutMs/);
    const serve = createConnectionHandler(hub);
    const sink = channel().sink;
    for (const [wrong, request] of [
      [undefined, { request: {} }],
      [{ ...sink, write: 1 }, { request: {} }],
      [sink, undefined],
    ] as const) {
      const error = await serve(wrong as unknown as Sink, request as { request: unknown }).catch((thrown: unknown) => thrown);
      expect(isWatchError(error, 'INVALID_ARGUMENT')).toBe(true);
    }
    expect(hub.stats().clients).toEqual([]);
    expect(await serve(sink, { request: {} })).toBeUndefined();
    expect(hub.stats().clients[0]?.transport).toBe('custom');
  });
});
