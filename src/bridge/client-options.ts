import type { Codec } from '../decode/codec.ts';
import type { Clock } from '../watch/clock.ts';
import type { ErrorEvent, WatchEvent } from '../watch/event.ts';
import type { ClientState } from './client-machine.ts';
import type { ClientOverflow, StateDetail } from './client-settings.ts';
import type { WebSocketConstructor } from './client-socket.ts';
import type { FetchLike } from './client-stream.ts';

import type { BookmarkEvent } from './protocol.ts';

/**
 * What a client may get: besides a hub's own events an ERROR, when the watch cannot go on, and the BOOKMARK that ends a snapshot.
 * A snapshot's objects are of the type ADDED, whatever the other events are called.
 */
export type ClientEvent<E extends WatchEvent = WatchEvent> = E | ErrorEvent | BookmarkEvent;

/** How events travel; see PROTOCOL.md. */
export type ClientTransport = 'websocket' | 'sse' | 'http';

/** How long a client waits before it tries again: a random span up to `minMs * factor ** failures`, and to `maxMs` at most. */
export interface Backoff {
  /** Longest wait after the first failure; default 500. */
  readonly minMs?: number | undefined;
  /** Longest wait ever; default 5,000. A connection that holds for so long begins a new row of failures. */
  readonly maxMs?: number | undefined;
  /** How fast the wait grows; default 2. */
  readonly factor?: number | undefined;
}

/** What {@link connect} takes. */
export interface ConnectOptions<E> {
  /** Stops the watch when it aborts, at whatever stage. One that has aborted already is refused with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Go on after this version: a `resourceVersion` of an earlier watch. Without it the stream begins now, or with the server's snapshot. */
  readonly resourceVersion?: string | undefined;
  /**
   * Default: what the URL says, `websocket` for `ws:` and `wss:`, `http` for `http:` and `https:`; a relative URL is the page's, and
   * so `http`. The one that is named here is taken whatever the URL says.
   *
   * Over HTTP/1.1 browsers keep at most six connections to one origin, in all tabs together, and a watch takes one of them for as
   * long as it runs, or until its page is left. Pages of which several may be open want a `ws:` URL, or a server that speaks HTTP/2.
   * A page that the browser brings back as it was connects anew, and goes on where it was.
   */
  readonly transport?: ClientTransport | undefined;
  /** Events that wait for their reader; a whole number from 1, default 1,000. */
  readonly capacity?: number | undefined;
  /** And the length of their texts, a byte for a character; default 16 MiB. One event more than that may wait. */
  readonly maxBufferedBytes?: number | undefined;
  /** The longest event, in characters of its text; default 16,777,216. A longer one ends the watch with an ERROR. */
  readonly maxFrameChars?: number | undefined;
  /**
   * What happens when the reader is slower than the server.
   *
   * - `wait` (default) loses nothing. Over HTTP, and with the WebSocket of ws, nothing more is read, and so the server waits or
   *   cuts us; then the client resumes. What a WebSocket's last read of the network brought (64 KiB) may then exceed `capacity`. A
   *   browser's WebSocket cannot be paused: it is closed, and made again when half of the queue is free. Events without a version,
   *   such as a snapshot's, may then exceed `capacity`, up to `maxBufferedBytes`.
   * - `drop-newest`, `drop-oldest` lose events: `dropped` counts them, `onGap` tells where.
   * - `disconnect` ends the watch by an ERROR of code 410, behind what was queued. `resourceVersion` is where to go on.
   *
   * `coalesce` is the server's to do: there, intermediate states cost no network.
   */
  readonly overflow?: ClientOverflow | undefined;
  /** Called right before the first event after a gap is handed out, with the number of events lost. If it throws, the watch ends with that error. */
  readonly onGap?: ((missed: number) => void) | undefined;
  /** Called after every change of `state`. If it throws, the watch ends with that error. */
  readonly onStateChange?: ((state: ClientState, detail: StateDetail) => void) | undefined;
  /** Sent with every request, and read anew for each: a getter can refresh a token. A WebSocket takes them only if it is that of ws, or Bun's. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The WebSocket to use, where one is: see `transport`. Default: the host's own. Node has one from 22 on; the package ws fits everywhere. */
  readonly WebSocket?: WebSocketConstructor | undefined;
  /** The fetch to use; default: the host's own. One of your own can refresh a token at every request. */
  readonly fetch?: FetchLike | undefined;
  /** The wait between two attempts: random, growing, capped; what the server asks for comes on top. */
  readonly backoff?: Backoff | undefined;
  /** Failures in a row after which the watch ends with an ERROR that says the last one; default Infinity. 0: it never comes back. */
  readonly maxAttempts?: number | undefined;
  /** How long a server may take to begin its answer, in Firefox the body of it; default 10,000. A hub does both at once, if asked for BOOKMARKs. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * A connection on which nothing comes for so long is given up and made again. A server must give signs of life more often than
   * that: a hub sends a BOOKMARK every 30 s. Default: 150,000, once the server has shown that it does; 0: never.
   */
  readonly idleTimeoutMs?: number | undefined;
  /**
   * Whether to ask the server for BOOKMARKs, which keep the version fresh and show life; default true. They are kept from the
   * reader, but for the one that ends a snapshot, unless the URL itself asks for them by `allowWatchBookmarks=true`. Without them,
   * a stream of lines on which nothing happens looks to Firefox like a server that does not answer.
   */
  readonly bookmarks?: boolean | undefined;
  /**
   * What happens when the place in the stream is lost: the version is too old, the server has restarted, or the connection broke
   * before there was a version. `fail` (default): one ERROR of code 410, then the end. `restart`: the same ERROR, and behind it
   * a fresh start without a version, which begins with the server's snapshot if it has one.
   */
  readonly onExpired?: 'fail' | 'restart' | undefined;
  /**
   * Whether an HTTP stream that ends in order is to be continued, as proxies end what takes long; default true. It is not after
   * an ERROR, nor where the server answers 204, nor without a version. A WebSocket is told by its close code.
   */
  readonly reconnectOnEnd?: boolean | undefined;
  /** How frames become events; default: JSON, as the wire has it. Its events keep the member `resourceVersion`, or nothing can be resumed. */
  readonly codec?: Pick<Codec<E>, 'decode'> | undefined;
  /** Where time comes from; for tests. */
  readonly clock?: Clock | undefined;
  /** From 0 to 1; for tests. */
  readonly random?: (() => number) | undefined;
}
