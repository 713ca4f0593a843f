import { get } from 'node:http';
import type { NetConnectOpts } from 'node:net';
import { connect, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { WebSocket } from 'ws';
import type { FetchLike, WebSocketConstructor } from '../../../src/bridge/client.ts';

/**
 * A client's way to its server, which can be cut: connections break without a goodbye, and new ones are refused until it is
 * mended. The client above it is the one that everybody uses, and knows nothing of this.
 */
export class Line {
  /** Connections that were broken. */
  cuts: number = 0;
  private readonly sockets: Set<Socket> = new Set();
  private down: boolean = false;

  /** Breaks what is connected, or on its way to be. */
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
