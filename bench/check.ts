import { readFileSync } from 'node:fs';
import { giveUp, oneNumber, parseOptions, UsageError } from './arguments.ts';
import { type Budget, fails, hasFloor, isSettled, type Judgement, judge, judgeTimes, rowsOf, runShape } from './budgets.ts';
import { killAll } from './child.ts';
import { compare, type Result } from './compare.ts';
import { absentGo } from './go-programs.ts';
import { BENCH } from './paths.ts';
import { Progress } from './progress.ts';
import { columns, digits, nameOf } from './report.ts';
import type { Shape, Workload } from './workload.ts';
import { workloadOf } from './workloads.ts';

const USAGE = `Usage: npm run bench:check -- [options]

Measures what bench/budgets.json sets floors for, and nothing else, and exits with 1 if one does not hold, or if a row of
ours that it is about is missing.
A floor that does not hold is measured again when the rest has been measured, four times at most, and each time counts by
itself: it fails if it holds at none of them.

Options:
  --only TEXT    only floors whose name contains TEXT
  --rounds 11    rounds; five will do where a floor has a fifth of room in most of them
  --round-ms 60  how long a contender's turn is, about
  --help`;

/** Floors that share one shape of one workload, and the rows that they need. */
interface Run {
  readonly workload: Workload;
  readonly shape: Shape;
  readonly budgets: Budget[];
  /** What was measured, time by time. */
  readonly times: (readonly Result[])[];
}

function runsFor(budgets: readonly Budget[]): Run[] {
  const runs = new Map<string, Run>();
  for (const budget of budgets) {
    const workload = workloadOf(budget.workload);
    const shape = runShape(workload, budget.shape);
    const key = `${workload.name} ${nameOf(shape)}`;
    const run = runs.get(key);
    if (run === undefined) runs.set(key, { workload, shape, budgets: [budget], times: [] });
    else run.budgets.push(budget);
  }
  return [...runs.values()];
}

/**
 * Who shares the machine's caches and memory may spoil everything that is measured for minutes, so the next time comes later. A floor
 * that is really broken is broken each time.
 */
const MOST_AGAIN = 4;

const SETTINGS = { warmMs: 250, tooSlowMs: 3_000 };

interface MeasureOptions {
  readonly rounds: number;
  readonly roundMs: number;
  readonly absent: ReadonlyMap<string, string>;
  readonly progress: Progress;
}

function titleOf({ workload, shape }: Run): string {
  return `${workload.name}: ${nameOf(shape)}`;
}

function measure({ workload, shape, budgets }: Run, { rounds, roundMs, absent, progress }: MeasureOptions): Promise<Result[]> {
  const names = new Set(budgets.flatMap(rowsOf));
  return compare(workload, shape, {
    rounds,
    settings: { ...SETTINGS, roundMs },
    takesPart: ({ name }) => names.has(name),
    absent,
    progress: (what) => progress.step(what),
    enough: (results) => budgets.every((budget) => isSettled(judge(budget, results))),
  });
}

function tableOf(judgements: readonly Judgement[]): string {
  const lines = judgements.map(({ budget, measured, from, to, verdict, note, times }) => [
    budget.name,
    verdict || 'told only',
    budget.atLeast !== undefined ? `>= ${budget.atLeast}` : budget.atMost !== undefined ? `<= ${budget.atMost}` : '',
    budget.slack === undefined ? '' : `${Math.round(budget.slack * 100)} %`,
    digits(measured),
    Number.isNaN(from) ? note : `${digits(from)}-${digits(to)}`,
    times > 1 ? String(times) : '',
  ]);
  return columns([['', 'verdict', 'floor', 'slack', 'measured', 'middle half', 'times'], ...lines]);
}

function sumOf(judgements: readonly Judgement[]): string {
  const floors = judgements.filter(({ budget }) => hasFloor(budget));
  const below = floors.filter(({ verdict }) => verdict === 'BELOW').length;
  const missing = floors.filter(({ verdict }) => verdict === 'not measured').length;
  return `${floors.length} floors: ${below} below${missing > 0 ? `, ${missing} not measured` : ''}`;
}

async function main(): Promise<number> {
  const { values } = parseOptions({
    options: {
      only: { type: 'string', default: '' },
      rounds: { type: 'string', default: '11' },
      'round-ms': { type: 'string', default: '60' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  const rounds = oneNumber('rounds', values.rounds);
  const roundMs = oneNumber('round-ms', values['round-ms']);
  const all: readonly Budget[] = JSON.parse(readFileSync(new URL('budgets.json', BENCH), 'utf8')).floors;
  const budgets = all.filter(({ name }) => name.includes(values.only));
  if (budgets.length === 0) throw new UsageError(`--only: expected a part of a name in bench/budgets.json, got "${values.only}"`);
  const runs = runsFor(budgets);
  const absent = await absentGo(({ name }) => budgets.some((budget) => rowsOf(budget).includes(name)));
  const progress = new Progress(runs.length);
  const options: MeasureOptions = { rounds, roundMs, absent, progress };
  const isBelow = ({ budgets, times }: Run): boolean => budgets.some((budget) => judgeTimes(budget, times).verdict === 'BELOW');
  for (const run of runs) {
    progress.next(titleOf(run));
    run.times.push(await measure(run, options));
  }
  for (let times = 0; times < MOST_AGAIN; times++) {
    for (const run of runs.filter(isBelow)) {
      progress.again(titleOf(run));
      run.times.push(await measure(run, options));
    }
  }
  const judgements = runs.flatMap(({ budgets, times }) => budgets.map((budget) => judgeTimes(budget, times)));
  progress.clear();
  judgements.sort((a, b) => budgets.indexOf(a.budget) - budgets.indexOf(b.budget));
  console.log(tableOf(judgements));
  console.log(`\n${sumOf(judgements)}`);
  return judgements.some((each) => fails(each, absent)) ? 1 : 0;
}

process.on('exit', killAll);
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));
main().then((code) => process.exit(code), giveUp);
