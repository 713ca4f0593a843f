/**
 * What a server saves itself because its own changes of an object leave alone what is stored: a copy shares with the value that was kept
 * before it what it has in common with it, what it has just made is kept without a copy, and what was found out about parts of stored
 * objects is not found out again.
 */
import { put } from './json.ts';
import type { Share } from './values.ts';

/** Shares with an object that is kept. */
export const sharing =
  (kept: object): Share =>
  (whole) => {
    [left, copies] = [MAX_VALUES, true];
    return sharedWith(kept, whole);
  };

/** Keeps an object itself that nobody else has. */
export const keeping = (): Share => (whole) => {
  [left, copies] = [MAX_VALUES, false];
  return sharedWith(undefined, whole);
};

/** The most values that are looked at, at a stretch: about a millisecond. What has more is parsed. */
const MAX_VALUES = 8_192;
let left = 0;
let copies = true;

/** What JSON makes of a value, but for parts that are those of a kept value; undefined: that only shows when it is parsed. */
function sharedWith(kept: unknown, value: unknown, depth: number = 0): unknown {
  if (--left < 0) return undefined;
  if (typeof value !== 'object') return typeof value === 'number' && !isExact(value) ? undefined : value;
  if (value === kept || value === null || constant.get(value)) return value;
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
  // A list may have members beside its elements, which JSON leaves out.
  if (isList && !copies && Object.keys(value).length !== value.length) return undefined;
  const copy = copies ? (isList ? [] : {}) : (value as object);
  for (let at = 0; at < (names ?? (value as readonly unknown[])).length; at++) {
    const name = names?.[at] ?? at;
    const member = (value as Record<string, unknown>)[name];
    if (member === undefined && !isList && copies) continue;
    const isText = typeof member === 'string';
    const made = isText ? member : sharedWith((before as Record<string, unknown>)[name], member, depth + 1);
    if (isText && --left < 0) return undefined;
    if (made === undefined || typeof made === 'function' || typeof made === 'symbol') return undefined;
    if (copies) put(copy as Record<string, unknown>, name as string, made);
  }
  return copy;
}

const NOTHING = {};
/** What is deeper is parsed. */
const MAX_DEPTH = 256;
/** Whether a number is the same after it was JSON. */
const isExact = (value: number): boolean => Number.isFinite(value) && !Object.is(value, -0);

/** As many as are known of in a generation: some 100 bytes each. */
const MAX_RECENT = 16_384;

/** What is known of objects that nobody changes: of those that were noted last. To know nothing only costs time. */
export class Recent<V> {
  #young: WeakMap<object, V> = new WeakMap();
  #old: WeakMap<object, V> = new WeakMap();
  #noted: number = 0;

  get(object: object): V | undefined {
    return this.#young.get(object) ?? this.#old.get(object);
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

/** Parts of values, as JSON makes them, that nobody changes. */
const constant: Recent<true> = new Recent();

/** Says that a part of what will be kept is as JSON makes it, and never changes: it need not be copied. */
export function noteConstant(part: object): void {
  constant.set(part, true);
}
