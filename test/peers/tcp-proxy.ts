// A proxy of bytes between a client and a server, which breaks connections at any byte. It knows nothing of what passes.
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net';

export class TcpProxy {
  /** How many connections it has broken. */
  cuts: number = 0;
  readonly #port: number;
  readonly #server: Server;
  readonly #sockets: Set<Socket> = new Set();
  #limit: (() => number) | undefined;
  #refuses: boolean = false;

  /** To a port of 127.0.0.1. */
  constructor(port: number) {
    this.#port = port;
    this.#server = createServer((socket) => this.#handle(socket));
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get open(): number {
    return this.#sockets.size / 2;
  }

  /** From now on each new connection breaks after so many bytes from the server. Undefined: it does not. */
  cutAfter(limit: (() => number) | undefined): void {
    this.#limit = limit;
  }

  /** From now on, new connections break at once; or no longer do. */
  refuse(refuses: boolean): void {
    this.#refuses = refuses;
  }

  /** Passes nothing on any more, and does not say so. */
  freeze(): void {
    for (const socket of this.#sockets) socket.removeAllListeners('data').pause();
  }

  /** Breaks every connection now. */
  cutAll(): void {
    if (this.#sockets.size > 0) this.cuts++;
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.cutAll();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #handle(inner: Socket): void {
    if (this.#refuses) {
      inner.destroy();
      return;
    }
    const outer = dial(this.#port, '127.0.0.1');
    let left = this.#limit?.() ?? Number.POSITIVE_INFINITY;
    for (const [one, other] of [
      [inner, outer],
      [outer, inner],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
    inner.pipe(outer);
    outer.on('data', (chunk) => {
      const part = chunk.subarray(0, left);
      left -= part.length;
      if (part.length > 0) inner.write(part);
      if (left > 0) return;
      this.cuts++;
      inner.end(() => inner.destroy());
      outer.destroy();
    });
  }
}

/** Starts a proxy to a port of 127.0.0.1. */
export async function startTcpProxy(port: number): Promise<TcpProxy> {
  const proxy = new TcpProxy(port);
  await proxy.listen();
  return proxy;
}
