/**
 * The server's end of a WebSocket (RFC 6455), for streams whose clients have nothing to say: what they send is checked, counted
 * and dropped, so a message is never kept, assembled or decompressed.
 *
 *     socket --data--> head | mask | payload --> text: valid UTF-8?   ping: pong   close: answer, end
 *            <--whole frames, written at once-- events (by the sink), ping, pong, close
 *
 * - A message that is longer than `maxInboundBytes`, in one frame or in many, closes the connection before it has been read.
 * - `close` is emitted once, when the socket has closed. Nothing is sent after a close frame.
 * - After a close frame, the connection is kept open for the client's, but only for a while.
 * - Clients share their listeners, which find the WebSocket through its socket: ten thousand idle ones need no closures.
 */
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { type Clock, systemClock, upkeepClock } from '../../watch/clock.ts';
import { frameSize, putFrame } from '../events/forms.ts';

/** What a server listens to. */
type SocketEvent = 'close' | 'error' | 'message' | 'ping' | 'pong';

/** What a server does with a WebSocket: ours, or one of the package ws. */
export interface ServerWebSocket {
  readonly readyState: number;
  on(event: SocketEvent, listener: (this: ServerWebSocket, data: Buffer) => void): unknown;
  once(event: SocketEvent, listener: () => void): unknown;
  off(event: SocketEvent, listener: (this: ServerWebSocket, data: Buffer) => void): unknown;
  send(text: string, options: { compress: false }): void;
  ping(data: string): void;
  /** Sends a close frame, and waits for the client's. */
  close(code: number, reason: string): void;
  /** Closes at once. */
  terminate(): void;
}

/** How a WebSocket was opened. */
interface FramesOptions {
  /** The longest message of a client, in bytes. */
  readonly maxInboundBytes: number;
  /** Whether its client may compress messages. */
  readonly compression: boolean;
  readonly clock?: Clock | undefined;
}

const [OPEN, CLOSING, CLOSED] = [1, 2, 3];
const [CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG] = [0x0, 0x1, 0x2, 0x8, 0x9, 0xa];
const FINAL = 0x80;
const MASKED = 0x80;
const COMPRESSED = 0x40;
const RESERVED = 0x70;
const MAX_CONTROL_BYTES = 125;
/** How long a client may take to close after a close frame. A sink that still sends does not wait as long. */
const CLOSE_TIMEOUT_MS = 30_000;
/** The head of a client's frame, with the longest length, and its mask. */
const MAX_HEAD_BYTES = 14;

const [PROTOCOL_ERROR, INVALID_TEXT, TOO_LONG] = [1002, 1007, 1009];
/** In an empty close frame. */
const NO_CODE = 1005;

/** Closes the connection with a code. */
class ProtocolViolation {
  readonly code: number;

  constructor(code: number) {
    this.code = code;
  }
}

/** Where the shared listeners find the WebSocket. */
const FRAMES: unique symbol = Symbol('frames');
type Socket = Duplex & { [FRAMES]?: Frames; setTimeout?(ms: number): unknown; setNoDelay?(): unknown };

export class Frames extends EventEmitter implements ServerWebSocket {
  readyState: number = OPEN;
  readonly #socket: Socket;
  readonly #options: FramesOptions;
  #reader: WebSocketReader | undefined = undefined;
  #cancel: (() => void) | undefined = undefined;

  /** The handshake has been answered. `head` is what the client has sent since. */
  constructor(socket: Duplex, head: Uint8Array, options: FramesOptions) {
    super();
    this.#socket = socket;
    this.#options = options;
    this.#socket[FRAMES] = this;
    this.#socket.setTimeout?.(0);
    this.#socket.setNoDelay?.();
    if (head.length > 0) socket.unshift(head);
    socket.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
  }

  send(text: string): void {
    this.#write(FINAL | TEXT, Buffer.from(text));
  }

  ping(data: string): void {
    this.#write(FINAL | PING, Buffer.from(data));
  }

  close(code: number, reason: string = ''): void {
    if (this.readyState !== OPEN) return;
    const payload = code === NO_CODE ? Buffer.alloc(0) : Buffer.concat([Buffer.of(code >> 8, code & 0xff), Buffer.from(reason)]);
    this.#write(FINAL | CLOSE, payload.subarray(0, MAX_CONTROL_BYTES));
    this.#closing();
  }

  terminate(): void {
    this.#socket.destroy();
  }

  received(chunk: Uint8Array): void {
    this.#reader ??= new WebSocketReader(this.#options);
    try {
      for (const frame of this.#reader.frames(chunk)) {
        this.#take(frame);
        if (this.#socket.destroyed || frame.kind === CLOSE) return;
      }
    } catch (error) {
      if (!(error instanceof ProtocolViolation)) throw error;
      this.close(error.code);
      this.#end();
    }
  }

  /** The client sends nothing more. */
  ended(): void {
    this.#end();
  }

  closed(): void {
    this.readyState = CLOSED;
    this.#cancel?.();
    this.emit('close');
  }

  #take({ kind, payload }: Frame): void {
    if (kind === PING) {
      this.#write(FINAL | PONG, payload);
      this.emit('ping', payload);
    } else if (kind === PONG) this.emit('pong', payload);
    else if (kind === CLOSE) {
      this.close(payload.length === 0 ? NO_CODE : (payload[0] as number) * 256 + (payload[1] as number));
      this.#end();
    } else this.emit('message');
  }

  /** Both sides are done: anything that still arrives is dropped. */
  #end(): void {
    const socket = this.#socket;
    socket.off('data', onData);
    socket.resume();
    if (this.readyState === OPEN) this.#closing();
    socket.end();
  }

  #closing(): void {
    this.readyState = CLOSING;
    const { clock = systemClock } = this.#options;
    this.#cancel = upkeepClock(clock).schedule(CLOSE_TIMEOUT_MS, () => this.terminate());
  }

  #write(first: number, payload: Uint8Array): void {
    if (this.readyState !== OPEN) return;
    const bytes = Buffer.allocUnsafe(frameSize(payload));
    putFrame(payload, bytes, { at: 0, first });
    this.#socket.write(bytes);
  }
}

function onData(this: Socket, chunk: Uint8Array): void {
  this[FRAMES]?.received(chunk);
}

function onEnd(this: Socket): void {
  this[FRAMES]?.ended();
}

/** `close` follows. */
function onError(): void {}

function onClose(this: Socket): void {
  this[FRAMES]?.closed();
}

/** A control frame with its payload, or the end of a message. */
interface Frame {
  readonly kind: number;
  readonly payload: Buffer;
}

const NOTHING: Buffer = Buffer.alloc(0);

/** Parses frames as they arrive, in any pieces. Exported for tests. Throws a {@link ProtocolViolation}. */
export class WebSocketReader {
  readonly #maxBytes: number;
  readonly #compression: boolean;
  readonly #head: Uint8Array = new Uint8Array(MAX_HEAD_BYTES);
  #headBytes: number = 0;
  /** The kind of the frame whose payload comes next, and how much of the payload is left. */
  #kind: number = -1;
  #isFinal: boolean = false;
  #left: number = 0;
  #maskAt: number = 0;
  /** The payload of a control frame. */
  #control: Buffer = NOTHING;
  /** The kind of a message that has more frames to come, and its bytes so far. */
  #message: number = -1;
  #messageBytes: number = 0;
  #text: TextDecoder | undefined = undefined;

  constructor({ maxInboundBytes, compression }: FramesOptions) {
    this.#maxBytes = maxInboundBytes;
    this.#compression = compression;
  }

  *frames(chunk: Uint8Array): Generator<Frame> {
    for (let at = 0; at < chunk.length || (this.#kind >= 0 && this.#left === 0); ) {
      if (this.#kind < 0) {
        this.#head[this.#headBytes++] = chunk[at++] as number;
        if (this.#headBytes >= 2 && this.#headBytes === this.#size()) this.#begin();
        continue;
      }
      const part = chunk.subarray(at, at + this.#left);
      at += part.length;
      this.#add(part);
      if (this.#left > 0) continue;
      const frame = this.#finish();
      if (frame) yield frame;
    }
  }

  /** The size of the head, as far as it is known. Checks its first two bytes as soon as they arrive. */
  #size(): number {
    const [first, second] = this.#head as unknown as [number, number];
    if (this.#headBytes === 2) this.#check(first, second);
    const length = second & 0x7f;
    return 2 + (length === 126 ? 2 : length === 127 ? 8 : 0) + 4;
  }

  #check(first: number, second: number): void {
    const kind = first & 0x0f;
    const isControl = kind >= CLOSE;
    // Only the first frame of a message says that it is compressed.
    const allowed = this.#compression && (kind === TEXT || kind === BINARY) ? COMPRESSED : 0;
    if ((first & RESERVED & ~allowed) !== 0 || (second & MASKED) === 0) throw new ProtocolViolation(PROTOCOL_ERROR);
    if (isControl) {
      if (kind > PONG || (first & FINAL) === 0 || (second & 0x7f) > MAX_CONTROL_BYTES)
        throw new ProtocolViolation(PROTOCOL_ERROR);
    } else if (kind > BINARY || (kind === CONTINUATION) !== this.#message >= 0) throw new ProtocolViolation(PROTOCOL_ERROR);
  }

  /** The head is complete. */
  #begin(): void {
    const [first, second] = this.#head as unknown as [number, number];
    const short = second & 0x7f;
    let length = short;
    if (short >= 126) {
      length = 0;
      for (let at = 2; at < this.#headBytes - 4; at++) length = length * 256 + (this.#head[at] as number);
    }
    const kind = first & 0x0f;
    if (kind < CLOSE && this.#messageBytes + length > this.#maxBytes) throw new ProtocolViolation(TOO_LONG);
    this.#isFinal = (first & FINAL) !== 0;
    this.#left = length;
    this.#maskAt = 0;
    this.#kind = kind;
    if (kind >= CLOSE) this.#control = Buffer.alloc(length);
    else {
      this.#messageBytes += length;
      if (kind !== CONTINUATION) this.#message = kind;
      // Compressed text is not checked.
      if (kind === TEXT && (first & COMPRESSED) === 0) this.#text = new TextDecoder('utf-8', { fatal: true });
    }
  }

  #add(part: Uint8Array): void {
    const isControl = this.#kind >= CLOSE;
    if (isControl || this.#text) {
      const plain = isControl ? this.#control.subarray(this.#control.length - this.#left) : new Uint8Array(part.length);
      const mask = this.#headBytes - 4;
      for (let at = 0; at < part.length; at++) {
        plain[at] = (part[at] as number) ^ (this.#head[mask + (this.#maskAt++ & 3)] as number);
      }
      if (!isControl) this.#decode(plain, true);
    }
    this.#left -= part.length;
  }

  #decode(bytes: Uint8Array, stream: boolean): void {
    try {
      this.#text?.decode(bytes, { stream });
    } catch {
      throw new ProtocolViolation(INVALID_TEXT);
    }
  }

  /** The frame is complete. */
  #finish(): Frame | undefined {
    const [kind, payload] = [this.#kind, this.#control];
    this.#kind = -1;
    this.#headBytes = 0;
    if (kind >= CLOSE) {
      this.#control = NOTHING;
      if (kind === CLOSE) checkClose(payload);
      return { kind, payload };
    }
    if (!this.#isFinal) return undefined;
    this.#decode(NOTHING, false);
    this.#text = undefined;
    const message = this.#message;
    this.#message = -1;
    this.#messageBytes = 0;
    return { kind: message, payload: NOTHING };
  }
}

function checkClose(payload: Uint8Array): void {
  if (payload.length === 0) return;
  const code = (payload[0] as number) * 256 + (payload[1] ?? 0);
  const isKnown = (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999);
  if (payload.length === 1 || !isKnown) throw new ProtocolViolation(PROTOCOL_ERROR);
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(payload.subarray(2));
  } catch {
    throw new ProtocolViolation(INVALID_TEXT);
  }
}
