import type { ByteStream } from './http-sink.ts';

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
