import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { ApiServer, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { ResourceClient } from '../../src/cache/index.ts';
import { type Cluster, loadCluster } from '../../src/kubernetes/index.ts';
import type { ResourceSource } from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { OPERATOR_HELPERS_CONTRACT } from './operator-helpers.ts';
import { ORDER_NAMES, ORDER_SCALE, ORDER_SCHEMA, type Order, RESOURCE_CONTRACT, SOURCE_CONTRACT } from './resource-client.ts';

// test/peers/kubernetes.test.ts has the third side: a real kube-apiserver.
describe('the contracts of a resource client, and of helpers with one', () => {
  let server: ApiServer;
  let http: Server;
  let cluster: Cluster;

  beforeAll(async () => {
    const definition = { ...ORDER_NAMES, status: true, scale: ORDER_SCALE, schema: ORDER_SCHEMA } as ResourceDefinition;
    server = new ApiServer({ storage: new MemoryStorage(), resources: [definition] });
    http = createServer(server.handler);
    await new Promise<void>((resolve) => void http.listen(0, '127.0.0.1', resolve));
    cluster = await loadCluster({ server: `http://127.0.0.1:${(http.address() as AddressInfo).port}` });
  });
  afterAll(async () => {
    cluster.close();
    await server.shutdown();
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
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
