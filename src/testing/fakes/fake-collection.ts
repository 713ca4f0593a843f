import { type KubernetesObject, keyOf } from '../../cache/object.ts';
import { compareVersions } from '../../cache/versions.ts';
import type { ObjectEvent } from '../../watch/event.ts';

/** What happened to one object of a {@link FakeCollection}. */
export interface FakeChange<T> {
  readonly version: string;
  readonly key: string;
  readonly event: ObjectEvent<T>;
  /** The object as it was before; undefined if there was none. */
  readonly previous: T | undefined;
}

/**
 * Objects by key, each with the version of its last change, and the last changes, as many as `history` says. The state at a past
 * version is the current one with the later changes undone.
 */
export class FakeCollection<T extends KubernetesObject> {
  readonly #objects: Map<string, T> = new Map();
  readonly #changes: FakeChange<T>[] = [];
  readonly #previous: WeakMap<object, T> = new WeakMap();
  readonly #history: number;
  #version: string;
  #oldest: string;

  constructor(objects: Iterable<T>, { history, firstVersion }: { history: number; firstVersion: string }) {
    this.#history = history;
    this.#version = firstVersion;
    this.#oldest = firstVersion;
    for (const object of objects) this.#objects.set(keyOf(object), this.#versioned(object));
  }

  /** The version of the last change. */
  get version(): string {
    return this.#version;
  }

  /** The oldest version from which the past is known. */
  get oldest(): string {
    return this.#oldest;
  }

  put(object: T): FakeChange<T> {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    this.#advance();
    const stored = this.#versioned(object);
    this.#objects.set(key, stored);
    return this.#remember({ key, previous, event: { type: previous ? 'MODIFIED' : 'ADDED', object: stored } });
  }

  remove(object: KubernetesObject): FakeChange<T> | undefined {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (!previous) return undefined;
    this.#objects.delete(key);
    this.#advance();
    return this.#remember({ key, previous, event: { type: 'DELETED', object: this.#versioned(previous) } });
  }

  /** Forgets what came before the current version. */
  expire(): void {
    this.#changes.length = 0;
    this.#oldest = this.#version;
  }

  /** The objects at a version, by key, in the order of their keys; undefined if that version is no longer known. */
  at(version: string = this.#version): [string, T][] | undefined {
    if (compareVersions(version, this.#oldest) < 0) return undefined;
    const objects = new Map(this.#objects);
    for (let i = this.#changes.length - 1; i >= 0; i--) {
      const change = this.#changes[i] as FakeChange<T>;
      if (compareVersions(change.version, version) <= 0) break;
      if (change.previous) objects.set(change.key, change.previous);
      else objects.delete(change.key);
    }
    return [...objects].sort(([one], [other]) => (one < other ? -1 : 1));
  }

  /** What happened after a version; undefined if that is no longer known. */
  after(version: string): ObjectEvent<T>[] | undefined {
    if (compareVersions(version, this.#oldest) < 0) return undefined;
    return this.#changes.filter((change) => compareVersions(change.version, version) > 0).map(({ event }) => event);
  }

  /** What an object was before this event; undefined if there was none. */
  previousOf(event: ObjectEvent<T>): T | undefined {
    return this.#previous.get(event);
  }

  #advance(): void {
    this.#version = `${BigInt(this.#version) + 1n}`;
  }

  #remember(change: Omit<FakeChange<T>, 'version'>): FakeChange<T> {
    const whole = { ...change, version: this.#version };
    if (change.previous) this.#previous.set(change.event, change.previous);
    this.#changes.push(whole);
    while (this.#changes.length > this.#history) this.#oldest = (this.#changes.shift() as FakeChange<T>).version;
    return whole;
  }

  #versioned(object: T): T {
    return { ...object, metadata: { ...object.metadata, resourceVersion: this.#version } };
  }
}
