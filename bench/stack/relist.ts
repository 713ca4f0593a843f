import { setImmediate } from 'node:timers/promises';
import { createListWatcher } from '../../src/cache/http/http-list-watcher.ts';
import { Informer } from '../../src/cache/informer/informer.ts';
import { allocatedBy } from '../allocation.ts';
import type { Prepared } from '../workload.ts';
import type { Pod } from './copy.ts';
import { Stage } from './stage.ts';

/**
 * A watch is ended with 410, the list that follows is the same as before. Every object must stay the same one, and no handler may be
 * called. Measured: the bytes that are allocated, per byte of the list.
 */
export async function prepareRelist(objects: number, options: { streamingList: boolean }): Promise<Prepared> {
  const stage = await Stage.open(objects);
  let lists = 0;
  let isBack = false;
  const informer = new Informer(createListWatcher<Pod>(`${stage.url}/api/v1/pods`), {
    ...options,
    minMs: 1,
    onStateChange: ({ phase }) => {
      if (phase === 'listing') lists++;
      isBack = phase === 'watching';
    },
    onError: () => {}, // it is told of the 410
  });
  let calls = 0;
  const count = (): void => void calls++;
  const { synced } = informer.addHandler({ onAdd: count, onUpdate: count, onDelete: count });
  const stopped = informer.run();
  await synced;
  const bytes = informer.store.list().reduce((sum, pod) => sum + JSON.stringify(pod).length, 0);
  const relist = async (): Promise<void> => {
    const before = lists;
    await stage.expire();
    while (lists === before || !isBack) await setImmediate();
  };
  return {
    async round() {
      const before = new Map(informer.store.keys().map((key) => [key, informer.store.get(key)]));
      const callsBefore = calls;
      const allocated = await allocatedBy(relist);
      const kept = informer.store.keys().filter((key) => informer.store.get(key) === before.get(key)).length;
      if (kept !== objects || informer.store.size !== objects || calls !== callsBefore) {
        throw new Error(
          `wrong answer: ${kept} of ${objects} objects were kept, and handlers called ${calls - callsBefore} times`,
        );
      }
      return [allocated / bytes, allocated / 1e6];
    },
    async end() {
      await Promise.all([informer.stop(), stopped]);
      stage.end();
    },
  };
}
