// @ts-check
import { DeltaFifo, Reflector, Store } from 'watchmux/cache';
import { loadCluster } from 'watchmux/kubernetes';

/** @typedef {import('kubernetes-types/core/v1.js').Pod} Pod */

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());

const cluster = await loadCluster();
const [namespace = cluster.namespace] = process.argv.slice(2);
const pods = /** @type {import('watchmux/kubernetes').Resource<Pod>} */ (cluster.resource('pods')).in(namespace);

// The store is what this program knows. The queue compares each new list with it, so a deletion is seen even if nobody watched
// when it happened.
const store = /** @type {Store<Pod>} */ (new Store());
const queue = /** @type {DeltaFifo<Pod>} */ (new DeltaFifo({ knownObjects: store, emitReplaced: true }));

// Fills the queue: lists, watches, reconnects, and lists again when it must.
const reflecting = new Reflector(pods, queue).run(stop.signal).finally(() => queue.close());

/** @param {readonly import('watchmux/cache').Delta<Pod>[]} deltas */
function apply(deltas) {
  for (const { type, object } of deltas) {
    if (type === 'Deleted') store.delete(object);
    else store.update(object);
    console.log(`${type}: ${object.metadata?.name}`);
  }
}

while (!queue.closed || queue.size > 0) await queue.pop(apply).catch((error) => stop.signal.aborted || Promise.reject(error));
await reflecting;
cluster.close();
