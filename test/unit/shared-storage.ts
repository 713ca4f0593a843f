// A storage that several servers share: each sees the others' writes when it is let to, and others act when a test wants it.
import type { KubernetesObject } from '../../src/cache/object.ts';
import type { ChangeBatch, Changes, ChangesOptions } from '../../src/storage/backend.ts';
import { BackedStorage, type MemoryStorage, type Storage } from '../../src/storage/index.ts';
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

/** A storage in which something happens right before some of its calls. */
export function preceded(storage: Storage, happens: (method: string, key: string) => Promise<unknown> | undefined): Storage {
  return new Proxy(storage, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name === 'scope' || name === 'served') {
        return (...args: never[]) => preceded(value.apply(target, args) as Storage, happens);
      }
      if (name !== 'create' && name !== 'delete' && name !== 'update') return value.bind(target);
      return async (...args: [string, ...never[]]) => {
        await happens(name, args[0]);
        return value.apply(target, args);
      };
    },
  });
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
