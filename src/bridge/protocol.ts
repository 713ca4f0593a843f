/**
 * The words that both ends of the wire share: paths, media types, queries, versions, bookmarks, close codes, limits.
 * PROTOCOL.md says the same in prose; where the two differ, one of them is wrong.
 */
import { INITIAL_EVENTS_END, type WatchEvent } from '../watch/event.ts';

export { INITIAL_EVENTS_END, isInitialEventsEnd } from '../watch/event.ts';

/** Where a server offers its watch, unless its owner chose another path. */
export const WATCH_PATH = '/watch';
/** Where `watchmux pipe` tells its numbers. */
export const STATS_PATH = '/stats';

/** Media type of the HTTP stream: one JSON event per line. */
export const JSON_LINES = 'application/json';
/** Media type of Server-Sent Events; a client that accepts it gets them. */
export const EVENT_STREAM = 'text/event-stream';
/** Where an EventSource says which version it saw last. It wins over the query, as an EventSource repeats its URL. */
export const LAST_EVENT_ID = 'last-event-id';

/**
 * An event as it stands on the wire, its members in this order. What has a place in the stream has a `resourceVersion`; the
 * ADDED events of a snapshot and an ERROR that the server makes for one client have none.
 */
export interface WireEvent<Type extends string = string, Obj = unknown> extends WatchEvent<Type, Obj> {
  readonly resourceVersion?: string;
}

/** The parameters of a request, as they are spelled in its query. Unknown ones are ignored. */
export const PARAMETERS = {
  /** Go on after this version. Empty or `0`: as if it were not there. */
  resourceVersion: 'resourceVersion',
  /** `true`: BOOKMARK events now and then, so that the version stays fresh while nothing happens. */
  allowWatchBookmarks: 'allowWatchBookmarks',
  /** The server ends the stream in order after so many seconds. */
  timeoutSeconds: 'timeoutSeconds',
  /** `true`: the snapshot first, even with a version; `false`: no snapshot, even without one. */
  sendInitialEvents: 'sendInitialEvents',
} as const;

/** What a client asks for. */
export interface WatchQuery {
  readonly resourceVersion?: string | undefined;
  readonly allowWatchBookmarks?: boolean | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly sendInitialEvents?: boolean | undefined;
}

/** How the server ends a WebSocket. Codes from 4000 on are ours, 4000 + the HTTP status that says the same. */
export const CLOSE_CODES = {
  /** The source has ended and the client has got all of its queue. */
  complete: 1000,
  /** The `timeoutSeconds` of the client are over. */
  timeout: 1000,
  /** The server goes away, or does not wait for this client any longer; see {@link toRetryReason}. */
  goingAway: 1001,
  /** A message from the client was longer than `maxInboundBytes`. */
  tooLarge: 1009,
  /** The watch failed on the server's side. */
  failed: 1011,
  /** The request made no sense: the last message is an ERROR event with a Status of code 400. */
  badRequest: 4400,
  /** Too old a version, or too slow a client: the last message is an ERROR event with a Status of code 410. */
  expired: 4410,
} as const;

/** How a stream ends: one of the reasons for which the server ends one. */
export type Ending = keyof typeof CLOSE_CODES & ('complete' | 'timeout' | 'goingAway' | 'failed' | 'badRequest' | 'expired');

/** The reasons that go with the close codes. That of `goingAway` is {@link toRetryReason}'s. */
export const CLOSE_REASONS: Readonly<Record<Exclude<Ending, 'goingAway'>, string>> = {
  complete: 'complete',
  timeout: 'timeout',
  failed: 'failed',
  badRequest: 'bad request',
  expired: 'expired',
};

/** The close reason by which a server that goes away says when this client should come back: `retry=<milliseconds>`. */
export function toRetryReason(delayMs: number): string {
  return `retry=${delayMs}`;
}

/** The milliseconds in a close reason, or undefined if it does not say. */
export function fromRetryReason(reason: string): number | undefined {
  const digits = /^retry=([0-9]{1,9})$/.exec(reason)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** The object of a BOOKMARK that a server makes. */
export interface Bookmark {
  readonly metadata: { readonly resourceVersion: string; readonly annotations?: Readonly<Record<string, string>> };
}

/** The event by which a server says how far its client has come. */
export type BookmarkEvent = WatchEvent<'BOOKMARK', Bookmark>;

/** A BOOKMARK: all events up to this version have been sent. With `initialEventsEnd`, also: the snapshot ends here. */
export function toBookmark(
  version: string,
  options: { initialEventsEnd?: boolean | undefined } = {},
): WireEvent<'BOOKMARK', Bookmark> {
  const annotations = options.initialEventsEnd === true ? { annotations: { [INITIAL_EVENTS_END]: 'true' } } : {};
  return { type: 'BOOKMARK', object: { metadata: { resourceVersion: version, ...annotations } }, resourceVersion: version };
}

/** What holds unless an option says otherwise. */
export const DEFAULTS = {
  /** Events queued per client before its overflow policy decides. */
  capacity: 100,
  /** Clients served at the same time, and those of one address. */
  maxClients: 10_000,
  maxClientsPerAddress: 1_000,
  /** Bytes handed to a client's connection and not yet taken by the network, before its session stops reading its watch. */
  maxBufferedBytes: 1_048_576,
  /** A client that takes nothing for so long, while bytes wait for it, is cut. */
  stallTimeoutMs: 30_000,
  /** WebSocket pings; a client that did not answer one by the next is cut. */
  heartbeatMs: 30_000,
  /** A request that `authenticate` and the like have not let in by then is refused. */
  handshakeTimeoutMs: 10_000,
  /** Longest WebSocket message that a client may send. What it says is ignored: a watch has nothing to ask. */
  maxInboundBytes: 1_024,
  /** Longest query, and longest value of a parameter in it. */
  maxQueryBytes: 2_048,
  maxParameterChars: 256,
  /** The events that are kept for those who resume: at most so many, and at most so many bytes. */
  replayItems: 1_000,
  replayBytes: 8_388_608,
  /** Between two BOOKMARK events of a client that asked for them. Most proxies end what is quiet for a minute. */
  bookmarkIntervalMs: 30_000,
  /** What an EventSource is told to wait before it connects again. */
  retryMs: 2_000,
  /** Snapshots that are read at the same time. */
  maxSnapshots: 4,
} as const;

/**
 * The version of an event on the wire: `<epoch>.<sequence>`; `<epoch>.0` is before the first event. Opaque to clients. The
 * epoch names one life of the server, so that a version from before a restart is never taken for one of now.
 */
export function toVersion(epoch: string, sequence: number): string {
  return `${epoch}.${sequence}`;
}

/** A new epoch: short, random, safe in headers and URLs. */
export function newEpoch(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
