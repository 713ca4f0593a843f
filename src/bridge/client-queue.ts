/** A place in the line, and what is to be told before its event. The last place has no event yet. */
interface Place<E> {
  event?: E;
  chars: number;
  version?: string | undefined;
  missed: number;
  error?: E | undefined;
  next?: Place<E>;
}

/**
 * What has come and was not read yet: bounded in events and in bytes. It is full when either number is reached, so it may hold
 * more bytes than `maxBufferedBytes` by one event. An ERROR of the client's own takes no room and is never dropped: if the event that it
 * stands before is, it stands before the next one.
 *
 *     head                              tail: what was missed, and an error, wait here for the event that is to come
 *      v                                 v
 *     [a] -> [ERROR, b] -> [2 missed, c] -> [ ]
 */
export class ClientQueue<E> {
  /** Events and errors that can be read. */
  size: number = 0;
  /** The version of the last event that was read. */
  readVersion: string | undefined;
  readonly #limits: { readonly capacity: number; readonly maxBufferedBytes: number };
  #events: number = 0;
  #chars: number = 0;
  #head: Place<E> = { chars: 0, missed: 0 };
  #tail: Place<E> = this.#head;

  constructor(limits: { readonly capacity: number; readonly maxBufferedBytes: number }) {
    this.#limits = limits;
  }

  /** How full it is: 1 is full, by events or by bytes. */
  get load(): number {
    return Math.max(this.#events / this.#limits.capacity, this.weight);
  }

  /** The same by bytes alone. */
  get weight(): number {
    return this.#chars / this.#limits.maxBufferedBytes;
  }

  /** Whether all that came has been read. */
  get complete(): boolean {
    return this.size + this.#tail.missed === 0;
  }

  /** Events lost right before the next one to be read. */
  get missed(): number {
    return this.#head.missed;
  }

  push(event: E, more: { chars: number; version: string | undefined }): void {
    const next = { chars: 0, missed: 0 };
    Object.assign(this.#tail, more, { event, next });
    this.#tail = next;
    this.#chars += more.chars;
    this.#events++;
    this.size++;
  }

  /** An error behind all that has come. Of two without an event between them, the later one says it all. */
  pushError(error: E): void {
    if (!this.#tail.error) this.size++;
    this.#tail.error = error;
  }

  /** The next event or error; undefined if there is none. What was missed before it has been told. */
  shift(): E | undefined {
    const head = this.#head;
    const { error } = head;
    if (this.size > 0) {
      this.size--;
      head.missed = 0;
    }
    head.error = undefined;
    if (error || !head.next) return error;
    this.readVersion = head.version;
    this.#leave(head.next);
    return head.event;
  }

  /** An event that found no room is lost. */
  miss(): void {
    this.#tail.missed++;
  }

  /** Loses the oldest event. */
  drop(): void {
    const { missed, error, next } = this.#head;
    if (!next) return;
    next.missed += missed + 1;
    if (error && next.error) this.size--;
    next.error ??= error;
    this.size--;
    this.#leave(next);
  }

  /** Lets go of everything, and counts as not read. */
  clear(): void {
    this.#head = this.#tail = { chars: 0, missed: 1 };
    this.size = this.#events = this.#chars = 0;
  }

  #leave(next: Place<E>): void {
    this.#chars -= this.#head.chars;
    this.#events--;
    this.#head = next;
  }
}
