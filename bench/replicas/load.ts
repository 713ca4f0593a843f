// The clients of all replicas, in a process of their own: watchers, a writer, and a reader of lists.
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import type { Storage } from '../../src/storage/storage.ts';
import { obey } from '../dialogue.ts';
import { THINGS_PATH } from '../server/contenders.ts';
import { type Thing, thingOf } from '../server/objects.ts';
import { Connection } from './connection.ts';
import { Hearer } from './hearer.ts';

/** Changes to make: their numbers, and the size of a Thing. */
export interface Changes {
  readonly from: number;
  readonly count: number;
  readonly bytes: number;
}

/** A write each, and a list or a new watch now and then. */
interface Mix extends Changes {
  readonly listEvery: number;
  readonly joinEvery: number;
}

/** Watches that are opened at once. */
const AT_ONCE = 50;

let connections: readonly Connection[] = [];
let ports: readonly number[] = [];
const hearers: Hearer[] = [];
let stored: Storage<Thing> | undefined;
/** How many Things there are. */
let filled: number = 0;

/** One replica after the other. */
const connectionAt = (turn: number): Connection => connections[turn % connections.length] as Connection;

async function put(turn: number, thing: Thing): Promise<void> {
  await connectionAt(turn).put(`${THINGS_PATH}/${thing.metadata.name}`, JSON.stringify(thing));
}

async function list(turn: number): Promise<void> {
  const body = await connectionAt(turn).get(THINGS_PATH);
  const items = body.split('"turn":').length - 1;
  if (items !== filled) throw new Error(`wrong answer: a list of ${items} Things instead of ${filled}`);
}

async function allHave(): Promise<void> {
  await Promise.all(hearers.map((each) => each.heard()));
}

function check({ from, count, bytes }: Changes): void {
  for (const each of hearers) each.check(from + count - 1, bytes);
}

/** Reads the newest state at each replica: it is then as far as the storage. Returns the version. */
async function settle(): Promise<string> {
  const bodies = await Promise.all(connections.map((each) => each.get(`${THINGS_PATH}?limit=1`)));
  return /"resourceVersion":"(\d+)"/.exec(bodies[0] ?? '')?.[1] ?? '';
}

const deeds = {
  /** These are the replicas, and this is their etcd. */
  meet(order: { readonly ports: readonly number[]; readonly etcd: string; readonly filled: number }): void {
    ({ ports, filled } = order);
    connections = ports.map((port) => new Connection(port));
    stored = new EtcdStorage({ endpoints: [order.etcd] }).scope<Thing>('example.com/things/');
  },
  /** Opens so many watches, as many at each replica, which hear of every change from now on. */
  async join({ watchers }: { readonly watchers: number }): Promise<void> {
    const from = await settle();
    const joining = Array.from({ length: watchers }, (_, at) => new Hearer(ports[at % ports.length] as number, from));
    for (let at = 0; at < joining.length; at += AT_ONCE) {
      await Promise.all(joining.slice(at, at + AT_ONCE).map((each) => each.open()));
    }
    hearers.push(...joining);
  },
  leave(_: object): void {
    for (const each of hearers.splice(0)) each.close();
  },
  /** Changes Things in etcd, past the replicas: each when everybody has heard of the one before. */
  async change(changes: Changes): Promise<void> {
    for (let at = 0; at < changes.count; at++) {
      const thing = thingOf(changes.from + at, changes.bytes);
      const key = `default/${thing.metadata.name}`;
      await stored?.update(key, ({ metadata }) => ({ ...thing, metadata: { ...metadata, ...thing.metadata } }));
      await allHave();
    }
    check(changes);
  },
  /** Writes through one replica after the other, one at a time. Returns how long each took, in ms. */
  async write({ from, count, bytes }: Changes): Promise<readonly number[]> {
    const times: number[] = [];
    for (let turn = 0; turn < count; turn++) {
      const began = performance.now();
      await put(turn, thingOf(from + turn, bytes));
      times.push(performance.now() - began);
    }
    await settle();
    return times;
  },
  /** Lists everything, at one replica after the other. */
  async list({ times }: { readonly times: number }): Promise<void> {
    for (let turn = 0; turn < times; turn++) await list(turn);
  },
  async mix({ listEvery, joinEvery, ...changes }: Mix): Promise<void> {
    for (let turn = 0; turn < changes.count; turn++) {
      await put(turn, thingOf(changes.from + turn, changes.bytes));
      await allHave();
      if (turn % listEvery === 0) await list(turn / listEvery);
      if (turn % joinEvery === 0) await comeAgain((turn / joinEvery) % hearers.length);
    }
    check(changes);
  },
};

/** Ends a watch, and opens the next one where it was. */
async function comeAgain(at: number): Promise<void> {
  const leaving = hearers[at];
  if (leaving === undefined) return;
  const coming = leaving.successor();
  leaving.close();
  await coming.open();
  hearers[at] = coming;
}

export type LoadDeeds = typeof deeds;

obey(deeds);
