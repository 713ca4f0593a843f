import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { answerStatus } from '../../bridge/transport/upgrades.ts';
import { type Status, toStatus } from '../../watch/event.ts';

const BAD_REQUEST: Status = toStatus({ code: 400, reason: 'BadRequest', message: 'this is not an HTTP/1.1 request' });
const REQUESTS: Readonly<Record<string, Status>> = {
  HPE_HEADER_OVERFLOW: toStatus({
    code: 431,
    reason: 'RequestHeaderFieldsTooLarge',
    message: 'the URL and the headers of the request are too long',
  }),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: toStatus({
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: 'the extensions of the chunks are too long',
  }),
  ERR_HTTP_REQUEST_TIMEOUT: toStatus({ code: 408, reason: 'RequestTimeout', message: 'the request did not arrive in time' }),
};

/**
 * Answers with a Status whatever Node cannot read as a request, or waits for in vain, and closes the connection. No other code
 * sees it. If the answer to another request may be on its way, there is no answer: it would be mistaken for that one, or for a
 * part of it.
 */
export function refuseBadRequests(server: Server): void {
  const open: WeakMap<Duplex, Set<ServerResponse>> = new WeakMap();
  server.on('request', ({ socket }, response) => {
    const responses = open.get(socket) ?? new Set();
    open.set(socket, responses.add(response));
    response.once('close', () => responses.delete(response));
  });
  server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket) => {
    // The request that is being read has no answer yet.
    const isFree = [...(open.get(socket) ?? [])].every(({ headersSent, req }) => !headersSent && !req.complete);
    const status = code.startsWith('HPE_') || Object.hasOwn(REQUESTS, code) ? (REQUESTS[code] ?? BAD_REQUEST) : undefined;
    if (status && isFree && socket.writable) answerStatus(socket, status);
    else socket.destroy();
  });
}
