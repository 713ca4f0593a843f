/**
 * Savings that are possible because a server's own code never modifies stored objects: a copy shares its unchanged parts with the
 * previous value, a new object is kept without being copied, and what was found out about parts of stored objects is remembered.
 */
import { put } from './json.ts';
import type { Share } from './values.ts';

/** Shares parts with an object that is kept. */
export const sharing =
  (kept: object): Share =>
  (whole) => {
    [left, copies, shares] = [MAX_VALUES, true, true];
    return sharedWith(kept, whole);
  };

/** Keeps an object itself, which nobody else has. */
export const keeping = (): Share => (whole) => {
  [left, copies, shares] = [MAX_VALUES, false, true];
  return sharedWith(undefined, whole);
};

/** What JSON makes of a value, as a copy that shares nothing with it; undefined if it has to be written and parsed to tell. */
export function quickCopy<T extends object>(value: T): T | undefined {
  [left, copies, shares] = [MAX_VALUES, true, false];
  return sharedWith(undefined, value) as T | undefined;
}

/** The most values that are checked, in one go: about a millisecond. Objects with more are parsed. */
const MAX_VALUES = 8_192;
let left = 0;
let copies = true;
let shares = true;

/** What JSON makes of a value, sharing parts of a kept value; undefined if it has to be parsed to tell. */
function sharedWith(kept: unknown, value: unknown, depth: number = 0): unknown {
  if (--left < 0) return undefined;
  if (typeof value !== 'object') return typeof value === 'number' && !isExact(value) ? undefined : value;
  if (value === kept || value === null || (shares && constant.get(value))) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (
    depth > MAX_DEPTH ||
    'toJSON' in value ||
    (prototype !== (Array.isArray(value) ? Array : Object).prototype && prototype !== null)
  )
    return undefined;
  const before = (typeof kept === 'object' && kept) || NOTHING;
  const isList = Array.isArray(value);
  const names = isList ? undefined : Object.keys(value);
  // A list may have members besides its elements, which JSON leaves out.
  if (isList && !copies && Object.keys(value).length !== value.length) return undefined;
  const copy = copies ? (isList ? [] : {}) : (value as object);
  for (let at = 0; at < (names ?? (value as readonly unknown[])).length; at++) {
    const name = names?.[at] ?? at;
    const member = (value as Record<string, unknown>)[name];
    if (member === undefined && !isList && copies) continue;
    const isText = typeof member === 'string';
    const made = isText ? member : sharedWith((before as Record<string, unknown>)[name], member, depth + 1);
    if (isText && --left < 0) return undefined;
    if (made === undefined || typeof made === 'function' || typeof made === 'symbol' || typeof made === 'bigint')
      return undefined;
    if (copies) put(copy as Record<string, unknown>, name as string, made);
  }
  return copy;
}

const NOTHING = {};
/** Deeper values are parsed: a request may not have them. */
const MAX_DEPTH = 127;
/** Whether a number is the same after a round trip through JSON. */
const isExact = (value: number): boolean => Number.isFinite(value) && !Object.is(value, -0);

/** The most entries of a generation, of about 100 bytes each. */
const MAX_RECENT = 16_384;

/** What is known about objects that never change: the last ones that were noted. A lost entry only costs time. */
export class Recent<V> {
  #young: WeakMap<object, V> = new WeakMap();
  #old: WeakMap<object, V> = new WeakMap();
  #noted: number = 0;

  get(object: object): V | undefined {
    const young = this.#young.get(object);
    return young === undefined ? this.#old.get(object) : young;
  }

  set(object: object, value: V): void {
    if (++this.#noted > MAX_RECENT) {
      this.#old = this.#young;
      this.#young = new WeakMap();
      this.#noted = 1;
    }
    this.#young.set(object, value);
  }
}

/** Parts of values that are as JSON makes them, and never change. */
const constant: Recent<true> = new Recent();

/** Notes that a part of what will be kept is as JSON makes it, and never changes, so that it need not be copied. */
export function noteConstant(part: object): void {
  constant.set(part, true);
}
