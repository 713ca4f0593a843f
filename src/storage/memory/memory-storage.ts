import type { KubernetesObject } from '../../cache/object.ts';
import type { Watches } from '../collection/watches.ts';
import { parseVersion } from '../selection.ts';
import { MemoryScope } from './memory-scope.ts';
import { type MemoryStorageOptions, settingsOf } from './options.ts';
import { Writer } from './writer.ts';

/** What a {@link MemoryStorage} holds at one moment. */
export interface MemoryStorageStats {
  /** The bytes of JSON of all objects. */
  readonly bytes: number;
  /** The number of changes that are kept, and their size in bytes. */
  readonly historyItems: number;
  readonly historyBytes: number;
  /** The number of watches that have not ended. */
  readonly watches: number;
}

/**
 * Versioned objects in memory. See {@link Storage} for what a storage promises, and `openMemoryStorage` to keep them in a file.
 *
 *     const storage = new MemoryStorage();
 *     const orders = storage.scope<Order>('orders/');
 *     await orders.create('default/first', { metadata: { name: 'first' }, spec: { amount: 3 } });
 *     for await (const { type, object } of await orders.watch()) ...
 */
export class MemoryStorage<T extends KubernetesObject = KubernetesObject> extends MemoryScope<T> {
  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
  constructor(options: MemoryStorageOptions<T> = {}) {
    const writer = new Writer(settingsOf(options));
    super(writer, {
      prefix: '',
      fields: options.fields ?? {},
      watches: writer.watches as Watches<KubernetesObject> as unknown as Watches<T>,
    });
  }

  get stats(): MemoryStorageStats {
    const { bytes, watchGroups, collection } = this.writer;
    return { bytes, watches: watchGroups.size, historyItems: collection.log.length, historyBytes: collection.log.bytes };
  }

  /** The oldest version at which lists can be read, and from which watches can begin. */
  get oldestVersion(): string {
    return this.writer.collection.log.base;
  }

  /**
   * Drops the states before a version; default: before the newest. Watches and lists that need them get a 410.
   *
   * @throws {WatchError} REFUSED with code 400 for an invalid version, 410 for one that this storage cannot have given.
   */
  compact(version?: string): void {
    const parsed = parseVersion(version);
    if (parsed !== undefined) this.writer.reach(parsed);
    this.writer.collection.compact(parsed);
  }

  override close(): Promise<void> {
    return this.writer.close();
  }
}
