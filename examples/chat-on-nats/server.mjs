// @ts-check
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createHttpHandler, Hub } from 'watchmux/http';
import { NatsStream } from 'watchmux/nats';
import { attachWebSocket } from 'watchmux/ws';

/** @typedef {import('watchmux').WatchEvent<'message', { room: string, from: string, text: string }>} MessageEvent */

const { NATS = '127.0.0.1:4222', PORT = '8080' } = process.env;
const [mode, name = 'worker', after] = process.argv.slice(2);

// A day of messages, or a gigabyte, whichever is less.
const stream = new NatsStream({ servers: NATS, stream: 'chat', create: { maxAgeMs: 86_400_000, maxBytes: 2 ** 30 } });
/** @type {Hub<MessageEvent>} */
const hub = new Hub({ source: stream, topicsOf: ({ object }) => object.room, replay: 50 });

if (mode === 'worker') await work();
else await serve();

/** Serves clients. Start as many as you like: each has every message, and a client can resume at any of them. */
async function serve() {
  const oneRoom = {
    /** @param {import('node:http').IncomingMessage} request */
    watchOptions: (request) => {
      const room = new URL(request.url ?? '', 'http://localhost').searchParams.get('room') ?? 'lobby';
      return { topics: [room] };
    },
  };
  const watch = createHttpHandler(hub, oneRoom);
  const server = createServer((request, response) => {
    if (request.method === 'POST') void say(request, response);
    else watch(request, response);
  });
  attachWebSocket(server, hub, oneRoom);
  server.listen(Number(PORT), '127.0.0.1');
  await once(server, 'listening');
  console.log(`chat: http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`);
  onEnd(async () => {
    await hub.shutdown({ signal: AbortSignal.timeout(2_000), retryAfterMs: 2_000 });
    server.close();
    server.closeAllConnections();
  });
}

/**
 * Publishes a message. `Message-Id` is the client's own: when it asks again because it got no answer, the message is stored once.
 *
 * @param {import('node:http').IncomingMessage} request @param {import('node:http').ServerResponse} response
 */
async function say(request, response) {
  try {
    let body = '';
    for await (const part of request) {
      body += part;
      if (body.length > 4_096) throw new Error('too long');
    }
    const { room, from, text } = JSON.parse(body);
    if (![room, from, text].every((each) => typeof each === 'string' && each !== ''))
      throw new Error('expected room, from, text');
    const id = request.headers['message-id'];
    await hub.publish({ type: 'message', object: { room, from, text } }, typeof id === 'string' ? { id } : {});
    response.writeHead(202).end();
  } catch (error) {
    response.writeHead(/** @type {{ code?: string }} */ (error).code === 'TIMEOUT' ? 503 : 400).end(`${error}\n`);
  }
}

/** Handles every message once, even those sent while it was not running: it prints the version to resume from. */
async function work() {
  await hub.ready();
  const messages = hub.watch({ after });
  console.log(`${name}: ${after ?? hub.version}`);
  onEnd(async () => messages.stop());
  for await (const event of messages) {
    if (event.type === 'ERROR')
      console.log(`${name}: missed messages: ${/** @type {{ message: string }} */ (event.object).message}`);
    else console.log(`${name}: ${event.resourceVersion} ${event.object.from}: ${event.object.text}`);
  }
  await hub.shutdown();
  await stream.close();
}

/** @param {() => Promise<void>} end */
function onEnd(end) {
  for (const signal of ['SIGINT', 'SIGTERM']) {
    process.once(signal, async () => {
      await end();
      if (mode !== 'worker') await stream.close();
    });
  }
}
