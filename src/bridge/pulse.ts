import type { Clock } from '../watch/clock.ts';

/** Someone to be looked after now and then. */
export interface Pulsed {
  beat(): void;
}

/** So many beats in one interval: who joins is looked at by its own phase, give or take a quarter. */
export const BEATS = 4;

/** One timer for any number of connections. It runs while there are any. */
export class Pulse {
  private readonly members: Set<Pulsed> = new Set();
  private cancel: (() => void) | undefined = undefined;
  private readonly beatMs: number;
  private readonly clock: Clock;

  /** Beats {@link BEATS} times per interval. */
  constructor(intervalMs: number, clock: Clock) {
    this.beatMs = intervalMs / BEATS;
    this.clock = clock;
  }

  add(member: Pulsed): void {
    this.members.add(member);
    if (this.members.size === 1) this.schedule();
  }

  remove(member: Pulsed): void {
    if (!this.members.delete(member) || this.members.size > 0) return;
    this.cancel?.();
    this.cancel = undefined;
  }

  private schedule(): void {
    this.cancel = this.clock.schedule(this.beatMs, () => {
      this.cancel = undefined;
      for (const member of this.members) member.beat();
      if (this.members.size > 0 && this.cancel === undefined) this.schedule();
    });
  }
}

/** A pulse of its own for one place; none where the interval is 0. */
export function toPulse(intervalMs: number, clock: Clock): Pulse | undefined {
  return intervalMs === 0 ? undefined : new Pulse(intervalMs, clock);
}
