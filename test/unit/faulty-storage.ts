// A storage in memory with the faults that a network and a busy server have, and a record of every write that it has answered.
import type { List, ListOptions, ListWatchOptions } from '../../src/cache/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { versionOf } from '../../src/cache/object.ts';
import type { Backend, Backing, ChangeBatch, Changes, ChangesOptions } from '../../src/storage/backend.ts';
import {
  type CreateOptions,
  type DeleteOptions,
  type GetOptions,
  MemoryStorage,
  type MemoryStorageOptions,
  type ScopeOptions,
  type Storage,
  type StorageEvent,
  type UpdateOptions,
} from '../../src/storage/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { type Status, toStatus } from '../../src/watch/event.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import type { Watch } from '../../src/watch/watch.ts';

export interface Pod extends KubernetesObject {
  readonly spec?: { readonly node?: string | undefined; readonly n: number };
}

export function pod(key: string, { app = 'web', node = 'n1', n = 0 }: { app?: string; node?: string; n?: number } = {}): Pod {
  const [namespace, name] = key.split('/') as [string, string];
  return { metadata: { name, namespace, labels: { app } }, spec: { node, n } };
}

export const FIELDS: { readonly 'spec.node': (object: Pod) => string | undefined } = {
  'spec.node': (object) => object.spec?.node,
};

/** What is wrong with a storage, and what was asked of it. Shared by its scopes. */
class Faults {
  /** Resolves when events may pass. */
  gate: Promise<void> = Promise.resolve();
  open: () => void = () => {};
  readonly codes: { list: number[]; watch: number[]; currentVersion: number[] } = { list: [], watch: [], currentVersion: [] };
  /** Called to cut each open watch: with nothing, or with the code of an ERROR. */
  readonly cuts: Set<(code?: number) => void> = new Set();
  /** Told by the next event of a watch, in its place. */
  readonly injected: StorageEvent<Pod>[] = [];
  readonly asked: string[] = [];
  mutesProgress: boolean = false;
  isHeld: boolean = false;
  /** Whether its storages tell their backend, which has the same faults. */
  isBacked: boolean = false;

  ask(what: 'list' | 'watch' | 'currentVersion', text: string): void {
    this.asked.push(text);
    const code = this.codes[what].shift();
    if (code !== undefined) throw refused(code, code === 410 ? 'Expired' : 'InternalError', 'it was told to fail');
  }
}

export class FaultyStorage implements Storage<Pod> {
  readonly #storage: Storage<Pod>;
  readonly faults: Faults;
  readonly updates: UpdateOptions<Pod>[] = [];
  readonly deletes: DeleteOptions<Pod>[] = [];

  constructor(storage: Storage<Pod> = new MemoryStorage<Pod>(), faults: Faults = new Faults()) {
    this.#storage = storage;
    this.faults = faults;
  }

  /** Holds back all events of watches, until `release`. */
  hold(): void {
    this.release();
    this.faults.isHeld = true;
    this.faults.gate = new Promise((resolve) => {
      this.faults.open = resolve;
    });
  }
  release(): void {
    this.faults.isHeld = false;
    this.faults.open();
  }

  get backing(): Backing | undefined {
    const { backing } = this.#storage;
    return this.faults.isBacked && backing ? { ...backing, backend: faultyBackend(backing.backend, this.faults) } : undefined;
  }

  /** Ends all watches; with a code, by an ERROR. */
  cut(code?: number): void {
    for (const cut of [...this.faults.cuts]) cut(code);
  }

  /** Has a watch tell this in the place of a BOOKMARK. */
  inject(event: StorageEvent<Pod>): void {
    this.faults.injected.push(event);
    void this.#storage.requestProgress();
  }

  async list(options: ListOptions = {}): Promise<List<Pod>> {
    this.faults.ask('list', `list ${options.resourceVersion ?? ''}`);
    return await this.#storage.list(options);
  }
  async watch(options: ListWatchOptions = {}): Promise<Watch<StorageEvent<Pod>>> {
    this.faults.ask('watch', `watch ${options.resourceVersion ?? ''}`);
    return fromAsyncIterable(this.#gated(await this.#storage.watch(options)));
  }
  async *#gated(inner: Watch<StorageEvent<Pod>>): AsyncGenerator<StorageEvent<Pod>, undefined> {
    const { faults } = this;
    let cut: (code?: number) => void = () => {};
    const ended = new Promise<Cut>((resolve) => {
      cut = (code) => resolve({ cut: true, code });
    });
    faults.cuts.add(cut);
    try {
      for (;;) {
        const result = await Promise.race([inner.next(), ended]);
        const passed = 'cut' in result ? result : await Promise.race([faults.gate, ended]);
        if (passed) {
          if (passed.code !== undefined) yield { type: 'ERROR', object: failure(passed.code) };
          return undefined;
        }
        if ('cut' in result || result.done) return undefined;
        yield faults.injected.shift() ?? result.value;
      }
    } finally {
      faults.cuts.delete(cut);
      await inner.return();
    }
  }
  async currentVersion(options?: { signal?: AbortSignal | undefined }): Promise<string> {
    this.faults.ask('currentVersion', 'currentVersion');
    return await this.#storage.currentVersion(options);
  }
  async requestProgress(): Promise<void> {
    this.faults.asked.push('progress');
    if (!this.faults.mutesProgress) await this.#storage.requestProgress();
  }
  async get(key: string, options?: GetOptions): Promise<Pod | undefined> {
    this.faults.asked.push(`get ${key}`);
    return await this.#storage.get(key, options);
  }
  create(key: string, object: Pod, options?: CreateOptions): Promise<Pod> {
    return this.#storage.create(key, object, options);
  }
  update(key: string, change: (current: Pod) => Pod | Promise<Pod>, options: UpdateOptions<Pod> = {}): Promise<Pod> {
    this.updates.push(options);
    return this.#storage.update(key, change, options);
  }
  delete(key: string, options: DeleteOptions<Pod> = {}): Promise<Pod> {
    this.deletes.push(options);
    return this.#storage.delete(key, options);
  }
  scope<U extends KubernetesObject = Pod>(prefix: string, options?: ScopeOptions<U>): Storage<U> {
    return new FaultyStorage(
      this.#storage.scope(prefix, options) as unknown as Storage<Pod>,
      this.faults,
    ) as unknown as Storage<U>;
  }
  close(): Promise<void> {
    return this.#storage.close();
  }
}

/** A backend whose ranges and changes fail as the lists and watches of a storage do. */
function faultyBackend(backend: Backend, faults: Faults): Backend {
  const own: Partial<Backend> = {
    range: async (request) => {
      faults.ask('list', `range ${request.revision ?? ''}`);
      return await backend.range(request);
    },
    changesAfter: <T extends KubernetesObject>(revision: string, options: ChangesOptions) =>
      new FaultyChanges<T>(backend.changesAfter<T>(revision, options), faults, revision),
  };
  return new Proxy(backend, {
    get: (target, name) => {
      const member: unknown = own[name as keyof Backend] ?? Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

class FaultyChanges<T> implements Changes<T> {
  readonly #changes: Changes<T>;
  readonly #faults: Faults;
  readonly #revision: string;
  readonly #ended: Promise<Cut>;
  #cut: (code?: number) => void = () => {};
  #isOver: boolean = false;

  constructor(changes: Changes<T>, faults: Faults, revision: string) {
    this.#changes = changes;
    this.#faults = faults;
    this.#revision = revision;
    this.#ended = new Promise((resolve) => {
      this.#cut = (code) => {
        this.#isOver = true;
        resolve({ cut: true, code });
      };
    });
  }

  async open(): Promise<void> {
    this.#faults.ask('watch', `changes ${this.#revision}`);
    await this.#changes.open();
    if (!this.#isOver) this.#faults.cuts.add(this.#cut); // it may have been closed meanwhile
  }
  poll(): ChangeBatch<T> | undefined {
    return this.#faults.isHeld || this.#isOver ? undefined : this.#changes.poll();
  }
  async next(): Promise<ChangeBatch<T> | undefined> {
    const batch = await Promise.race([this.#changes.next(), this.#ended]);
    const over = batch !== undefined && 'cut' in batch ? batch : await Promise.race([this.#faults.gate, this.#ended]);
    if (over?.code !== undefined) throw refused(over.code, over.code === 410 ? 'Expired' : 'No', 'it was told to fail');
    return over ? undefined : (batch as ChangeBatch<T> | undefined);
  }
  requestProgress(): void {
    if (!this.#faults.mutesProgress) this.#changes.requestProgress();
  }
  close(): void {
    this.#faults.cuts.delete(this.#cut);
    this.#cut();
    this.#changes.close();
  }
}

const failure = (code: number): Status =>
  toStatus({ code, reason: code === 410 ? 'Expired' : 'No', message: 'it was told to fail' });

/** The end of a watch, with the code of an ERROR if it has one. */
interface Cut {
  readonly cut: true;
  readonly code: number | undefined;
}

/** A write that was answered. */
export interface Revision {
  readonly version: number;
  readonly key: string;
  readonly before: Pod | undefined;
  readonly after: Pod | undefined;
  /** What a deletion has answered with. */
  readonly last?: Pod | undefined;
}

/** The pods of a storage that has other things, too, and every change of them: what a cacher is judged by. */
export class Pods {
  readonly memory: MemoryStorage<Pod>;
  readonly storage: FaultyStorage;
  readonly revisions: Revision[] = [];
  readonly #now: Map<string, Pod> = new Map();

  constructor(options?: MemoryStorageOptions<Pod>) {
    this.memory = new MemoryStorage<Pod>(options);
    this.storage = new FaultyStorage(this.memory.scope('pods/'));
  }

  async put(key: string, what: { app?: string; node?: string; n?: number } = {}): Promise<Pod> {
    const after = await this.memory.update(`pods/${key}`, () => pod(key, what), { createIfMissing: true });
    const before = this.#now.get(key);
    if (versionOf(after) !== versionOf(before)) this.revisions.push({ version: Number(versionOf(after)), key, before, after });
    this.#now.set(key, after);
    return after;
  }
  async remove(key: string): Promise<Pod | undefined> {
    const before = this.#now.get(key);
    if (!before) return undefined;
    const last = await this.memory.delete(`pods/${key}`);
    this.#now.delete(key);
    this.revisions.push({ version: Number(versionOf(last)), key, before, after: undefined, last });
    return last;
  }
  /** A write that no pod has part in. */
  async elsewhere(): Promise<void> {
    await this.memory.update('other/thing', (now) => pod('other/thing', { n: (now?.spec?.n ?? 0) + 1 }), {
      createIfMissing: true,
    });
  }

  /** What there was at a version, by key. */
  at(version: number): Map<string, Pod> {
    const state = new Map<string, Pod>();
    for (const { key, after, version: then } of this.revisions) {
      if (then > version) break;
      if (after) state.set(key, after);
      else state.delete(key);
    }
    return state;
  }
}

/** Lets everything happen that can happen without time. */
export async function settle(turns: number = 120): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await Promise.resolve();
}
