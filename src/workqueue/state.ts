import type { Clock } from '../watch/clock.ts';
import { invalid, WatchError } from '../watch/errors.ts';
import { Heap, type HeapNode, Timetable } from '../watch/timetable.ts';
import type { KeyTiming, Meter } from './meter.ts';

interface StateOptions<K> {
  readonly clock: Clock;
  readonly name: string;
  readonly keyOf: ((key: K) => unknown) | undefined;
  readonly maxKeys: number;
  readonly agingMs: number;
  readonly meter: Meter | undefined;
  /** Called when a delayed key was put into the line. */
  readonly onReady: () => void;
}

/**
 * The state of a work queue: its keys, and where each of them is. It decides, but never waits; `WorkQueue` handles the calls that
 * wait for a key or for the end.
 *
 *                       delay()
 *                          |
 *                          v
 *                       delayed ---------.          .------- line ------.
 *                                        v          |   FIFO, or by     v
 *     mark() ------------------------> dirty -------'   priority      take() ---> in work ---> done()
 *                                        |  in work?                                |
 *                                        '--- stays so until done() puts it into the line
 *
 * Two marks per key show where it is, as upstream's two sets do:
 *
 *     dirty  working
 *       -       -      idle: there is no entry for it, unless it is delayed
 *      yes      -      in the line
 *       -      yes     in work
 *      yes     yes     in work, and once more when that is done
 *
 * The line is a heap, by
 *
 *     rank = the time at which the key joined the line - priority * agingMs
 *
 * which is all there is to aging. A key gains one level of priority for each `agingMs` that it waits; but all keys age alike, so
 * a key that is ahead stays ahead, and a rank that never changes is enough. Nothing starves: a key of priority p is overtaken by
 * one of priority q > p only if that one joins less than (q - p) * agingMs after it. With one priority, it is first come, first
 * served.
 *
 * Invariants
 * - A key stands in the line if, and only if, it is dirty and not working.
 * - `take` moves a key from dirty to working in one step; `done` ends working. So no key is processed by two workers at once.
 * - A delayed key waits for the earliest of its times. Marking it in the meantime does not cancel the delay.
 * - After `end`, nothing is delayed, and no timer runs.
 */
export class QueueState<K> {
  /** The number of keys in work. */
  working: number = 0;
  readonly #options: StateOptions<K>;
  readonly #entries: Map<unknown, Entry<K>> = new Map();
  readonly #line: Heap<Entry<K>> = new Heap();
  readonly #delays: Timetable<Delay<K>>;

  constructor(options: StateOptions<K>) {
    this.#options = options;
    this.#delays = new Timetable(options.clock, ({ entry, priority }) => {
      entry.delay = undefined;
      this.mark(entry, priority);
      options.onReady();
    });
  }

  /** The number of keys in the line. */
  get size(): number {
    return this.#line.size;
  }

  get delayed(): number {
    return this.#delays.size;
  }

  /** The identity of a key: two keys with the same identity are the same. */
  idOf(key: K): unknown {
    const { keyOf } = this.#options;
    if (key === undefined) throw invalid('key', key, 'any other value');
    return keyOf ? keyOf(key) : key;
  }

  /** The entry of a key, if it is queued, in work or delayed. */
  find(key: K): Entry<K> | undefined {
    return this.#entries.get(this.idOf(key));
  }

  /** The entry of a key; a new one if there is none. The caller marks or delays it. */
  entry(key: K): Entry<K> {
    const id = this.idOf(key);
    const found = this.#entries.get(id);
    if (found) {
      found.key = key;
      return found;
    }
    this.checkRoom();
    const entry = newEntry(key, id);
    this.#entries.set(id, entry);
    return entry;
  }

  /** @throws {WatchError} OVERLOADED if there is no room for another key. */
  checkRoom(): void {
    const { maxKeys, name } = this.#options;
    if (this.#entries.size < maxKeys) return;
    throw new WatchError('OVERLOADED', `${`work queue ${name}`.trim()}: it holds ${maxKeys} keys`, { limit: maxKeys });
  }

  /** A run of this key is owed. If one is owed already, only a higher priority has an effect. */
  mark(entry: Entry<K>, priority: number): void {
    if (entry.dirty) {
      const levels = priority - entry.priority;
      if (levels <= 0) return;
      entry.priority = priority;
      if (!entry.working) this.#line.put(entry, entry.heapRank - levels * this.#options.agingMs);
      return;
    }
    entry.dirty = true;
    entry.priority = priority;
    this.#join(entry);
    this.#options.meter?.added(entry);
  }

  /** A run of this key is owed after a delay, or after the one for which it already waits, if that is shorter. */
  delay(entry: Entry<K>, delayMs: number, priority: number): void {
    entry.delay ??= { heapRank: 0, heapTurn: 0, heapAt: -1, entry, priority };
    entry.delay.priority = Math.max(entry.delay.priority, priority);
    this.#delays.within(entry.delay, delayMs);
  }

  /** Removes a key from those that are delayed. Returns whether it was among them. */
  cancel(key: K): boolean {
    const entry = this.find(key);
    if (!entry?.delay) return false;
    this.#undelay(entry);
    return true;
  }

  /** Hands out the first key of the line, if there is one. */
  take(): Entry<K> | undefined {
    const entry = this.#line.first;
    if (!entry) return undefined;
    this.#line.remove(entry);
    entry.dirty = false;
    entry.working = true;
    this.working++;
    this.#options.meter?.started(entry);
    return entry;
  }

  /** Ends the work on a key. Does nothing for a key that is not in work, so that it cannot get into the line twice. */
  done(key: K): void {
    const entry = this.find(key);
    if (!entry?.working) return;
    entry.working = false;
    this.working--;
    this.#options.meter?.finished(entry);
    if (entry.dirty) this.#join(entry);
    else this.#release(entry);
  }

  /** Takes back a key whose work has not begun. It gets its old place in the line, unless it was added for a better one. */
  putBack(key: K): void {
    const entry = this.find(key);
    if (!entry?.working) return;
    entry.working = false;
    this.working--;
    this.#options.meter?.returned(entry, entry.dirty);
    entry.dirty = true;
    this.#line.put(entry, entry.heapRank);
  }

  /** Drops what is delayed. */
  end(): void {
    this.#delays.clear();
    for (const entry of this.#entries.values()) this.#undelay(entry);
    this.#options.meter?.end();
  }

  /** Into the line. A key in work joins it later, unless it is put back: then the better of its two places counts. */
  #join(entry: Entry<K>): void {
    const { clock, agingMs } = this.#options;
    const rank = clock.now() - entry.priority * agingMs;
    if (entry.working) entry.heapRank = Math.min(rank, entry.heapRank);
    else this.#line.add(entry, rank);
  }

  #undelay(entry: Entry<K>): void {
    if (entry.delay) this.#delays.remove(entry.delay);
    entry.delay = undefined;
    this.#release(entry);
  }

  /** Removes the entry of a key that is idle. */
  #release(entry: Entry<K>): void {
    if (!entry.dirty && !entry.working && !entry.delay) this.#entries.delete(entry.id);
  }
}

/** Everything that a queue knows about a key. It exists while the key is dirty, in work, or delayed. It is a node of the line. */
interface Entry<K> extends HeapNode, KeyTiming {
  /** The key as it was last added. */
  key: K;
  readonly id: unknown;
  /** Whether a run is owed: it was added, and has not been handed out since. */
  dirty: boolean;
  /** Whether it was handed out and is not done. */
  working: boolean;
  priority: number;
  /** Its place among the delayed, if it has one. */
  delay: Delay<K> | undefined;
}

/** A key's time, as its rank among the delayed, and the priority that it will be added with. */
interface Delay<K> extends HeapNode {
  readonly entry: Entry<K>;
  priority: number;
}

/** Written out member by member: with a spread, V8 makes objects that are slow to read, and the queue took 20 times as long. */
function newEntry<K>(key: K, id: unknown): Entry<K> {
  return {
    heapRank: 0,
    heapTurn: 0,
    heapAt: -1,
    key,
    id,
    dirty: false,
    working: false,
    priority: 0,
    delay: undefined,
    addedAtMs: 0,
    startedAtMs: 0,
  };
}
