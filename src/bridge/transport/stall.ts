import type { Served } from '../hub/connection.ts';
import { type SharedTimer, TICKS, type TimerMember } from './shared-timer.ts';

/** The outbound side of a connection: the numbers of its socket. */
export interface Outbound {
  /** Bytes that wait in this process, including those being written. */
  readonly writableLength: number;
  /**
   * Bytes ever written, including those that wait. Unknown for a stream that is not a socket; the session's count is then used.
   */
  readonly bytesWritten?: number | undefined;
  /** What is left of the current write. Node's own socket timer reads this, because no public property has it. */
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
 * outbound progress counts. A socket's timeout restarts with every byte that comes in, so a client that sends and does not read
 * could stay for ever.
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

/** Guards a session for as long as it lasts. Without a timer, it does nothing. */
export function guardStalls(session: Served, outbound: Outbound, timer: SharedTimer | undefined): void {
  if (timer === undefined) return;
  session.whenOver(new StallGuard(session, outbound, timer));
}

/** Whether this is Bun, which behaves differently from Node in places. */
export const IN_BUN: boolean = 'Bun' in globalThis;
