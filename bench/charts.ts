import { drawCharts } from './chart-command.ts';

// node bench/start.mjs charts IN.json OUTDIR
process.exitCode = drawCharts(process.argv.slice(2), { out: console.log, err: console.error });
