// npm run bench:jitter -- [options]: bundles the jitter profile from the working tree, and runs it. See run.ts.
import { bundle } from './bundle.mjs';

const { outDir, remove } = await bundle();
process.on('exit', remove);
await import(`${outDir}/run.js`);
