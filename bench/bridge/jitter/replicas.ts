import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientTransport } from '../../../src/bridge/client.ts';
import { Hub } from '../../../src/bridge/http.ts';
import { NatsStream } from '../../../src/nats/index.ts';
import type { NatsServer } from '../../../test/peers/nats-server.ts';
import { startNats } from '../../../test/peers/nats-server.ts';
import { freePorts } from '../../../test/peers/ports.ts';
import type { Attend, Attendance, Written as WrittenEvent } from './audience.ts';
import { Balancer } from './balancer.ts';
import { numbersFrom } from './client.ts';
import { Peer } from './peer.ts';
import type { Serve } from './replica.ts';
import type { Write, Written } from './writers.ts';

/** Hubs on one stream, clients behind a balancer, publishers, and what happens to all of them meanwhile. */
export interface FleetProfile {
  readonly replicas: number;
  readonly clients: number;
  readonly transports: readonly ClientTransport[];
  readonly writers: number;
  readonly perSecond: number;
  readonly eventBytes: number;
  readonly durationMs: number;
  /** From one fault to the next, on average. */
  readonly faultEveryMs: number;
  /** How long a process is stopped or away, at most. */
  readonly awayMs: number;
  readonly replayItems: number;
  readonly loads: number;
  readonly seed: number;
}

export interface FleetScripts {
  readonly replica: string;
  readonly writers: string;
  readonly audience: string;
}

export interface FleetOutcome {
  readonly profile: FleetProfile;
  /** Acknowledged events, and those that the stream holds. */
  readonly acknowledged: number;
  readonly stored: number;
  readonly delivered: number;
  readonly reconnects: number;
  readonly cuts: number;
  /** How often each fault came. */
  readonly faults: Readonly<Record<string, number>>;
  readonly publishFailures: number;
  readonly latencies: Float64Array;
  /** What is wrong; empty if nothing is. */
  readonly wrong: readonly string[];
}

const STREAM = 'jitter';

/** Runs a fleet from start to end. */
export async function runFleet(
  profile: FleetProfile,
  scripts: FleetScripts,
  tell: (what: string) => void = () => {},
): Promise<FleetOutcome> {
  const fleet = new Fleet(profile, scripts);
  try {
    return await fleet.run(tell);
  } finally {
    await fleet.end();
  }
}

class Fleet {
  private readonly profile: FleetProfile;
  private readonly scripts: FleetScripts;
  private readonly random: () => number;
  private readonly faults: Record<string, number> = {};
  private readonly replicas: (Peer | undefined)[] = [];
  private readonly repairs: Set<Promise<void>> = new Set();
  private readonly broken: Set<number | 'nats' | 'balancer'> = new Set();
  private ports: readonly number[] = [];
  private nats: NatsServer | undefined;
  private balancer: Balancer | undefined;
  private writers: Peer | undefined;
  private loads: readonly Peer[] = [];

  constructor(profile: FleetProfile, scripts: FleetScripts) {
    this.profile = profile;
    this.scripts = scripts;
    this.random = numbersFrom(profile.seed);
  }

  async run(tell: (what: string) => void): Promise<FleetOutcome> {
    const { clients, transports, loads, seed, durationMs, writers, perSecond, eventBytes, replicas } = this.profile;
    this.nats = await startNats();
    this.ports = await freePorts(replicas);
    this.balancer = new Balancer(this.ports, numbersFrom(seed + 1));
    const url = `http://127.0.0.1:${await this.balancer.listen()}/watch`;
    await Promise.all(this.ports.map((_, at) => this.startReplica(at)));
    this.loads = Array.from({ length: loads }, () => new Peer(this.scripts.audience));
    const share = Math.ceil(clients / loads);
    tell(`${clients} clients connect to ${replicas} replicas`);
    await Promise.all(
      this.loads.map((load, at) => {
        const attend: Attend = { url, clients: Math.min(share, clients - at * share), transports, seed: seed + at * share };
        return load.ask('attend', attend);
      }),
    );
    await this.until('every client is connected', async () => (await this.connected()) === clients);
    this.writers = new Peer(this.scripts.writers);
    const write: Write = { nats: this.nats.address, stream: STREAM, writers, perSecond, eventBytes };
    await this.writers.ask('start', write);
    // From its first event on, a client has a version to continue from.
    await this.until('every client has an event', async () => (await this.least()) > 0);
    tell(`${writers} writers, ${perSecond} events per second each; faults for ${durationMs} ms`);
    await this.suffer(durationMs);
    tell('no more faults: everybody comes back');
    await Promise.all(this.repairs);
    const written = await this.writers.ask<Written>('stop');
    const reference = await this.stored();
    await this.until('every client has every event', async () => (await this.least()) >= reference.length, true);
    const reports = await Promise.all(this.loads.map((load) => load.ask<Attendance>('report')));
    return this.judge(written, reference, reports);
  }

  /** Ends everything that is still there. */
  async end(): Promise<void> {
    this.nats?.resume();
    const peers = [...this.loads, this.writers, ...this.replicas].filter((peer) => peer !== undefined);
    await Promise.all(peers.map((peer) => peer.kill('SIGKILL')));
    await Promise.allSettled(this.repairs);
    await Promise.all(this.replicas.map((peer) => peer?.kill('SIGKILL')));
    await this.balancer?.close();
    await this.nats?.stop();
  }

  private async startReplica(at: number): Promise<void> {
    const peer = new Peer(this.scripts.replica);
    this.replicas[at] = peer;
    const { replayItems } = this.profile;
    const port = this.ports[at] as number;
    const serve: Serve = { nats: this.nats?.address as string, stream: STREAM, port, replayItems };
    await peer.ask('serve', serve);
    this.balancer?.serve(port, true);
  }

  private async suffer(durationMs: number): Promise<void> {
    const until = performance.now() + durationMs;
    while (performance.now() < until) {
      await sleep(this.profile.faultEveryMs * (0.5 + this.random()));
      const [name, fault] = this.pick();
      this.faults[name] = (this.faults[name] ?? 0) + 1;
      const repair = fault().catch(() => {});
      this.repairs.add(repair);
      void repair.then(() => this.repairs.delete(repair));
    }
  }

  private pick(): [string, () => Promise<void>] {
    const at = Math.floor(this.random() * this.replicas.length);
    const awayMs = this.profile.awayMs * (0.2 + 0.8 * this.random());
    const kinds: [string, number | 'nats' | 'balancer' | undefined, () => Promise<void>][] = [
      ['replica killed', at, () => this.killReplica(at, awayMs)],
      ['replica stopped', at, () => this.stopReplica(at, awayMs)],
      ['nats-server killed', 'nats', () => this.killNats(awayMs)],
      ['nats-server stopped', 'nats', () => this.stopNats(awayMs)],
      ['some connections cut', undefined, async () => this.balancer?.cut(0.2)],
      ['balancer away', 'balancer', () => this.refuse(awayMs)],
    ];
    const free = kinds.filter(([, what]) => what === undefined || !this.broken.has(what));
    const [name, what, fault] = free[Math.floor(this.random() * free.length)] as (typeof kinds)[number];
    return [
      name,
      async () => {
        if (what !== undefined) this.broken.add(what);
        await fault();
        if (what !== undefined) this.broken.delete(what);
      },
    ];
  }

  private async killReplica(at: number, awayMs: number): Promise<void> {
    await this.replicas[at]?.kill('SIGKILL');
    // A balancer notices a little later.
    await sleep(awayMs / 2);
    this.balancer?.serve(this.ports[at] as number, false);
    await sleep(awayMs / 2);
    await this.startReplica(at);
  }

  private async stopReplica(at: number, awayMs: number): Promise<void> {
    this.replicas[at]?.signal('SIGSTOP');
    await sleep(awayMs);
    this.replicas[at]?.signal('SIGCONT');
  }

  private async killNats(awayMs: number): Promise<void> {
    await this.nats?.kill();
    await sleep(awayMs);
    await this.nats?.start();
  }

  private async stopNats(awayMs: number): Promise<void> {
    this.nats?.pause();
    await sleep(awayMs);
    this.nats?.resume();
  }

  private async refuse(awayMs: number): Promise<void> {
    this.balancer?.refuse(true);
    await sleep(awayMs);
    this.balancer?.refuse(false);
  }

  private async connected(): Promise<number> {
    const stats = await Promise.all(this.replicas.map((peer) => peer?.ask<{ clients: readonly unknown[] }>('stats')));
    return stats.reduce((sum, one) => sum + (one?.clients.length ?? 0), 0);
  }

  private async least(): Promise<number> {
    return Math.min(...(await Promise.all(this.loads.map((load) => load.ask<number>('least')))));
  }

  private async until(what: string, condition: () => Promise<boolean>, gives: boolean = false): Promise<void> {
    const until = performance.now() + BACK_MS;
    while (!(await condition())) {
      if (performance.now() > until) {
        if (gives) return;
        const errors = await Promise.all(this.loads.map((load) => load.ask<string[]>('errors')));
        throw new Error(`it took too long until ${what}; heard: ${errors.flat().slice(0, 3).join(', ')}`);
      }
      await sleep(50);
    }
  }

  /** Reads the whole stream, as a worker would that begins at its beginning. */
  private async stored(): Promise<number[]> {
    const source = new NatsStream({ servers: this.nats?.address as string, stream: STREAM });
    const hub = new Hub<WrittenEvent>({ source, replayItems: 0, maxCatchUpItems: 10_000_000 });
    await hub.ready();
    const { version } = hub;
    const [epoch = ''] = version.split('~');
    const keys: number[] = [];
    for await (const event of hub.watch({ after: `${epoch}~0.0` })) {
      if (event.type === 'ERROR') throw new Error(`the stream cannot be read: ${JSON.stringify(event.object)}`);
      keys.push(event.object.writer * 10_000_000 + event.object.n);
      if (event.resourceVersion === version) break;
    }
    await hub.shutdown();
    await source.close();
    return keys;
  }

  private judge(written: Written, reference: readonly number[], reports: readonly Attendance[]): FleetOutcome {
    const received = reports.flatMap((report) => report.received);
    const errors = reports.flatMap((report) => report.errors);
    const acknowledged = written.acknowledged.reduce((sum, n) => sum + n, 0);
    const wrong = [...wrongStream(reference, written.acknowledged), ...wrongClients(reference, received)];
    if (errors.length > 0) wrong.push(`${errors.length} ERRORs: ${errors.slice(0, 3).join(', ')}`);
    return {
      profile: this.profile,
      acknowledged,
      stored: reference.length,
      delivered: received.reduce((sum, { length }) => sum + length, 0),
      reconnects: reports.reduce((sum, { reconnects }) => sum + reconnects, 0),
      cuts: this.balancer?.cuts ?? 0,
      faults: this.faults,
      publishFailures: written.failures,
      latencies: Float64Array.from(reports.flatMap(({ latencies }) => [...latencies])).sort(),
      wrong,
    };
  }
}

/** How long everybody has to come back. */
const BACK_MS = 240_000;

/** Returns what is wrong with a stream: each writer's events are to be in it once, in order, and all that were acknowledged. */
export function wrongStream(reference: readonly number[], acknowledged: readonly number[]): string[] {
  const next = acknowledged.map(() => 1);
  for (const key of reference) {
    const writer = Math.floor(key / 10_000_000);
    const n = key % 10_000_000;
    if (n !== next[writer]) return [`the stream has event ${n} of writer ${writer} where ${next[writer]} should be`];
    next[writer] = n + 1;
  }
  return acknowledged.flatMap((count, writer) =>
    (next[writer] ?? 0) - 1 < count
      ? [`of writer ${writer}, ${count} were acknowledged and ${(next[writer] ?? 0) - 1} are stored`]
      : [],
  );
}

/** Returns what is wrong with what clients got: each is to have all of the stream, from its first event on, once and in order. */
export function wrongClients(reference: readonly number[], received: readonly ArrayLike<number>[]): string[] {
  return received.flatMap((got, client) => {
    const offset = reference.length - got.length;
    const at = Array.from(got).findIndex((key, i) => key !== reference[i]);
    if (at >= 0) return [`client ${client} has ${got[at]} at ${at}, where the stream has ${reference[at]}`];
    return offset === 0 ? [] : [`client ${client} has ${got.length} of ${reference.length} events`];
  });
}
