import type { Result } from './compare.ts';
import { median, middleHalf, pairedRatios } from './stats.ts';
import type { Shape, Workload } from './workload.ts';

/** A floor of `budgets.json`. */
export interface Budget {
  readonly name: string;
  readonly workload: string;
  /** The shape of the table with the row. */
  readonly shape: Shape;
  readonly row: string;
  /** The row to divide by; of several, the best one. Without it, the row's ownState figure counts. */
  readonly against?: string | readonly string[];
  /** The table of the other row, if it is another one of the same rounds. */
  readonly againstShape?: Shape;
  readonly atLeast?: number;
  readonly atMost?: number;
  /** Tolerance for noise, as a share. */
  readonly slack?: number;
  readonly why?: string;
}

export type Verdict = 'holds' | 'holds, with slack' | 'BELOW' | 'not measured' | '';

export interface Judgement {
  readonly budget: Budget;
  readonly measured: number;
  /** The middle half of the rounds. */
  readonly from: number;
  readonly to: number;
  readonly verdict: Verdict;
  readonly note: string;
  /** Whether it is not measured because its ownState row is missing, and not the row to compare with. */
  readonly ownIsMissing: boolean;
  /** How many times it was measured until then. */
  readonly times: number;
}

export function hasFloor({ atLeast, atMost }: Budget): boolean {
  return atLeast !== undefined || atMost !== undefined;
}

/**
 * Whether the check fails because of it. The row to compare with may be missing: Go is not installed everywhere, and a peer may
 * be too slow. The floor's ownState row may not be missing: then nothing is known.
 */
export function fails({ budget, verdict, ownIsMissing }: Judgement, absent: ReadonlyMap<string, string>): boolean {
  return verdict === 'BELOW' || (hasFloor(budget) && ownIsMissing && !absent.has(budget.row));
}

function same(a: Shape, b: Shape): boolean {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => a[key] === b[key]);
}

/** Returns the shape that a workload runs for a table, without what the figures add to it. */
export function runShape(workload: Workload, shape: Shape): Shape {
  const added = new Set(workload.figures(shape).flatMap((figure) => Object.keys(figure.shape)));
  return Object.fromEntries(Object.entries(shape).filter(([key]) => !added.has(key)));
}

export function rowsOf({ row, against = [] }: Budget): readonly string[] {
  return [row, ...(typeof against === 'string' ? [against] : against)];
}

/** Returns the row's figures, or their ratios to the best other row, round by round. Undefined if a row is missing. */
function figuresOf(budget: Budget, results: readonly Result[]): readonly number[] | undefined {
  const tableAt = (shape: Shape): Result[] =>
    results.filter((each) => each.workload === budget.workload && same(each.shape, shape));
  const roundsOf = (tables: readonly Result[], name: string): number[] =>
    tables.flatMap(({ rows }) => rows.find(({ contender }) => contender === name)?.rounds ?? []);
  const tables = tableAt(budget.shape);
  const own = roundsOf(tables, budget.row);
  if (own.length === 0) return undefined;
  if (budget.against === undefined) return own;
  const otherTables = budget.againstShape === undefined ? tables : tableAt(budget.againstShape);
  const others = rowsOf(budget)
    .slice(1)
    .map((name) => roundsOf(otherTables, name))
    .filter((rounds) => rounds.length > 0);
  if (others.length === 0) return undefined;
  const lower = tables[0]?.better === 'lower';
  const best = others.reduce((a, b) => (lower === median(b) < median(a) ? b : a));
  return pairedRatios(own, best);
}

/** Compares a floor with what was measured at one time after another: with the first of them at which it holds, or with the last. */
export function judgeTimes(budget: Budget, times: readonly (readonly Result[])[]): Judgement {
  const judgements = times.map((results, at) => ({ ...judge(budget, results), times: at + 1 }));
  const measured = judgements.filter(({ verdict }) => verdict !== 'not measured');
  return measured.find(({ verdict }) => verdict !== 'BELOW') ?? measured.at(-1) ?? judgements.at(-1) ?? judge(budget, []);
}

/** Compares a floor with one measurement. */
export function judge(budget: Budget, results: readonly Result[]): Judgement {
  const figures = figuresOf(budget, results);
  if (figures === undefined) {
    const missing = results.flatMap(({ leftOut }) => leftOut).filter(({ contender }) => rowsOf(budget).includes(contender));
    const note = missing.map(({ contender, why }) => `${contender}: ${why}`)[0] ?? 'a row is missing';
    const ownIsMissing = !results.some(({ rows }) => rows.some(({ contender }) => contender === budget.row));
    return {
      budget,
      measured: Number.NaN,
      from: Number.NaN,
      to: Number.NaN,
      verdict: 'not measured',
      note,
      ownIsMissing,
      times: 1,
    };
  }
  const measured = median(figures);
  const [from, to] = middleHalf(figures);
  return { budget, measured, from, to, verdict: verdictOf(budget, measured), note: '', ownIsMissing: false, times: 1 };
}

/** How far the worse end of the middle half of the rounds is from a floor that needs no more of them. */
const ROOM = 1.2;

/** Whether more rounds would hardly change what is said of a floor: most of those that were made hold it, with room. */
export function isSettled({ budget, from, to, verdict }: Judgement): boolean {
  if (!hasFloor(budget) || verdict === 'not measured') return true;
  const { atLeast, atMost } = budget;
  return (atLeast === undefined || from >= atLeast * ROOM) && (atMost === undefined || to * ROOM <= atMost);
}

function verdictOf(budget: Budget, measured: number): Verdict {
  const { atLeast, atMost, slack = 0 } = budget;
  const within = (share: number): boolean =>
    (atLeast === undefined || measured >= atLeast * (1 - share)) && (atMost === undefined || measured <= atMost * (1 + share));
  if (!hasFloor(budget)) return '';
  if (within(0)) return 'holds';
  return within(slack) ? 'holds, with slack' : 'BELOW';
}
