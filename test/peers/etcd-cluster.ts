// A cluster of real etcds, which find each other through proxies of the tests, so that one of them can be cut off from the others.
//
//   const cluster = await startEtcdCluster(3);
//   await cluster.members[0].kill();     // and all that one etcd can do, see etcd-server.ts
//   cluster.isolate(1); cluster.heal();  // its clients still reach it, but the other members do not
//   await cluster.stop();
import { setTimeout as sleep } from 'node:timers/promises';
import { TcpProxy } from '../tcp-proxy.ts';
import { builtBinary, HOW } from './binary.mjs';
import { EtcdServer } from './etcd-server.ts';
import { freePorts } from './ports.ts';

const READY_MS = 30_000;

/** Who sends a request to a member: the id of another one. */
const senderOf = (head: string): string => /^x-server-from: *([0-9a-f]+)/im.exec(head)?.[1] ?? '';

export class EtcdCluster {
  readonly members: readonly EtcdServer[];
  readonly #proxies: readonly TcpProxy[];
  #ids: readonly string[] = [];

  constructor(members: readonly EtcdServer[], proxies: readonly TcpProxy[]) {
    this.members = members;
    this.#proxies = proxies;
  }

  get urls(): readonly string[] {
    return this.members.map(({ url }) => url);
  }

  /** Starts all members, and resolves when each of them has answered with the agreement of the others. */
  async start(): Promise<void> {
    await Promise.all(this.members.map((member) => member.start()));
    this.#ids = await Promise.all(this.members.map((member) => this.#answered(member)));
  }

  /** Cuts a member off from the others, in both directions. */
  isolate(at: number): void {
    const id = this.#ids[at];
    for (const [to, proxy] of this.#proxies.entries()) {
      const isCut = (from: string): boolean => to === at || from === id;
      proxy.refuse(isCut);
      proxy.cutAll(isCut);
    }
  }

  heal(): void {
    for (const proxy of this.#proxies) proxy.refuse(false);
  }

  /** Resolves when every member answers again. */
  async ready(): Promise<void> {
    await Promise.all(this.members.map((member) => this.#answered(member)));
  }

  /** The watches that are open at all members together. */
  async watchers(): Promise<number> {
    const counts = this.members.map(async ({ url }) => {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(/^etcd_debugging_mvcc_watcher_total (\d+)/m.exec(text)?.[1] ?? Number.NaN);
    });
    return (await Promise.all(counts)).reduce((one, other) => one + other, 0);
  }

  async stop(): Promise<void> {
    await Promise.all(this.members.map((member) => member.stop()));
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
  }

  /** The id of a member, once it has answered. */
  async #answered(member: EtcdServer): Promise<string> {
    for (const limit = performance.now() + READY_MS; ; await sleep(50)) {
      try {
        const { header } = await member.json('/v3/kv/range', { key: btoa('/'), count_only: true });
        return BigInt(header.member_id).toString(16);
      } catch (error) {
        if (performance.now() > limit) throw new Error(`a member of the etcd is not ready: ${error}\n${member.log}`);
      }
    }
  }
}

/** Starts a cluster of so many members. */
export async function startEtcdCluster(size: number): Promise<EtcdCluster> {
  const binary = builtBinary();
  if (binary === undefined) throw new Error(`there is no etcd: ${HOW}`);
  const ports = await freePorts(3 * size);
  const of = (at: number): { client: number; peer: number; proxy: number } => {
    const [client, peer, proxy] = ports.slice(3 * at) as [number, number, number];
    return { client, peer, proxy };
  };
  const indexes = Array.from({ length: size }, (_, at) => at);
  const names = indexes.map((at) => `m${at}=http://127.0.0.1:${of(at).proxy}`).join(',');
  const proxies = indexes.map((at) => new TcpProxy([of(at).peer], senderOf));
  const members = indexes.map((at) => {
    return new EtcdServer(binary, of(at).client, { member: { name: `m${at}`, peerPort: of(at).peer, members: names } });
  });
  const cluster = new EtcdCluster(members, proxies);
  try {
    await Promise.all(proxies.map((proxy, at) => proxy.listen(of(at).proxy)));
    await cluster.start();
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}
