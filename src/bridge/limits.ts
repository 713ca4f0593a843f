import type { Clock } from '../watch/clock.ts';
import { systemClock } from '../watch/clock.ts';
import { wholeNumber } from '../watch/errors.ts';
import { DEFAULTS } from './protocol.ts';

/** Limits per connection, of every transport. */
export interface ConnectionOptions {
  /** Bytes that may wait in a connection before its client's queue fills up instead; default 1 MiB. A slice of 256 KiB, or one event, more may be on its way. */
  maxBufferedBytes?: number | undefined;
  /**
   * A client that takes nothing for so long while bytes wait for it is cut, up to a quarter later; default 30,000. 0: never. What it
   * takes shows only when the system's own buffer takes more from us: where that has grown to megabytes, one that reads less than
   * about a third of it in that time looks as if it took nothing.
   */
  stallTimeoutMs?: number | undefined;
  /** A client that `authenticate` and `watchOptions` have not let in by then is refused; default 10,000. */
  handshakeTimeoutMs?: number | undefined;
  /** Longest query; default 2,048. Headers as a whole are limited by the HTTP server: node:http's `maxHeaderSize`. */
  maxQueryBytes?: number | undefined;
  /** The time by which clients are cut, and hearts beat. */
  clock?: Clock | undefined;
}

/** The limits of a connection, all of them said. */
export type Limits = { readonly [K in keyof ConnectionOptions]-?: Exclude<ConnectionOptions[K], undefined> };

/** Fills in the limits of a connection and refuses nonsense. */
export function toLimits(options: ConnectionOptions): Limits {
  const count = (name: 'maxBufferedBytes' | 'stallTimeoutMs' | 'handshakeTimeoutMs' | 'maxQueryBytes', min: number): number =>
    wholeNumber(name, options[name] ?? DEFAULTS[name], min);
  return {
    maxBufferedBytes: count('maxBufferedBytes', 1),
    stallTimeoutMs: count('stallTimeoutMs', 0),
    handshakeTimeoutMs: count('handshakeTimeoutMs', 1),
    maxQueryBytes: count('maxQueryBytes', 0),
    clock: options.clock ?? systemClock,
  };
}
