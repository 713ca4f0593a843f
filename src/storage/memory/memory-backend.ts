/** A `MemoryStorage` as a backend, for a cacher that follows it, and for code that works with any backend. */
import type { KubernetesObject } from '../../cache/object.ts';
import { WatchError } from '../../watch/errors.ts';
import { atOnce } from '../../watch/fair-queue.ts';
import type {
  Backend,
  Change,
  ChangeBatch,
  Changes,
  ChangesOptions,
  Entry,
  GetResult,
  RangeRequest,
  RangeResult,
  ReadOptions,
  Txn,
  TxnResult,
} from '../backend.ts';
import type { StateEntry } from '../collection/change-log.ts';
import { Selection } from '../collection/view.ts';
import type { CollectionWatch } from '../collection/watch.ts';
import { expired } from '../statuses.ts';
import { type Draft, encodedBytes, preparing } from '../values.ts';
import type { Writer } from './writer.ts';

export class MemoryBackend implements Backend {
  readonly #writer: Writer;

  constructor(writer: Writer) {
    this.#writer = writer;
  }

  async get<T extends KubernetesObject>(key: string, { signal }: ReadOptions = {}): Promise<GetResult<T>> {
    const { collection, watches } = this.#writer;
    watches.pending.check(signal);
    const object = collection.get(key) as T | undefined;
    return { entry: object && { key, object }, revision: collection.version };
  }

  async range<T extends KubernetesObject>(request: RangeRequest): Promise<RangeResult<T>> {
    const { prefix, from = prefix, after, limit, revision, signal } = request;
    const { collection, watches } = this.#writer;
    watches.pending.check(signal);
    if (revision !== undefined) this.#writer.reach(revision);
    const version = revision ?? collection.version;
    const state = revision === undefined ? collection.snapshot() : await collection.snapshotAt(revision, signal);
    if (!state) throw expired(version, collection.log.base);
    const entries: StateEntry<KubernetesObject>[] = [];
    let bytes = 0;
    let left = 0;
    for (const entry of state.values(prefix, after ? `${after.key}\0` : from)) {
      if (entries.length === limit) {
        left = state.count(prefix, entry.key);
        break;
      }
      entries.push(entry);
      bytes += encodedBytes(entry.object) ?? 0;
    }
    return { entries: entries as readonly Entry<unknown>[] as readonly Entry<T>[], revision: version, left, bytes };
  }

  async txn<T extends KubernetesObject>({ key, expected, put, ttlSeconds, signal }: Txn<T>): Promise<TxnResult<T>> {
    const writer = this.#writer;
    writer.watches.pending.check(signal);
    const head = writer.head(key) as T | undefined;
    if ((head?.metadata?.resourceVersion ?? '0') !== expected) {
      await writer.safe();
      return { succeeded: false, current: head && { key, object: head } };
    }
    if (!head && !put) {
      await writer.safe();
      return { succeeded: true, revision: writer.collection.version, object: undefined };
    }
    const prepared = put && atOnce(preparing<KubernetesObject>((put as Draft<T>).object));
    const object = writer.write(key, prepared, ttlSeconds) as T;
    await writer.safe();
    return { succeeded: true, revision: object.metadata?.resourceVersion as string, object: put && object };
  }

  changesAfter<T extends KubernetesObject>(revision: string, options: ChangesOptions): Changes<T> {
    return new MemoryChanges<T>(this.#writer, revision, options.prefix);
  }

  async revision({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<string> {
    this.#writer.watches.pending.check(signal);
    return this.#writer.collection.version;
  }

  async hasGiven(revision: string): Promise<boolean> {
    return this.#writer.hasGiven(revision);
  }

  async pastRevision(changes: number): Promise<string> {
    return this.#writer.ago(changes);
  }

  close(): Promise<void> {
    return this.#writer.close();
  }
}

/** A watch of everything below a prefix. Its events are the log's changes from one place on, which have keys. */
class MemoryChanges<T extends KubernetesObject> implements Changes<T> {
  readonly #writer: Writer;
  readonly #revision: string;
  readonly #prefix: string;
  #opening: Promise<void> | undefined;
  #watch: CollectionWatch<KubernetesObject> | undefined;
  #place: number = 0;
  #closed: boolean = false;

  constructor(writer: Writer, revision: string, prefix: string) {
    this.#writer = writer;
    this.#revision = revision;
    this.#prefix = prefix;
  }

  open(): Promise<void> {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async #open(): Promise<void> {
    const { collection, watches } = this.#writer;
    const selection = new Selection(collection.readerOf(NO_FIELDS, ''), { prefix: this.#prefix });
    const opening = watches.open(selection, { resourceVersion: this.#revision, allowWatchBookmarks: true });
    const place = collection.log.after(this.#revision);
    this.#watch = await opening;
    this.#place = place as number;
    if (this.#closed) void this.#watch.return();
  }

  async next(): Promise<ChangeBatch<T> | undefined> {
    await this.open();
    for (;;) {
      const batch = this.poll();
      if (batch || this.#closed) return batch;
      const watch = this.#watch as CollectionWatch<KubernetesObject>;
      if (watch.over) throw new WatchError('CLOSED', 'the storage is closed');
      await new Promise<void>((resolve) => watch.listen({ readable: resolve }));
    }
  }

  poll(): ChangeBatch<T> | undefined {
    const events = this.#watch?.tryBatch();
    if (!events) return undefined;
    const changes: Change<T>[] = [];
    let progress: string | undefined;
    for (const event of events) {
      if (event.type === 'ERROR')
        throw new WatchError('REFUSED', `410 Expired: ${event.object.message}`, { status: event.object });
      if (event.type === 'BOOKMARK') progress = event.object.metadata.resourceVersion;
      else changes.push(this.#next());
    }
    return { changes, progress };
  }

  /** The next change below the prefix. */
  #next(): Change<T> {
    const { log } = this.#writer.collection;
    for (;;) {
      const { key, version: revision, before, after, event } = log.at(this.#place++);
      if (!key.startsWith(this.#prefix)) continue;
      return {
        type: event.type,
        key,
        revision,
        object: after?.object as T | undefined,
        previous: before?.object as T | undefined,
      };
    }
  }

  requestProgress(): void {
    this.#watch?.bookmark(true);
  }

  close(): void {
    this.#closed = true;
    void this.#watch?.return();
  }
}

const NO_FIELDS = {};
