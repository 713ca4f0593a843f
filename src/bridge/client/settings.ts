import type { Codec } from '../../decode/codec.ts';
import type { Clock } from '../../watch/clock.ts';
import type { Status } from '../../watch/event.ts';
import type { Overflow } from '../../watch/overflow.ts';
import type { Watch } from '../../watch/watch.ts';
import type { ClientState, MachineOptions } from './machine.ts';
import type { Connection, Receiver } from './transport.ts';

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
   * version from before it: a watch that continues there gets the whole batch again. It is undefined as long as there is none: before
   * the first version has arrived, and within a snapshot. A watch without a version starts now, or with the snapshot; so start over
   * with an empty state then.
   */
  readonly resourceVersion: string | undefined;
  /**
   * When something last arrived from the server, by the client's clock: `performance.now() - lastContactMs` is how long ago that is,
   * in milliseconds, unless there is a clock of its own. Undefined before anything has arrived.
   */
  readonly lastContactMs: number | undefined;
  /**
   * Connects at once: ends the connection, or the wait for the next attempt, and resumes on a new connection. Without a version to
   * resume after, that is a lost connection like any other. Does nothing once the watch has ended.
   *
   * In a page, the client does so by itself when the network comes or goes; when the page is shown again while it waits for the next
   * attempt; and, while the page is shown, when nothing has arrived for two intervals of BOOKMARKs, unless there is an `idleTimeoutMs`.
   */
  reconnect(): void;
}

/** Settings of a client. */
export interface ClientSettings<E> extends MachineOptions {
  readonly capacity: number;
  readonly maxBufferedBytes: number;
  readonly maxFrameChars: number;
  readonly overflow: ClientOverflow;
  /** Resume after this version. Empty: the one in the URL; `0`: none. */
  readonly resourceVersion?: string | undefined;
  /** Whether to ask for BOOKMARKs if the URL does not say. */
  readonly bookmarks: boolean;
  readonly connectTimeoutMs: number;
  /** 0: never. Undefined: derived from the server's signs of life. */
  readonly idleTimeoutMs?: number | undefined;
  readonly clock: Clock;
  readonly codec?: Pick<Codec<E>, 'decode'> | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onStateChange?: ((state: ClientState, detail: StateDetail) => void) | undefined;
  readonly onGap?: ((missed: number) => void) | undefined;
}

/**
 * Opens a connection. `complete` is called once with the query of its URL: it adds where to resume, and whether to send
 * BOOKMARKs.
 */
export type Open = (complete: (query: URLSearchParams) => void, receiver: Receiver) => Connection;
