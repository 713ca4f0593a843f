/**
 * Bodies that nobody reads.
 *
 * Closing a connection whose client is still sending resets it, and a reset discards what the client's system has received but
 * the client has not read yet: our answer. So the whole answer is sent, and what is left of the body decides what happens to
 * the connection:
 *
 *     nothing, or a small rest    is read and dropped, and the connection goes on; unless the rest takes too long
 *     more than that              the answer says that the connection closes, which it does once the client has sent its body or
 *                                 closed, within limits
 *     of unknown length           the answer waits a moment for the end, and one of the two follows
 */
import { type Clock, upkeepClock } from '../../watch/clock.ts';

/** Bytes of a body that are read and dropped. A request for a watch has none; a stream of tiny chunks would only cost time. */
const MAX_BODY_BYTES = 65_536;
/** How long a client may go on sending, and may take to read its answer. */
const LINGER_MS = 5_000;
/** How long an answer waits for the end of a body without a length. */
const HOLD_MS = 1_000;

/** The used part of a socket. */
interface BodySocket {
  readonly remoteAddress?: string | undefined;
  destroy(): unknown;
  once(event: 'close', listener: () => void): unknown;
  off(event: 'close', listener: () => void): unknown;
}

/** The used part of a request; `stream` is that of HTTP/2, whose socket carries other clients' requests behind a proxy. */
export interface WithBody {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly socket: BodySocket;
  readonly stream?: { readonly endAfterHeaders: boolean; destroy(): unknown };
  resume(): unknown;
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
}

/** The used part of a request that is answered before its body has arrived. */
interface Unread extends WithBody {
  readonly complete: boolean;
  readonly readableEnded?: boolean;
  pause(): unknown;
  once(event: 'end', listener: () => void): unknown;
}

/** The used part of a response. */
interface WholeResponse {
  readonly headersSent: boolean;
  shouldKeepAlive?: boolean;
  flushHeaders(): void;
  write(body: string | Uint8Array): unknown;
  end(body?: string | Uint8Array): unknown;
  once(event: 'close', listener: () => void): unknown;
}

/** Reads and drops a body, so that the connection can go on. Closes the connection if the body is long. */
export function dropBody(request: WithBody): void {
  drop(request, () => (request.stream ?? request.socket).destroy());
}

interface WholeBody {
  /** Writes the head, with the length of the body: without one, the client would wait for the end. Called at most once. */
  readonly begin: () => void;
  /** Null if there is none. */
  readonly body: string | Uint8Array | null;
  readonly clock: Clock;
}

/** Sends a whole answer to a request whose body may not have been read. */
export function endUnread(request: Unread, response: WholeResponse, answer: WholeBody): void {
  // Streams of HTTP/2 are closed one by one, without a reset.
  const isRead = request.complete === true || request.readableEnded === true;
  // However long it was, nothing follows that must be counted.
  if (isRead && request.stream === undefined) {
    request.resume();
    finish(response, answer);
  } else if (request.stream !== undefined || !hasBody(request)) {
    dropBody(request);
    finish(response, answer);
  } else if (request.headers['transfer-encoding'] !== undefined) hold(request, response, answer);
  else if (Number(request.headers['content-length']) > MAX_BODY_BYTES) linger(request, response, answer);
  else skipRest(request, response, answer);
}

function finish(response: WholeResponse, { begin, body }: WholeBody): void {
  begin();
  response.end(body ?? undefined);
}

/** Answers, and reads the rest, which is small: the connection then carries the next request. */
function skipRest(request: Unread, response: WholeResponse, answer: WholeBody): void {
  const cancel = upkeepClock(answer.clock).schedule(LINGER_MS, () => request.socket.destroy());
  whenOver(request, cancel);
  request.resume();
  finish(response, answer);
}

/** Waits for the end of a body that may be small. */
function hold(request: Unread, response: WholeResponse, answer: WholeBody): void {
  let isHeld = true;
  const end = (how: () => void): void => {
    if (!isHeld) return;
    isHeld = false;
    cancel();
    // The application may have answered in the meantime.
    if (!response.headersSent) how();
  };
  const close = (): void => end(() => linger(request, response, answer));
  const cancel = upkeepClock(answer.clock).schedule(HOLD_MS, close);
  whenOver(request, (isWhole) => end(() => isWhole && finish(response, answer)));
  drop(request, close);
}

/** Calls back once: when the body has arrived, or its connection has closed, which an answered request does not report. */
function whenOver(request: Unread, over: (isWhole: boolean) => void): void {
  const { socket } = request;
  const onClose = (): void => over(false);
  socket.once('close', onClose);
  request.once('end', () => {
    socket.off('close', onClose);
    over(true);
  });
}

/** Answers a client that keeps sending. Nothing can follow on its connection, so the answer says that it closes. */
function linger(request: Unread, response: WholeResponse, answer: WholeBody): void {
  const { begin, body, clock } = answer;
  response.shouldKeepAlive = false;
  // Middleware that wraps `write` may hold the answer until its end.
  if (Object.hasOwn(response, 'write')) {
    dropBody(request);
    finish(response, answer);
    return;
  }
  begin();
  if (body === null) response.flushHeaders();
  else response.write(body);
  const cancel = upkeepClock(clock).schedule(LINGER_MS, () => response.end());
  const end = (): void => {
    cancel();
    response.end();
  };
  request.once('end', end);
  response.once('close', cancel);
  // The rest stays in the client, which has its answer.
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
