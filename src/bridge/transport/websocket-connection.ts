import type { Clock } from '../../watch/clock.ts';
import type { Form } from '../events/forms.ts';
import type { Served, Sink } from '../hub/connection.ts';
import { CLOSE_CODES, CLOSE_REASONS, type Ending, toRetryReason } from '../protocol.ts';
import { Frames, type ServerWebSocket } from './frames.ts';
import type { ByteStream } from './http-sink.ts';
import { IN_BUN, type Outbound, progressOf, type SharedTimer, TICKS, type TimerMember } from './stall.ts';

/** What a sink writes to. */
export interface WebSocketConnection {
  readonly client: ServerWebSocket;
  /** The WebSocket's socket, or a substitute. */
  readonly socket: Omit<ByteStream, 'destroyed'> & Outbound;
  readonly form: Form;
  readonly maxBufferedBytes: number;
  readonly clock: Clock;
}

const OPEN = 1;
/** How long a client may take to answer a close, once nothing is on its way to it. */
const CLOSE_TIMEOUT_MS = 5_000;

/**
 * Writes to one WebSocket, which handles control frames and closing. Data frames are written directly to the socket, in slices.
 * Both write whole frames synchronously, so frames never interleave.
 */
export class WebSocketSink implements Sink, TimerMember {
  readonly form: Form;
  private readonly client: ServerWebSocket;
  private readonly socket: WebSocketConnection['socket'];
  private readonly maxBufferedBytes: number;
  private readonly clock: Clock;
  private session: Served | undefined = undefined;
  private timer: SharedTimer | undefined = undefined;
  /** Created at the first backpressure. */
  private drained: (() => void) | undefined = undefined;
  private ticks: number = 0;
  private pings: number = 0;
  private pongs: number = 0;
  /** The progress one interval ago. */
  private progress: string | undefined = undefined;

  constructor({ client, socket, form, maxBufferedBytes, clock }: WebSocketConnection) {
    this.client = client;
    this.socket = socket;
    this.form = form;
    this.maxBufferedBytes = maxBufferedBytes;
    this.clock = clock;
  }

  get served(): Served | undefined {
    return this.session;
  }

  get bufferedBytes(): number {
    return this.socket.writableLength;
  }

  opened(session: Served): void {
    this.session = session;
    (this.client as WithSink)[SINK] = this;
    this.client.on('close', onClose);
  }

  /** Pings regularly until the client has gone. */
  startHeartbeat(timer: SharedTimer): void {
    this.timer = timer;
    this.client.on('pong', onPong);
    timer.add(this);
    this.session?.whenOver(this);
  }

  leave(): void {
    this.timer?.remove(this);
  }

  closed(): void {
    this.stopDraining();
    this.session?.gone();
  }

  write(bytes: Uint8Array): boolean {
    const { socket } = this;
    // The other side has closed. Nothing may be sent, and `close` follows.
    if (this.client.readyState !== OPEN) return false;
    // A socket emits `drain` only after `write` has returned false.
    if (socket.write(bytes) || socket.writableLength < this.maxBufferedBytes) return true;
    this.drained ??= () => {
      this.stopDraining();
      this.session?.relieved();
    };
    socket.on('drain', this.drained);
    return false;
  }

  end(how: Ending, retryMs: number | undefined): void {
    this.client.close(CLOSE_CODES[how], how === 'goingAway' ? toRetryReason(retryMs ?? 0) : CLOSE_REASONS[how]);
    this.awaitClose();
  }

  destroy(retryMs: number | undefined): void {
    if (retryMs !== undefined) this.client.close(CLOSE_CODES.goingAway, toRetryReason(retryMs));
    this.client.terminate();
  }

  /** Pings once per interval, and cuts a client that has not answered the last ping. */
  tick(): void {
    if (++this.ticks < TICKS) return;
    this.ticks = 0;
    const { session, progress: before } = this;
    if (session === undefined) return;
    this.progress = progressOf(this.socket, session);
    if (this.pongs === this.pings) this.client.ping(String(++this.pings));
    // A ping waits behind earlier bytes. As long as those are sent, however slowly, the client is not silent. After that it has
    // one interval to answer.
    else if (before === undefined || before === this.progress) session.cut('silent');
  }

  /** Unsolicited pongs do not count. */
  answered(data: Buffer): void {
    if (String(data) === String(this.pings)) this.pongs = this.pings;
  }

  /**
   * A client that never answers would hold up everything that waits for its end, such as a shutdown. A client that still reads
   * gets more time.
   */
  private awaitClose(): void {
    const { session, socket } = this;
    if (session === undefined || session.over) return;
    const before = progressOf(socket, session);
    const cancel = this.clock.schedule(CLOSE_TIMEOUT_MS, () => {
      const now = progressOf(socket, session);
      if (now !== undefined && now !== before) this.awaitClose();
      else this.client.terminate();
    });
    session.whenOver(cancel);
  }

  private stopDraining(): void {
    if (this.drained !== undefined) this.socket.off('drain', this.drained);
  }
}

/**
 * All clients share the listeners, which find the sink here. A closure per client would be most of the cost of an idle client.
 */
const SINK: unique symbol = Symbol('sink');

type WithSink = ServerWebSocket & { [SINK]?: WebSocketSink };

/** The session of a client, once it has one. */
export function sessionOf(client: ServerWebSocket): Served | undefined {
  return (client as WithSink)[SINK]?.served;
}

function onClose(this: ServerWebSocket): void {
  (this as WithSink)[SINK]?.closed();
}

function onPong(this: ServerWebSocket, data: Buffer): void {
  (this as WithSink)[SINK]?.answered(data);
}

/** What a client may send within one second; 0: no limit. */
export interface InboundLimits {
  readonly maxInboundBytesPerSecond: number;
  readonly maxInboundMessagesPerSecond: number;
  readonly clock: Clock;
  /** Returns the session of a client, once it has one. */
  readonly sessionOf: (client: InboundClient) => { cut(reason: 'flooding'): void } | undefined;
}

/** The used part of a WebSocket and of its socket. */
export type InboundClient = Pick<WebSocketConnection['client'], 'on' | 'off' | 'close' | 'terminate'>;
export interface InboundSocket {
  prependListener(event: 'data', listener: (this: InboundSocket, chunk: Uint8Array) => void): unknown;
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
  off(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
}

const SECOND_MS = 1_000;

/** Where all clients' shared listeners find the guard. */
const GUARD: unique symbol = Symbol('inbound guard');
type WithGuard = { [GUARD]?: InboundGuard };

/** Messages, and the control frames that are answered by themselves. */
const FRAMES = ['message', 'ping', 'pong'] as const;

/**
 * Cuts a client that sends more than a watch needs. Nothing that it sends is used, but parsing it takes time from others:
 * megabytes of tiny messages are read in one turn of the event loop.
 *
 * Bytes are counted at the socket, where fragments and heads also count. Bun's own WebSocket hides its socket; there, those of
 * whole messages are counted.
 */
export class InboundGuard {
  private readonly client: InboundClient;
  private readonly socket: InboundSocket;
  private readonly limits: InboundLimits;
  private since: number = Number.NEGATIVE_INFINITY;
  private bytes: number = 0;
  private messages: number = 0;
  private isCut: boolean = false;

  constructor(client: InboundClient, socket: InboundSocket, limits: InboundLimits) {
    this.client = client;
    this.socket = socket;
    this.limits = limits;
    (client as WithGuard)[GUARD] = this;
    (socket as WithGuard)[GUARD] = this;
    const isHidden = hidesSocket(client);
    for (const frame of FRAMES) client.on(frame, isHidden ? onWholeFrame : onFrame);
    if (!isHidden) socket.on('data', onData);
  }

  count(bytes: number, messages: number): void {
    if (this.isCut) return; // another listener got the same bytes
    const { maxInboundBytesPerSecond, maxInboundMessagesPerSecond, clock } = this.limits;
    const now = clock.now();
    if (now - this.since >= SECOND_MS) {
      this.since = now;
      this.bytes = 0;
      this.messages = 0;
    }
    this.bytes += bytes;
    this.messages += messages;
    if (exceeds(this.bytes, maxInboundBytesPerSecond) || exceeds(this.messages, maxInboundMessagesPerSecond)) this.cut();
  }

  private cut(): void {
    const { client, socket } = this;
    this.isCut = true;
    for (const frame of FRAMES) client.off(frame, hidesSocket(client) ? onWholeFrame : onFrame);
    socket.off('data', onData);
    // Says why. A client that goes on sending may not get to read it.
    client.close(CLOSE_CODES.flooding, CLOSE_REASONS.flooding);
    this.limits.sessionOf(client)?.cut('flooding');
    client.terminate();
  }
}

/** Whether a WebSocket is Bun's own, whose socket shows nothing. */
const hidesSocket = (client: InboundClient): boolean => IN_BUN && !(client instanceof Frames);

/** A socket whose client has sent nothing yet. */
type Quiet = InboundSocket & { [CLIENT]?: InboundClient | undefined };
const CLIENT: unique symbol = Symbol('client');

/**
 * Returns a function that guards a client from its first bytes on. Most clients of a watch never send any: until then, a client
 * costs a listener that all clients of a server share, and no guard.
 */
export function guardInbound(limits: InboundLimits): (client: InboundClient, socket: InboundSocket) => void {
  // Called before the listener of the WebSocket, so that the messages of these bytes also count.
  function onFirst(this: Quiet, chunk: Uint8Array): void {
    this.off('data', onFirst);
    const client = this[CLIENT] as InboundClient;
    this[CLIENT] = undefined;
    new InboundGuard(client, this, limits).count(chunk.length, 0);
  }
  return (client, socket) => {
    if (hidesSocket(client)) {
      new InboundGuard(client, socket, limits);
      return;
    }
    (socket as Quiet)[CLIENT] = client;
    socket.prependListener('data', onFirst);
  };
}

function exceeds(count: number, limit: number): boolean {
  return limit > 0 && count > limit;
}

function onData(this: unknown, chunk: Uint8Array): void {
  (this as WithGuard)[GUARD]?.count(chunk.length, 0);
}

function onFrame(this: unknown): void {
  (this as WithGuard)[GUARD]?.count(0, 1);
}

function onWholeFrame(this: unknown, data: { readonly length?: number } | undefined): void {
  (this as WithGuard)[GUARD]?.count(data?.length ?? 0, 1);
}

const LF = 0x0a;

/** The part of a WebSocket that is used. */
export interface Sender {
  readonly bufferedAmount: number;
  send(bytes: Uint8Array, options: { binary: boolean; compress: boolean }, sent: () => void): void;
}

/**
 * Sends each line with the WebSocket's own `send`, for Bun, whose `ws` does not let frames be written to the socket. Bytes
 * written to the socket would get stuck when a client is slow, and `drain` would never be emitted.
 */
export class SentLines implements Omit<ByteStream, 'destroyed'> {
  private readonly client: Sender;
  private drained: (() => void) | undefined = undefined;
  private pending: number = 0;

  constructor(client: Sender) {
    this.client = client;
  }

  get writableLength(): number {
    return this.client.bufferedAmount;
  }

  write(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; ) {
      const end = bytes.indexOf(LF, at);
      this.pending++;
      this.client.send(bytes.subarray(at, end), { binary: false, compress: false }, this.sent);
      at = end + 1;
    }
    return this.pending === 0;
  }

  on(_event: 'drain', listener: () => void): void {
    this.drained = listener;
  }

  off(_event: 'drain', _listener: () => void): void {
    this.drained = undefined;
  }

  /** Also called if sending failed; `close` follows then. */
  private readonly sent = (): void => {
    if (--this.pending === 0) this.drained?.();
  };
}
