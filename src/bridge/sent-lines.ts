import type { ByteStream } from './http-sink.ts';

const LF = 0x0a;

/** What is used of a WebSocket. */
export interface Sender {
  readonly bufferedAmount: number;
  send(bytes: Uint8Array, options: { binary: boolean; compress: boolean }, sent: () => void): void;
}

/**
 * Lines that go out through the WebSocket, a `send` for each, where frames cannot be written to the socket under it: in Bun, which
 * has a `ws` of its own. What is written beside that stays in the socket once a client is slow, and no drain is ever told.
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

  /** Or not: then `close` follows. */
  private readonly sent = (): void => {
    if (--this.pending === 0) this.drained?.();
  };
}
