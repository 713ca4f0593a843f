import type { Overflow } from '../watch/overflow.ts';
import { Reader } from '../watch/reader.ts';
import { Aside, nothingAside } from './aside.ts';
import type { Gated } from './gate.ts';
import type { Laggard } from './laggards.ts';
import type { Linked } from './linked-set.ts';
import type { Mux } from './mux.ts';

/** The options of one cursor. */
export interface CursorOptions<E> {
  readonly capacity: number;
  readonly overflow: Overflow;
  readonly filter: ((event: E) => boolean) | undefined;
  readonly onGap: ((missed: number) => void) | undefined;
}

/**
 * A watcher's place in the log, and what the log keeps for it.
 *
 *     standing ---- a whole capacity behind: lag() ----> judged: in no chunk, costs a publisher nothing
 *        ^---- used again: the events since then are counted ----'
 *     either ---- stop, return, error, cut and read out ----> over: keeps nothing in the log
 *
 * Invariants
 * - Standing: the log keeps everything from `position` on, and the watcher is in the set of laggards or at the gate.
 * - Judged: the log keeps nothing for it, except the last `capacity` events with drop-oldest.
 * - Over: no set, no listener and no publisher references it any more.
 *
 * The set that holds the watcher tells which of the three it is. Programs have many idle watchers, so state that only some need
 * is stored in {@link Aside}.
 */
export abstract class Place<E> extends Reader<E> implements Laggard, Gated {
  inSet: object | undefined;
  before: Linked | undefined;
  after: Linked | undefined;
  abstract inPark: boolean;

  protected readonly mux: Mux<E>;
  protected readonly options: CursorOptions<E>;
  protected position: number;
  /** How far ahead head may be for the next read to go straight to the log. 0 whenever there is anything else to examine. */
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
  protected abstract get room(): number;
  protected abstract get oneByOne(): boolean;
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

  /** Returns this watcher's own `Aside`, for modification. */
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

  /**
   * What it has set aside counts: a full watcher that stays, for its filter, needs no more than a chunk of the log. For drop-oldest
   * this is where a whole queue has been overwritten, so that `lag` need not look at what was set aside.
   */
  dueChunk(): number {
    const { capacity } = this.options;
    return this.mux.log.chunkOf(this.position + (this.dropsOldest && !this.oneByOne ? capacity : this.room)) + 1;
  }

  /** Ends the watch with an error, which its consumer gets after the queued events. */
  fail(error: unknown): void {
    if (this.over) return;
    this.failure = { error };
    this.leave();
    this.mux.park.wake(this);
  }

  /** Not while a filter that called `shutdown` is still being asked about an event: that event counts. */
  protected override get drained(): boolean {
    return this.over || (this.mux.closed && !this.aside.judging);
  }

  protected get dropsOldest(): boolean {
    return this.options.overflow === 'drop-oldest';
  }

  /** Number of distributed events in the log that have not been taken. */
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

  /** Drops the log's next events, without looking at them. */
  protected pass(count: number): void {
    this.lose(count);
    this.advance(count);
  }

  /** From standing to judged. A full queue takes no events, so it needs nothing from the log until it is read. */
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

  /** Counts the events that passed a full queue as lost. With drop-oldest, all but those that the log retains. */
  protected catchUp(): { readonly error?: unknown } | undefined {
    this.pass(Math.max(0, this.ahead - (this.dropsOldest ? this.options.capacity : 0)));
    return undefined;
  }

  /** Called when it stands again: releases what the log kept for it while it was judged. */
  protected caughtUp(): void {
    if (this.dropsOldest) this.mux.log.release(this.options.capacity);
  }

  /** Leaves every set for good. */
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
