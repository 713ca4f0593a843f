// @ts-check
import { Broadcaster, toStatus, WatchError } from 'watchmux';
import { INITIAL_EVENTS_END } from 'watchmux/cache';

/** @typedef {{ metadata: { name: string, resourceVersion?: string }, customer: string, total: number, paid: boolean }} Order */
/** @typedef {import('watchmux').ObjectEvent<Order>} OrderEvent */
/** @template T @typedef {import('watchmux/cache').ListWatcher<T>} ListWatcher */

/** How many changes a reader may have missed before it has to list again. */
const KEPT = 1_000;

/**
 * Orders in memory that can be listed and watched, as in your own database. Each change makes one version and one event.
 * @implements {ListWatcher<Order>}
 */
export class Orders {
  /** @type {Map<string, Order>} */
  #orders = new Map();
  #version = 0;
  /** @type {Broadcaster<OrderEvent, import('watchmux').ErrorEvent>} A reader that is too slow gets a 410, and lists again. */
  #changes = new Broadcaster({ replay: KEPT, overflow: 'disconnect' });

  /** @param {Order} order */
  put(order) {
    const { name } = order.metadata;
    const type = this.#orders.has(name) ? 'MODIFIED' : 'ADDED';
    this.#change(type, order, (stored) => this.#orders.set(name, stored));
  }

  /** @param {string} name */
  remove(name) {
    const order = this.#orders.get(name);
    if (order) this.#change('DELETED', order, () => this.#orders.delete(name));
  }

  async list() {
    return { items: [...this.#orders.values()], resourceVersion: `${this.#version}` };
  }

  /** @param {import('watchmux/cache').ListWatchOptions} options */
  async watch({ resourceVersion, sendInitialEvents, signal } = {}) {
    if (sendInitialEvents || !resourceVersion) {
      const prefix = Array.from(this.#orders.values(), (object) => /** @type {OrderEvent} */ ({ type: 'ADDED', object }));
      const metadata = { resourceVersion: `${this.#version}`, annotations: { [INITIAL_EVENTS_END]: 'true' } };
      return this.#changes.watch({ prefix: [...prefix, { type: 'BOOKMARK', object: { metadata } }], signal });
    }
    const missed = this.#version - Number(resourceVersion);
    if (!(missed >= 0 && missed <= KEPT)) {
      const status = toStatus({ code: 410, reason: 'Expired', message: `version ${resourceVersion} is too old` });
      throw new WatchError('REFUSED', status.message, { status });
    }
    return this.#changes.watch({ replay: missed, signal });
  }

  /**
   * State and log change in one step, so that no reader begins between the two.
   * @param {'ADDED' | 'MODIFIED' | 'DELETED'} type
   * @param {Order} order
   * @param {(stored: Order) => void} apply
   */
  #change(type, order, apply) {
    const resourceVersion = `${++this.#version}`;
    const object = { ...order, metadata: { ...order.metadata, resourceVersion } };
    apply(object);
    this.#changes.tryPublish({ type, object });
  }
}
