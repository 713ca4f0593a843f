import type { KubernetesObject } from '../../cache/object.ts';
import type { Storage } from '../storage.ts';
import { EtcdClient } from './etcd-client.ts';
import { EtcdScope } from './etcd-scope.ts';
import { type EtcdStorageOptions, settingsOf } from './options.ts';

/** A scope without Node's types, which the declarations of this entry point must not need. */
const Scope: new <T extends KubernetesObject>(client: never, options: object) => Storage<T> = EtcdScope as never;

/**
 * Versioned objects in etcd. See `Storage` for what a storage promises. It connects when it is first used, to etcd 3.4.31, 3.5.13
 * or newer; older versions are refused.
 *
 *     const storage = new EtcdStorage({ endpoints: ['http://127.0.0.1:2379'] });
 *     const orders = storage.scope<Order>('orders/');
 *     await orders.create('default/first', { metadata: { name: 'first' }, spec: { amount: 3 } });
 *     for await (const { type, object } of await orders.watch()) ...
 *     await storage.close();
 */
export class EtcdStorage<T extends KubernetesObject = KubernetesObject> extends Scope<T> {
  readonly #client: EtcdClient;

  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
  constructor(options: EtcdStorageOptions<T>) {
    const client = new EtcdClient(settingsOf(options));
    super(client as never, { prefix: client.settings.root, fields: options.fields ?? {} });
    this.#client = client;
  }

  override async close(): Promise<void> {
    this.#client.close();
  }
}
