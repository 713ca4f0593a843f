// @ts-check
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { StreamWatcher, toDecoder } from 'watchmux';
import { createHttpHandler, Hub } from 'watchmux/http';

/** @typedef {{ metadata: { name: string }, image: string, state: string, exitCode?: string, starts: number, since: number }} Container */
/** @typedef {import('watchmux').WatchEvent<string, { name: string, image: string, exitCode?: string, time: number }>} DockerEvent */

/** Decodes a line of `docker events`: its action is the event type. Lines about anything but containers are skipped (undefined). */
const codec = {
  /** @param {Uint8Array} line @returns {DockerEvent | undefined} */
  decode: (line) => {
    try {
      const { Type, Action, Actor, time } = JSON.parse(new TextDecoder().decode(line));
      return Type === 'container' ? { type: Action, object: { ...Actor.Attributes, time } } : undefined;
    } catch {
      return undefined;
    }
  },
};

/** @type {Map<string, Container>} */
const containers = new Map();
/** @type {Hub<import('watchmux').ObjectEvent<Container>>} */
const hub = new Hub({ snapshot: () => [...containers.values()], overflow: 'coalesce' });

/** @type {Record<string, string>} */
const STATES = { start: 'running', unpause: 'running', pause: 'paused', die: 'exited' };

/** Applies an event to the state. @param {DockerEvent} event */
async function apply({ type, object: { name, image, exitCode, time } }) {
  const known = containers.get(name);
  const state = STATES[type];
  if (type === 'destroy' && known !== undefined) {
    containers.delete(name);
    await hub.publish({ type: 'DELETED', object: known });
  } else if (state !== undefined) {
    const starts = (known?.starts ?? 0) + (type === 'start' ? 1 : 0);
    const object = { metadata: { name }, image, state, starts, since: time, ...(exitCode === undefined ? {} : { exitCode }) };
    containers.set(name, object);
    await hub.publish({ type: known === undefined ? 'ADDED' : 'MODIFIED', object });
  }
}

const page = readFileSync(new URL('page.html', import.meta.url));
const watch = createHttpHandler(hub);
const server = createServer((request, response) => {
  const path = request.url?.split('?', 1)[0];
  if (path === '/watch') watch(request, response);
  else if (path === '/') response.setHeader('content-type', 'text/html; charset=utf-8').end(page);
  else response.writeHead(404).end();
});
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1');
await once(server, 'listening');
console.log(`dashboard: http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`);

// One at a time: the next line is read only after this one has been published.
const events = new StreamWatcher(toDecoder(process.stdin, { codec }));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => events.return());
for await (const event of events) await apply(event);

await hub.shutdown({ signal: AbortSignal.timeout(2_000) });
server.close();
server.closeAllConnections();
