import type { Topics } from '../topics.ts';
import { concerns } from '../topics.ts';
import type { EventLog } from './log.ts';

/** The limits of a {@link ReplayWindow}. */
export interface WindowOptions<E> {
  readonly items: number;
  readonly bytes: number;
  /** The size of an event in bytes: each time the same number for the same event. */
  readonly sizeOf: (event: E) => number;
}

/** Events from the window, each with its place among all events. */
export interface History<E> {
  readonly events: readonly E[];
  readonly places: readonly number[];
}

/**
 * The last events, for watches that begin in the past. There is no second store: the window stands in the log like a watcher that
 * has not read its last events, so the log keeps them.
 *
 *        dropped    | kept for whoever comes   | accepted, not yet visible
 *     . . . . . . . |f g h i j k l m n o p q r | s t
 *                    ^start                     ^head
 *
 * A *place* is the number of events that came before: `f` above has place 5. A watch that has read f and g tells place 7, and a
 * watch that begins after 7 gets h and everything since. A place before `start` is too old: it gets nothing, never a part.
 *
 * Invariants: at most `items` events and `bytes` bytes between start and head. Neither counts what slow watchers still need.
 */
export class ReplayWindow<E> {
  start: number = 0;
  private bytes: number = 0;
  private readonly log: EventLog<E>;
  private readonly limits: WindowOptions<E>;

  constructor(log: EventLog<E>, limits: WindowOptions<E>) {
    this.log = log;
    this.limits = limits;
    log.stand(0);
  }

  /** Called when one more event has become visible. */
  add(): void {
    const { log, limits } = this;
    this.bytes += limits.sizeOf(log.at(log.head - 1));
    while (log.head - this.start > limits.items || this.bytes > limits.bytes) this.shift();
  }

  /** Whether all events from this place on are known. */
  covers(place: number): boolean {
    return place >= this.start && place <= this.log.head;
  }

  /** Returns the visible events from a covered place on, of certain topics only if there are any. */
  since(place: number, topics?: readonly string[]): History<E> {
    const { log } = this;
    const events: E[] = [];
    const places: number[] = [];
    for (let at = place; at < log.head; at++) {
      if (topics && !concerns(log.noteAt(at) as Topics, topics)) continue;
      events.push(log.at(at));
      places.push(at);
    }
    return { events, places };
  }

  private shift(): void {
    const { log, start } = this;
    this.bytes -= this.limits.sizeOf(log.at(start));
    log.drop(start);
    log.move(start, start + 1);
    this.start++;
  }
}
