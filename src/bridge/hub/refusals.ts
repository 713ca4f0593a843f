import type { Status } from '../../watch/event.ts';
import { toStatus } from '../../watch/event.ts';

/** Refuses temporarily: the client should retry later. */
export function unavailable(message: string): Status {
  return toStatus({ code: 503, reason: 'ServiceUnavailable', message, details: { retryAfterSeconds: 5 } });
}

/** No new client is served, although the last events may still be on their way. */
export const LEAVING: Status = unavailable('this server is shutting down, or its stream is about to end');

/** What observers are told of a pipelined request. Its client gets no answer: behind a watch, that would wait forever. */
export const PIPELINED: Status = unavailable(
  'a connection can carry only one watch, and an earlier request of this one is still pending',
);

/** An upgrade request at a path without a WebSocket. */
export const NO_WEBSOCKET: Status = notFound('no WebSocket at this path');
const STRIPPED: Status = notFound('no WebSocket: the header Upgrade is missing, so a proxy may have removed it');

/** The refusal of a WebSocket request that arrived as a plain request. Proxies pass on `Upgrade` only if configured to. */
export function noWebSocket(upgrade: string | null | undefined): Status {
  return upgrade ? NO_WEBSOCKET : STRIPPED;
}

function notFound(message: string): Status {
  return toStatus({ code: 404, reason: 'NotFound', message });
}

/** The client is not identified. */
export function unauthorized(message: string = 'authentication required'): Status {
  return toStatus({ code: 401, reason: 'Unauthorized', message });
}

/** The client may not connect, identified or not. */
export function forbidden(message: string): Status {
  return toStatus({ code: 403, reason: 'Forbidden', message });
}
