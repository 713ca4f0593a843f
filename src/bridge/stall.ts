import type { Pulse, Pulsed } from './pulse.ts';
import { BEATS } from './pulse.ts';
import type { Served } from './sink.ts';

/** What is looked at of a connection: a socket's numbers, all of its outbound side. */
export interface Outbound {
  /** Bytes that wait in this process, those that are being written among them. */
  readonly writableLength: number;
  /** Bytes ever written, the waiting ones included. Not known of a stream that is no socket: then it is taken from the session. */
  readonly bytesWritten?: number | undefined;
  /** What is left of the write that is under way. Node's own socket timer looks there, as nothing public tells. */
  readonly _handle?: { readonly writeQueueSize?: number } | null;
}

/**
 * How far a connection has come with what waits in it: the same words twice mean that nothing was taken in between. Undefined
 * where nothing waits.
 */
export function progressOf({ writableLength, bytesWritten, _handle }: Outbound, session: Served): string | undefined {
  if (writableLength === 0) return undefined;
  return `${(bytesWritten ?? session.sentBytes) - writableLength} ${_handle?.writeQueueSize}`;
}

/**
 * Cuts a client that takes nothing for a pulse's interval while bytes wait for it: no sooner than that, and a quarter later at
 * most. Only what goes out counts: a socket's timeout would start anew with every byte that comes in, so that a client which
 * talks and does not listen could stay for good.
 */
class StallGuard implements Pulsed {
  private readonly session: Served;
  private readonly outbound: Outbound;
  private readonly pulse: Pulse;
  private progress: string | undefined = undefined;
  private still: number = 0;

  constructor(session: Served, outbound: Outbound, pulse: Pulse) {
    this.session = session;
    this.outbound = outbound;
    this.pulse = pulse;
    pulse.add(this);
  }

  leave(): void {
    this.pulse.remove(this);
  }

  beat(): void {
    const before = this.progress;
    this.progress = progressOf(this.outbound, this.session);
    this.still = this.progress !== undefined && this.progress === before ? this.still + 1 : 0;
    if (this.still === BEATS) this.session.cut('stalled');
  }
}

/** Guards a session for as long as it lasts. Without a pulse, nobody is ever cut. */
export function guardStalls(session: Served, outbound: Outbound, pulse: Pulse | undefined): void {
  if (pulse === undefined) return;
  session.whenOver(new StallGuard(session, outbound, pulse));
}
