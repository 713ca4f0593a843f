import { invalid } from '../../watch/errors.ts';
import { LOST, UNREADABLE } from './machine.ts';
import {
  BROKEN,
  type Connection,
  type ConnectionEnd,
  listen,
  MAX_REFUSAL_CHARS,
  type Receiver,
  toProtocols,
  toRefusal,
  type WebSocketConstructor,
  type WebSocketOpening,
} from './transport.ts';

/** The response that refused an upgrade, as ws passes it. */
interface RefusedUpgrade {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  on(event: 'data' | 'close', listener: (chunk: Uint8Array) => void): this;
}

/** Whether an implementation is given headers. Those of browsers accept none, and those of Node and Deno do not show that they do. */
function takesHeaders(type: WebSocketConstructor): boolean {
  return 'terminate' in type.prototype;
}

/** Throws if there is no WebSocket, or if there are headers and it does not accept any. */
export function checkWebSocket(type: WebSocketConstructor | undefined, header: unknown): void {
  if (type && (!header || takesHeaders(type))) return;
  throw invalid(
    'WebSocket',
    type,
    `that of the package ws (${type ? 'this one does not accept headers' : 'there is none here'})`,
  );
}

/** Opens a WebSocket of any kind. Only ws says why an upgrade was refused; elsewhere a refusal counts as a failed connection. */
export function openWebSocket(opening: WebSocketOpening, receiver: Receiver): Connection {
  const { url, headers, token, maxFrameChars, WebSocket } = opening;
  const withHeaders = takesHeaders(WebSocket);
  // A character takes at most four bytes.
  const options = { headers, maxPayload: 4 * maxFrameChars };
  // Bun's own constructor takes options in place of the protocols. Unlike that of ws, it has no `on`.
  const protocols = withHeaders ? [] : toProtocols(token);
  const socket = new WebSocket(url.href, withHeaders && !WebSocket.prototype.on ? (options as never) : protocols, options);
  const { close } = listen(socket, receiver);

  // Not every error is followed by `close`: before the socket is open, the WebSocket of Node 22 reports only this.
  socket.onerror = ({ message, error }: { message?: string; error?: unknown }) => {
    // ws reports a message that is too long, or an invalid frame, as a RangeError.
    receiver.over({ code: error instanceof RangeError ? UNREADABLE : LOST, why: message || BROKEN });
  };
  socket.on?.('unexpected-response', (_request: never, response: RefusedUpgrade) => {
    let body = '';
    const utf8 = new TextDecoder();
    const { statusCode } = response;
    const { date, 'retry-after': retryAfter } = response.headers;
    // A page, say. For a stream, 200 would mean a regular end, and 204 that nothing is left.
    const code = statusCode < 300 ? UNREADABLE : statusCode;
    const refusal = (): ConnectionEnd => ({ ...toRefusal(statusCode, body, { retryAfter, date }), code });
    const over = (): void => {
      if (socket.onclose) receiver.over(refusal());
    };
    receiver.refusal = refusal;
    response
      .on('data', (chunk) => {
        body += utf8.decode(chunk, { stream: true });
        if (body.length > MAX_REFUSAL_CHARS) over();
      })
      .on('close', over);
  });
  return {
    pause: socket.pause && ((paused) => (paused ? socket.pause!() : socket.resume!())),
    close: () => {
      // ws emits an error when a handshake is aborted.
      socket.onerror = () => {};
      close();
      // After a regular close, ws can keep the process alive for 30 s.
      socket.terminate?.();
    },
  };
}
