/**
 * RFC 6902: a list of operations, each at a place given by a JSON pointer (RFC 6901). All of them happen, or none.
 *
 *     [{ op: 'test', path: '/spec/count', value: 1 }, { op: 'replace', path: '/spec/count', value: 2 }]
 *
 * Written here because it is short, and because existing libraries change the object in place, let `__proto__` through or forbid
 * it as a name, and have no limits: ten `copy` operations of a document into itself make it a thousand times larger.
 *
 * - The input is not changed. Each object or array is copied before its first change, and the patch then owns the copy: a
 *   thousand operations on one array copy it once.
 * - What `copy` adds is a deep copy, counted in characters of JSON before it is added: no value is shared between two places.
 */

import { comparing, parsing, put, stringifying, toToken } from '../../storage/json.ts';
import { isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import { checkingDepth, copyingMembers, type JsonObject, ownValue } from './merge-patch.ts';

/** An operation that cannot be applied. */
export class PatchFailure extends Error {
  override readonly name: string = 'PatchFailure';
}

/** The patch is not a list of operations. */
export class PatchUnreadable extends PatchFailure {}

/** One operation, read but not applied. */
export type Operation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: readonly string[]; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: readonly string[] }
  | { readonly op: 'move' | 'copy'; readonly path: readonly string[]; readonly from: readonly string[] };

/** Reads the operations of a patch. Throws {@link PatchFailure}, and {@link PatchUnreadable} for members of another type. */
export function* toOperations(patch: readonly unknown[]): Work<Operation[]> {
  for (const [at, each] of patch.entries()) {
    checkTypes(each, at);
    if (at % STRIDE === STRIDE - 1) yield;
  }
  const operations: Operation[] = [];
  for (const [at, each] of patch.entries()) {
    operations.push(toOperation((each ?? {}) as JsonObject, at)); // null is an empty operation, as in Go
    if (at % STRIDE === STRIDE - 1) yield;
  }
  return operations;
}

const TEXTS = ['op', 'path', 'from'] as const;

function checkTypes(each: unknown, at: number): void {
  if (each === null) return;
  if (!isRecord(each)) throw new PatchUnreadable(`operation ${at} is not an object`);
  for (const name of TEXTS) {
    if (typeof (ownValue(each, name) ?? '') !== 'string') throw new PatchUnreadable(`${name} of operation ${at} is not a string`);
  }
}

function toOperation(each: JsonObject, at: number): Operation {
  const op = ownValue(each, 'op');
  const path = toPointer(ownValue(each, 'path'), `path of operation ${at}`);
  switch (op) {
    case 'add':
    case 'replace':
    case 'test':
      if (!Object.hasOwn(each, 'value')) throw new PatchFailure(`operation ${at}, ${op}, has no value`);
      return { op, path, value: each.value };
    case 'remove':
      return { op, path };
    case 'move':
    case 'copy':
      return { op, path, from: toPointer(ownValue(each, 'from'), `from of operation ${at}`) };
    default:
      throw new PatchFailure(`operation ${at} has an unknown op`);
  }
}

/** How many elements are moved between two pauses. */
const MOVES = 2 ** 20;

/** Returns the result of applying the operations to a document, in their order. Throws {@link PatchFailure}. */
export function* jsonPatch(document: unknown, operations: readonly Operation[], maxCopied: number = Infinity): Work<unknown> {
  const means: Means = { copies: new WeakSet(), maxCopied, copied: 0, parts: 0, moved: 0 };
  let current = document;
  let moves = MOVES;
  for (const [at, operation] of operations.entries()) {
    current = yield* applied(current, operation, means);
    if (at % STRIDE < STRIDE - 1 && means.moved < moves) continue;
    moves = means.moved + MOVES;
    yield;
  }
  return current;
}

/** State shared by the operations of one patch. */
interface Means {
  /** The objects and arrays that this patch has made, and may change. */
  readonly copies: WeakSet<object>;
  readonly maxCopied: number;
  copied: number;
  /** How many values have been copied. */
  parts: number;
  /** How many array elements have been moved by one place. */
  moved: number;
}

/** The limit of `parts`: a value takes far longer to copy than its characters suggest. */
const MAX_PARTS = 102_400;
/** The limit of `moved`: an insertion at the front of a long array moves all of it. */
const MAX_MOVED = 2 ** 28;

function* applied(current: unknown, operation: Operation, means: Means): Work<unknown> {
  const { op, path } = operation;
  const place = function* (value: unknown, act: Act): Work<unknown> {
    return path.length === 0 ? value : yield* changed(current, path, { act, means });
  };
  switch (op) {
    case 'test':
      if (operation.value === null && isAbsent(current, path)) return current;
      if (!(yield* comparing(read(current, path), operation.value))) throw new PatchFailure(`test failed at ${show(path)}`);
      return current;
    case 'remove':
      return yield* changed(current, path, { act: remove, means });
    case 'add':
      return yield* place(operation.value, adding(operation.value));
    case 'replace':
      return yield* place(operation.value, replacing(operation.value));
    case 'copy': {
      const value = isAbsent(current, operation.from) ? null : yield* copyOf(read(current, operation.from), means);
      return yield* place(value, adding(value));
    }
    case 'move':
      return yield* moved(current, operation, means);
  }
}

function* copyOf(value: unknown, means: Means): Work<unknown> {
  // Copying a parent into itself doubles the depth each time, and JSON.stringify is recursive.
  means.parts += yield* checkingDepth(value);
  if (means.parts > MAX_PARTS) throw new PatchFailure(`copies more than ${MAX_PARTS} values`);
  const text = yield* stringifying(value);
  means.copied += text.length;
  if (means.copied > means.maxCopied) throw new PatchFailure(`copies more than ${means.maxCopied} characters`);
  return yield* parsing(text);
}

function* moved(current: unknown, { path, from }: Operation & { op: 'move' | 'copy' }, means: Means): Work<unknown> {
  const value = read(current, from);
  if (from.every((token, at) => token === path[at])) {
    if (from.length === path.length) return current;
    throw new PatchFailure(`cannot move ${show(from)} into itself`);
  }
  if (path.length === 0) return value;
  return yield* changed(yield* changed(current, from, { act: remove, means }), path, { act: adding(value), means });
}

/** Reads a pointer: `/a~1b/0` is `a/b`, then `0`. */
function toPointer(text: unknown, what: string): string[] {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/')) || /~(?![01])/.test(text)) {
    throw new PatchFailure(`the ${what} is not a JSON pointer`);
  }
  const tokens = text.split('/').slice(1);
  return tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function show(path: readonly string[]): string {
  const text = path.map((token) => `/${toToken(token)}`).join('');
  return JSON.stringify(text.slice(0, 200));
}

/**
 * The index that a token means in an array. `-` and the array's length mean the place after its end, which only `add` accepts; a
 * negative number counts from the end, as in Kubernetes.
 */
function index(array: readonly unknown[], token: string, behind: boolean): number {
  const count = array.length + (behind ? 1 : 0);
  if (behind && token === '-') return array.length;
  const given = /^(0|-?[1-9]\d{0,15})$/.test(token) ? Number(token) : Infinity;
  const at = given < 0 ? given + count : given;
  if (at < 0 || at >= count) throw new PatchFailure(`there is no element ${JSON.stringify(token.slice(0, 40))}`);
  return at;
}

/** The member or element that a token names. */
function step(value: unknown, token: string): unknown {
  if (Array.isArray(value)) return value[index(value, token, false)];
  if (isRecord(value) && Object.hasOwn(value, token)) return value[token];
  throw new PatchFailure(`there is no ${JSON.stringify(token.slice(0, 200))}`);
}

function read(document: unknown, path: readonly string[]): unknown {
  return path.reduce(step, document);
}

/**
 * Whether an object lacks a member. As in Kubernetes, `test` for null then succeeds, by which clients test for absence, `copy`
 * copies null, and `replace` adds the member.
 */
function isAbsent(document: unknown, path: readonly string[]): boolean {
  const name = path.at(-1);
  const parent = name === undefined ? undefined : read(document, path.slice(0, -1));
  return isRecord(parent) && !Object.hasOwn(parent, name as string);
}

type Changed = JsonObject | unknown[];
/** A change of a copied object or array, at one member. */
type Act = (parent: Changed, token: string, means: Means) => void;

/** Copies everything on the path to a place that has not been copied yet, and acts at its end. */
function* changed(document: unknown, path: readonly string[], { act, means }: { act: Act; means: Means }): Work<unknown> {
  const last = path.length - 1;
  if (last < 0) throw new PatchFailure('the document itself cannot be removed');
  const copied = function* (value: unknown): Work<Changed> {
    if (!Array.isArray(value) && !isRecord(value)) throw new PatchFailure(`${show(path)} is inside a value without members`);
    if (means.copies.has(value)) return value;
    const copy = Array.isArray(value) ? [...value] : yield* copyingMembers(value);
    means.copies.add(copy);
    return copy;
  };
  const root = yield* copied(document);
  let parent = root;
  for (const token of path.slice(0, last)) {
    const before = step(parent, token);
    const child = yield* copied(before);
    if (child !== before) set(parent, token, child);
    parent = child;
  }
  act(parent, path[last] as string, means);
  return root;
}

/** Inserts elements into an array, or removes one. */
function splice(array: unknown[], at: number, { means, items }: { means: Means; items: readonly unknown[] }): void {
  means.moved += array.length - at;
  if (means.moved > MAX_MOVED) throw new PatchFailure(`moves more than ${MAX_MOVED} elements of arrays`);
  array.splice(at, items.length === 0 ? 1 : 0, ...items);
}

const remove: Act = (parent, token, means) => {
  if (Array.isArray(parent)) splice(parent, index(parent, token, false), { means, items: [] });
  else {
    step(parent, token);
    delete parent[token];
  }
};

function adding(value: unknown): Act {
  return (parent, token, means) => {
    if (Array.isArray(parent)) splice(parent, index(parent, token, true), { means, items: [value] });
    else put(parent, token, value);
  };
}

function set(parent: Changed, token: string, value: unknown): void {
  if (Array.isArray(parent)) parent[index(parent, token, false)] = value;
  else put(parent, token, value);
}

const replacing =
  (value: unknown): Act =>
  (parent, token) =>
    set(parent, token, value);
