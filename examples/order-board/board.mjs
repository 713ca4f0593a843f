// @ts-check
import { createListWatcher, Informer } from 'watchmux/cache';

/**
 * @typedef {{ metadata?: import('watchmux/cache').ObjectMeta, spec?: { item?: string, count?: number },
 *   status?: { state?: string } }} Order
 */

const [url = 'http://127.0.0.1:8080'] = process.argv.slice(2);
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());

const STATES = ['placed', 'paid', 'shipped'];
/** @param {Order} order */
const stateOf = ({ status }) => status?.state ?? 'placed';

/** @type {import('watchmux/cache').ListWatcher<Order>} */
const source = createListWatcher(`${url}/apis/shop.example/v1/orders`);
const orders = new Informer(source, {
  indexers: { state: (/** @type {Order} */ order) => [stateOf(order)] },
  onStateChange: ({ connected }) => show(connected ? '' : '(offline: as it was)'),
});

/** Many changes may come at once: only their result is shown. */
let shown = '';
function show(note = '') {
  const columns = STATES.map((state) => {
    const names = orders.store
      .byIndex('state', state)
      .map(({ metadata, spec }) => `${metadata?.name} ${spec?.count ?? 1}x${spec?.item}`);
    return `${state}: ${names.sort().join(', ') || '-'}`;
  });
  const board = `${[...columns, note].filter(Boolean).join(' | ')}\n`;
  if (board === shown) return;
  shown = board;
  process.stdout.write(process.stdout.isTTY ? `\x1b[H\x1b[2J${columns.join('\n')}\n${note}\n` : board);
}

orders.addHandler({ onAdd: () => show(), onUpdate: () => show(), onDelete: () => show() });
await orders.run(stop.signal);
