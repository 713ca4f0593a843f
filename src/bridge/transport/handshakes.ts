import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { WebSocketServer } from 'ws';
import { DEFLATED_MESSAGE } from '../events/deflate.ts';
import type { Form } from '../events/forms.ts';
import { MESSAGE } from '../events/forms.ts';
import { IN_BUN } from './bun.ts';

/** A request for a WebSocket, as an HTTP server's `upgrade` event passes it. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that the client has sent after its request. */
  readonly head: Buffer;
}

/** Performs WebSocket handshakes with the package ws, but without its list of clients. Accepts only our kind of compression. */
export class Handshakes {
  private readonly sockets: WebSocketServer;
  /** The wire format for the client of the current handshake. Handshakes are synchronous, so there is only one. */
  private form: Form = MESSAGE;

  constructor({ compression, maxInboundBytes }: { compression: boolean; maxInboundBytes: number }) {
    this.sockets = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      // Without context takeover, a message is compressed once for all clients, and a connection needs no window in memory.
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

  /** Answers a handshake and passes on the WebSocket. Returns false if the handshake was incomplete, and ws has refused it. */
  answer({ request, socket, head }: Upgrade, opened: (client: WebSocket, form: Form) => void): boolean {
    let whole = false;
    this.sockets.handleUpgrade(request, socket, head, (client) => {
      whole = true;
      opened(client, this.form);
    });
    return whole;
  }
}

/**
 * Our compressed messages need a window of the default size. A client that wants a smaller one gets uncompressed messages, which
 * the extension allows.
 */
function formFor(headers: readonly string[]): Form {
  const extensions = headers.find((header) => /^sec-websocket-extensions:/i.test(header)) ?? '';
  const fits = extensions.includes('permessage-deflate') && !extensions.includes('server_max_window_bits');
  return fits ? DEFLATED_MESSAGE : MESSAGE;
}
