import type { IncomingMessage } from 'node:http';
import type { Caller } from '../hub/admission/admission.ts';
import { LAST_EVENT_ID } from '../protocol.ts';

/** Returns a request of node:http as admission sees it. `onGone` is that of {@link Caller}. */
export function toCaller(request: IncomingMessage, onGone: Caller<IncomingMessage>['onGone']): Caller<IncomingMessage> {
  const { url = '', socket } = request;
  const at = url.indexOf('?');
  // HTTP/2 has `:authority` in place of `Host`.
  const { origin, 'sec-fetch-site': site, host, ':authority': authority, [LAST_EVENT_ID]: lastEventId } = request.headers;
  return {
    request,
    address: socket.remoteAddress ?? '',
    origin,
    site: site as string | undefined,
    host: host ?? (authority as string | undefined),
    search: at < 0 ? '' : url.slice(at + 1),
    lastEventId: Array.isArray(lastEventId) ? lastEventId.join() : lastEventId,
    onGone,
  };
}
