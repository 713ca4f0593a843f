// What becomes of informers when something goes wrong between them and a real kube-apiserver: ours, and that of
// @kubernetes/client-node, on the same faults at the same time. Prints a table in Markdown.
import { readFileSync } from 'node:fs';
import { startApiServer, withoutWatchCache } from '../test/peers/apiserver.ts';
import { builtBinary, HOW } from '../test/peers/binary.mjs';
import { giveUp, oneNumber, parseOptions, UsageError } from './arguments.ts';
import { act, type Outcome } from './cuts/act.ts';
import { CONTENDERS } from './cuts/copies.ts';
import { SCENARIOS, type Scenario } from './cuts/scenarios.ts';
import { tableOf } from './cuts/table.ts';
import { BENCH } from './paths.ts';

const USAGE = `Usage: npm run bench:cuts -- [options]

Needs a kube-apiserver: ${HOW}.

Options:
  --only TEXT    only faults whose name contains TEXT
  --limit-s 45   how long an informer has to recover from each
  --help`;

/** Those that leave the server as it is run at the same time. */
const AT_ONCE = 7;

async function main(): Promise<void> {
  const { values } = parseOptions({
    options: {
      only: { type: 'string', default: '' },
      'limit-s': { type: 'string', default: '45' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const limitMs = oneNumber('limit-s', values['limit-s']) * 1_000;
  const scenarios = SCENARIOS.filter(({ name }) => name.includes(values.only));
  if (scenarios.length === 0) throw new UsageError(`--only: expected a part of a fault's name, got "${values.only}"`);
  if (builtBinary() === undefined) throw new UsageError(`there is no kube-apiserver: ${HOW}`);
  const outcomes = await actAll(scenarios, limitMs);
  const { version } = JSON.parse(readFileSync(new URL('node_modules/@kubernetes/client-node/package.json', BENCH), 'utf8'));
  console.log(`Node ${process.version}, @kubernetes/client-node ${version}, ${limitMs / 1_000} s to recover\n`);
  console.log(
    tableOf(
      CONTENDERS.map(({ name }) => name),
      scenarios.map((each) => [each.name, outcomes.get(each) as Outcome[]]),
    ),
  );
}

async function actAll(scenarios: readonly Scenario[], limitMs: number): Promise<Map<Scenario, Outcome[]>> {
  const server = await startApiServer({ flags: [withoutWatchCache('configmaps')] });
  const outcomes = new Map<Scenario, Outcome[]>();
  const run = async (scenario: Scenario): Promise<void> => {
    process.stderr.write(`${scenario.name}\n`);
    const namespace = `cuts-${SCENARIOS.indexOf(scenario)}`;
    outcomes.set(scenario, await act(scenario, { server, namespace, limitMs }));
  };
  try {
    const together = scenarios.filter(({ isAlone }) => !isAlone);
    const queue = together.values();
    const worker = async (): Promise<void> => {
      for (const scenario of queue) await run(scenario);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    for (const scenario of scenarios) if (scenario.isAlone) await run(scenario);
    return outcomes;
  } finally {
    await server.stop();
  }
}

process.on('unhandledRejection', (error) => {
  process.stderr.write(`a promise was rejected, and nobody took it: ${error}\n`);
});
main().then(() => process.exit(0), giveUp);
