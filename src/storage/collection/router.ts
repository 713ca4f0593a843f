/**
 * Finds views, and entries of the state (`Indexes`), by field or prefix.
 *
 * The router finds the views that a change concerns. Each view is filed in one place, by what narrows it down most: a field that
 * must have one value, the prefix of its keys, or nothing. A change goes only to the places where its object is or was.
 *
 *     prefix ''           --> views of everything
 *     prefix 'ns/'        --> views of that scope
 *     field, value        --> views that pin it: spec.nodeName=n1
 *
 * So a change costs nothing to the thousands of views that pin another value. The view itself checks the rest of its selection.
 * Upstream: the scopes and triggers of `indexedWatchers`.
 */

import type { KubernetesObject } from '../../cache/object.ts';
import { getOrMake } from '../../watch/errors.ts';
import type { LogEntry, StateEntry } from './change-log.ts';
import { SortedMap } from './sorted-map.ts';
import type { Field, Pin, SharedView } from './view.ts';

type Views<T extends KubernetesObject> = Set<SharedView<T>>;

/** What is known of the keys with a prefix. Kept while a view needs it, and for good once it has been asked for. */
export class Part<T extends KubernetesObject> {
  readonly views: Views<T> = new Set();
  isKept: boolean = false;
  changes: number = 0;
  /** All objects in order, if nothing has changed since they were last asked for. */
  objects: readonly T[] | undefined = undefined;
}

export class Router<T extends KubernetesObject> {
  readonly #byPrefix: Map<string, Part<T>> = new Map();
  readonly #byField: Map<Field, Map<string, Views<T>>> = new Map();

  /** The part of a prefix, which is kept from now on. */
  part(prefix: string): Part<T> {
    const part = this.#partOf(prefix);
    part.isKept = true;
    return part;
  }

  /** The part of a prefix, if it is kept. */
  keptPart(prefix: string): Part<T> | undefined {
    const part = this.#byPrefix.get(prefix);
    return part?.isKept ? part : undefined;
  }

  add(view: SharedView<T>): void {
    const { pin, prefix } = view.selection;
    if (!pin) {
      this.#partOf(prefix).views.add(view);
      return;
    }
    const values = getOrMake(this.#byField, pin.field, () => new Map());
    getOrMake(values, pin.value, () => new Set()).add(view);
  }

  remove(view: SharedView<T>): void {
    const { pin, prefix } = view.selection;
    if (!pin) {
      const part = this.#byPrefix.get(prefix);
      part?.views.delete(view);
      if (part?.views.size === 0 && !part.isKept) this.#byPrefix.delete(prefix);
      return;
    }
    const values = this.#byField.get(pin.field);
    const views = values?.get(pin.value);
    views?.delete(view);
    if (views?.size === 0) values?.delete(pin.value);
    if (values?.size === 0) this.#byField.delete(pin.field);
  }

  /** Forgets all views, and what it knows about objects. */
  clear(): void {
    this.#byField.clear();
    for (const [prefix, part] of this.#byPrefix) {
      part.views.clear();
      part.objects = undefined;
      if (!part.isKept) this.#byPrefix.delete(prefix);
    }
  }

  /** Gives a change to all views that it may concern, once to each, and counts it. */
  route(change: LogEntry<T>, place: number): void {
    const { key, object, before } = change;
    let end = 0;
    do {
      const part = this.#byPrefix.get(key.slice(0, end));
      if (part) {
        part.changes++;
        part.objects = undefined;
        take(part.views, change, place);
      }
      end = key.indexOf('/', end) + 1;
    } while (end > 0);
    for (const [field, values] of this.#byField) {
      if (!key.startsWith(field.prefix)) continue;
      const value = field.read(object);
      if (value !== undefined) take(values.get(value), change, place);
      const old = before ? field.read(before.object) : undefined;
      if (old !== undefined && old !== value) take(values.get(old), change, place);
    }
  }

  #partOf(prefix: string): Part<T> {
    let part = this.#byPrefix.get(prefix);
    if (!part) {
      part = new Part();
      this.#byPrefix.set(prefix, part);
    }
    return part;
  }
}

function take<T extends KubernetesObject>(
  views: ReadonlySet<SharedView<T>> | undefined,
  change: LogEntry<T>,
  place: number,
): void {
  if (views) for (const view of views) view.take(change, place);
}

/** The entries of a state by the values of a field, and by their keys. */
type Index<T extends KubernetesObject> = Map<string, SortedMap<StateEntry<T>>>;

/**
 * The objects of a state by the values of their fields, for lists and watches that require one value. An index is made when it is
 * first needed, and kept from then on.
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

/** The value of a field; undefined for an object outside the field's prefix, or if it cannot be read. */
function readOf<T extends KubernetesObject>(field: Field, { key, object }: StateEntry<T>): string | undefined {
  return key.startsWith(field.prefix) ? field.read(object) : undefined;
}
