import { createListWatcher } from '../../src/cache/http/http-list-watcher.ts';
import { Informer } from '../../src/cache/informer/informer.ts';
import type { Copy, Pod, StartCopy } from './copy.ts';

function load(options: { streamingList: boolean }): () => Promise<StartCopy> {
  return async () =>
    ({ url, handler, fail }): Copy => {
      const informer = new Informer(createListWatcher<Pod>(`${url}/api/v1/pods`), { ...options, onError: fail });
      const { synced } = informer.addHandler({
        onAdd: () => handler.onAdd(),
        onUpdate: (_, pod) => handler.onUpdate(pod),
      });
      informer.run().catch(fail);
      return { synced, pods: () => informer.store.list() };
    };
}

/** As it is by default: the initial list is streamed. */
export const watchmux: () => Promise<StartCopy> = load({ streamingList: true });

/** With a list in pages, as of servers that cannot stream one. */
export const watchmuxPaged: () => Promise<StartCopy> = load({ streamingList: false });
