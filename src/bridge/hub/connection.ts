import type { TRANSPORTS } from '../client/client-options.ts';
import type { Form } from '../events/forms.ts';
import type { Ending } from '../protocol.ts';

/**
 * A client's connection, as its session sees it. Implement it for a transport of your own, and pass it to
 * `createConnectionHandler`. The session calls it, always in this order:
 *
 *     opened --> write, mark (any number of times) --> end, or destroy
 *
 * None of these may wait. If one throws, only this client is cut.
 */
export interface Sink {
  /** The wire format of events: `LINE`, `RECORD`, or a form of your own. */
  readonly form: Form;
  /**
   * Called once, before anything else, with the session. Keep it, to report when there is room again (`relieved`) and when the
   * connection has closed (`gone`). If it has closed already, call `gone` here.
   */
  opened(session: Served): void;
  /**
   * Takes one or more whole events in this sink's form. Other clients share the bytes: copy them before you change or transfer
   * them. Returns false if there is no more room. Nothing more is then written until you call the session's `relieved`.
   */
  write(bytes: Uint8Array): boolean;
  /**
   * Nothing follows. Send what was written, then say how the stream ended, close, and call the session's `gone` once closed.
   * `retryMs`: after how many milliseconds the client should reconnect, if the server is going away.
   */
  end(how: Ending, retryMs: number | undefined): void;
  /** Close now and drop what was not sent. The session is over by itself; calling `gone` is harmless. */
  destroy(retryMs: number | undefined): void;
  /**
   * Optional. Tell the client how far it has come, without an event: a sign of life on a quiet stream, and a place to continue
   * from. Called every `bookmarkIntervalMs` for a client that has not asked for BOOKMARKs.
   */
  mark?(version: string): void;
  /** Bytes written here that the network has not taken yet. Statistics show it, and `stallTimeoutMs` watches it. */
  readonly bufferedBytes: number;
}

/** A client's session, as its connection sees it. */
export interface Served {
  /** For SSE: where this client can continue although it has received no event. */
  readonly version: string | undefined;
  /** Bytes written to the connection since it was opened. */
  readonly sentBytes: number;
  /** The session has ended, and no longer calls its sink. */
  readonly over: boolean;
  /** The connection has room again. */
  relieved(): void;
  /** The connection is closed, by either side. Call it however a connection ends; calling it again is harmless. */
  gone(): void;
  /** Ends the session at once, whatever was not delivered. */
  cut(reason: CutReason): void;
  /** Runs `cleanup` when the session ends. */
  whenOver(cleanup: Cleanup): void;
}

/** What to do when a session ends. With many idle clients, an existing object is cheaper than a closure. */
export type Cleanup = (() => void) | { leave(): void };

export function clean(cleanup: Cleanup): void {
  if (typeof cleanup === 'function') cleanup();
  else cleanup.leave();
}

/** A transport of this package, or one of your own by the name you gave it. */
export type TransportName = (typeof TRANSPORTS)[number] | (string & Record<never, never>);

/** What a transport knows about a client. */
export interface ClientInfo {
  readonly transport: TransportName;
  /** The client's address, as statistics show it and `maxClientsPerAddress` counts it. Empty: unknown, and not counted. */
  readonly address: string;
}

/** Why the server cut a client off. */
export type CutReason = (typeof CUT_REASONS)[number];
export const CUT_REASONS = ['expired', 'failed', 'stalled', 'silent', 'deadline', 'disconnected', 'flooding'] as const;

/** Statistics of one client. */
export interface ClientStats extends ClientInfo {
  readonly id: number;
  /** The identity that `authenticate` returned, if there is such a hook. */
  readonly identity?: unknown;
  /** The topics that the client is limited to, if it is. */
  readonly topics?: readonly string[] | undefined;
  /** Events handed to the connection. */
  readonly delivered: number;
  /** Events waiting for the connection: its queue, of at most `capacity`, and the batch that is being written. */
  readonly queued: number;
  /** Positions between this client and the head of the stream, including events that its filter rejects. */
  readonly lag: number;
  /** Events that this client did not get; with `coalesce`, those folded into a later one. */
  readonly dropped: number;
  /** Bytes of events handed to the connection in total, as its transport frames them; BOOKMARKs count, too. */
  readonly sentBytes: number;
  /** Bytes in the connection that the network has not taken yet. */
  readonly bufferedBytes: number;
  /** Whether the client has reconnected and resumed after a version. */
  readonly resumed: boolean;
}
