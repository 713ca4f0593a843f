import { Reader } from '../watch/reader.ts';
import type { Laggard } from './laggards.ts';
import type { Mux } from './mux.ts';

/** What happens to an event that does not fit a watcher's queue. */
export type Overflow = 'wait' | 'drop-newest' | 'drop-oldest' | 'disconnect' | 'coalesce';

/** How one watcher reads. */
export interface CursorOptions<E> {
  readonly capacity: number;
  readonly overflow: Overflow;
  readonly filter: ((event: E) => boolean) | undefined;
  readonly onGap: ((missed: number) => void) | undefined;
}

/**
 * Where a watcher stands in the log, and what that pins.
 *
 *     standing ---- a whole capacity behind: lag() ----> judged: in no set, costs a publisher nothing
 *        ^---- touched again: what passed is counted ------'
 *     either ---- stop, return, error, cut and read out ----> over: pins nothing, for good
 *
 * Invariants
 * - Standing: the log keeps all from `position` on, and the watcher is in the set of laggards or at the gate.
 * - Judged: the log keeps nothing for it but, for one that drops the oldest, the last `capacity` events.
 * - Over: no set, no listener and no publisher knows it any more.
 */
export abstract class Place<E> extends Reader<E> implements Laggard {
  due: number = 0;
  /** Stops listening to the consumer's abort signal. */
  unlisten: (() => void) | undefined;
  abstract inPark: boolean;
  abstract readonly hasReads: boolean;

  protected readonly mux: Mux<E>;
  protected readonly options: CursorOptions<E>;
  protected position: number;
  /** Events that this watcher did not get, in all, and those of them that nobody was told of yet. */
  protected lost: number = 0;
  protected missed: number = 0;
  protected standing: boolean = true;
  protected over: boolean = false;

  constructor(mux: Mux<E>, options: CursorOptions<E>) {
    super();
    this.mux = mux;
    this.options = options;
    this.position = mux.log.end;
    mux.log.stand(this.position);
    mux.watchers++;
  }

  abstract bound(): number;
  abstract lag(): void;
  abstract wake(): void;

  get waits(): boolean {
    return this.options.overflow === 'wait';
  }

  dueChunk(): number {
    const { log } = this.mux;
    return log.chunkOf(this.position) + log.chunksFor(this.options.capacity) + 1;
  }

  /** Ends the watch; its consumer hears why after what is queued. */
  fail(error: unknown): void {
    if (this.over) return;
    this.failure = { error };
    this.leave();
    this.mux.wake(this);
  }

  protected override get drained(): boolean {
    return this.over || this.mux.closed;
  }

  protected get dropsOldest(): boolean {
    return this.options.overflow === 'drop-oldest';
  }

  /** Events of the log that have been distributed and not been taken. */
  protected get ahead(): number {
    return this.over ? 0 : Math.max(0, this.mux.log.head - this.position);
  }

  protected advance(count: number): void {
    if (this.standing) this.mux.log.move(this.position, this.position + count);
    this.position += count;
  }

  protected lose(count: number): void {
    this.lost += count;
    this.missed += count;
  }

  /** The log's next events are lost, unseen. */
  protected pass(count: number): void {
    this.lose(count);
    this.advance(count);
  }

  /** From standing to judged: a full queue takes nothing, and needs nothing of the log, until it is read. */
  protected withdraw(): void {
    if (this.dropsOldest) this.mux.log.retain(this.options.capacity);
    this.standing = false;
    this.mux.log.leave(this.position);
    this.mux.judged.add(this);
  }

  /** From judged to standing. */
  protected restand(): void {
    const { log, laggards } = this.mux;
    const failure = this.catchUp();
    this.standing = true;
    this.mux.judged.delete(this);
    log.stand(this.position);
    laggards.add(this);
    this.caughtUp();
    if (failure !== undefined) this.fail(failure.error);
  }

  /** What has passed by a full queue is lost; of one that drops the oldest, but for what the log retains. */
  protected catchUp(): { readonly error?: unknown } | undefined {
    this.pass(Math.max(0, this.ahead - (this.dropsOldest ? this.options.capacity : 0)));
    return undefined;
  }

  /** It stands again: what the log held for it as a judged one can go. */
  protected caughtUp(): void {
    if (this.dropsOldest) this.mux.log.release(this.options.capacity);
  }

  /** Leaves every set, for good. */
  protected leave(): void {
    if (!this.over && !this.standing) this.restand();
    if (this.over) return;
    this.over = true;
    this.mux.laggards.remove(this);
    this.mux.log.leave(this.position);
    this.unlisten?.();
    this.mux.left(this);
  }
}
