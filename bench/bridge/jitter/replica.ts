// One of several hubs on one stream, in a process of its own that is stopped and killed. It answers requests over IPC.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHttpHandler, Hub } from '../../../src/bridge/http.ts';
import { attachWebSocket } from '../../../src/bridge/websocket.ts';
import { NatsStream } from '../../../src/nats/index.ts';
import { answer } from './peer.ts';

/** Where the stream is, and how much of it the hub keeps. */
export interface Serve {
  readonly nats: string;
  readonly stream: string;
  readonly port: number;
  readonly replayItems: number;
}

/** How often clients hear that their server is still there: they find out that one was stopped after five of these. */
const BOOKMARK_MS = 1_000;
let hub: Hub | undefined;

async function serve({ nats, stream, port, replayItems }: Serve): Promise<number> {
  const source = new NatsStream({ servers: nats, stream, create: {} });
  hub = new Hub({ source, replayItems, bookmarkIntervalMs: BOOKMARK_MS, maxClientsPerAddress: 20_000, maxClients: 20_000 });
  const server = createServer(createHttpHandler(hub));
  attachWebSocket(server, hub, { heartbeatMs: BOOKMARK_MS * 3 });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ port, host: '127.0.0.1', backlog: 4_096 }, resolve);
  });
  return (server.address() as AddressInfo).port;
}

answer({ serve, stats: () => hub?.stats() });
