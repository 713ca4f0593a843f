import { type Clock, systemClock } from '../watch/clock.ts';
import { nextTurn } from '../watch/turn.ts';

/** How long workers may go on before everything else has its turn, in ms. */
const STRETCH_MS = 10;

/**
 * Gives the event loop its turn between keys. Work that waits for nothing outside, such as a controller on a server in its process,
 * goes on in promises alone, and a key that is added again at once never ends: no timer, no signal and no probe would be served.
 * All workers of a run wait together; each for itself, one of them would always go on.
 */
export class Pace {
  #sinceMs: number = performance.now();
  #turn: Promise<void> | undefined;

  /** What a worker has to wait for before its next key; undefined for nothing. */
  wait(): Promise<void> | undefined {
    if (this.#turn || performance.now() - this.#sinceMs < STRETCH_MS) return this.#turn;
    this.#turn = new Promise((resolve) => {
      nextTurn(() => {
        this.#turn = undefined;
        this.#sinceMs = performance.now();
        resolve();
      });
    });
    return this.#turn;
  }
}

/** Undefined for a clock of somebody's own: who says what time it is says when something happens, too. */
export function toPace(clock: Clock): Pace | undefined {
  return clock === systemClock ? new Pace() : undefined;
}
