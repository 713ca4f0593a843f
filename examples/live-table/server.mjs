// @ts-check
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { createServer as createVite } from 'vite';
import { createHttpHandler, Hub } from 'watchmux/http';

/** @typedef {{ metadata: { namespace: string, name: string }, state: string, progress: number }} Job */
/** @typedef {import('watchmux').WatchEvent<'ADDED' | 'MODIFIED' | 'DELETED', Job>} JobEvent */

/** @type {Map<string, Job>} */
const jobs = new Map();
/** @type {Hub<JobEvent>} A new page first gets the state. */
const hub = new Hub({ snapshot: () => jobs.values() });

/** State and stream change in one step. @param {Job} job */
function put(job) {
  const { name } = job.metadata;
  const type = jobs.has(name) ? 'MODIFIED' : 'ADDED';
  jobs.set(name, job);
  void hub.publish({ type, object: job });
}

/** @param {string} name */
function remove(name) {
  const object = jobs.get(name);
  if (object && jobs.delete(name)) void hub.publish({ type: 'DELETED', object });
}

/** A busy shop floor: jobs are queued, run, and are removed. */
let number = 0;
function work() {
  const queued = [...jobs.values()].filter(({ state }) => state === 'queued');
  if (queued.length < 5) {
    const namespace = ['print', 'cut', 'paint'][number % 3] ?? '';
    put({ metadata: { namespace, name: `job-${++number}` }, state: 'queued', progress: 0 });
  }
  for (const job of jobs.values()) {
    if (job.state === 'running') {
      const progress = Math.min(100, job.progress + 10 + (number % 7));
      put({ ...job, state: progress === 100 ? 'done' : 'running', progress });
    }
  }
  const [next] = queued;
  if (next && [...jobs.values()].filter(({ state }) => state === 'running').length < 4) put({ ...next, state: 'running' });
  const done = [...jobs.values()].filter(({ state }) => state === 'done');
  if (done.length > 10) remove(done[0]?.metadata.name ?? '');
}
for (let count = 0; count < 8; count++) work();
const everyMs = Number(process.env.EVERY ?? 500);
const working = everyMs > 0 ? setInterval(work, everyMs) : undefined;

const watch = createHttpHandler(hub);
const server = createServer((request, response) => {
  if (request.url?.startsWith('/watch')) watch(request, response);
  else if (request.url === '/') response.setHeader('content-type', 'text/html').end(page);
  else vite.middlewares(request, response);
});

// Vite serves the scripts of the page from their sources, without its own client, which would reload the page when this ends.
const page = readFileSync(new URL('index.html', import.meta.url));
const vite = await createVite({
  root: fileURLToPath(new URL('.', import.meta.url)),
  appType: 'custom',
  ...(process.env.VITE_CACHE && { cacheDir: process.env.VITE_CACHE }),
  configFile: false,
  logLevel: 'error',
  server: { middlewareMode: true, hmr: false, ws: false },
});
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1');
await once(server, 'listening');
console.log(`live-table: http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`);

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    clearInterval(working);
    await hub.shutdown({ signal: AbortSignal.timeout(2_000) });
    await vite.close();
    server.close();
    server.closeAllConnections();
  });
}
