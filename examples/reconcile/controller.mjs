// @ts-check
import { Informer } from 'watchmux/cache';
import { Controller } from 'watchmux/workqueue';
import { Orders } from './orders.mjs';

/** @typedef {import('./orders.mjs').Order} Order */

const REMIND_MS = Number(process.env.REMIND_MS ?? 2_000);

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());

const source = new Orders();
const orders = new Informer(source, { indexers: { customer: (/** @type {Order} */ order) => [order.customer] } });

/** What each customer owes, as this program has worked it out. @type {Map<string, number>} */
const owed = new Map();

/** Ann pays for one order after each reminder. */
const payments = [
  () => source.put({ metadata: { name: '1' }, customer: 'ann', total: 30, paid: true }),
  () => source.remove('2'),
];

const controller = new Controller({
  // Keys are customers: whatever happens to one of their orders, they are looked at again.
  informers: [{ informer: orders, keysOf: (/** @type {Order} */ order) => [order.customer] }],
  async reconcile(customer) {
    const open = orders.store.byIndex('customer', customer).filter(({ paid }) => !paid);
    const sum = open.reduce((total, order) => total + order.total, 0);
    if (owed.get(customer) !== sum) console.log(`${customer} owes ${sum}`);
    else if (sum > 0) {
      console.log(`${customer} still owes ${sum}`);
      setTimeout(() => payments.shift()?.(), REMIND_MS / 2); // in a real program, somebody else does that
    }
    owed.set(customer, sum);
    // Look again later, even if nothing changes.
    return sum > 0 ? { requeueAfterMs: REMIND_MS } : undefined;
  },
});
const running = controller.run(stop.signal);

source.put({ metadata: { name: '1' }, customer: 'ann', total: 30, paid: false });
source.put({ metadata: { name: '2' }, customer: 'ann', total: 12, paid: false });
source.put({ metadata: { name: '3' }, customer: 'bob', total: 7, paid: true });

await running;
console.log('stopped');
