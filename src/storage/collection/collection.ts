/**
 * State and log of objects, under one version. Every change is one synchronous step: it is in the state, in the log and in all
 * views that it concerns before anybody can read them; and a watch joins state and log in one step, so no event is missed or
 * comes twice. A large state is read in pieces, from a copy that costs next to nothing.
 *
 *     MemoryStorage's writer, or a Cacher's feed
 *          |-- apply(step) --> state: set, drop ----> log of all ---> router ---> views ---> watches
 *          '-- replace(entries) --> a new state, an empty log; old watches get 410
 *
 * **Routed, not filtered.** A change goes only to the views of the scopes and field values that its object has or had. Watches
 * with the same selection share a view: the change is evaluated once for all of them, and they get the same event objects. So an
 * object, whose bytes belong to its identity (values.ts), is encoded once.
 *
 * **Slow watches re-read.** A watch has a place, but no queue. Unread changes cost nothing while the window keeps them anyway.
 * Once the window has dropped them, the watch gets an ERROR 410. Nobody waits for a slow watch.
 *
 * Invariants
 * - The state at version v is what its source had at v. Only `replace` can decrease the version.
 * - Undoing the changes of the log, from the last one back, gives the state at any version from `base` on.
 * - Views have every change before `#routed`, which is the end of the log, except while a field's function writes.
 */
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import type { VersionComparator } from '../../cache/versions.ts';
import { isPromise } from '../../watch/abort.ts';
import type { Clock } from '../../watch/clock.ts';
import { callables, getOrMake, WatchError } from '../../watch/errors.ts';
import { type BookmarkEvent, INITIAL_EVENTS_END, type Status } from '../../watch/event.ts';
import { type Pace, paceOf, type Soon, through } from '../../watch/fair-queue.ts';
import type { ChangeEvent, FieldFunctions } from '../storage.ts';
import { ChangeLog, LogEntry, type LogLimits, StateEntry, type Step } from './change-log.ts';
import { Indexes, type Part, Router } from './router.ts';
import { SortedMap } from './sorted-map.ts';
import { FieldReader, type Selection, SharedView } from './view.ts';
import { CollectionWatch, type Progress, type WatchHost, type WatchStart } from './watch.ts';

interface CollectionOptions<T extends KubernetesObject> {
  readonly limits: LogLimits;
  readonly compareVersions: VersionComparator;
  readonly clock: Clock;
  /** What a change costs the log, in bytes. `isKept`: the object before it belongs to another change in the log. */
  readonly costOf: (step: Step<T>, before: StateEntry<T> | undefined, isKept: boolean) => number;
  /** Called with errors thrown by functions that read fields. Must not throw. */
  readonly onFieldError: (error: unknown) => void;
}

/** Where a watch begins. */
export interface JoinOptions {
  /** Whether the state comes first. */
  readonly initial: boolean;
  /** Whether a BOOKMARK follows it. */
  readonly mark: boolean;
  /** Without the state: the version to begin after, which the collection must have reached. Default: now. */
  readonly after?: string | undefined;
  /** Settles like the promise, or earlier if the watch is abandoned. Default: the promise itself. */
  readonly until?: (<R>(promise: Promise<R>) => Promise<R>) | undefined;
  /** Interrupts the reading of a long state. */
  readonly pace?: Pace | undefined;
}

/** Views are trimmed after this many changes, or as many as there are views if that is more: at most one look per change. */
const TRIM_EVERY = 256;

export class Collection<T extends KubernetesObject> {
  readonly log: ChangeLog<T>;
  readonly compareVersions: VersionComparator;
  /** The version of the state; empty before there is one. */
  version: string = '';
  readonly #options: CollectionOptions<T>;
  #state: SortedMap<StateEntry<T>> = new SortedMap();
  readonly #indexes: Indexes<T> = new Indexes();
  readonly #readers: WeakMap<object, Map<string, FieldReader<never>>> = new WeakMap();
  readonly #router: Router<T> = new Router();
  #views: Map<string, SharedView<T>> = new Map();
  #progress: Progress | undefined;
  /** The last past state that was asked for, and the place of the change after it: the next page reads the same state. */
  #past: { readonly place: number; readonly state: SortedMap<StateEntry<T>> } | undefined;
  #trimAt: number = TRIM_EVERY;
  /** The place of the first change that has not been routed to views. */
  #routed: number = 0;
  #isRouting: boolean = false;
  /** Whether `version` is complete, so that no further change can have it. */
  #isSealed: boolean = false;

  constructor(options: CollectionOptions<T>) {
    this.#options = options;
    this.compareVersions = options.compareVersions;
    this.log = new ChangeLog(options.limits, options.compareVersions);
  }

  /** The place after the last change. */
  get place(): number {
    return this.log.end;
  }

  get size(): number {
    return this.#state.size;
  }

  get views(): number {
    return this.#views.size;
  }

  /** What a BOOKMARK would say now. */
  get progress(): Progress {
    const { version, place } = this;
    if (this.#progress?.place !== place || this.#progress.event.object.metadata.resourceVersion !== version) {
      this.#progress = { place, event: { type: 'BOOKMARK', object: { metadata: { resourceVersion: version } } } };
    }
    return this.#progress;
  }

  get(key: string): T | undefined {
    return this.#state.get(key)?.object;
  }

  /** The part of a prefix, with its statistics, which are kept from now on. */
  part(prefix: string): Part<T> {
    return this.#router.part(prefix);
  }

  /** How many objects there are under a prefix. */
  count(prefix: string): number {
    return this.#state.count(prefix, prefix);
  }

  /**
   * The reader of these fields for objects below a prefix: scopes with the same fields and prefix share it, and thereby its
   * indexes.
   */
  readerOf<U extends KubernetesObject>(fields: FieldFunctions<U>, prefix: string): FieldReader<U> {
    const readers = getOrMake(this.#readers, callables('fields', fields), () => new Map<string, FieldReader<never>>());
    const make = (): FieldReader<U> => new FieldReader(fields, { prefix, onError: this.#options.onFieldError });
    return getOrMake(readers as Map<string, unknown>, prefix, make) as FieldReader<U>;
  }

  /** The entries of the state below a prefix, in order, from a key on. Nothing may be applied in the meantime. */
  entries(prefix: string, from: string = prefix): IterableIterator<StateEntry<T>> {
    return this.#state.values(prefix, from);
  }

  /** The state as it is now: later changes are not seen in it. */
  snapshot(): SortedMap<StateEntry<T>> {
    return this.#state.copy();
  }

  /** Applies a change. If it is impossible, throws and changes nothing. Deleting a missing object only moves the version. */
  apply(step: Step<T>): void {
    const { key, object, isDeletion } = step;
    const version = versionOf(object);
    const order = this.compareVersions(version, this.version);
    if (order < 0 || (order === 0 && this.#isSealed)) {
      throw new WatchError('INVALID_FRAME', `the storage sent a change of version ${version} after ${this.version}`);
    }
    const before = this.#state.get(key);
    const bytes = this.#options.costOf(step, before, before !== undefined && before.place >= this.log.start);
    this.version = version;
    this.#isSealed = false;
    if (isDeletion && !before) return;
    const after = isDeletion ? undefined : new StateEntry(key, object, this.place);
    if (after) this.#state.set(key, after);
    else this.#state.delete(key);
    const nowMs = this.#options.clock.now();
    this.log.append(new LogEntry<T>({ before, after, object, atMs: nowMs, bytes }));
    if (!this.#isRouting) this.#route();
    this.#trim(nowMs);
  }

  /** Moves to a version up to which no further changes will come. */
  moveTo(version: string): void {
    if (this.compareVersions(version, this.version) < 0) return;
    this.version = version;
    this.#isSealed = true;
  }

  /** Functions of fields may write: such changes are routed after the current one. */
  #route(): void {
    const { log } = this;
    this.#isRouting = true;
    try {
      for (; this.#routed < log.end; this.#routed++) {
        if (this.#routed < log.start) {
          this.#lose(log.start);
          if (this.#routed === log.end) break;
        }
        const change = log.at(this.#routed);
        this.#indexes.changed(change.before, change.after);
        this.#router.route(change, this.#routed);
      }
    } finally {
      this.#isRouting = false;
    }
  }

  /** Changes that a field's function wrote and compacted before they were routed have not reached any view. */
  #lose(start: number): void {
    this.#routed = start;
    this.#indexes.clear();
    for (const view of this.#views.values()) view.lostBefore = start;
  }

  /** Replaces the state. What happened in between is unknown, so every watch gets `status` once it has read everything. */
  replace(entries: Iterable<Pick<StateEntry<T>, 'key' | 'object'>>, version: string, status?: Status): void {
    const state = new SortedMap<StateEntry<T>>();
    for (const { key, object } of entries) state.set(key, new StateEntry(key, object, -1));
    this.end(status);
    this.#state = state;
    this.#indexes.clear();
    this.#past = undefined;
    this.log.clear(version);
    this.version = version;
    this.#isSealed = true;
  }

  /** Whether the state consists of exactly these objects. */
  isJust(entries: readonly Pick<StateEntry<T>, 'key' | 'object'>[]): boolean {
    const isHere = ({ key, object }: (typeof entries)[number]): boolean =>
      JSON.stringify(this.get(key)) === JSON.stringify(object);
    return entries.length === this.size && entries.every(isHere);
  }

  /** Ends all watches once they have read everything. Each gets `status` last, if there is one. */
  end(status?: Status): void {
    const views = this.#views;
    this.#views = new Map();
    this.#router.clear();
    for (const view of views.values()) {
      view.end = status ? { status } : {};
      view.park.notify();
    }
  }

  /** Forgets the changes up to a version; default: all. */
  compact(version: string = this.version || '0'): void {
    this.log.compact(version);
    for (const view of this.#views.values()) view.trim(this.log.start);
  }

  /** Drops the changes that exceed the window's limits. */
  trim(): void {
    this.#trim(this.#options.clock.now());
  }

  #trim(nowMs: number): void {
    this.log.trim(nowMs);
    const { start } = this.log;
    // While its place is in the window, the window keeps its objects alive anyway.
    if ((this.#past?.place ?? start) < start) this.#past = undefined;
    if (start < this.#trimAt) return;
    this.#trimAt = start + Math.max(TRIM_EVERY, this.#views.size);
    for (const view of this.#views.values()) view.trim(start);
  }

  /**
   * Starts a watch. Undefined if what it asks for is no longer kept. Even if reading the state takes long, the watch begins at
   * the state of this moment.
   */
  join(selection: Selection<T>, options: JoinOptions, host: WatchHost<T>): Soon<CollectionWatch<T>> | undefined {
    const { initial, mark, after, until = (promise) => promise, pace = paceOf(undefined) } = options;
    this.trim();
    const place = initial || after === undefined ? this.place : this.log.after(after);
    if (place === undefined) return undefined;
    const view = this.#viewOf(selection, place);
    const start: WatchStart<T> = {
      place,
      // Most begin at the current version, and can share its string.
      version: after === undefined || after === this.version ? this.version : after,
      ...(mark && { mark: this.#mark() }),
    };
    if (!initial) return new CollectionWatch(host, view, start);
    const state = view.initial((isWanted) => this.#gather(selection, ({ added }) => added, { pace, isWanted }));
    if (isPromise(state))
      return this.#joinLater(view, until(state), (read) => new CollectionWatch(host, view, { ...start, initial: read }));
    return new CollectionWatch(host, view, { ...start, initial: state });
  }

  /** Meanwhile, the view exists, and takes changes. */
  async #joinLater(
    view: SharedView<T>,
    state: Promise<readonly ChangeEvent<T>[]>,
    open: (state: readonly ChangeEvent<T>[]) => CollectionWatch<T>,
  ): Promise<CollectionWatch<T>> {
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
  left(view: SharedView<T>): void {
    if (view.watchers > 0 || this.#views.get(view.selection.id) !== view) return;
    this.#views.delete(view.selection.id);
    this.#router.remove(view);
  }

  /** The objects of the state that are selected, in the order of their keys. */
  select(selection: Selection<T>, signal?: AbortSignal): Soon<readonly T[]> {
    const terms = { signal };
    const part = selection.isWhole && this.#routed === this.place ? this.#router.keptPart(selection.prefix) : undefined;
    if (!part) return this.#gather(selection, toObject, terms);
    if (part.objects !== undefined) return part.objects;
    const [state, place] = [this.#state, part.changes];
    const keep = (objects: readonly T[]): readonly T[] => {
      if (this.#state === state && part.changes === place) part.objects = objects;
      return objects;
    };
    const objects = this.#gather(selection, toObject, terms);
    return isPromise(objects) ? objects.then(keep) : keep(objects);
  }

  /** The entries that contain those of a selection. They stay as they are now. */
  candidates({ pin }: Selection<T>): SortedMap<StateEntry<T>> {
    if (!pin) return this.snapshot();
    const { place } = this;
    // An index that a change has not reached would show an old state, and so would one that was made while a field's function wrote.
    if (this.#routed < place) return this.snapshot();
    const found = this.#indexes.find(pin, () => this.snapshot().values());
    if (place === this.place) return found;
    this.#indexes.clear();
    return this.snapshot();
  }

  /** The results for all selected entries, in the order of their keys. */
  #gather<R>(
    selection: Selection<T>,
    make: (entry: StateEntry<T>) => R,
    { isWanted = () => true, ...terms }: { pace?: Pace; signal?: AbortSignal | undefined; isWanted?: () => boolean },
  ): Soon<readonly R[]> {
    const found: R[] = [];
    const visit = (entry: StateEntry<T>): boolean => {
      if (selection.matches(entry.key, entry.object)) found.push(make(entry));
      return isWanted();
    };
    return through(this.candidates(selection).values(selection.prefix), visit, terms)?.then(() => found) ?? found;
  }

  /** The state as it was at a version; undefined if that is no longer known, or not yet. */
  snapshotAt(version: string, signal?: AbortSignal): Soon<SortedMap<StateEntry<T>> | undefined> {
    if (this.compareVersions(version, this.version) > 0) return undefined;
    const from = this.log.after(version);
    if (from === undefined) return undefined;
    let past = this.#past;
    if (!past || past.place < from) past = this.#past = { place: this.place, state: this.snapshot() };
    if (past.place === from) return past.state;
    const state = past.state.copy();
    const undo = (place: number): boolean => {
      if (place < this.log.start) return false;
      const { key, before } = this.log.at(place);
      if (before) state.set(key, before);
      else state.delete(key);
      return true;
    };
    const keep = (): SortedMap<StateEntry<T>> | undefined => {
      // It has been dropped in the meantime.
      if (from < this.log.start) return undefined;
      this.#past = { place: from, state };
      return state;
    };
    return through(downTo(from, past.place - 1), undo, { signal })?.then(keep) ?? keep();
  }

  #viewOf(selection: Selection<T>, from: number): SharedView<T> {
    let view = this.#views.get(selection.id);
    if (view && view.lostBefore <= from) return view;
    if (!view) {
      view = new SharedView(selection);
      this.#views.set(selection.id, view);
      this.#router.add(view);
    }
    view.build(this.log, from);
    return view;
  }

  #mark(): BookmarkEvent {
    const metadata = { resourceVersion: this.version, annotations: { [INITIAL_EVENTS_END]: 'true' } };
    return { type: 'BOOKMARK', object: { metadata } };
  }
}

function toObject<T extends KubernetesObject>({ object }: StateEntry<T>): T {
  return object;
}

function* downTo(first: number, last: number): IterableIterator<number> {
  for (let place = last; place >= first; place--) yield place;
}
