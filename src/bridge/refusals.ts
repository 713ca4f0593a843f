import type { Status } from '../watch/event.ts';
import { toStatus } from '../watch/event.ts';

/** Not now: come back in a while. */
export function unavailable(message: string): Status {
  return toStatus({ code: 503, reason: 'ServiceUnavailable', message, details: { retryAfterSeconds: 5 } });
}

/** Nobody is let in any more, though the last events may still be on their way. */
export const LEAVING: Status = unavailable('this server goes away, or its stream is about to end');

/**
 * A response gets the socket when those before it are through. One that waits is told nothing of the connection's end, and
 * waits for ever behind a watch: it must not hold a session.
 */
export const PIPELINED: Status = unavailable(
  'a connection carries one watch, and this one still had an earlier request to answer',
);

/** An upgrade to a WebSocket where nobody serves one. */
export const NO_WEBSOCKET: Status = notFound('no WebSocket at this path');
const STRIPPED: Status = notFound('no WebSocket: a proxy on the way has not passed on the header Upgrade');

/** What is said to a WebSocket's client that has come as a plain request. Proxies pass `Upgrade` on only where they were told to. */
export function noWebSocket(upgrade: string | null | undefined): Status {
  return upgrade ? NO_WEBSOCKET : STRIPPED;
}

function notFound(message: string): Status {
  return toStatus({ code: 404, reason: 'NotFound', message });
}

/** Not before it is known who this is. */
export function unauthorized(message: string = 'who are you?'): Status {
  return toStatus({ code: 401, reason: 'Unauthorized', message });
}

/** Known, or not even that: in any case no. */
export function forbidden(message: string): Status {
  return toStatus({ code: 403, reason: 'Forbidden', message });
}
