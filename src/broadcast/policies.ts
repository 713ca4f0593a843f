import type { Overflow } from '../watch/overflow.ts';
import type { CursorState } from './cursor-state.ts';
import { Fold, type FoldChain, foldKey } from './fold.ts';
import type { EventLog } from './log.ts';

/** A watcher's queue, as its policy sees it; see cursor.ts. */
interface PolicyQueue<E> {
  readonly options: { readonly capacity: number };
  readonly view: { readonly log: EventLog<E>; readonly chain: FoldChain<E> };
  /** Its state besides its position: for reading, and for modification. */
  readonly state: CursorState<E>;
  readonly ownState: CursorState<E>;
  position: number;
  /** How many more events fit, how many pending reads need one, and how many distributed events it has not looked at. */
  readonly room: number;
  readonly claims: number;
  readonly ahead: number;
  readonly over: boolean;
  readonly oneByOne: boolean;
  readonly isIdle: boolean;
  readonly hasReads: boolean;
  settle(): void;
  keep(event: E): void;
  dropKept(): void;
  lose(count: number): void;
  pass(count: number): void;
  advance(count: number): void;
  resumeAt(place: number): void;
}

/**
 * What is special about one overflow policy. Each policy is a subclass in this file, and one object that all its watchers
 * share; what belongs to a watcher is in its cursor. The engine compares no names of policies: it asks these methods.
 *
 *     an event is to be queued ---- offer ---> it fits: queue.keep     it does not: refuse, or what the policy does instead
 *     a laggard is due ------------ settleLaggard, then mayWithdraw ---> withdraw ... (it is read) ... catchUp, caughtUp
 *
 * This class does what most policies do: a full queue keeps what it has, and the events that do not fit are lost and counted.
 * To add a policy, add its name in watch/overflow.ts; the compiler then names every place that has to decide.
 */
class Policy {
  /** Whether a full queue holds back the publisher, and with it every other watcher. */
  readonly holdsPublisher: boolean = false;
  /** Whether a full queue changes with every further event. */
  readonly keepsLatest: boolean = false;
  /** Whether every event is examined before it counts as queued, because the queue is not a list of events. */
  readonly folds: boolean = false;

  /** An event has reached a watcher that wants it. Runs while its queue is being decided on. */
  offer<E>(queue: PolicyQueue<E>, event: E): void {
    if (queue.state.cut || queue.room <= 0) this.refuse(queue, 1);
    else queue.keep(event);
  }

  /** Called for events that do not fit, with their number. */
  refuse<E>(queue: PolicyQueue<E>, count: number): void {
    queue.lose(count);
  }

  /** How many events from `position` on a watcher without a filter can take before `lag` has something to do. */
  roomOf<E>(queue: PolicyQueue<E>): number {
    return queue.room;
  }

  /** A watcher is a whole queue behind: decides on the events since it was last looked at. */
  settleLaggard<E>(queue: PolicyQueue<E>): void {
    queue.settle();
  }

  /** Whether a full laggard may leave the log until it is read. */
  mayWithdraw<E>(_queue: PolicyQueue<E>): boolean {
    return true;
  }

  /** Called before a laggard leaves the log: claims what it still needs. */
  withdraw<E>(_queue: PolicyQueue<E>): void {}

  /** Called before it stands again: decides on all events since then. Returns an error of user code that ends the watch. */
  catchUp<E>(queue: PolicyQueue<E>): { readonly error?: unknown } | undefined {
    queue.pass(queue.ahead);
    return undefined;
  }

  /** Called when it stands again: gives back what `withdraw` has claimed. */
  caughtUp<E>(_queue: PolicyQueue<E>): void {}
}

/**
 * `wait`: the event is held back until every full queue of this policy has room, and so is its publisher (see gate.ts).
 * So it never refuses an event, unless a shutdown has given up on it.
 */
class Wait extends Policy {
  override readonly holdsPublisher: boolean = true;
}

/**
 * `drop-oldest`: an event that does not fit takes the place of the oldest one in the queue.
 *
 * The queue of a laggard is always the last `capacity` events of the log. So a laggard leaves the log like any other, and lets the
 * log retain that many events.
 */
class DropOldest extends Policy {
  override readonly keepsLatest: boolean = true;

  override offer<E>(queue: PolicyQueue<E>, event: E): void {
    if (queue.room <= 0) {
      if (queue.options.capacity === 0) {
        this.refuse(queue, 1);
        return;
      }
      const { ownState } = queue;
      ownState.lost++;
      // Drops the oldest event that no pending read has a claim on.
      ownState.missed += ownState.kept.drop(queue.claims);
    }
    queue.keep(event);
  }

  /** After this many events a whole queue has been overwritten, so `settleLaggard` need not look at what was set aside. */
  override roomOf<E>(queue: PolicyQueue<E>): number {
    return queue.options.capacity;
  }

  override settleLaggard<E>(queue: PolicyQueue<E>): void {
    if (queue.oneByOne || queue.hasReads) queue.settle();
    else queue.dropKept();
  }

  override withdraw<E>(queue: PolicyQueue<E>): void {
    queue.view.log.retain(queue.options.capacity);
  }

  override catchUp<E>(queue: PolicyQueue<E>): undefined {
    queue.pass(Math.max(0, queue.ahead - queue.options.capacity));
  }

  override caughtUp<E>(queue: PolicyQueue<E>): void {
    queue.view.log.release(queue.options.capacity);
  }
}

/** `disconnect`: an event that does not fit cuts the watch. It delivers its queue, then one ERROR, and takes no further event. */
class Disconnect extends Policy {
  override refuse<E>(queue: PolicyQueue<E>, count: number): void {
    super.refuse(queue, count);
    queue.ownState.cut = true;
    queue.resumeAt(queue.ownState.place);
  }
}

/**
 * `coalesce`: the queue is a {@link Fold} with one entry per key, and `capacity` limits the keys.
 *
 *     kept (promised to reads that wait) -> fold, or shared -> links of the chain, while judged -> the log from `position` on
 *
 * A watcher whose unseen changes touch more keys than its capacity is cut. A state with holes would be useless, so its other
 * changes are not delivered either: it gets one ERROR event (410) with the number of all its unseen events, and has to start
 * over.
 */
class Coalesce extends Policy {
  override readonly folds: boolean = true;

  override offer<E>(queue: PolicyQueue<E>, event: E): void {
    if (queue.state.cut) {
      queue.lose(1);
    } else if (queue.state.kept.length < queue.claims && !queue.state.fold?.count) {
      // A read that a filter started meanwhile gets the oldest change of the fold, not this one.
      queue.keep(event);
    } else {
      const key = foldKey(event, queue.view.chain.keyOf);
      if (queue.over) {
        queue.lose(1);
        return;
      }
      const fold = foldOf(queue);
      fold.add(event, key, queue.ownState.place);
      if (fold.size > queue.options.capacity) cut(queue);
    }
  }

  /**
   * Shares folds: otherwise ten thousand watchers that fall behind together would each fold the same stretch, during one publish.
   */
  override settleLaggard<E>(queue: PolicyQueue<E>): void {
    const { position, view } = queue;
    const { chain, log } = view;
    const { head } = log;
    const { unseen } = chain;
    const alone = queue.isIdle && !queue.state.cut;
    if (alone && unseen?.from === position && unseen.to === head && chain.takes(head)) {
      queue.advance(head - position);
      queue.ownState.unseen = unseen.fold;
    }
    const { count = 0, added = 0 } = queue.state.fold ?? {};
    queue.settle();
    const { fold } = queue.state;
    // Not if there were unseen changes before, or if user code has changed something meanwhile.
    if (!alone || !fold || count > 0 || fold.added - added !== head - position) return;
    chain.unseen = { from: position, to: head, fold: fold.since(added) };
  }

  override mayWithdraw<E>(queue: PolicyQueue<E>): boolean {
    return queue.state.cut || queue.view.chain.takes(queue.position);
  }

  override withdraw<E>(queue: PolicyQueue<E>): void {
    if (!queue.state.cut) queue.ownState.link = queue.view.chain.join(queue.position, queue.options.capacity);
  }

  override catchUp<E>(queue: PolicyQueue<E>): { readonly error?: unknown } | undefined {
    const { link, unseen } = queue.state;
    if (!link) return super.catchUp(queue);
    const { chain } = queue.view;
    const { capacity } = queue.options;
    const fold = foldOf(queue);
    if (unseen) fold.merge(unseen);
    queue.ownState.unseen = undefined;
    let failure: { readonly error?: unknown } | undefined;
    for (const later of chain.from(link)) {
      if (queue.state.cut) {
        queue.lose(later.count);
        continue;
      }
      fold.merge(later.fold);
      if (fold.size <= capacity) {
        if (!later.spoiled) continue;
        if ('error' in later.spoiled) {
          failure = later.spoiled;
          queue.resumeAt(later.spoiled.place as number);
          break;
        }
      }
      queue.lose(later.count - later.fold.added);
      cut(queue);
    }
    queue.position = chain.position;
    return failure;
  }

  override caughtUp<E>(queue: PolicyQueue<E>): void {
    const { link } = queue.state;
    if (!link) return;
    queue.view.chain.leave(link, queue.options.capacity);
    queue.ownState.link = undefined;
  }
}

function foldOf<E>(queue: PolicyQueue<E>): Fold<E> {
  const { ownState } = queue;
  ownState.fold ??= new Fold(queue.view.chain.forgets);
  return ownState.fold;
}

function cut<E>(queue: PolicyQueue<E>): void {
  const fold = foldOf(queue);
  queue.ownState.cut = true;
  // Not `fold.place`: when a laggard is cut, its fold may hold more than what it was cut for, and that may cancel out. It is not
  // empty: folds forget only where no watch tells its place.
  queue.resumeAt(fold.first as number);
  queue.lose(fold.clear());
}

/** The options of one cursor. */
export interface CursorOptions<E> {
  readonly capacity: number;
  readonly policy: Policy;
  readonly filter: ((event: E) => boolean) | undefined;
  readonly onGap: ((missed: number) => void) | undefined;
  readonly name?: string | undefined;
}

/** The policy of each name. */
export const POLICIES: Readonly<Record<Overflow, Policy>> = {
  wait: new Wait(),
  'drop-newest': new Policy(), // a full queue keeps what it has; events that do not fit are lost, and counted
  'drop-oldest': new DropOldest(),
  disconnect: new Disconnect(),
  coalesce: new Coalesce(),
};
