// Compiled by check-tarball.mjs with several compilers: the entry points that use Node's types.
import { createServer, type Server } from 'node:http';
import { Readable } from 'node:stream';
import { Broadcaster, StreamWatcher, toDecoder, type WatchEvent } from 'watchmux';
import { Informer, InformerFactory, type ListWatcher } from 'watchmux/cache';
import { createHttpHandler, Hub, type HubStats } from 'watchmux/http';
import { type AsJson, Cluster, type KubeConfigLike, loadCluster, type Resource } from 'watchmux/kubernetes';
import { fromReadable, toReadable } from 'watchmux/node-stream';
import { OpenTelemetry } from 'watchmux/opentelemetry';
import { attachWebSocket, Hub as SameHub } from 'watchmux/ws';

interface Pod {
  metadata: { name: string; creationTimestamp: Date };
}

export async function clusters(config: KubeConfigLike): Promise<void> {
  const telemetry = new OpenTelemetry({ attributes: { 'watchmux.hub': 'orders' } });
  const cluster = new Cluster(config, { responseTimeoutMs: 1_000, telemetry });
  new Hub({ telemetry }).stats();
  const pods: Resource<AsJson<Pod>> = cluster.resource<AsJson<Pod>>('pods').in('default');
  const source: ListWatcher<AsJson<Pod>> = pods;
  new Informer(source).stop();
  new InformerFactory(cluster.source).informer<Pod>('pods').stop();
  (await pods.get('a')).metadata.creationTimestamp.trim();
  // @ts-expect-error there is no such type of patch
  await pods.patch('a', {}, { type: 'smart' });
  (await (await loadCluster({ inCluster: true })).find('deploy')).url.href.trim();
}

export async function main(): Promise<void> {
  const events = new Broadcaster<WatchEvent<'line', string>>();
  const hub = new Hub<WatchEvent<'line', string>>({ replay: 10, overflow: 'wait' });
  const server: Server = createServer(createHttpHandler(hub, { headers: { 'x-a': 'b' } }));
  const detach: () => void = attachWebSocket(server, new SameHub(), { path: '/watch', allowedOrigins: '*' });
  await hub.follow(events.watch());
  const stats: HubStats = hub.stats();
  stats.clients.map(({ queued }) => queued.toFixed());
  const stream: Readable = toReadable(events.watch(), { highWaterMark: 1 });
  const { value } = await fromReadable<WatchEvent<'line', string>>(stream).next();
  value?.object.trim();
  new StreamWatcher(toDecoder(process.stdin)).stop();
  new StreamWatcher(toDecoder(Readable.from(['{}']))).stop();
  detach();
}
