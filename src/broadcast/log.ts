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
  private chunks: Chunk<E>[] = [new Chunk<E>()];
  /** Position of the first event of chunks[0]. */
  private base: number = 0;
  /** Number of chunks[0], counted from the first chunk ever. */
  private firstChunk: number = 0;
  /** Watchers in chunks, and retentions, for whose sake events are stored. */
  private needs: number = 0;
  private readonly retentions: Map<number, number> = new Map();
  private retained: number = 0;
  private batch: { from: number; to: number; events: readonly E[] } | undefined = undefined;

  /** Chunks are about as long as a queue: what a chunk rounds up by stays in proportion to what the capacities allow. */
  constructor(capacity: number) {
    this.shift = Math.min(8, Math.max(4, Math.floor(Math.log2(capacity || 1))));
    this.chunkLength = 1 << this.shift;
  }

  append(event: E): void {
    this.batch = undefined;
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
    const offset = position - this.base;
    return (this.chunks[offset >> this.shift] as Chunk<E>).events[offset & (this.chunkLength - 1)] as E;
  }

  /** The events of a stretch. Watchers in step get one and the same array. */
  slice(from: number, to: number): readonly E[] {
    const last = this.batch;
    if (last !== undefined && last.from === from && last.to === to) return last.events;
    const events: E[] = [];
    for (let position = from; position < to; position++) events.push(this.at(position));
    this.batch = { from, to, events };
    return events;
  }

  /** Lets go of the shared batch: called when those in step have had it. */
  forgetBatch(): void {
    this.batch = undefined;
  }

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
    if (before === after) return;
    before.standing--;
    after.standing++;
    if (before.standing === 0 && before === this.chunks[0]) this.trim();
  }

  leave(position: number): void {
    this.chunkAt(position).standing--;
    this.unneed();
  }

  /** From now on, the last `count` events before head are kept, besides what stands. */
  retain(count: number): void {
    this.needs++;
    this.retentions.set(count, (this.retentions.get(count) ?? 0) + 1);
    if (count > this.retained) this.retained = count;
  }

  release(count: number): void {
    const others = (this.retentions.get(count) ?? 0) - 1;
    if (others > 0) this.retentions.set(count, others);
    else this.retentions.delete(count);
    if (others <= 0 && count === this.retained) this.retained = Math.max(0, ...this.retentions.keys());
    this.unneed();
  }

  private unneed(): void {
    this.needs--;
    this.trim();
  }

  /** Drops the chunks that nobody needs. */
  trim(): void {
    if (this.needs === 0) {
      this.firstChunk += this.chunks.length;
      this.chunks = [new Chunk()];
      this.base = this.end;
      this.batch = undefined;
      return;
    }
    const floor = this.head - this.retained - this.chunkLength;
    while ((this.chunks[0] as Chunk<E>).standing === 0 && this.base <= floor) {
      this.chunks.shift();
      this.base += this.chunkLength;
      this.firstChunk++;
    }
  }

  private chunkAt(position: number): Chunk<E> {
    return this.chunks[(position - this.base) >> this.shift] as Chunk<E>;
  }
}

class Chunk<E> {
  readonly events: E[] = [];
  /** Watchers whose position lies in this chunk. */
  standing: number = 0;
}
