/**
 * Finds the views that a change concerns. Each view is filed in one place, by what narrows it most: a field that must have one
 * value, the prefix of its keys, or nothing. A change goes only to the places where its object is or was.
 *
 *     prefix ''           --> views of everything
 *     prefix 'ns/'        --> views of that scope
 *     field, value        --> views that pin it: spec.nodeName=n1
 *
 * So a change costs nothing to the thousands of views that pin another value. The view itself checks the rest of its selection.
 * Upstream: the scopes and triggers of `indexedWatchers`.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import type { LogEntry } from './entries.ts';
import type { Field } from './selection.ts';
import type { SharedView } from './view.ts';

type Views<T extends KubernetesObject> = Set<SharedView<T>>;

/** What is known of the keys with a prefix: there while a view needs it, and for good once it was asked for. */
export class Part<T extends KubernetesObject> {
  readonly views: Views<T> = new Set();
  isKept: boolean = false;
  /** How many changes there were. */
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
    let values = this.#byField.get(pin.field);
    if (!values) {
      values = new Map();
      this.#byField.set(pin.field, values);
    }
    const views = values.get(pin.value);
    if (views) views.add(view);
    else values.set(pin.value, new Set([view]));
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

  /** Forgets all views, and what it knows of objects. */
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
