import { get } from 'node:http';
import type { NetConnectOpts } from 'node:net';
import { connect, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { WebSocket } from 'ws';
import type { FetchLike, WebSocketConstructor } from '../../../src/bridge/client.ts';

/**
 * A client's network path, which can be cut: connections break without a close, and new ones are refused until it is repaired.
 * The client is the usual one, and knows nothing about this.
 */
export class Line {
  /** Number of broken connections. */
  cuts: number = 0;
  private readonly sockets: Set<Socket> = new Set();
  private down: boolean = false;

  /** Breaks open and pending connections. */
  cut(): void {
    this.down = true;
    this.cuts += this.sockets.size;
    for (const socket of this.sockets) socket.destroy();
  }

  mend(): void {
    this.down = false;
  }

  readonly fetch: FetchLike = (url, { headers, signal }) =>
    new Promise((resolve, reject) => {
      const request = get(url, { headers, signal, createConnection: this.connect }, (response) => {
        const { statusCode: status = 0, headers } = response;
        const told = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
        resolve(new Response(Readable.toWeb(response) as ReadableStream<Uint8Array>, { status, headers: told }));
      });
      request.on('error', reject);
    });

  get WebSocket(): WebSocketConstructor {
    const createConnection = this.connect;
    return class extends WebSocket {
      constructor(url: string, protocols: string[] = [], options: object = {}) {
        super(url, protocols, { ...options, createConnection } as object);
      }
    } as unknown as WebSocketConstructor;
  }

  private readonly connect = (options: object): Socket => {
    if (this.down) return refused();
    const socket = connect(options as NetConnectOpts);
    this.sockets.add(socket);
    socket.once('close', () => this.sockets.delete(socket));
    return socket;
  };
}

function refused(): Socket {
  const socket = new Socket();
  setImmediate(() => socket.destroy(new Error('offline')));
  return socket;
}
