/** Serves an operator's health and metrics on node:http, which is loaded only for this. */
import type { AddressInfo } from 'node:net';
import { endUnread } from '../bridge/transport/unread-body.ts';
import { limitConnections } from '../bridge/transport/upgrades.ts';
import { systemClock } from '../watch/clock.ts';
import { checkOptions, wholeNumber } from '../watch/errors.ts';
import type { OperatorHealth } from './health.ts';
import type { ListenOptions } from './operator-options.ts';

/** A server that listens. */
export interface HealthServer {
  readonly url: string;
  /** Closes all connections. */
  close(): Promise<void>;
}

/** Kubelet and Prometheus have one each. Further ones are closed. */
const SLOTS = { maxClients: 256, maxClientsPerAddress: 64 };
/** How long a request may take to come, and how large it may be. */
const PATIENCE = { headersTimeout: 5_000, requestTimeout: 10_000, connectionsCheckingInterval: 1_000, maxHeaderSize: 16_384 };

/** Begins to listen. Rejects if that is not possible. */
export async function serveHealth(health: OperatorHealth, options: ListenOptions): Promise<HealthServer> {
  const { port, host } = checkOptions(options, ['port', 'host']);
  wholeNumber('listen.port', port);
  const { createServer } = await import('node:http');
  const server = createServer(PATIENCE, (request, response) => {
    void health.answer(request.method ?? '', request.url ?? '').then(({ code, headers, body }) => {
      const bytes = new TextEncoder().encode(body);
      const begin = (): void => void response.writeHead(code, { ...headers, 'content-length': bytes.length });
      endUnread(request, response, { begin, body: request.method === 'HEAD' ? null : bytes, clock: systemClock });
    });
  });
  const sockets = limitConnections(server, SLOTS);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const { address, family, port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
