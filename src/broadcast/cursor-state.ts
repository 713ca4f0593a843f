import type { Status } from '../watch/event.ts';
import type { Fold, Link } from './fold.ts';

/** An event with lost ones before it, or with its place among all events. */
class KeptEvent<E> {
  readonly event: E;
  readonly gap: number;
  readonly place: number | undefined;

  constructor(event: E, gap: number, place: number | undefined) {
    this.event = event;
    this.gap = gap;
    this.place = place;
  }
}

/**
 * A watcher's own short queue, for events that the log no longer keeps for it.
 *
 *              start
 *                v
 *     events  [. a b 3+f]         as c, d and e were lost between b and f
 *
 * Watchers that fall behind in step set aside the same stretch of the log. They share one array until one of them has to modify
 * it.
 */
export class KeptEvents<E> {
  private events: readonly (E | KeptEvent<E> | undefined)[] = [];
  #shared: boolean = false;
  #start: number = 0;

  get length(): number {
    return this.events.length - this.#start;
  }

  /** The sum of `of` over all events. */
  total(of: (event: E) => number): number {
    let sum = 0;
    for (let index = this.#start; index < this.events.length; index++) sum += of(this.at(index).event);
    return sum;
  }

  /** How many events were lost right before the first event. */
  get gap(): number {
    return this.at(this.#start).gap;
  }

  /** The place of the first event among all events, if it was pushed with one. */
  get place(): number | undefined {
    return this.at(this.#start).place;
  }

  /** Takes over a whole stretch, which must not be modified from now on. Allowed only while nothing is kept. */
  adopt(events: readonly E[]): void {
    this.events = events;
    this.#shared = true;
  }

  push(event: E, gap: number, place?: number): void {
    this.own().push(gap > 0 || place !== undefined ? new KeptEvent(event, gap, place) : event);
  }

  shift(): E {
    const { event } = this.at(this.#start);
    if (!this.#shared) this.own()[this.#start] = undefined;
    this.#start++;
    // The dead stretch stays shorter than the live one: O(1) per event, amortized. A half-read array is no longer shared.
    if (this.length === 0 || (this.#start > 31 && this.#start * 2 > this.events.length)) this.compact();
    return event;
  }

  /** Drops the event at `index`, which must exist. Returns the size of the gap it leaves if no event is after it, otherwise 0. */
  drop(index: number): number {
    const events = this.own();
    const at = this.#start + index;
    const lost = this.at(at).gap + 1;
    const last = at === events.length - 1;
    if (!last) {
      const { event, gap, place } = this.at(at + 1);
      events[at + 1] = new KeptEvent(event, gap + lost, place);
    }
    // Moves the few events before it up by one: O(index), however many are after it.
    events.copyWithin(this.#start + 1, this.#start, at);
    this.shift();
    return last ? lost : 0;
  }

  private at(index: number): Pick<KeptEvent<E>, 'event' | 'gap' | 'place'> {
    const event = this.events[index];
    return event instanceof KeptEvent ? event : { event: event as E, gap: 0, place: undefined };
  }

  /** Returns the array for modification. */
  private own(): (E | KeptEvent<E> | undefined)[] {
    if (this.#shared) this.compact();
    return this.events as (E | KeptEvent<E> | undefined)[];
  }

  private compact(): void {
    this.events = this.events.slice(this.#start);
    this.#shared = false;
    this.#start = 0;
  }
}

/**
 * A watcher's state besides its position in the log: events set aside, losses, the filter's last verdict. Most watchers keep up
 * and need none of it; they share one frozen instance ({@link noState}).
 */
export class CursorState<E> {
  readonly kept: KeptEvents<E> = new KeptEvents();
  /** Number of events this watcher did not get: in total, and since the last gap was reported. */
  lost: number = 0;
  missed: number = 0;
  /** It has overflowed permanently: one ERROR event follows the queued events. */
  cut: boolean = false;
  /** It cannot begin where it should: the Status of that ERROR. */
  refusal: Status | undefined;
  discarded: boolean = false;
  /** Why the watch failed. Cleared when a read has reported it. */
  failure: { readonly error: unknown } | undefined;
  /** The position of the last event the filter was asked about, and what it returned or threw. */
  asked: number = -1;
  verdict: boolean | { readonly error: unknown } | undefined;
  /**
   * Set while events are judged: the number of reads that waited when that began. Reads that user code starts meanwhile came after
   * the events.
   */
  claims: number | undefined;
  /**
   * Set while `onGap` is called on behalf of a pending read. That read already has its event, so it is not room for another.
   */
  reportingGap: boolean = false;
  /** The place among all events of the event that is being queued; kept only if positions are reported (see log.ts). */
  place: number = 0;
  /** Where it began among all events, if that was not distributed yet. */
  begin: number = 0;
  /** Where to continue once everything queued has been read: set when the watcher is cut or has left. */
  resumeAt: number | undefined;
  /** What `coalesce` queues: the unseen changes, and, while the watcher lags, the first link of the changes folded for it. */
  fold: Fold<E> | undefined;
  link: Link<E> | undefined;
  /** Unseen changes from before that link. Other laggards share them, so they must not be modified. */
  unseen: Fold<E> | undefined;
}

const NOTHING: CursorState<never> = Object.freeze(new CursorState<never>());

/**
 * The instance shared by all watchers with nothing set aside. It is frozen: a write that should have gone to a watcher's own
 * instance throws.
 */
export function noState<E>(): CursorState<E> {
  return NOTHING;
}
