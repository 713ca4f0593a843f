/**
 * The `continue` of a list: at which revision it is read, and from which key on. The key is relative to the scope, so that a token
 * from a stranger cannot reach out of it. The same text as upstream's, and how many items are left.
 *
 *     { revision: '7', start: 'b\0', left: 3 } <---> base64url of {"v":"meta.k8s.io/v1","rv":7,"start":"b\u0000","left":3}
 *
 * Upstream: `storage/continue.go`.
 */
import { checkKey, MAX_KEY_CHARS } from './keys.ts';
import { badRequest } from './statuses.ts';

/** Where a list goes on. */
export interface Continuation {
  /** The revision of all pages; undefined for the newest, after the first pages' revision was forgotten. */
  readonly revision: string | undefined;
  /** The smallest key of the next page, relative to the scope. */
  readonly start: string;
  /** How many items follow, if the page before has counted: then no page has to count again. */
  readonly left?: number | undefined;
}

const VERSION = 'meta.k8s.io/v1';
/** A character of a key becomes at most 6 of JSON, and 3 of UTF-8 4 of base64. */
const MAX_TOKEN_CHARS = 8 * MAX_KEY_CHARS + 200;
const DECIMAL = /"rv":(-1|[1-9]\d{0,38})[,}]/;

/** The `continue` with which the next page begins behind `last`, the last key of this one. */
export function continueAfter(last: string, { revision, left }: Omit<Continuation, 'start'>): string {
  return encodeContinue({ revision, start: `${last}\0`, left });
}

export function encodeContinue({ revision = '-1', start, left }: Continuation): string {
  // Not by JSON.stringify alone: a revision may be larger than a number of JavaScript.
  const count = left === undefined ? '' : `,"left":${left}`;
  const text = `{"v":"${VERSION}","rv":${revision},"start":${JSON.stringify(start)}${count}}`;
  const binary = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('');
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @throws {WatchError} REFUSED with code 400 for a text that is none. */
export function decodeContinue(token: string): Continuation {
  const bad = badRequest('continue key is not valid');
  if (typeof token !== 'string' || token.length > MAX_TOKEN_CHARS) throw bad;
  let text: string;
  let parsed: { v?: unknown; start?: unknown; left?: unknown } | null;
  try {
    const binary = atob(token.replaceAll('-', '+').replaceAll('_', '/'));
    text = new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)));
    parsed = JSON.parse(text) as typeof parsed;
  } catch {
    throw bad;
  }
  const revision = DECIMAL.exec(text)?.[1];
  const { v, start, left } = parsed ?? {};
  if (v !== VERSION || revision === undefined || typeof start !== 'string' || start === '') throw bad;
  checkKey(start.endsWith('\0') ? start.slice(0, -1) : start);
  const counted = Number.isSafeInteger(left) && (left as number) >= 0 ? (left as number) : undefined;
  return { revision: revision === '-1' ? undefined : revision, start, left: counted };
}
