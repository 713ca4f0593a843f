import { soon } from '../watch/turn.ts';
import { FoldChain } from './fold.ts';
import { Gate, type Gated, type GateListener } from './gate.ts';
import { EventLog, ReplayWindow } from './log.ts';
import { Laggards, type Linked, LinkedSet, type WaitingReader, WaitingReaders } from './watcher-sets.ts';

/** A watcher that can leave its view. */
export interface ViewMember extends WaitingReader, Gated {
  readonly holdsPublisher: boolean;
  stop(): void;
}

/** What a view and its watchers need from the mux. */
interface ViewHost<E> {
  readonly options: {
    readonly capacity: number;
    readonly keyOf: (event: E) => unknown;
    readonly forgets?: boolean;
    readonly replayItems?: number;
  };
  /** The log of all events, whose positions are places. */
  readonly log: EventLog<E>;
  readonly closed: boolean;
  readonly onDue: (readers: WaitingReaders) => void;
  readonly onVisible: ((view: View<E>) => void) | undefined;
  /** Is notified of watchers that hold up the publisher. */
  readonly stalls: GateListener | undefined;
  joined(holdsPublisher: boolean): void;
  left(watcher: ViewMember, view: View<E>): void;
  pump(): void;
}

/** The gate of a view without `wait` watchers. No member is ever added to it, so it is always open. */
const OPEN: Gate = new Gate();

/**
 * A group of watchers that see the same events, with a log of these: those that see every event, or those of the same topics (see
 * topics.ts).
 *
 *     Mux ---- every event --------> View of all     log | gate, laggards, judged, readers
 *       '----- of topic a, b ------> View of {a}     log | gate, laggards, judged, readers
 *                                    View of {a, b}  ...
 *
 * A view does not decide about order: the mux appends an event to the logs of all its views in one step, and makes it visible
 * in all of them in another. A watcher stands in one view only, so an event costs nothing to watchers of other topics.
 *
 * Every live watcher is in one of three sets: laggards (standing), the gate (standing, `wait`), judged (full and left alone).
 * There may be thousands of views, so what few watchers need (a gate, a chain of folds) is created with the first that does.
 */
export class View<E> {
  readonly mux: ViewHost<E>;
  readonly log: EventLog<E>;
  readonly laggards: Laggards = new Laggards();
  readonly readers: WaitingReaders;
  /** Full watchers that stand nowhere and are left alone until they read. */
  readonly judged: LinkedSet<ViewMember> = new LinkedSet();
  /** The topics of its watchers; undefined if they see every event. */
  readonly topics: readonly string[] | undefined;
  /** Its last events, if the broadcaster keeps some. */
  readonly window: ReplayWindow<E> | undefined;
  gate: Gate = OPEN;
  watchers: number = 0;
  /** The chunk that head has entered last. */
  #entered: number = 0;
  #enters: boolean = false;
  #forgetting: boolean = false;
  #folds: FoldChain<E> | undefined = undefined;

  constructor(mux: ViewHost<E>, topics?: readonly string[]) {
    this.mux = mux;
    this.topics = topics;
    this.log = new EventLog(mux.options.capacity);
    this.readers = new WaitingReaders(mux.onDue);
    this.window = mux.options.replayItems ? new ReplayWindow(this.log) : undefined;
  }

  /** The gate, for a `wait` watcher that joins it. */
  get gated(): Gate {
    if (this.gate === OPEN) this.gate = new Gate(this.mux.stalls);
    return this.gate;
  }

  /** Its live watchers. */
  get members(): Linked[] {
    return [...this.gate, ...this.laggards, ...this.judged];
  }

  /** The folds that laggards of `coalesce` share. */
  get chain(): FoldChain<E> {
    if (!this.#folds) {
      const { keyOf, forgets = false } = this.mux.options;
      this.#folds = new FoldChain(this.log, keyOf);
      this.#folds.forgets = forgets;
    }
    return this.#folds;
  }

  /**
   * Gives the next event to all watchers, if they are few and all wait for it, so that it need not be in the log. Returns
   * whether it did.
   */
  handOver(event: E): boolean {
    const { log, readers } = this;
    const { head } = log;
    if (!readers.allTake(head, this.watchers)) return false;
    log.skip();
    readers.give(head, event);
    return true;
  }

  /** Makes one more event visible. `moved` does the rest, once the event is visible in all views. */
  step(): void {
    if (this.log.step()) this.#enters = true;
    this.mux.onVisible?.(this);
  }

  /**
   * Called when head has moved. Whenever it enters a chunk, due laggards leave the log, and unneeded chunks are dropped. That
   * may run user code, which may publish, and so call this again.
   */
  moved(): void {
    if (this.#enters) this.#enter();
    // Watchers of topics are served when those with a filter are: at the end of the turn.
    this.readers.notify(this.topics ? undefined : this.log.head - 1);
  }

  #enter(): void {
    this.#enters = false;
    while (this.#entered < this.log.chunkOf(this.log.head)) {
      this.#entered++;
      this.#folds?.fold();
      this.laggards.judge(this.#entered);
      if (this.#folds) this.#folds.unseen = undefined;
      this.log.trim();
    }
  }

  /**
   * Called when a watcher of topics starts to wait. If all of them do, all have read everything: a quiet topic then keeps no
   * events, although its watchers stand in the log's last chunk. Decided at the end of the turn, when no filter is running.
   */
  waits(): void {
    if (this.readers.idle < this.watchers || this.#forgetting || this.log.isRead) return;
    this.#forgetting = true;
    soon(() => {
      this.#forgetting = false;
      if (this.readers.idle === this.watchers) this.forget();
    });
  }

  /** Called when all its watchers have read everything. */
  forget(): void {
    this.log.forget(this.window?.start);
  }

  joined(holdsPublisher: boolean): void {
    this.watchers++;
    this.mux.joined(holdsPublisher);
  }

  left(watcher: ViewMember): void {
    this.watchers--;
    if (watcher.isWaiting) this.readers.leave();
    this.mux.left(watcher, this);
  }
}
