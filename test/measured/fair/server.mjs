// An API server over memory with many objects, for `fair.test.ts`. Prints its port.
import { createServer } from 'node:http';
import { ApiServer, CONFIG_MAPS, NAMESPACES } from '../../../dist/apiserver.js';
import { MemoryStorage } from '../../../dist/storage.js';
import { OBJECTS } from './attacks.mjs';

const ORDERS = {
  ...{ group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order', status: true },
  columns: [
    { name: 'Item', type: 'string', value: ({ spec }) => spec?.item },
    { name: 'Count', type: 'integer', value: ({ spec }) => spec?.count },
  ],
  fields: { 'spec.item': ({ spec }) => spec?.item },
};
const CHECKED = {
  ...{ group: 'example.com', version: 'v1', plural: 'checked', kind: 'Checked' },
  schema: {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: { name: { type: 'string', pattern: '^([a-z0-9]+-?)+$' }, list: { type: 'array', uniqueItems: true } },
      },
    },
  },
};

const storage = new MemoryStorage();
const order = (namespace, at) => ({
  ...{ apiVersion: 'example.com/v1', kind: 'Order' },
  metadata: {
    ...{ name: `order-${at}`, namespace, uid: `${namespace}-${at}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    labels: { app: `app-${at % 10}`, tier: at % 2 ? 'front' : 'back', region: `r${at % 5}` },
  },
  spec: { item: `item-${at % 100}`, count: at },
});
const orders = storage.scope('example.com/orders/');
for (let at = 0; at < OBJECTS; at++) await orders.create(`default/order-${at}`, order('default', at));
await orders.create('small/order-0', order('small', 0));
const namespaces = storage.scope('core/namespaces/');
for (const [namespace, size] of [['small', 0], ...Array.from({ length: 20 }, (_, at) => [`doomed-${at}`, 1_000])]) {
  const metadata = { name: namespace, uid: namespace };
  await namespaces.create(namespace, { apiVersion: 'v1', kind: 'Namespace', metadata, status: { phase: 'Active' } });
  for (let at = 0; at < size; at++) await orders.create(`${namespace}/order-${at}`, order(namespace, at));
}
const big = { ...order('default', 0), metadata: { name: 'big', namespace: 'default', uid: 'big' } };
const keys = Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`k${at}`, 1]));
await orders.create('default/big', { ...big, spec: keys });
await orders.create('default/long', {
  ...{ ...big, metadata: { ...big.metadata, name: 'long', uid: 'long' } },
  list: Array.from({ length: 500_000 }, () => 0),
});

const server = new ApiServer({
  storage,
  resources: [ORDERS, CHECKED, CONFIG_MAPS, NAMESPACES],
  // The name is the token.
  authenticate: ({ headers }) => headers.authorization?.slice('Bearer '.length),
  maxWatchersPerTenant: 1_000,
});
await server.ready;
// Caches are filled at the first request.
for (const name of ['orders.example.com/v1', 'checked.example.com/v1', 'configmaps/v1'])
  await server.resource(name).list({ limit: 1 });
const http = createServer({ maxHeaderSize: 65_536 }, server.handler);
http.keepAliveTimeout = 300_000;
http.on('upgrade', server.upgrade);
http.listen(0, '0.0.0.0', () => console.log(`listening on ${http.address().port}`));
process.stdin.on('end', () => process.exit(0)).resume();
