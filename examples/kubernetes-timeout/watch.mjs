// @ts-check
import { loadCluster } from 'watchmux/kubernetes';

/** @typedef {import('kubernetes-types/core/v1.js').Pod} Pod */

const [seconds = '10', namespace] = process.argv.slice(2);
const timeoutSeconds = Number(seconds);
if (!(timeoutSeconds > 0)) throw new Error(`expected a number of seconds, got ${seconds}`);

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());

const cluster = await loadCluster();
const pods = /** @type {import('watchmux/kubernetes').Resource<Pod>} */ (cluster.resource('pods')).in(
  namespace ?? cluster.namespace,
);
const { resourceVersion } = await pods.list({ signal: stop.signal });

// The server ends the watch when the time is up. If the network fails before that, the watch ends as well: nothing reconnects here.
const watch = await pods.watch({ resourceVersion, timeoutSeconds, signal: stop.signal });
let events = 0;
for await (const event of watch) {
  if (event.type === 'ERROR') console.log(`ERROR ${event.object.code}: ${event.object.message}`);
  else if (event.type !== 'BOOKMARK') {
    events++;
    console.log(`${event.type} ${event.object.metadata?.name}`);
  }
}
console.log(`the watch has ended after ${timeoutSeconds} s: ${events} events`);
cluster.close();
