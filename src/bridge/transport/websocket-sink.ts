import type { WebSocket } from 'ws';
import type { Clock } from '../../watch/clock.ts';
import type { Form } from '../events/forms.ts';
import type { Served, Sink } from '../hub/sink.ts';
import type { Ending } from '../protocol.ts';
import { CLOSE_CODES, CLOSE_REASONS, toRetryReason } from '../protocol.ts';
import type { ByteStream } from './http-sink.ts';
import type { SharedTimer, TimerMember } from './shared-timer.ts';
import { TICKS } from './shared-timer.ts';
import type { Outbound } from './stall.ts';
import { progressOf } from './stall.ts';

/** What a sink writes to. */
export interface WebSocketConnection {
  readonly client: WebSocket;
  /** The WebSocket's socket, or a substitute. */
  readonly socket: Omit<ByteStream, 'destroyed'> & Outbound;
  readonly form: Form;
  readonly maxBufferedBytes: number;
  readonly clock: Clock;
}

const OPEN = 1;
/** How long a client may take to answer a close, once nothing is on the way to it any more. */
const CLOSE_TIMEOUT_MS = 5_000;

/**
 * Writes to one WebSocket. The package ws does handshakes, control frames and closing. Data frames are written directly to the
 * socket, in slices. Both write whole frames synchronously, so frames never interleave.
 */
export class WebSocketSink implements Sink, TimerMember {
  readonly form: Form;
  private readonly client: WebSocket;
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
    (this.client as Known)[SINK] = this;
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
   * A client that never answers would hold up everything that waits for its end, such as a shutdown. One that still reads is
   * waited for.
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

type Known = WebSocket & { [SINK]?: WebSocketSink };

/** The session of a client, once it has one. */
export function sessionOf(client: WebSocket): Served | undefined {
  return (client as Known)[SINK]?.served;
}

function onClose(this: WebSocket): void {
  (this as Known)[SINK]?.closed();
}

function onPong(this: WebSocket, data: Buffer): void {
  (this as Known)[SINK]?.answered(data);
}
