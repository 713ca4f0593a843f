import type { EventLog } from './log.ts';

/**
 * The last events of a log, for watches that begin in the past. There is no second store: the window stands in the log like a
 * watcher that has not read its last events, so the log keeps them.
 *
 *        dropped    | kept for new watches     | accepted, not yet visible
 *     . . . . . . . |f g h i j k l m n o p q r | s t
 *                    ^start                     ^head
 *
 * A *place* is the number of events that came before, among all: `f` above has place 5. A watch that has read f and g reports
 * place 7, and a watch that begins after 7 gets h and everything since. A place before `start` is too old: it gets nothing, never
 * a part.
 *
 * The mux limits the window of all events; the views of topics have their own windows, which hold those of the same events that
 * belong to the view. Invariant: start <= head.
 */
export class ReplayWindow<E> {
  start: number = 0;
  readonly #log: EventLog<E>;

  constructor(log: EventLog<E>) {
    this.#log = log;
    log.stand(0);
  }

  shift(): void {
    const log = this.#log;
    const { start } = this;
    log.drop(start);
    log.move(start, ++this.start);
  }

  /** Returns the position of the first event whose place is not before the given one. */
  positionOf(place: number): number {
    let { start } = this;
    for (let end = this.#log.head; start < end; ) {
      const middle = Math.floor((start + end) / 2);
      if (this.#log.placeOf(middle) < place) start = middle + 1;
      else end = middle;
    }
    return start;
  }
}
