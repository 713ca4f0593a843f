import type { Place } from '../cursor/place.ts';

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
  offer<E>(queue: Place<E>, event: E): void {
    if (queue.extra.cut || queue.room <= 0) this.refuse(queue, 1);
    else queue.keep(event);
  }

  /** This many events do not fit. */
  refuse<E>(queue: Place<E>, count: number): void {
    queue.lose(count);
  }

  /** How many events from `position` on a watcher without a filter can take before `lag` has something to do. */
  roomOf<E>(queue: Place<E>): number {
    return queue.room;
  }

  /** A watcher is a whole queue behind: decides on the events since it was last looked at. */
  settleLaggard<E>(queue: Place<E>): void {
    queue.settle();
  }

  /** Whether a full laggard may leave the log until it is read. */
  mayWithdraw<E>(_queue: Place<E>): boolean {
    return true;
  }

  /** Called before a laggard leaves the log: claims what it still needs. */
  withdraw<E>(_queue: Place<E>): void {}

  /** Called before it stands again: decides on all events since then. Returns an error of user code that ends the watch. */
  catchUp<E>(queue: Place<E>): { readonly error?: unknown } | undefined {
    queue.pass(queue.ahead);
    return undefined;
  }

  /** Called when it stands again: gives back what `withdraw` has claimed. */
  caughtUp<E>(_queue: Place<E>): void {}
}
