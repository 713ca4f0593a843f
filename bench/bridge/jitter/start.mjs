// npm run bench:jitter -- [options]: bundles and runs the jitter profile. See run.ts.
import { bundle } from './bundle.mjs';

const { outDir, remove } = await bundle();
process.on('exit', remove);
await import(`${outDir}/run.js`);
