// One replica of an API server, in a process of its own: its objects are in etcd, and it has nothing of its own but a cache.
import { setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ApiServer } from '../../src/apiserver/index.ts';
import type { Resource } from '../../src/apiserver/resource.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import { obey, processorMs } from '../dialogue.ts';
import { heapBytes } from '../heap.ts';
import { type Thing, thingOf } from '../server/objects.ts';

setMaxListeners(0);

const WEEK_MS = 604_800_000;
const cpuMs = processorMs();
let things: Resource<Thing> | undefined;

const deeds = {
  async start({ etcd }: { readonly etcd: string }): Promise<{ readonly port: number }> {
    const api = new ApiServer({
      storage: new EtcdStorage({ endpoints: [etcd] }),
      resources: [{ group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing' }],
      // All clients come from one address here, and none is to be asked to come again while it is measured.
      ...{ maxWatchers: 100_000, maxWatchersPerAddress: 100_000, minRequestTimeoutMs: WEEK_MS },
    });
    await api.ready;
    things = api.resource<Thing>('things.example.com/v1');
    await things.list(); // its cache begins with its first use
    const server = createServer(api.handler);
    server.keepAliveTimeout = 0; // while others take their turn, connections are idle for longer
    await new Promise<void>((resolve) => void server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, resolve));
    return { port: (server.address() as AddressInfo).port };
  },
  /** Creates Things of a size. */
  async fill({ count, bytes }: { readonly count: number; readonly bytes: number }): Promise<void> {
    for (let i = 0; i < count; i++) await things?.create(thingOf(i, bytes));
  },
  /** Processor time since the last call, of all threads. */
  took: (_: object): number => cpuMs(),
  /** Bytes, when all garbage has been collected. */
  async memory(_: object): Promise<{ readonly heap: number; readonly resident: number }> {
    await heapBytes(); // what is outside of the heap is freed after the first collection
    const heap = await heapBytes();
    return { heap, resident: process.memoryUsage.rss() };
  },
};

export type ReplicaDeeds = typeof deeds;

obey(deeds);
