// @ts-check
import { RetryWatcher } from 'watchmux/cache';
import { loadCluster } from 'watchmux/kubernetes';

/** @typedef {import('kubernetes-types/core/v1.js').Pod} Pod */

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());

const cluster = await loadCluster();
const [namespace = cluster.namespace] = process.argv.slice(2);
const pods = /** @type {import('watchmux/kubernetes').Resource<Pod>} */ (cluster.resource('pods')).in(namespace);

/** @param {Pod} pod */
const describe = ({ metadata, status }) => `${metadata?.namespace}/${metadata?.name} ${status?.phase ?? 'Unknown'}`;

const { items, resourceVersion } = await pods.list({ signal: stop.signal });
console.log(`${items.length} pods in ${namespace} at version ${resourceVersion}`);
for (const pod of items) console.log(`LISTED ${describe(pod)}`);

// Everything since the list, once and in order, through any number of broken connections.
for await (const event of new RetryWatcher(pods, { resourceVersion, signal: stop.signal })) {
  if (event.type === 'ERROR') {
    // The server no longer has what came after that version. An informer would list again; this program ends.
    console.error(`ERROR ${event.object.code}: ${event.object.message}`);
    process.exitCode = 1;
  } else if (event.type !== 'BOOKMARK') console.log(`${event.type} ${describe(event.object)}`);
}
cluster.close();
