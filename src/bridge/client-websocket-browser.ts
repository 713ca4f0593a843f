import { invalid } from '../watch/errors.ts';
import type { WebSocketOpening } from './client-socket.ts';
import { listen } from './client-socket.ts';
import type { Connection, Receiver } from './client-transport.ts';

/** In a browser's bundle, this file stands in the place of client-websocket.ts: what only ws, Bun and Node can do is not in it. */
export function checkWebSocket(_WebSocket: unknown, header: unknown): void {
  if (header) throw invalid('headers', header, 'none with a WebSocket');
}

/** Why it was refused it does not say: then it is a connection that could not be made. It cannot be paused. */
export function openWebSocket({ url, WebSocket }: WebSocketOpening, receiver: Receiver): Connection {
  return listen(new WebSocket(url.href), receiver);
}
