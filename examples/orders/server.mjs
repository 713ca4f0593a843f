// @ts-check
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createHttpHandler, Hub } from 'watchmux/http';
import { attachWebSocket } from 'watchmux/ws';

/** @typedef {{ metadata: { name: string }, total: number, state: string }} Order */
/** @typedef {import('watchmux').ObjectEvent<Order>} OrderEvent */

/** The state. @type {Map<string, Order>} */
const orders = new Map();

/**
 * The hub records a new client's position in the stream before it reads the snapshot. A change in between arrives after the
 * snapshot, so none is lost.
 * @type {Hub<OrderEvent>}
 */
const hub = new Hub({ snapshot: () => [...orders.values()] });

/** The state and the stream change in one synchronous step, so no snapshot can be taken in between. @param {Order} order */
async function put(order) {
  const { name } = order.metadata;
  const type = orders.has(name) ? 'MODIFIED' : 'ADDED';
  orders.set(name, order);
  await hub.publish({ type, object: order });
}

/** @param {string} name */
async function remove(name) {
  const object = orders.get(name);
  if (object === undefined) return;
  orders.delete(name);
  await hub.publish({ type: 'DELETED', object });
}

const watch = createHttpHandler(hub);
const server = createServer(async (request, response) => {
  const [, path = '', name = ''] = (request.url ?? '').split('?', 1)[0]?.split('/') ?? [];
  if (path === 'watch') return watch(request, response);
  try {
    if (path !== 'orders' || name === '') response.statusCode = 404;
    else if (request.method === 'PUT') await put(toOrder(name, await read(request)));
    else if (request.method === 'DELETE') await remove(name);
    else response.statusCode = 405;
  } catch (error) {
    response.statusCode = 400;
    response.write(`${error}\n`);
  }
  response.end();
});

/** @param {import('node:http').IncomingMessage} request */
async function read(request) {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk;
    if (text.length > 1_000) throw new Error('too long');
  }
  return JSON.parse(text);
}

/** @param {string} name @param {{ total?: unknown, state?: unknown }} said @returns {Order} */
function toOrder(name, { total, state }) {
  return { metadata: { name }, total: Number(total) || 0, state: String(state ?? 'placed') };
}

/** A busy shop: orders arrive, go through their states, and are removed. */
const STATES = ['placed', 'paid', 'shipped'];
let number = 100;
function trade() {
  const [name = '', order] = [...orders][Math.floor(Math.random() * orders.size * 1.5)] ?? [];
  const next = order && STATES[STATES.indexOf(order.state) + 1];
  if (order === undefined) void put(toOrder(String(++number), { total: Math.round(Math.random() * 90) + 10 }));
  else if (next === undefined) void remove(name);
  else void put({ ...order, state: next });
}
const everyMs = Number(process.env.EVERY ?? 1_000);
const trading = everyMs > 0 ? setInterval(trade, everyMs) : undefined;
for (const name of ['1', '2', '3']) await put(toOrder(name, { total: Number(name) * 10 }));

attachWebSocket(server, hub); // the same for WebSocket, at the same path
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1');
await once(server, 'listening');
console.log(`orders: http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}/watch`);

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    clearInterval(trading);
    await hub.shutdown({ signal: AbortSignal.timeout(2_000), retryAfterMs: 2_000 });
    server.close();
    server.closeAllConnections();
  });
}
