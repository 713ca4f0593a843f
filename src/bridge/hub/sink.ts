import type { Form } from '../events/forms.ts';
import type { Ending } from '../protocol.ts';
import type { CutReason } from './client-info.ts';

/** A client's connection, as its session sees it. */
export interface Sink {
  /** The wire format of events. */
  readonly form: Form;
  /** Called once, before anything else, with the session to notify when there is room again and when the connection closes. */
  opened(session: Served): void;
  /**
   * Writes bytes, which are shared with other clients. Returns false if there is no more room; `relieved` is called once there
   * is.
   */
  write(bytes: Uint8Array): boolean;
  /** Nothing follows: sends the ending after what was written, closes, then calls the session's `gone`. */
  end(how: Ending, retryMs: number | undefined): void;
  /** Closes now, dropping what was not sent. */
  destroy(retryMs: number | undefined): void;
  /** Tells the client how far it has come, without an event: a sign of life on a quiet stream, and a place to continue from. */
  mark?(version: string): void;
  /** Bytes written here that the network has not taken yet. */
  readonly bufferedBytes: number;
}

/** A client's session, as its connection sees it. */
export interface Served {
  /** For SSE: where this client can continue although it has received no event. */
  readonly version: string | undefined;
  readonly sentBytes: number;
  readonly over: boolean;
  /** The connection has room again. */
  relieved(): void;
  /** The connection is closed. */
  gone(): void;
  /** Ends the session at once, whatever was not delivered. */
  cut(reason: CutReason): void;
  /** Runs `cleanup` when the session ends. */
  whenOver(cleanup: Cleanup): void;
}

/** What to do when a session ends. With many idle clients, an object that exists anyway is cheaper than a closure. */
export type Cleanup = (() => void) | { leave(): void };
