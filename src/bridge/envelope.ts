import type { WatchEvent } from '../watch/event.ts';

/**
 * An event on its way to clients: the event, its place in the stream, and its bytes, which are made once however many clients
 * there are and whichever transport they use:
 *
 *     id: 3f9a6c0d.42\n data: {"type":"ADDED","object":{}} \n \n
 *                            |<-------- message -------->|
 *                            |<----------- line ----------->|
 *     |<------------------------- record ---------------------->|
 *
 * A WebSocket sends `message`, an HTTP stream `line`, SSE `record`: three views of one buffer.
 */
export class Envelope implements WatchEvent {
  readonly type: string;
  readonly object: unknown;
  /** The place in the stream: 1 for the first event of this epoch. */
  readonly sequence: number;
  /** The version on the wire. */
  readonly version: string;
  private readonly json: string | undefined;
  private made: Frame | undefined = undefined;

  constructor(event: WatchEvent, place: { sequence: number; version: string; json?: string | undefined }) {
    this.type = event.type;
    this.object = event.object;
    this.sequence = place.sequence;
    this.version = place.version;
    this.json = place.json;
  }

  get frame(): Frame {
    this.made ??= toFrame(this.json ?? stringify(this), this.version);
    return this.made;
  }
}

/** The bytes of one event; see {@link Envelope}. */
export interface Frame {
  readonly message: Uint8Array;
  readonly line: Uint8Array;
  readonly record: Uint8Array;
}

const encoder = new TextEncoder();

/**
 * The bytes of whatever a hub's watch hands out: an envelope; the copy of one that `coalesce` gave another type (it has the
 * version, and its own bytes); or the ERROR event of a cut watch, which has no place in the stream and so no version.
 */
export function frameOf(event: WatchEvent & { readonly version?: string }): Frame {
  return event instanceof Envelope ? event.frame : toFrame(stringify(event), event.version);
}

/** JSON of one line. An object that JSON has no word for, such as undefined, is null: an event always has its two fields. */
function stringify(event: WatchEvent): string {
  return JSON.stringify({ type: event.type, object: event.object ?? null });
}

function toFrame(json: string, version: string | undefined): Frame {
  const head = version === undefined ? 'data: ' : `id: ${version}\ndata: `;
  const record = encoder.encode(`${head}${json}\n\n`);
  // The head is ASCII: as many bytes as characters.
  return { record, line: record.subarray(head.length, -1), message: record.subarray(head.length, -2) };
}
