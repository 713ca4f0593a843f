// What happens to the informers: the same to each, at the same time.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiServer } from '../../test/peers/apiserver.ts';
import { type Fault, type FaultProxy, type Script, seededFaults } from '../../test/peers/proxy.ts';

/** What a scenario can reach: the server, and the proxies before it, one for each informer. */
export interface Stage {
  readonly server: ApiServer;
  readonly proxies: readonly FaultProxy[];
}

/** Something that goes wrong between a server and the informers of a collection. */
export interface Scenario {
  readonly name: string;
  readonly plural: 'secrets' | 'configmaps';
  /** Before the first list, or when all are synced. */
  readonly from: 'the start' | 'a sync';
  /** What happens to the watches that are open. */
  readonly open?: 'cut' | 'end' | 'stall';
  /** What happens to the next requests of each informer, in order. */
  readonly next?: readonly Fault[];
  /** Anything else. Time is counted from its end. */
  readonly during?: (stage: Stage) => Promise<void>;
  /** The server is not the same afterwards, so nobody else may use it at the time. */
  readonly isAlone?: boolean;
  /** `idleTimeoutMs` of ours. */
  readonly idleTimeoutMs?: number;
}

/** The first list has more bytes than that, even if it is compressed. */
const IN_A_LIST = 600;
/** The first event of a watch has more. */
const IN_AN_EVENT = 300;
const STORM_MS = 10_000;
const SHARES = { none: 2, cut: 4, truncate: 3, refuse: 3, delay: 1 };

/** A script for one informer: the first requests meet these faults. */
export function inTurn(faults: readonly Fault[]): Script {
  let requests = 0;
  return () => faults[requests++];
}

async function storm({ proxies }: Stage): Promise<void> {
  for (const proxy of proxies) {
    proxy.play(seededFaults(7, SHARES));
    proxy.cutAll();
  }
  await sleep(STORM_MS);
  for (const proxy of proxies) proxy.calm();
}

async function compaction({ server, proxies }: Stage): Promise<void> {
  for (const proxy of proxies) {
    proxy.play(() => ({ kind: 'cut', after: -1 }));
    proxy.cutAll();
  }
  await sleep(500);
  await server.compact();
  for (const proxy of proxies) proxy.calm();
}

async function crash({ server }: Stage): Promise<void> {
  await server.kill();
  await sleep(1_000);
  await server.start();
}

const running = { plural: 'secrets', from: 'a sync' } as const;
const starting = { plural: 'secrets', from: 'the start' } as const;

export const SCENARIOS: readonly Scenario[] = [
  { ...running, name: 'the server ends the watch, as it does after some minutes', open: 'end' },
  { ...running, name: 'the connection breaks', open: 'cut' },
  { ...running, name: 'it breaks, and the next one before it answers', open: 'cut', next: [{ kind: 'cut', after: -1 }] },
  { ...running, name: 'a watch ends within an event', open: 'end', next: [{ kind: 'truncate', after: IN_AN_EVENT }] },
  {
    ...running,
    name: 'the next watch is refused: 429, Retry-After 1 s',
    open: 'end',
    next: [{ kind: 'refuse', code: 429, retryAfterSeconds: 1 }],
  },
  { ...running, name: 'the next watch is refused: 500', open: 'end', next: [{ kind: 'refuse', code: 500 }] },
  { ...running, name: 'the next watch is refused: 504', open: 'end', next: [{ kind: 'refuse', code: 504 }] },
  { ...running, name: 'the watch is half-open', open: 'stall' },
  { ...running, name: 'the same, ours with `idleTimeoutMs: 30_000`', open: 'stall', idleTimeoutMs: 30_000 },
  { ...starting, name: 'the first list is refused: 500', next: [{ kind: 'refuse', code: 500 }] },
  { ...starting, name: 'the first list breaks', next: [{ kind: 'cut', after: IN_A_LIST }] },
  { ...starting, name: 'the first list is half a list', next: [{ kind: 'truncate', after: IN_A_LIST }] },
  { ...starting, name: 'the first list stops, half-open', next: [{ kind: 'halfOpen', after: IN_A_LIST }] },
  { ...running, name: 'cuts, refusals and delays for 10 s', during: storm },
  { ...running, plural: 'configmaps', name: 'cut off during a compaction: 410', during: compaction, isAlone: true },
  { ...running, name: 'the server is killed, and started again', during: crash, isAlone: true },
];
