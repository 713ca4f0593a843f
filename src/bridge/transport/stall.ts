import type { Clock } from '../../watch/clock.ts';
import type { Served } from '../hub/connection.ts';

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

/** The outbound side of a connection: the numbers of its socket. */
export interface Outbound {
  /** Bytes that wait in this process, including those being written. */
  readonly writableLength: number;
  /**
   * Bytes ever written, including those that wait. Unknown for a stream that is not a socket; the session's count is then used.
   */
  readonly bytesWritten?: number | undefined;
  /** What is left of the current write. No public property has it; Node's own socket timer reads this one, too. */
  readonly _handle?: { readonly writeQueueSize?: number } | null;
}

/**
 * Describes the progress of the bytes that wait in a connection: an equal result means that none was sent in between. Undefined
 * if no bytes wait.
 */
export function progressOf(
  { writableLength, bytesWritten, _handle }: Outbound,
  session: Pick<Served, 'sentBytes'>,
): string | undefined {
  if (writableLength === 0) return undefined;
  return `${(bytesWritten ?? session.sentBytes) - writableLength} ${_handle?.writeQueueSize}`;
}

/** What is guarded: a session, or an answer. */
interface Guarded {
  readonly sentBytes: number;
  cut(reason: 'stalled'): unknown;
}

/**
 * Cuts a client that takes nothing for one interval of its timer while bytes wait for it; at the latest a quarter later. Only
 * outbound progress counts. A socket's timeout restarts with every byte that comes in, so a client that sends but does not read
 * could stay forever.
 */
export class StallGuard implements TimerMember {
  private readonly session: Guarded;
  private readonly outbound: Outbound;
  private readonly timer: SharedTimer | undefined;
  private progress: string | undefined = undefined;
  private still: number = 0;

  /** Without a timer, its owner ticks. */
  constructor(session: Guarded, outbound: Outbound, timer?: SharedTimer) {
    this.session = session;
    this.outbound = outbound;
    this.timer = timer;
    timer?.add(this);
  }

  leave(): void {
    this.timer?.remove(this);
  }

  tick(): void {
    const before = this.progress;
    this.progress = progressOf(this.outbound, this.session);
    this.still = this.progress !== undefined && this.progress === before ? this.still + 1 : 0;
    if (this.still === TICKS) this.session.cut('stalled');
  }
}

/** Guards a session until it ends. Without a timer, it does nothing. */
export function guardStalls(session: Served, outbound: Outbound, timer: SharedTimer | undefined): void {
  if (timer === undefined) return;
  session.whenOver(new StallGuard(session, outbound, timer));
}

/** Whether this is Bun, which behaves differently from Node in places. */
export const IN_BUN: boolean = 'Bun' in globalThis;

/** Whether this is Cloudflare's runtime. */
export const IN_WORKERS: boolean = globalThis.navigator?.userAgent === 'Cloudflare-Workers';
