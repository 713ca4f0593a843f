/**
 * The door `watchmux/http`: a hub over plain HTTP, as a stream of JSON lines or as Server-Sent Events.
 *
 *     const hub = new Hub({ replay: 10 });
 *     createServer(createHttpHandler(hub)).listen(8080);
 *     await hub.publish({ type: 'ADDED', object: { hello: 'world' } });
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Status, WatchEvent } from '../watch/event.ts';
import { toStatus } from '../watch/event.ts';
import { frameOf } from './envelope.ts';
import type { Hub } from './hub.ts';
import type { ConnectionOptions } from './limits.ts';
import { toLimits } from './limits.ts';
import { EVENT_STREAM, JSON_LINES } from './protocol.ts';
import type { Session, Sink } from './session.ts';
import { cutWhenStalled } from './stall.ts';

export type { HubOptions, HubStats } from './hub.ts';
export { Hub } from './hub.ts';
export type { ConnectionOptions } from './limits.ts';
export * from './protocol.ts';
export type { ClientInfo, ClientStats, Session, Sink } from './session.ts';

/** What {@link createHttpHandler} takes. */
export interface HttpOptions extends ConnectionOptions {
  /** Headers to add to every stream, such as `access-control-allow-origin`. */
  headers?: Readonly<Record<string, string>>;
}

/**
 * A `(request, response)` handler for node:http and what builds on it. It answers every request that it is given with the hub's
 * events, so routing is the caller's. A client that accepts `text/event-stream` gets SSE, any other a line per event.
 * 405 for anything but GET and HEAD; 503 with a Status when the hub is full or shut down, or when the connection has not yet
 * answered what it was asked before.
 */
export function createHttpHandler(
  hub: Hub,
  options: HttpOptions = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const limits = toLimits(options);
  return (request, response) => {
    // Nothing is expected; what comes is read and dropped, so that the connection can end.
    request.resume();
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      refuse(response, toStatus({ code: 405, reason: 'MethodNotAllowed', message: 'a watch is read with GET' }), {
        allow: 'GET, HEAD',
      });
      return;
    }
    const refusal = response.socket === null ? PIPELINED : hub.refusal();
    if (refusal !== undefined) {
      refuse(response, refusal, { 'retry-after': '5' });
      return;
    }
    const sse = accepts(request.headers.accept, EVENT_STREAM);
    response.writeHead(200, {
      'content-type': sse ? EVENT_STREAM : JSON_LINES,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      // Proxies that gather output would hold events back.
      'x-accel-buffering': 'no',
      ...options.headers,
    });
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    response.flushHeaders();
    serve(hub, response, { ...limits, sse, address: request.socket.remoteAddress ?? '' });
  };
}

/**
 * A response gets the socket when those before it are through. One that waits is told nothing of the connection's end, and
 * waits for ever behind a watch: it must not hold a session.
 */
const PIPELINED: Status = toStatus({
  code: 503,
  reason: 'ServiceUnavailable',
  message: 'a connection carries one watch, and this one still had an earlier request to answer',
  details: { retryAfterSeconds: 5 },
});

interface Serving extends Required<ConnectionOptions> {
  readonly sse: boolean;
  readonly address: string;
}

function serve(hub: Hub, response: ServerResponse, serving: Serving): void {
  const { sse, address } = serving;
  const session: Session = hub.open(new HttpSink(response, serving), { transport: sse ? 'sse' : 'http', address });
  // The one event that comes whatever happens: after `end`, after a reset, after `destroy`.
  response.on('close', () => session.gone());
  response.on('error', () => session.gone());
  cutWhenStalled(session, response.req.socket, serving);
  if (response.destroyed) session.gone();
}

class HttpSink implements Sink {
  private readonly response: ServerResponse;
  private readonly part: 'record' | 'line';
  private readonly maxBufferedBytes: number;

  constructor(response: ServerResponse, serving: Serving) {
    this.response = response;
    this.part = serving.sse ? 'record' : 'line';
    this.maxBufferedBytes = serving.maxBufferedBytes;
  }

  get bufferedBytes(): number {
    return this.response.writableLength;
  }

  write(events: readonly WatchEvent[]): Promise<void> | undefined {
    const { response } = this;
    const room = response.write(events.length === 1 ? this.bytes(events[0] as WatchEvent) : this.join(events));
    if (room || response.writableLength < this.maxBufferedBytes) return undefined;
    return new Promise((resolve) => response.once('drain', resolve));
  }

  end(): void {
    this.response.end();
  }

  destroy(): void {
    this.response.destroy();
  }

  private bytes(event: WatchEvent): Uint8Array {
    return frameOf(event)[this.part];
  }

  private join(events: readonly WatchEvent[]): Uint8Array {
    return Buffer.concat(events.map((event) => this.bytes(event)));
  }
}

/** Answers with a Status instead of a stream. */
function refuse(response: ServerResponse, status: Status, headers: Readonly<Record<string, string>>): void {
  response.writeHead(status.code, { 'content-type': JSON_LINES, ...headers });
  response.end(`${JSON.stringify(status)}\n`);
}

/** Whether an Accept header names a media type; one with `q=0` is not accepted. */
function accepts(header: string | undefined, type: string): boolean {
  return (header ?? '').split(',').some((entry) => {
    const [name, ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    return name === type && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}
