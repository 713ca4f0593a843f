// Many clients in a separate process, on lines that are cut. It answers requests over IPC.
import { setMaxListeners } from 'node:events';
import type { ClientTransport } from '../../../src/bridge/client.ts';
import type { Life } from './client.ts';
import { CutClient } from './client.ts';
import type { Received } from './delivery-checker.ts';
import { answer } from './peer.ts';

/** The number of clients and their schedule. Their seeds are consecutive. */
export interface Join extends Omit<Life, 'transport'> {
  readonly clients: number;
  /** Assigned to clients in turn. */
  readonly transports: readonly ClientTransport[];
}

/** The results of the clients. */
export interface Report {
  /** Of each client, in the order in which they joined. */
  readonly received: readonly Received[];
  readonly latencies: Float64Array;
  readonly cuts: number;
  /** Connections beyond each client's first one. */
  readonly reconnects: number;
}

setMaxListeners(0);

const clients: CutClient[] = [];

async function until(condition: () => boolean, limitMs: number = 60_000): Promise<boolean> {
  const began = performance.now();
  while (!condition()) {
    if (performance.now() - began > limitMs) return false;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return true;
}

/** Concurrent handshakes. */
const AT_ONCE = 50;

async function join({ clients: count, transports, ...life }: Join): Promise<boolean> {
  for (let i = 0; i < count; i++) {
    const transport = transports[i % transports.length] as ClientTransport;
    const client = new CutClient({ ...life, transport, seed: life.seed + i });
    clients.push(client);
    void client.read();
    if (i % AT_ONCE === AT_ONCE - 1) await opened({});
  }
  return opened({});
}

/** Resolves to whether all are connected within the limit. */
function opened({ limitMs }: { limitMs?: number }): Promise<boolean> {
  return until(() => clients.every(({ state }) => state === 'open'), limitMs);
}

/** Resolves to whether all have received this event or a later one within the limit. */
function reached({ last, limitMs }: { last: number; limitMs?: number }): Promise<boolean> {
  return until(() => clients.every(({ checker }) => checker.last >= last), limitMs);
}

function report(): Report {
  return {
    // Numbers only, without the client's own bookkeeping.
    received: clients.map(({ checker }) => {
      const { delivered, duplicates, outOfOrder, told, silent, expired, blind, repeated, failures } = checker;
      return { delivered, duplicates, outOfOrder, told, silent, expired, blind, repeated, failures };
    }),
    latencies: Float64Array.from(clients.flatMap(({ latencies }) => latencies)),
    cuts: clients.reduce((sum, each) => sum + each.cuts, 0),
    reconnects: clients.reduce((sum, { opens }) => sum + opens - 1, 0),
  };
}

answer({
  join,
  opened,
  reached,
  report,
  suffer: () => {
    for (const client of clients) client.suffer();
  },
  calm: () => {
    for (const client of clients) client.calm();
  },
  stop: () => {
    for (const client of clients) client.stop();
  },
});
