/**
 * The vocabulary shared by both ends of the wire: paths, media types, queries, versions, bookmarks, close codes, limits.
 * PROTOCOL.md describes the same in prose; where the two differ, one of them is wrong.
 */

import { checkOptions } from '../watch/errors.ts';
import { type Bookmark, INITIAL_EVENTS_END, type WatchEvent } from '../watch/event.ts';

export { type Bookmark, type BookmarkEvent, INITIAL_EVENTS_END, isInitialEventsEnd } from '../watch/event.ts';

/** The default path of a server's watch. */
export const WATCH_PATH = '/watch';
/** The path at which `watchmux pipe` serves its numbers. */
export const STATS_PATH = '/stats';

/** Media type of the HTTP stream: one JSON event per line. */
export const JSON_LINES = 'application/json';
/** Media type of Server-Sent Events, which a client gets if it accepts them. */
export const EVENT_STREAM = 'text/event-stream';
/**
 * The header in which an EventSource sends the last version it saw. It overrides the query, because an EventSource repeats its
 * URL.
 */
export const LAST_EVENT_ID = 'last-event-id';

/** The subprotocol that a WebSocket client offers beside its token, for the server to accept: it never accepts the token. */
export const SUBPROTOCOL = 'watchmux';
/**
 * The prefix of a subprotocol that carries a token, in base64url, because pages cannot set a WebSocket's headers. Upstream:
 * `websocketauth`, so Kubernetes' servers understand it, too.
 */
export const BEARER_SUBPROTOCOL = 'base64url.bearer.authorization.k8s.io.';

/**
 * An event as it is on the wire, with its members in this order. Events of the stream have a `resourceVersion`. The ADDED events
 * of a snapshot and an ERROR that the server creates for one client have none.
 */
export interface WireEvent<Type extends string = string, Obj = unknown> extends WatchEvent<Type, Obj> {
  readonly resourceVersion?: string;
}

/** The query parameters of a request. Unknown ones are ignored. */
export const PARAMETERS = {
  /** Continue after this version. Empty and `0` mean no version. */
  resourceVersion: 'resourceVersion',
  /** `true`: send BOOKMARK events now and then, so that the version stays current while nothing happens. */
  allowWatchBookmarks: 'allowWatchBookmarks',
  /** The server ends the stream regularly after this many seconds. */
  timeoutSeconds: 'timeoutSeconds',
  /** `true`: send the snapshot first, even with a version. `false`: send no snapshot, even without a version. */
  sendInitialEvents: 'sendInitialEvents',
} as const;

/** The parsed parameters of a request. */
export interface WatchQuery {
  readonly resourceVersion?: string | undefined;
  readonly allowWatchBookmarks?: boolean | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly sendInitialEvents?: boolean | undefined;
}

/**
 * The codes with which the server closes a WebSocket. Codes from 4000 on are this protocol's own: 4000 + the matching HTTP
 * status.
 */
export const CLOSE_CODES = {
  /** The source ended and the client got its whole queue. */
  complete: 1000,
  /** The client's `timeoutSeconds` have passed. */
  timeout: 1000,
  /** The server is going away, or no longer waits for this client; see {@link toRetryReason}. */
  goingAway: 1001,
  /** The client sent more in one second than `maxInboundMessagesPerSecond` or `maxInboundBytesPerSecond` allow. */
  flooding: 1008,
  /** The client sent a message longer than `maxInboundBytes`. */
  tooLarge: 1009,
  /** The watch failed on the server. */
  failed: 1011,
  /** The request was invalid. The last message is an ERROR event with a Status of code 400. */
  badRequest: 4400,
  /** The version is too old, or the client too slow. The last message is an ERROR event with a Status of code 410. */
  expired: 4410,
} as const;

/** Why the server ends a stream. */
export type Ending = keyof typeof CLOSE_CODES & ('complete' | 'timeout' | 'goingAway' | 'failed' | 'badRequest' | 'expired');

/** The close reasons, except that of `goingAway`, which {@link toRetryReason} creates. */
export const CLOSE_REASONS: Readonly<Record<Exclude<Ending, 'goingAway'> | 'flooding', string>> = {
  complete: 'complete',
  timeout: 'timeout',
  failed: 'failed',
  badRequest: 'bad request',
  expired: 'expired',
  flooding: 'flooding',
};

/** Creates the close reason with which a departing server tells a client when to reconnect: `retry=<milliseconds>`. */
export function toRetryReason(delayMs: number): string {
  return `retry=${delayMs}`;
}

/** Returns the milliseconds in a close reason, or undefined if it has none. */
export function fromRetryReason(reason: string): number | undefined {
  const digits = /^retry=([0-9]{1,9})$/.exec(reason)?.[1];
  return digits ? +digits : undefined;
}

/** The annotation of a BOOKMARK with the interval at which more of them follow, in milliseconds. Without it: 30 s. */
export const BOOKMARK_INTERVAL = 'watchmux/bookmark-interval-ms';
/** The annotation of the last BOOKMARK of a departing server: after how many milliseconds this client should reconnect. */
export const RETRY_AFTER = 'watchmux/retry-after-ms';

/** What a BOOKMARK says in addition to its version. */
export interface BookmarkOptions {
  /** It ends the snapshot. */
  initialEventsEnd?: boolean | undefined;
  /** The interval at which more of them follow; default `DEFAULTS.bookmarkIntervalMs`. */
  intervalMs?: number | undefined;
  /** The server is going away, and this client should reconnect after this time. */
  retryAfterMs?: number | undefined;
}

const BOOKMARK_OPTIONS = ['initialEventsEnd', 'intervalMs', 'retryAfterMs'] as const;

/** Creates a BOOKMARK: all events up to this version have been sent. */
export function toBookmark(version: string, options: BookmarkOptions = {}): WireEvent<'BOOKMARK', Bookmark> {
  const { initialEventsEnd, intervalMs = DEFAULTS.bookmarkIntervalMs, retryAfterMs } = checkOptions(options, BOOKMARK_OPTIONS);
  const annotations = {
    ...(initialEventsEnd === true ? { [INITIAL_EVENTS_END]: 'true' } : {}),
    ...(intervalMs === DEFAULTS.bookmarkIntervalMs ? {} : { [BOOKMARK_INTERVAL]: String(intervalMs) }),
    ...(retryAfterMs === undefined ? {} : { [RETRY_AFTER]: String(retryAfterMs) }),
  };
  const metadata = { resourceVersion: version, ...(Object.keys(annotations).length > 0 ? { annotations } : {}) };
  return { type: 'BOOKMARK', object: { metadata }, resourceVersion: version };
}

/** Returns the milliseconds in an annotation of a BOOKMARK; undefined if it is missing or not a whole number. */
export function fromAnnotation(bookmark: Partial<Bookmark>, name: string): number | undefined {
  const text: unknown = bookmark.metadata?.annotations?.[name];
  return typeof text === 'string' && /^[0-9]{1,15}$/.test(text) ? +text : undefined;
}

/** The default limits. */
export const DEFAULTS = {
  /** Events queued per client before its overflow policy applies. */
  capacity: 100,
  /** The longest event. A little less than the 16 MiB that clients accept, because it may get a version, or another type. */
  maxEventBytes: 16_000_000,
  /** Bytes of events queued per client. */
  maxQueuedBytes: 67_108_864,
  /** Clients served at the same time: in total, and from one address. */
  maxClients: 10_000,
  maxClientsPerAddress: 1_000,
  /** Bytes written to a client's connection and not yet sent, before its session stops reading its watch. */
  maxBufferedBytes: 1_048_576,
  /** A client that takes nothing for this long, while bytes wait for it, is cut. */
  stallTimeoutMs: 30_000,
  /** Interval of WebSocket pings. A client that has not answered one by the next is cut. */
  heartbeatMs: 30_000,
  /** A request that `authenticate` and the other hooks have not admitted by then is refused. */
  handshakeTimeoutMs: 10_000,
  /** Longest WebSocket message a client may send. Its content is ignored, because a watch takes no requests. */
  maxInboundBytes: 1_024,
  /** What a WebSocket client may send within one second, control frames included. */
  maxInboundMessagesPerSecond: 100,
  maxInboundBytesPerSecond: 65_536,
  /** Longest query, and longest value of a parameter. */
  maxQueryBytes: 2_048,
  maxParameterChars: 256,
  /** Events kept for clients that resume: their number, and their total size. */
  replayItems: 1_000,
  replayBytes: 8_388_608,
  /**
   * Interval between two BOOKMARK events of a client that asked for them; part of the protocol, see PROTOCOL.md. Most proxies
   * close a connection that is silent for a minute.
   */
  bookmarkIntervalMs: 30_000,
  /** How long an EventSource is told to wait before it reconnects. */
  retryMs: 2_000,
  /** Snapshots read at the same time. */
  maxSnapshots: 4,
  /** Time until a snapshot's next object. Longer than a slow query takes. */
  snapshotTimeoutMs: 60_000,
} as const;

/**
 * Creates the version of an event on the wire: `<epoch>.<sequence>`. `<epoch>.0` is before the first event. Opaque to clients.
 * The epoch identifies one lifetime of the server, so a version from before a restart is never mistaken for a current one.
 */
export function toVersion(epoch: string, sequence: number): string {
  return `${epoch}.${sequence}`;
}

/** Creates a new epoch: short, random, and safe in headers and URLs. */
export function newEpoch(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
