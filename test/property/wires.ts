// Every transport between a real hub and a real client without sockets: the bytes of the hub, which a test lets through, holds up, or
// cuts off anywhere.
import type { ConnectOptions, WebSocketConstructor } from '../../src/bridge/client.ts';
import { MESSAGE } from '../../src/bridge/events/forms.ts';
import type { Hub, Served, Sink } from '../../src/bridge/fetch.ts';
import { createConnectionHandler, createFetchHandler } from '../../src/bridge/fetch.ts';
import type { Ending } from '../../src/bridge/protocol.ts';
import { CLOSE_CODES, CLOSE_REASONS, toRetryReason } from '../../src/bridge/protocol.ts';
import type { Clock } from '../../src/watch/clock.ts';
import type { Kind } from '../unit/client-network.ts';

/** How a connection ends: it breaks, or it looks complete, as a response that a proxy has cut. */
export type Cut = 'break' | 'end';

/** One connection. */
export interface Wire {
  readonly over: boolean;
  stall(): void;
  resume(): void;
  /** Ends it after so many more bytes have come through. */
  cut(bytes: number, how: Cut): void;
}

/** A server for one hub. */
export interface Endpoint {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly serve: (sink: Sink, search: string, signal: AbortSignal) => ReturnType<ReturnType<typeof createConnectionHandler>>;
}

/** `hooks`: who is admitted, and to what. */
export function toEndpoint(hub: Hub, clock: Clock, hooks: object = {}): Endpoint {
  const limits = { clock, stallTimeoutMs: 0, ...hooks };
  const serve = createConnectionHandler(hub, { ...limits, transport: 'websocket' });
  return {
    fetch: createFetchHandler(hub, { ...limits, maxBufferedBytes: 1 }),
    serve: (sink, search, signal) => serve(sink, { request: undefined, search, signal }),
  };
}

/** Changes a message on its way, for tests of the tests. */
export type Tamper = (text: string) => string;

/** The connections of one client, the last one last. */
export class Wires {
  readonly all: Wire[] = [];
  tamper: Tamper | undefined = undefined;
  /** How to cut the next connection. */
  next: { readonly bytes: number; readonly how: Cut } | undefined = undefined;
  private readonly endpoint: () => Endpoint;

  constructor(endpoint: () => Endpoint) {
    this.endpoint = endpoint;
  }

  get last(): Wire | undefined {
    return this.all.at(-1);
  }

  options(kind: Kind): Pick<ConnectOptions<never>, 'transport' | 'WebSocket' | 'fetch'> {
    if (kind === 'http' || kind === 'sse') return { transport: kind, fetch: (url, init) => this.fetch(new Request(url, init)) };
    const wires = this;
    class Browser extends HubSocket {
      constructor(url: string) {
        super(new URL(url), wires);
      }
    }
    class Ws extends RichHubSocket {
      constructor(url: string) {
        super(new URL(url), wires);
      }
    }
    return { transport: 'websocket', WebSocket: (kind === 'ws' ? Ws : Browser) as unknown as WebSocketConstructor };
  }

  private async fetch(request: Request): Promise<Response> {
    const response = await this.endpoint().fetch(request);
    if (response.status !== 200 || response.body === null) return response;
    const wire = new StreamWire(response.body, this.tamper);
    this.add(wire);
    return new Response(wire.body, { headers: response.headers });
  }

  dial(socket: HubSocket, url: URL): SocketWire {
    const wire = new SocketWire(socket, this.tamper);
    this.add(wire);
    queueMicrotask(() => void this.open(wire, url));
    return wire;
  }

  private add(wire: Wire): void {
    this.all.push(wire);
    if (this.next !== undefined) wire.cut(this.next.bytes, this.next.how);
    this.next = undefined;
  }

  private async open(wire: SocketWire, url: URL): Promise<void> {
    if (wire.over) return;
    const refusal = await this.endpoint().serve(wire, url.search.slice(1), wire.gone.signal);
    if (refusal === undefined) return;
    const { code } = refusal;
    if (code === 503) wire.close(1006, '');
    else if (code === 204) wire.close(CLOSE_CODES.complete, CLOSE_REASONS.complete);
    else wire.refuse(JSON.stringify({ type: 'ERROR', object: refusal }), [4_000 + code, CLOSE_REASONS.expired]);
  }
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

class StreamWire implements Wire {
  over: boolean = false;
  readonly body: ReadableStream<Uint8Array>;
  private readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  private readonly tamper: Tamper | undefined;
  private controller: ReadableStreamDefaultController<Uint8Array> | undefined = undefined;
  private gate: Promise<void> | undefined = undefined;
  private open: () => void = () => {};
  private left: number = Number.POSITIVE_INFINITY;
  private how: Cut = 'break';

  constructor(source: ReadableStream<Uint8Array>, tamper: Tamper | undefined) {
    this.reader = source.getReader();
    this.tamper = tamper;
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.controller = controller;
        },
        pull: () => this.pull(),
        cancel: () => this.leave(),
      },
      { highWaterMark: 0 },
    );
  }

  stall(): void {
    this.gate ??= new Promise((resolve) => {
      this.open = resolve;
    });
  }

  resume(): void {
    this.gate = undefined;
    this.open();
  }

  cut(bytes: number, how: Cut): void {
    this.left = bytes;
    this.how = how;
    if (bytes === 0) this.finish();
  }

  private async pull(): Promise<void> {
    if (this.gate) await this.gate;
    if (this.over) return;
    const { done, value, error } = await this.reader.read().then(
      (result) => ({ ...result, error: undefined }),
      (error: unknown) => ({ done: true, value: undefined, error }),
    );
    if (this.gate) await this.gate;
    if (this.over) return;
    // The server has broken it off.
    if (error !== undefined) {
      this.over = true;
      this.controller?.error(new TypeError('terminated'));
      return;
    }
    if (done || value === undefined) {
      this.over = true;
      this.controller?.close();
      return;
    }
    const bytes = this.tamper ? encoder.encode(this.tamper(decoder.decode(value))) : value;
    const rest = this.left - bytes.length;
    if (this.left > 0) this.controller?.enqueue(bytes.slice(0, Math.min(bytes.length, this.left)));
    this.left = Math.max(0, rest);
    if (rest <= 0) this.finish();
  }

  private finish(): void {
    if (this.over) return;
    this.leave();
    if (this.how === 'end') this.controller?.close();
    else this.controller?.error(new TypeError('terminated'));
  }

  private leave(): void {
    this.over = true;
    this.open();
    void this.reader.cancel().catch(() => {});
  }
}

type Handler = ((event: object) => void) | null;

/** A browser's WebSocket. */
class HubSocket {
  onopen: Handler = null;
  onmessage: Handler = null;
  onerror: Handler = null;
  onclose: Handler = null;
  protected readonly wire: SocketWire;

  constructor(url: URL, wires: Wires) {
    this.wire = wires.dial(this, url);
  }

  close(): void {
    this.wire.leave();
  }
}

/** That of ws. */
class RichHubSocket extends HubSocket {
  on(): void {}

  terminate(): void {
    this.wire.leave();
  }

  pause(): void {
    this.wire.paused = true;
  }

  resume(): void {
    this.wire.paused = false;
    this.wire.drain();
  }
}

class SocketWire implements Wire, Sink {
  readonly form = MESSAGE;
  over: boolean = false;
  paused: boolean = false;
  bufferedBytes: number = 0;
  private readonly socket: HubSocket;
  private readonly tamper: Tamper | undefined;
  private readonly inbox: Uint8Array[] = [];
  /** A client may leave before it is served. */
  readonly gone: AbortController = new AbortController();
  private session: Served | undefined = undefined;
  private stalled: boolean = false;
  private left: number = Number.POSITIVE_INFINITY;
  private how: Cut = 'break';
  private ending: readonly [number, string] | undefined = undefined;

  constructor(socket: HubSocket, tamper: Tamper | undefined) {
    this.socket = socket;
    this.tamper = tamper;
  }

  opened(session: Served): void {
    this.session = session;
    this.socket.onopen?.({});
  }

  write(bytes: Uint8Array): boolean {
    this.inbox.push(...payloadsOf(bytes));
    queueMicrotask(() => this.drain());
    return false;
  }

  end(how: Ending, retryMs: number | undefined): void {
    this.ending = [CLOSE_CODES[how], how === 'goingAway' ? toRetryReason(retryMs ?? 0) : CLOSE_REASONS[how]];
    queueMicrotask(() => this.drain());
  }

  destroy(): void {
    this.close(1006, '');
  }

  stall(): void {
    this.stalled = true;
  }

  resume(): void {
    this.stalled = false;
    this.drain();
  }

  cut(bytes: number, how: Cut): void {
    this.left = bytes;
    this.how = how;
    if (bytes === 0) this.finish();
  }

  drain(): void {
    while (!this.stalled && !this.paused && !this.over && this.inbox.length > 0) {
      const bytes = this.inbox.shift() as Uint8Array;
      this.left -= bytes.length;
      if (this.left < 0) this.finish();
      else this.deliver(decoder.decode(bytes));
    }
    if (this.over || this.inbox.length > 0) return;
    if (this.ending !== undefined) this.close(...this.ending);
    else this.session?.relieved();
  }

  refuse(text: string, ending: readonly [number, string]): void {
    this.socket.onopen?.({});
    this.deliver(text);
    this.close(...ending);
  }

  close(code: number, reason: string): void {
    if (this.over) return;
    this.leave();
    this.socket.onclose?.({ code, reason });
  }

  leave(): void {
    this.over = true;
    this.gone.abort();
    this.session?.gone();
  }

  private deliver(text: string): void {
    this.socket.onmessage?.({ data: this.tamper ? this.tamper(text) : text });
  }

  /** A proxy that gives up closes in good order. */
  private finish(): void {
    this.close(this.how === 'end' ? 1001 : 1006, '');
  }
}

/** The payloads of whole frames without a mask. */
function* payloadsOf(bytes: Uint8Array): Generator<Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const short = (bytes[at + 1] as number) & 127;
    const from = at + (short < 126 ? 2 : short === 126 ? 4 : 10);
    const length = short < 126 ? short : short === 126 ? view.getUint16(at + 2) : Number(view.getBigUint64(at + 2));
    yield bytes.subarray(from, from + length);
    at = from + length;
  }
}
