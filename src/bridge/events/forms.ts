import type { WatchEvent } from '../../watch/event.ts';
import { type Envelope, envelopeOf } from './envelope.ts';

/**
 * The wire format of events on a transport. Forms are constants: clients with the same form share its bytes.
 *
 *     LINE        {...}\n
 *     RECORD      id: 3f9a6c0d.42\ndata: {...}\n\n
 *     MESSAGE     0x81 length {...}                        one WebSocket frame: final, text, unmasked (from a server)
 *     chunked(f)  1a4\r\n <a slice in the form f> \r\n     an HTTP/1.1 chunk
 *
 * A form of your own reads two members of an envelope: `bytes`, the event's JSON in UTF-8, and `id`, its version as a string.
 */
export interface Form {
  /** Returns the size of one event in bytes. */
  size(envelope: Envelope): number;
  /** Writes one event. Returns where the next one starts. */
  put(envelope: Envelope, to: Uint8Array, at: number): number;
  /** Whether a slice is one HTTP/1.1 chunk. */
  readonly chunked: boolean;
}

const CR = 0x0d;
const LF = 0x0a;

/** One line per event: the HTTP stream. */
export const LINE: Form = {
  chunked: false,
  size: ({ bytes }) => bytes.length + 1,
  put({ bytes }, to, at) {
    to.set(bytes, at);
    to[at + bytes.length] = LF;
    return at + bytes.length + 1;
  },
};

/** One record per event: Server-Sent Events. The text before the data is ASCII, one byte per character. */
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

/** One frame per event: WebSocket. */
export const MESSAGE: Form = {
  chunked: false,
  size: ({ bytes }) => frameSize(bytes),
  put: ({ bytes }, to, at) => putFrame(bytes, to, { at, first: FINAL_TEXT }),
};

const FINAL_TEXT = 0x81;
/** A final text frame whose payload is compressed. */
export const FINAL_DEFLATED_TEXT = 0xc1;

/** Returns the size of a frame with this payload. */
export function frameSize(payload: Uint8Array): number {
  const { length } = payload;
  return length + (length < 126 ? 2 : length < 65_536 ? 4 : 10);
}

/** Writes a frame, given its first byte. Returns where the next one starts. */
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

/** Returns the same form with each slice as one HTTP/1.1 chunk. */
export function chunked(form: Form): Form {
  return { chunked: true, size: form.size, put: form.put };
}

/** Encodes a separate text of a form's stream, such as SSE's `retry:`. ASCII only. */
export function toBytes(text: string, form: Form): Uint8Array {
  const size = text.length;
  const frame = new Frame(size, form.chunked);
  putText(text, frame.bytes, frame.at);
  return frame.bytes;
}

/** Part of a batch, encoded in a form. */
export interface Slice {
  readonly bytes: Uint8Array;
  /** Index of the first event after this slice. */
  readonly to: number;
  /** Number of events in it that belong to the stream, and the highest sequence of these (0 if there are none). */
  readonly events: number;
  readonly sequence: number;
}

/** The size of a slice, in bytes. Large enough for few system calls, small enough to notice backpressure soon. */
export const SLICE_BYTES = 262_144;

/** Encodes the events of a batch from `from` on: at least one, and otherwise no more than {@link SLICE_BYTES}. */
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

/** A buffer for `size` bytes and the chunk framing around them. */
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

/** Allocates a Buffer in Node, whose sockets would otherwise wrap the bytes once per client. */
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

interface Made {
  readonly from: number;
  readonly form: Form;
  readonly slice: Slice;
}

/**
 * The slices made in one round of flushes. Clients in step read the same batch, and are sent the same bytes. Batches and their
 * bytes are forgotten at the end of the round.
 */
export class Slices {
  private readonly made: Map<readonly WatchEvent[], Made[]> = new Map();
  private last: (Made & { readonly batch: readonly WatchEvent[] }) | undefined;

  /** Returns the slice of a batch that starts at `from`. */
  of(batch: readonly WatchEvent[], from: number, form: Form): Slice {
    const { last } = this;
    if (last !== undefined && last.batch === batch && last.from === from && last.form === form) return last.slice;
    const made = this.made.get(batch) ?? [];
    this.made.set(batch, made);
    let one = made.find((each) => each.from === from && each.form === form);
    if (one === undefined) {
      one = { from, form, slice: toSlice(batch, from, form) };
      made.push(one);
    }
    this.last = { ...one, batch };
    return one.slice;
  }

  clear(): void {
    this.last = undefined;
    if (this.made.size > 0) this.made.clear();
  }
}
