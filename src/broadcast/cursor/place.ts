import { Reader } from '../../watch/reader.ts';
import type { Policy } from '../policies/policy.ts';
import type { View } from '../view.ts';
import type { Gated } from '../watchers/gate.ts';
import type { Laggard } from '../watchers/laggards.ts';
import type { Linked } from '../watchers/linked-set.ts';
import { Extra, noExtra } from './extra.ts';

/** How many events a watcher without a limit may be behind before they are folded. */
const FOLD_SOON = 256;

/** The options of one cursor. */
export interface CursorOptions<E> {
  readonly capacity: number;
  readonly policy: Policy;
  readonly filter: ((event: E) => boolean) | undefined;
  readonly onGap: ((missed: number) => void) | undefined;
  readonly name?: string | undefined;
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
 * - Judged: the log keeps nothing for it, except what its policy retains.
 * - Over: no set, no listener and no publisher references it any more.
 *
 * The set that holds the watcher shows which of the three it is. Programs have many idle watchers, so state that only some need
 * is stored in {@link Extra}, and what differs by policy in a {@link Policy} that all its watchers share.
 */
export abstract class Place<E> extends Reader<E> implements Laggard, Gated {
  inSet: object | undefined;
  before: Linked | undefined;
  after: Linked | undefined;
  abstract inPark: boolean;

  readonly view: View<E>;
  readonly options: CursorOptions<E>;
  position: number;
  /** How far ahead head may be for the next read to go straight to the log. 0 whenever there is anything else to examine. */
  protected directLimit: number = 0;
  extra: Extra<E> = noExtra();

  constructor(view: View<E>, options: CursorOptions<E>, position: number = view.log.end) {
    super();
    this.view = view;
    this.options = options;
    this.position = position;
    this.inSet = view; // it stands, and is about to join a set
    view.log.stand(position);
    view.joined(this.holdsPublisher);
  }

  abstract bound(): number;
  abstract lag(): void;
  abstract wake(): void;

  // What a policy needs from the queue, which is built on top of this class.
  abstract get room(): number;
  abstract get claims(): number;
  abstract get oneByOne(): boolean;
  abstract settle(): void;
  abstract keep(event: E): void;
  abstract dropKept(): void;

  get holdsPublisher(): boolean {
    return this.options.policy.holdsPublisher;
  }

  get standing(): boolean {
    return this.inSet !== this.view.judged;
  }

  get over(): boolean {
    return this.inSet === undefined;
  }

  /** Whether the watch reports its position, because the broadcaster keeps events to resume from. */
  protected get tellsPlace(): boolean {
    return this.view.window !== undefined;
  }

  /** Where to continue if everything was delivered. */
  protected get headPlace(): number {
    return Math.max(this.view.mux.log.head, this.extra.begin);
  }

  get hasReads(): boolean {
    return this.first !== undefined;
  }

  /** Whether a full laggard can be left alone until it reads. Not with a filter: it must see every event for an exact count. */
  get isIdle(): boolean {
    return !this.first && !this.extra.judging && !this.options.filter;
  }

  /** Returns this watcher's own `Extra`, for modification. */
  get own(): Extra<E> {
    if (this.extra === noExtra()) this.extra = new Extra();
    return this.extra;
  }

  protected override get failure(): { readonly error: unknown } | undefined {
    return this.extra.failure;
  }

  protected override set failure(failure: { readonly error: unknown } | undefined) {
    if (failure !== this.extra.failure) this.own.failure = failure;
  }

  /**
   * What it has set aside counts: a full watcher that stays, for its filter, needs no more than a chunk of the log.
   */
  dueChunk(): number {
    const { policy } = this.options;
    const room = this.oneByOne ? this.room : policy.roomOf(this);
    // A fold that nothing else limits must not let the log grow until then.
    return (
      this.view.log.chunkOf(this.position + (policy.folds && this.view.mux.options.forgets ? Math.min(room, FOLD_SOON) : room)) +
      1
    );
  }

  /** Ends the watch with an error, which its consumer gets after the queued events. */
  fail(error: unknown): void {
    if (this.over) return;
    this.failure = { error };
    this.resumeAt(this.extra.place);
    this.leave();
    this.view.park.wake(this);
  }

  /** Not while a filter that called `shutdown` is still being asked about an event: that event counts. */
  protected override get drained(): boolean {
    return this.over || (this.view.mux.closed && !this.extra.judging);
  }

  /** Number of distributed events in the log that have not been taken. */
  get ahead(): number {
    return this.over ? 0 : Math.max(0, this.view.log.head - this.position);
  }

  advance(count: number): void {
    if (this.standing) this.view.log.move(this.position, this.position + count);
    this.position += count;
  }

  lose(count: number): void {
    this.directLimit = 0;
    const { own } = this;
    own.lost += count;
    own.missed += count;
  }

  /** Drops the log's next events, without looking at them. */
  pass(count: number): void {
    this.lose(count);
    this.advance(count);
  }

  /** Remembers where to continue after what is queued; the first call counts. */
  resumeAt(place: number): void {
    if (this.tellsPlace) this.own.resumeAt ??= place;
  }

  /** From standing to judged. A full queue takes no events, so it needs nothing from the log until it is read. */
  protected withdraw(): void {
    this.options.policy.withdraw(this);
    this.directLimit = 0;
    this.view.log.leave(this.position);
    this.view.judged.add(this);
  }

  /** From judged to standing. */
  protected restand(): void {
    const { policy } = this.options;
    const { log, laggards, judged } = this.view;
    const failure = policy.catchUp(this);
    judged.delete(this, this.view);
    log.stand(this.position);
    laggards.add(this);
    policy.caughtUp(this);
    if (failure) this.fail(failure.error);
  }

  /** Leaves every set for good. */
  protected leave(): void {
    if (!this.over && !this.standing) this.restand();
    if (this.over) return;
    this.resumeAt(this.headPlace);
    this.directLimit = 0;
    if (this.holdsPublisher) this.view.gate.remove(this);
    else this.view.laggards.remove(this);
    this.inSet = undefined;
    this.view.log.leave(this.position);
    this.view.left(this);
  }
}
