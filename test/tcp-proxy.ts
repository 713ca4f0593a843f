// A proxy of bytes between clients and servers, which breaks connections at any byte, or goes silent. It knows nothing of what passes.
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net';

/** What a connection's first bytes say of whoever has made it. */
export type NameOf = (head: string) => string;

export class TcpProxy {
  /** How many connections it has taken. */
  connections: number = 0;
  /** How often it has broken some. */
  cuts: number = 0;
  readonly #ports: readonly number[];
  readonly #nameOf: NameOf | undefined;
  readonly #server: Server;
  /** The clients' ends, and who they are; and the servers' ends. */
  readonly #near: Map<Socket, string> = new Map();
  readonly #far: Set<Socket> = new Set();
  /** Ends of which the other one hears nothing any more. */
  readonly #lost: WeakSet<Socket> = new WeakSet();
  #next: number = 0;
  #limit: (() => number) | undefined;
  #refuses: (name: string) => boolean = () => false;
  #swallows: boolean = false;

  /** To ports of 127.0.0.1: each connection goes to the next of them that takes it. */
  constructor(ports: readonly number[], nameOf?: NameOf) {
    this.#ports = ports;
    this.#nameOf = nameOf;
    this.#server = createServer((socket) => this.#take(socket));
  }

  async listen(port: number = 0): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get open(): number {
    return this.#near.size;
  }

  /** From now on each new connection breaks after so many bytes from the server. Undefined: it does not. */
  cutAfter(limit: (() => number) | undefined): void {
    this.#limit = limit;
  }

  /** From now on, new connections (of these clients) break at once; or no longer do. */
  refuse(refuses: boolean | ((name: string) => boolean)): void {
    this.#refuses = typeof refuses === 'boolean' ? () => refuses : refuses;
  }

  /** Passes no more bytes of open connections, and does not say so. */
  freeze(): void {
    for (const socket of this.#sockets()) socket.removeAllListeners('data').pause();
  }

  /** The same, but not even an end passes, and new connections get no further, until it is healed: those that it lost remain so. */
  swallow(swallows: boolean): void {
    this.#swallows = swallows;
    if (!swallows) return;
    this.freeze();
    for (const socket of this.#sockets()) this.#lost.add(socket);
  }

  /** Breaks all connections (of these clients) now. */
  cutAll(which: (name: string) => boolean = () => true): void {
    const cut = [...this.#near].filter(([, name]) => which(name));
    if (cut.length > 0) this.cuts++;
    for (const [socket] of cut) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets()) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #sockets(): Socket[] {
    return [...this.#near.keys(), ...this.#far];
  }

  #take(near: Socket): void {
    this.connections++;
    this.#near.set(near, '');
    near.on('error', () => {}).on('close', () => this.#near.delete(near));
    if (this.#nameOf === undefined) this.#admit(near);
    else near.once('data', (head: Buffer) => this.#admit(near.pause(), head));
  }

  #admit(near: Socket, head?: Buffer): void {
    const name = (head && this.#nameOf?.(head.toString('latin1'))) ?? '';
    if (this.#near.has(near)) this.#near.set(near, name);
    if (this.#refuses(name)) near.destroy();
    else if (this.#swallows) this.#lost.add(near);
    else this.#dial(near, head, this.#ports.length);
  }

  #dial(near: Socket, head: Buffer | undefined, attempts: number): void {
    const far = dial(this.#ports[this.#next++ % this.#ports.length] as number, '127.0.0.1');
    let isOpen = false;
    this.#far.add(far);
    near.on('close', () => this.#lost.has(near) || far.destroy());
    far.on('error', () => {});
    far.on('connect', () => {
      isOpen = true;
      if (head) far.write(head);
      near.pipe(far);
      this.#pass(far, near);
    });
    far.on('close', () => {
      this.#far.delete(far);
      if (this.#lost.has(far)) return;
      if (isOpen || attempts <= 1 || near.destroyed) near.destroy();
      else this.#dial(near, head, attempts - 1);
    });
  }

  /** Passes on what the server sends, or as much of it as is allowed. */
  #pass(far: Socket, near: Socket): void {
    let left = this.#limit?.();
    if (left === undefined) {
      far.pipe(near);
      return;
    }
    far.on('data', (chunk) => {
      const part = chunk.subarray(0, left);
      left = (left as number) - part.length;
      if (part.length > 0) near.write(part);
      if (left > 0) return;
      this.cuts++;
      near.end(() => near.destroy());
      far.destroy();
    });
  }
}

/** Starts a proxy to ports of 127.0.0.1. */
export async function startTcpProxy(...ports: readonly number[]): Promise<TcpProxy> {
  const proxy = new TcpProxy(ports);
  await proxy.listen();
  return proxy;
}
