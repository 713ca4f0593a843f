import type { Outcome } from './act.ts';

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

/** What became of an informer, in a cell: when it was back, what its handler was not told, and how often it has listed. */
export function cellOf({ againMs, changes, untold, wrong, lists }: Outcome): string {
  const back = againMs === undefined ? '**not back**' : seconds(againMs);
  const stale = wrong === 0 ? '' : `, **${counted(wrong, 'object')} wrong**`;
  const told = untold === 0 ? 'all told' : `${untold} of ${changes} not told`;
  return `${back}${stale}, ${told}${lists === 0 ? '' : `, ${counted(lists, 'list')}`}`;
}

/** A table in Markdown. */
export function tableOf(
  contenders: readonly string[],
  rows: readonly (readonly [name: string, outcomes: readonly Outcome[]])[],
): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const lines = rows.map(([name, outcomes]) => line([name, ...outcomes.map(cellOf)]));
  return [line(['fault', ...contenders]), `|${'---|'.repeat(contenders.length + 1)}`, ...lines].join('\n');
}
