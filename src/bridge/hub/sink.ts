import type { Form } from '../events/forms.ts';
import type { Ending } from '../protocol.ts';
import type { CutReason } from './client-info.ts';

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
   * `retryMs`: after how many milliseconds the client should reconnect, if the server goes away.
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
  /** The session has ended, and calls its sink no more. */
  readonly over: boolean;
  /** The connection has room again. */
  relieved(): void;
  /** The connection is closed, by whichever side. Call it however a connection ends; more than once is harmless. */
  gone(): void;
  /** Ends the session at once, whatever was not delivered. */
  cut(reason: CutReason): void;
  /** Runs `cleanup` when the session ends. */
  whenOver(cleanup: Cleanup): void;
}

/** What to do when a session ends. With many idle clients, an existing object is cheaper than a closure. */
export type Cleanup = (() => void) | { leave(): void };
