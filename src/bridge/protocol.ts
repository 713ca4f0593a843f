/**
 * The words that both ends of the wire share: paths, media types, close codes, limits. PROTOCOL.md says the same in prose;
 * where the two differ, one of them is wrong.
 */

/** Where a server offers its watch, unless its owner chose another path. */
export const WATCH_PATH = '/watch';
/** Where `watchmux pipe` tells its numbers. */
export const STATS_PATH = '/stats';

/** Media type of the HTTP stream: one JSON event per line. */
export const JSON_LINES = 'application/json';
/** Media type of Server-Sent Events; a client that accepts it gets them. */
export const EVENT_STREAM = 'text/event-stream';

/** How the server ends a WebSocket. Codes from 4000 on are ours, 4000 + the HTTP status that says the same. */
export const CLOSE_CODES = {
  /** The source has ended and the client has got all of its queue. */
  complete: 1000,
  /** The server shuts down and does not wait for this client any longer. */
  goingAway: 1001,
  /** A message from the client was longer than `maxInboundBytes`. */
  tooLarge: 1009,
  /** The watch failed on the server's side. */
  failed: 1011,
  /** The client was too slow: its last message is an ERROR event with a Status of code 410. */
  expired: 4410,
} as const;

/** How a stream ends: one of the reasons for which the server ends one. */
export type Ending = 'complete' | 'expired' | 'failed';

/** What holds unless an option says otherwise. */
export const DEFAULTS = {
  /** Events queued per client before its overflow policy decides. */
  capacity: 100,
  /** Clients served at the same time. */
  maxClients: 10_000,
  /** Bytes handed to a client's connection and not yet taken by the network, before its session stops reading its watch. */
  maxBufferedBytes: 1_048_576,
  /** A client that takes nothing for so long, while bytes wait for it, is cut. */
  stallTimeoutMs: 30_000,
  /** WebSocket pings; a client that did not answer one by the next is cut. */
  heartbeatMs: 30_000,
  /** Longest WebSocket message that a client may send. What it says is ignored: a watch has nothing to ask. */
  maxInboundBytes: 1_024,
} as const;

/**
 * The version of an event on the wire: `<epoch>.<sequence>`. Opaque to clients. The epoch names one life of the server, so
 * that a version from before a restart is never taken for one of now.
 */
export function toVersion(epoch: string, sequence: number): string {
  return `${epoch}.${sequence}`;
}

/** A new epoch: short, random, safe in headers and URLs. */
export function newEpoch(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
