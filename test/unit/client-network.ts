// A network under the control of a test: connections of every transport are accepted, fed, refused and cut by hand.
import type { ConnectOptions, WebSocketConstructor } from '../../src/bridge/client.ts';
import type { WireEvent } from '../../src/bridge/protocol.ts';

export type Kind = 'http' | 'sse' | 'browser' | 'ws';
export const KINDS: readonly Kind[] = ['http', 'sse', 'browser', 'ws'];

/** One connection, as the server sees it. */
export interface Link {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** The subprotocols that a WebSocket asks for. */
  readonly protocols: readonly string[];
  /** The client has closed it. */
  readonly closed: boolean;
  /** The client has paused it. Only a connection of ws tells. */
  readonly paused: boolean;
  accept(): void;
  send(...events: (WireEvent | string)[]): void;
  /** Breaks the connection. */
  cut(): void;
  /** Ends the connection regularly. `code` and `reason` are those of a WebSocket. */
  end(code?: number, reason?: string): void;
  /** Refuses. A body in chunks does not end. */
  refuse(code: number, body?: string | readonly (string | Uint8Array)[], headers?: Record<string, string>): void;
}

const encoder = new TextEncoder();
const toBytes = (chunk: string | Uint8Array): Uint8Array => (typeof chunk === 'string' ? encoder.encode(chunk) : chunk);

/** Runs everything that is due, including streams. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 4; i++) await new Promise((resolve) => setImmediate(resolve));
}

interface Settle {
  answer(response: Response): void;
  fail(reason: unknown): void;
}

class StreamLink implements Link {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly protocols = [];
  readonly paused = false;
  private readonly signal: AbortSignal;
  private readonly answer: (response: Response) => void;
  private readonly fail: (reason: unknown) => void;
  private controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor(url: URL, init: RequestInit, settle: Settle) {
    this.url = url;
    this.headers = init.headers as Record<string, string>;
    this.signal = init.signal as AbortSignal;
    this.answer = settle.answer;
    this.fail = settle.fail;
    this.signal.addEventListener('abort', () => {
      this.fail(this.signal.reason);
      attempt(() => this.controller?.error(this.signal.reason));
    });
  }

  get closed(): boolean {
    return this.signal.aborted;
  }

  private get sse(): boolean {
    return this.headers.accept === 'text/event-stream';
  }

  accept(): void {
    const body = new ReadableStream<Uint8Array>({ start: (own) => this.hold(own) });
    this.answer(new Response(body, { headers: { 'content-type': this.sse ? 'text/event-stream' : 'application/json' } }));
  }

  private hold(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.controller = controller;
  }

  send(...events: (WireEvent | string)[]): void {
    const text = events.map((event) => (typeof event === 'string' ? event : this.format(event))).join('');
    attempt(() => this.controller?.enqueue(encoder.encode(text)));
  }

  private format(event: WireEvent): string {
    if (!this.sse) return `${JSON.stringify(event)}\n`;
    const { resourceVersion: id } = event;
    return `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(event)}\n\n`;
  }

  cut(): void {
    this.fail(new TypeError('fetch failed', { cause: new Error('connection refused') }));
    attempt(() => this.controller?.error(new TypeError('terminated')));
  }

  end(): void {
    attempt(() => this.controller?.close());
  }

  refuse(status: number, body: string | readonly (string | Uint8Array)[] = '', headers: Record<string, string> = {}): void {
    const stream = typeof body === 'string' ? body : new ReadableStream<Uint8Array>({ start: (own) => this.hold(own) });
    this.answer(new Response(status === 204 ? null : stream, { status, headers }));
    if (typeof body !== 'string') for (const chunk of body) attempt(() => this.controller?.enqueue(toBytes(chunk)));
  }
}

/** A browser's WebSocket: it cannot be paused, and does not tell why it was refused. */
class SocketLink implements Link {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  protocols: readonly string[] = [];
  binaryType = 'blob';
  closed = false;
  paused = false;
  onopen: ((event: object) => void) | null = null;
  onmessage: ((event: object) => void) | null = null;
  onerror: ((event: object) => void) | null = null;
  onclose: ((event: object) => void) | null = null;

  constructor(network: FakeNetwork, url: string, options?: { headers: Record<string, string> }) {
    this.url = new URL(url);
    this.headers = options?.headers ?? {};
    network.links.push(this);
  }

  close(): void {
    this.closed = true;
  }

  accept(): void {
    this.onopen?.({});
  }

  send(...events: (WireEvent | string)[]): void {
    for (const event of events) this.onmessage?.({ data: typeof event === 'string' ? event : JSON.stringify(event) });
  }

  cut(): void {
    this.onerror?.({});
    this.onclose?.({ code: 1006, reason: '' });
  }

  end(code: number = 1000, reason: string = 'complete'): void {
    this.onclose?.({ code, reason });
  }

  /** Like Node 22, which reports a failed handshake only by `error`. */
  refuse(_code: number, _body?: string | readonly (string | Uint8Array)[], _headers?: Record<string, string>): void {
    this.onerror?.({ message: 'no handshake' });
  }
}

/** The WebSocket of ws: it can be paused, accepts headers, and tells why it was refused. */
class RichSocketLink extends SocketLink {
  private readonly listeners: Map<string, (...args: unknown[]) => void> = new Map();
  private waiting: (() => void)[] = [];

  on(event: string, listener: (...args: unknown[]) => void): void {
    this.listeners.set(event, listener);
  }

  terminate(): void {
    // Like ws: aborting a handshake is an error.
    this.closed = true;
    this.onerror?.({ message: 'WebSocket was closed before the connection was established' });
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    for (const send of this.waiting.splice(0)) send();
  }

  override send(...events: (WireEvent | string)[]): void {
    for (const event of events) {
      if (this.paused) this.waiting.push(() => this.send(event));
      else super.send(event);
    }
  }

  override cut(): void {
    if (this.paused) this.waiting.push(() => this.cut());
    else super.cut();
  }

  override refuse(
    statusCode: number,
    body: string | readonly (string | Uint8Array)[] = '',
    headers: Record<string, string> = {},
  ): void {
    const response = {
      statusCode,
      headers,
      on(event: string, listener: (chunk?: Uint8Array) => void) {
        if (event === 'data') for (const chunk of typeof body === 'string' ? [body] : body) listener(toBytes(chunk));
        if (event === 'close' && typeof body === 'string') listener();
        return response;
      },
    };
    this.listeners.get('unexpected-response')?.({}, response);
  }
}

function attempt(code: () => void): void {
  try {
    code();
  } catch {
    // The stream is already closed.
  }
}

/** All connections that the clients of a test have requested, in order. */
export class FakeNetwork {
  readonly links: Link[] = [];

  /** The last connection. */
  get link(): Link {
    const link = this.links.at(-1);
    if (link === undefined) throw new Error('nobody has connected');
    return link;
  }

  /** The options with which a client uses this network. */
  options(kind: Kind): Pick<ConnectOptions<never>, 'transport' | 'WebSocket' | 'fetch'> {
    const network = this;
    const fetch = (url: URL, init: object): Promise<Response> =>
      new Promise((answer, fail) => network.links.push(new StreamLink(url, init, { answer, fail })));
    if (kind === 'http' || kind === 'sse') return { transport: kind, fetch };
    class Browser extends SocketLink {
      constructor(url: string, protocols: string[] = []) {
        super(network, url);
        this.protocols = protocols;
      }
    }
    class Ws extends RichSocketLink {
      constructor(url: string, protocols: string[], options: { headers: Record<string, string> }) {
        super(network, url, options);
        this.protocols = protocols;
      }
    }
    const WebSocket = (kind === 'ws' ? Ws : Browser) as unknown as WebSocketConstructor;
    return { transport: 'websocket', WebSocket };
  }
}
