import type { Clock } from '../watch/clock.ts';
import type { WatchEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import type { ClientInfo } from './client-info.ts';
import type { Envelope } from './envelope.ts';
import type { Ending } from './protocol.ts';
import type { Sink } from './sink.ts';
import type { Slices } from './slices.ts';

/** What a session, an `S`, needs of its hub. */
export interface SessionHost<S> {
  readonly slices: Slices;
  readonly clock: Clock;
  /** The place of the last event that is distributed, and its version. */
  readonly head: number;
  readonly version: string;
  /** The place of the last event for which the bell is known to have rung. A field, as it is read for every client and flush. */
  readonly seen: number;
  /** No event will follow: who has been read out is to be told the end. A field, too. */
  readonly closing: boolean;
  /** How streams end when there is nothing more to come. */
  farewell(): { readonly how: Ending; readonly retryMs: number | undefined };
  /** This session has room again, and wants to be flushed soon. */
  ready(session: S): void;
  /** This session has been flushed. */
  flushed(): void;
  /** This session is over. */
  left(session: S): void;
}

/** What a session begins with. */
export interface SessionOptions<S> extends ClientInfo {
  readonly id: number;
  readonly identity: unknown;
  readonly watch: ReadableWatch;
  readonly sink: Sink;
  readonly host: SessionHost<S>;
  /** Sent before all that the watch brings, and the place after which it begins. */
  readonly missed: readonly Envelope[];
  readonly after: number;
  /** The version of that place, for SSE, which can say it without an event; none before a snapshot. */
  readonly version: string | undefined;
  readonly resumed: boolean;
  /** The watch folds events: not each of them is a place from which to go on. */
  readonly folds: boolean;
}

/** The watch of a broadcaster, read without waiting. */
export interface ReadableWatch<E = WatchEvent> extends Watch<E> {
  tryBatch(): readonly E[] | undefined;
}
