import type { HeapNode } from '../watch/timetable.ts';
import type { KeyTiming } from './meter.ts';

/** All that a queue knows about a key. It exists while the key is dirty, in work, or delayed. It is a node of the line. */
export interface Entry<K> extends HeapNode, KeyTiming {
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
export interface Delay<K> extends HeapNode {
  readonly entry: Entry<K>;
  priority: number;
}

/** Written out member by member: with a spread, V8 makes objects that are slow to read, and the queue took 20 times as long. */
export function newEntry<K>(key: K, id: unknown): Entry<K> {
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

export function newDelay<K>(entry: Entry<K>, priority: number): Delay<K> {
  return { heapRank: 0, heapTurn: 0, heapAt: -1, entry, priority };
}
