import type { Group } from './chart-bars.ts';
import type { ChartInput, ChartRow, ChartTable } from './chart-input.ts';
import { figure } from './chart-parts.ts';

export const WHISKERS = ', whiskers from the least to the most';

/** One of the charts. */
export interface Chart {
  /** File name, without extension. */
  readonly id: string;
  /** What the report must contain. */
  readonly needs: string;
  /** Returns undefined if the report does not contain it. */
  draw(input: ChartInput, id: string): string | undefined;
}

export function tablesOf({ workloads }: ChartInput, workload: string): ChartTable[] {
  return workloads.filter((table) => table.workload === workload && table.rows.length > 0);
}

export function aim({ unit, better }: ChartTable): string {
  return `${unit}, ${better} is better`;
}

function bestFirst({ better }: ChartTable, rows: readonly ChartRow[]): ChartRow[] {
  return [...rows].sort((a, b) => (better === 'higher' ? b.median - a.median : a.median - b.median));
}

export function times(ratio: number | null): string {
  return ratio === null ? '' : `${figure(ratio)}×`;
}

/** Converts a table to groups of one bar each, with the ratio to the reference. */
export function ranked(table: ChartTable): Group[] {
  return bestFirst(table, table.rows).map((row) => ({ ...row, bars: [row], note: times(row.ratio) }));
}
