// A storage that several servers share: each sees the others' writes when it is let to.
import type { KubernetesObject } from '../../src/cache/object.ts';
import type { Backend, ChangeBatch, Changes, ChangesOptions } from '../../src/storage/backend.ts';
import { BackedStorage, type MemoryStorage } from '../../src/storage/index.ts';
import { Latch } from '../../src/watch/abort.ts';

/** What one server sees of the storage. */
export interface Sight {
  readonly storage: BackedStorage;
  /** From now on, no change below a prefix is told. Returns what lets them through. */
  hold(prefix: string): () => void;
}

/** A server's own way to a storage in memory, in front of which it has a cache. */
export function sightOf(memory: MemoryStorage): Sight {
  const { backend } = memory.backing;
  const held = new Map<string, Latch>();
  const seen = new Proxy(backend, {
    get: (target, name) => {
      if (name === 'changesAfter') {
        return <T extends KubernetesObject>(revision: string, options: ChangesOptions) =>
          new HeldChanges<T>(target.changesAfter<T>(revision, options), () => held.get(options.prefix));
      }
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  return {
    storage: new BackedStorage(seen),
    hold: (prefix) => {
      const latch = new Latch();
      held.set(prefix, latch);
      return () => {
        held.delete(prefix);
        latch.open();
      };
    },
  };
}

class HeldChanges<T> implements Changes<T> {
  readonly #changes: Changes<T>;
  readonly #held: () => Latch | undefined;
  readonly #closed: Latch = new Latch();

  constructor(changes: Changes<T>, held: () => Latch | undefined) {
    this.#changes = changes;
    this.#held = held;
  }

  open(): Promise<void> {
    return this.#changes.open();
  }
  poll(): ChangeBatch<T> | undefined {
    return this.#held() ? undefined : this.#changes.poll();
  }
  async next(): Promise<ChangeBatch<T> | undefined> {
    const batch = await this.#changes.next();
    await Promise.race([this.#held()?.promise, this.#closed.promise]);
    return batch;
  }
  requestProgress(): void {
    this.#changes.requestProgress();
  }
  close(): void {
    this.#closed.open();
    this.#changes.close();
  }
}
