import { Policy } from './policy.ts';

/**
 * `wait`: the event is held back until every full queue of this policy has room, and so is its publisher (see watchers/gate.ts).
 * So it never refuses an event, unless a shutdown has given up on it.
 */
export class Wait extends Policy {
  override readonly holdsPublisher: boolean = true;
}
