import type { Form } from './forms.ts';
import type { Ending } from './protocol.ts';
import type { Session } from './session.ts';

/** A client's connection, as its session sees it. */
export interface Sink {
  /** What events look like on this wire. */
  readonly form: Form;
  /** Called once, before anything else: whom to tell of relief, and of the end. */
  opened(session: Session): void;
  /** Takes bytes, which others are sent, too. False: no room for more; the session's `relieved` is called once there is. */
  write(bytes: Uint8Array): boolean;
  /** Nothing follows: say goodbye after what was written, then close, then call the session's `gone`. */
  end(how: Ending, retryMs: number | undefined): void;
  /** Closes now, whatever is not yet written. */
  destroy(retryMs: number | undefined): void;
  /** Bytes that were written here and that the network has not taken yet. */
  readonly bufferedBytes: number;
}
