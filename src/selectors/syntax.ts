import { WatchError, wholeNumber } from '../watch/errors.ts';
import { checkOptions } from '../watch/options.ts';

/** The longest text that a selector is parsed from, in characters, unless the caller says otherwise. */
export const MAX_SELECTOR_CHARS = 65_536;

/** Options of the parsers of selectors. */
export interface ParseOptions {
  /** The longest text to accept, in characters. It is refused before any of it is looked at. Default 65,536. */
  readonly maxChars?: number | undefined;
}

/** What is wrong with a text: where, counted from its start, and what is expected instead. */
export interface Fault {
  readonly at: number;
  readonly expected: string;
}

/** How many characters of the text a message shows on each side of the place that is wrong. */
const SHOWN = 40;

/**
 * Creates an INVALID_SELECTOR error that points at the character:
 *
 *     label selector: expected "," or ")" at character 8, got "c"
 *       a in (b c)
 *               ^
 *
 * Characters count from 1 in the message, because people read it, and from 0 in `position`, because programs do. Of a long text
 * only the surroundings are shown; control characters appear as spaces, so that the text cannot forge lines of a log.
 */
export function selectorError(kind: string, text: string, { at, expected }: Fault): WatchError {
  const from = Math.max(0, at - SHOWN);
  const before = from > 0 ? '…' : '';
  const after = text.length > at + SHOWN ? '…' : '';
  const shown = `${before}${printable(text.slice(from, at + SHOWN))}${after}`;
  const caret = `${' '.repeat(before.length + at - from)}^`;
  const got = at < text.length ? shownCharacter(text.charAt(at)) : 'the end';
  const message = `${kind}: expected ${expected} at character ${at + 1}, got ${got}\n  ${shown}\n  ${caret}`;
  return new WatchError('INVALID_SELECTOR', message, { position: at });
}

/** Throws INVALID_SELECTOR for a text that is too long, and INVALID_ARGUMENT for anything but a string. */
export function checkText(kind: string, text: string, options: ParseOptions): void {
  const maxChars = wholeNumber('maxChars', checkOptions(options, ['maxChars']).maxChars ?? MAX_SELECTOR_CHARS);
  if (typeof text !== 'string') throw new WatchError('INVALID_ARGUMENT', `${kind}: expected a string, got ${typeof text}`);
  if (text.length <= maxChars) return;
  const message = `${kind}: expected at most ${maxChars} characters, got ${text.length}`;
  throw new WatchError('INVALID_SELECTOR', message, { limit: maxChars, position: maxChars });
}

function shownCharacter(character: string): string {
  if (printable(character) === character) return JSON.stringify(character);
  return `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}

function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be printed
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, ' ');
}

/**
 * Compares by code unit, as `sort()` does, but explicitly where it matters. Label text is ASCII, so it is also the order of its
 * bytes.
 */
export function byCodeUnit(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
