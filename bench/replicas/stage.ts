import { existsSync } from 'node:fs';
import { builtBinary, HOW } from '../../test/peers/binary.mjs';
import { type EtcdServer, startEtcd } from '../../test/peers/etcd-server.ts';
import { Dialogue } from '../dialogue.ts';
import { THINGS } from '../server/objects.ts';
import { LeftOut } from '../workload.ts';
import { processorMsOf, residentBytesOf } from './etcd.ts';
import type { LoadDeeds } from './load.ts';
import type { ReplicaDeeds } from './replica.ts';

/** Processor time that something took, in ms. */
export interface Cost {
  /** Of each replica. */
  readonly replicas: readonly number[];
  readonly etcd: number;
}

export const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

/**
 * One etcd, replicas of an API server on it, and their clients: each a process.
 *
 *     load ---> replica 1 ---.
 *          ---> replica 2 ---+--> etcd
 *          ---> replica 3 ---'
 */
export class ReplicasStage {
  readonly load: Dialogue<LoadDeeds> = new Dialogue('replicas-load');
  readonly replicas: readonly Dialogue<ReplicaDeeds>[];
  readonly #etcd: EtcdServer;
  /** The number of the next change. The first ones have made the Things. */
  #next: number = THINGS;

  private constructor(etcd: EtcdServer, count: number) {
    this.#etcd = etcd;
    this.replicas = Array.from({ length: count }, () => new Dialogue<ReplicaDeeds>('replica'));
  }

  /** Starts everything, with Things of a size. Throws {@link LeftOut} where there is no etcd, or no way to measure it. */
  static async open(count: number, bytes: number): Promise<ReplicasStage> {
    if (builtBinary() === undefined) throw new LeftOut(`there is no etcd: ${HOW}`);
    if (!existsSync('/proc/self/schedstat')) throw new LeftOut('the processor time of etcd can only be measured on Linux');
    const stage = new ReplicasStage(await startEtcd(), count);
    try {
      const etcd = stage.#etcd.url;
      const started = await Promise.all(stage.replicas.map((each) => each.ask('start', { etcd })));
      await stage.replicas[0]?.ask('fill', { count: THINGS, bytes });
      await stage.load.ask('meet', { ports: started.map(({ port }) => port), etcd, filled: THINGS });
    } catch (error) {
      await stage.end();
      throw error;
    }
    return stage;
  }

  /** Returns the number of the first of so many changes. */
  take(count: number): number {
    const from = this.#next;
    this.#next += count;
    return from;
  }

  /** What a piece of work took. */
  async cost<T>(work: () => Promise<T>): Promise<{ readonly cost: Cost; readonly result: T }> {
    await this.#took();
    const before = processorMsOf(this.#pid);
    const result = await work();
    const etcd = processorMsOf(this.#pid) - before;
    return { cost: { replicas: await this.#took(), etcd }, result };
  }

  async memory(): Promise<{ readonly heap: readonly number[]; readonly resident: readonly number[]; readonly etcd: number }> {
    const all = await Promise.all(this.replicas.map((each) => each.ask('memory', {})));
    return {
      heap: all.map(({ heap }) => heap),
      resident: all.map(({ resident }) => resident),
      etcd: residentBytesOf(this.#pid),
    };
  }

  async end(): Promise<void> {
    await Promise.all([this.load, ...this.replicas].map((each) => each.kill()));
    await this.#etcd.stop();
  }

  get #pid(): number {
    return this.#etcd.pid;
  }

  #took(): Promise<number[]> {
    return Promise.all(this.replicas.map((each) => each.ask('took', {})));
  }
}
