import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { InputError, readReport } from './chart-input.ts';
import { CHARTS } from './chart-set.ts';

const USAGE = `Usage: node bench/start.mjs charts IN.json ... OUTDIR

Draws SVG charts from the figures that npm run bench has written. Each chart is drawn from the first file that has its figures:
${CHARTS.map(({ id, needs }) => `  ${`${id}.svg`.padEnd(21)} ${needs}`).join('\n')}`;

/** Draws the charts that the reports have data for. Returns the exit code: 2 for invalid arguments or an invalid file. */
export function drawCharts(args: readonly string[], say: { out(line: string): void; err(line: string): void }): number {
  if (args.includes('--help')) {
    say.out(USAGE);
    return 0;
  }
  const [folder, ...files] = args.toReversed();
  if (folder === undefined || files.length === 0) {
    say.err('charts: expected IN.json ... OUTDIR; --help tells more');
    return 2;
  }
  let file = '';
  try {
    const inputs = files.reverse().map((each) => {
      file = each;
      return readReport(readFileSync(each, 'utf8'));
    });
    mkdirSync(folder, { recursive: true });
    for (const chart of CHARTS) {
      const { id, needs } = chart;
      const [svg] = inputs.flatMap((input) => chart.draw(input) ?? []);
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
