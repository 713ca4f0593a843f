// The server of the workload `storm`, in a process of its own that can be killed: an API server over a storage in a file.
import { setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import { ApiServer } from '../../src/apiserver/index.ts';
import { openMemoryStorage, type Storage } from '../../src/storage/index.ts';
import { obey, processorMs } from '../dialogue.ts';
import type { Thing } from '../server/objects.ts';
import { COPIED, thingAt, WINDOW } from './things.ts';

setMaxListeners(0);

let things: Storage<Thing> | undefined;
const cpuMs = processorMs();

async function start({ port, file }: { readonly port: number; readonly file: string }): Promise<void> {
  const storage = await openMemoryStorage({ file, maxHistoryItems: WINDOW });
  things = storage.scope<Thing>('example.com/things/');
  const { items } = await things.list();
  for (let i = items.length; i < COPIED; i++) await things.create(keyOf(i), thingAt(i));
  const api = new ApiServer({
    storage,
    resources: [{ group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing' }],
    // All clients come from one address here.
    maxWatchersPerAddress: 20_000,
    maxWatchers: 20_000,
  });
  await api.ready;
  const server = createServer(api.handler);
  await new Promise<void>((resolve) => void server.listen({ port, host: '127.0.0.1', backlog: 4_096 }, resolve));
  cpuMs();
}

const keyOf = (place: number): string => `default/${thingAt(place).metadata.name}`;

async function write(place: number): Promise<void> {
  await things?.update(keyOf(place), ({ metadata }) => {
    const thing = thingAt(place);
    return { ...thing, metadata: { ...metadata, ...thing.metadata } };
  });
}

const deeds = {
  start,
  /** Makes the changes of these places: at once those of different Things, and the last one at the end. */
  async change({ from, count }: { readonly from: number; readonly count: number }): Promise<void> {
    const last = from + count - 1;
    for (let at = from; at < last; at += COPIED) {
      await Promise.all(Array.from({ length: Math.min(COPIED, last - at) }, (_, i) => write(at + i)));
    }
    await write(last);
  },
  took: (_: object): number => cpuMs(),
};

export type ServerDeeds = typeof deeds;

obey(deeds);
