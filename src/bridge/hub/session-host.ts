import type { WatchEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import type { Envelope } from '../events/envelope.ts';
import type { Slices } from '../events/slices.ts';
import type { Ending } from '../protocol.ts';
import type { ClientInfo } from './client-info.ts';
import type { Sink } from './sink.ts';

/** What a session of type `S` needs from its hub. */
export interface SessionHost<S> {
  readonly slices: Slices;
  /** Position and version of the last distributed event. */
  readonly head: number;
  readonly version: string;
  /** Position of the last event for which the flush signal is known to have come. A field, because each client reads it at each flush. */
  readonly seen: number;
  /** No event will follow, so a session that has read everything ends. Also a field. */
  readonly closing: boolean;
  /** How often a client that asks for BOOKMARKs gets one. */
  readonly bookmarkIntervalMs: number;
  /** How a completed stream ends. Another call may answer with another delay. */
  endOfStream(): { readonly how: Ending; readonly retryMs: number | undefined };
  /** The session has no room any more. */
  behind(session: S): void;
  /** The session has room again and should be flushed soon. */
  ready(session: S): void;
  /** The session was flushed. */
  flushed(): void;
  /** The session is over. */
  left(session: S): void;
}

/** Options of a session. */
export interface SessionOptions<S> extends ClientInfo {
  readonly id: number;
  readonly identity: unknown;
  readonly watch: SessionWatch;
  readonly sink: Sink;
  readonly host: SessionHost<S>;
  /** Events to send before those of the watch, and the position before the first of them. */
  readonly missed: readonly Envelope[];
  readonly after: number;
  /** The version of that position, for SSE, which can send it without an event; undefined before a snapshot or an ERROR. */
  readonly version: string | undefined;
  readonly resumed: boolean;
  /** The topics that the client is limited to. */
  readonly topics: readonly string[] | undefined;
  /** The watch folds events, so a client cannot resume after each of them. */
  readonly folds: boolean;
  /** How many bytes of events may wait for the client. */
  readonly maxQueuedBytes: number;
}

/** What a session needs from a watch: a read that never waits. */
export interface SessionWatch<E = WatchEvent> extends Pick<Watch<E>, 'stopped' | 'queued' | 'dropped' | 'stop' | 'return'> {
  tryBatch(): readonly E[] | undefined;
  /** The view it stands in, unless it had ended before it began; see broadcast/view.ts. */
  readonly view?: object | undefined;
  /** It has not come to the live events yet, so the hub's version is not one from which its client could continue. */
  readonly behind?: boolean;
  /** The total size of all that is queued. A watch that has ended need not have it. */
  sizeOfQueue?(sizeOf: (event: E) => number): number;
}

/** The watch of a broadcaster. */
export interface ReadableWatch<E = WatchEvent> extends Watch<E>, SessionWatch<E> {}
