/**
 * The changes of an object as a JSON Patch (RFC 6902), which is how a webhook tells a kube-apiserver what it has changed.
 *
 *     { a: 1, list: [x, y, z] } ---> { a: 2, list: [x, z] }     replace /a, remove /list/1
 *
 * - Equal members and elements are left out, so another webhook's changes beside them are kept.
 * - A list is compared from both ends; the middle is changed element by element, then extended or shortened at its end.
 * - A patch is not much larger than the object: if it would have too many operations, or too long paths, it replaces whole members.
 *
 * Not a library, because none works in pieces and treats `__proto__` as a name like any other.
 */
import { comparing, toToken } from '../../storage/json.ts';
import { isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';

/** One change. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** As many as a kube-apiserver accepts from its clients. */
const MAX_OPERATIONS = 10_000;
/** Characters of all paths together. */
const MAX_PATH_CHARS = 1_048_576;
/** How deeply nested lists are compared element by element: each level takes time for everything in it. */
const MAX_LISTS = 8;

type Members = Readonly<Record<string, unknown>>;

/** Two values that are objects or lists, and have to be compared. */
interface Pair {
  readonly path: string;
  readonly before: object;
  readonly after: object;
  /** How many lists it is in. */
  readonly lists: number;
}

/** The operations that turn `before` into `after`. Both are JSON. They share values with `after`. */
export function* diffing(before: Members, after: Members): Work<readonly PatchOperation[]> {
  const exact = yield* new Differ(true).run(before, after);
  if (exact) return exact;
  return (yield* new Differ(false).run(before, after)) as PatchOperation[];
}

class Differ {
  readonly #isDeep: boolean;
  readonly #operations: PatchOperation[] = [];
  readonly #pairs: Pair[] = [];
  #chars: number = 0;
  #steps: number = 0;

  /** Unless it is deep, the members of the whole are replaced as they are, and there is no limit. */
  constructor(isDeep: boolean) {
    this.#isDeep = isDeep;
  }

  /** Undefined if there are too many. */
  *run(before: Members, after: Members): Work<PatchOperation[] | undefined> {
    this.#pairs.push({ path: '', before, after, lists: 0 });
    for (let pair = this.#pairs.pop(); pair; pair = this.#pairs.pop()) {
      if (Array.isArray(pair.before)) yield* this.#list(pair, pair.before, pair.after as readonly unknown[]);
      else yield* this.#object(pair);
      if (this.#isTooLong) return undefined;
      if (++this.#steps % STRIDE === 0) yield;
    }
    return this.#operations;
  }

  get #isTooLong(): boolean {
    return this.#isDeep && (this.#operations.length > MAX_OPERATIONS || this.#chars > MAX_PATH_CHARS);
  }

  *#object({ path, before, after, lists }: Pair): Work<void> {
    const [old, now] = [before as Members, after as Members];
    for (const name of Object.keys(old)) {
      const at = `${path}/${toToken(name)}`;
      if (!Object.hasOwn(now, name)) this.#push({ op: 'remove', path: at });
      else if (this.#isDeep) this.#value(at, old[name], now[name], lists);
      else if (!(yield* comparing(old[name], now[name]))) this.#push({ op: 'replace', path: at, value: now[name] });
      if (++this.#steps % STRIDE === 0) yield;
      if (this.#isTooLong) return;
    }
    for (const name of Object.keys(now)) {
      if (!Object.hasOwn(old, name)) this.#push({ op: 'add', path: `${path}/${toToken(name)}`, value: now[name] });
      if (++this.#steps % STRIDE === 0) yield;
      if (this.#isTooLong) return;
    }
  }

  *#list({ path, after, lists }: Pair, old: readonly unknown[], now: readonly unknown[]): Work<void> {
    const least = Math.min(old.length, now.length);
    const same = function* (one: unknown, other: unknown): Work<boolean> {
      yield;
      return yield* comparing(one, other);
    };
    if (lists >= MAX_LISTS) {
      if (!(yield* same(old, now))) this.#push({ op: 'replace', path, value: after });
      return;
    }
    let [start, end] = [0, 0];
    while (start < least && (yield* same(old[start], now[start]))) start++;
    while (end < least - start && (yield* same(old.at(-1 - end), now.at(-1 - end)))) end++;
    // First those that stay where they are.
    for (let at = start; at < least - end; at++) {
      this.#value(`${path}/${at}`, old[at], now[at], lists + 1);
      if (at % STRIDE === 0) yield;
      if (this.#isTooLong) return;
    }
    for (let at = old.length - end - 1; at >= least - end; at--) this.#push({ op: 'remove', path: `${path}/${at}` });
    for (let at = least - end; at < now.length - end; at++) this.#push({ op: 'add', path: `${path}/${at}`, value: now[at] });
  }

  #value(path: string, before: unknown, after: unknown, lists: number): void {
    if (before === after) return;
    const isPair = Array.isArray(before) ? Array.isArray(after) : isRecord(before) && isRecord(after);
    if (isPair) this.#pairs.push({ path, before: before as object, after: after as object, lists });
    else this.#push({ op: 'replace', path, value: after });
  }

  #push(operation: PatchOperation): void {
    this.#operations.push(operation);
    this.#chars += operation.path.length;
  }
}
