import type { ConnectionOptions } from './limits.ts';
import type { Session } from './session.ts';

/** What is looked at of a connection: a socket's numbers, all of its outbound side. */
export interface Outbound {
  /** Bytes that wait in this process, those that are being written among them. */
  readonly writableLength: number;
  /** Bytes ever written, the waiting ones included. Not known of a stream that is no socket, which therefore is never cut. */
  readonly bytesWritten?: number;
  /** What is left of the write that is under way. Node's own socket timer looks there, as nothing public tells. */
  readonly _handle?: { readonly writeQueueSize?: number } | null;
}

/** So many looks in one `stallTimeoutMs`: a client is cut no sooner than that, and a quarter later at most. */
const LOOKS = 4;

/**
 * Cuts a client that takes nothing for `stallTimeoutMs` while bytes wait for it. Only what goes out counts: a socket's timeout
 * would start anew with every byte that comes in, so that a client which talks and does not listen could stay for good.
 */
export function cutWhenStalled(session: Session, outbound: Outbound, limits: Required<ConnectionOptions>): void {
  const { stallTimeoutMs, clock } = limits;
  if (stallTimeoutMs === 0) return;
  // NaN where nothing waits or nothing is known: it equals nothing, not even itself.
  let taken = Number.NaN;
  let left: number | undefined;
  let still = 0;
  const look = (): void => {
    const before = { taken, left };
    const { writableLength, bytesWritten = Number.NaN } = outbound;
    taken = writableLength === 0 ? Number.NaN : bytesWritten - writableLength;
    left = outbound._handle?.writeQueueSize;
    still = taken === before.taken && left === before.left ? still + 1 : 0;
    if (still === LOOKS) session.cut();
    else cancel = clock.schedule(stallTimeoutMs / LOOKS, look);
  };
  let cancel = clock.schedule(stallTimeoutMs / LOOKS, look);
  void session.done.then(() => cancel());
}
