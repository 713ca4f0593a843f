// What Cloudflare's runtime runs, for workers.test.ts: a hub and an API server, each in a Durable Object, and what needs no server.
// Whatever may stand in module scope stands there.
import { Broadcaster, isErrorEvent } from 'watchmux';
import { ApiServer } from 'watchmux/apiserver';
import { createListWatcher, Informer } from 'watchmux/cache';
import { connect } from 'watchmux/client';
import { createConnectionHandler, createFetchHandler, Hub, LINE, readSubprotocols } from 'watchmux/fetch';
import { MemoryStorage } from 'watchmux/storage';
import { exponential, WorkQueue } from 'watchmux/workqueue';

const hub = new Hub({ replayItems: 1_000, bookmarkIntervalMs: 100 });
const authenticate = ({ headers }) => headers.get('authorization') ?? 'anonymous';
const serve = createFetchHandler(hub, { authenticate });
const serveSocket = createConnectionHandler(hub, { transport: 'websocket', authenticate: ({ token }) => token });

/** One text message per event. */
class SocketSink {
  form = LINE;
  bufferedBytes = 0;

  constructor(socket) {
    this.socket = socket;
  }

  opened(session) {
    this.socket.addEventListener('close', () => session.gone());
    this.socket.addEventListener('error', () => session.gone());
  }

  write(bytes) {
    for (const line of new TextDecoder().decode(bytes).split('\n')) if (line !== '') this.socket.send(line);
    return true;
  }

  end() {
    this.socket.close(1000, 'complete');
  }

  destroy() {
    this.socket.close(1001);
  }
}

async function upgrade(request) {
  const { protocols, token, fault } = readSubprotocols(request.headers.get('sec-websocket-protocol'));
  if (fault !== undefined) return new Response(fault, { status: 400 });
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  const refusal = await serveSocket(new SocketSink(server), { request: { token }, search: new URL(request.url).search.slice(1) });
  if (refusal !== undefined) return Response.json(refusal, { status: refusal.code });
  return new Response(null, { status: 101, webSocket: client, headers: { 'sec-websocket-protocol': protocols[0] } });
}

export class Room {
  async fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/watch') return request.headers.get('upgrade') === 'websocket' ? upgrade(request) : serve(request);
    if (pathname === '/publish')
      for (let i = 0; i < Number(searchParams.get('n')); i++) await hub.publish({ type: 'n', object: i });
    return Response.json(hub.stats());
  }
}

const api = new ApiServer({
  storage: new MemoryStorage(),
  resources: [{ group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' }],
});

export class Objects {
  fetch(request) {
    return api.fetch(request);
  }
}

/** What each overflow policy leaves of five events in a queue of two. */
async function policies(_env, names) {
  const got = {};
  for (const overflow of names) {
    const broadcaster = new Broadcaster({ incoming: 10, keyOf: () => '' });
    const watch = broadcaster.watch({ overflow, capacity: 2 });
    for (let step = 1; step <= 5; step++) await broadcaster.publish({ type: 'MODIFIED', object: { step } });
    const closed = broadcaster.shutdown();
    got[overflow] = [];
    for await (const event of watch) got[overflow].push(isErrorEvent(event) ? event.object.code : event.object.step);
    await closed;
  }
  return got;
}

async function queued() {
  const queue = new WorkQueue({ rateLimiter: exponential({ baseMs: 1, maxMs: 10 }) });
  const worked = [];
  queue.add('a');
  queue.add('a');
  queue.add('b');
  const work = (key) => {
    worked.push(key);
    if (worked.length === 1) throw new Error('again');
    if (worked.length === 3) void queue.drain();
  };
  await queue.run(1, work, { onError() {} });
  return worked;
}

/** Events of the hub, by a client over `fetch` and one over WebSocket. */
async function connected({ ROOM }) {
  const room = ROOM.get(ROOM.idFromName('room'));
  const fetch = (url, init) => room.fetch(url, init);
  const got = [];
  const watch = connect('http://room/watch', { fetch, token: 'me', resourceVersion: undefined });
  const first = watch.next();
  await until(async () =>
    (await (await room.fetch('http://room/stats')).json()).clients.some(({ identity }) => identity === 'Bearer me'),
  );
  await room.fetch('http://room/publish?n=3');
  got.push((await first).value.object, (await watch.next()).value.object, (await watch.next()).value.object);
  await watch.return();
  return got;
}

async function until(holds) {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function informed({ OBJECTS }) {
  const objects = OBJECTS.get(OBJECTS.idFromName('objects'));
  const url = 'http://objects/apis/example.com/v1/namespaces/default/orders';
  const create = (name) => {
    const body = JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Order', metadata: { name } });
    return objects.fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  };
  const statuses = [(await create('a')).status, (await create('a')).status];
  const informer = new Informer(createListWatcher(url, { fetch: (to, init) => objects.fetch(to, init) }));
  const running = informer.run();
  await informer.synced;
  statuses.push((await create('b')).status);
  await until(() => informer.store.list().length === 2);
  await informer.stop();
  await running;
  return {
    statuses,
    names: informer.store
      .list()
      .map(({ metadata }) => metadata.name)
      .sort(),
  };
}

const TRIED = { policies, queued, connected, informed };

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/tried') {
      const result = {};
      const names = searchParams.get('policies').split(',');
      for (const [name, run] of Object.entries(TRIED)) result[name] = await run(env, names).catch((error) => String(error.stack));
      return Response.json(result);
    }
    const [namespace, name] = pathname.startsWith('/apis/') ? [env.OBJECTS, 'objects'] : [env.ROOM, 'room'];
    return namespace.get(namespace.idFromName(name)).fetch(request);
  },
};
