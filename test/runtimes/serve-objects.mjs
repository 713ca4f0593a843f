// An API server behind the runtime's own `fetch` server, or behind Hono there, for runtimes.test.ts. Prints its port. A request for
// /shutdown ends it.
import { Hono } from 'hono';
import { ApiServer } from 'watchmux/apiserver';
import { MemoryStorage } from 'watchmux/storage';

const [how, settings = '{}'] = process.argv.slice(2);
const api = new ApiServer({
  storage: new MemoryStorage(),
  resources: [{ group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' }],
  // Asynchronous, as if it asked a database.
  authenticate: async (request) => {
    const said = request.headers.get('authorization') ?? 'anonymous';
    return said === 'unknown' ? undefined : said === 'banned' ? { status: 403 } : said;
  },
  ...JSON.parse(settings),
});
await api.ready;

const { Bun, Deno } = globalThis;

/** What the host passes on beside the request: it knows the client's address. */
async function serve(request, host) {
  if (!request.url.endsWith('/shutdown')) return api.fetch(request, host);
  await api.shutdown();
  return new Response('down');
}

const app = new Hono();
app.all('/*', (context) => serve(context.req.raw, context.env));

const handler = how === 'hono' ? (request, host) => app.fetch(request, host) : serve;
const at = { hostname: '127.0.0.1', port: 0 };
// The shortest timeout possible.
const port =
  Bun === undefined
    ? Deno.serve({ ...at, onListen() {} }, handler).addr.port
    : Bun.serve({ ...at, idleTimeout: 1, fetch: handler }).port;
console.log(port);
