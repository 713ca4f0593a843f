/** An error, and how many events were lost before it. */
interface Failure<E> {
  event: E;
  lost: number;
}

/** One event and what is delivered before it. The last place has no event yet. */
interface QueueEntry<E> {
  event?: E;
  chars: number;
  version?: string | undefined;
  lost: number;
  error?: Failure<E> | undefined;
  next?: QueueEntry<E>;
}

/**
 * Events that have arrived and were not read yet, bounded in number and in characters. The queue is full when either limit is
 * reached, so the last event may exceed `maxBufferedBytes`. An ERROR created by the client takes no room and is never dropped. If
 * the event after it is dropped, the ERROR moves before the next one. Events lost before an ERROR are counted there, because a
 * reader that starts over at the ERROR must learn what was lost since.
 *
 *     head                                           tail: gaps and an error wait here for the next event
 *      v                                              v
 *     [a] -> [3 missed, ERROR, 1 missed, b] -> [c] -> [ ]
 */
export class ClientQueue<E> {
  /** Events and errors that can be read. */
  count: number = 0;
  /** The version of the last event that was read. */
  readVersion: string | undefined;
  readonly #limits: { readonly capacity: number; readonly maxBufferedBytes: number };
  #events: number = 0;
  #chars: number = 0;
  #head: QueueEntry<E> = { chars: 0, lost: 0 };
  #tail: QueueEntry<E> = this.#head;

  constructor(limits: { readonly capacity: number; readonly maxBufferedBytes: number }) {
    this.#limits = limits;
  }

  /** How full the queue is, by events or by characters; 1 is full. */
  get load(): number {
    return Math.max(this.#events / this.#limits.capacity, this.weight);
  }

  /** How full the queue is by characters alone. */
  get weight(): number {
    return this.#chars / this.#limits.maxBufferedBytes;
  }

  /** Whether everything that arrived has been read. */
  get allRead(): boolean {
    return this.count + this.#tail.lost === 0;
  }

  /** Events lost right before the next readable event or error. */
  get lost(): number {
    return (this.#head.error ?? this.#head).lost;
  }

  push(event: E, more: { chars: number; version: string | undefined }): void {
    const next = { chars: 0, lost: 0 };
    Object.assign(this.#tail, more, { event, next });
    this.#tail = next;
    this.#chars += more.chars;
    this.#events++;
    this.count++;
  }

  /** Adds an error after all that has arrived. If no event has arrived since the last error, the new one replaces it. */
  pushError(event: E): void {
    const { error, lost } = this.#tail;
    if (!error) this.count++;
    this.#tail.error = { event, lost: error ? error.lost + lost : lost };
    this.#tail.lost = 0;
  }

  /** Removes and returns the next event or error. The caller has already reported the gap before it. */
  shift(): E | undefined {
    const head = this.#head;
    const { error, next } = head;
    head.error = undefined;
    if (error) this.count--;
    else if (next) {
      this.readVersion = head.version;
      this.#leave(next);
    }
    return (error ?? head).event;
  }

  /** Counts an event that found no room. */
  miss(): void {
    this.#tail.lost++;
  }

  /** Drops the oldest event. */
  drop(): void {
    const { lost, error, next } = this.#head;
    if (!next) return;
    (next.error ?? next).lost += lost + 1;
    if (!next.error) next.error = error;
    else if (error) {
      next.error.lost += error.lost;
      this.count--;
    }
    this.#leave(next);
  }

  /** Discards everything. It counts as not read. */
  clear(): void {
    this.#head = this.#tail = { chars: 0, lost: Number(!this.allRead) };
    this.count = this.#events = this.#chars = 0;
  }

  #leave(next: QueueEntry<E>): void {
    this.#chars -= this.#head.chars;
    this.#events--;
    this.count--;
    this.#head = next;
  }
}
