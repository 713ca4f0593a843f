// How the load requests a stream, and how it decodes what it has read.

import { constants, inflateRawSync } from 'node:zlib';

/** What is spoken on the wire. */
export type Protocol = 'websocket' | 'permessage-deflate' | 'socket.io' | 'sse' | 'http';

/** One published event, as a client reads it. */
export interface Received {
  readonly type: string;
  readonly object: unknown;
}

const UPGRADE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

/** Each message is compressed by itself, so that one can be for all. */
const DEFLATE = 'permessage-deflate; server_no_context_takeover; client_no_context_takeover';

const asks = (path: string, headers: readonly string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: 127.0.0.1', ...headers, '', ''].join('\r\n');

/** Returns the request of a protocol. Where there are rooms, a client names the one that it wants to join. */
export function requestOf(protocol: Protocol, room: string | undefined): string {
  const query = room === undefined ? '' : `room=${room}`;
  if (protocol === 'socket.io') return asks(`/socket.io/?EIO=4&transport=websocket&${query}`, UPGRADE);
  return asks(`/watch?${query}`, HEADERS[protocol]);
}

const HEADERS: Readonly<Record<Exclude<Protocol, 'socket.io'>, readonly string[]>> = {
  websocket: UPGRADE,
  'permessage-deflate': [...UPGRADE, `Sec-WebSocket-Extensions: ${DEFLATE}`],
  sse: ['Accept: text/event-stream'],
  http: ['Accept: application/json'],
};

/** Socket.IO's second step: a masked text message that connects to the main namespace, and the beginning of its response. */
export const CONNECT: Uint8Array = Uint8Array.of(0x81, 0x82, 0, 0, 0, 0, 0x34, 0x30);
export const CONNECTED = '40{"sid"';

/** Decodes bytes that begin and end between two events. Throws if they are invalid. */
export function decode(bytes: Buffer, protocol: Protocol): Received[] {
  if (protocol === 'websocket' || protocol === 'permessage-deflate') return messages(bytes).map((text) => JSON.parse(text));
  if (protocol === 'socket.io') return messages(bytes).map(fromPacket);
  const text = dechunk(bytes).toString();
  if (protocol === 'sse') return records(text).map((json) => JSON.parse(json));
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** What permessage-deflate leaves out at the end of each message. */
const DEFLATE_TAIL = Uint8Array.of(0x00, 0x00, 0xff, 0xff);

/** Whole text messages as a server sends them: in one frame, without a mask, compressed or not. */
function messages(bytes: Buffer): string[] {
  const found: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const compressed = bytes[at] === 0xc1;
    if (bytes[at] !== 0x81 && !compressed) throw new Error(`not a whole text message at byte ${at}`);
    let length = bytes.readUInt8(at + 1);
    at += 2;
    if (length === 126) {
      length = bytes.readUInt16BE(at);
      at += 2;
    } else if (length > 126) throw new Error('a message of more than 64 KB, or with a mask');
    if (at + length > bytes.length) throw new Error('the last message is cut off');
    const payload = bytes.subarray(at, at + length);
    found.push(String(compressed ? inflate(payload) : payload));
    at += length;
  }
  return found;
}

function inflate(payload: Buffer): Buffer {
  return inflateRawSync(Buffer.concat([payload, DEFLATE_TAIL]), { finishFlush: constants.Z_SYNC_FLUSH });
}

function fromPacket(text: string): Received {
  if (!text.startsWith('42["event",')) throw new Error(`not an event of Socket.IO: ${text.slice(0, 40)}`);
  return JSON.parse(text.slice(2))[1];
}

function records(text: string): string[] {
  if (!text.endsWith('\n\n')) throw new Error('the last record has no end');
  return text
    .slice(0, -2)
    .split('\n\n')
    .map((record) => {
      const data = record.split('\n').find((line) => line.startsWith('data:'));
      if (data === undefined) throw new Error(`no event: ${record.slice(0, 40)}`);
      return data.slice('data:'.length);
    });
}

function dechunk(bytes: Buffer): Buffer {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\r\n', at);
    const length = Number.parseInt(bytes.toString('latin1', at, end), 16);
    if (end < 0 || !(length > 0)) throw new Error(`no chunk at byte ${at}`);
    chunks.push(bytes.subarray(end + 2, end + 2 + length));
    at = end + 2 + length + 2;
    if (at > bytes.length) throw new Error('the last chunk is cut off');
  }
  return Buffer.concat(chunks);
}
