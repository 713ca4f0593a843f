import type { ReportsDeletion } from '../../broadcast/fold.ts';
import { isTooDeep, MAX_DEPTH } from '../../decode/codec.ts';
import { invalid, isRecord, WatchError } from '../../watch/errors.ts';
import type { WatchEvent } from '../../watch/event.ts';
import { type BookmarkOptions, toBookmark } from '../protocol.ts';

/** The place of an envelope in the stream, and what is known about its text. */
interface EnvelopeInit {
  /** Counts from 1; 0 for an event outside the stream. */
  readonly sequence: number;
  /** The version the event has on the wire, if any. */
  readonly version?: string | undefined;
  /** The `id:` in SSE; default the version. Differs only for an ERROR after which the stream goes on. */
  readonly id?: string | undefined;
  /** The event's JSON text, if known. It is sent as it is. */
  readonly json?: string | undefined;
  /** The encoded text, including the version. */
  readonly bytes?: Uint8Array | undefined;
  /** Whether `coalesce` reports a deletion that it would fold away; default false. */
  readonly reportsDeletion?: boolean | undefined;
  /** Whether the text itself has a `resourceVersion`; default: whether the event has one, if `json` is given. */
  readonly hasOwnVersion?: boolean | undefined;
  /** Who limits the bytes of the events that it keeps. Default: nobody does, because the envelope is not kept. */
  readonly keeper?: Keeper | undefined;
}

/** Limits the bytes of the events that it keeps. */
export interface Keeper {
  /** An envelope holds this many bytes more than when it was created. */
  grew(envelope: Envelope, bytes: number): void;
}

/**
 * An event on its way to clients: the event, its place in the stream, and its encoded text. It is encoded once, when it is
 * published, whatever the number of clients and transports. An event that JSON cannot represent therefore fails for its publisher
 * only.
 *
 *     {"type":"ADDED","object":{...},"resourceVersion":"3f9a6c0d.42"}
 */
export class Envelope implements WatchEvent, ReportsDeletion {
  readonly type: string;
  readonly object: unknown;
  readonly sequence: number;
  readonly version: string | undefined;
  readonly id: string | undefined;
  readonly bytes: Uint8Array;
  /** Clients may know the object from a snapshot that was ahead of its ADDED event, so `coalesce` must report its deletion. */
  readonly reportsDeletion: boolean;
  /** Its text itself has a `resourceVersion`, as that of an event from another hub. It is not a position in this stream. */
  readonly hasOwnVersion: boolean;
  /** The compressed bytes, created on first use; empty if they would be no fewer. */
  deflated: Uint8Array | undefined = undefined;
  private readonly keeper: Keeper | undefined;

  /**
   * @throws {WatchError} INVALID_ARGUMENT for null, undefined, a type that is not a non-empty string, or a text or object that is
   * nested deeper than 10,000 levels; TypeError for an object that JSON cannot represent, such as a cycle.
   */
  constructor(event: WatchEvent, place: EnvelopeInit) {
    const { type, object } = checked(event);
    this.type = type;
    this.object = object;
    this.sequence = place.sequence;
    this.version = place.version;
    this.id = place.id ?? place.version;
    this.reportsDeletion = place.reportsDeletion ?? false;
    this.hasOwnVersion = place.hasOwnVersion ?? (place.json !== undefined && Object.hasOwn(event, 'resourceVersion'));
    this.bytes = place.bytes ?? encoder.encode(opened(event, place.json) + end(this));
    this.keeper = place.keeper;
  }

  /** The bytes that it keeps in memory, besides the object. */
  get heldBytes(): number {
    return this.bytes.length + (this.deflated?.length ?? 0);
  }

  /** Keeps the compressed bytes, for all clients that take them. */
  keepDeflated(deflated: Uint8Array): void {
    this.deflated = deflated;
    if (deflated.length > 0) this.keeper?.grew(this, deflated.length);
  }

  /** Returns the same event with another version, or none. The rest of its text is unchanged. */
  relabelled(version: string | undefined): Envelope {
    const { sequence, hasOwnVersion } = this;
    const text = this.bytes.subarray(0, this.bytes.length - end(this).length);
    const tail = encoder.encode(end({ version, hasOwnVersion }));
    const bytes = new Uint8Array(text.length + tail.length);
    bytes.set(text);
    bytes.set(tail, text.length);
    return new Envelope(this, { sequence, version, bytes, hasOwnVersion });
  }
}

const encoder = new TextEncoder();

/** Throws FRAME_TOO_LARGE if the text of an event, or of an object, is longer than clients accept. */
export function checkSize(what: string, bytes: number, limit: number): void {
  if (bytes <= limit) return;
  throw new WatchError('FRAME_TOO_LARGE', `${what} has ${bytes} bytes as JSON, more than maxEventBytes (${limit})`, { limit });
}

/** Returns an event, if it is one. */
function checked(event: WatchEvent): WatchEvent {
  if (event === undefined || event === null) throw invalid('event', event, 'an event, whose type is a string');
  const { type } = event;
  if (typeof type !== 'string' || type === '') throw invalid('event.type', type, 'a non-empty string');
  return event;
}

/**
 * Returns an event as JSON on one line, without a version. `json` is its text, if that is known. Throws what the constructor of
 * {@link Envelope} throws.
 */
export function toText(event: WatchEvent, json: string | undefined): string {
  return `${opened(checked(event), json)}}`;
}

function opened(event: WatchEvent, json: string | undefined): string {
  return json === undefined ? stringify(event) : open(json);
}

/**
 * Returns the envelope of an event from a hub's watch. That is the event itself; or a new envelope, for a copy whose type
 * `coalesce` changed (with its place, and the rest of its text), and for the ERROR of a cut watch (outside the stream).
 */
export function envelopeOf(event: WatchEvent & Partial<EnvelopeInit>): Envelope {
  if (event instanceof Envelope) return event;
  const { sequence = 0, version, bytes, hasOwnVersion } = event;
  return new Envelope(event, { sequence, version, hasOwnVersion, bytes: bytes && retyped(bytes, event.type) });
}

/** A BOOKMARK for one client: it says where the stream is, and has no place in it. */
export function bookmarkOf(version: string, options: BookmarkOptions): Envelope {
  return new Envelope(toBookmark(version, options), { sequence: 0, version });
}

/**
 * Returns an event as JSON on one line, without the last brace. An object that JSON cannot represent, such as undefined, becomes
 * null, because an event always has both members.
 */
function stringify({ type, object }: WatchEvent): string {
  const text = `{"type":${JSON.stringify(type)},"object":${JSON.stringify(object) ?? 'null'}`;
  // Node 26 writes objects of any depth, which receivers refuse.
  if (isTooDeep(text)) throw invalid('object', object, `at most ${MAX_DEPTH} levels of objects and lists`);
  return text;
}

/** Returns an event's JSON text without its last brace. Anything else would end all clients, again and again. */
function open(json: string): string {
  if (!isEventText(json)) throw invalid('json', json, 'the JSON text of an event');
  // In JSON a line break can only be white space; on the wire it would end the event.
  const line = /[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, ' ') : json;
  return line.slice(0, line.lastIndexOf('}'));
}

function isEventText(json: string): boolean {
  if (typeof json !== 'string') return false;
  if (isTooDeep(json)) throw invalid('json', json, `at most ${MAX_DEPTH} levels of objects and lists`);
  try {
    const event: unknown = JSON.parse(json);
    return isRecord(event) && typeof event.type === 'string' && event.type !== '' && 'object' in event;
  } catch {
    return false;
  }
}

/**
 * Appends the version as the last member: of two members with the same name, JSON parsers keep the last. An empty one is none.
 * ASCII.
 */
function end({ version, hasOwnVersion }: Pick<Envelope, 'version' | 'hasOwnVersion'>): string {
  return version === undefined && !hasOwnVersion ? '}' : `,"resourceVersion":"${version ?? ''}"}`;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const decoder = new TextDecoder();

/** Returns the JSON text of an event with another type. The rest of it stays as it was written. */
export function retyped(json: Uint8Array, type: string): Uint8Array {
  const { from, to } = typeIn(json) ?? {};
  if (from === undefined || to === undefined) return json;
  const value = encoder.encode(JSON.stringify(type));
  const bytes = new Uint8Array(json.length - (to - from) + value.length);
  bytes.set(json.subarray(0, from));
  bytes.set(value, from);
  bytes.set(json.subarray(to), from + value.length);
  return bytes;
}

/** Where the value of the member `type` is. Of two members with the same name, JSON parsers keep the last. */
function typeIn(json: Uint8Array): { readonly from: number; readonly to: number } | undefined {
  let found: { readonly from: number; readonly to: number } | undefined;
  let depth = 0;
  let isName = false;
  let isType = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) {
      const to = endOfString(json, at);
      if (depth === 1 && isName) isType = JSON.parse(decoder.decode(json.subarray(at, to))) === 'type';
      else if (depth === 1 && isType) found = { from: at, to };
      isName = false;
      at = to - 1;
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) isName = ++depth === 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
    else if (byte === COMMA) isName = depth === 1;
  }
  return found;
}

function endOfString(json: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}

/** The head of the stream before a batch was read: everything up to it has been read. */
interface Read {
  readonly head: number;
  readonly version: string;
}

/**
 * Assigns versions to a batch of a `coalesce` watch from which a client can resume without a gap.
 *
 * A folded event is at the place of its object's *first* unseen change, but has the version of its *last*:
 *
 *     happened   a.1 b.2 a.3        read as   a.3 b.2        resuming after 3 would miss b.2
 *
 * So in a folded batch only the last event has a version: that of the latest change in the batch. A client that is cut off within
 * the batch resumes before it. A batch that was not folded (consecutive numbers) is returned unchanged.
 *
 *     happened   a.1 b.2 -a.3       read as   b.2            resuming after 2 would send -a.3, for an unknown object
 *
 * The latest change may have been folded away together with the one that it undid. So the version is that of the head up to which
 * the batch was read, if that is known.
 *
 * An ERROR in the batch keeps its own version: nothing is folded across it, so a client can resume there. And an ERROR without a
 * version, which ends a connection, is always the server's.
 */
export function toResumable(
  batch: readonly WatchEvent[],
  { after, read }: { after: number; read?: Read | undefined },
): readonly WatchEvent[] {
  let next = after + 1;
  if (batch.every((event) => event instanceof Envelope && event.sequence === next++)) return batch;
  const envelopes = batch.map(envelopeOf);
  const places = envelopes.filter(({ sequence }) => sequence > 0);
  const latest = places.reduce<Envelope | undefined>((a, b) => (a === undefined || b.sequence > a.sequence ? b : a), undefined);
  const last = places.at(-1);
  const through = read !== undefined && latest !== undefined && read.head > latest.sequence ? read.version : latest?.version;
  return envelopes.map((envelope) => {
    const version = envelope === last ? through : envelope.type === 'ERROR' ? envelope.version : undefined;
    if (envelope.version === version) return envelope;
    return envelope.relabelled(version);
  });
}
