import type { Server, Socket } from 'node:net';
import { ConnectionSlots } from '../hub/admission/connection-slots.ts';

/** Options of {@link limitConnections}. */
interface ConnectionOptions {
  /** Gets those that are open. Default: a set of its own. */
  readonly sockets?: Set<Socket>;
  /** Called for each connection that is closed at once. */
  readonly drop?: (address: string) => void;
}

/** Closes connections beyond a limit. Returns those that are open: a server's own ways to close them leave some out. */
export function limitConnections(
  server: Server,
  limits: { readonly maxClients: number; readonly maxClientsPerAddress: number },
  { sockets = new Set(), drop }: ConnectionOptions = {},
): ReadonlySet<Socket> {
  const slots = new ConnectionSlots(limits);
  server.on('connection', (socket) => {
    const { remoteAddress = '' } = socket;
    if (slots.take(remoteAddress)) {
      drop?.(remoteAddress);
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.once('close', () => {
      slots.release(remoteAddress);
      sockets.delete(socket);
    });
  });
  return sockets;
}
