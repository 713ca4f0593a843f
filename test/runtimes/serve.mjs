// A hub on the named host, for runtimes.test.ts: the runtime's own server, or node:http with ws. Prints its port, and serves
// /stats, /publish and /shutdown.
import { createFetchHandler, Hub } from 'watchmux/fetch';
import { createHttpHandler } from 'watchmux/http';
import { attachWebSocket } from 'watchmux/ws';

const [host, settings = '{}'] = process.argv.slice(2);
const { connection, ...hubOptions } = JSON.parse(settings);
const hub = new Hub({ epoch: 'e', replayBytes: 1e9, ...hubOptions });
const options = {
  ...connection,
  // Asynchronous, as if it asked a database.
  authenticate: async ({ headers }) => {
    const said = headers.authorization ?? headers.get?.('authorization') ?? 'anonymous';
    return said === 'unknown' ? undefined : said === 'banned' ? { status: 403 } : said;
  },
};

async function control(url) {
  const { pathname, searchParams } = new URL(url, 'http://here');
  const number = (name) => Number(searchParams.get(name) ?? 0);
  if (pathname === '/publish') {
    const filler = 'x'.repeat(number('bytes'));
    for (let i = number('from'); i < number('to'); i++) {
      await hub.publish({ type: 'n', object: { i, filler } });
      if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve));
    }
  } else if (pathname === '/silent') await new Promise(() => {});
  else if (pathname === '/shutdown') await hub.shutdown({ retryAfterMs: 1_000 });
  return JSON.stringify(hub.stats());
}

const isWatch = (url) => new URL(url, 'http://here').pathname === '/watch';
const at = { hostname: '127.0.0.1', port: 0 };

async function listen() {
  if (host === 'node') {
    const { createServer } = await import('node:http');
    const watch = createHttpHandler(hub, options);
    const server = createServer((request, response) => {
      if (isWatch(request.url)) watch(request, response);
      else void control(request.url).then((text) => response.end(text));
    });
    attachWebSocket(server, hub, options);
    await new Promise((resolve) => server.listen(at.port, at.hostname, resolve));
    return server.address().port;
  }
  const watch = createFetchHandler(hub, options);
  const fetch = async (request, more) => {
    if (isWatch(request.url)) return watch(request, more);
    if (!request.url.endsWith('/silent')) more.timeout?.(request, 0);
    return new Response(await control(request.url));
  };
  // The shortest timeout possible.
  if (globalThis.Bun !== undefined) return Bun.serve({ ...at, idleTimeout: 1, fetch }).port;
  return Deno.serve({ ...at, onListen() {} }, fetch).addr.port;
}

console.log(await listen());
