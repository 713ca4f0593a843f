import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { WebSocketServer } from 'ws';
import { IN_BUN } from './bun.ts';
import { DEFLATED_MESSAGE } from './deflate.ts';
import type { Form } from './forms.ts';
import { MESSAGE } from './forms.ts';

/** A request to become a WebSocket: what an HTTP server's `upgrade` event brings. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** What the client has said behind its request. */
  readonly head: Buffer;
}

/** The handshake of the package ws, without its server: it holds no list of clients, and agrees on compression of our kind only. */
export class Handshakes {
  private readonly sockets: WebSocketServer;
  /** How events are written to the client whose handshake this is. One is answered at a time, in a single step. */
  private form: Form = MESSAGE;

  constructor({ compression, maxInboundBytes }: { compression: boolean; maxInboundBytes: number }) {
    this.sockets = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      // Without memory between messages one compressed message serves all, and a connection holds no window.
      perMessageDeflate: compression &&
        !IN_BUN && {
          serverNoContextTakeover: true,
          clientNoContextTakeover: true,
        },
      maxPayload: maxInboundBytes,
    });
    this.sockets.on('headers', (headers) => {
      this.form = formFor(headers);
    });
  }

  /** Answers a handshake, and hands on the WebSocket that it makes. False if it was half of one: ws has refused it. */
  answer({ request, socket, head }: Upgrade, opened: (client: WebSocket, form: Form) => void): boolean {
    let whole = false;
    this.sockets.handleUpgrade(request, socket, head, (client) => {
      whole = true;
      opened(client, this.form);
    });
    return whole;
  }
}

/** Ours is a window of the usual size: who wants a smaller one is sent nothing compressed, as is anyone's right. */
function formFor(headers: readonly string[]): Form {
  const extensions = headers.find((header) => /^sec-websocket-extensions:/i.test(header)) ?? '';
  const fits = extensions.includes('permessage-deflate') && !extensions.includes('server_max_window_bits');
  return fits ? DEFLATED_MESSAGE : MESSAGE;
}
