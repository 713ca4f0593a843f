import type { Clock } from '../watch/clock.ts';
import { systemClock } from '../watch/clock.ts';
import { wholeNumber } from '../watch/errors.ts';
import { DEFAULTS } from './protocol.ts';

/** Limits per connection, of every transport. */
export interface ConnectionOptions {
  /** Bytes that may wait in a connection before its client's queue fills up instead; default 1 MiB. */
  maxBufferedBytes?: number;
  /** A client that takes nothing for so long while bytes wait for it is cut, up to a quarter later; default 30,000. 0: never. */
  stallTimeoutMs?: number;
  /** The time by which clients are cut, and hearts beat. */
  clock?: Clock;
}

/** Fills in the limits of a connection and refuses nonsense. */
export function toLimits(options: ConnectionOptions): Required<ConnectionOptions> {
  const { maxBufferedBytes = DEFAULTS.maxBufferedBytes, stallTimeoutMs = DEFAULTS.stallTimeoutMs, clock = systemClock } = options;
  wholeNumber('maxBufferedBytes', maxBufferedBytes, 1);
  wholeNumber('stallTimeoutMs', stallTimeoutMs);
  return { maxBufferedBytes, stallTimeoutMs, clock };
}
