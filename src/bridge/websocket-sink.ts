import type { WebSocket } from 'ws';
import type { Form } from './forms.ts';
import type { ByteStream } from './http-sink.ts';
import type { Ending } from './protocol.ts';
import { CLOSE_CODES, CLOSE_REASONS, toRetryReason } from './protocol.ts';
import type { Pulse, Pulsed } from './pulse.ts';
import { BEATS } from './pulse.ts';
import type { Served, Sink } from './sink.ts';
import type { Outbound } from './stall.ts';
import { progressOf } from './stall.ts';

/** What a sink writes into. */
export interface WebSocketConnection {
  readonly client: WebSocket;
  /** The socket under it, or what stands for it. */
  readonly socket: Omit<ByteStream, 'destroyed'> & Outbound;
  readonly form: Form;
  readonly maxBufferedBytes: number;
}

const OPEN = 1;

/**
 * One WebSocket. Handshake, control frames and the closing are the package ws's; data frames are written to the socket under
 * it, a slice of them at a time. Both write whole frames in one synchronous step, so none stands inside of another.
 */
export class WebSocketSink implements Sink, Pulsed {
  readonly form: Form;
  private readonly client: WebSocket;
  private readonly socket: WebSocketConnection['socket'];
  private readonly maxBufferedBytes: number;
  private session: Served | undefined = undefined;
  private hearts: Pulse | undefined = undefined;
  /** Made when there is pressure for the first time. */
  private drained: (() => void) | undefined = undefined;
  private beats: number = 0;
  private pings: number = 0;
  private pongs: number = 0;
  /** As it was an interval ago. */
  private progress: string | undefined = undefined;

  constructor({ client, socket, form, maxBufferedBytes }: WebSocketConnection) {
    this.client = client;
    this.socket = socket;
    this.form = form;
    this.maxBufferedBytes = maxBufferedBytes;
  }

  get bufferedBytes(): number {
    return this.socket.writableLength;
  }

  opened(session: Served): void {
    this.session = session;
    (this.client as Known)[SINK] = this;
    this.client.on('close', onClose);
  }

  /** Pings from now on, until the client has gone. */
  beatWith(hearts: Pulse): void {
    this.hearts = hearts;
    this.client.on('pong', onPong);
    hearts.add(this);
    this.session?.whenOver(this);
  }

  leave(): void {
    this.hearts?.remove(this);
  }

  /** The connection is closed. */
  closed(): void {
    this.unpress();
    this.session?.gone();
  }

  write(bytes: Uint8Array): boolean {
    const { socket } = this;
    // The other side has said goodbye: nothing may follow, and `close` will.
    if (this.client.readyState !== OPEN) return false;
    // A socket tells of its drain only if it has said that it was full.
    if (socket.write(bytes) || socket.writableLength < this.maxBufferedBytes) return true;
    this.drained ??= () => {
      this.unpress();
      this.session?.relieved();
    };
    socket.on('drain', this.drained);
    return false;
  }

  end(how: Ending, retryMs: number | undefined): void {
    this.client.close(CLOSE_CODES[how], how === 'goingAway' ? toRetryReason(retryMs ?? 0) : CLOSE_REASONS[how]);
  }

  destroy(retryMs: number | undefined): void {
    if (retryMs !== undefined) this.client.close(CLOSE_CODES.goingAway, toRetryReason(retryMs));
    this.client.terminate();
  }

  /** Pings once per interval, and cuts the client if it has not answered the last. */
  beat(): void {
    if (++this.beats < BEATS) return;
    this.beats = 0;
    const { session, progress: before } = this;
    if (session === undefined) return;
    this.progress = progressOf(this.socket, session);
    if (this.pongs === this.pings) this.client.ping(String(++this.pings));
    // A ping stands behind what was written before it. As long as that goes out, however slowly, this is no silence; and once
    // it is out, there is an interval for the answer.
    else if (before === undefined || before === this.progress) session.cut('silent');
  }

  /** A pong that nobody asked for says nothing. */
  answered(data: Buffer): void {
    if (String(data) === String(this.pings)) this.pongs = this.pings;
  }

  private unpress(): void {
    if (this.drained !== undefined) this.socket.off('drain', this.drained);
  }
}

/** Listeners are the same for all clients, who know their sinks: a closure for each is most of what an idle client costs. */
const SINK: unique symbol = Symbol('sink');

type Known = WebSocket & { [SINK]?: WebSocketSink };

function onClose(this: WebSocket): void {
  (this as Known)[SINK]?.closed();
}

function onPong(this: WebSocket, data: Buffer): void {
  (this as Known)[SINK]?.answered(data);
}
