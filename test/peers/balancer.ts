// A balancer of TCP connections before several servers: each new one goes to the next server that takes it.
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net';

export class Balancer {
  connections: number = 0;
  readonly #ports: readonly number[];
  readonly #server: Server;
  readonly #open: Set<Socket> = new Set();
  #next: number = 0;

  /** To ports of 127.0.0.1. */
  constructor(ports: readonly number[]) {
    this.#ports = ports;
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
    return this.#open.size;
  }

  cutAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  async close(): Promise<void> {
    this.#server.close();
    this.cutAll();
    await once(this.#server, 'close');
  }

  #handle(inner: Socket): void {
    this.connections++;
    this.#open.add(inner);
    inner.pause();
    inner.on('error', () => {});
    inner.on('close', () => this.#open.delete(inner));
    this.#dial(inner, this.#ports.length);
  }

  #dial(inner: Socket, attempts: number): void {
    const port = this.#ports[this.#next++ % this.#ports.length] as number;
    const outer = dial(port, '127.0.0.1');
    let isOpen = false;
    outer.on('error', () => {});
    outer.on('connect', () => {
      isOpen = true;
      inner.pipe(outer);
      outer.pipe(inner);
    });
    inner.on('close', () => outer.destroy());
    outer.on('close', () => {
      if (isOpen || attempts <= 1 || inner.destroyed) inner.destroy();
      else this.#dial(inner, attempts - 1);
    });
  }
}

/** Starts a balancer to ports of 127.0.0.1. */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const balancer = new Balancer(ports);
  await balancer.listen();
  return balancer;
}
