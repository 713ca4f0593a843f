// @ts-check
import { connect, isInitialEventsEnd } from 'watchmux/client';

/** @typedef {{ metadata: { name: string }, total: number, state: string }} Order */
/** @typedef {import('watchmux').WatchEvent<'ADDED' | 'MODIFIED' | 'DELETED', Order>} OrderEvent */

const [url = 'http://127.0.0.1:8080/watch'] = process.argv.slice(2);
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());

/**
 * `restart`: if the position in the stream is lost, one ERROR of code 410 arrives, followed by a new snapshot.
 * @type {import('watchmux/client').ClientWatch<import('watchmux/client').ClientEvent<OrderEvent>>}
 */
const watch = connect(url, {
  signal: stop.signal,
  onExpired: 'restart',
  onStateChange: (state) => console.log(`  ${state}${state === 'connecting' ? ` from ${watch.resourceVersion}` : ''}`),
});

/** This client's copy of the server's state. */
const orders = new Map();
for await (const event of watch) {
  if (event.type === 'ERROR') {
    console.log(`ERROR ${event.object.code}: ${event.object.message}`);
    // The whole state follows. Orders that are not part of it no longer exist.
    orders.clear();
  } else if (event.type === 'BOOKMARK') {
    if (isInitialEventsEnd(event)) console.log(`-- end of the snapshot: ${orders.size} orders`);
  } else {
    const { metadata, total, state } = event.object;
    if (event.type === 'DELETED') orders.delete(metadata.name);
    else orders.set(metadata.name, event.object);
    console.log(`${event.type} ${metadata.name}: ${total}, ${state}; ${orders.size} orders`);
  }
}
