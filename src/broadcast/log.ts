import { soon } from '../watch/turn.ts';

/**
 * The event log. It holds one copy of each event, whatever the number of watchers.
 *
 * **Order.** Each event has a *position*, a number that only grows. The order of positions is the order in which events were
 * accepted. **Two ends.** `end` is where the next accepted event goes. `head` is how far events are distributed, that is, visible
 * to watchers. They differ only while a full `wait` watcher holds the gate; the stretch between them is the broadcaster's
 * incoming queue. **Slow readers.** A watcher's queue is the stretch between its own position and `head`. The watcher *stands* in
 * the chunk that holds its position, and the log keeps every chunk from the first standing watcher on. A watcher that falls a
 * full capacity behind is taken out of its chunk (see watcher-sets.ts), so no watcher pins more than its capacity.
 *
 *              chunk 7          chunk 8          chunk 9          chunk 10
 *         |a b c d e f g h|i j k l m n o p|q r s t u v w x|y z . . . . . .|
 *          ^base      ^                     ^              ^   ^
 *                     |standing: 1          |standing: 2   |   `end: the next accepted event goes here
 *                     slowest watcher       two watchers   `head: events from here on are accepted, not yet visible
 *
 * Invariants
 * - base <= every standing position <= end, and head <= end. There is always a chunk that holds the position `end`.
 * - The log keeps the chunks from the first one with a standing watcher on, and the last `retained` events before head, rounded
 *   up to whole chunks. If no watcher stands and nothing is retained, it keeps nothing.
 * - `head` enters a new chunk only after the chunk before it is full.
 *
 * Here and in the neighbouring files, members that tests read are `private` rather than `#`.
 */
export class EventLog<E> {
  head: number = 0;
  end: number = 0;
  readonly #shift: number;
  readonly #chunkLength: number;
  private chunks: (Chunk<E> | undefined)[] = [new Chunk<E>()];
  /** Number of removed chunks at the start of `chunks`. */
  #dead: number = 0;
  /** Position of the first event of the first chunk. */
  private base: number = 0;
  /** Number of the first chunk, counted from the first chunk ever. */
  #firstChunk: number = 0;
  /** Number of standing watchers and retentions. Events are stored only while there are some. */
  private needs: number = 0;
  /** Only the window stands before this position. */
  #readTo: number = 0;
  private readonly retained: Largest = new Largest();
  private batch: Batch<E> | undefined;

  /** Chunks are about as long as a queue, so that rounding up to whole chunks stays in proportion to the capacities. */
  constructor(capacity: number) {
    this.#shift = Math.min(8, Math.max(4, Math.floor(Math.log2(capacity || 1))));
    this.#chunkLength = 1 << this.#shift;
  }

  /** Counts positions from here on. Only before the first event, while all watchers stand at the beginning. */
  begin(position: number): void {
    this.head = this.end = this.base = this.#readTo = position;
  }

  /** Appends an event, with a note about it: its topics, or its place among all events. */
  append(event: E, note?: unknown): void {
    this.end++;
    if (this.needs === 0) {
      this.base = this.end;
      return;
    }
    const tail = this.chunks[this.chunks.length - 1] as Chunk<E>;
    if (note !== undefined) {
      tail.notes ??= [];
      tail.notes[tail.events.length] = note;
    }
    if (tail.events.push(event) === this.#chunkLength) this.chunks.push(new Chunk());
  }

  /** Counts an event that need not be stored, because every watcher in the log stands at its end, and takes it at once. */
  skip(): void {
    if (!this.isEmpty) this.forget();
    this.base = this.head = ++this.end;
  }

  /** Makes one more accepted event visible. Returns whether head has entered a new chunk. */
  step(): boolean {
    this.head++;
    return this.head > this.base && this.#starts(this.head);
  }

  /** Whether a chunk starts at this position. */
  #starts(position: number): boolean {
    return ((position - this.base) & (this.#chunkLength - 1)) === 0;
  }

  at(position: number): E {
    return this.#chunkAt(position).events[(position - this.base) & (this.#chunkLength - 1)] as E;
  }

  noteAt(position: number): unknown {
    return this.#chunkAt(position).notes?.[(position - this.base) & (this.#chunkLength - 1)];
  }

  /** Returns the place of an event among all events: its position, unless this is the log of some topics. */
  placeOf(position: number): number {
    const note = this.#chunkAt(position).notes?.[(position - this.base) & (this.#chunkLength - 1)];
    return typeof note === 'number' ? note : position;
  }

  /** Returns the event at the position of a standing watcher, which moves on by one. */
  pass(position: number): E {
    const event = this.at(position);
    this.passed(position);
    return event;
  }

  /** The standing watcher at this position moves on by one. */
  passed(position: number): void {
    if (position >= this.base && this.#starts(position + 1)) this.move(position, position + 1);
  }

  /**
   * Returns the events of a stretch. Watchers in step get the same array: the log remembers the last one, but does not keep it
   * alive.
   */
  slice(from: number, to: number): readonly E[] {
    const known =
      this.batch?.from === from && this.batch.to === to ? (this.batch.events ?? this.batch.later?.deref()) : undefined;
    if (known !== undefined) return known;
    let events: E[] = [];
    for (let position = from; position < to; ) {
      const at = (position - this.base) & (this.#chunkLength - 1);
      const some = this.#chunkAt(position).events.slice(at, at + to - position);
      events = events.length === 0 ? some : events.concat(some);
      position += some.length;
    }
    if (this.batch?.events === undefined) soon(this.#letGo);
    this.batch = { from, to, events, later: undefined };
    return events;
  }

  /** Dereferencing a WeakRef costs more than the rest of a read. So the array itself is kept until the end of the turn. */
  readonly #letGo = (): void => {
    const batch = this.batch as Batch<E>;
    batch.later = new WeakRef(batch.events as readonly E[]);
    batch.events = undefined;
  };

  /** Returns the number of the chunk that holds a position, which may be far ahead: a bit shift would fail at 2^31. */
  chunkOf(position: number): number {
    return this.#firstChunk + Math.floor((position - this.base) / this.#chunkLength);
  }

  /** Keeps all events from this position on, until `leave`. */
  stand(position: number): void {
    this.needs++;
    if (position < this.#readTo) this.#readTo = position;
    this.#chunkAt(position).standing++;
  }

  move(from: number, to: number): void {
    const before = this.#chunkAt(from);
    const after = this.#chunkAt(to);
    before.standing--;
    after.standing++;
    if (before.standing === 0) this.trim();
  }

  leave(position: number): void {
    this.#chunkAt(position).standing--;
    this.unneed();
  }

  /** Keeps the last `count` events before head, in addition to what standing watchers need. */
  retain(count: number): void {
    this.needs++;
    this.retained.add(count);
  }

  release(count: number): void {
    this.retained.remove(count);
    this.unneed();
  }

  /** Whether nothing is stored. */
  get isEmpty(): boolean {
    return this.base === this.end;
  }

  /** Whether there is nothing that could be forgotten. */
  get isRead(): boolean {
    return this.isEmpty || this.#readTo === this.head;
  }

  /** Called when every watcher in the log has read everything. Only the window, at `start`, has not. */
  forget(start: number = this.end): void {
    // Not `end`: events that wait at the gate have not been read.
    this.#readTo = this.head;
    if (this.head < this.end) return;
    if (start < this.end) {
      // The last of the dropped events left the window unread, and are still stored.
      for (let at = start - 1; at >= this.base && this.at(at) !== undefined; at--) this.drop(at);
      return;
    }
    const tail = new Chunk<E>();
    for (const chunk of this.chunks) tail.standing += chunk?.standing ?? 0;
    // Head stays in the chunk of this number: watchers due at the next one are examined there.
    this.#firstChunk += this.chunks.length - this.#dead - 1;
    this.chunks = [tail];
    this.#dead = 0;
    this.base = this.end;
  }

  /** Drops a single event that only the window still held. Otherwise its chunk might keep it, uncounted by the window. */
  drop(position: number): void {
    const chunk = this.#chunkAt(position);
    if (chunk !== this.chunks[this.#dead] || position >= this.head - this.retained.value) return;
    if (chunk.standing > 1 && position >= this.#readTo) return;
    (chunk.events as (E | undefined)[])[(position - this.base) & (this.#chunkLength - 1)] = undefined;
  }

  /** Stores events from now on, even if no watcher stands in the log. */
  need(): void {
    this.needs++;
  }

  unneed(): void {
    this.needs--;
    this.trim();
  }

  /** Drops the chunks that are no longer needed. */
  trim(): void {
    if (this.needs === 0) {
      if (this.isEmpty) return;
      this.#firstChunk += this.chunks.length - this.#dead;
      this.chunks = [new Chunk()];
      this.#dead = 0;
      this.base = this.end;
      return;
    }
    const floor = this.head - this.retained.value - this.#chunkLength;
    while (this.#chunkAt(this.base).standing === 0 && this.base <= floor) {
      this.chunks[this.#dead++] = undefined;
      this.base += this.#chunkLength;
      this.#firstChunk++;
    }
    // At most half of the array is dead: O(1) per chunk, amortized, however many chunks there are.
    if (this.#dead * 2 > this.chunks.length) {
      this.chunks = this.chunks.slice(this.#dead);
      this.#dead = 0;
    }
  }

  #chunkAt(position: number): Chunk<E> {
    return this.chunks[this.#dead + ((position - this.base) >> this.#shift)] as Chunk<E>;
  }
}

/** The last batch, and its place in the log. */
interface Batch<E> {
  readonly from: number;
  readonly to: number;
  events: readonly E[] | undefined;
  later: WeakRef<readonly E[]> | undefined;
}

class Chunk<E> {
  readonly events: E[] = [];
  notes: unknown[] | undefined = undefined;
  /** Watchers whose position lies in this chunk. */
  standing: number = 0;
}

/**
 * The last events of a log, for watches that begin in the past. There is no second store: the window stands in the log like a
 * watcher that has not read its last events, so the log keeps them.
 *
 *        dropped    | kept for new watches     | accepted, not yet visible
 *     . . . . . . . |f g h i j k l m n o p q r | s t
 *                    ^start                     ^head
 *
 * A *place* is the number of events that came before, among all: `f` above has place 5. A watch that has read f and g reports
 * place 7, and a watch that begins after 7 gets h and everything since. A place before `start` is too old: it gets nothing,
 * never some of the events.
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

/** The largest of a changing collection of numbers; 0 when empty. Removing the largest scans the distinct numbers. */
export class Largest {
  value: number = 0;
  readonly #counts: Map<number, number> = new Map();

  add(number: number): void {
    this.#counts.set(number, (this.#counts.get(number) ?? 0) + 1);
    if (number > this.value) this.value = number;
  }

  remove(number: number): void {
    const others = (this.#counts.get(number) ?? 0) - 1;
    if (others > 0) {
      this.#counts.set(number, others);
      return;
    }
    this.#counts.delete(number);
    if (number < this.value) return;
    this.value = 0;
    for (const other of this.#counts.keys()) if (other > this.value) this.value = other;
  }
}
