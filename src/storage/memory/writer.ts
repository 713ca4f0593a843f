/**
 * Writes into the collection of a `MemoryStorage`: revisions and lives, the journal, limits, times to live.
 *
 *     write ---> (journal, if there is one) ---> collection: state, log, views, watches
 *       '--- unsafe: what the journal has not confirmed ---^ in the order of revisions, a group at a time
 *
 * Readers see the collection, so a change enters it once it is safe: immediately without a journal, and with one when its group
 * is on disk. Writes are decided by what was written last, safe or not; and an operation that depends on a write that is not safe
 * yet, such as a create that finds the key taken, waits for it before it answers: nobody ever learns of a write that could still
 * be lost.
 *
 *     revisions     1  2  3  4  5       9  10  11  12
 *                                       |       ^  `#revision: the newest write
 *         a storage that is opened again|       `the collection's version: the newest that anybody may see
 *         leaves out revisions (life.ts)'
 *
 * Invariants
 * - Unsafe writes have the revisions after the collection's version, in order. Each is that of one write, or begins a life.
 * - Gaps between revisions are never forgotten: readers of this storage may keep older states than it does.
 */

import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import { compareDecimals } from '../../cache/versions.ts';
import { isPromise } from '../../watch/abort.ts';
import { type Clock, systemClock, upkeepClock } from '../../watch/clock.ts';
import { checkOptions, invalid, isWatchError, requireMethod, WatchError, wholeNumber } from '../../watch/errors.ts';
import { reporter } from '../../watch/failures.ts';
import { inPieces, type Soon } from '../../watch/fair-queue.ts';
import { type HeapNode, Timetable } from '../../watch/timetable.ts';
import { type LogLimits, StateEntry, type Step } from '../collection/change-log.ts';
import { Collection } from '../collection/collection.ts';
import type { ListSource } from '../collection/lists.ts';
import { type Watches, WatchGroups } from '../collection/watches.ts';
import type { JournalRecord, JournalSnapshot, StorageJournal } from '../journal/records.ts';
import { newLife } from '../life.ts';
import { foreign, refused, tooLargeObject, tooManyRequests } from '../statuses.ts';
import type { FieldFunctions, HistoryOptions } from '../storage.ts';
import {
  atVersion,
  dropEncoded,
  encoded,
  encodedBytes,
  encodedOnce,
  encoding,
  fromBytes,
  isLarge,
  isReady,
  type PreparedValue,
  type Value,
} from '../values.ts';

/**
 * The JSON of the last writes is kept, for the journal and for watches that are up to date. Later, it is made again when it is
 * needed, and kept from then on: most objects are written more often than they are listed, and JSON takes as much memory as they
 * do.
 */
const MAX_RECENT_BYTES = 4 * 2 ** 20;

/** A write that is not safe yet. Without an object: a new life begins. */
interface Unsafe {
  readonly revision: number;
  readonly step: Step<KubernetesObject> | undefined;
}

export class Writer implements ListSource<KubernetesObject> {
  readonly collection: Collection<KubernetesObject>;
  readonly settings: Settings;
  readonly watchGroups: WatchGroups<KubernetesObject>;
  /** The watches that were opened through the storage itself. */
  readonly watches: Watches<KubernetesObject>;
  readonly #expiry: Expiry;
  /** The revision of the newest write. */
  #revision: number;
  /** Unsafe writes in the order of revisions, and the last one of each key. */
  #unsafe: Unsafe[] = [];
  readonly #unsafeByKey: Map<string, Step<KubernetesObject>> = new Map();
  /** The bytes of their objects, which are limited so that a hanging disk does not fill the memory. */
  #unsafeBytes: number = 0;
  /** The revisions around each gap. There is one for each life that begins in here. */
  readonly #gaps: { readonly before: number; readonly after: number }[] = [];
  /** The bytes of all objects, as of the newest write. */
  #bytes: number = 0;
  /** The last objects that were written, from `#recentFrom` on, and the bytes of their JSON. */
  #recent: (KubernetesObject | undefined)[] = [];
  #recentFrom: number = 0;
  #recentBytes: number = 0;
  /** The group of the newest write. Resolves when it is visible. */
  #group: Promise<number> | undefined;
  #safe: Promise<void> | undefined;
  #broken: { readonly error: unknown } | undefined;
  #closed: Promise<void> | undefined;

  constructor(settings: Settings) {
    const { journal, startRevision, clock, history, onError } = settings;
    this.settings = settings;
    this.collection = new Collection({
      ...{ limits: history, compareVersions: compareDecimals, clock, onFieldError: onError },
      costOf: ({ key, isDeletion }: Step<KubernetesObject>, before: StateEntry<KubernetesObject> | undefined) =>
        costOf(key, { bytes: sizeOf(before?.object), isDeletion }),
    });
    this.watchGroups = new WatchGroups({ collection: this.collection, source: this }, clock);
    this.watches = this.watchGroups.add({});
    this.#expiry = new Expiry(clock, (key) => this.#expire(key));
    const restored = journal?.restore((revision) => this.#snapshot(revision));
    this.#revision = restored?.state.revision ?? startRevision ?? 1;
    this.collection.replace(restored ? this.#restoredState(restored.state.records) : [], `${this.#revision}`);
    if (!restored) return;
    for (const record of restored.writes) this.#restoreWrite(record);
    this.#beginLife(startRevision ?? newLife(this.#revision));
  }

  get bytes(): number {
    return this.#bytes;
  }

  ready(): void {}

  newest(): string {
    return this.collection.version;
  }

  reach(version: string): void {
    if (!this.hasGiven(version)) throw foreign(version, this.collection.version);
  }

  /** Whether a version may have been issued. About those before the first state, nothing is known. */
  hasGiven(version: string): boolean {
    const revision = Number(version);
    if (revision > Number(this.collection.version)) return false;
    return !this.#gaps.some(({ before, after }) => before < revision && revision < after);
  }

  /** The visible version of so many changes ago, or the oldest one that can be read. The beginning of a life counts as a change. */
  ago(changes: number): string {
    let revision = Number(this.collection.version);
    let left = changes;
    const gaps = this.#gaps.filter(({ after }) => after <= revision);
    for (let gap = gaps.pop(); gap && revision - left < gap.after; gap = gaps.pop()) {
      left -= revision - gap.after + 1;
      revision = gap.before;
    }
    return `${Math.max(revision - left, Number(this.collection.log.base))}`;
  }

  /** The object under a key as of the newest write, safe or not. */
  head(key: string): KubernetesObject | undefined {
    const unsafe = this.#unsafeByKey.size > 0 ? this.#unsafeByKey.get(key) : undefined;
    if (!unsafe) return this.collection.get(key);
    return unsafe.isDeletion ? undefined : unsafe.object;
  }

  /** Writes an object, or deletes it if that is undefined. Returns the new object, or the last state of the deleted one. */
  write(key: string, prepared: PreparedValue<KubernetesObject> | undefined, ttlSeconds: number = 0): KubernetesObject {
    const revision = this.#revision + 1;
    const head = this.head(key);
    const value = prepared && this.#valueOf(prepared, revision);
    const bytes = this.#bytes + (value?.bytes ?? 0) - sizeOf(head);
    this.#checkWritable();
    if (value && bytes > this.settings.maxBytes) {
      throw tooManyRequests(`the storage is full: it holds ${this.#bytes} of ${this.settings.maxBytes} bytes`, 10);
    }
    const { maxUnconfirmedBytes } = this.settings;
    if (value && this.#unsafeBytes + value.bytes > maxUnconfirmedBytes) {
      throw tooManyRequests(`the journal is slow: it has not confirmed ${this.#unsafeBytes} of ${maxUnconfirmedBytes} bytes`, 1);
    }
    this.#bytes = bytes;
    this.#revision = revision;
    const object = value?.object ?? atVersion(head as KubernetesObject, `${revision}`);
    const ttlMs = value && ttlSeconds > 0 ? ttlSeconds * 1_000 : undefined;
    this.#expiry.set(key, ttlMs);
    const step = { key, object, isDeletion: !value };
    if (this.settings.journal) this.#record({ revision, step }, ttlMs);
    else this.collection.apply(step);
    if (value) this.#remember(value);
    return object;
  }

  /** Drops the JSON of objects written before the last few megabytes, or no longer in the history. */
  #remember({ object, bytes }: Value<KubernetesObject>): void {
    const recent = this.#recent;
    recent.push(object);
    this.#recentBytes += bytes;
    const most = this.collection.log.length + this.#unsafe.length;
    while (this.#recentBytes > MAX_RECENT_BYTES || recent.length - this.#recentFrom > most) {
      const oldest = recent[this.#recentFrom] as KubernetesObject;
      recent[this.#recentFrom++] = undefined;
      this.#recentBytes -= sizeOf(oldest);
      dropEncoded(oldest);
    }
    if (this.#recentFrom < 1_000 || this.#recentFrom * 2 < recent.length) return;
    this.#recent = recent.slice(this.#recentFrom);
    this.#recentFrom = 0;
  }

  /** An object as it will be kept at a revision. */
  #valueOf(prepared: PreparedValue<KubernetesObject>, revision: number): Value<KubernetesObject> {
    const value = prepared.at(`${revision}`);
    const { maxObjectBytes } = this.settings;
    if (value.bytes > maxObjectBytes) throw tooLargeObject(value.bytes, maxObjectBytes);
    return value;
  }

  /** Why nothing can be written any more. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#broken;
  }

  /** @throws {WatchError} REFUSED with code 500 if the journal has failed: nothing can be written any more. */
  #checkWritable(): void {
    if (!this.#broken) return;
    const refusal = refused(500, 'InternalError', 'the journal has failed: nothing is written any more');
    // Not in the message, which may reach strangers: they need not know where the file is.
    refusal.cause = this.#broken.error;
    throw refusal;
  }

  /** Resolves when everything written so far is safe and visible; undefined if it already is. */
  safe(): Promise<void> | undefined {
    return this.#unsafe.length > 0 ? this.#safe : undefined;
  }

  /** Resolves with a refusal once the writes that it depends on are safe: one that may still be lost must not be revealed. */
  async sure<E>(refusal: E): Promise<E> {
    await this.safe()?.catch(() => this.#checkWritable());
    return refusal;
  }

  /** The answer of a caller's function about the newest object of a key. An error that it throws is a refusal, too. */
  decided<R>(decide: () => R | Promise<R>): R | Promise<R> {
    const refused = async (error: unknown): Promise<never> => {
      throw await this.sure(error);
    };
    try {
      const answer = decide();
      return isPromise(answer) ? Promise.resolve(answer).catch(refused) : answer;
    } catch (error) {
      return refused(error);
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.watchGroups.refuse();
    this.#expiry.clear();
    try {
      if (this.settings.journal) await this.settings.journal.close();
    } finally {
      this.watchGroups.close();
    }
  }

  #record(unsafe: Unsafe, ttlMs: number | undefined): void {
    const { revision, step } = unsafe;
    this.#unsafe.push(unsafe);
    if (step) this.#unsafeByKey.set(step.key, step);
    this.#unsafeBytes += unsafeBytesOf(unsafe);
    const json = step && !step.isDeletion ? encoded(step.object) : undefined;
    const group = (this.settings.journal as StorageJournal).append({ revision, key: step?.key ?? '', json, ttlMs });
    if (group === this.#group) return;
    this.#group = group;
    this.#safe = group.then(
      (last) => this.#reveal(last),
      (error: unknown) => {
        this.#broken ??= { error };
        this.settings.onError(error);
        throw isWatchError(error) ? error : new WatchError('TIMEOUT', UNKNOWN, { cause: error });
      },
    );
    this.#safe.catch(() => {}); // nobody waits for a deletion by its time to live
  }

  /** Makes what was written up to a revision visible. */
  #reveal(last: number): void {
    const later = this.#unsafe.findIndex(({ revision }) => revision > last);
    for (const unsafe of this.#unsafe.splice(0, later < 0 ? this.#unsafe.length : later)) {
      const { revision, step } = unsafe;
      this.#unsafeBytes -= unsafeBytesOf(unsafe);
      this.#apply(revision, step);
      if (step && this.#unsafeByKey.get(step.key) === step) this.#unsafeByKey.delete(step.key);
    }
  }

  #apply(revision: number, step: Step<KubernetesObject> | undefined): void {
    if (step) this.collection.apply(step);
    else this.collection.moveTo(`${revision}`);
  }

  /** Begins a new life of the journal's content. Its first revision is not visible until it is safe. */
  #beginLife(revision: number): void {
    if (revision <= this.#revision) return;
    this.#leap(revision);
    this.#record({ revision, step: undefined }, undefined);
  }

  #leap(revision: number): void {
    if (revision > this.#revision + 1) this.#gaps.push({ before: this.#revision, after: revision });
    this.#revision = revision;
  }

  /** The state to be written. An object is encoded when its record is read: a million in one go would block the process. */
  #snapshot(revision: number): JournalSnapshot {
    const state = this.collection.snapshot();
    // The journal has confirmed them, which is not visible yet.
    for (const { revision: written, step } of this.#unsafe) {
      if (written > revision || !step) continue;
      if (step.isDeletion) state.delete(step.key);
      else state.set(step.key, new StateEntry(step.key, step.object, -1));
    }
    const records = Array.from(state.values(), ({ key, object }) => new KeptRecord(key, object, this.#expiry.left(key)));
    return { revision, records };
  }

  *#restoredState(records: Iterable<JournalRecord>): Generator<{ key: string; object: KubernetesObject }, undefined> {
    for (const { key, json, ttlMs } of records) {
      const { object, bytes } = fromBytes<KubernetesObject>(json as Uint8Array);
      this.#bytes += bytes;
      this.#expiry.set(key, ttlMs);
      yield { key, object };
    }
  }

  #restoreWrite({ key, json, revision, ttlMs }: JournalRecord): void {
    if (revision <= this.#revision)
      throw new WatchError('INVALID_FRAME', `a journal has revision ${revision} after ${this.#revision}`);
    this.#leap(revision);
    const head = this.collection.get(key);
    const value = json && fromBytes<KubernetesObject>(json);
    this.#bytes += (value?.bytes ?? 0) - sizeOf(head);
    const object = value?.object ?? (head && atVersion(head, `${revision}`));
    this.#apply(revision, object && { key, object, isDeletion: !value });
    this.#expiry.set(key, ttlMs);
  }

  /** The JSON of a large object that will be deleted, made in pieces: watchers are sent a copy of it at another version. */
  json(head: KubernetesObject, signal?: AbortSignal): Soon<unknown> {
    return isLarge(head) && inPieces(encoding(head, true), { signal });
  }

  #expire(key: string): void {
    const head = this.head(key);
    if (!head) return;
    const making = this.json(head);
    const expire = (): void => {
      if (this.#broken || this.#closed || this.head(key) !== head) return;
      this.write(key, undefined);
      if (making) dropEncoded(head);
    };
    if (isPromise(making)) {
      // The journal may be rewritten in the meantime, and must not lose its expiry.
      this.#expiry.set(key, 60_000);
      void making.then(expire);
    } else expire();
  }
}

/** A kept object as a record. */
class KeptRecord implements JournalRecord {
  readonly key: string;
  readonly ttlMs: number | undefined;
  readonly #object: KubernetesObject;
  #json: Uint8Array | undefined;

  constructor(key: string, object: KubernetesObject, ttlMs: number | undefined) {
    this.key = key;
    this.ttlMs = ttlMs;
    this.#object = object;
  }

  get revision(): number {
    return Number(versionOf(this.#object));
  }

  get json(): Uint8Array {
    const json = this.#json ?? encodedOnce(this.#object);
    this.#json = undefined;
    return json;
  }

  load(): Promise<void> | undefined {
    return isReady(this.#object) ? undefined : this.#load();
  }

  async #load(): Promise<void> {
    this.#json = await inPieces(encoding(this.#object, false));
  }
}

const UNKNOWN = 'the journal has failed before it was certain that the write is safe: it may have happened';

function unsafeBytesOf({ step }: Unsafe): number {
  return step && !step.isDeletion ? sizeOf(step.object) : 0;
}

function sizeOf(object: KubernetesObject | undefined): number {
  return object ? (encodedBytes(object) ?? 0) : 0;
}

/** Options of a `MemoryStorage`. */
export interface MemoryStorageOptions<T extends KubernetesObject = KubernetesObject> extends HistoryOptions {
  /** The largest total size of all objects' JSON, in bytes; a write that would exceed it is refused with 429. Default 1 GiB. */
  readonly maxBytes?: number | undefined;
  /**
   * The largest total size of JSON that the journal has not confirmed yet, in bytes; a write that would exceed it is refused with
   * 429, so that a hanging disk does not fill the memory. Default 256 MiB.
   */
  readonly maxUnconfirmedBytes?: number | undefined;
  /** The fields that selectors may use in addition to `metadata.name` and `metadata.namespace`. Scopes may have others. */
  readonly fields?: FieldFunctions<T> | undefined;
  /**
   * The version before the first write. Default 1; with a journal, one that no other life of it has had, so that clients get 410
   * for a version from before it was restored from a copy. A server whose objects are only in memory should start above all
   * versions from before a restart, for example at `Date.now() * 1_000`; at most 2^52. Ignored if the journal is already beyond it.
   */
  readonly startRevision?: number | undefined;
  /** Makes writes durable. Default: none; see `openMemoryStorage` for one in a file. */
  readonly journal?: StorageJournal | undefined;
  /** Default: the host's. */
  readonly clock?: Clock | undefined;
  /**
   * Called with errors thrown by functions in `fields` (the object is then not selected), and when the journal fails; by
   * `openMemoryStorage`, also when the file cannot be rewritten, with INVALID_ARGUMENT, while writes go on. What it throws is ignored.
   * Default: `console.error`, once per kind.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

export const MEMORY_NAMES = [
  'maxHistoryItems',
  'maxHistoryBytes',
  'historyMs',
  'maxObjectBytes',
  'maxBytes',
  'maxUnconfirmedBytes',
  'fields',
  'startRevision',
  'journal',
  'clock',
  'onError',
] as const;

/** The options with their defaults. */
interface Settings {
  readonly history: LogLimits;
  readonly maxObjectBytes: number;
  readonly maxBytes: number;
  readonly maxUnconfirmedBytes: number;
  readonly startRevision: number | undefined;
  readonly journal: StorageJournal | undefined;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
export function settingsOf<T extends KubernetesObject>(options: MemoryStorageOptions<T>): Settings {
  const { historyMs, clock = systemClock, onError, ...given } = checkOptions(options, MEMORY_NAMES);
  const { maxHistoryItems = 100_000, maxHistoryBytes = 2 ** 26 } = given;
  const { maxObjectBytes = 3 * 2 ** 20, maxBytes = 2 ** 30, maxUnconfirmedBytes = 2 ** 28 } = given;
  return {
    history: {
      maxItems: wholeNumber('maxHistoryItems', maxHistoryItems),
      maxBytes: wholeNumber('maxHistoryBytes', maxHistoryBytes),
      maxAgeMs: historyMs === undefined ? Infinity : wholeNumber('historyMs', historyMs),
    },
    maxObjectBytes: wholeNumber('maxObjectBytes', maxObjectBytes, 1),
    maxBytes: wholeNumber('maxBytes', maxBytes, 1),
    maxUnconfirmedBytes: wholeNumber('maxUnconfirmedBytes', maxUnconfirmedBytes, 1),
    startRevision: given.startRevision === undefined ? undefined : checkStart(given.startRevision),
    journal: given.journal && requireMethod('journal', given.journal, 'restore', 'a StorageJournal'),
    clock,
    onError: reporter('memory storage', { onError, clock }),
  };
}

/** Above this, few versions would be left: those beyond 2^53 cannot be counted exactly, and would repeat. */
const MAX_START = 2 ** 52;

function checkStart(value: number): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= MAX_START) return value;
  throw invalid('startRevision', value, `a whole number >= 1 and <= ${MAX_START}`);
}

/** The overhead of a change besides its bytes: itself, its place in the history, its events. Rounded. */
const OVERHEAD_BYTES = 300;

/**
 * What a change costs the history if the previous object, which the history keeps, has so many bytes. A deletion shows that
 * object again, at another version.
 */
export function costOf(key: string, { bytes, isDeletion }: { readonly bytes: number; readonly isDeletion: boolean }): number {
  return OVERHEAD_BYTES + 2 * key.length + (isDeletion ? 2 : 1) * bytes;
}

interface Deadline extends HeapNode {
  readonly key: string;
}

/** When to delete which key. */
export class Expiry {
  readonly #clock: Clock;
  readonly #table: Timetable<Deadline>;
  readonly #byKey: Map<string, Deadline> = new Map();

  /** `expire` is called with a key that is due, after its deadline has been removed. */
  constructor(clock: Clock, expire: (key: string) => void) {
    this.#clock = clock;
    // Nobody waits for it, so it keeps no process running.
    this.#table = new Timetable(upkeepClock(clock), ({ key }) => {
      this.#byKey.delete(key);
      expire(key);
    });
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** Sets the deadline of a key, or with undefined removes it. */
  set(key: string, inMs: number | undefined): void {
    let deadline = this.#byKey.get(key);
    if (inMs === undefined) {
      if (deadline) this.#table.remove(deadline);
      this.#byKey.delete(key);
    } else {
      deadline ??= { key, heapRank: 0, heapTurn: 0, heapAt: -1 };
      this.#byKey.set(key, deadline);
      this.#table.after(deadline, inMs);
    }
  }

  /** How long a key has left, in ms. */
  left(key: string): number | undefined {
    const deadline = this.#byKey.get(key);
    return deadline && Math.max(0, this.#table.timeOf(deadline) - this.#clock.now());
  }

  clear(): void {
    this.#byKey.clear();
    this.#table.clear();
  }
}
