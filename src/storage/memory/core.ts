/**
 * What all scopes of a `MemoryStorage` share: the history, the open watches, the times to live, and what waits.
 *
 *     write ---> history.commit ---> (journal, if there is one) ---> reveal ---> watches that wait are served
 *                   one turn                  later                        at the end of the turn
 *
 * A write is visible when it is safe: at once in memory, and with a journal when its group is on disk. An operation that depends
 * on a write that is not visible yet, such as a create that finds the key taken, waits for that as well before it answers: nobody
 * ever learns of a write that could still be lost.
 */
import { Signals } from '../../broadcast/signals.ts';
import type { ListWatchOptions } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { isWatchError, WatchError } from '../../watch/errors.ts';
import { soon } from '../../watch/turn.ts';
import { encoded, encodedBytes, encodedOnce } from '../encoded.ts';
import type { JournalRecord, JournalSnapshot, StorageJournal } from '../journal/journal.ts';
import { newLife } from '../life.ts';
import { refused, tooLargeObject, tooManyRequests } from '../statuses.ts';
import type { Change } from './change.ts';
import { Expiry } from './expiry.ts';
import { History } from './history.ts';
import { HistoryWatch, type HistoryWatchOptions } from './history-watch.ts';
import type { Settings } from './options.ts';
import { Pending } from './pending.ts';
import { type Draft, fromBytes, type Value } from './value.ts';

type AnyWatch = HistoryWatch<KubernetesObject>;

/** What a scope decides of a new watch. */
export type WatchStart = Pick<HistoryWatchOptions<KubernetesObject>, 'prefix' | 'predicate' | 'after' | 'initial' | 'bookmarks'>;

export class Core {
  readonly history: History<KubernetesObject>;
  readonly pending: Pending = new Pending();
  readonly #settings: Settings;
  readonly #expiry: Expiry;
  readonly #watches: Set<AnyWatch> = new Set();
  readonly #signals: Signals<AnyWatch> = new Signals();
  readonly #timers: Map<AnyWatch, () => void> = new Map();
  /** The bytes of all objects, as of the newest write. */
  #bytes: number = 0;
  #waking: boolean = false;
  /** The group of the newest write, and when it is visible. */
  #group: Promise<number> | undefined;
  #safe: Promise<void> | undefined;
  #broken: { readonly error: unknown } | undefined;
  #closed: Promise<void> | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#expiry = new Expiry(settings.clock, (keys) => this.#expire(keys));
    const { journal, startRevision } = settings;
    const restored = journal?.restore((revision) => this.#snapshot(revision));
    this.history = new History(settings.history, restored?.state.revision ?? startRevision ?? 1);
    if (!restored) return;
    this.#restore(restored);
    this.#begin(startRevision ?? newLife(this.history.revision));
  }

  get bytes(): number {
    return this.#bytes;
  }

  get watches(): number {
    return this.#watches.size;
  }

  /** An object as it will be kept if the next write is this one. */
  valueOf(draft: Draft<KubernetesObject>): Value<KubernetesObject> {
    const value = draft.at(`${this.history.revision + 1}`);
    const { maxObjectBytes } = this.#settings;
    if (value.bytes > maxObjectBytes) throw tooLargeObject(value.bytes, maxObjectBytes);
    return value;
  }

  /** Writes what `valueOf` has made in this turn, or with undefined deletes what is there. */
  write(key: string, value: Value<KubernetesObject> | undefined, ttlSeconds: number = 0): Change<KubernetesObject> {
    const { history } = this;
    const bytes = this.#bytes + (value?.bytes ?? 0) - sizeOf(history.head(key)?.object);
    this.checkWritable();
    if (value && bytes > this.#settings.maxBytes) {
      throw tooManyRequests(`the storage is full: it holds ${this.#bytes} of ${this.#settings.maxBytes} bytes`, 10);
    }
    this.#bytes = bytes;
    const change = history.commit(key, value?.object, { now: this.#settings.clock.now() });
    if (!value) void change.left; // made while the old content is known: an empty history drops it at once
    const ttlMs = value && ttlSeconds > 0 ? ttlSeconds * 1_000 : undefined;
    this.#expiry.set(key, ttlMs);
    if (this.#settings.journal) this.#record(change, ttlMs);
    else this.#reveal(change.revision);
    return change;
  }

  /** Why nothing can be written any more. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#broken;
  }

  /** @throws {WatchError} REFUSED with code 500 if the journal has failed: nothing can be written any more. */
  checkWritable(): void {
    if (!this.#broken) return;
    const refusal = refused(500, 'InternalError', 'the journal has failed: nothing is written any more');
    // Not in the text, which may go to strangers: they need not know where the file is.
    refusal.cause = this.#broken.error;
    throw refusal;
  }

  /** Resolves when everything that is written by now is safe, and visible; undefined if it is. */
  safe(): Promise<void> | undefined {
    return this.history.visible < this.history.revision ? this.#safe : undefined;
  }

  /** A refusal, once the writes behind it are safe: what could still be lost must not be revealed. */
  async sure(refusal: WatchError): Promise<WatchError> {
    await this.safe()?.catch(() => this.checkWritable());
    return refusal;
  }

  /** Whether a predicate holds. If a field's function throws, it does not, and the error is reported. */
  guard(holds: () => boolean): boolean {
    try {
      return holds();
    } catch (error) {
      this.#settings.onError(error);
      return false;
    }
  }

  /** Opens a watch. Call `pending.check` before. */
  watch(start: WatchStart, { signal, timeoutSeconds }: ListWatchOptions): AnyWatch {
    const watch: AnyWatch = new HistoryWatch<KubernetesObject>({
      ...start,
      history: this.history,
      onError: this.#settings.onError,
      onEnd: (ended) => this.#forget(ended),
    });
    this.#watches.add(watch);
    if (signal) this.#signals.add(watch, signal);
    if (timeoutSeconds !== undefined && timeoutSeconds > 0) {
      this.#timers.set(
        watch,
        this.#settings.clock.schedule(timeoutSeconds * 1_000, () => watch.stop()),
      );
    }
    return watch;
  }

  /** Makes the watches of a scope deliver a BOOKMARK. */
  progress(prefix: string): void {
    for (const watch of this.#watches) if (watch.prefix.startsWith(prefix)) watch.progress();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.pending.close();
    this.#expiry.clear();
    try {
      if (this.#settings.journal) await this.#settings.journal.close();
    } finally {
      for (const watch of this.#watches) watch.stop();
    }
  }

  #record({ revision, key, object }: Change<KubernetesObject>, ttlMs: number | undefined): void {
    const group = (this.#settings.journal as StorageJournal).append({ revision, key, json: object && encoded(object), ttlMs });
    if (group === this.#group) return;
    this.#group = group;
    this.#safe = group.then(
      (last) => this.#reveal(last),
      (error: unknown) => {
        this.#broken ??= { error };
        this.#settings.onError(error);
        throw isWatchError(error) ? error : new WatchError('TIMEOUT', UNKNOWN, { cause: error });
      },
    );
    this.#safe.catch(() => {}); // nobody waits for a deletion by its time to live
  }

  /** Begins another life of what the journal held. Nobody sees its first revision before that is safe. */
  #begin(revision: number): void {
    if (revision > this.history.revision)
      this.#record(this.history.commit('', undefined, { now: this.#settings.clock.now(), revision }), undefined);
  }

  /** The state to be written. An object becomes JSON when its record is read: all at once, a million would stop the process. */
  #snapshot(revision: number): JournalSnapshot {
    const records: JournalRecord[] = [];
    this.history.scan({ prefix: '', from: '', revision }, (key, object) => {
      const written = Number(object.metadata?.resourceVersion);
      const ttlMs = this.#expiry.left(key);
      records.push({
        ...{ revision: written, key, ttlMs },
        get json(): Uint8Array {
          return encodedOnce(object);
        },
      });
      return true;
    });
    return { revision, records };
  }

  #restore({ state, writes }: ReturnType<StorageJournal['restore']>): void {
    const { clock } = this.#settings;
    for (const { key, json, revision, ttlMs } of state.records) {
      const { object, bytes } = fromBytes<KubernetesObject>(json as Uint8Array);
      this.history.restore(key, object, revision);
      this.#bytes += bytes;
      this.#expiry.set(key, ttlMs);
    }
    for (const { key, json, revision, ttlMs } of writes) {
      const { revision: last } = this.history;
      if (revision <= last) throw new WatchError('INVALID_FRAME', `a journal has revision ${revision} after ${last}`);
      const value = json && fromBytes<KubernetesObject>(json);
      this.#bytes += (value?.bytes ?? 0) - sizeOf(this.history.head(key)?.object);
      const change = this.history.commit(key, value?.object, { now: clock.now(), revision });
      if (change.previous !== undefined && !value) void change.left;
      this.#expiry.set(key, ttlMs);
      this.history.reveal(change.revision, clock.now());
    }
  }

  #reveal(revision: number): void {
    this.history.reveal(revision, this.#settings.clock.now());
    if (this.#waking || this.#watches.size === 0) return;
    this.#waking = true;
    soon(() => {
      this.#waking = false;
      for (const watch of this.#watches) watch.wake();
    });
  }

  #expire(keys: readonly string[]): void {
    for (const key of keys) if (this.history.head(key) && !this.#broken) this.write(key, undefined);
  }

  #forget(watch: AnyWatch): void {
    this.#watches.delete(watch);
    this.#signals.delete(watch);
    this.#timers.get(watch)?.();
    this.#timers.delete(watch);
  }
}

const UNKNOWN = 'the journal has failed before it was certain that the write is safe: it may have happened';

function sizeOf(object: KubernetesObject | undefined): number {
  return object ? (encodedBytes(object) ?? 0) : 0;
}
