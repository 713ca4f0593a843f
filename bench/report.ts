import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname } from 'node:path';
import type { Result } from './compare.ts';
import type { Shape } from './workload.ts';

/** The JSON file from which charts are drawn. */
export interface Report {
  readonly node: string;
  readonly cpu: string;
  readonly cores: number;
  readonly date: string;
  readonly workloads: readonly Result[];
}

export function toReport(workloads: readonly Result[]): Report {
  const processors = cpus();
  return {
    node: process.version,
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    date: new Date().toISOString(),
    workloads,
  };
}

export function writeReport(path: string, report: Report): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(report, null, 1)}\n`);
}

/** `watchers 100, burst 64` */
export function nameOf(shape: Shape): string {
  return Object.entries(shape)
    .map(([key, value]) => `${key} ${typeof value === 'number' ? value.toLocaleString('en') : value}`)
    .join(', ');
}

/** Formats three significant digits. */
export function digits(value: number | null): string {
  if (value === null || Number.isNaN(value)) return '-';
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** Aligns columns. The first two are text; the others are numbers. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) => row.map((cell, at) => (at < 2 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join('  '))
    .map((line) => `  ${line.trimEnd()}`)
    .join('\n');
}

/** Formats a table. What was left out is not repeated if the previous table is of the same rounds. */
export function tableOf(result: Result, before?: Result): string {
  const { workload, shape, unit, better, reference, rows, leftOut } = result;
  const best = [...rows].sort((a, b) => (better === 'higher' ? b.median - a.median : a.median - b.median));
  const lines = best.map((row) => [
    row.contender,
    row.queue,
    digits(row.median),
    digits(row.min),
    digits(row.max),
    digits(row.ratio),
    row.ratio === null ? '' : `${digits(row.ratioMin)}-${digits(row.ratioMax)}`,
  ]);
  const missing = (leftOut === before?.leftOut ? [] : leftOut)
    .map(({ contender, why }) => `\n  left out: ${contender}: ${why}`)
    .join('');
  const title = `${workload}: ${nameOf(shape)} - ${unit}, ${better} is better`;
  return `${title}\n${columns([['', 'queue', 'median', 'min', 'max', `/ ${reference}`, 'from-to'], ...lines])}${missing}`;
}
