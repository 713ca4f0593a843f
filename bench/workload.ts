/** What distinguishes one table from another: `{ watchers: 100, burst: 64 }`. */
export type Shape = Readonly<Record<string, number | string>>;

/**
 * What a contender does with events that its consumer does not take. `none`: there is no queue, and consumers are called
 * directly.
 */
export type Queue = 'bounded' | 'unbounded' | 'lossy' | 'none';

/** A contender, as the tables name it. */
export interface Entry {
  readonly name: string;
  readonly queue: Queue;
}

/** A number measured in each round. Each figure has its own table. */
export interface Figure {
  /** What the figure adds to the shape: `{ of: 'p99' }`. */
  readonly shape: Shape;
  readonly unit: string;
  readonly better: 'higher' | 'lower';
  /** It is a point of a chart: in the file, but not among the tables, which would be too many. */
  readonly charted?: boolean;
}

/** Options of the command line. */
export interface Wanted {
  readonly watchers?: readonly number[] | undefined;
  readonly burst?: readonly number[] | undefined;
  readonly quick: boolean;
}

/** Durations. */
export interface Settings {
  readonly warmMs: number;
  readonly roundMs: number;
  /** A contender that takes longer for the smallest possible round is left out. */
  readonly tooSlowMs: number;
}

/** A contender that is started, warmed up, and checked. */
export interface Prepared {
  /** Returns one value per figure. Throws for a wrong answer. */
  round(): Promise<readonly number[]>;
  end?(): Promise<void> | void;
}

/** A task by which contenders are compared. Both the main process and the workers use it. */
export interface Workload {
  readonly name: string;
  readonly about: string;
  /** The row that others are divided by. */
  readonly reference: string;
  /** The most rounds, for a workload whose rounds take seconds. */
  readonly mostRounds?: number;
  shapes(wanted: Wanted): readonly Shape[];
  figures(shape: Shape): readonly Figure[];
  entries(shape: Shape): readonly Entry[];
  /** Called in its own process. */
  prepare(contender: string, shape: Shape, settings: Settings): Promise<Prepared>;
}

/** Thrown by `prepare` if a contender cannot take part in a shape. The table gives the reason. */
export class LeftOut extends Error {}

/** Returns a number of a shape. */
export function numberOf(shape: Shape, key: string): number {
  const value = shape[key];
  if (typeof value !== 'number') throw new Error(`the shape has no number "${key}"`);
  return value;
}
