/**
 * JSON from the wire. Its bytes are limited before they get here; this limits its nesting before it is parsed, since code that
 * walks an object later is recursive, and its parts, since an empty object takes far longer than its two bytes suggest. Of members with the same name, the last counts, and a caller can ask for them; the text is
 * never used again, so no two readers can see different ones. A member `__proto__` is a member like any other. A number that
 * JavaScript would change, as it may an int64 beyond 2^53, is refused: clients in other languages keep it, so nobody would notice
 * the loss.
 */

import { parsing, walking } from '../../storage/json.ts';
import { refused } from '../../storage/statuses.ts';
import { atOnce, STRIDE, type Work } from '../../watch/fair-queue.ts';
import { badRequest } from '../api-status.ts';
import { duplicateFields, membersIn } from './duplicates.ts';
import type { FieldPaths } from './field-paths.ts';

/** The deepest nesting of objects and lists. */
export const MAX_DEPTH = 128;
/** The most members, objects and lists together. */
export const MAX_PARTS = 102_400;
/** The most members of one object: each costs many times what it does in a small object. */
export const MAX_KEYS = 65_536;

const utf8 = new TextDecoder('utf-8', { fatal: true });

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** What the bytes of a JSON text show before it is parsed. */
export interface Extent {
  /** How deep its objects and lists are nested. */
  readonly depth: number;
  /** How many members are written in it. */
  readonly members: number;
  /** How many objects and lists. */
  readonly containers: number;
  /** The most members of one object. */
  readonly widest: number;
}

/** Measures a JSON text, up to the first object or list that is deeper than `limit`. */
export function* extentOf(bytes: Uint8Array, limit: number = Number.POSITIVE_INFINITY): Work<Extent> {
  let [depth, deepest, members, containers, widest, inText, next] = [0, 0, 0, 0, 0, false, PIECE_BYTES];
  /** The members of the open objects and lists so far. */
  const open: number[] = [0];
  for (let at = 0; at < bytes.length && deepest <= limit; at++) {
    if (at >= next) {
      next = at + PIECE_BYTES;
      yield;
    }
    const byte = bytes[at];
    if (inText) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === 0x7b || byte === 0x5b) {
      containers++;
      if (++depth > deepest) deepest = depth;
      open[depth] = 0;
    } else if (byte === 0x7d || byte === 0x5d) depth--;
    else if (byte === 0x3a) {
      members++;
      open[depth] = (open[depth] ?? 0) + 1;
      widest = Math.max(widest, open[depth] as number);
    }
  }
  return { depth: deepest, members, containers, widest };
}

/** How much is read in one step. */
const PIECE_BYTES = 65_536;

/**
 * Parses a body. Throws 400 for one that is not JSON in UTF-8, too deep, or with a number that cannot be kept, and 413 for one with
 * too many parts. `again`, if given, is called with the members that occur more than once.
 */
export function* parsingBody(bytes: Uint8Array, again?: (duplicates: FieldPaths) => void): Work<unknown> {
  const { depth, members, containers, widest } = yield* extentOf(bytes, MAX_DEPTH);
  if (depth > MAX_DEPTH) throw tooDeep();
  if (members + containers > MAX_PARTS || widest > MAX_KEYS) throw tooManyParts();
  let [text, value]: [string, unknown] = ['', undefined];
  try {
    text = utf8.decode(bytes);
    if (bytes.length > PIECE_BYTES) yield;
    value = yield* parsing(text);
  } catch {
    throw badRequest('the body is not JSON in UTF-8');
  }
  if (bytes.length > PIECE_BYTES) yield;
  const lost = (yield* mayBeLossy(text)) ? yield* lossyNumber(text) : undefined;
  if (lost !== undefined) throw badRequest(`the number ${lost.slice(0, MAX_SHOWN)} cannot be kept as it is: send it as a string`);
  if (bytes.length > PIECE_BYTES) yield;
  if (again && (yield* membersIn(value)) !== members) again(yield* duplicateFields(text));
  return value;
}

/** The same at a stretch. */
export function parseJson(bytes: Uint8Array, again?: (duplicates: FieldPaths) => void): unknown {
  return atOnce(parsingBody(bytes, again));
}

/** The refusal of what is nested too deeply. */
export function tooDeep(): Error {
  return badRequest(`the body is nested deeper than ${MAX_DEPTH} levels`);
}

/** Throws 413 for a value with more than twice as many parts as a body may have: patches can add what no body could have. */
export function* checkingParts(value: unknown): Work<void> {
  let left = 2 * MAX_PARTS;
  yield* walking(value, (names) => {
    left -= 1 + (names?.length ?? 0);
    if (left < 0 || (names && names.length > MAX_KEYS)) throw tooManyParts(2 * MAX_PARTS);
  });
}

function tooManyParts(most: number = MAX_PARTS): Error {
  const limit = `${most} members, objects and lists, and of ${MAX_KEYS} members of one object`;
  return refused(413, 'RequestEntityTooLarge', `the object exceeds the limit of ${limit}`);
}

/** Matches every number that cannot be kept, and few others: a quick check for bodies without any. */
const LONG_NUMBER = /[0-9]{16}|[0-9][eE]\+?[0-9]{3}/;
const LONG_NUMBER_CHARS = 16;
/** Longer integers are no int64, but floating point everywhere. */
const LONG_INTEGER = /^-?[0-9]{16,21}$/;
const MAX_SHOWN = 40;

function* mayBeLossy(text: string): Work<boolean> {
  if (text.length <= PIECE_BYTES) return LONG_NUMBER.test(text);
  for (let at = 0; at < text.length; at += PIECE_BYTES) {
    if (LONG_NUMBER.test(text.slice(at, at + PIECE_BYTES + LONG_NUMBER_CHARS))) return true;
    yield;
  }
  return false;
}

/** The first number of a JSON text that would be changed: an integer, or one beyond the range of numbers. */
function* lossyNumber(text: string): Work<string | undefined> {
  let steps = 0;
  for (let at = 0; at < text.length; at++) {
    const quote = text.indexOf('"', at);
    const outside = text.slice(at, quote < 0 ? undefined : quote);
    for (const [token] of outside.matchAll(/-?[0-9][0-9.eE+-]*/g)) {
      const value = Number(token);
      if (!Number.isFinite(value) || (LONG_INTEGER.test(token) && Math.abs(value) < 1e21 && String(value) !== token))
        return token;
      if (++steps % STRIDE === 0) yield;
    }
    if (quote < 0) return undefined;
    for (at = quote + 1; text.charCodeAt(at) !== QUOTE; at++) {
      if (text.charCodeAt(at) === BACKSLASH) at++;
      if (++steps % PIECE_BYTES === 0) yield;
    }
  }
  return undefined;
}

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** Whether a value is a JSON object: no list, and not null. */
export function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
