import type { Clock } from '../../watch/clock.ts';

/** A member of a {@link Pulse}. */
export interface Pulsed {
  beat(): void;
}

/** Beats per interval. A member counts its own interval in beats, exact to a quarter of the interval. */
export const BEATS = 4;

/** One timer for any number of connections. It runs only while there are members. */
export class Pulse {
  private readonly members: Set<Pulsed> = new Set();
  private cancel: (() => void) | undefined = undefined;
  private readonly beatMs: number;
  private readonly clock: Clock;

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

/** Creates a pulse; undefined if the interval is 0. */
export function toPulse(intervalMs: number, clock: Clock): Pulse | undefined {
  return intervalMs === 0 ? undefined : new Pulse(intervalMs, clock);
}
