import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { giveUp, numbers, oneNumber, parseOptions, UsageError } from './arguments.ts';
import { killAll } from './child.ts';
import { type CompareOptions, compare, type Result } from './compare.ts';
import { absentGo } from './go-programs.ts';
import { BENCH } from './paths.ts';
import { Progress } from './progress.ts';
import { nameOf, tableOf, toReport, writeReport } from './report.ts';
import type { Shape, Wanted, Workload } from './workload.ts';
import { WORKLOADS, workloadOf } from './workloads.ts';

const LATEST = fileURLToPath(new URL('results/latest.json', BENCH));

const USAGE = `Usage: npm run bench -- [workload ...] [options]

Workloads, all of them by default:
${WORKLOADS.map(({ name, about }) => `  ${name.padEnd(10)} ${about}`).join('\n')}

Options:
  --watchers 1,100   how many watchers, where a workload has them
  --burst 16,64      how many events are published in one go, where a workload has that
  --only a,b         only contenders whose name contains one of these, e.g. --only watchmux,events.on
  --shape TEXT       only shapes whose name contains this, e.g. --shape "what list"
  --rounds 5         rounds; contenders take turns within each
  --round-ms 40      how long a contender's turn is, about
  --warm-ms 150      how long it warms up before, about, in time of a processor
  --too-slow-ms 300  who takes longer for the first part of a shape is left out
  --quick            fewer rounds, shapes and milliseconds
  --json FILE        where the figures go (bench/results/latest.json)
  --cpu-prof DIR     writes a CPU profile of each contender's process
  --help`;

function parse() {
  const { values, positionals } = parseOptions({
    allowPositionals: true,
    options: {
      watchers: { type: 'string' },
      burst: { type: 'string' },
      only: { type: 'string' },
      shape: { type: 'string', default: '' },
      rounds: { type: 'string' },
      'round-ms': { type: 'string' },
      'warm-ms': { type: 'string' },
      'too-slow-ms': { type: 'string' },
      quick: { type: 'boolean', default: false },
      json: { type: 'string', default: LATEST },
      'cpu-prof': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const number = (name: 'rounds' | 'round-ms' | 'warm-ms' | 'too-slow-ms', usual: number): number =>
    oneNumber(name, values[name] ?? String(usual));
  const { quick } = values;
  const wanted: Wanted = {
    quick,
    watchers: values.watchers === undefined ? undefined : numbers('watchers', values.watchers),
    burst: values.burst === undefined ? undefined : numbers('burst', values.burst),
  };
  const only = values.only?.toLowerCase().split(',');
  return {
    help: values.help,
    only: values.only,
    json: values.json,
    part: values.shape,
    wanted,
    workloads: positionals.length === 0 ? WORKLOADS : positionals.map(workloadOf),
    options: {
      rounds: number('rounds', quick ? 3 : 5),
      settings: {
        roundMs: number('round-ms', 40),
        warmMs: number('warm-ms', quick ? 120 : 150),
        tooSlowMs: number('too-slow-ms', 300),
      },
      takesPart: ({ name }) => only === undefined || only.some((part) => name.toLowerCase().includes(part)),
      profileTo: values['cpu-prof'],
    } satisfies Omit<CompareOptions, 'progress'>,
  };
}

type Table = readonly [Workload, Shape];

/** Throws if `--only` leaves no contender. */
function refuseNobody(
  tables: readonly Table[],
  { takesPart }: Pick<CompareOptions, 'takesPart'>,
  only: string | undefined,
): void {
  const entries = tables.flatMap(([{ entries }, shape]) => entries(shape));
  if (entries.some(takesPart)) return;
  const names = [...new Set(entries.map(({ name }) => name))].join(', ');
  throw new UsageError(`--only: expected parts of these names: ${names}; got "${only}"`);
}

async function main(): Promise<void> {
  const { help, only, json, part, wanted, workloads, options } = parse();
  if (help) {
    console.log(USAGE);
    return;
  }
  const all = workloads.flatMap((workload) => workload.shapes(wanted).map((shape): Table => [workload, shape]));
  const tables = all.filter(([, shape]) => nameOf(shape).includes(part));
  if (tables.length === 0) {
    throw new UsageError(
      `--shape: expected a part of one of these: ${all.map(([, shape]) => nameOf(shape)).join('; ')}; got "${part}"`,
    );
  }
  refuseNobody(tables, options, only);
  const named = new Set(tables.flatMap(([{ entries }, shape]) => entries(shape)));
  const absent = await absentGo((entry) => named.has(entry) && options.takesPart(entry));
  const progress = new Progress(tables.length);
  const results: Result[] = [];
  try {
    for (const [workload, shape] of tables) {
      progress.next(`${workload.name}: ${nameOf(shape)}`);
      results.push(...(await compare(workload, shape, { ...options, absent, progress: (what) => progress.step(what) })));
      writeReport(json, toReport(results));
    }
  } finally {
    // Prints what is finished, even after an error.
    progress.clear();
    print(results, options.rounds);
    if (results.length > 0) console.log(`\nfigures: ${relative(process.cwd(), json)}`);
  }
}

function print(results: readonly Result[], rounds: number): void {
  const { node, cpu, cores } = toReport([]);
  console.log(`Node ${node}, ${cores} cores, ${cpu}`);
  console.log(`median of ${rounds} rounds; ratios are taken round by round; every answer was checked\n`);
  const tables = results.filter(({ charted }) => !charted);
  console.log(tables.map((result, at) => tableOf(result, tables[at - 1])).join('\n\n'));
}

process.on('exit', killAll);
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));
main().catch(giveUp);
