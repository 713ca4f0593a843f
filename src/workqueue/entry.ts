import type { Delayed } from './delays.ts';
import type { Waiting } from './line.ts';
import type { Metered } from './meter.ts';

/** All that a queue knows about a key. It exists while the key is dirty, in work, or delayed. */
export interface Entry<K> extends Waiting, Metered {
  /** As it was added last. */
  key: K;
  readonly id: unknown;
  /** Whether a run is owed: it was added, and not handed out since. */
  dirty: boolean;
  /** Whether it was handed out, and is not done. */
  working: boolean;
  /** Its place among the delayed; created when it is first needed. */
  delay: Delay<K> | undefined;
}

/** A key's time, and the priority that it will be added with. */
export interface Delay<K> extends Delayed {
  readonly entry: Entry<K>;
  priority: number;
}

export function newEntry<K>(key: K, id: unknown): Entry<K> {
  return {
    key,
    id,
    dirty: false,
    working: false,
    delay: undefined,
    priority: 0,
    readyAtMs: 0,
    turn: 0,
    place: -1,
    ahead: undefined,
    behind: undefined,
    addedAtMs: 0,
    startedAtMs: 0,
  };
}

export function newDelay<K>(entry: Entry<K>): Delay<K> {
  return { entry, priority: 0, dueAtMs: 0, turn: 0, place: -1 };
}

export function isDelayed<K>({ delay }: Entry<K>): boolean {
  return delay !== undefined && delay.place >= 0;
}
