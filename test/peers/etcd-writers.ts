// Programs that write into a storage all the time, whatever happens to its etcd, and what they were answered; and a watch that is
// checked event by event.
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject, ListWatchOptions } from '../../src/cache/index.ts';
import type { Watch } from '../../src/index.ts';
import type { Storage, StorageEvent } from '../../src/storage/index.ts';
import { randomOf } from './proxy.ts';

const WRITERS = 4;
const NAMES = 24;

/** A write that was answered: its key and revision. */
export interface Written {
  readonly name: string;
  readonly version: string;
}

const versionOf = (object: KubernetesObject): string => object.metadata?.resourceVersion ?? '';
const nameOf = (object: KubernetesObject): string => object.metadata?.name ?? '';

export class StorageWriters {
  /** Every write that was answered. A few are updates that changed nothing, which have the version of before. */
  readonly written: Written[] = [];
  failures: number = 0;
  readonly #random: () => number;
  readonly #loops: Promise<void>[];
  #stopped: boolean = false;

  /** Each writer has a storage, which may be a client of its own. */
  constructor(storages: readonly Storage[], seed: number) {
    this.#random = randomOf(seed);
    this.#loops = Array.from({ length: WRITERS }, (_, at) => this.#loop(storages[at % storages.length] as Storage));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  async #loop(storage: Storage): Promise<void> {
    while (!this.#stopped) {
      try {
        const object = await this.#write(storage);
        this.written.push({ name: nameOf(object), version: versionOf(object) });
        await sleep(2);
      } catch (error) {
        // It is refused if the object is there already, or is not. Otherwise etcd is not there.
        if ((error as { code?: string }).code !== 'REFUSED') this.failures++;
      }
    }
  }

  #write(storage: Storage): Promise<KubernetesObject> {
    const name = `n${Math.floor(this.#random() * NAMES)}`;
    const labels = { parity: this.#random() < 0.5 ? 'odd' : 'even' };
    const annotations = { n: `${this.#random()}`, text: 'x'.repeat(Math.floor(this.#random() * 300)) };
    const what = this.#random();
    const object = { metadata: { name, labels, annotations } };
    if (what < 0.3) return storage.create(name, object);
    if (what < 0.8) return storage.update(name, () => object);
    return storage.delete(name);
  }
}

/** Reads a watch from a version on, and checks that each event follows from those before. */
export class CheckedWatch {
  readonly state: Map<string, KubernetesObject> = new Map();
  readonly faults: string[] = [];
  /** Names by the version of their events. */
  readonly seen: Map<string, string> = new Map();
  bookmarks: number = 0;
  last: bigint;
  error: number | undefined;
  readonly #watch: Watch<StorageEvent<KubernetesObject>>;
  readonly #read: Promise<void>;

  constructor(watch: Watch<StorageEvent<KubernetesObject>>, after: string) {
    this.#watch = watch;
    this.last = BigInt(after);
    this.#read = this.#loop();
  }

  static async open(storage: Storage, options: ListWatchOptions = {}): Promise<CheckedWatch> {
    const { items, resourceVersion } = await storage.list(options);
    const watch = await storage.watch({ ...options, resourceVersion, allowWatchBookmarks: true });
    const checked = new CheckedWatch(watch, resourceVersion);
    for (const item of items) checked.state.set(nameOf(item), item);
    return checked;
  }

  get versions(): string[] {
    return Array.from(this.state.values(), (each) => `${nameOf(each)}@${versionOf(each)}`).sort();
  }

  async end(): Promise<void> {
    await this.#watch.return();
    await this.#read;
  }

  async #loop(): Promise<void> {
    for await (const event of this.#watch) {
      if (event.type === 'ERROR') this.error = event.object.code;
      else if (event.type === 'BOOKMARK') this.#bookmark(BigInt(event.object.metadata.resourceVersion));
      else this.#change(event);
    }
  }

  #bookmark(version: bigint): void {
    this.bookmarks++;
    if (version < this.last) this.faults.push(`BOOKMARK ${version} after ${this.last}`);
    this.last = version;
  }

  #change({ type, object, previous }: Exclude<StorageEvent<KubernetesObject>, { type: 'BOOKMARK' | 'ERROR' }>): void {
    const [name, version] = [nameOf(object), versionOf(object)];
    const known = this.state.get(name);
    // Every writer changes one key at a time, so every event has a revision of its own.
    if (BigInt(version) <= this.last) this.faults.push(`${type} ${name}@${version} after ${this.last}`);
    if ((known !== undefined) !== (type !== 'ADDED'))
      this.faults.push(`${type} ${name}@${version}, known ${known !== undefined}`);
    if (known && (!previous || versionOf(previous) !== versionOf(known)) && type === 'MODIFIED') {
      this.faults.push(`${type} ${name}@${version} has previous ${previous && versionOf(previous)}, known ${versionOf(known)}`);
    }
    this.last = BigInt(version);
    this.seen.set(version, name);
    if (type === 'DELETED') this.state.delete(name);
    else this.state.set(name, object);
  }
}
