/** The server on node:http, and on hosts that are compatible with it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  alreadyBegun,
  claimConnection,
  countsOpen,
  type WholeHttpAnswer as Ended,
  guardEnded,
  isPipelined,
  mayRefuse,
  type Refusable,
  whenClaimEnds,
} from '../../bridge/transport/http-connection.ts';
import { toCaller } from '../../bridge/transport/http-head.ts';
import { type ByteStream, HttpSink, hasClosed, isPlain } from '../../bridge/transport/http-sink.ts';
import { IN_BUN, type Outbound } from '../../bridge/transport/stall.ts';
import { dropBody, endUnread } from '../../bridge/transport/unread-body.ts';
import { hold, joined } from '../../decode/framing.ts';
import { refused } from '../../storage/statuses.ts';
import type { Clock } from '../../watch/clock.ts';
import type { Session, Sessions } from './sessions.ts';
import { type Answer, isWebSocket, Presence, type StreamAnswer, type WholeAnswer, type WireRequest } from './wire.ts';

/** What a host needs from the server. */
export interface HostDeps {
  readonly answer: (request: WireRequest) => Promise<Answer>;
  readonly sessions: Pick<Sessions, 'begin' | 'stalls'>;
  /** {@link Sessions.cutEarly}. Not a closure of a request, which would keep alive everything that the request has made. */
  readonly cutEarly: () => void;
  readonly maxBufferedBytes: number;
  readonly clock: Clock;
}

/** Releases an answer that will not be sent. */
export function abandon(answer: Answer): void {
  answer.source?.close();
  answer.slot?.release();
}

/** 413 for a body. */
export function tooLarge(maxBytes: number): Error {
  return refused(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${maxBytes}`);
}

/** The longest message that a WebSocket client may send, in bytes. Clients' messages are ignored. */
export const MAX_INBOUND_BYTES = 1_024;

/** Requests of one connection that may wait for answers to earlier ones, as in `watchmux pipe`. Hardly any client pipelines. */
const MAX_PIPELINED = 8;

/** How long a connection is silent before the operating system probes the other end. */
const KEEP_ALIVE_MS = 60_000;
/** The part of a list that may be buffered, in bytes: a list is made while it is sent. */
const LIST_BUFFERED_BYTES = 262_144;

/** A request of node:http, and whether its body is being read. */
export class NodeRequest implements WireRequest {
  readonly request: IncomingMessage;
  readonly method: string;
  readonly target: string;
  readonly origin: string | undefined;
  readonly site: string | undefined;
  readonly host: string | undefined;
  readonly address: string;
  readonly client: Presence;
  readonly response: ServerResponse | undefined;
  hasReadBody: boolean = false;

  constructor(request: IncomingMessage, client: Presence, response?: ServerResponse) {
    const { origin, site, host, address } = toCaller(request, () => () => {});
    this.request = request;
    this.method = request.method ?? 'GET';
    this.target = request.url ?? '/';
    this.origin = origin;
    this.site = site;
    this.host = host;
    this.address = address;
    this.client = client;
    this.response = response;
  }

  get waits(): boolean {
    return this.response !== undefined && isPipelined(this.response);
  }

  get isUnheard(): boolean {
    // An upgrade has no response.
    const { upgrade, connection } = this.request.headers;
    return upgrade !== undefined && this.response !== undefined && isWebSocket(upgrade, connection);
  }

  get headerNames(): readonly string[] {
    return Object.keys(this.request.headers);
  }

  header(name: string): string | undefined {
    const value = this.request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  }

  values(name: string): readonly string[] {
    // Requests of HTTP/2 have none.
    const { headersDistinct } = this.request as Partial<IncomingMessage>;
    return (headersDistinct ? headersDistinct[name] : this.header(name)?.split(', ')) ?? [];
  }

  body(maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    const { request } = this;
    const length = Number(request.headers['content-length'] ?? 0);
    if (length > maxBytes) return Promise.reject(tooLarge(maxBytes));
    this.hasReadBody = true;
    if (request.readableEnded) return Promise.resolve(parsedBody(request));
    return Promise.resolve(arrived(request, length) ?? this.received(maxBytes, signal));
  }

  private received(maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    const { request } = this;
    return new Promise((resolve, reject) => {
      const chunks: Uint8Array[] = [];
      let bytes = 0;
      const leave = (): void => {
        request.off('data', onData).off('end', onEnd).off('error', onError).off('close', onError);
        signal.removeEventListener('abort', onAbort);
      };
      const fail = (error: unknown): void => {
        leave();
        this.hasReadBody = false;
        reject(error);
      };
      const onData = (chunk: Uint8Array): void => {
        bytes += chunk.length;
        if (bytes > maxBytes) fail(tooLarge(maxBytes));
        else hold(chunks, chunk);
      };
      const onEnd = (): void => {
        leave();
        resolve(joined(chunks));
      };
      const onError = (): void => fail(refused(400, 'BadRequest', 'the body of the request ended early'));
      const onAbort = (): void => fail(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      request.on('data', onData).on('end', onEnd).on('error', onError).on('close', onError);
    });
  }
}

/** A body that has come with its head, as most have: there is nothing to wait or listen for. */
function arrived(request: IncomingMessage, length: number): Uint8Array | undefined {
  if (length === 0 || request.readableLength !== length || request.readableEncoding !== null) return undefined;
  const whole = request.read() as Uint8Array | null;
  if (!request.complete) request.resume();
  return whole ?? undefined;
}

/** A body that middleware, such as that of Express, has already read and parsed. */
function parsedBody(request: IncomingMessage): Uint8Array {
  const { body } = request as { readonly body?: unknown };
  if (body === undefined) return new Uint8Array();
  return body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

/** Whether a URL may ask for a watch: its letters may be percent-encoded. */
export function mayWatch(url: string): boolean {
  return WATCH.test(
    url.includes('%') ? url.replace(HEXADECIMAL, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))) : url,
  );
}

const WATCH = /[?&/]watch\b/;
const HEXADECIMAL = /%([0-9a-f]{2})/gi;

/** Calls back when the client has left. A response that waits for earlier ones on its connection gets no event for that. */
function onGone({ socket }: IncomingMessage, response: ServerResponse, left: () => void): () => void {
  const waiting = isPipelined(response) ? waitingOn(socket) : undefined;
  response.on('close', left);
  waiting?.add(left);
  return () => {
    response.off('close', left);
    waiting?.delete(left);
  };
}

/**
 * Whether the client is gone. The response of a request that waits for earlier ones does not show that, but the connection does.
 */
function isOver({ socket }: IncomingMessage, response: ServerResponse): boolean {
  return hasClosed(response) || socket.destroyed;
}

/** The requests that wait on each connection: one listener for all of them, because node warns of many. */
const waitingOnes: WeakMap<IncomingMessage['socket'], Set<() => void>> = new WeakMap();

function waitingOn(socket: IncomingMessage['socket']): Set<() => void> {
  let waiting = waitingOnes.get(socket);
  if (waiting === undefined) {
    const all = new Set<() => void>();
    socket.once('close', () => {
      for (const left of [...all]) left();
    });
    waitingOnes.set(socket, all);
    waiting = all;
  }
  return waiting;
}

/** How many responses of each connection wait for earlier ones. */
const pipelined: WeakMap<IncomingMessage['socket'], number> = new WeakMap();

export async function serveNode(deps: HostDeps, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { socket } = request;
  // Node continues to parse what it has read, even if the connection is closed.
  if (socket.destroyed && isPipelined(response)) return;
  if (response.headersSent) throw alreadyBegun(response);
  const watches = mayWatch(request.url ?? '');
  // A request after a watch on the same connection would wait forever.
  if (isPipelined(response) && (watches || !countsOpen(pipelined, { of: socket, response, most: MAX_PIPELINED }))) {
    deps.cutEarly();
    socket.destroy();
    return;
  }
  if (watches) claimConnection(response, deps.cutEarly);
  const client = new Presence();
  const forget = onGone(request, response, () => client.leave());
  // Slow middleware may pass on a request that has closed, which is not signalled again: reading its body would never end.
  if (isOver(request, response)) client.leave();
  const asked = new NodeRequest(request, client, response);
  const answer = await deps.answer(asked);
  forget();
  if (client.gone || hasClosed(response) || response.headersSent) {
    if (!asked.hasReadBody) dropBody(request);
    abandon(answer);
    return;
  }
  try {
    if (answer.source === undefined) return sendWhole(deps, asked, { response, answer });
    if (!asked.hasReadBody) dropBody(request);
    sendStream(deps, asked, { response, answer });
  } catch (error) {
    // Without a head, the client would wait forever.
    if (!response.headersSent) {
      abandon(answer);
      response.destroy();
    }
    throw error;
  }
}

function sendWhole(
  { clock, sessions }: HostDeps,
  { method, request, hasReadBody }: NodeRequest,
  { response, answer }: { response: ServerResponse; answer: WholeAnswer },
): void {
  const { code, headers, slot } = answer;
  // Node would write the head in the encoding of a text, in which the bytes of a warning are characters.
  const body = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
  if (code >= 400 && !mayRefuse(response as Refusable)) return;
  // A closing server waits for its connections.
  if (code === 503) response.shouldKeepAlive = false;
  const length = body === null ? 0 : body.byteLength;
  const begin = (): void => {
    response.writeHead(code, code === 204 || code === 304 ? headers : { ...headers, 'content-length': length });
  };
  const sent = method === 'HEAD' ? null : body;
  if (hasReadBody) {
    begin();
    response.end(sent ?? undefined);
  } else endUnread(request, response, { begin, body: sent, clock });
  guardEnded(response as Ended, sessions.stalls, slot && (() => slot.release()));
}

function sendStream(
  { sessions, maxBufferedBytes }: HostDeps,
  { method, request }: NodeRequest,
  { response, answer }: { response: ServerResponse; answer: StreamAnswer },
): void {
  const { code, isWatch, sse, headers } = answer;
  response.writeHead(code, headers);
  if (method === 'HEAD') {
    response.end();
    abandon(answer);
    return;
  }
  if (isWatch) {
    // Alone, the head would be written in UTF-8, in which the bytes of a warning are characters.
    if (headers.warning === undefined) response.flushHeaders();
    else response.write('', 'latin1');
    // On a quiet stream, only this detects a peer that has vanished silently.
    request.socket.setKeepAlive?.(true, KEEP_ALIVE_MS);
  }
  const direct = isWatch && isPlain(response);
  const stream = (direct ? response.socket : response) as ByteStream;
  const sink = new HttpSink({
    ...{ sse, response, stream, direct },
    bookmarks: false,
    wrapped: Object.hasOwn(response, 'write'),
    maxBufferedBytes: isWatch ? maxBufferedBytes : Math.min(LIST_BUFFERED_BYTES, maxBufferedBytes),
  });
  const outbound = (direct && !IN_BUN ? request.socket : response) as Outbound;
  const session = sessions.begin(answer, sink, outbound);
  if (isPipelined(response)) session.whenOver(onGone(request, response, () => session.gone()));
  else follow(response, session);
  if (isOver(request, response)) session.gone();
}

/** Notifies a session of the end of its response. A watch has no separate listener for that: see {@link whenClaimEnds}. */
function follow(response: ServerResponse, session: Session): void {
  if (whenClaimEnds(response, session)) response.on('error', destroyed);
  else response.on('close', () => session.gone()).on('error', () => session.gone());
}

/** Closes a connection that has failed. */
function destroyed(this: ServerResponse): void {
  this.destroy();
}
