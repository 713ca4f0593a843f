import type { Extra } from '../cursor/extra.ts';
import type { EventLog } from '../log/log.ts';
import type { FoldChain } from './fold-chain.ts';

/** A watcher's queue, as its policy sees it; see cursor/queue.ts and cursor/place.ts. */
export interface PolicyQueue<E> {
  readonly options: { readonly capacity: number };
  readonly view: { readonly log: EventLog<E>; readonly chain: FoldChain<E> };
  /** What it has besides its position: to look at, and to modify. */
  readonly extra: Extra<E>;
  readonly own: Extra<E>;
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
 * What is special about one overflow policy. Each policy is one file with one subclass, and one object that all its watchers
 * share; what belongs to a watcher is in its cursor. The engine compares no names of policies: it asks these methods.
 *
 *     an event is to be queued ---- offer ---> it fits: queue.keep     it does not: refuse, or what the policy does instead
 *     a laggard is due ------------ settleLaggard, then mayWithdraw ---> withdraw ... (it is read) ... catchUp, caughtUp
 *
 * This class is what most policies do: a full queue keeps what it has, and the events that do not fit are lost and counted. To add
 * a policy, add its name in watch/overflow.ts; the compiler then names every place that has to decide.
 */
export class Policy {
  /** Whether a full queue holds back the publisher, and with it every other watcher. */
  readonly holdsPublisher: boolean = false;
  /** Whether a full queue changes with every further event. */
  readonly keepsLatest: boolean = false;
  /** Whether every event is examined before it counts as queued, because the queue is not a list of events. */
  readonly folds: boolean = false;

  /** An event has reached a watcher that wants it. Runs while its queue is being decided on. */
  offer<E>(queue: PolicyQueue<E>, event: E): void {
    if (queue.extra.cut || queue.room <= 0) this.refuse(queue, 1);
    else queue.keep(event);
  }

  /** This many events do not fit. */
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
