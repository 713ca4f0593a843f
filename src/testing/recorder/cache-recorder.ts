import type { ListWatcher } from '../../cache/list-watcher.ts';
import { type KubernetesObject, keyOf, versionOf } from '../../cache/object.ts';
import type { VersionComparator } from '../../cache/versions.ts';
import { checkOptions } from '../../watch/errors.ts';
import type { ObjectEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import type { CacheHistory, CacheState, CacheStep, HandlerCall } from '../checkers/cache/cache-history.ts';
import { type CacheNotebook, RecordedObjectWatch, RecordedSource } from './recorded-source.ts';

/** A source that a {@link CacheRecorder} can change: a `FakeListWatcher`, or your ownState server. */
export interface ChangeableSource<T> extends ListWatcher<T> {
  readonly resourceVersion: string;
  /** The oldest version from which watches can resume, if the source reports it. */
  readonly oldestVersion?: string | undefined;
  /** Its current objects. */
  readonly objects: Iterable<T>;
  /** Adds an object, or changes it. Returns it with its new version. */
  add(object: T): T;
  delete(object: T): T | undefined;
}

/** What a {@link CacheRecorder} needs from a cache, such as an `Informer`. */
export interface RecordableCache<T> {
  readonly store: { list(): Iterable<T> };
  readonly resourceVersion: string;
  readonly hasSynced: boolean;
  addHandler(handler: RecordedHandler<T>, options?: { filter?: ((object: T) => boolean) | undefined }): RecordableRegistration;
}

/** What a {@link CacheRecorder} needs from a handler's registration. */
export interface RecordableRegistration {
  readonly hasSynced: boolean;
  remove(): void;
}

/** The handler of a recorded cache, as an informer calls it. */
export interface RecordedHandler<T> {
  onAdd?(object: T, initial: boolean): unknown;
  onUpdate?(old: T, object: T): unknown;
  onDelete?(object: T, finalStateUnknown: boolean): unknown;
}

/** Options of a {@link CacheRecorder}. */
export interface CacheRecorderOptions<T> {
  /** Default `keyOf`. */
  readonly keyOf?: ((object: T) => string) | undefined;
  /** Returns the id of an object in the history; default its version. A transform must not change it. */
  readonly idOf?: ((object: T) => string) | undefined;
  /** Default `compareVersions`. */
  readonly compare?: VersionComparator | undefined;
}

interface Recorded<T> {
  readonly cache: RecordableCache<T>;
  synced: boolean;
  readonly registrations: Map<string, RecordableRegistration>;
  /** The handlers that have reported it. */
  readonly told: Set<string>;
}

/**
 * Records what happens to caches of one source, for `checkCacheHistory`. Change the source through the recorder, pass each cache
 * what `source` returns, and add handlers and watches through the recorder:
 *
 *     const fake = new FakeListWatcher<Pod>();
 *     const recorder = new CacheRecorder<Pod>(fake);
 *     const informer = new Informer(recorder.source('mine'));
 *     recorder.cache('mine', informer);
 *     recorder.addHandler('mine', 'table', { onAdd: (pod) => show(pod) });
 *     recorder.add(pod);
 *     ...
 *     recorder.settled();                          // the faults have stopped, and a backoff and a relist have passed
 *     checkCacheHistory(recorder.history())        // []
 *
 * It looks at every cache whenever it records something, because a cache must be correct at any moment.
 */
export class CacheRecorder<T extends KubernetesObject = KubernetesObject> {
  readonly #source: ChangeableSource<T>;
  readonly #compare: VersionComparator | undefined;
  readonly #keyOf: (object: T) => string;
  readonly #idOf: (object: T) => string;
  readonly #steps: CacheStep[] = [];
  readonly #caches: Map<string, Recorded<T>> = new Map();
  readonly #notebook: CacheNotebook<T>;
  /** Every object that the source has had, for filters. */
  readonly #objects: Map<string, T> = new Map();
  #oldest: string | undefined;
  #requests: number = 0;

  constructor(source: ChangeableSource<T>, options: CacheRecorderOptions<T> = {}) {
    const { keyOf: key = keyOf, idOf = versionOf, compare } = checkOptions(options, ['keyOf', 'idOf', 'compare']);
    this.#source = source;
    this.#compare = compare;
    this.#keyOf = key;
    this.#idOf = idOf;
    this.#oldest = source.oldestVersion;
    this.#notebook = {
      write: (step) => void this.#steps.push(step),
      keyOf: key,
      idOf,
      stateOf: (objects) => this.#stateOf(objects),
      nameFor: (client, verb) => `${client} ${verb} ${++this.#requests}`,
    };
    for (const object of source.objects) this.#know(object);
    this.#write({ step: 'source', version: source.resourceVersion, state: this.#stateOf(source.objects) });
  }

  /** The source for one client, whose requests are recorded under its name. */
  source(client: string): ListWatcher<T> {
    return new RecordedSource(this.#source, { client, notebook: this.#notebook });
  }

  /** Adds an object to the source, or changes it. Returns it with its new version. */
  add(object: T): T {
    const stored = this.#source.add(object);
    this.#know(stored);
    this.#changed({ key: this.#keyOf(stored), object: this.#idOf(stored) });
    return stored;
  }

  /** Deletes an object from the source. Returns what the source returns. */
  delete(object: T): T | undefined {
    const gone = this.#source.delete(object);
    if (gone !== undefined) this.#changed({ key: this.#keyOf(object) });
    return gone;
  }

  /** Records a cache from now on. */
  cache(name: string, cache: RecordableCache<T>): void {
    this.#caches.set(name, { cache, synced: false, registrations: new Map(), told: new Set() });
    this.look();
  }

  /** Adds a handler to a cache, and records how it is called. */
  addHandler<R extends RecordableRegistration>(
    cache: string,
    name: string,
    handler: RecordedHandler<T> = {},
    options: { filter?: ((object: T) => boolean) | undefined } = {},
  ): R {
    const recorded = this.#recorded(cache);
    this.look();
    const { filter } = options;
    const selects = filter && ((key: string, id: string) => filter(this.#objects.get(`${key} ${id}`) as T));
    this.#write({ step: 'handler', handler: name, cache, selects });
    const registration = recorded.cache.addHandler(this.#wrapped(name, handler), options);
    recorded.registrations.set(name, registration);
    return registration as R;
  }

  /** Records that a handler was removed, and removes it. */
  removeHandler(cache: string, name: string): void {
    const { registrations } = this.#recorded(cache);
    registrations.get(name)?.remove();
    registrations.delete(name);
    this.#write({ step: 'removed', handler: name });
  }

  /** Records a watch of a cache, such as `informer.watch()`. The watch must have neither a filter nor a selector. */
  watch(cache: string, watch: Watch<ObjectEvent<T>>, options: { signal?: AbortSignal | undefined } = {}): Watch<ObjectEvent<T>> {
    const name = this.#notebook.nameFor(cache, 'copy');
    this.#write({ step: 'watch', watch: name, cache });
    return new RecordedObjectWatch(watch, { name, notebook: this.#notebook, signal: options.signal });
  }

  /** Records that a cache says it has reached a version. */
  reached(cache: string, version: string): void {
    this.look();
    this.#write({ step: 'reached', cache, version });
  }

  /** Records that a cache was stopped. */
  stopped(cache: string): void {
    this.look();
    this.#write({ step: 'stopped', cache });
    this.#caches.delete(cache);
  }

  /** Records that faults have stopped and nothing has changed for the time of one backoff and one relist. */
  settled(): void {
    this.look();
    this.#write({ step: 'settled' });
  }

  /** Looks at every cache, and records its state. */
  look(): void {
    const { oldestVersion } = this.#source;
    if (oldestVersion !== undefined && oldestVersion !== this.#oldest) {
      this.#oldest = oldestVersion;
      this.#write({ step: 'expired', version: oldestVersion });
    }
    for (const [name, recorded] of this.#caches) this.#look(name, recorded);
  }

  /** What has happened so far. */
  history(): CacheHistory {
    return { steps: [...this.#steps], compare: this.#compare };
  }

  #look(name: string, recorded: Recorded<T>): void {
    const { cache, registrations, told } = recorded;
    this.#write({ step: 'cache', cache: name, version: cache.resourceVersion, state: this.#stateOf(cache.store.list()) });
    if (cache.hasSynced && !recorded.synced) {
      recorded.synced = true;
      this.#write({ step: 'synced', cache: name });
    }
    for (const [handler, { hasSynced }] of registrations) {
      if (!hasSynced || told.has(handler)) continue;
      told.add(handler);
      this.#write({ step: 'handler-synced', handler });
    }
  }

  #changed(change: { key: string; object?: string }): void {
    this.#write({ step: 'changed', version: this.#source.resourceVersion, ...change });
    this.look();
  }

  #wrapped(handler: string, own: RecordedHandler<T>): RecordedHandler<T> {
    const calls = (call: HandlerCall, object: T, old: T | undefined, run: () => unknown): unknown => {
      this.look();
      const key = this.#keyOf(object);
      this.#write({ step: 'call', handler, call, key, object: this.#idOf(object), old: old && this.#idOf(old) });
      const returned = (): void => this.#write({ step: 'returned', handler });
      let result: unknown;
      try {
        result = run();
      } catch (error) {
        returned();
        throw error;
      }
      if (!(result instanceof Promise)) {
        returned();
        return result;
      }
      return result.finally(returned);
    };
    return {
      onAdd: (object, initial) => calls('add', object, undefined, () => own.onAdd?.(object, initial)),
      onUpdate: (old, object) => calls('update', object, old, () => own.onUpdate?.(old, object)),
      onDelete: (object, unknown) => calls('delete', object, undefined, () => own.onDelete?.(object, unknown)),
    };
  }

  #recorded(name: string): Recorded<T> {
    const recorded = this.#caches.get(name);
    if (!recorded) throw new Error(`no cache ${name} is recorded`);
    return recorded;
  }

  #know(object: T): void {
    this.#objects.set(`${this.#keyOf(object)} ${this.#idOf(object)}`, object);
  }

  #stateOf(objects: Iterable<T>): CacheState {
    return Object.fromEntries(Array.from(objects, (object) => [this.#keyOf(object), this.#idOf(object)]));
  }

  #write(step: CacheStep): void {
    this.#steps.push(step);
  }
}
