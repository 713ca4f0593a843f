import { fileURLToPath } from 'node:url';
import { BENCH } from '../paths.ts';
import type { Entry } from '../workload.ts';

/** The Go original: client-go's SharedInformer, with JSON on the wire. */
export const CLIENT_GO: Entry = { name: 'client-go', queue: 'unbounded' };

export const CLIENT_GO_FOLDER: string = fileURLToPath(new URL('stack/go/', BENCH));
export const CLIENT_GO_PROGRAM: string = `${CLIENT_GO_FOLDER}.build/informer`;
