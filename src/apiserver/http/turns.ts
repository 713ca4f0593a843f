/**
 * Joins what is sent to a watcher in one turn of the event loop. A single change is sent at once; those that follow in the same
 * turn, such as the writes of many clients, are one batch and one write to each connection.
 *
 *     change --> write --> [ change, change, change ] --> next turn: one write --> [ ... ] --> next turn
 */
import { nextTurn } from '../../watch/turn.ts';

/** Something that waits for the next turn. */
export interface Waits {
  turned(): void;
}

/** Everything that waits for the next turn, which is requested once. */
export class Turns {
  private waiting: Waits[] = [];

  wait(one: Waits): void {
    if (this.waiting.push(one) === 1) nextTurn(() => this.pass());
  }

  private pass(): void {
    const { waiting } = this;
    this.waiting = [];
    for (const one of waiting) one.turned();
  }
}
