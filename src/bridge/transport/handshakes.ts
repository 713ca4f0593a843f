import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { constants, deflateRawSync } from 'node:zlib';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Envelope } from '../events/envelope.ts';
import { FINAL_DEFLATED_TEXT, type Form, frameSize, MESSAGE, putFrame } from '../events/forms.ts';
import { IN_BUN } from './stall.ts';

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

/** Below this size, compression costs more than it saves. */
const COMPRESSION_THRESHOLD_BYTES = 1_024;
/** The WebSocket of Node refuses messages that become longer than this when they are decompressed, but takes longer plain ones. */
const MAX_COMPRESSED_BYTES = 4_194_304;

/**
 * One WebSocket frame per event, for clients that have negotiated permessage-deflate without context takeover. No message depends
 * on earlier ones, so each is compressed once for all clients. Short messages, and those that Node would not take, stay
 * uncompressed, as the extension allows.
 */
export const DEFLATED_MESSAGE: Form = {
  chunked: false,
  size(envelope) {
    const payload = payloadOf(envelope);
    return payload === undefined ? MESSAGE.size(envelope) : frameSize(payload);
  },
  put(envelope, to, at) {
    const payload = payloadOf(envelope);
    return payload === undefined ? MESSAGE.put(envelope, to, at) : putFrame(payload, to, { at, first: FINAL_DEFLATED_TEXT });
  },
};

/** What is kept of an event that compression does not make smaller. */
const NO_SMALLER: Uint8Array = new Uint8Array(0);

/** Returns the compressed bytes, or undefined if compression does not make the event smaller. */
function payloadOf(envelope: Envelope): Uint8Array | undefined {
  const { bytes } = envelope;
  if (bytes.length < COMPRESSION_THRESHOLD_BYTES || bytes.length > MAX_COMPRESSED_BYTES) return undefined;
  if (envelope.deflated === undefined) envelope.keepDeflated(deflated(bytes));
  const kept = envelope.deflated as unknown as Uint8Array;
  return kept.length > 0 ? kept : undefined;
}

function deflated(bytes: Uint8Array): Uint8Array {
  const all = deflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH });
  // A sync flush ends in 00 00 ff ff, which the extension omits.
  const payload = all.subarray(0, -4);
  // A copy: zlib's result is part of a buffer of 16 KiB or more, which would live as long as the event.
  return payload.length < bytes.length ? new Uint8Array(payload) : NO_SMALLER;
}
