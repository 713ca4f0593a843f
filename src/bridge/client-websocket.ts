import { invalid } from '../watch/errors.ts';
import { LOST, UNREADABLE } from './client-machine.ts';
import type { WebSocketConstructor, WebSocketOpening } from './client-socket.ts';
import { listen } from './client-socket.ts';
import type { Connection, Receiver } from './client-transport.ts';
import { MAX_REFUSAL_CHARS, toRefusal } from './client-transport.ts';

/** The response that refused an upgrade, as ws hands it out. */
interface RefusedUpgrade {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  on(event: 'data' | 'close', listener: (chunk: unknown) => void): this;
}

/** Whether an implementation takes headers. Those of browsers, of Node 22 and of Deno do not. */
function takesHeaders(type: WebSocketConstructor): boolean {
  return 'terminate' in type.prototype;
}

/** Refuses what cannot be had: a WebSocket where there is none, or headers from one that takes none. */
export function checkWebSocket(type: WebSocketConstructor | undefined, header: unknown): void {
  if (type && (!header || takesHeaders(type))) return;
  throw invalid('WebSocket', type, `that of the package ws: no other ${type ? 'takes headers' : 'is here'}`);
}

/** Opens a WebSocket of any kind. Why an upgrade was refused only ws tells; elsewhere it is a connection that could not be made. */
export function openWebSocket(opening: WebSocketOpening, receiver: Receiver): Connection {
  const { url, headers, maxFrameChars, WebSocket } = opening;
  const rich = takesHeaders(WebSocket);
  // Four bytes is the most that a character takes.
  const options = { headers, maxPayload: 4 * maxFrameChars };
  // Bun's own, which is no emitter of events as that of ws is, takes them in the place of the protocols. Those of others take none.
  const socket = new WebSocket(url.href, rich && !WebSocket.prototype.on ? (options as never) : [], options);
  const { close } = listen(socket, receiver);

  // The end, and not always followed by a `close`: before it is open, the WebSocket of Node 22 has no more to say than this.
  socket.onerror = ({ message, error }: { message?: string; error?: unknown }) => {
    // So ws says that a message is too long, or that its frames make no sense.
    receiver.over({ code: error instanceof RangeError ? UNREADABLE : LOST, why: message || 'WebSocket closed' });
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
  return {
    pause: socket.pause && ((paused) => (paused ? socket.pause!() : socket.resume!())),
    close: () => {
      // To ws, a handshake that is given up is an error.
      socket.onerror = () => {};
      close();
      // To ws, a connection that is closed in order can keep the process for 30 s.
      socket.terminate?.();
    },
  };
}
