/**
 * The way from the clients to their server: it can break all connections at once, and refuse new ones; and it counts what passes. It sees bytes only, so
 * it counts the same for every client, and goes on counting while a server is started anew.
 *
 *     clients ---> gate ---> server
 *                   | counts requests (LISTs, watches), and the 410s of answers
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * What was asked for: the state, by a list or by a watch that begins with it; what follows a version; or, by a list of one object,
 * whether the server has a version.
 */
export type Asked = 'list' | 'watch' | 'check';

export interface Request {
  readonly asked: Asked;
  /** By `Date.now`. */
  readonly atMs: number;
}

const HEAD = /^GET (\S+) HTTP\/1\.1\r\n/;
const GONE = Buffer.from('"code":410');

/** What a chunk from a client asks for; undefined if no request begins in it. */
export function askedIn(chunk: Buffer): Asked | undefined {
  const target = HEAD.exec(chunk.toString('latin1', 0, 2_000))?.[1];
  if (target === undefined) return undefined;
  const query = new URL(target, 'http://server').searchParams;
  const isWatch = query.get('watch') === 'true' || query.get('watch') === '1';
  const version = query.get('resourceVersion') ?? '';
  const fromState = query.get('sendInitialEvents') === 'true' || version === '' || version === '0';
  if (isWatch && !fromState) return 'watch';
  return query.get('limit') === '1' ? 'check' : 'list';
}

export class Gate {
  readonly #target: number;
  readonly #server: Server = createServer((socket) => this.#pass(socket));
  readonly #sockets: Set<Socket> = new Set();
  #refuses: boolean = false;
  #requests: Request[] = [];
  #gone: number = 0;

  /** To a port of 127.0.0.1. */
  constructor(target: number) {
    this.#target = target;
  }

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Breaks every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** From now on, new connections break at once; or no longer do. */
  refuse(refuses: boolean): void {
    this.#refuses = refuses;
  }

  /** What has passed since the last call. */
  take(): { readonly requests: readonly Request[]; readonly gone: number } {
    const taken = { requests: this.#requests, gone: this.#gone };
    this.#requests = [];
    this.#gone = 0;
    return taken;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }

  #pass(client: Socket): void {
    if (this.#refuses) {
      client.destroy();
      return;
    }
    const server = connect(this.#target, '127.0.0.1');
    client.on('data', (chunk: Buffer) => {
      const asked = askedIn(chunk);
      if (asked) this.#requests.push({ asked, atMs: Date.now() });
    });
    server.on('data', (chunk: Buffer) => {
      if (chunk.includes(GONE)) this.#gone++;
    });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(one);
      one.setNoDelay(true).on('error', () => {});
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  }
}
