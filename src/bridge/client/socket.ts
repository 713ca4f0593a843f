import { fromRetryReason } from '../protocol.ts';
import { COMPLETE, ENDED, LOST, UNREADABLE } from './machine.ts';
import type { Connection, Opening, Receiver } from './transport.ts';
import { messageOf } from './transport.ts';

/**
 * The part of a WebSocket that the client uses: of browsers, Node 22 and the package ws. The optional members are those of ws.
 */
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

/** A WebSocket constructor. If its sockets have `terminate`, as those of ws and Bun do, it is passed options with the headers. */
export type WebSocketConstructor = new (url: string, protocols?: string[], options?: object) => WebSocketLike;

export interface WebSocketOpening extends Opening {
  readonly WebSocket: WebSocketConstructor;
}

/** What a WebSocket says of a connection that has ended in no other way. */
export const BROKEN = 'the connection broke, or could not be made';

/** Attaches a receiver to a WebSocket of any kind. Each event is one text message. */
export function listen(socket: WebSocketLike, receiver: Receiver): Connection {
  socket.onopen = () => receiver.opened();
  socket.onmessage = ({ data }: { data: unknown }) => {
    receiver.alive();
    try {
      receiver.frame(data as string);
    } catch (error) {
      receiver.over({ code: UNREADABLE, why: messageOf(error) });
    }
  };
  socket.onclose = ({ code, reason }: { code: number; reason: string }) => {
    const hintMs = fromRetryReason(reason);
    receiver.over({
      // 1000 is the regular end; from 4400 on, a code is 4000 + an HTTP status.
      code: code === 1000 ? (reason === 'timeout' ? ENDED : COMPLETE) : code >= 4400 && code < 4600 ? code - 4000 : LOST,
      hintMs,
      planned: hintMs === undefined ? undefined : 'server',
      why: code === 1006 ? reason || BROKEN : `closed by the server: ${code} ${reason}`.trim(),
    });
  };
  return {
    close: () => {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    },
  };
}
