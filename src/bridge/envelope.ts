import { invalid } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import { toBookmark } from './protocol.ts';

/** Where an envelope stands, and what is known of its text. */
export interface Place {
  /** Counts from 1; 0 for what has no place in the stream. */
  readonly sequence: number;
  /** The version that the event bears on the wire, if it bears one. */
  readonly version?: string | undefined;
  /** What SSE's `id:` says; default the version. Only an ERROR that a stream goes on after says more than it bears. */
  readonly id?: string | undefined;
  /** The event as JSON, if somebody has it: passed on as it is written. */
  readonly json?: string | undefined;
  /** The same, in bytes and with the version. */
  readonly bytes?: Uint8Array | undefined;
}

/**
 * An event on its way to clients: the event, its place in the stream, and its text in bytes. These are made once, when it is
 * published: however many clients there are and whichever transport they use, and so that an event that cannot be written as
 * JSON is its publisher's trouble and nobody else's.
 *
 *     {"type":"ADDED","object":{...},"resourceVersion":"3f9a6c0d.42"}
 */
export class Envelope implements WatchEvent {
  readonly type: string;
  readonly object: unknown;
  readonly sequence: number;
  readonly version: string | undefined;
  readonly id: string | undefined;
  readonly bytes: Uint8Array;
  /** The bytes after compression: made once, by the first who wants them. */
  deflated: Uint8Array | undefined = undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for null and undefined, and for a type that is no word; TypeError for an object that JSON cannot say, such as a cycle. */
  constructor(event: WatchEvent, place: Place) {
    if (event === undefined || event === null) throw invalid('event', event, 'an event');
    const { type, object } = event;
    if (typeof type !== 'string' || type === '') throw invalid('event.type', type, 'a string that is not empty');
    this.type = type;
    this.object = object;
    this.sequence = place.sequence;
    this.version = place.version;
    this.id = place.id ?? place.version;
    this.bytes =
      place.bytes ?? encoder.encode((place.json === undefined ? stringify(event) : open(place.json)) + end(place.version));
  }

  /** The same event with another version, or none, its text otherwise as it was written. */
  relabelled(version: string | undefined): Envelope {
    const text = this.bytes.subarray(0, this.bytes.length - end(this.version).length);
    const tail = encoder.encode(end(version));
    const bytes = new Uint8Array(text.length + tail.length);
    bytes.set(text);
    bytes.set(tail, text.length);
    return new Envelope(this, { sequence: this.sequence, version, bytes });
  }
}

const encoder = new TextEncoder();

/**
 * The envelope of whatever a hub's watch hands out: itself; a new one for the copy that `coalesce` gave another type (it has
 * its place, and its own bytes); and for the ERROR event of a cut watch, which has no place in the stream.
 */
export function envelopeOf(event: WatchEvent & Partial<Place>): Envelope {
  if (event instanceof Envelope) return event;
  return new Envelope(event, { sequence: event.sequence ?? 0, version: event.version });
}

/** A BOOKMARK for one client: it says where the stream is, and has no place in it. */
export function bookmarkOf(version: string, options?: { initialEventsEnd: true }): Envelope {
  return new Envelope(toBookmark(version, options), { sequence: 0, version });
}

/** JSON of one line, without its last brace. An object that JSON has no word for, such as undefined, is null: an event always has its two fields. */
function stringify({ type, object }: WatchEvent): string {
  return `{"type":${JSON.stringify(type)},"object":${JSON.stringify(object) ?? 'null'}`;
}

/** A text without its last brace. */
function open(json: string): string {
  // A line end in JSON can only be white space; on the wire it would end the event.
  const line = /[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, ' ') : json;
  const end = line.lastIndexOf('}');
  if (end < 0) throw invalid('json', json, 'the JSON text of an event');
  return line.slice(0, end);
}

/** The version stands behind the last member: of two members of one name, readers of JSON take the last. ASCII. */
function end(version: string | undefined): string {
  return version === undefined ? '}' : `,"resourceVersion":"${version}"}`;
}
