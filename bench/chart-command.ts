import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { InputError, readReport } from './chart-input.ts';
import { CHARTS } from './chart-set.ts';

const USAGE = `Usage: npm run bench:charts -- IN.json OUTDIR

Draws SVG charts from the figures that npm run bench has written:
  fanout-watchers.svg   fan-out, bursts of 64, against the number of watchers
  fanout-100.svg        fan-out to 100 watchers, bursts of 64
  laggards-full.svg     publishing while watchers lag whose queues are full
  laggards-filling.svg  publishing while watchers lag whose queues fill
  decode.svg            decoding a watch stream`;

/** Output for the user. */
export interface Say {
  out(line: string): void;
  err(line: string): void;
}

/** Draws the charts that the report has data for. Returns the exit code: 2 for invalid arguments or an invalid file. */
export function drawCharts(args: readonly string[], say: Say): number {
  if (args.includes('--help')) {
    say.out(USAGE);
    return 0;
  }
  const [file, folder, extra] = args;
  if (file === undefined || folder === undefined || extra !== undefined) {
    say.err('charts: expected IN.json OUTDIR; --help tells more');
    return 2;
  }
  try {
    const input = readReport(readFileSync(file, 'utf8'));
    mkdirSync(folder, { recursive: true });
    for (const { id, needs, draw } of CHARTS) {
      const svg = draw(input, id);
      const path = join(folder, `${id}.svg`);
      if (svg === undefined) say.err(`left out: ${path}: the report has no ${needs}`);
      else {
        writeFileSync(path, svg);
        say.out(path);
      }
    }
    return 0;
  } catch (error) {
    const why = error as NodeJS.ErrnoException;
    if (!(why instanceof InputError) && why.code === undefined) throw error;
    say.err(`charts: ${why instanceof InputError ? `${file}: ` : ''}${why.message.replaceAll('\n', ' ')}`);
    return 2;
  }
}
