/**
 * The `continue` of a list: the revision that it reads, and the key from which it goes on. The key is relative to the scope, so
 * that a stranger's token cannot reach outside it. The format is upstream's, plus the number of items left.
 *
 *     { revision: '7', start: 'b\0', left: 3 } <---> base64url of {"v":"meta.k8s.io/v1","rv":7,"start":"b\u0000","left":3}
 *
 * Upstream: `storage/continue.go`.
 */
import { checkKey, MAX_KEY_CHARS } from './keys.ts';
import { badRequest } from './statuses.ts';

/** Where a list goes on. */
export interface Continuation {
  /** The revision of all pages; undefined for the newest, if the first pages' revision is no longer kept. */
  readonly revision: string | undefined;
  /** The smallest key of the next page, relative to the scope. */
  readonly start: string;
  /** How many items follow, if an earlier page has counted them: then no page has to count again. */
  readonly left?: number | undefined;
}

const VERSION = 'meta.k8s.io/v1';
/** A character of a key takes at most 6 characters of JSON; 3 bytes of UTF-8 take 4 characters of base64. */
const MAX_TOKEN_CHARS = 8 * MAX_KEY_CHARS + 200;
const DECIMAL = /"rv":(-1|[1-9]\d{0,38})[,}]/;

/** The `continue` of a next page that begins after `last`, the last key of this one. */
export function continueAfter(last: string, { revision, left }: Omit<Continuation, 'start'>): string {
  return encodeContinue({ revision, start: `${last}\0`, left });
}

export function encodeContinue({ revision = '-1', start, left }: Continuation): string {
  // Not by JSON.stringify alone: a revision may be too large for a JavaScript number.
  const count = left === undefined ? '' : `,"left":${left}`;
  const text = `{"v":"${VERSION}","rv":${revision},"start":${JSON.stringify(start)}${count}}`;
  const binary = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('');
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** @throws {WatchError} REFUSED with code 400 for an invalid token. */
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
