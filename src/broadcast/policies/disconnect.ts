import { Policy, type PolicyQueue } from './policy.ts';

/** `disconnect`: an event that does not fit cuts the watch. It delivers its queue, then one ERROR, and takes no further event. */
export class Disconnect extends Policy {
  override refuse<E>(queue: PolicyQueue<E>, count: number): void {
    super.refuse(queue, count);
    queue.own.cut = true;
    queue.resumeAt(queue.own.place);
  }
}
