/**
 * The window of a collection: its last changes, in the broadcaster's log, with what is needed to find a version in it.
 *
 *        dropped      | kept                                  |
 *     . . . . . . . . | c12  c15  c16  c21  c22  c30          |
 *              base 9 ^start                                  ^end: the next change goes here
 *
 * `base` is the version of the last change that was dropped, or of the list with which all began: every change after it is here,
 * so a watch may begin at it or at any later version. It only grows, whatever the limits are.
 *
 * Changes are dropped when there are too many of them, when they take too many bytes, or when they are too old.
 */
import { EventLog, ReplayWindow } from '../../broadcast/log.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { VersionComparator } from '../../cache/versions.ts';
import type { LogEntry } from './entries.ts';

/** How much is kept. */
export interface LogLimits {
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  /** So many are never dropped for their age: in a quiet collection they cost little, and save clients that come back late a list. */
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
    return this.end - this.start;
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
    let low = this.start;
    for (let high = this.end; low < high; ) {
      const middle = Math.floor((low + high) / 2);
      if (this.#compare(this.at(middle).version, version) <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #drop(): void {
    const { version, bytes } = this.at(this.start);
    this.base = version;
    this.bytes -= bytes;
    this.#window.shift();
  }
}
