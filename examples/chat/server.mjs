// @ts-check
import { once } from 'node:events';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import express from 'express';
import { createHttpHandler, Hub } from 'watchmux/http';
import { attachWebSocket } from 'watchmux/ws';

/** @typedef {{ room: string, from: string, text: string, at: string }} Message */
/** @typedef {import('watchmux').WatchEvent<'message', Message>} MessageEvent */

/**
 * A room is a topic, so a message costs nothing for the clients of other rooms. A new client gets its room's
 * messages among the last 50. One that reconnects gets what it missed.
 *
 * @type {Hub<MessageEvent>}
 */
const hub = new Hub({ topicsOf: ({ object }) => object.room, replay: 50, capacity: 256 });

/** Each client sees one room. Messages of other rooms never leave the server. */
const oneRoom = {
  /** @param {import('node:http').IncomingMessage} request @returns {import('watchmux/http').ClientOptions<MessageEvent>} */
  watchOptions: (request) => {
    const room = new URL(request.url ?? '', 'http://localhost').searchParams.get('room') ?? 'lobby';
    return { topics: [room] };
  },
};

const app = express();
app.get('/', (_request, response) => response.sendFile(fileURLToPath(new URL('page.html', import.meta.url))));
app.get('/watch', createHttpHandler(hub, oneRoom));
app.post('/rooms/:room', express.json({ limit: '4kb' }), async (request, response) => {
  const { from, text } = request.body ?? {};
  if (!isText(from, 40) || !isText(text, 1_000)) {
    response.status(400).json({ error: 'expected {"from": up to 40 characters, "text": up to 1000}' });
    return;
  }
  const at = new Date().toISOString();
  await hub.publish({ type: 'message', object: { room: request.params.room, from, text, at } });
  response.status(202).json({ at });
});

/** @param {unknown} value @param {number} longest */
function isText(value, longest) {
  return typeof value === 'string' && value.length > 0 && value.length <= longest;
}

const server = createServer(app);
attachWebSocket(server, hub, oneRoom); // WebSocket at the same path
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1');
await once(server, 'listening');
console.log(`chat: http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`);

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    // Clients get what is queued for them, and are told to reconnect, spread over two seconds.
    await hub.shutdown({ signal: AbortSignal.timeout(2_000), retryAfterMs: 2_000 });
    server.close();
    server.closeAllConnections();
  });
}
