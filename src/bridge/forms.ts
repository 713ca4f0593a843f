import type { WatchEvent } from '../watch/event.ts';
import { type Envelope, envelopeOf } from './envelope.ts';

/**
 * How an event stands on a transport's wire. A form is a constant: clients that share one share its bytes.
 *
 *     LINE        {...}\n
 *     RECORD      id: 3f9a6c0d.42\ndata: {...}\n\n
 *     MESSAGE     0x81 length {...}                        one WebSocket frame: final, text, from a server and so not masked
 *     chunked(f)  1a4\r\n <a slice in the form f> \r\n     a chunk of HTTP/1.1
 */
export interface Form {
  /** Bytes of one event. */
  size(envelope: Envelope): number;
  /** Writes one event; answers where the next one begins. */
  put(envelope: Envelope, to: Uint8Array, at: number): number;
  /** Whether a slice is one chunk of HTTP/1.1. */
  readonly chunked: boolean;
}

const CR = 0x0d;
const LF = 0x0a;

/** A line per event: the HTTP stream. */
export const LINE: Form = {
  chunked: false,
  size: ({ bytes }) => bytes.length + 1,
  put({ bytes }, to, at) {
    to.set(bytes, at);
    to[at + bytes.length] = LF;
    return at + bytes.length + 1;
  },
};

/** A record per event: Server-Sent Events. What stands before the data is ASCII: as many bytes as characters. */
export const RECORD: Form = {
  chunked: false,
  size: ({ bytes, id }) => bytes.length + DATA.length + 2 + (id === undefined ? 0 : ID.length + id.length + 1),
  put({ bytes, id }, to, at) {
    let next = id === undefined ? at : putText(`${ID}${id}\n`, to, at);
    next = putText(DATA, to, next);
    to.set(bytes, next);
    next += bytes.length;
    to[next] = to[next + 1] = LF;
    return next + 2;
  },
};

const ID = 'id: ';
const DATA = 'data: ';

/** A frame per event: WebSocket. */
export const MESSAGE: Form = {
  chunked: false,
  size: ({ bytes }) => frameSize(bytes),
  put: ({ bytes }, to, at) => putFrame(bytes, to, { at, first: FINAL_TEXT }),
};

const FINAL_TEXT = 0x81;
/** A final text frame whose payload is compressed. */
export const FINAL_DEFLATED_TEXT = 0xc1;

/** Bytes of a frame with this payload. */
export function frameSize(payload: Uint8Array): number {
  const { length } = payload;
  return length + (length < 126 ? 2 : length < 65_536 ? 4 : 10);
}

/** Writes a frame, given its first byte; answers where the next one begins. */
export function putFrame(payload: Uint8Array, to: Uint8Array, { at, first }: { at: number; first: number }): number {
  const { length } = payload;
  to[at] = first;
  let next = at + 2;
  if (length < 126) {
    to[at + 1] = length;
  } else if (length < 65_536) {
    to[at + 1] = 126;
    next = putNumber(length, to, { at: next, bytes: 2 });
  } else {
    to[at + 1] = 127;
    next = putNumber(length, to, { at: next, bytes: 8 });
  }
  to.set(payload, next);
  return next + length;
}

/** The same, each slice one chunk of HTTP/1.1. */
export function chunked(form: Form): Form {
  return { chunked: true, size: form.size, put: form.put };
}

/** A text by itself in a form's stream, such as SSE's `retry:`. */
export function toBytes(text: string, form: Form): Uint8Array {
  const size = text.length;
  const frame = new Frame(size, form.chunked);
  putText(text, frame.bytes, frame.at);
  return frame.bytes;
}

/** A stretch of a batch in a form. */
export interface Slice {
  readonly bytes: Uint8Array;
  /** Where the next slice of the batch begins. */
  readonly to: number;
  /** Events in it that have a place in the stream, and the last place among them (0 for none). */
  readonly events: number;
  readonly sequence: number;
}

/** Slices of so many bytes are written at once: few system calls, and pressure is noticed soon. */
export const SLICE_BYTES = 262_144;

/** Joins the events of a batch from `from` on: at least one, and no more than {@link SLICE_BYTES} if it can be helped. */
export function toSlice(batch: readonly WatchEvent[], from: number, form: Form): Slice {
  const envelopes: Envelope[] = [];
  let size = 0;
  for (let at = from; at < batch.length; at++) {
    const envelope = envelopeOf(batch[at] as WatchEvent);
    const more = form.size(envelope);
    if (size > 0 && size + more > SLICE_BYTES) break;
    size += more;
    envelopes.push(envelope);
  }
  const frame = new Frame(size, form.chunked);
  let { at } = frame;
  let events = 0;
  let sequence = 0;
  for (const envelope of envelopes) {
    at = form.put(envelope, frame.bytes, at);
    if (envelope.sequence === 0) continue;
    events++;
    sequence = Math.max(sequence, envelope.sequence);
  }
  return { bytes: frame.bytes, to: from + envelopes.length, events, sequence };
}

/** Room for so many bytes, and what stands around them. */
class Frame {
  readonly bytes: Uint8Array;
  readonly at: number = 0;

  constructor(size: number, isChunk: boolean) {
    if (!isChunk) {
      this.bytes = allocate(size);
      return;
    }
    const head = `${size.toString(16)}\r\n`;
    this.at = head.length;
    this.bytes = allocate(head.length + size + 2);
    putText(head, this.bytes, 0);
    this.bytes[this.at + size] = CR;
    this.bytes[this.at + size + 1] = LF;
  }
}

/** Node's own kind of bytes where there is Node: its sockets need not wrap them, once per client. */
function allocate(size: number): Uint8Array {
  const { Buffer } = globalThis as { Buffer?: { allocUnsafeSlow?: (size: number) => Uint8Array } };
  return Buffer?.allocUnsafeSlow?.(size) ?? new Uint8Array(size);
}

function putText(ascii: string, to: Uint8Array, at: number): number {
  for (let i = 0; i < ascii.length; i++) to[at + i] = ascii.charCodeAt(i);
  return at + ascii.length;
}

function putNumber(value: number, to: Uint8Array, { at, bytes }: { at: number; bytes: number }): number {
  let rest = value;
  for (let i = at + bytes - 1; i >= at; i--) {
    to[i] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  return at + bytes;
}
