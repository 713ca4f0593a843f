// What tests of the garbage collector share.
import { CONFIG_MAPS as MAPS, NAMESPACES, type ResourceDefinition } from '../src/apiserver/index.ts';
import type { ListOptions } from '../src/cache/list-watcher.ts';

export const ORDERS: ResourceDefinition = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' };
export const NODES: ResourceDefinition = {
  group: 'example.com',
  version: 'v1',
  plural: 'zones',
  kind: 'Zone',
  namespaced: false,
};
export const CONFIG_MAPS: ResourceDefinition = MAPS as ResourceDefinition;
export const EVERYTHING: readonly ResourceDefinition[] = [ORDERS, NODES, CONFIG_MAPS, NAMESPACES as ResourceDefinition];

/** Turns of the event loop in which nothing is written before all is quiet: a step of the collector takes a few. */
const STILL = 100;

/** Resolves when nothing is written any more. */
export async function quiet(listed: { list(options?: ListOptions): Promise<{ resourceVersion: string }> }): Promise<void> {
  let [before, still] = ['', 0];
  while (still < STILL) {
    await new Promise((resolve) => void setImmediate(resolve));
    const { resourceVersion } = await listed.list({ limit: 1 });
    still = resourceVersion === before ? still + 1 : 0;
    before = resourceVersion;
  }
}
