import { createListWatcher } from '../../src/cache/http/http-list-watcher.ts';
import { Informer } from '../../src/cache/informer/informer.ts';
import type { ListWatcher } from '../../src/cache/list-watcher.ts';
import type { Copy, Pod, StartCopy } from './copy.ts';
import { configOf, importClientNode } from './copy-client-node.ts';

type SourceOf = (url: string) => ListWatcher<Pod>;

const overFetch: SourceOf = (url) => createListWatcher<Pod>(`${url}/api/v1/pods`);

function load(sourceOf: SourceOf, options: { streamingList: boolean }): () => Promise<StartCopy> {
  return async () =>
    ({ url, handler, fail }): Copy => {
      const informer = new Informer(sourceOf(url), { ...options, onError: fail });
      const { synced } = informer.addHandler({
        onAdd: () => handler.onAdd(),
        onUpdate: (_, pod) => handler.onUpdate(pod),
      });
      informer.run().catch(fail);
      return { synced, pods: () => informer.store.list() };
    };
}

/** As it is by default: the initial list is streamed. */
export const watchmux: () => Promise<StartCopy> = load(overFetch, { streamingList: true });

/** With a list in pages, as of servers that cannot stream one. */
export const watchmuxPaged: () => Promise<StartCopy> = load(overFetch, { streamingList: false });

/** As users of a kubeconfig have it: `watchmux/kubernetes`, over Node's own HTTP client. */
export const watchmuxCluster: () => Promise<StartCopy> = async () => {
  const [{ KubeConfig }, { Cluster }] = await Promise.all([importClientNode(), import('../../src/kubernetes/cluster.ts')]);
  const sourceOf: SourceOf = (url) => new Cluster(configOf(KubeConfig, url)).resource<Pod>('pods');
  return load(sourceOf, { streamingList: true })();
};
