import { until } from '../eventually.ts';
import type { ApiServer } from './apiserver.ts';

/**
 * Resolves when the cache of a kube-apiserver has what is stored of the object at this path. A write begins with what the cache has: if
 * that is late, it begins anew, and webhooks, warnings and causes come twice.
 */
export async function caughtUp({ url, fetch }: ApiServer, path: string): Promise<void> {
  const [object] = /^.*?\/namespaces\/[^/?]+\/[^/?]+\/[^/?]+/.exec(path) ?? [];
  if (object === undefined) return;
  const read = async (query: string): Promise<string> => await (await fetch(url + object + query)).text();
  await until(async () => (await read('?resourceVersion=0')) === (await read('')));
}
