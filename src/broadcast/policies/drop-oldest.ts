import { Policy, type PolicyQueue } from './policy.ts';

/**
 * `drop-oldest`: an event that does not fit takes the place of the oldest one in the queue.
 *
 * The queue of a laggard is always the last `capacity` events of the log. So a laggard leaves the log like any other, and lets the
 * log retain that many events.
 */
export class DropOldest extends Policy {
  override readonly keepsLatest: boolean = true;

  override offer<E>(queue: PolicyQueue<E>, event: E): void {
    if (queue.room <= 0) {
      if (queue.options.capacity === 0) {
        this.refuse(queue, 1);
        return;
      }
      const { own } = queue;
      own.lost++;
      // Drops the oldest event that no pending read has a claim on.
      own.missed += own.kept.drop(queue.claims);
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
