import type { Clock } from '../../watch/clock.ts';
import { CLOSE_CODES, CLOSE_REASONS } from '../protocol.ts';
import { IN_BUN } from './bun.ts';
import type { WebSocketConnection } from './websocket-sink.ts';

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
type Guarded = { [GUARD]?: InboundGuard };

/** Messages, and the control frames that the package ws answers by itself. */
const FRAMES = ['message', 'ping', 'pong'] as const;

/**
 * Cuts a client that sends more than a watch needs. Nothing that it sends is used, but parsing it takes time from others:
 * megabytes of tiny messages are read in one turn of the event loop.
 *
 * Bytes are counted at the socket, where fragments and heads also count. Bun does not show its socket; there, those of whole
 * messages are counted.
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
    (client as Guarded)[GUARD] = this;
    (socket as Guarded)[GUARD] = this;
    for (const frame of FRAMES) client.on(frame, IN_BUN ? onWholeFrame : onFrame);
    if (!IN_BUN) socket.on('data', onData);
  }

  /** Counts what has arrived. */
  count(bytes: number, messages: number): void {
    if (this.isCut) return; // a listener of the same bytes
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
    for (const frame of FRAMES) client.off(frame, IN_BUN ? onWholeFrame : onFrame);
    socket.off('data', onData);
    // Says why. A client that goes on sending may not get to read it.
    client.close(CLOSE_CODES.flooding, CLOSE_REASONS.flooding);
    this.limits.sessionOf(client)?.cut('flooding');
    client.terminate();
  }
}

/** A socket whose client has sent nothing yet. */
type Quiet = InboundSocket & { [CLIENT]?: InboundClient | undefined };
const CLIENT: unique symbol = Symbol('client');

/**
 * Returns a function that guards a client from its first bytes on. Most clients of a watch never send any: until then, a client
 * costs a listener that all clients of a server share, and no guard.
 */
export function guardInbound(limits: InboundLimits): (client: InboundClient, socket: InboundSocket) => void {
  // Called before the listener of ws, so that the messages of these bytes also count.
  function onFirst(this: Quiet, chunk: Uint8Array): void {
    this.off('data', onFirst);
    const client = this[CLIENT] as InboundClient;
    this[CLIENT] = undefined;
    new InboundGuard(client, this, limits).count(chunk.length, 0);
  }
  return (client, socket) => {
    if (IN_BUN) {
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
  (this as Guarded)[GUARD]?.count(chunk.length, 0);
}

function onFrame(this: unknown): void {
  (this as Guarded)[GUARD]?.count(0, 1);
}

function onWholeFrame(this: unknown, data: { readonly length?: number } | undefined): void {
  (this as Guarded)[GUARD]?.count(data?.length ?? 0, 1);
}
