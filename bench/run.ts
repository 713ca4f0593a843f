import { parseArgs } from 'node:util';
import { compare, type Row } from './fanout.ts';

const USAGE = `Usage: npm run bench -- [options]
  --watchers 1,10,100,1000   how many watchers
  --burst 64                 events published in one go: 1,16,64,...
  --rounds 7                 rounds; contenders take turns within each
  --only NAME                contenders whose name contains NAME
  --quick                    3 rounds of less work`;

function numbers(name: string, text: string): number[] {
  const list = text.split(',').map(Number);
  if (list.some((n) => !Number.isSafeInteger(n) || n < 1)) throw new Error(`--${name}: expected whole numbers >= 1, got ${text}`);
  return list;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? (sorted[middle] as number) : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

function table(rows: readonly Row[]): string {
  const reference = median(rows.find(({ name }) => name === 'Node events.on')?.rounds ?? [Number.NaN]);
  const lines = rows.map(({ name, queue, rounds }) => {
    const middle = median(rounds);
    const ratios = `${(middle / reference).toFixed(2).padStart(8)}`;
    return `  ${name.padEnd(30)} ${queue.padEnd(10)} ${middle.toFixed(1).padStart(8)} ${Math.min(...rounds)
      .toFixed(1)
      .padStart(8)} ${Math.max(...rounds)
      .toFixed(1)
      .padStart(8)} ${ratios}`;
  });
  return [
    `  ${'million deliveries per second'.padEnd(30)} ${'queue'.padEnd(10)} ${'median'.padStart(8)} ${'least'.padStart(8)} ${'most'.padStart(8)} ${'/ events.on'.padStart(8)}`,
    ...lines,
  ].join('\n');
}

const { values } = parseArgs({
  options: {
    watchers: { type: 'string', default: '1,10,100,1000' },
    burst: { type: 'string', default: '1,64' },
    rounds: { type: 'string', default: '7' },
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(USAGE);
} else {
  const rounds = values.quick ? 3 : (numbers('rounds', values.rounds)[0] as number);
  const deliveries = values.quick ? 400_000 : 2_000_000;
  console.log(
    `Node ${process.version}; each figure is the median of ${rounds} rounds; order and completeness are checked in every round`,
  );
  for (const burst of numbers('burst', values.burst)) {
    for (const watchers of numbers('watchers', values.watchers)) {
      console.log(`\n${watchers} watchers, bursts of ${burst}`);
      console.log(table(await compare({ watchers, burst }, { rounds, deliveries, only: values.only })));
    }
  }
}
