/** The entry point `watchmux/etcd`: a storage whose objects are in etcd. For Node, without dependencies. */
import type { KubernetesObject } from '../../cache/object.ts';
import { BackedStorage } from '../backed-storage.ts';
import { EtcdBackend } from './etcd-backend.ts';
import { type EtcdStorageOptions, settingsOf } from './options.ts';

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
export class EtcdStorage<T extends KubernetesObject = KubernetesObject> extends BackedStorage<T> {
  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
  constructor(options: EtcdStorageOptions<T>) {
    const settings = settingsOf(options);
    const { root: prefix, clock, random, onError } = settings;
    super(new EtcdBackend(settings), { prefix, fields: options.fields, clock, random, onError });
  }
}

export type { FieldFunctions, ScopeOptions, Storage } from '../storage.ts';
export type { EtcdStorageOptions, EtcdTls } from './options.ts';
