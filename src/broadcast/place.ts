import { Reader } from '../watch/reader.ts';
import { Aside, nothingAside } from './aside.ts';
import type { Gated } from './gate.ts';
import type { Laggard } from './laggards.ts';
import type { Linked } from './linked-set.ts';
import type { Mux } from './mux.ts';

/**
 * What happens to an event that does not fit a watcher's queue.
 *
 * - `wait`: it is held back until there is room, and so is its publisher; a watcher that nobody reads stalls it.
 * - `drop-newest`, `drop-oldest`: it, or the oldest in the queue, is lost to this watcher; `onGap` and `dropped` tell how many were.
 * - `disconnect`: the watch is cut: its queue, then one ERROR of code 410 with `details.missed`, then the end.
 * - `coalesce`: unseen changes are folded to the latest of their key: ADDED then MODIFIED is ADDED, ADDED then DELETED is nothing,
 *   MODIFIED then DELETED is DELETED, DELETED then ADDED is MODIFIED; of other types the last stays. Keys come in the order of their
 *   first unseen change. With more of them than `capacity` the watch is cut as by `disconnect`.
 */
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
 *
 * Which of the three it is, the set says that holds it. Programs have many idle watchers, so what only some need stands aside.
 */
export abstract class Place<E> extends Reader<E> implements Laggard, Gated {
  inSet: object | undefined;
  before: Linked | undefined;
  after: Linked | undefined;
  abstract inPark: boolean;
  abstract readonly hasReads: boolean;

  protected readonly mux: Mux<E>;
  protected readonly options: CursorOptions<E>;
  protected position: number;
  /** How far head may be ahead for the next read to go straight to the log; 0 whenever there is anything else to look at. */
  protected ease: number = 0;
  protected aside: Aside<E> = nothingAside();

  constructor(mux: Mux<E>, options: CursorOptions<E>) {
    super();
    this.mux = mux;
    this.options = options;
    this.position = mux.log.end;
    this.inSet = mux; // it stands, and is about to join a set
    mux.log.stand(this.position);
    mux.watchers++;
  }

  abstract bound(): number;
  abstract lag(): void;
  abstract wake(): void;

  get waits(): boolean {
    return this.options.overflow === 'wait';
  }

  protected get standing(): boolean {
    return this.inSet !== this.mux.judged;
  }

  protected get over(): boolean {
    return this.inSet === undefined;
  }

  /** What stands aside, to be changed. */
  protected get own(): Aside<E> {
    if (this.aside === nothingAside()) this.aside = new Aside();
    return this.aside;
  }

  protected override get failure(): { readonly error: unknown } | undefined {
    return this.aside.failure;
  }

  protected override set failure(failure: { readonly error: unknown } | undefined) {
    if (failure !== this.aside.failure) this.own.failure = failure;
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
    this.mux.park.wake(this);
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
    this.ease = 0;
    const { own } = this;
    own.lost += count;
    own.missed += count;
  }

  /** The log's next events are lost, unseen. */
  protected pass(count: number): void {
    this.lose(count);
    this.advance(count);
  }

  /** From standing to judged: a full queue takes nothing, and needs nothing of the log, until it is read. */
  protected withdraw(): void {
    if (this.dropsOldest) this.mux.log.retain(this.options.capacity);
    this.ease = 0;
    this.mux.log.leave(this.position);
    this.mux.judged.add(this);
  }

  /** From judged to standing. */
  protected restand(): void {
    const { log, laggards } = this.mux;
    const failure = this.catchUp();
    this.mux.judged.delete(this, this.mux);
    log.stand(this.position);
    laggards.add(this);
    this.caughtUp();
    if (failure) this.fail(failure.error);
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
    this.ease = 0;
    if (this.waits) this.mux.gate.remove(this);
    else this.mux.laggards.remove(this);
    this.inSet = undefined;
    this.mux.log.leave(this.position);
    this.mux.left(this);
  }
}
