// @ts-check
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { html } from 'hono/html';
import { createFetchHandler, Hub } from 'watchmux/fetch';

/** @typedef {import('watchmux').WatchEvent<'MODIFIED', { symbol: string, price: number }>} Price */

/** @type {Hub<Price>} */
const hub = new Hub({ replay: 3, overflow: 'coalesce', keyOf: ({ object }) => object.symbol });

const watch = createFetchHandler(hub, {
  // The result is the client's identity; undefined means 401.
  authenticate: (request) => new URL(request.url).searchParams.get('token') ?? undefined,
  watchOptions: (request) => {
    const symbol = new URL(request.url).searchParams.get('symbol');
    if (symbol === null) return {};
    return { filter: ({ object }) => object.symbol === symbol };
  },
});

const app = new Hono();
app.get('/watch', (c) => watch(c.req.raw, c.env)); // c.env: the connection
app.get('/', (c) =>
  c.html(html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>prices</title>
<link rel="icon" href="data:,">
<style>body { font: 1.2rem/1.6 system-ui, sans-serif; margin: 2rem; font-variant-numeric: tabular-nums } td { padding: 0 1.5rem 0 0 }</style>
<h1>prices</h1>
<table><tbody id="prices"></tbody></table>
<script>
const rows = new Map();
new EventSource('/watch?token=guest').onmessage = ({ data }) => {
  const { object: { symbol, price } } = JSON.parse(data);
  if (symbol === undefined) return;
  if (!rows.has(symbol)) rows.set(symbol, document.getElementById('prices').insertRow());
  const row = rows.get(symbol);
  row.replaceChildren();
  row.insertCell().textContent = symbol;
  row.insertCell().textContent = price.toFixed(2);
};
</script>
</html>`),
);

/** @type {Record<string, number>} */
const prices = { ABC: 100, DEF: 50, GHI: 10 };
const market = setInterval(() => {
  for (const [symbol, price] of Object.entries(prices)) {
    prices[symbol] = Math.max(1, price * (1 + (Math.random() - 0.5) / 50));
    void hub.publish({ type: 'MODIFIED', object: { symbol, price: prices[symbol] } });
  }
}, 200);

const server = serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 8080), hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`prices: http://127.0.0.1:${port}`);
});

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    clearInterval(market);
    await hub.shutdown({ signal: AbortSignal.timeout(2_000), retryAfterMs: 2_000 });
    server.close();
    if ('closeAllConnections' in server) server.closeAllConnections();
  });
}
