import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { constants, deflateRawSync } from 'node:zlib';
import type { Clock } from '../../watch/clock.ts';
import { toStatus } from '../../watch/event.ts';
import type { Envelope } from '../events/envelope.ts';
import { FINAL_DEFLATED_TEXT, type Form, frameSize, MESSAGE, putFrame } from '../events/forms.ts';
import { JSON_LINES } from '../protocol.ts';
import { Frames, type ServerWebSocket } from './frames.ts';
import { answerUpgrade } from './upgrades.ts';

/** A request for a WebSocket, as an HTTP server's `upgrade` event passes it. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that the client has sent after its request. */
  readonly head: Buffer;
}

interface HandshakeOptions {
  /** Whether to compress, if the client takes our kind of compression. */
  readonly compression: boolean;
  /** The longest message of a client, in bytes. */
  readonly maxInboundBytes: number;
  readonly clock?: Clock | undefined;
}

/** What a key looks like: 16 bytes in base64. */
const KEY = /^[+/0-9A-Za-z]{22}==$/;
/** Appended to the key: RFC 6455, section 1.3. */
const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
/** A subprotocol's name. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Performs WebSocket handshakes. */
export class Handshakes {
  private readonly options: HandshakeOptions;

  constructor(options: HandshakeOptions) {
    this.options = options;
  }

  /** Answers a handshake and passes on the WebSocket. Returns false if the handshake was incomplete, and has been refused. */
  answer({ request, socket, head }: Upgrade, opened: (client: ServerWebSocket, form: Form) => void): boolean {
    const { headers, method } = request;
    const { 'sec-websocket-key': key = '', 'sec-websocket-version': version, 'sec-websocket-protocol': protocols } = headers;
    const [protocol] = (protocols ?? '').split(',').map((each) => each.trim());
    const wrong =
      (method !== 'GET' && 'a WebSocket begins with GET') ||
      (headers.upgrade?.toLowerCase() !== 'websocket' && 'the header Upgrade must be websocket') ||
      (!KEY.test(key) && 'the header Sec-WebSocket-Key is missing or invalid') ||
      (version !== '13' && 'the version of WebSocket must be 13') ||
      (protocol && !TOKEN.test(protocol) && 'the header Sec-WebSocket-Protocol is invalid');
    if (wrong) {
      const body = `${JSON.stringify(toStatus({ code: 400, reason: 'BadRequest', message: wrong }))}\n`;
      answerUpgrade(socket, { code: 400, type: JSON_LINES, body, headers: ['sec-websocket-version: 13'] });
      return false;
    }
    const { maxInboundBytes, clock } = this.options;
    const offer = this.options.compression ? takenOffer(headers['sec-websocket-extensions']) : undefined;
    const compression = offer !== undefined;
    const lines = [
      ...['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'],
      `Sec-WebSocket-Accept: ${createHash('sha1')
        .update(key + MAGIC)
        .digest('base64')}`,
      ...(protocol ? [`Sec-WebSocket-Protocol: ${protocol}`] : []),
      ...(offer ? [`Sec-WebSocket-Extensions: ${EXTENSION}${offer.window}`] : []),
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    opened(new Frames(socket, head, { maxInboundBytes, compression, clock }), offer?.window === '' ? DEFLATED_MESSAGE : MESSAGE);
    return true;
  }
}

/** Without context takeover, a message is compressed once for all clients, and a connection needs no window in memory. */
const EXTENSION = 'permessage-deflate; server_no_context_takeover; client_no_context_takeover';

/**
 * The client's offer that is accepted, and what it says about our window. Our compressed messages need a window of the default
 * size: a client that wants a smaller one gets plain messages, which the extension allows, and may compress its own.
 */
function takenOffer(offers: string = ''): { readonly window: string } | undefined {
  for (const offer of offers.split(',')) {
    const [name, ...parameters] = offer.split(';').map((each) => each.trim().toLowerCase());
    if (name !== 'permessage-deflate' || !parameters.every((each) => TAKEN.test(each))) continue;
    const window = parameters.find((each) => each.startsWith('server_max'));
    return { window: window === undefined ? '' : `; ${window.replaceAll('"', '')}` };
  }
  return undefined;
}

/** The parameters of an offer that we know. */
const TAKEN =
  /^(server_no_context_takeover|client_no_context_takeover|client_max_window_bits|(client|server)_max_window_bits=("?)([89]|1[0-5])\3)$/;

/** Below this size, compression costs more than it saves. */
const COMPRESSION_THRESHOLD_BYTES = 1_024;
/** The WebSocket of Node refuses messages that become longer than this when they are decompressed, but takes longer plain ones. */
const MAX_COMPRESSED_BYTES = 4_194_304;

/**
 * One WebSocket frame per event, for clients that have negotiated permessage-deflate without context takeover. No message depends
 * on earlier ones, so each is compressed once for all clients. Short messages, and those that Node would not accept, stay
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

/** Kept for an event that compression does not make smaller. */
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
