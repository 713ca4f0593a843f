/**
 * The frames of a journal file, each one group of writes, written and fsynced before the next. So when a process or a machine
 * dies, at most the last frame is broken; a broken one with another after it is damage, and its content must not be guessed.
 *
 *     | F5 57 4D 4A | length | checksum of body | checksum of these 12 bytes | body ... |
 *       no text in UTF-8 has the first byte, so no body looks like a frame
 *
 * | what is found at the place of a frame | it is |
 * |---|---|
 * | less than a head; or a whole head, and less than its body: the file ends there | torn |
 * | nothing but zeros to the end of the file; or a sector of zeros at the place of the head, and no frame after it | torn |
 * | a body with a wrong checksum that ends the file, and has a sector of zeros: it never reached the disk | torn |
 * | anything else | corrupt |
 */

import * as zlib from 'node:zlib';

/** The bytes before a body. */
export const HEAD_BYTES = 16;
const MARK = Uint8Array.of(0xf5, 0x57, 0x4d, 0x4a);
/** What a disk writes at once. */
const SECTOR = 512;

/** A body with its head before it. */
export function toFrame(body: Uint8Array): Uint8Array {
  const frame = new Uint8Array(HEAD_BYTES + body.byteLength);
  const view = new DataView(frame.buffer);
  frame.set(MARK);
  view.setUint32(4, body.byteLength);
  view.setUint32(8, crc32(body));
  view.setUint32(12, crc32(frame.subarray(0, 12)));
  frame.set(body, HEAD_BYTES);
  return frame;
}

/** A body and where it ends; or what is there instead. */
export type Found = { readonly body: Uint8Array; readonly end: number } | 'end' | 'torn' | 'corrupt';

/** What is at a place of a file. */
export function frameAt(file: Uint8Array, at: number): Found {
  const rest = file.subarray(at);
  if (rest.byteLength === 0) return 'end';
  if (rest.byteLength < HEAD_BYTES) return 'torn';
  const view = new DataView(rest.buffer, rest.byteOffset, rest.byteLength);
  if (!hasHead(rest, view)) return isUnwritten(file, at) ? 'torn' : 'corrupt';
  const end = HEAD_BYTES + view.getUint32(4);
  if (end > rest.byteLength) return 'torn';
  const body = rest.subarray(HEAD_BYTES, end);
  if (crc32(body) === view.getUint32(8)) return { body, end: at + end };
  const isLast = isZero(rest.subarray(end));
  return isLast && hasEmptySector(file, at, at + end) ? 'torn' : 'corrupt';
}

function hasHead(rest: Uint8Array, view: DataView): boolean {
  return MARK.every((byte, index) => rest[index] === byte) && crc32(rest.subarray(0, 12)) === view.getUint32(12);
}

/** Whether no head reached the disk at this place, and no frame follows. */
function isUnwritten(file: Uint8Array, at: number): boolean {
  const rest = file.subarray(at);
  if (!isZero(rest.subarray(0, SECTOR - (at % SECTOR)))) return false;
  for (let mark = rest.indexOf(MARK[0] as number); mark >= 0; mark = rest.indexOf(MARK[0] as number, mark + 1)) {
    const found = rest.subarray(mark);
    if (found.byteLength < HEAD_BYTES) return true;
    if (hasHead(found, new DataView(found.buffer, found.byteOffset, found.byteLength))) return false;
  }
  return true;
}

/** Whether the part of the stretch in one of its sectors is nothing but zeros. */
function hasEmptySector(file: Uint8Array, from: number, to: number): boolean {
  for (let start = from; start < to; ) {
    const end = Math.min(to, start - (start % SECTOR) + SECTOR);
    if (isZero(file.subarray(start, end)) && end - start >= HEAD_BYTES) return true;
    start = end;
  }
  return false;
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

const TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** The checksum of zip files and Ethernet. */
export function crc32(bytes: Uint8Array): number {
  const { crc32: native = slowCrc32 } = zlib as { crc32?: (bytes: Uint8Array) => number };
  return native(bytes);
}

/** For versions of Node that have none. */
export function slowCrc32(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (let at = 0; at < bytes.byteLength; at++) sum = (sum >>> 8) ^ (TABLE[(sum ^ (bytes[at] as number)) & 0xff] as number);
  return ~sum >>> 0;
}
