/**
 * State and log of a cacher, under one version. Every change is one synchronous step: it is in the state, in the log and in all
 * views that it concerns before anybody can look; and a watch joins state and log in one step, so no event is missed or comes
 * twice. What takes long, reading a large state, is done in pieces from a copy of the state, which costs next to nothing.
 *
 *     feed --- apply(event) ---> state: set, drop ----> log of all ---> router ---> views ---> watches
 *          '-- replace(list) --> another state; an empty log; old watches get 410
 *
 * Invariants
 * - The state at version v is what the storage had at v. Only `replace` can decrease the version.
 * - Undoing the changes of the log, last first, gives the state at any version from `base` on.
 */
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import { isPromise } from '../../watch/abort.ts';
import { WatchError } from '../../watch/errors.ts';
import { type BookmarkEvent, INITIAL_EVENTS_END, type Status } from '../../watch/event.ts';
import { type Pace, paceOf, through } from '../../watch/fair-queue.ts';
import type { ChangeEvent } from '../storage.ts';
import { CacheWatch, type CacheWatchHost, type WatchStart } from './cache-watch.ts';
import { Change, Entry, sizeOf } from './change.ts';
import { History } from './history.ts';
import { Indexes } from './indexes.ts';
import type { CacherSettings } from './options.ts';
import { Router } from './router.ts';
import type { Selection } from './selection.ts';
import { SortedMap } from './sorted-map.ts';
import { View } from './view.ts';

/** Where a watch begins. */
export interface JoinOptions {
  /** The state first. */
  readonly initial: boolean;
  /** A BOOKMARK after it. */
  readonly mark: boolean;
  /** Without the state: the version to begin after, which the cache must have reached. Default: now. */
  readonly after?: string | undefined;
  /** Settles as the promise does, or earlier if the watch is given up. Default: the promise itself. */
  readonly until?: (<R>(promise: Promise<R>) => Promise<R>) | undefined;
  /** How long the state is read at a stretch. */
  readonly pace?: Pace | undefined;
}

/** Now, or later if it takes long. */
type Soon<R> = R | Promise<R>;

/** Views are trimmed after this many changes, or as many as there are views if that is more: at most one look per change. */
const TRIM_EVERY = 256;

export class Core<T extends KubernetesObject> implements Pick<CacheWatchHost<T>, 'place' | 'bookmark'> {
  readonly history: History<T>;
  /** The version of the state; empty before there is one. */
  version: string = '';
  readonly #settings: CacherSettings<T>;
  #state: SortedMap<Entry<T>> = new SortedMap();
  readonly #indexes: Indexes<T> = new Indexes();
  #router: Router<T> = new Router();
  #views: Map<string, View<T>> = new Map();
  #bookmark: BookmarkEvent | undefined;
  /** The last past state that was asked for, and the place of the change after it: the next page reads the same state. */
  #past: { readonly place: number; readonly state: SortedMap<Entry<T>> } | undefined;
  /** All objects in order, if nothing has changed since they were last asked for. */
  #objects: readonly T[] | undefined;
  #trimAt: number = TRIM_EVERY;
  /** Whether the storage has said that `version` is complete, so that no further change can have it. */
  #sealed: boolean = false;

  constructor(settings: CacherSettings<T>) {
    this.#settings = settings;
    this.history = new History(settings, settings.compareVersions);
  }

  get place(): number {
    return this.history.end;
  }

  get size(): number {
    return this.#state.size;
  }

  get views(): number {
    return this.#views.size;
  }

  get bookmark(): BookmarkEvent {
    const { version } = this;
    if (this.#bookmark?.object.metadata.resourceVersion !== version) {
      this.#bookmark = { type: 'BOOKMARK', object: { metadata: { resourceVersion: version } } };
    }
    return this.#bookmark;
  }

  get(key: string): T | undefined {
    return this.#state.get(key)?.object;
  }

  /** Applies a change from the storage. Throws if it is impossible; then nothing has changed. */
  apply({ type, object, previous }: ChangeEvent<T>): void {
    const { compareVersions, keyOf, clock } = this.#settings;
    const version = versionOf(object);
    const order = compareVersions(version, this.version);
    if (order < 0 || (order === 0 && this.#sealed)) {
      throw new WatchError('INVALID_FRAME', `the storage sent a change of version ${version} after ${this.version}`);
    }
    const key = keyOf(object);
    if (previous && keyOf(previous) !== key) {
      throw new WatchError('INVALID_FRAME', `the key changed from ${keyOf(previous)} to ${key}: keyOf is wrong`);
    }
    const before = this.#state.get(key);
    const isDeletion = type === 'DELETED';
    const bytes = sizeOf(object) + (before && before.place < this.history.start ? sizeOf(before.object) : 0);
    this.version = version;
    this.#sealed = false;
    if (isDeletion && !before) return;
    const after = isDeletion ? undefined : new Entry(key, object, this.place);
    const change = new Change<T>({ key, object, before, isDeletion, version, atMs: clock.now(), bytes });
    if (after) this.#state.set(key, after);
    else this.#state.delete(key);
    this.#objects = undefined;
    this.#indexes.changed(before, after);
    const { place } = this;
    this.history.append(change);
    this.#router.route(change, place);
    this.trim();
  }

  /** There are no changes up to this version except those already applied. */
  moveTo(version: string): void {
    if (this.#settings.compareVersions(version, this.version) < 0) return;
    this.version = version;
    this.#sealed = true;
  }

  /** Whether the state consists of exactly these objects. */
  isJust(objects: readonly T[]): boolean {
    const isHere = (object: T): boolean => JSON.stringify(this.get(this.#settings.keyOf(object))) === JSON.stringify(object);
    return objects.length === this.size && objects.every(isHere);
  }

  /** Replaces the state, and nobody knows what happened in between: every watch gets `status` once it has read everything. */
  replace(objects: readonly T[], version: string, status: Status): void {
    const state = new SortedMap<Entry<T>>();
    for (const object of objects) {
      const key = this.#settings.keyOf(object);
      state.set(key, new Entry(key, object, -1));
    }
    this.end(status);
    this.#state = state;
    this.#indexes.clear();
    this.#objects = this.#past = undefined;
    this.history.clear(version);
    this.version = version;
    this.#sealed = true;
  }

  /** Ends all watches once they have read everything; with a status, each gets it last. */
  end(status?: Status): void {
    const views = this.#views;
    this.#views = new Map();
    this.#router = new Router();
    for (const view of views.values()) {
      view.end = status ? { status } : {};
      view.park.notify();
    }
  }

  /** Forgets all changes. */
  compact(): void {
    this.history.clear(this.version || '0');
    for (const view of this.#views.values()) view.trim(this.history.start);
  }

  /** Drops the changes that exceed the window's limits. */
  trim(): void {
    this.history.trim(this.#settings.clock.now());
    const { start } = this.history;
    // While its place is in the window, the window keeps its objects alive anyway.
    if ((this.#past?.place ?? start) < start) this.#past = undefined;
    if (start < this.#trimAt) return;
    this.#trimAt = start + Math.max(TRIM_EVERY, this.#views.size);
    for (const view of this.#views.values()) view.trim(start);
  }

  /**
   * Starts a watch. Undefined if what it asks for is no longer kept. If reading the state takes long, the watch begins at the state
   * of this moment nevertheless.
   */
  join(selection: Selection<T>, options: JoinOptions, host: CacheWatchHost<T>): Soon<CacheWatch<T>> | undefined {
    const { initial, mark, after, until = (promise) => promise, pace = paceOf(undefined) } = options;
    this.trim();
    const place = initial || after === undefined ? this.place : this.history.after(after);
    if (place === undefined) return undefined;
    const view = this.#viewOf(selection, place);
    const start: WatchStart<T> = {
      place,
      // Most begin at the cache's version, and can share its string.
      version: after === undefined || after === this.version ? this.version : after,
      ...(mark && { mark: this.#mark() }),
    };
    if (!initial) return new CacheWatch(host, view, start);
    const state = view.initial((isWanted) => this.#gather(selection, ({ added }) => added, { pace, isWanted }));
    if (isPromise(state))
      return this.#joinLater(view, until(state), (read) => new CacheWatch(host, view, { ...start, initial: read }));
    return new CacheWatch(host, view, { ...start, initial: state });
  }

  /** Meanwhile the view stands, and takes what happens. */
  async #joinLater(
    view: View<T>,
    state: Promise<readonly ChangeEvent<T>[]>,
    open: (state: readonly ChangeEvent<T>[]) => CacheWatch<T>,
  ): Promise<CacheWatch<T>> {
    view.watchers++;
    view.opening++;
    try {
      return open(await state);
    } finally {
      view.opening--;
      view.watchers--;
      this.left(view);
    }
  }

  /** A watch has left its view. */
  left(view: View<T>): void {
    if (view.watchers > 0 || this.#views.get(view.selection.id) !== view) return;
    this.#views.delete(view.selection.id);
    this.#router.remove(view);
  }

  /** The objects of the state that are selected, in the order of their keys. */
  select(selection: Selection<T>, signal?: AbortSignal): Soon<readonly T[]> {
    const terms = { pace: paceOf(signal), signal };
    if (selection.id !== '') return this.#gather(selection, toObject, terms);
    if (this.#objects !== undefined) return this.#objects;
    const [state, place] = [this.#state, this.place];
    const keep = (objects: readonly T[]): readonly T[] => {
      if (this.#state === state && this.place === place) this.#objects = objects;
      return objects;
    };
    const objects = this.#gather(selection, toObject, terms);
    return isPromise(objects) ? objects.then(keep) : keep(objects);
  }

  /** The entries among which those of a selection are. They stay as they are now. */
  candidates({ pin }: Selection<T>): SortedMap<Entry<T>> {
    return pin ? this.#indexes.find(pin, () => this.#state.values()) : this.#state.copy();
  }

  /** What is made of each entry that is selected, in the order of their keys. */
  #gather<R>(
    selection: Selection<T>,
    make: (entry: Entry<T>) => R,
    { isWanted = always, ...terms }: { pace: Pace; signal?: AbortSignal | undefined; isWanted?: () => boolean },
  ): Soon<readonly R[]> {
    const found: R[] = [];
    const visit = (entry: Entry<T>): boolean => {
      if (selection.matches(entry.key, entry.object)) found.push(make(entry));
      return isWanted();
    };
    return through(this.candidates(selection).values(selection.prefix), visit, terms)?.then(() => found) ?? found;
  }

  /** The state as it was at a version; undefined if that is no longer known, or not yet. */
  snapshotAt(version: string, signal?: AbortSignal): Soon<SortedMap<Entry<T>> | undefined> {
    if (this.#settings.compareVersions(version, this.version) > 0) return undefined;
    const from = this.history.after(version);
    if (from === undefined) return undefined;
    let past = this.#past;
    if (!past || past.place < from) past = this.#past = { place: this.place, state: this.#state.copy() };
    if (past.place === from) return past.state;
    const state = past.state.copy();
    const undo = (place: number): boolean => {
      if (place < this.history.start) return false;
      const { key, before } = this.history.at(place);
      if (before) state.set(key, before);
      else state.delete(key);
      return true;
    };
    const keep = (): SortedMap<Entry<T>> | undefined => {
      // Forgotten meanwhile.
      if (from < this.history.start) return undefined;
      this.#past = { place: from, state };
      return state;
    };
    return through(downTo(from, past.place - 1), undo, { pace: paceOf(signal), signal })?.then(keep) ?? keep();
  }

  #viewOf(selection: Selection<T>, from: number): View<T> {
    let view = this.#views.get(selection.id);
    if (view && view.lostBefore <= from) return view;
    if (!view) {
      view = new View(selection);
      this.#views.set(selection.id, view);
      this.#router.add(view);
    }
    view.build(this.history, from);
    return view;
  }

  #mark(): BookmarkEvent {
    const metadata = { resourceVersion: this.version, annotations: { [INITIAL_EVENTS_END]: 'true' } };
    return { type: 'BOOKMARK', object: { metadata } };
  }
}

function toObject<T extends KubernetesObject>({ object }: Entry<T>): T {
  return object;
}

function always(): boolean {
  return true;
}

function* downTo(first: number, last: number): IterableIterator<number> {
  for (let place = last; place >= first; place--) yield place;
}
