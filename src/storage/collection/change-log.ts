/**
 * The window of a collection: its last changes, in the broadcaster's log, with what is needed to find a version in it.
 *
 *        dropped      | kept                                  |
 *     . . . . . . . . | c12  c15  c16  c21  c22  c30          |
 *              base 9 ^start                                  ^end: the next change goes here
 *
 * `base` is the version of the last change that was dropped, or of the initial list: every change after it is here, so a watch
 * may begin at it or at any later version. It only grows.
 *
 * Changes are dropped when there are too many of them, when they take too many bytes, or when they are too old.
 */
import { withVersionOf } from '../../broadcast/filter.ts';
import { EventLog, ReplayWindow } from '../../broadcast/log.ts';
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import type { VersionComparator } from '../../cache/versions.ts';
import { bisect } from '../../watch/bisect.ts';
import type { ChangeEvent } from '../storage.ts';

/** How much is kept. */
export interface LogLimits {
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  /** This many are never dropped for their age: in a quiet collection, they cost little, and save returning clients a list. */
  readonly minItems?: number | undefined;
}

export class ChangeLog<T extends KubernetesObject> {
  /** Every change after this version is here. */
  base: string = '0';
  bytes: number = 0;
  readonly #log: EventLog<LogEntry<T>> = new EventLog(256);
  readonly #window: ReplayWindow<LogEntry<T>> = new ReplayWindow(this.#log);
  readonly #limits: LogLimits;
  readonly #compare: VersionComparator;

  constructor(limits: LogLimits, compare: VersionComparator) {
    this.#limits = limits;
    this.#compare = compare;
  }

  /** The place of the first change that is kept. */
  get start(): number {
    return this.#window.start;
  }

  /** The place that the next change will have. */
  get end(): number {
    return this.#log.end;
  }

  get length(): number {
    return this.#log.end - this.#window.start;
  }

  at(place: number): LogEntry<T> {
    return this.#log.at(place);
  }

  append(change: LogEntry<T>): void {
    this.#log.append(change);
    this.#log.step();
    this.bytes += change.bytes;
  }

  /** Drops what exceeds the limits. */
  trim(nowMs: number): void {
    const { maxItems, maxBytes, maxAgeMs, minItems = 0 } = this.#limits;
    while (this.length > maxItems || this.bytes > maxBytes) this.#drop();
    while (this.length > minItems && nowMs - this.at(this.start).atMs > maxAgeMs) this.#drop();
  }

  /** Drops everything: the state has been replaced, and has this version. */
  clear(version: string): void {
    while (this.length > 0) this.#drop();
    this.base = version;
  }

  /** Drops the changes up to a version. */
  compact(version: string): void {
    if (this.#compare(version, this.base) <= 0) return;
    while (this.length > 0 && this.#compare(this.at(this.start).version, version) <= 0) this.#drop();
    this.base = version;
  }

  /** The place of the first change after a version; undefined if some of them are no longer kept. */
  after(version: string): number | undefined {
    if (this.#compare(version, this.base) < 0) return undefined;
    return bisect(this.start, this.end, (place) => this.#compare(this.at(place).version, version) <= 0);
  }

  #drop(): void {
    const { version, bytes } = this.at(this.start);
    this.base = version;
    this.bytes -= bytes;
    this.#window.shift();
  }
}

export class StateEntry<T extends KubernetesObject> {
  readonly key: string;
  readonly object: T;
  /** The place of the change that brought it; -1 if it came with a list. */
  readonly place: number;
  #added: ChangeEvent<T> | undefined = undefined;

  constructor(key: string, object: T, place: number) {
    this.key = key;
    this.object = object;
    this.place = place;
  }

  /** The event for watches to which this object, and its key, are new. All of them share it. */
  get added(): ChangeEvent<T> {
    this.#added ??= { type: 'ADDED', object: this.object };
    return this.#added;
  }
}

/** A change of one key, as it is applied to a collection. */
export interface Step<T extends KubernetesObject> {
  readonly key: string;
  /** The object after the change, with its version; that of a deletion has its last content, and the version of the deletion. */
  readonly object: T;
  readonly isDeletion: boolean;
}

/**
 * A change in the log, with every event that a watch may get for it. Each event is made once and shared by all watches, so its
 * object is encoded once.
 */
export class LogEntry<T extends KubernetesObject> {
  /** The entries before and after the change: at least one of the two. */
  readonly before: StateEntry<T> | undefined;
  readonly after: StateEntry<T> | undefined;
  /** As in {@link Step}. */
  readonly object: T;
  readonly atMs: number;
  /** The bytes that the log keeps alive because of it. */
  readonly bytes: number;
  #event: ChangeEvent<T> | undefined = undefined;
  #entered: ChangeEvent<T> | undefined = undefined;
  #left: ChangeEvent<T> | undefined = undefined;

  constructor({ before, after, object, atMs, bytes }: Pick<LogEntry<T>, 'before' | 'after' | 'object' | 'atMs' | 'bytes'>) {
    this.before = before;
    this.after = after;
    this.object = object;
    this.atMs = atMs;
    this.bytes = bytes;
  }

  get key(): string {
    return (this.after ?? (this.before as StateEntry<T>)).key;
  }

  get version(): string {
    return versionOf(this.object);
  }

  /** The event of a watch that selects the object both before and after the change, and of one that selects everything. */
  get event(): ChangeEvent<T> {
    const { before, after, object } = this;
    if (!before) return (after as StateEntry<T>).added;
    this.#event ??= { type: after ? 'MODIFIED' : 'DELETED', object, previous: before.object };
    return this.#event;
  }

  /** The event of a watch that selects the object only after the change: ADDED. */
  get entered(): ChangeEvent<T> {
    if (!this.before) return this.event;
    this.#entered ??= { type: 'ADDED', object: this.object, previous: this.before.object };
    return this.#entered;
  }

  /** The event of a watch that selects the object only before the change: DELETED, with the old content and this version. */
  get left(): ChangeEvent<T> {
    if (!this.after || !this.before) return this.event;
    const previous = this.before.object;
    this.#left ??= { type: 'DELETED', object: withVersionOf(previous, this.object) as T, previous };
    return this.#left;
  }
}
