/** One event and what is delivered before it. The last place has no event yet. */
interface Place<E> {
  event?: E;
  chars: number;
  version?: string | undefined;
  lost: number;
  error?: E | undefined;
  next?: Place<E>;
}

/**
 * Events that have arrived and were not read yet, bounded in number and in characters. The queue is full when either limit is
 * reached, so the last event may exceed `maxBufferedBytes`. An ERROR created by the client takes no room and is never dropped. If
 * the event after it is dropped, the ERROR moves before the next one.
 *
 *     head                              tail: a gap and an error wait here for the next event
 *      v                                 v
 *     [a] -> [ERROR, b] -> [2 missed, c] -> [ ]
 */
export class ClientQueue<E> {
  /** Events and errors that can be read. */
  count: number = 0;
  /** The version of the last event that was read. */
  readVersion: string | undefined;
  readonly #limits: { readonly capacity: number; readonly maxBufferedBytes: number };
  #events: number = 0;
  #chars: number = 0;
  #head: Place<E> = { chars: 0, lost: 0 };
  #tail: Place<E> = this.#head;

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
  get complete(): boolean {
    return this.count + this.#tail.lost === 0;
  }

  /** Events lost right before the next readable one. */
  get lost(): number {
    return this.#head.lost;
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
  pushError(error: E): void {
    if (!this.#tail.error) this.count++;
    this.#tail.error = error;
  }

  /** Removes and returns the next event or error. The caller has already reported the gap before it. */
  shift(): E | undefined {
    const head = this.#head;
    const { error } = head;
    if (this.count > 0) {
      this.count--;
      head.lost = 0;
    }
    head.error = undefined;
    if (error || !head.next) return error;
    this.readVersion = head.version;
    this.#leave(head.next);
    return head.event;
  }

  /** Counts an event that found no room. */
  miss(): void {
    this.#tail.lost++;
  }

  /** Drops the oldest event. */
  drop(): void {
    const { lost, error, next } = this.#head;
    if (!next) return;
    next.lost += lost + 1;
    if (error && next.error) this.count--;
    next.error ??= error;
    this.count--;
    this.#leave(next);
  }

  /** Discards everything. It counts as not read. */
  clear(): void {
    this.#head = this.#tail = { chars: 0, lost: 1 };
    this.count = this.#events = this.#chars = 0;
  }

  #leave(next: Place<E>): void {
    this.#chars -= this.#head.chars;
    this.#events--;
    this.#head = next;
  }
}
