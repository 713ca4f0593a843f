import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { oneNumber, parseOptions, UsageError } from '../arguments.ts';
import { InputError, readReport } from '../chart-input.ts';
import { BENCH } from '../paths.ts';
import { Impossible, planOf, type Wanted } from './capacity.ts';
import { checksOf } from './checks.ts';
import { checksText, planText, unitsText } from './text.ts';
import { Figures, unitsOf } from './units.ts';

/** The figures of the stack. */
export const FIGURES: string = fileURLToPath(new URL('results/stack-figures.json', BENCH));

/** A million clients, each of which is told of something once in five seconds. */
export const MILLION: Wanted = {
  ...{ clients: 1_000_000, changes: 200, bytes: 1_000, concerns: 1_000 },
  ...{ watchSeconds: 450, starts: 100, listed: 100, objects: 100_000 },
  ...{ share: 0.5, memoryBytes: 2e9, members: 3 },
};

const USAGE = `Usage: npm run plan -- [options]

How many replicas of an API server on one etcd a number of clients needs, by the costs in bench/results/stack-figures.json.
docs/scaling.md has the formula and what it assumes.

Options:
  --clients 1000000     clients, each with one watch
  --changes 200         writes per second
  --bytes 1000          bytes of an object
  --concerns 1000       clients that a change concerns
  --watch-seconds 450   how long a watch lasts until its client opens the next one
  --starts 100          clients per second that begin with a list
  --listed 100          objects in such a list
  --objects 100000      objects in all
  --percent 50          of its core that a replica may use
  --memory-mb 2000      memory that a replica may use
  --members 3           members of etcd
  --figures FILE        other figures: npm run bench -- storm replicas --json FILE
  --help`;

const number = (fallback: number) => ({ type: 'string', default: String(fallback) }) as const;

/** The whole output. */
export function output(report: string, wanted: Wanted): string {
  const figures = new Figures(readReport(report));
  const units = unitsOf(figures);
  return [unitsText(units), checksText(checksOf(figures, units)), planText(wanted, planOf(wanted, units))].join('\n\n');
}

/** Prints a plan for what the command line says. */
export function main(): void {
  const { values } = parseOptions({
    options: {
      clients: number(MILLION.clients),
      changes: number(MILLION.changes),
      bytes: number(MILLION.bytes),
      concerns: number(MILLION.concerns),
      'watch-seconds': number(MILLION.watchSeconds),
      starts: number(MILLION.starts),
      listed: number(MILLION.listed),
      objects: number(MILLION.objects),
      percent: number(MILLION.share * 100),
      'memory-mb': number(MILLION.memoryBytes / 1e6),
      members: number(MILLION.members),
      figures: { type: 'string', default: FIGURES },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const of = (name: Exclude<keyof typeof values, 'help' | 'figures'>): number => oneNumber(name, values[name]);
  const wanted: Wanted = {
    ...{ clients: of('clients'), changes: of('changes'), bytes: of('bytes'), concerns: of('concerns') },
    ...{ watchSeconds: of('watch-seconds'), starts: of('starts'), listed: of('listed'), objects: of('objects') },
    ...{ share: of('percent') / 100, memoryBytes: of('memory-mb') * 1e6, members: of('members') },
  };
  try {
    console.log(output(readFileSync(values.figures, 'utf8'), wanted));
  } catch (error) {
    const isTold = error instanceof Impossible || error instanceof InputError;
    throw isTold ? new UsageError(`plan: ${error.message}`) : error;
  }
}
