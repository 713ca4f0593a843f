import { COMPLETE, ENDED, LOST, UNREADABLE } from './client-machine.ts';
import type { Connection, Opening, Receiver } from './client-transport.ts';
import { MAX_REFUSAL_CHARS, messageOf, toRefusal } from './client-transport.ts';
import { fromRetryReason } from './protocol.ts';

/** What is used of a WebSocket, whoever made it: a browser, Node from 22 on, the package ws. The optional members are those of ws. */
export interface WebSocketLike {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  close(): void;
  terminate?(): void;
  pause?(): void;
  resume?(): void;
  on?(event: string, listener: (...args: never[]) => void): unknown;
}

/** A constructor of WebSockets. One whose sockets know `terminate`, as those of ws and of Bun do, is given options, headers among them. */
export type WebSocketConstructor = new (url: string, protocols?: string[], options?: object) => WebSocketLike;

/** Whether an implementation takes headers. Those of browsers do not. */
export function takesHeaders(type: WebSocketConstructor): boolean {
  return 'terminate' in type.prototype;
}

/** The response that refused an upgrade, as ws hands it out. */
interface RefusedUpgrade {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  on(event: 'data' | 'close', listener: (chunk: unknown) => void): this;
}

/** How to ask. */
export interface WebSocketOpening extends Opening {
  readonly WebSocket: WebSocketConstructor;
}

/** One text message per event. Why an upgrade was refused only ws tells; elsewhere it is a connection that could not be made. */
export function openWebSocket(opening: WebSocketOpening, receiver: Receiver): Connection {
  const { url, headers, maxFrameChars, WebSocket } = opening;
  const rich = takesHeaders(WebSocket);
  // Four bytes is the most that a character takes.
  const options = { headers, maxPayload: 4 * maxFrameChars };
  // Bun's own, which is no emitter of events as that of ws is, takes them in the place of the protocols. Those of others take none.
  const socket = new WebSocket(url.href, rich && !WebSocket.prototype.on ? (options as never) : [], options);

  const close = (): void => {
    socket.onopen = socket.onmessage = socket.onclose = null;
    // To ws, a handshake that is given up is an error; and a connection that is closed in order can keep the process for 30 s.
    socket.onerror = () => {};
    if (rich) socket.terminate!();
    else socket.close();
  };

  socket.onopen = () => receiver.opened();
  socket.onmessage = ({ data }: { data: unknown }) => {
    receiver.alive();
    try {
      receiver.frame(data as string);
    } catch (error) {
      receiver.over({ code: UNREADABLE, why: messageOf(error) });
    }
  };
  // The end, and not always followed by a `close`: before it is open, the WebSocket of Node 22 has no more to say than this.
  socket.onerror = ({ message, error }: { message?: string; error?: unknown }) => {
    // So ws says that a message is too long, or that its frames make no sense.
    receiver.over({ code: error instanceof RangeError ? UNREADABLE : LOST, why: message || 'WebSocket closed' });
  };
  socket.onclose = ({ code, reason }: { code: number; reason: string }) => {
    receiver.over({
      // 1000 is the orderly end; codes from 4400 on are HTTP's, plus 4000.
      code: code === 1000 ? (reason === 'timeout' ? ENDED : COMPLETE) : code >= 4400 && code < 4600 ? code - 4000 : LOST,
      why: `WebSocket closed: ${code} ${reason}`,
      hintMs: fromRetryReason(reason),
    });
  };
  socket.on?.('unexpected-response', (_request: never, response: RefusedUpgrade) => {
    let body = '';
    response
      .on('data', (chunk) => {
        if (body.length < MAX_REFUSAL_CHARS) body += chunk;
      })
      .on('close', () => {
        if (socket.onclose) receiver.over(toRefusal(response.statusCode, body, response.headers['retry-after']));
      });
  });
  return { close, pause: socket.pause && ((paused) => (paused ? socket.pause!() : socket.resume!())) };
}
