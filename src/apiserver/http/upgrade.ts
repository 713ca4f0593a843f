/**
 * Requests for an upgrade, which node:http passes on separately from all others. Those for a WebSocket become a watch over it;
 * others are answered as if they had not asked for an upgrade: HTTP lets a server ignore what it does not support.
 */
import { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { DEFAULTS } from '../../bridge/protocol.ts';
import type { ServerWebSocket } from '../../bridge/transport/frames.ts';
import { Handshakes, type Upgrade } from '../../bridge/transport/handshakes.ts';
import { takeToken } from '../../bridge/transport/http-head.ts';
import { type SharedTimer, toSharedTimer } from '../../bridge/transport/stall.ts';
import { afterAnswers, answerUpgrade, WaitingUpgrade } from '../../bridge/transport/upgrades.ts';
import { guardInbound, sessionOf, WebSocketSink } from '../../bridge/transport/websocket-connection.ts';
import { refused } from '../../storage/statuses.ts';
import { badRequest, statusOf } from '../api-status.ts';
import type { Settings } from '../options.ts';
import { abandon, type HostDeps, MAX_INBOUND_BYTES, NodeRequest, serveNode } from './node-host.ts';
import { isWebSocket, Presence, refusal, type StreamAnswer, type WholeAnswer } from './wire.ts';

/** Bytes that may arrive before the handshake has been answered. */
const MAX_EARLY_BYTES = MAX_INBOUND_BYTES + 14;

export class Upgrades {
  private readonly deps: HostDeps;
  private readonly settings: Settings;
  private readonly handshakes: Handshakes;
  private readonly heartbeats: SharedTimer | undefined;
  private readonly guard: ReturnType<typeof guardInbound>;

  constructor(deps: HostDeps, settings: Settings) {
    const { clock } = settings;
    this.deps = deps;
    this.settings = settings;
    this.handshakes = new Handshakes({ compression: false, maxInboundBytes: MAX_INBOUND_BYTES, clock });
    this.heartbeats = toSharedTimer(DEFAULTS.heartbeatMs, clock);
    const { maxInboundBytesPerSecond, maxInboundMessagesPerSecond } = DEFAULTS;
    this.guard = guardInbound({
      ...{ maxInboundBytesPerSecond, maxInboundMessagesPerSecond, clock },
      sessionOf: (client) => sessionOf(client as ServerWebSocket),
    });
  }

  serve(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { onError, clock } = this.settings;
    const next = (): void => void this.proceed(request, socket, head).catch(onError);
    afterAnswers(socket, next, { cut: this.deps.cutEarly, clock });
  }

  private async proceed(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const refuse = (answer: WholeAnswer): void => this.refuse(socket, answer);
    if (!isWebSocket(request.headers.upgrade, request.headers.connection)) {
      if (request.headers['transfer-encoding'] === undefined) return servePlainly(this.deps, request, { socket, head });
      refuse(refusal(statusOf(refused(411, 'LengthRequired', 'a body after an upgrade needs a Content-Length')).status));
      return;
    }
    const client = new Presence();
    const waiting = new WaitingUpgrade(socket, head, MAX_EARLY_BYTES);
    waiting.onGone(() => client.leave());
    try {
      checkHandshake(request);
      const answer = await this.deps.answer(new NodeRequest(request, client));
      if (answer.source === undefined || !answer.isWatch) {
        answer.source?.close();
        const said =
          answer.source === undefined ? answer : refusal(statusOf(badRequest('only a watch can be a WebSocket')).status);
        refuse({ ...said, slot: answer.slot });
        return;
      }
      if (client.gone) abandon(answer);
      else this.begin(answer, { request, socket, head: waiting.take() });
    } catch (error) {
      const { status, unexpected } = statusOf(error);
      if (unexpected) this.settings.onError(error);
      refuse(refusal(status));
    }
  }

  private refuse(socket: Duplex, { code, headers, body, slot }: WholeAnswer): void {
    const { 'content-type': type = 'application/json', ...more } = headers;
    const text = typeof body === 'string' ? body : new TextDecoder().decode(body ?? new Uint8Array());
    const lines = Object.entries(more).map(([name, value]) => `${name}: ${value}`);
    if (socket.destroyed) slot?.release();
    else socket.once('close', () => slot?.release());
    answerUpgrade(socket, { code, type, body: text, headers: lines }, this.settings.clock);
  }

  /** Answers the handshake, and sends the stream: one text message per event. */
  private begin(answer: StreamAnswer, upgrade: Upgrade): void {
    const { socket } = upgrade;
    const { maxBufferedBytes, sessions } = this.deps;
    const whole = this.handshakes.answer(upgrade, (client, form) => {
      this.guard(client, socket);
      const sink = new WebSocketSink({ client, socket, form, maxBufferedBytes, clock: this.settings.clock });
      sessions.begin(answer, sink, socket);
      if (this.heartbeats !== undefined) sink.startHeartbeat(this.heartbeats);
    });
    if (!whole) abandon(answer);
  }
}

/** Checks the handshake, and moves a token to where `authenticate` looks for it. */
function checkHandshake({ headers, method }: IncomingMessage): void {
  if (method !== 'GET') throw badRequest('a WebSocket begins with GET');
  if (headers['sec-websocket-version'] !== '13') throw badRequest('the version of WebSocket must be 13');
  if (!headers['sec-websocket-key']) throw badRequest('the header Sec-WebSocket-Key is missing');
  const fault = takeToken(headers);
  if (fault !== undefined) throw badRequest(fault);
  // Upstream: the handshake of a watch, which allows one subprotocol and echoes it.
  if (headers['sec-websocket-protocol']?.includes(',')) throw badRequest('a watch has at most one subprotocol');
}

/** What node has read after the head of a request, and where the rest comes from. */
interface Rest {
  readonly socket: Duplex;
  readonly head: Buffer;
}

function servePlainly(deps: HostDeps, request: IncomingMessage, { socket, head }: Rest): Promise<void> {
  const whole = withBody(request, { socket, head });
  const response = new ServerResponse(whole);
  response.shouldKeepAlive = false;
  // The response learns of it from the socket's `close`.
  socket.on('error', () => {});
  // As node does for its own connections: a response waits for room, and a client that ends its side counts as gone.
  socket.on('drain', () => response.emit('drain'));
  socket.once('end', () => socket.end());
  response.assignSocket(socket as Parameters<typeof response.assignSocket>[0]);
  // Does not wait for the client to close its side: node no longer manages this connection.
  socket.once('finish', () => socket.destroy());
  response.once('finish', () => socket.end());
  return serveNode(deps, whole, response);
}

/**
 * Up to version 24, Node ends a request for an upgrade after its head, as what follows is no longer HTTP. If there is no upgrade,
 * it is the body. Anything after the body is dropped, as the connection ends with the answer. Version 26 reads the body itself.
 */
function withBody(request: IncomingMessage, { socket, head }: Rest): IncomingMessage {
  let left = Number(request.headers['content-length'] ?? 0);
  if (!request.complete || request.readableLength > 0) {
    // If the socket were read earlier, it would yield parts of the body.
    request.once('end', () => socket.resume());
    return request;
  }
  if (left === 0) {
    socket.resume();
    return request;
  }
  const { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor } = request;
  const whole = new IncomingMessage(request.socket);
  Object.assign(whole, { method, url, headers, rawHeaders, httpVersion, httpVersionMajor, httpVersionMinor });
  const take = (chunk: Buffer): void => {
    if (left === 0) return;
    const part = chunk.subarray(0, left);
    left -= part.length;
    const full = !whole.push(part);
    if (left > 0) {
      if (full) socket.pause(); // reading the request resumes its socket
      return;
    }
    // Without this, the end of the request would destroy its connection.
    whole.complete = true;
    whole.push(null);
    socket.resume();
  };
  socket.on('data', take);
  take(head);
  return whole;
}
