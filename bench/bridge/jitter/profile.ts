import type { ClientTransport } from '../../../src/bridge/client.ts';
import type { HubStats } from '../../../src/bridge/hub/hub.ts';
import type { Received } from './delivery-checker.ts';
import { sumOf } from './delivery-checker.ts';
import type { Join, Report } from './load.ts';
import { Peer } from './peer.ts';
import type { Broadcasts, Listen, Listening, Memory } from './server.ts';

/** A server, clients whose connections are cut again and again, and the events published meanwhile. */
export interface Profile {
  /** Assigned to clients in turn. */
  readonly transports: readonly ClientTransport[];
  readonly clients: number;
  readonly broadcasts: number;
  readonly perSecond: number;
  readonly eventBytes: number;
  readonly cutEveryMs: number;
  readonly offlineMs: number;
  /** Events that the server keeps for resuming; default: more than can be missed. */
  readonly replayItems?: number | undefined;
  /** The client's backoff; default: the client's own. */
  readonly minMs?: number | undefined;
  readonly maxMs?: number | undefined;
  /** Number of processes with clients. */
  readonly loads: number;
  readonly seed: number;
  /** Whether to measure the server's memory, which takes it some time. */
  readonly weighs: boolean;
}

/** The bundles of the two kinds of processes. */
export interface Scripts {
  readonly server: string;
  readonly load: string;
}

export interface Outcome {
  readonly profile: Profile;
  /** Number of clients times published events, including those that end a run. */
  readonly expected: number;
  readonly received: Received;
  readonly byTransport: Readonly<Partial<Record<ClientTransport, Received>>>;
  readonly latencies: Float64Array;
  readonly cuts: number;
  readonly reconnects: number;
  /** The server's own counts. */
  readonly resumes: number;
  readonly refused: number;
  /** Clients that the server still holds after all have gone. */
  readonly left: number;
  /**
   * Memory of the server: without clients, with all of them at the end, and after they have gone. Empty if it was not measured.
   */
  readonly memory: readonly Memory[];
}

/** Time limit for all clients to reconnect after the last cut. */
const BACK_MS = 45_000;

/** Runs a profile from start to end, in separate processes. */
export async function runProfile(profile: Profile, scripts: Scripts, tell: (what: string) => void = () => {}): Promise<Outcome> {
  const server = new Peer(scripts.server);
  const loads = Array.from({ length: profile.loads }, () => new Peer(scripts.load));
  try {
    return await run(profile, { server, loads, tell });
  } finally {
    await Promise.all([server, ...loads].map((peer) => peer.kill('SIGKILL')));
  }
}

interface Cast {
  readonly server: Peer;
  readonly loads: readonly Peer[];
  readonly tell: (what: string) => void;
}

async function run(profile: Profile, { server, loads, tell }: Cast): Promise<Outcome> {
  const { clients, broadcasts, perSecond, eventBytes, replayItems = broadcasts + MOST_ENDINGS } = profile;
  const listen: Listen = { replayItems };
  const { url } = await server.ask<Listening>('listen', listen);
  const memory: Memory[] = [];
  const weigh = async (): Promise<void> => {
    if (profile.weighs) memory.push(await server.ask<Memory>('memory'));
  };
  await weigh();
  tell(`${clients} clients connect over ${profile.transports.join(', ')}`);
  await joinAll(loads, profile, url);
  tell(`${broadcasts} events, ${perSecond} per second`);
  await every(loads, 'suffer');
  const work: Broadcasts = { count: broadcasts, perSecond, eventBytes };
  await server.ask('broadcast', work);
  tell('no more cuts: everybody comes back');
  await every(loads, 'calm');
  const published = await finish(server, loads, broadcasts);
  const stats = await server.ask<HubStats>('stats');
  await weigh();
  const reports = await every<Report>(loads, 'report');
  await every(loads, 'stop');
  const left = await clientsLeft(server);
  await weigh();
  const byTransport = profile.transports.map((transport, at): [ClientTransport, Received] => {
    const mine = reports.flatMap(({ received }) => received.filter((_, i) => i % profile.transports.length === at));
    return [transport, sumOf(mine)];
  });
  return {
    profile,
    expected: clients * published,
    received: sumOf(reports.flatMap(({ received }) => received)),
    byTransport: Object.fromEntries(byTransport),
    latencies: merge(reports.map(({ latencies }) => latencies)),
    cuts: reports.reduce((sum, { cuts }) => sum + cuts, 0),
    reconnects: reports.reduce((sum, { reconnects }) => sum + reconnects, 0),
    resumes: stats.total.resumes,
    refused: stats.total.refusals.expired ?? 0,
    left,
    memory,
  };
}

async function joinAll(loads: readonly Peer[], profile: Profile, url: string): Promise<void> {
  const { transports, cutEveryMs, offlineMs, minMs, maxMs, clients, seed } = profile;
  const share = Math.ceil(clients / loads.length);
  const joined = await Promise.all(
    loads.map((load, i) => {
      const count = Math.min(share, clients - i * share);
      const life: Join = { url, transports, cutEveryMs, offlineMs, minMs, maxMs, clients: count, seed: seed + i * share };
      return load.ask<boolean>('join', life);
    }),
  );
  if (joined.includes(false)) throw new Error('not all clients could connect');
}

/** Maximum number of events that end a run. */
const MOST_ENDINGS = 20;

/**
 * Publishes one more event when all clients are back. A client that has it has everything that it will get. A client that was
 * refused at that moment starts over after this event, so another one may be necessary. Returns the total number of published
 * events.
 */
async function finish(server: Peer, loads: readonly Peer[], broadcasts: number): Promise<number> {
  for (let published = broadcasts + 1; published <= broadcasts + MOST_ENDINGS; published++) {
    await every(loads, 'opened', { limitMs: BACK_MS });
    await server.ask('publish', { count: 1 });
    const reached = await every<boolean>(loads, 'reached', { last: published, limitMs: 2_000 });
    if (!reached.includes(false)) return published;
  }
  throw new Error('not all clients have got the last event');
}

/** A server notices the end of a client a little later. */
async function clientsLeft(server: Peer): Promise<number> {
  let left = Number.NaN;
  for (let i = 0; i < 100 && left !== 0; i++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    left = (await server.ask<HubStats>('stats')).clients.length;
  }
  return left;
}

function every<T>(peers: readonly Peer[], what: string, more: object = {}): Promise<T[]> {
  return Promise.all(peers.map((peer) => peer.ask<T>(what, more)));
}

function merge(parts: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all.sort();
}

/** Returns what is wrong with an outcome; empty if nothing is. Ignores all times. */
export function faultsOf({ profile, expected, received, cuts, refused, left }: Outcome): string[] {
  const { delivered, duplicates, outOfOrder, told, silent, expired, blind, repeated, failures } = received;
  const faults: [boolean, string][] = [
    [duplicates > 0, `${duplicates} events came twice`],
    [outOfOrder > 0, `${outOfOrder} events came out of order`],
    [silent > 0, `${silent} events are missing, and nothing says so`],
    [delivered + told + silent !== expected, `${delivered} delivered + ${told} told of + ${silent} is not ${expected}`],
    [repeated > 0, `${repeated} versions were refused twice`],
    [failures.length > 0, `ERRORs: ${failures.slice(0, 3).join(', ')}`],
    [cuts === 0, 'no connection was ever cut'],
    [left !== 0, `the server still holds ${left} clients that have gone`],
  ];
  // A refusal that was on its way when the line was cut was not received, and is sent again.
  if (expired > refused) faults.push([true, `${expired} refusals were heard, and ${refused} said`]);
  if (profile.replayItems === undefined) {
    faults.push([delivered !== expected, `${delivered} of ${expected} events were delivered`]);
    faults.push([expired + blind > 0, `${expired + blind} clients were told that they missed something`]);
  } else faults.push([expired === 0, 'nobody was ever too late']);
  return faults.filter(([wrong]) => wrong).map(([, fault]) => fault);
}
