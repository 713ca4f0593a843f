import { invalid } from '../../watch/errors.ts';
import { type Connection, listen, type Receiver, toProtocols, type WebSocketOpening } from './transport.ts';

/** Replaces websocket.ts in the browser bundle. It leaves out what only ws, Bun and Node can do. */
export function checkWebSocket(_WebSocket: unknown, header: unknown): void {
  if (header) throw invalid('headers', header, 'none with a WebSocket');
}

/** A browser does not say why it was refused, so a refusal counts as a failed connection. It cannot be paused. */
export function openWebSocket({ url, token, WebSocket }: WebSocketOpening, receiver: Receiver): Connection {
  const socket = new WebSocket(url.href, toProtocols(token));
  // It may not be a browser's. An unhandled error of ws ends the process, and Node's may emit nothing else.
  socket.onerror = ({ message = '' }: { message?: string }) => socket.onclose?.({ code: 1006, reason: message } as never);
  return listen(socket, receiver);
}
