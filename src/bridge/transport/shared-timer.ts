import type { Clock } from '../../watch/clock.ts';

/** A member of a {@link SharedTimer}. */
export interface TimerMember {
  tick(): void;
}

/** Ticks per interval. A member counts its own interval in ticks, exact to a quarter of the interval. */
export const TICKS = 4;

/** One timer for any number of connections. It runs only while there are members. */
export class SharedTimer {
  private readonly members: Set<TimerMember> = new Set();
  private cancel: (() => void) | undefined = undefined;
  private readonly tickMs: number;
  private readonly clock: Clock;

  constructor(intervalMs: number, clock: Clock) {
    this.tickMs = intervalMs / TICKS;
    this.clock = clock;
  }

  add(member: TimerMember): void {
    this.members.add(member);
    if (this.members.size === 1) this.schedule();
  }

  remove(member: TimerMember): void {
    if (!this.members.delete(member) || this.members.size > 0) return;
    this.cancel?.();
    this.cancel = undefined;
  }

  private schedule(): void {
    this.cancel = this.clock.schedule(this.tickMs, () => {
      this.cancel = undefined;
      for (const member of this.members) member.tick();
      if (this.members.size > 0 && this.cancel === undefined) this.schedule();
    });
  }
}

/** Creates a shared timer; undefined if the interval is 0. */
export function toSharedTimer(intervalMs: number, clock: Clock): SharedTimer | undefined {
  return intervalMs === 0 ? undefined : new SharedTimer(intervalMs, clock);
}
