import { afterAll, beforeAll, describe, it } from 'vitest';
import { ApiServer, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { ResourceClient } from '../../src/cache/index.ts';
import { type Cluster, loadCluster } from '../../src/kubernetes/index.ts';
import type { ResourceSource } from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { type Listening, listening } from '../listening.ts';
import { OPERATOR_HELPERS_CONTRACT } from './operator-helpers.ts';
import { ORDER_NAMES, ORDER_SCALE, ORDER_SCHEMA, type Order, RESOURCE_CONTRACT, SOURCE_CONTRACT } from './resource-client.ts';

// test/peers/kubernetes.test.ts has the third side: a real kube-apiserver.
describe('the contracts of a resource client, and of helpers with one', () => {
  let server: ApiServer;
  let at: Listening;
  let cluster: Cluster;

  beforeAll(async () => {
    const definition = { ...ORDER_NAMES, status: true, scale: ORDER_SCALE, schema: ORDER_SCHEMA } as ResourceDefinition;
    server = new ApiServer({ storage: new MemoryStorage(), resources: [definition] });
    at = await listening(server);
    cluster = await loadCluster({ server: at.url });
  });
  afterAll(async () => {
    cluster.close();
    await at.close();
  });

  // Both are a `ResourceSource`.
  const SOURCES: readonly (readonly [string, () => ResourceSource])[] = [
    ['a server in process', () => server],
    ['a cluster', () => cluster],
  ];
  describe.each(SOURCES)('%s', (_, open) => {
    for (const { name, run } of SOURCE_CONTRACT) it(name, () => run(open()));
  });

  const SIDES: readonly (readonly [string, () => ResourceClient<Order>])[] = [
    ['a resource in process', () => server.resource<Order>('orders.example.com/v1')],
    ['a resource of a cluster', () => cluster.resource<Order>({ ...ORDER_NAMES, namespaced: true })],
  ];
  describe.each(SIDES)('%s', (_, open) => {
    for (const { name, run } of [...RESOURCE_CONTRACT, ...OPERATOR_HELPERS_CONTRACT]) it(name, () => run(open()));
  });
});
