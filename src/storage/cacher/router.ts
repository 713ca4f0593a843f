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
import type { Change } from './change.ts';
import type { Field } from './selection.ts';
import type { View } from './view.ts';

type Places<T extends KubernetesObject> = Map<string, Set<View<T>>>;

export class Router<T extends KubernetesObject> {
  readonly #byPrefix: Places<T> = new Map();
  readonly #byField: Map<Field, Places<T>> = new Map();

  add(view: View<T>): void {
    const { pin, prefix } = view.selection;
    if (!pin) {
      put(this.#byPrefix, prefix, view);
      return;
    }
    let places = this.#byField.get(pin.field);
    if (!places) {
      places = new Map();
      this.#byField.set(pin.field, places);
    }
    put(places, pin.value, view);
  }

  remove(view: View<T>): void {
    const { pin, prefix } = view.selection;
    if (!pin) {
      drop(this.#byPrefix, prefix, view);
      return;
    }
    const places = this.#byField.get(pin.field);
    if (!places) return;
    drop(places, pin.value, view);
    if (places.size === 0) this.#byField.delete(pin.field);
  }

  /** Gives a change to all views that it may concern, once to each. */
  route(change: Change<T>, place: number): void {
    const { key, object, before } = change;
    let end = 0;
    do {
      take(this.#byPrefix.get(key.slice(0, end)), change, place);
      end = key.indexOf('/', end) + 1;
    } while (end > 0);
    for (const [field, places] of this.#byField) {
      if (!key.startsWith(field.prefix)) continue;
      const value = field.read(object);
      if (value !== undefined) take(places.get(value), change, place);
      const old = before ? field.read(before.object) : undefined;
      if (old !== undefined && old !== value) take(places.get(old), change, place);
    }
  }
}

function put<T extends KubernetesObject>(places: Places<T>, place: string, view: View<T>): void {
  const views = places.get(place);
  if (views) views.add(view);
  else places.set(place, new Set([view]));
}

function drop<T extends KubernetesObject>(places: Places<T>, place: string, view: View<T>): void {
  const views = places.get(place);
  views?.delete(view);
  if (views?.size === 0) places.delete(place);
}

function take<T extends KubernetesObject>(views: ReadonlySet<View<T>> | undefined, change: Change<T>, place: number): void {
  if (views) for (const view of views) view.take(change, place);
}
