/**
 * Bodies that nobody reads.
 *
 * Closing a connection whose client is still sending resets it, and a reset takes away what the client's system has received but the
 * client has not read yet: our answer. So an answer is sent whole, and its connection stays open until the client has sent its body or
 * closed, within limits.
 */
import { type Clock, upkeepClock } from '../../watch/clock.ts';

/** Bytes of a body that are read and dropped. A request for a watch has none; a stream of tiny chunks would only cost time. */
export const MAX_BODY_BYTES = 65_536;
/** How long a client that is still sending has for reading its answer: as long as Node keeps an idle connection. */
const LINGER_MS = 5_000;

/** The used part of a request; `stream` is that of HTTP/2, whose socket carries other clients' requests behind a proxy. */
export interface WithBody {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly socket: { readonly remoteAddress?: string | undefined; destroy(): unknown };
  readonly stream?: { readonly endAfterHeaders: boolean; destroy(): unknown };
  resume(): unknown;
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
}

/** The used part of a request that is answered before its body has come. */
export interface Unread extends WithBody {
  readonly complete: boolean;
  pause(): unknown;
  once(event: 'end', listener: () => void): unknown;
}

/** The used part of a response. */
export interface WholeResponse {
  flushHeaders(): void;
  write(body: string | Uint8Array): unknown;
  end(body?: string | Uint8Array): unknown;
  once(event: 'close', listener: () => void): unknown;
}

/** Reads and drops a body, so that the connection can go on. Closes the connection if the body is long. */
export function dropBody(request: WithBody): void {
  drop(request, () => (request.stream ?? request.socket).destroy());
}

/** Whether more of a body may come. Nothing can follow on its connection, so the answer should say that it is closed. */
export function isUnread(request: Pick<Unread, 'headers' | 'stream' | 'complete'>): boolean {
  return request.complete !== true && request.stream === undefined && hasBody(request);
}

/**
 * Ends a whole answer, whose head has been written with its length, to a request whose body has not been read. Without a length the
 * client would wait for the end.
 */
export function endUnread(
  request: Unread,
  response: WholeResponse,
  { body, clock }: { body: string | Uint8Array | null; clock: Clock },
): void {
  // Middleware that wraps `write` may hold the answer until its end. Streams of HTTP/2 are closed one by one, without a reset.
  if (!isUnread(request) || Object.hasOwn(response, 'write')) {
    dropBody(request);
    response.end(body ?? undefined);
    return;
  }
  if (body === null) response.flushHeaders();
  else response.write(body);
  const cancel = upkeepClock(clock).schedule(LINGER_MS, () => response.end());
  const end = (): void => {
    cancel();
    response.end();
  };
  request.once('end', end);
  response.once('close', cancel);
  // What is left waits in the client, which has its answer.
  drop(request, () => request.pause());
}

function drop(request: WithBody, onLong: () => void): void {
  request.resume();
  if (!hasBody(request)) return;
  let bytes = 0;
  request.on('data', (chunk) => {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) onLong();
  });
}

function hasBody({ headers, stream }: Pick<WithBody, 'headers' | 'stream'>): boolean {
  if (stream !== undefined) return !stream.endAfterHeaders;
  return (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined;
}
