/**
 * gRPC's frames: a byte that says whether the message is compressed, four bytes of length, the message. Nothing is kept of a
 * message whose length exceeds the limit, and many small chunks are joined into few.
 */
import { hold, joined } from '../../../decode/framing.ts';
import { WatchError } from '../../../watch/errors.ts';

const HEAD_BYTES = 5;

/** A message with its head. */
export function toFrame(message: Uint8Array): Uint8Array {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, HEAD_BYTES);
  return frame;
}

/** Takes chunks, and gives messages. */
export class FrameReader {
  readonly #maxBytes: number;
  #chunks: Uint8Array[] = [];
  #bytes: number = 0;
  /** How many bytes the next frame has, once its head has come. */
  #wanted: number = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** How many bytes wait for the rest of their frame, or to be read. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  push(chunk: Uint8Array): void {
    hold(this.#chunks, chunk);
    this.#bytes += chunk.length;
  }

  /**
   * The next message, if all of it is there.
   *
   * @throws {WatchError} FRAME_TOO_LARGE if it is longer than allowed, INVALID_FRAME if it is compressed, which nobody asked for.
   */
  read(): Uint8Array | undefined {
    if (this.#wanted === 0 && !this.#readHead()) return undefined;
    if (this.#bytes < this.#wanted) return undefined;
    const whole = joined(this.#chunks);
    const frame = whole.subarray(0, this.#wanted);
    this.#chunks = whole.length > frame.length ? [whole.subarray(frame.length)] : [];
    this.#bytes = whole.length - frame.length;
    this.#wanted = 0;
    return frame.subarray(HEAD_BYTES);
  }

  #readHead(): boolean {
    if (this.#bytes < HEAD_BYTES) return false;
    if ((this.#chunks[0] as Uint8Array).length < HEAD_BYTES) this.#chunks = [joined(this.#chunks)];
    const head = this.#chunks[0] as Uint8Array;
    if (head[0] !== 0) throw new WatchError('INVALID_FRAME', "etcd's answer is compressed, or it is no gRPC");
    const length = new DataView(head.buffer, head.byteOffset, HEAD_BYTES).getUint32(1);
    if (length > this.#maxBytes) throw tooLong(this.#maxBytes);
    this.#wanted = HEAD_BYTES + length;
    return true;
  }
}

/** The error for an answer that is longer than allowed. */
export function tooLong(maxBytes: number): WatchError {
  return new WatchError('FRAME_TOO_LARGE', `etcd's answer is longer than maxResponseBytes (${maxBytes})`, { limit: maxBytes });
}
