import type { KubernetesObject } from '../../cache/object.ts';
import type { StateEntry } from './entries.ts';
import type { Field, Pin } from './selection.ts';
import { SortedMap } from './sorted-map.ts';

/** The entries of a state by the values of a field, and by their keys. */
type Index<T extends KubernetesObject> = Map<string, SortedMap<StateEntry<T>>>;

/**
 * The objects of a state by the values of their fields, for lists and watches that pin one. An index is made when it is first asked
 * for, and kept from then on.
 */
export class Indexes<T extends KubernetesObject> {
  readonly #byField: Map<Field, Index<T>> = new Map();

  /** The entries with this value, as they are now. `all` are those of the state. */
  find({ field, value }: Pin, all: () => Iterable<StateEntry<T>>): SortedMap<StateEntry<T>> {
    let index = this.#byField.get(field);
    if (!index) {
      index = new Map();
      this.#byField.set(field, index);
      for (const entry of all()) add(index, field, entry);
    }
    return index.get(value)?.copy() ?? new SortedMap();
  }

  /** The entry under a key has been replaced, added or removed. */
  changed(before: StateEntry<T> | undefined, after: StateEntry<T> | undefined): void {
    for (const [field, index] of this.#byField) {
      if (before) remove(index, field, before);
      if (after) add(index, field, after);
    }
  }

  /** The state has been replaced. */
  clear(): void {
    this.#byField.clear();
  }
}

function add<T extends KubernetesObject>(index: Index<T>, field: Field, entry: StateEntry<T>): void {
  const value = readOf(field, entry);
  if (value === undefined) return;
  const entries = index.get(value);
  if (entries) {
    entries.set(entry.key, entry);
    return;
  }
  const first = new SortedMap<StateEntry<T>>();
  first.set(entry.key, entry);
  index.set(value, first);
}

function remove<T extends KubernetesObject>(index: Index<T>, field: Field, entry: StateEntry<T>): void {
  const value = readOf(field, entry) as string; // nothing is under undefined
  const entries = index.get(value);
  if (entries?.delete(entry.key) && entries.size === 0) index.delete(value);
}

/** Undefined for an object outside the field's prefix, or if the value cannot be read. */
function readOf<T extends KubernetesObject>(field: Field, { key, object }: StateEntry<T>): string | undefined {
  return key.startsWith(field.prefix) ? field.read(object) : undefined;
}
