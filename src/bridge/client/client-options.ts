import type { Codec } from '../../decode/codec.ts';
import type { Clock } from '../../watch/clock.ts';
import type { Status } from '../../watch/event.ts';
import type { Overflow } from '../../watch/overflow.ts';
import type { Watch } from '../../watch/watch.ts';
import type { ClientState, MachineOptions } from './machine.ts';
import type { FetchLike } from './stream.ts';
import type { Connection, Receiver, WebSocketConstructor } from './transport.ts';

/** All transports: the one list of them. */
export const TRANSPORTS = ['http', 'sse', 'websocket'] as const;

/** The transport; see PROTOCOL.md. */
export type ClientTransport = (typeof TRANSPORTS)[number];

/** What a function that is called before each attempt to connect gets. */
export interface Attempt {
  /** Aborts when the attempt is over: after `connectTimeoutMs`, or when the watch ends. */
  readonly signal: AbortSignal;
}

/** A value, or a function that is called for it before each attempt to connect, for example to refresh a token. */
export type PerAttempt<T> = T | ((attempt: Attempt) => T | PromiseLike<T>);

/** The delay before a new attempt: random, up to `minMs * factor ** failures`, and at most `maxMs`. */
export interface Backoff {
  /** Maximum delay after the first failure; default 500. */
  readonly minMs?: number | undefined;
  /** Maximum delay; default 5,000. A connection that lasts this long resets the count of failures. */
  readonly maxMs?: number | undefined;
  /** Growth of the delay per failure; default 2. */
  readonly factor?: number | undefined;
}

/** Options of {@link connect}. */
export interface ConnectOptions<E> {
  /** Stops the watch when it aborts. `connect` throws the signal's reason if it has already aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Resume after this version, the `resourceVersion` of an earlier watch. Default: that in the URL. Without any, the stream
   * starts now, or with the snapshot.
   */
  readonly resourceVersion?: string | undefined;
  /**
   * Overrides the URL's scheme. Default: `websocket` for `ws:` and `wss:`, `http` for `http:`, `https:` and relative URLs.
   *
   * Over HTTP/1.1, browsers open at most six connections per origin, across all tabs. A watch occupies one of them until it ends
   * or the page is left. If several pages may be open, use a `ws:` URL or a server that speaks HTTP/2. A page that the browser
   * restores from its cache reconnects and resumes.
   */
  readonly transport?: ClientTransport | undefined;
  /** Length of the queue, in events; a whole number >= 1, default 1,000. */
  readonly capacity?: number | undefined;
  /** Size of the queue, in characters of the events' texts; default 16 MiB. The last event in the queue may exceed it. */
  readonly maxBufferedBytes?: number | undefined;
  /** Maximum length of an event, in characters of its text; default 16,777,216. A longer event ends the watch with an ERROR. */
  readonly maxFrameChars?: number | undefined;
  /**
   * What happens when the reader is slower than the server.
   *
   * - `wait` (default) loses nothing. Over HTTP, and with the WebSocket of ws, the client stops reading from the network. The
   *   server then waits or cuts the client, which resumes later. Messages from a WebSocket's last network read (64 KiB) may
   *   exceed `capacity`. A browser's WebSocket cannot be paused: the client closes it, and reconnects when half of the queue is
   *   free. Events without a version, such as a snapshot's, may then exceed `capacity`, up to `maxBufferedBytes`.
   * - `drop-newest` and `drop-oldest` lose events. `dropped` counts them, and `onGap` says where.
   * - `disconnect` ends the watch with an ERROR with code 410, after the queued events. Resume with `resourceVersion`.
   *
   * There is no `coalesce`: use it on the server, where folded events cost no network traffic.
   */
  readonly overflow?: ClientOverflow | undefined;
  /**
   * Called right before the first event after a gap is delivered, with the number of lost events. If it throws, or is async and
   * rejects, the watch ends with that error.
   */
  readonly onGap?: ((missed: number) => void) | undefined;
  /** Called after every change of `state`. If it throws, or is async and rejects, the watch ends with that error. */
  readonly onStateChange?: ((state: ClientState, detail: StateDetail) => void) | undefined;
  /**
   * Headers of every request. A function is called before each attempt, together with `url`, so that it can refresh a token; if
   * it throws or rejects, that is a failed attempt like any other. Over WebSocket, only those of ws and Bun get them. With
   * headers, a redirect is not followed but ends the watch, because they are meant only for the URL's server.
   */
  readonly headers?: PerAttempt<Readonly<Record<string, string>>> | undefined;
  /**
   * A bearer token; none if empty or undefined. Over HTTP and with the WebSockets of ws and Bun, it is sent in the header
   * `authorization`; with any other WebSocket, as a subprotocol that hubs and Kubernetes' servers understand. It is never part
   * of a URL, because proxies log URLs. A function is called before each attempt, like that of `headers`.
   */
  readonly token?: PerAttempt<string | undefined> | undefined;
  /** The WebSocket constructor. Default: the host's own, which Node has from version 22 on. The package ws works everywhere. */
  readonly WebSocket?: WebSocketConstructor | undefined;
  /** The fetch function; default: the host's own. */
  readonly fetch?: FetchLike | undefined;
  /** Delay between two attempts: random, growing, and limited. A delay that the server asks for is added to it. */
  readonly backoff?: Backoff | undefined;
  /**
   * Consecutive attempts to reconnect, after which the watch ends with the last ERROR, or with 503 if the last connection ended
   * regularly; default Infinity. 0: never reconnect; then a regular end is the end of the watch.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * Time limit until the response starts (in Firefox, its body), including the time that `url` and `headers` take; default
   * 10,000. A hub starts both at once if BOOKMARKs are on.
   */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * Reconnect if nothing arrives for this long. The server must send signs of life more often: a hub sends a BOOKMARK at once,
   * and then one per `bookmarkIntervalMs`, which the BOOKMARK contains. Default: five times that interval, at least 15,000; so
   * 150,000, because the interval is 30 s by default. It applies after the server's first sign of life. 0: never.
   */
  readonly idleTimeoutMs?: number | undefined;
  /**
   * Whether to ask the server for BOOKMARKs, which keep the version current and serve as signs of life; default true. The reader
   * sees only the BOOKMARK that ends a snapshot, unless the URL has `allowWatchBookmarks=true`. Without BOOKMARKs, a quiet HTTP
   * stream looks to Firefox like a server that does not answer.
   */
  readonly bookmarks?: boolean | undefined;
  /**
   * What happens when the position in the stream is lost: the version is too old, the server has restarted, or the connection
   * broke before there was a version. `fail` (default): one ERROR with code 410, then the end. `restart`: the same ERROR, then a
   * new start without a version, which begins with the server's snapshot if it has one. ERROR events that the application
   * itself publishes are delivered like other events; they have a `resourceVersion`.
   */
  readonly onExpired?: 'fail' | 'restart' | undefined;
  /**
   * Whether to reconnect after an HTTP stream has ended regularly, because proxies end long responses; default true. The client
   * does not reconnect after a 204, which says that the stream is over, or without a version. Right after an event without a
   * version, such as one of a snapshot, an end is a lost connection, unless this is false. Over WebSocket, the close code decides.
   */
  readonly reconnectOnEnd?: boolean | undefined;
  /** Decodes frames into events; default JSON. Keep the member `resourceVersion` of each event, or the client cannot resume. */
  readonly codec?: Pick<Codec<E>, 'decode'> | undefined;
  /** Source of time, for tests. */
  readonly clock?: Clock | undefined;
  /** Source of random numbers from 0 to 1, for tests. */
  readonly random?: (() => number) | undefined;
}

/** The policies that a client also has. Folding is up to the server. */
type Has = Complete<{ wait: true; 'drop-newest': true; 'drop-oldest': true; disconnect: true; coalesce: false }>;
type Complete<All extends Record<Overflow, boolean>> = All;

/** What a client does with an event that does not fit in its queue. */
export type ClientOverflow = { [Name in Overflow]: Has[Name] extends true ? Name : never }[Overflow];

/** Details of a state change. */
export interface StateDetail {
  /** Why the connection was lost, or why the watch failed. Absent if the end was planned: the server has said when to come back. */
  readonly error?: Status | undefined;
  /** Delay until the next attempt. `waiting` without a delay means waiting for room in the queue. */
  readonly delayMs?: number | undefined;
}

/**
 * A watch that reconnects when its connection is lost. An ERROR that the client itself delivers counts as an event in `queued`,
 * and in `dropped` if `return` discards it.
 */
export interface ClientWatch<E> extends Watch<E> {
  /** State of the connection. `closed` is final; queued events stay readable. */
  readonly state: ClientState;
  /**
   * The version to resume after, up to what has been read so far. Store it and pass it to `connect` later.
   *
   * Events that `coalesce` has folded come in batches, of which only the last event has a version. Within such a batch, this is the
   * version from before it: a watch that continues there gets the whole batch again. Undefined before the first version has
   * arrived and within a snapshot: then start over with an empty state, because a watch without a version starts now, or with
   * the snapshot.
   */
  readonly resourceVersion: string | undefined;
  /**
   * When something last arrived from the server, in milliseconds of the client's clock: `performance.now() - lastContactMs`
   * ago, unless `clock` is set. Undefined before anything has arrived.
   */
  readonly lastContactMs: number | undefined;
  /**
   * Connects at once: ends the connection, or the wait for the next attempt, and resumes on a new connection. Without a version to
   * resume after, that is a lost connection like any other. Does nothing once the watch has ended.
   *
   * In a page, the client does so by itself when the network comes or goes; when the page is shown again while it waits for the next
   * attempt; and, while the page is shown, when nothing has arrived for two BOOKMARK intervals, unless `idleTimeoutMs` is set.
   */
  reconnect(): void;
}

/** The options of a client that have a default. */
type Defaulted = 'capacity' | 'maxBufferedBytes' | 'maxFrameChars' | 'overflow' | 'bookmarks' | 'connectTimeoutMs' | 'clock';

/** Settings of a client: its options with all defaults filled in. */
export type ClientSettings<E> = MachineOptions &
  Omit<ConnectOptions<E>, Defaulted | keyof MachineOptions> & {
    readonly [K in Defaulted]-?: Exclude<ConnectOptions<E>[K], undefined>;
  };

/**
 * Opens a connection. `complete` is called once with the query of its URL: it adds where to resume, and whether to send
 * BOOKMARKs.
 */
export type Open = (complete: (query: URLSearchParams) => void, receiver: Receiver) => Connection;
