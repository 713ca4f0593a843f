import type { Clock } from '../../../watch/clock.ts';
import { systemClock } from '../../../watch/clock.ts';
import { wholeNumber } from '../../../watch/errors.ts';
import { DEFAULTS } from '../../protocol.ts';

/** Limits per connection, common to all transports. */
export interface ConnectionOptions {
  /**
   * Bytes that may wait in a connection before its client's queue fills instead; default 1 MiB. One more slice of 256 KiB, or one
   * larger event, may be on its way.
   */
  maxBufferedBytes?: number | undefined;
  /**
   * How long a client may take nothing while bytes wait for it, in milliseconds; then it is cut, at most a quarter of that time
   * later. Default 30,000; 0 means never. Progress is visible only when the operating system's buffer takes more bytes. If that
   * buffer has grown to megabytes, a client that reads less than about a third of it in this time appears to take nothing.
   */
  stallTimeoutMs?: number | undefined;
  /** How long `authenticate` and `watchOptions` may take before a client is refused, in milliseconds; default 10,000. */
  handshakeTimeoutMs?: number | undefined;
  /** Longest query, in bytes; default 2,048. The HTTP server limits headers as a whole: `maxHeaderSize` in node:http. */
  maxQueryBytes?: number | undefined;
  /** The clock for timeouts and heartbeats. */
  clock?: Clock | undefined;
}

/** The names of all options in {@link ConnectionOptions}. */
export const CONNECTION_OPTIONS: readonly (keyof ConnectionOptions)[] = [
  ...(['maxBufferedBytes', 'stallTimeoutMs', 'handshakeTimeoutMs', 'maxQueryBytes', 'clock'] as const),
];

/** The limits of a connection with all defaults filled in. */
export type Limits = { readonly [K in keyof ConnectionOptions]-?: Exclude<ConnectionOptions[K], undefined> };

/** Fills in defaults. Throws INVALID_ARGUMENT for an invalid limit. */
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
