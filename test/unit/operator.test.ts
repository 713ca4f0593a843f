// Operators on an API server in the same process.
import { describe, expect, it } from 'vitest';
import { ApiServer, CONFIG_MAPS, NAMESPACES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { kind, Operator } from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { eventually } from '../eventually.ts';
import { ORDERS, type Order } from './apiserver-rig.ts';

interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}
const ORDER = kind<Order>('orders.example.com/v1');
const CONFIG_MAP = kind<ConfigMap>('configmaps');

function rig() {
  const server = new ApiServer({
    storage: new MemoryStorage(),
    resources: [ORDERS as ResourceDefinition, CONFIG_MAPS as ResourceDefinition, NAMESPACES as ResourceDefinition],
  });
  return { server, cluster: server };
}

describe('an operator', () => {
  it('brings about what its objects say, and says so in their status', async () => {
    const { server, cluster } = rig();
    const orders = server.resource<Order>('orders.example.com/v1').in('default');
    const maps = server.resource<ConfigMap>('configmaps/v1').in('default');
    const operator = new Operator({ cluster, name: 'shop' }).controller({
      for: ORDER,
      owns: [CONFIG_MAP],
      reconcile: async ({ object, apply, owned, updateStatus }) => {
        if (!object) return;
        await apply(CONFIG_MAP, { data: { item: object.spec?.item ?? 'none' } });
        await updateStatus((draft) => Object.assign(draft, { status: { phase: owned(CONFIG_MAP).length ? 'Done' : 'New' } }));
      },
    });
    const stop = new AbortController();
    const run = operator.run(stop.signal);
    await orders.create({ metadata: { name: 'a' }, spec: { item: 'tea' } });
    await eventually(async () => expect((await orders.get('a')).status?.phase).toBe('Done'));
    expect((await maps.get('a')).data).toEqual({ item: 'tea' });
    await maps.delete('a');
    await eventually(async () => expect((await maps.get('a')).data).toEqual({ item: 'tea' }));
    stop.abort();
    await run;
    await server.shutdown();
  });
});
