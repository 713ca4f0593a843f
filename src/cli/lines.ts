import { isTooDeep, MAX_DEPTH } from '../decode/codec.ts';
import { NewlineFramer } from '../decode/framing.ts';
import { excerpt } from '../pages/words.ts';
import { isWatchError, tried } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';

/** The longest line that is accepted. */
export const MAX_LINE_BYTES: number = 16 * 1024 * 1024;

/** One line of input: its number, from 1, and its bytes; undefined if it was too long. */
export interface InputLine {
  readonly number: number;
  readonly bytes: Uint8Array | undefined;
}

export interface LineOptions {
  /** Lines are text rather than JSON, and blank lines count. */
  readonly raw: boolean;
  /** For tests; default 16 MiB. */
  readonly maxLineBytes?: number;
}

const LF = 10;
const CR = 13;
const EMPTY: Uint8Array = new Uint8Array(0);

/** Blank lines are lines, too. */
class EveryLine extends NewlineFramer {
  protected override strip(line: Uint8Array): Uint8Array {
    const stripped = super.strip(line);
    if (stripped !== undefined) return stripped;
    let end = line.length;
    if (line[end - 1] === LF) end--;
    if (line[end - 1] === CR) end--;
    return line.subarray(0, end);
  }
}

/**
 * Splits chunks of bytes into numbered lines. The framer enforces the limits, but skips blank lines silently unless they count. So
 * chunks are fed to it up to one line terminator at a time, which makes the numbers those of an editor.
 */
export class InputLines {
  private readonly framer: NewlineFramer;
  private readonly blanks: boolean;
  private number: number = 1;
  /** The current line was too long, and has been reported. */
  private told: boolean = false;
  /** Bytes of the current line have arrived. */
  private begun: boolean = false;

  constructor(options: LineOptions) {
    const limit = { maxFrameBytes: options.maxLineBytes ?? MAX_LINE_BYTES };
    this.framer = options.raw ? new EveryLine(limit) : new NewlineFramer(limit);
    this.blanks = options.raw;
  }

  /** Returns the lines that this chunk completes, in order. A line that is too long is reported as soon as that is certain. */
  *push(chunk: Uint8Array): Generator<InputLine, void> {
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

  /** Returns the last line, if it has no terminator. */
  *end(): Generator<InputLine, void> {
    const bytes = this.framer.end() ?? EMPTY;
    if (this.begun && !this.told && (bytes.length > 0 || this.blanks)) yield { number: this.number, bytes };
  }

  /** Returns the framer's frame, or an empty one; undefined for a line that has just become too long. */
  private next(): Uint8Array | undefined {
    try {
      return this.framer.next() ?? EMPTY;
    } catch (error) {
      if (!isWatchError(error, 'FRAME_TOO_LARGE')) throw error;
      this.told = true;
      // The rest of the piece belongs to the same line.
      this.framer.next();
      return undefined;
    }
  }
}

/** An event and its JSON text. */
export interface LineEvent {
  readonly event: WatchEvent;
  readonly json: string;
  /** The line was not UTF-8, and so is not passed on as it was. */
  readonly replaced?: boolean;
}

export interface LineFault {
  readonly fault: string;
  /** A JSON value begins in it and continues on the next one. */
  readonly opens?: boolean;
}

/** The content of a line, or what is wrong with it. */
type ReadLine = LineEvent | LineFault;

const utf8 = new TextDecoder('utf-8', { fatal: true });
const lenient = new TextDecoder();

/**
 * Returns the event in a line. The text is passed on as it was written: numbers keep their digits, and members besides `type` and
 * `object` stay.
 */
export function readLine(line: InputLine, options: LineOptions): ReadLine {
  const { bytes } = line;
  if (bytes === undefined) return { fault: `longer than the limit of ${options.maxLineBytes ?? MAX_LINE_BYTES} bytes` };
  if (options.raw) {
    const whole = tried(() => utf8.decode(bytes));
    const object = whole ?? lenient.decode(bytes);
    const json = `{"type":"ADDED","object":${JSON.stringify(object)}}`;
    return { event: { type: 'ADDED', object }, json, ...(whole === undefined && { replaced: true }) };
  }
  const text = tried(() => utf8.decode(bytes).trim());
  if (text === undefined) return { fault: `not UTF-8: ${excerpt(lenient.decode(bytes.subarray(0, 400)))}` };
  const value: unknown = tried(() => JSON.parse(text));
  if (value === undefined) {
    // Programs that print for people put an opening bracket on a line of its own.
    return { fault: `not JSON: ${excerpt(text)}`, ...(/^(\[|\{|\[\{)$/.test(text) && { opens: true }) };
  }
  // In JSON a CR can only be white space, but SSE treats it as the end of a line. A space is equivalent.
  const own = text.replaceAll('\r', ' ');
  const event = isEvent(value) ? value : { type: 'ADDED', object: value };
  const json = event === value ? own : `{"type":"ADDED","object":${own}}`;
  return isTooDeep(json) ? { fault: `nested deeper than ${MAX_DEPTH} levels: ${excerpt(text)}` } : { event, json };
}

function isEvent(value: unknown): value is WatchEvent {
  if (typeof value !== 'object' || value === null) return false;
  const { type } = value as { type?: unknown };
  return typeof type === 'string' && type !== '' && Object.hasOwn(value, 'object');
}

/**
 * Characters that JSON does not escape but a terminal may act on: 0x9b begins a sequence, like ESC and [; others reverse the
 * line.
 */
const ACTS = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** JSON with the same meaning that has no effect on a terminal. */
export function harmless(json: string): string {
  return json.replace(ACTS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A text of several lines without characters that a terminal would act on. */
export function printable(text: string): string {
  return text.replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, '.');
}

/** Why a server could not be reached. Says what to do where OpenSSL's message does not. */
export function hinted(message: string): string {
  if (/wrong version number/.test(message)) return 'the server does not speak TLS here: try an http: URL';
  if (/unable to (verify|get)\b.*\b(certificate|cert)\b|self.signed certificate/.test(message))
    return `${message}: NODE_EXTRA_CA_CERTS may name a file with the CA to trust`;
  return message;
}

/** A URL for a message, which often ends up in a log. */
export function withoutSecret(url: URL): string {
  const shown = new URL(url);
  shown.username = shown.password = '';
  return shown.href;
}
