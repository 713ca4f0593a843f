import { refused } from '../../storage/statuses.ts';
import type { Clock } from '../../watch/clock.ts';
import type { Sessions } from './sessions.ts';
import type { Answer, WireRequest } from './wire.ts';

/** What a host needs from the server. */
export interface HostDeps {
  readonly answer: (request: WireRequest) => Promise<Answer>;
  readonly sessions: Sessions;
  /** {@link Sessions.cutEarly}. Not a closure of a request, which would keep alive all that the request has made. */
  readonly cutEarly: () => void;
  readonly maxBufferedBytes: number;
  readonly clock: Clock;
}

/** Releases an answer that will not be sent. */
export function abandon(answer: Answer): void {
  answer.source?.close();
  answer.slot?.release();
}

/** 413 for a body. */
export function tooLarge(maxBytes: number): Error {
  return refused(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${maxBytes}`);
}
