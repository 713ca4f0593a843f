/** Base64 in pieces, because a call takes a limited number of arguments. Without Buffer, which other hosts lack. */
import type { Work } from '../../watch/fair-queue.ts';

/** Whole groups of three bytes, so that the texts of the parts can be joined. */
const PART_BYTES = 8_190;
const PART_CHARS = (PART_BYTES / 3) * 4;

export function* toBase64(bytes: Uint8Array): Work<string> {
  let text = '';
  for (let at = 0; at < bytes.length; at += PART_BYTES) {
    if (at > 0) yield;
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + PART_BYTES)));
  }
  return text;
}

/** The bytes of a valid text. */
export function* fromBase64(text: string): Work<Uint8Array> {
  const bytes = new Uint8Array(base64Bytes(text));
  for (let [from, at] = [0, 0]; from < text.length; from += PART_CHARS) {
    if (from > 0) yield;
    const part = atob(text.slice(from, from + PART_CHARS));
    for (let each = 0; each < part.length; each++) bytes[at++] = part.charCodeAt(each);
  }
  return bytes;
}

/** How many bytes a valid text encodes. */
export function base64Bytes(text: string): number {
  return Math.floor((text.length * 3) / 4) - (text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0);
}
