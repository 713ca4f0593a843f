import { Child, type ChildOptions } from './child.ts';
import { median, pairedRatios } from './stats.ts';
import type { Entry, Figure, Queue, Settings, Shape, Workload } from './workload.ts';

/** A contender's row in a table. The ratio is the median of its ratios to the reference, round by round. */
export interface Row {
  readonly contender: string;
  readonly queue: Queue;
  readonly rounds: readonly number[];
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly ratio: number | null;
  readonly ratioMin: number | null;
  readonly ratioMax: number | null;
}

export interface Result {
  readonly workload: string;
  readonly shape: Shape;
  readonly unit: string;
  readonly better: Figure['better'];
  readonly reference: string;
  readonly rows: readonly Row[];
  readonly leftOut: readonly { readonly contender: string; readonly why: string }[];
  readonly charted?: boolean;
}

export interface CompareOptions extends Omit<ChildOptions, 'limitMs'> {
  readonly rounds: number;
  readonly settings: Settings;
  /** Which contenders take part. */
  readonly takesPart: (entry: Entry) => boolean;
  /** Contenders that are unavailable, and why. */
  readonly absent?: ReadonlyMap<string, string> | undefined;
  readonly progress: (what: string) => void;
  /** Whether the rounds so far say enough; asked after some of them. Default: never. */
  readonly enough?: (results: readonly Result[]) => boolean;
}

/** So many rounds are made in any case. */
const LEAST_ROUNDS = 5;
const LIMIT_MS = 120_000;

interface Player {
  readonly entry: Entry;
  readonly child: Child;
  readonly rounds: (readonly number[])[];
  ready: boolean;
}

/**
 * The order of contenders in a round. The first one changes from round to round, and every other round is reversed. So what a
 * process leaves behind, such as an ongoing garbage collection, does not always affect the same contender.
 */
export function turnsOf(round: number, players: number): number[] {
  const step = round % 2 === 0 ? 1 : -1;
  return Array.from({ length: players }, (_, turn) => (((round + step * turn) % players) + players) % players);
}

/**
 * Lets contenders take turns at one shape of a workload.
 *
 * Each has a process of its own, which is started fresh and warmed up before the first round. In each round, each contender runs
 * once while the others wait. A wrong answer ends the comparison.
 */
export async function compare(workload: Workload, shape: Shape, options: CompareOptions): Promise<Result[]> {
  const { absent = new Map(), progress, settings } = options;
  const rounds = Math.min(options.rounds, workload.mostRounds ?? options.rounds);
  const entries = workload.entries(shape).filter(options.takesPart);
  const leftOut = entries.flatMap(({ name }) => {
    const why = absent.get(name);
    return why === undefined ? [] : [{ contender: name, why }];
  });
  const players: Player[] = [];
  try {
    for (const entry of entries) {
      if (!absent.has(entry.name))
        players.push({ entry, child: new Child({ ...options, limitMs: LIMIT_MS }), rounds: [], ready: false });
    }
    const warmUp = async (player: Player): Promise<void> => {
      const { entry, child } = player;
      progress(`warming up ${entry.name}`);
      const reply = await child.ask({ do: 'prepare', workload: workload.name, contender: entry.name, shape, settings });
      if (reply.is === 'failed') throw new Error(`${workload.name}, ${entry.name}: ${reply.why}`);
      if (reply.is === 'left out') leftOut.push({ contender: entry.name, why: reply.why });
      player.ready = reply.is === 'ready';
      if (!player.ready) await child.end();
    };
    const cold = [...players];
    const warmUpRest = async (): Promise<void> => {
      for (let player = cold.shift(); player !== undefined; player = cold.shift()) await warmUp(player);
    };
    // Nothing is timed yet, so two may share the machine.
    await Promise.all([warmUpRest(), warmUpRest()]);
    const ready = players.filter((player) => player.ready);
    const results = (): Result[] =>
      workload.figures(shape).map((figure, at) => toResult(workload, shape, { figure, at, players: ready, leftOut }));
    for (let round = 0; round < rounds; round++) {
      for (const turn of turnsOf(round, ready.length)) {
        const { entry, child, rounds: values } = ready[turn] as Player;
        progress(`round ${round + 1} of ${rounds}, ${entry.name}`);
        const reply = await child.ask({ do: 'round' });
        if (reply.is !== 'values') throw new Error(`${workload.name}, ${entry.name}: ${'why' in reply ? reply.why : reply.is}`);
        values.push(reply.values);
      }
      if (round + 1 >= LEAST_ROUNDS && options.enough?.(results())) break;
    }
    return results();
  } finally {
    await Promise.all(players.map(({ child }) => child.end()));
  }
}

function toResult(
  { name, reference }: Workload,
  shape: Shape,
  { figure, at, players, leftOut }: { figure: Figure; at: number; players: readonly Player[]; leftOut: Result['leftOut'] },
): Result {
  const roundsOf = ({ rounds }: Player): number[] => rounds.map((values) => values[at] as number);
  const other = players.find(({ entry }) => entry.name === reference);
  const rows = players.map((player): Row => {
    const rounds = roundsOf(player);
    const ratios = other === undefined ? [] : pairedRatios(rounds, roundsOf(other));
    return {
      contender: player.entry.name,
      queue: player.entry.queue,
      rounds,
      median: median(rounds),
      min: Math.min(...rounds),
      max: Math.max(...rounds),
      ratio: ratios.length === 0 ? null : median(ratios),
      ratioMin: ratios.length === 0 ? null : Math.min(...ratios),
      ratioMax: ratios.length === 0 ? null : Math.max(...ratios),
    };
  });
  const { unit, better, charted } = figure;
  const told = { workload: name, shape: { ...shape, ...figure.shape }, unit, better, reference, rows, leftOut };
  return charted ? { ...told, charted } : told;
}
