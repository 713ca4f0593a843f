// @ts-check
import { once } from 'node:events';
import { createServer } from 'node:http';
import { ApiServer } from 'watchmux/apiserver';
import { EtcdStorage } from 'watchmux/etcd';

/**
 * @typedef {{ apiVersion?: string, kind?: string, metadata?: import('watchmux/cache').ObjectMeta,
 *   spec?: { item?: string, count?: number }, status?: { state?: string } }} Order
 */

/** The states of an order. It goes from each to the next, and never back. */
const STATES = ['placed', 'paid', 'shipped'];

/** @param {Order} order */
const stateOf = ({ status }) => status?.state ?? 'placed';

/** @type {import('watchmux/apiserver').ResourceDefinition<Order>} */
const ORDERS = {
  group: 'shop.example',
  version: 'v1',
  plural: 'orders',
  kind: 'Order',
  status: true,
  fields: { 'status.state': stateOf },
  columns: [
    { name: 'Item', type: 'string', value: ({ spec }) => spec?.item },
    { name: 'Count', type: 'integer', value: ({ spec }) => spec?.count },
    { name: 'State', type: 'string', value: stateOf },
  ],
  validate: (order, old) => {
    const { item, count = 1 } = order.spec ?? {};
    const wrong = [];
    if (typeof item !== 'string' || item === '') wrong.push({ field: 'spec.item', message: 'Required value' });
    if (!Number.isInteger(count) || count < 1) wrong.push({ field: 'spec.count', message: 'Invalid value: expected 1 or more' });
    const at = STATES.indexOf(stateOf(order));
    if (at < 0 || (old && at < STATES.indexOf(stateOf(old)))) {
      wrong.push({ field: 'status.state', message: `Invalid value: after ${old ? stateOf(old) : 'nothing'}` });
    }
    return wrong;
  },
};

const storage = new EtcdStorage({ endpoints: (process.env.ETCD ?? 'http://127.0.0.1:2379').split(','), prefix: '/shop/' });
const server = new ApiServer({
  storage,
  resources: [ORDERS],
  onError: (error) => console.error(error),
});
await server.ready;

const http = createServer(server.handler);
http.listen(Number(process.env.PORT ?? 8080), '127.0.0.1');
await once(http, 'listening');
console.log(`order-board: http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (http.address()).port}`);

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    // Watches end one after the other. Their clients come back, to another server if there is one.
    await server.shutdown({ signal: AbortSignal.timeout(5_000), spreadMs: 2_000 });
    http.close();
    http.closeAllConnections();
    await storage.close();
  });
}
