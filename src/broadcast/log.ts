import { Largest } from './largest.ts';
import { soon } from './soon.ts';

/**
 * The event log: one copy of each event, whatever the number of watchers.
 *
 * **Order.** An event's place is its *position*, a number that only grows; the order of positions is the order in which
 * events were accepted. **Two ends.** `end` is where the next accepted event goes; `head` is how far events are distributed,
 * that is, visible to watchers. They differ only while a full `wait` watcher holds the gate: the stretch between them is the
 * broadcaster's incoming queue. **Slow readers.** A watcher's queue is the stretch between its own position and `head`.
 * It *stands* in the chunk that holds its position, and what stands is kept. Whoever has fallen a full capacity behind is
 * taken out of its chunk (see laggards.ts and cursor.ts), so nobody pins more than its capacity.
 *
 *              chunk 7          chunk 8          chunk 9          chunk 10
 *         |a b c d e f g h|i j k l m n o p|q r s t u v w x|y z . . . . . .|
 *          ^base      ^                     ^              ^   ^
 *                     |standing: 1          |standing: 2   |   `end: the next accepted event goes here
 *                     slowest watcher       two watchers   `head: events from here on are accepted, not yet visible
 *
 * Invariants
 * - base <= every standing position <= end, and head <= end. There is always a chunk that holds the position `end`.
 * - Kept is what stands from the first chunk on that has a standing watcher, and the last `retained` events before head;
 *   rounded up to whole chunks, and nothing else. If nobody stands and nothing is retained, nothing is kept at all.
 * - `head` enters a new chunk only after the chunk before it is full.
 */
export class EventLog<E> {
  head: number = 0;
  end: number = 0;
  private readonly shift: number;
  private readonly chunkLength: number;
  private chunks: (Chunk<E> | undefined)[] = [new Chunk<E>()];
  /** Chunks at the start of the row that are gone. */
  private dead: number = 0;
  /** Position of the first event of the first chunk. */
  private base: number = 0;
  /** Number of the first chunk, counted from the first chunk ever. */
  private firstChunk: number = 0;
  /** Watchers in chunks, and retentions, for whose sake events are stored. */
  private needs: number = 0;
  private readonly retained: Largest = new Largest();
  private batch: Batch<E> | undefined;

  /** Chunks are about as long as a queue: what a chunk rounds up by stays in proportion to what the capacities allow. */
  constructor(capacity: number) {
    this.shift = Math.min(8, Math.max(4, Math.floor(Math.log2(capacity || 1))));
    this.chunkLength = 1 << this.shift;
  }

  append(event: E): void {
    this.end++;
    if (this.needs === 0) {
      this.base = this.end;
      return;
    }
    const tail = this.chunks[this.chunks.length - 1] as Chunk<E>;
    if (tail.events.push(event) === this.chunkLength) this.chunks.push(new Chunk());
  }

  /** Makes one more accepted event visible. Answers whether head has entered a new chunk. */
  step(): boolean {
    this.head++;
    return this.head > this.base && ((this.head - this.base) & (this.chunkLength - 1)) === 0;
  }

  at(position: number): E {
    return this.chunkAt(position).events[(position - this.base) & (this.chunkLength - 1)] as E;
  }

  /** The event at a position where someone stands, who moves on by one. */
  pass(position: number): E {
    const offset = position - this.base;
    const chunk = this.chunks[this.dead + (offset >> this.shift)] as Chunk<E>;
    const at = offset & (this.chunkLength - 1);
    const event = chunk.events[at] as E;
    if (at === this.chunkLength - 1) this.move(position, position + 1);
    return event;
  }

  /** The events of a stretch. Watchers in step get one and the same array: the log knows the last one, but keeps nobody's batch alive. */
  slice(from: number, to: number): readonly E[] {
    const known =
      this.batch?.from === from && this.batch.to === to ? (this.batch.events ?? this.batch.later?.deref()) : undefined;
    if (known !== undefined) return known;
    let events: E[] = [];
    for (let position = from; position < to; ) {
      const at = (position - this.base) & (this.chunkLength - 1);
      const some = this.chunkAt(position).events.slice(at, at + to - position);
      events = events.length === 0 ? some : events.concat(some);
      position += some.length;
    }
    if (this.batch?.events === undefined) soon(this.letGo);
    this.batch = { from, to, events, later: undefined };
    return events;
  }

  /** To look at a WeakRef costs more than all the rest of a read, so for those who read in one go the array itself is kept. */
  private readonly letGo = (): void => {
    const batch = this.batch as Batch<E>;
    batch.later = new WeakRef(batch.events as readonly E[]);
    batch.events = undefined;
  };

  /** The number of the chunk that holds a position. */
  chunkOf(position: number): number {
    return this.firstChunk + ((position - this.base) >> this.shift);
  }

  /** The number of chunks, rounded up, that so many events span. */
  chunksFor(count: number): number {
    return Math.ceil(count / this.chunkLength);
  }

  /** From now on, what lies at and after this position is kept. */
  stand(position: number): void {
    this.needs++;
    this.chunkAt(position).standing++;
  }

  move(from: number, to: number): void {
    const before = this.chunkAt(from);
    const after = this.chunkAt(to);
    before.standing--;
    after.standing++;
    if (before.standing === 0) this.trim();
  }

  leave(position: number): void {
    this.chunkAt(position).standing--;
    this.unneed();
  }

  /** From now on, the last `count` events before head are kept, besides what stands. */
  retain(count: number): void {
    this.needs++;
    this.retained.add(count);
  }

  release(count: number): void {
    this.retained.remove(count);
    this.unneed();
  }

  private unneed(): void {
    this.needs--;
    this.trim();
  }

  /** Drops the chunks that nobody needs. */
  trim(): void {
    if (this.needs === 0) {
      this.firstChunk += this.chunks.length - this.dead;
      this.chunks = [new Chunk()];
      this.dead = 0;
      this.base = this.end;
      return;
    }
    const floor = this.head - this.retained.value - this.chunkLength;
    while (this.chunkAt(this.base).standing === 0 && this.base <= floor) {
      this.chunks[this.dead++] = undefined;
      this.base += this.chunkLength;
      this.firstChunk++;
    }
    // The dead are never more than the living: O(1) for each chunk, amortized, however long the row.
    if (this.dead * 2 > this.chunks.length) {
      this.chunks = this.chunks.slice(this.dead);
      this.dead = 0;
    }
  }

  private chunkAt(position: number): Chunk<E> {
    return this.chunks[this.dead + ((position - this.base) >> this.shift)] as Chunk<E>;
  }
}

/** The last batch, and where it stands in the log. */
interface Batch<E> {
  readonly from: number;
  readonly to: number;
  events: readonly E[] | undefined;
  later: WeakRef<readonly E[]> | undefined;
}

class Chunk<E> {
  readonly events: E[] = [];
  /** Watchers whose position lies in this chunk. */
  standing: number = 0;
}
