import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

/** A watch stream as an API server would send it: 162 events, one per line. The benchmarks use the same file; its README tells more. */
export const WATCH_STREAM: Buffer = gunzipSync(readFileSync(new URL('../bench/data/watch-stream.ndjson.gz', import.meta.url)));
