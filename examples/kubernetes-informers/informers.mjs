// @ts-check
import { InformerFactory, Lister } from 'watchmux/cache';
import { loadCluster } from 'watchmux/kubernetes';

/** @typedef {import('kubernetes-types/core/v1.js').Service} Service */
/** @typedef {import('kubernetes-types/apps/v1.js').Deployment} Deployment */

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());

const cluster = await loadCluster();
const [namespace = cluster.namespace] = process.argv.slice(2);

const factory = new InformerFactory(cluster.source, { resyncMs: 10 * 60_000 });
const services = /** @type {import('watchmux/cache').Informer<Service>} */ (factory.informer('services'));
const deployments = /** @type {import('watchmux/cache').Informer<Deployment>} */ (factory.informer('deployments.apps/v1'));

services.addHandler({
  onAdd: (service, initial) => console.log(`service ${service.metadata?.name} ${initial ? 'is there' : 'added'}`),
  onUpdate: (old, service) => {
    // A resync calls with the same object twice.
    if (old !== service) console.log(`service ${service.metadata?.name} changed`);
  },
  onDelete: (service) => console.log(`service ${service.metadata?.name} deleted`),
});
deployments.addHandler({
  onAdd: ({ metadata, spec }) => console.log(`deployment ${metadata?.name}: ${spec?.replicas} replicas`),
  onUpdate: (old, { metadata, spec }) => {
    const before = old.spec?.replicas;
    if (before !== spec?.replicas) console.log(`deployment ${metadata?.name}: ${before} -> ${spec?.replicas} replicas`);
  },
  onDelete: ({ metadata }) => console.log(`deployment ${metadata?.name} deleted`),
});

factory.start(stop.signal);
const synced = await factory.waitForSync(stop.signal);

if ([...synced.values()].every(Boolean)) {
  // From memory: no request is made.
  const here = new Lister(services).namespace(namespace);
  console.log(`synced: ${here.list().length} services in ${namespace}, ${deployments.store.size} deployments in all`);
  console.log(`the service kubernetes has the address ${here.get('kubernetes')?.spec?.clusterIP}`);
  await new Promise((resolve) => stop.signal.addEventListener('abort', resolve));
}
await factory.shutdown();
cluster.close();
