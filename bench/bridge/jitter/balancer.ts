// A balancer of TCP connections: each goes to one of the servers that it believes to be there. Connections break when it is told so.
import { once } from 'node:events';
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net';

export class Balancer {
  /** How many connections it has broken. */
  cuts: number = 0;
  private readonly ports: readonly number[];
  private readonly random: () => number;
  private readonly server: Server;
  private readonly pairs: Set<readonly [Socket, Socket]> = new Set();
  private readonly down: Set<number> = new Set();
  private frozen: boolean = false;

  constructor(ports: readonly number[], random: () => number) {
    this.ports = ports;
    this.random = random;
    this.server = createServer((socket) => this.handle(socket));
  }

  async listen(): Promise<number> {
    this.server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 });
    await once(this.server, 'listening');
    return (this.server.address() as AddressInfo).port;
  }

  /** Whether connections may go there: to one that is killed they fail by themselves, as with any balancer that is late to notice. */
  serve(port: number, isUp: boolean): void {
    if (isUp) this.down.delete(port);
    else this.down.add(port);
  }

  /** Breaks this share of the connections without a close. */
  cut(share: number): void {
    for (const [one, other] of this.pairs) {
      if (this.random() >= share) continue;
      this.cuts++;
      one.resetAndDestroy();
      other.resetAndDestroy();
    }
  }

  /** Breaks every connection, and every new one, until it is mended. */
  refuse(refuses: boolean): void {
    this.frozen = refuses;
    if (refuses) this.cut(1);
  }

  async close(): Promise<void> {
    this.cut(1);
    this.server.close();
    await once(this.server, 'close');
  }

  private handle(inner: Socket): void {
    inner.on('error', () => {});
    const ports = this.ports.filter((port) => !this.down.has(port));
    const port = ports[Math.floor(this.random() * ports.length)];
    if (port === undefined || this.frozen) {
      inner.destroy();
      return;
    }
    const outer = dial(port, '127.0.0.1');
    const pair = [inner, outer] as const;
    this.pairs.add(pair);
    outer.on('error', () => {});
    inner.pipe(outer);
    outer.pipe(inner);
    const gone = (): void => {
      this.pairs.delete(pair);
      inner.destroy();
      outer.destroy();
    };
    inner.on('close', gone);
    outer.on('close', gone);
  }
}
