/** How many replicas a number of clients needs, and what else. */
import { costOf, type Load } from './formula.ts';
import { type StormCourse, simulateStorm } from './storm.ts';
import type { Units } from './units.ts';

/** What is to be served. */
export interface Wanted {
  readonly clients: number;
  /** Writes per second, all together. */
  readonly changes: number;
  /** Bytes of an object. */
  readonly bytes: number;
  /** How many clients a change concerns: those whose selectors it matches. */
  readonly concerns: number;
  /** How long a watch lasts until its client opens the next one, in seconds. */
  readonly watchSeconds: number;
  /** Clients per second that start anew, and how many objects their list has. */
  readonly starts: number;
  readonly listed: number;
  /** Objects in all. */
  readonly objects: number;
  /** The share of its core that a replica may use; the rest is for what is uneven. */
  readonly share: number;
  /** Bytes that a replica may hold. */
  readonly memoryBytes: number;
  /** Members of etcd. */
  readonly members: number;
}

export interface Plan {
  /** One more than needed: one may be missing. */
  readonly replicas: number;
  /** What decides on their number. */
  readonly because: 'processor time' | 'memory';
  /** Cores that all replicas use together, and what one of them uses of its core. */
  readonly cores: number;
  readonly share: number;
  /** The same when one is missing. */
  readonly shareWithout: number;
  readonly replicaBytes: number;
  readonly etcdCores: number;
  /** Bytes per second: to clients, from etcd to replicas, and from etcd's leader to its followers. */
  readonly toClients: number;
  readonly toReplicas: number;
  readonly toMembers: number;
  /** A replica dies, and its clients come to the others: at once, as they do by default, and spread over what is needed. */
  readonly spreadMs: number;
  readonly storm: StormCourse;
}

/** No number of replicas can serve this. The message says why. */
export class Impossible extends Error {}

/** What an event has around its object: its type, HTTP's chunk, and TCP and IP. */
export const EVENT_BYTES = 110;
/** Clients wait for this long, at random, before they reconnect: the default of a `Reflector`. */
const DEFAULT_SPREAD_MS = 800;
/** Objects in memory take more than their bytes: their JSON is kept beside what was parsed of it. */
const IN_MEMORY = 3;
const MOST_REPLICAS = 10_000;

function loadOf({ clients, changes, bytes, concerns, watchSeconds, starts, listed }: Wanted): Load {
  return {
    ...{ changes, writes: changes, bytes, listed },
    deliveries: changes * concerns,
    lists: starts,
    joins: clients / watchSeconds + starts,
  };
}

/** @throws {Impossible} */
export function planOf(wanted: Wanted, units: Units): Plan {
  const load = loadOf(wanted);
  const { each, shared } = costOf(load, units, 1);
  if (each / 1e6 >= wanted.share) {
    throw new Impossible(
      `every replica would need ${((each / 1e6) * 100).toFixed(0)} % of its core for the changes alone: ` +
        'divide the resources among groups of replicas, each with an etcd of its own',
    );
  }
  const fixed = units.replicaBytes + wanted.objects * wanted.bytes * IN_MEMORY;
  if (fixed >= wanted.memoryBytes) throw new Impossible('a replica has no room for the objects');
  const shareOf = (replicas: number): number => (each + shared / replicas) / 1e6;
  const bytesOf = (replicas: number): number => fixed + (wanted.clients / replicas) * units.watcherBytes;
  const byTime = shared / (wanted.share * 1e6 - each);
  const byMemory = (wanted.clients * units.watcherBytes) / (wanted.memoryBytes - fixed);
  const needed = Math.max(1, Math.ceil(Math.max(byTime, byMemory)));
  if (needed >= MOST_REPLICAS) throw new Impossible(`${needed} replicas are more than one etcd can tell`);
  const replicas = needed + 1;
  const deliveries = load.deliveries * (wanted.bytes + EVENT_BYTES);
  return {
    replicas,
    because: byTime >= byMemory ? 'processor time' : 'memory',
    cores: shareOf(replicas) * replicas,
    share: shareOf(replicas),
    shareWithout: shareOf(needed),
    replicaBytes: bytesOf(needed),
    etcdCores: costOf(load, units, replicas).etcd / 1e6,
    toClients: deliveries + load.lists * load.listed * wanted.bytes,
    toReplicas: wanted.changes * wanted.bytes * replicas,
    toMembers: wanted.changes * wanted.bytes * (wanted.members - 1),
    ...stormOf({ wanted, units, needed, share: shareOf(needed) }),
  };
}

function stormOf(given: {
  readonly wanted: Wanted;
  readonly units: Units;
  readonly needed: number;
  readonly share: number;
}): Pick<Plan, 'spreadMs' | 'storm'> {
  const { wanted, units, needed, share } = given;
  const clients = Math.ceil(wanted.clients / (needed + 1) / needed);
  const joinMs = units.join / 1e3;
  const free = 1 - share;
  return {
    spreadMs: (clients * joinMs) / free,
    storm: simulateStorm({ clients, spreadMs: DEFAULT_SPREAD_MS, joinMs, share: free }),
  };
}
