/** What tells one table from another: `{ watchers: 100, burst: 64 }`. */
export type Shape = Readonly<Record<string, number | string>>;

/** What a contender does with events that its consumer does not take. `none`: it has no queue, and calls its consumers. */
export type Queue = 'bounded' | 'unbounded' | 'lossy' | 'none';

/** One of those that are compared, as the tables name it. */
export interface Entry {
  readonly name: string;
  readonly queue: Queue;
}

/** One number that a round brings. Each has a table of its own. */
export interface Figure {
  /** What it adds to the shape: `{ of: 'p99' }`. */
  readonly shape: Shape;
  readonly unit: string;
  readonly better: 'higher' | 'lower';
}

/** What a user asks for on the command line. */
export interface Wanted {
  readonly watchers?: readonly number[] | undefined;
  readonly burst?: readonly number[] | undefined;
  readonly quick: boolean;
}

/** How long things may take. */
export interface Settings {
  readonly warmMs: number;
  readonly roundMs: number;
  /** A contender that needs longer for the least that a round can be is left out. */
  readonly tooSlowMs: number;
}

/** One contender, started, warmed up, and seen to give the right answer. */
export interface Prepared {
  /** One value per figure. Throws when the answer is wrong. */
  round(): Promise<readonly number[]>;
  end?(): Promise<void> | void;
}

/** Something to compare contenders by. The same object serves the process that asks and the ones that work. */
export interface Workload {
  readonly name: string;
  readonly about: string;
  /** The row that the others are divided by. */
  readonly reference: string;
  shapes(wanted: Wanted): readonly Shape[];
  figures(shape: Shape): readonly Figure[];
  entries(shape: Shape): readonly Entry[];
  /** Called in a process of its own. */
  prepare(contender: string, shape: Shape, settings: Settings): Promise<Prepared>;
}

/** Thrown by `prepare` for a contender that cannot take part in a shape: a row that is missing says why. */
export class LeftOut extends Error {}

/** A number of a shape. */
export function numberOf(shape: Shape, key: string): number {
  const value = shape[key];
  if (typeof value !== 'number') throw new Error(`the shape has no number "${key}"`);
  return value;
}
