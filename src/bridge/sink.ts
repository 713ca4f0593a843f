import type { CutReason } from './client-info.ts';
import type { Form } from './forms.ts';
import type { Ending } from './protocol.ts';

/** A client's connection, as its session sees it. */
export interface Sink {
  /** What events look like on this wire. */
  readonly form: Form;
  /** Called once, before anything else: whom to tell of relief, and of the end. */
  opened(session: Served): void;
  /** Takes bytes, which others are sent, too. False: no room for more; the session's `relieved` is called once there is. */
  write(bytes: Uint8Array): boolean;
  /** Nothing follows: say goodbye after what was written, then close, then call the session's `gone`. */
  end(how: Ending, retryMs: number | undefined): void;
  /** Closes now, whatever is not yet written. */
  destroy(retryMs: number | undefined): void;
  /** Says how far its client has come, without an event: on a quiet stream a sign of life, and a place to go on from. */
  mark?(version: string): void;
  /** Bytes that were written here and that the network has not taken yet. */
  readonly bufferedBytes: number;
}

/** A client's session, as its connection sees it. */
export interface Served {
  /** For SSE: where this client can go on though no event has come. */
  readonly version: string | undefined;
  readonly sentBytes: number;
  readonly over: boolean;
  /** There is room again. */
  relieved(): void;
  /** The connection is closed. */
  gone(): void;
  /** Ends it at once, whatever it has not got yet. */
  cut(reason: CutReason): void;
  /** Calls back at the end. */
  whenOver(cleanup: Cleanup): void;
}

/** What is to be done at the end of a session. Idle clients are many: an object that is there anyway costs less than a closure. */
export type Cleanup = (() => void) | { leave(): void };
