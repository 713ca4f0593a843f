// An API server on a socket, and clients that speak to it byte by byte.
import type { Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { ApiServerOptions } from '../../src/apiserver/index.ts';
import { listening } from '../listening.ts';
import { rig } from './apiserver-rig.ts';

export interface Opened extends ReturnType<typeof rig> {
  readonly url: string;
  readonly http: Server;
  readonly port: number;
  readonly connections: () => Promise<number>;
  /** Bytes that have come. */
  readonly received: () => number;
}

/** Until the test ends. */
export async function open(options: Partial<ApiServerOptions> = {}): Promise<Opened> {
  const made = rig(options);
  const { url, http, close } = await listening(made.server);
  http.on('upgrade', made.server.upgrade);
  onTestFinished(close);
  let received = (): number => 0;
  http.on('connection', (socket) => {
    received = () => socket.bytesRead;
  });
  const connections = (): Promise<number> => new Promise((resolve) => http.getConnections((_, count) => resolve(count)));
  return { ...made, url, http, port: Number(new URL(url).port), connections, received: () => received() };
}

/** A client that does not close its side. */
export function client(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
}
