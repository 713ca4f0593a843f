// @ts-check
import { Informer, splitKey } from 'watchmux/cache';
import { loadCluster } from 'watchmux/kubernetes';
import { Controller, exponential, WorkQueue } from 'watchmux/workqueue';

/** @typedef {import('kubernetes-types/apps/v1.js').Deployment} Deployment */

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());

const cluster = await loadCluster();
const deployments = new Informer(
  /** @type {import('watchmux/kubernetes').Resource<Deployment>} */ (cluster.resource('deployments.apps/v1')),
);

const controller = new Controller({
  informers: [deployments],
  queue: new WorkQueue({ rateLimiter: exponential({ baseMs: 5, maxMs: 1_000 }) }),
  concurrency: 2,
  maxRetries: 5,
  // It gets a key and reads the newest state: ten changes may have led to one call.
  async reconcile(key, { attempt }) {
    const deployment = deployments.store.get(key);
    if (deployment === undefined) {
      console.log(`${key} does not exist any more`);
      return;
    }
    if (splitKey(key).name === 'test-deployment') throw new Error(`attempt ${attempt} fails on purpose`);
    console.log(`${key} has ${deployment.spec?.replicas} replicas`);
  },
  onError(error, { key, dropped }) {
    const { message } = /** @type {Error} */ (error);
    console.log(dropped ? `dropped ${key} out of the queue: ${message}` : `error syncing ${key}: ${message}`);
  },
});

console.log('starting the controller');
await controller.run(stop.signal); // runs the informer, too
console.log('the controller has stopped');
cluster.close();
