import { NewlineFramer } from '../decode/framing.ts';
import { isWatchError } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';

/** The longest line that is read. */
export const MAX_LINE_BYTES: number = 16 * 1024 * 1024;

/** One line of input: its number from 1, and its bytes, or undefined where it was longer than the limit. */
export interface Line {
  readonly number: number;
  readonly bytes: Uint8Array | undefined;
}

/** How lines are taken. */
export interface LineOptions {
  /** Lines are text, not JSON; a blank one counts. */
  readonly raw: boolean;
  /** For tests; default 16 MiB. */
  readonly maxLineBytes?: number;
}

const LF = 10;
const EMPTY: Uint8Array = new Uint8Array(0);

/**
 * Chunks of bytes become numbered lines. The framer holds the limits; it passes blank lines over without a word, so chunks
 * are fed to it up to one line end at a time: that is how lines are counted as an editor counts them.
 */
export class Lines {
  private readonly framer: NewlineFramer;
  private readonly blanks: boolean;
  private number: number = 1;
  /** The line being read was too long, and that has been told. */
  private told: boolean = false;
  /** Bytes of the line being read have come. */
  private begun: boolean = false;

  constructor(options: LineOptions) {
    this.framer = new NewlineFramer({ maxFrameBytes: options.maxLineBytes ?? MAX_LINE_BYTES });
    this.blanks = options.raw;
  }

  /** The lines that this chunk completes, in order. A line that is too long is told as soon as that is certain. */
  *push(chunk: Uint8Array): Generator<Line, void> {
    for (let from = 0; from < chunk.length; ) {
      const eol = chunk.indexOf(LF, from);
      const to = eol < 0 ? chunk.length : eol + 1;
      this.framer.push(chunk.subarray(from, to));
      const bytes = this.next();
      if (bytes === undefined) yield { number: this.number, bytes };
      this.begun = true;
      if (eol >= 0) {
        if (bytes !== undefined && !this.told && (bytes.length > 0 || this.blanks)) yield { number: this.number, bytes };
        this.number++;
        this.told = false;
        this.begun = false;
      }
      from = to;
    }
  }

  /** The last line, if it has no line end. */
  *end(): Generator<Line, void> {
    const bytes = this.framer.end() ?? EMPTY;
    if (this.begun && !this.told && (bytes.length > 0 || this.blanks)) yield { number: this.number, bytes };
  }

  /** The framer's frame, empty for none; undefined for a line that has just turned out to be too long. */
  private next(): Uint8Array | undefined {
    try {
      return this.framer.next() ?? EMPTY;
    } catch (error) {
      if (!isWatchError(error, 'FRAME_TOO_LARGE')) throw error;
      this.told = true;
      // What is left of the piece belongs to the same line.
      this.framer.next();
      return undefined;
    }
  }
}

/** What a line says: an event and its JSON text, or what is wrong with the line. */
export type Reading = { readonly event: WatchEvent; readonly json: string | undefined } | { readonly fault: string };

const utf8 = new TextDecoder('utf-8', { fatal: true });
const lenient = new TextDecoder();

/**
 * The event in a line. The text is passed on as it was written: numbers keep their digits, and members beside `type` and
 * `object` stay.
 */
export function readLine(line: Line, options: LineOptions): Reading {
  const { bytes } = line;
  if (bytes === undefined) return { fault: `longer than ${options.maxLineBytes ?? MAX_LINE_BYTES} bytes, the limit` };
  if (options.raw) return { event: { type: 'ADDED', object: lenient.decode(bytes) }, json: undefined };
  let text: string;
  try {
    text = utf8.decode(bytes).trim();
  } catch {
    return { fault: `not UTF-8: ${excerpt(lenient.decode(bytes.subarray(0, 400)))}` };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: `not JSON: ${excerpt(text)}` };
  }
  // A CR in JSON can only be white space, but to SSE it is a line end: a space says the same.
  const own = text.replaceAll('\r', ' ');
  if (isEvent(value)) return { event: value, json: own };
  return { event: { type: 'ADDED', object: value }, json: `{"type":"ADDED","object":${own}}` };
}

function isEvent(value: unknown): value is WatchEvent {
  if (typeof value !== 'object' || value === null) return false;
  const { type } = value as { type?: unknown };
  return typeof type === 'string' && type !== '' && Object.hasOwn(value, 'object');
}

/** The start of a text, on one line and without anything that a terminal would act on. */
export function excerpt(text: string): string {
  const shown = text.slice(0, 80).replace(/\p{C}/gu, '.');
  return text.length > 80 ? `${shown}...` : shown;
}
