import { invalid } from '../../watch/errors.ts';
import { checkText } from '../object.ts';

/** Returns the values under which an object is found in an index. Not called again until the object is replaced. */
export type IndexFunction<T> = (object: T) => readonly string[];

/**
 * One index: the keys by value, and the values by key. The values are kept, so an index function is called once per object: one
 * that throws or changes its result cannot leave a key behind.
 *
 *     values  'default/a' -> ['n1', 'n2']         keys  'n1' -> { 'default/a', 'default/b' }
 *
 * Invariants: a key is under a value if and only if the value is among those of the key. No value has an empty set.
 */
export class ObjectIndex<T> {
  readonly #name: string;
  readonly #function: IndexFunction<T>;
  readonly #keys: Map<string, Set<string>> = new Map();
  readonly #values: Map<string, readonly string[]> = new Map();

  constructor(name: string, indexFunction: IndexFunction<T>) {
    this.#name = name;
    this.#function = indexFunction;
  }

  /** The values of an object, in a new array. User code, so it may throw. */
  valuesOf(object: T): readonly string[] {
    const values: unknown = this.#function(object);
    if (!Array.isArray(values)) throw invalid(`index ${this.#name}`, values, 'an array of strings');
    for (const value of values) checkText(`index ${this.#name}`, value);
    return values.slice();
  }

  /** Replaces the values of a key. Undefined, or none, removes it. */
  set(key: string, values: readonly string[] = []): void {
    for (const value of this.#values.get(key) ?? []) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(value);
    }
    if (values.length === 0) this.#values.delete(key);
    else this.#values.set(key, values);
    for (const value of values) {
      const keys = this.#keys.get(value);
      if (keys) keys.add(key);
      else this.#keys.set(value, new Set([key]));
    }
  }

  /** The keys under a value. */
  keys(value: string): Iterable<string> {
    return this.#keys.get(value) ?? [];
  }

  /** All values that have a key. */
  values(): Iterable<string> {
    return this.#keys.keys();
  }
}
