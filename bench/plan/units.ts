/** What things cost, read from the figures that `npm run bench -- storm replicas` has written. */
import type { ChartInput, ChartTable } from '../chart-input.ts';
import { InputError } from '../chart-input.ts';

/** Processor time in µs, memory in bytes. Measured with one replica, but for `etcdWatch`. */
export interface Units {
  /** A replica learns of a change of 1,000 bytes from etcd. */
  readonly event: number;
  /** A replica tells one client of it. Each change is sent by itself: with bursts it costs less. */
  readonly delivery: number;
  /** What each further byte adds to a delivery. */
  readonly byte: number;
  /** A replica takes a write, beside the event that follows from it. */
  readonly write: number;
  /** A replica lists one object of 1,000 bytes. */
  readonly listed: number;
  /** A client opens a watch, at a version that the replica has, and ends it. */
  readonly join: number;
  /** etcd takes a write. */
  readonly etcdWrite: number;
  /** etcd tells one replica of it. */
  readonly etcdWatch: number;
  /** etcd says how far it is, for a list without a version. */
  readonly etcdList: number;
  /** A watcher of a replica that waits. */
  readonly watcherBytes: number;
  /** A replica without watchers: all that is resident. */
  readonly replicaBytes: number;
}

/** Bytes of an object with which everything but `byte` is measured. */
export const UNIT_BYTES = 1_000;
/** How many objects a measured list has. */
export const LISTED = 500;

/** A measured figure: the medians of one, two and three replicas. */
export type ByReplicas = readonly [number, number, number];

/** Finds figures in a report. */
export class Figures {
  readonly #tables: readonly ChartTable[];

  constructor({ workloads }: ChartInput) {
    this.#tables = workloads;
  }

  /** A figure of the workload `replicas`. @throws {InputError} if it is not there. */
  replicas(shape: ChartTable['shape']): ByReplicas {
    const rows = this.#table('replicas', shape).rows;
    const medianOf = (count: number): number => {
      const row = rows.find(({ contender }) => contender.startsWith(`watchmux, ${count} replica`));
      if (row === undefined) throw new InputError(`no figure of ${count} replicas for ${JSON.stringify(shape)}`);
      return row.median;
    };
    return [medianOf(1), medianOf(2), medianOf(3)];
  }

  /** A figure of the workload `storm`, of watchmux. @throws {InputError} if it is not there. */
  storm(shape: ChartTable['shape']): number {
    const row = this.#table('storm', shape).rows.find(({ contender }) => contender === 'watchmux');
    if (row === undefined) throw new InputError(`no figure of watchmux for ${JSON.stringify(shape)}`);
    return row.median;
  }

  /** The one table whose shape has all of this. */
  shapeOf(workload: string, shape: ChartTable['shape']): ChartTable['shape'] {
    return this.#table(workload, shape).shape;
  }

  #table(workload: string, shape: ChartTable['shape']): ChartTable {
    const has = (table: ChartTable): boolean => Object.entries(shape).every(([key, value]) => table.shape[key] === value);
    const found = this.#tables.filter((table) => table.workload === workload && has(table));
    const [table] = found;
    if (table === undefined || found.length > 1) {
      throw new InputError(`${found.length} tables of ${workload} with ${JSON.stringify(shape)} instead of one`);
    }
    return table;
  }
}

/** How many watchers, and bytes, the measured changes have. */
export const FEW = 6;
export const MANY = 600;
export const LONG_BYTES = 10_000;

export function unitsOf(figures: Figures): Units {
  const changeOf = (watchers: number, objectBytes: number): number =>
    figures.replicas({ what: 'watch', watchers, objectBytes, of: 'event' })[0];
  const [few, many, long] = [changeOf(FEW, UNIT_BYTES), changeOf(MANY, UNIT_BYTES), changeOf(MANY, LONG_BYTES)];
  const delivery = (many - few) / (MANY - FEW);
  const event = few - FEW * delivery;
  const [one, , three] = figures.replicas({ what: 'write', of: 'etcd' });
  const etcdWatch = Math.max(0, (three - one) / 2);
  return {
    event,
    delivery,
    byte: (long - many) / MANY / (LONG_BYTES - UNIT_BYTES),
    write: figures.replicas({ what: 'write', of: 'replicas' })[0] - event,
    listed: (figures.replicas({ what: 'list', of: 'list' })[0] * 1_000) / LISTED,
    join: figures.replicas({ what: 'join', of: 'watch' })[0],
    etcdWrite: one - etcdWatch,
    etcdWatch,
    etcdList: figures.replicas({ what: 'list', of: 'etcd' })[0],
    watcherBytes: figures.replicas({ what: 'join', of: 'watcher' })[0] * 1e3,
    replicaBytes: figures.replicas({ what: 'join', of: 'resident' })[0] * 1e6,
  };
}
