import { filter } from '../../broadcast/filter.ts';
import { deciding, Latch, untilAborted, whenAborted } from '../../watch/abort.ts';
import { type Clock, listed, systemClock, within } from '../../watch/clock.ts';
import { callable, checkOptions, checkSignal, invalid, oneOf, WatchError, wholeNumber } from '../../watch/errors.ts';
import type { ObjectEvent } from '../../watch/event.ts';
import { Failures, quietly } from '../../watch/failures.ts';
import { Timetable } from '../../watch/timetable.ts';
import type { Watch } from '../../watch/watch.ts';
import type { ListWatcher } from '../list-watcher.ts';
import type { KubernetesObject } from '../object.ts';
import { Reflector, SourceReports } from '../reflector/reflector.ts';
import { REFLECTOR_NAMES, RETRY_NAMES, type ReflectorFailure } from '../reflector/reflector-options.ts';
import { labelFilter } from '../store/store.ts';
import { type AtLeastOptions, compareVersions, Versions } from '../versions.ts';
import type {
  Handler,
  HandlerFailure,
  HandlerOptions,
  HandlerOverflow,
  HandlerRegistration,
  InformerOptions,
  InformerState,
  InformerStore,
  InformerWatchOptions,
  ObjectFailure,
  RefreshOptions,
  StopOptions,
} from './informer-options.ts';
import { LiveStore, toObjectEvent } from './live-store.ts';
import { Registration } from './registration.ts';

const HANDLER = ['onAdd', 'onUpdate', 'onDelete'] as const;
const HANDLER_OPTIONS = ['resyncMs', 'filter', 'overflow', 'capacity', 'onGap'] as const;
/** A literal list, because it is smaller; test/lists.test.ts compares it with the rules of the policies. */
export const HANDLER_OVERFLOWS: readonly HandlerOverflow[] = ['drop-newest', 'drop-oldest', 'disconnect', 'coalesce'];
const WATCH_OPTIONS = ['labelSelector', 'signal', 'filter', 'overflow', 'capacity', 'onGap'] as const;

/**
 * Keeps a live copy of a collection, and calls its handlers with every change. It lists and watches `source`, and keeps doing so
 * whatever fails, until it is stopped.
 *
 *     source --Reflector--> state and log (live-store.ts) --> store: get, list, byIndex
 *                                                        '--> handlers (registration.ts), watch(): each a reader of the log
 *
 *     const pods = new Informer(source, { indexers: { node: (pod: Pod) => [pod.spec.nodeName] } });
 *     pods.addHandler({ onAdd: (pod) => queue.add(keyOf(pod)) });
 *     void pods.run(signal);
 *     await pods.synced;
 *     pods.store.byIndex('node', 'n1');
 *
 *     new ---- run ----> running ---- stop, an aborted signal, an error thrown by onError ----> stopped: nothing pends, no timer
 *      '------ stop --------------------------------------------------------------------------------^
 *
 * It runs only once: to run again, create another informer. Upstream: `cache.SharedIndexInformer`.
 */
export class Informer<T, Name extends string = string> {
  /** The objects, by key. Read-only. */
  readonly store: InformerStore<T, Name>;
  readonly #live: LiveStore<T, Name>;
  readonly #reflector: Reflector<T>;
  readonly #clock: Clock;
  readonly #onError: InformerOptions<T>['onError'];
  readonly #listeners: Set<(error: unknown) => void> = new Set();
  readonly #stateListeners: Set<() => void> = new Set();
  /** Used without `onError`: one for handlers and objects, one for the source. */
  readonly #failures: Failures;
  readonly #reports: SourceReports;
  readonly #resyncMs: number;
  /** When each handler gets every object again, once the informer runs: one period after it was added, or last got them. */
  readonly #resyncs: Timetable<Registration<T>>;
  readonly #versions: Versions;
  readonly #synced: Latch = new Latch();
  readonly #stopping: AbortController = new AbortController();
  /** The handlers whose last call has not returned. */
  readonly #handlers: Set<Registration<T>> = new Set();
  #failure: { readonly error: unknown } | undefined;
  #ran: boolean = false;
  #reflecting: Promise<void> | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for anything but a ListWatcher, and for an invalid or unknown option. */
  constructor(source: ListWatcher<T>, options: InformerOptions<T, Name> = {}) {
    checkOptions(options, [...RETRY_NAMES, ...REFLECTOR_NAMES, 'indexers', 'transform', 'compareVersions']);
    const { resyncMs = 0, indexers, transform, keyOf, compareVersions: compare = compareVersions, onError, ...others } = options;
    this.#clock = others.clock ?? systemClock;
    this.#resyncs = new Timetable(this.#clock, (registration) => this.#resync(registration));
    this.#onError = callable('onError', onError);
    this.#failures = new Failures('informer', others);
    this.#reports = new SourceReports('informer', others.clock);
    this.#resyncMs = wholeNumber('resyncMs', resyncMs);
    this.#versions = new Versions(this.#clock, callable('compareVersions', compare));
    this.#live = new LiveStore<T, Name>(
      { indexers, transform, keyOf },
      {
        onRefused: (error, object) => this.#report(error, { kind: 'object', object }),
        onVersion: () => this.#moved(),
      },
    );
    this.store = this.#live;
    const onStateChange = callable('onStateChange', others.onStateChange);
    this.#reflector = new Reflector(source, this.#live, {
      ...others,
      keyOf,
      onError: (error, failure) => this.#sourceFailed(error, failure),
      onStateChange: (state) => {
        this.#reports.changed(state);
        const said: unknown = onStateChange?.(state);
        for (const listener of this.#stateListeners) listener();
        return said as undefined; // of an async one, the reflector takes the rejection
      },
    });
  }

  /** Whether `run` was called. */
  get started(): boolean {
    return this.#ran;
  }

  /** Whether the state of the source is in the store. Handlers may still lag behind: each has its own `synced`. */
  get hasSynced(): boolean {
    return this.#synced.isOpen;
  }

  /** Resolves when the state of the source is in the store. Rejects if the informer stops before that. */
  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  /** The version of the store; empty before the first list. */
  get resourceVersion(): string {
    return this.#live.resourceVersion;
  }

  /** Its current state: what it is doing, when the source last answered, and what has failed. */
  get state(): InformerState {
    const { state } = this.#reflector;
    return this.#isStopping && !this.#reflecting ? { ...state, phase: 'stopped' } : state;
  }

  /**
   * Runs until the signal aborts or `stop` is called, and resolves when everything has stopped: no request, no timer, no call of
   * a handler is left. May be called only once; resolves at once if `stop` was called before. Rejects with what `onError` or
   * `onStateChange` throws.
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT if it was called before; TIMEOUT as for `stop`, unless something was thrown
   * before.
   */
  async run(signal?: AbortSignal, options: StopOptions = {}): Promise<void> {
    limitOf(options);
    checkSignal(signal);
    if (this.#ran) throw new WatchError('INVALID_ARGUMENT', 'an informer runs once');
    this.#ran = true;
    const leave = whenAborted(signal, () => this.#close());
    for (const registration of this.#handlers) this.#plan(registration);
    this.#reflecting = this.#reflector.run(this.#stopping.signal);
    await this.#reflecting.catch((error: unknown) => this.#fail(error));
    leave();
    await this.stop(options).catch((error: unknown) => {
      if (!this.#failure) throw error;
    });
    if (this.#failure) throw this.#failure.error;
  }

  /**
   * Stops the informer: no call of a handler begins after this. Resolves when the calls in progress have returned, and nothing is
   * left. A handler may call it, but must not await it, because it waits for the handler. Idempotent.
   *
   * @throws {WatchError} (rejects) TIMEOUT when calls take longer than `timeoutMs`; it names them. INVALID_ARGUMENT for an invalid option.
   */
  async stop(options: StopOptions = {}): Promise<void> {
    const limitMs = limitOf(options);
    this.#close();
    await this.#reflecting?.catch(() => {});
    await within(Promise.all(Array.from(this.#handlers, ({ ended }) => ended)), {
      limitMs,
      clock: this.#clock,
      what: () => listed(Array.from(this.#handlers, ({ doing }) => doing ?? 'a handler')),
    });
  }

  /**
   * Resolves when the store has reached a version, for example that of an object that you have just written, so that you read
   * your own writes.
   *
   * @throws {WatchError} (rejects) CLOSED if the informer stops before that; TIMEOUT; INVALID_ARGUMENT for an invalid version or
   * time; the reason of `signal`.
   */
  atLeast(resourceVersion: string, options: AtLeastOptions = {}): Promise<void> {
    return this.#versions.wait(resourceVersion, options);
  }

  /**
   * Asks the source for its newest state, at once, even while it waits after a failure. Resolves when the store has a state that was
   * asked for after this call, so nothing that others had written before it is missing. Handlers get what has changed, as always.
   * A leader calls it before it works: its predecessor may have written more than this informer has heard of.
   *
   * Failures are reported and retried as usual. It costs a list of all objects; calls during that list share the next one. Before `run`,
   * it waits for the first state.
   *
   * @throws {WatchError} (rejects) CLOSED if the informer stops before that; INVALID_ARGUMENT for an invalid option; the reason of
   * `signal`.
   */
  async refresh(options: RefreshOptions = {}): Promise<void> {
    const { signal } = checkOptions(options, ['signal']);
    signal?.throwIfAborted();
    await untilAborted(untilAborted(this.#reflector.refresh(), this.#stopping.signal), signal);
  }

  /**
   * Calls a handler with every current object, and from then on with every change: none is missed or repeated. May be called
   * before and while the informer runs, even with the same handler again.
   *
   * @throws {WatchError} CLOSED once it has stopped; INVALID_ARGUMENT for a handler with none of the three functions, or (if it
   * is a plain object) with an unknown one such as `onAdded`, and for an invalid option.
   */
  addHandler(handler: Handler<T>, options: HandlerOptions<T> = {}): HandlerRegistration {
    if (!handler || typeof handler !== 'object') throw invalid('handler', handler, 'an object with functions');
    // It may have other members, but none that looks like one of ours.
    const own = Object.keys(handler).filter((name) => !/^on[A-Z]/.test(name)) as never[];
    checkOptions(handler, [...HANDLER, ...own]);
    const given = HANDLER.filter((name) => callable(name, handler[name]));
    if (!given[0]) throw invalid('handler', handler, 'onAdd, onUpdate or onDelete in it');
    const { resyncMs = this.#resyncMs } = checkOptions(options, HANDLER_OPTIONS);
    checkQueue(options);
    const registration: Registration<T> = new Registration(
      handler,
      { ...options, periodMs: wholeNumber('resyncMs', resyncMs) },
      { live: this.#live, onError: (error) => this.#report(error, { kind: 'handler', handler }) },
    );
    this.#handlers.add(registration);
    void registration.ended.then(() => {
      this.#handlers.delete(registration);
      this.#resyncs.remove(registration);
    });
    if (this.#ran) this.#plan(registration);
    return registration;
  }

  /**
   * Calls a function with each failure of the source or of an object, in addition to `onError`. Without `onError`, failures
   * that have a listener are not printed. Returns a function that removes the listener. Upstream: `SetWatchErrorHandler`.
   */
  addErrorListener(listener: (error: unknown) => void): () => void {
    const own = (error: unknown): void => listener(error);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /**
   * Calls a function after each change of `state`, in addition to `onStateChange`. If it throws, `run` ends, and rejects with
   * that error. Returns a function that removes the listener.
   */
  addStateListener(listener: () => void): () => void {
    const own = (): void => listener();
    this.#stateListeners.add(own);
    return () => void this.#stateListeners.delete(own);
  }

  /**
   * Returns the collection as a watch: the current state as ADDED, a BOOKMARK with the annotation that ends it, then changes. If
   * the informer has not synced yet, the watch begins once it has. Ends when the informer stops. By default, unread changes of
   * one object are merged.
   *
   * With `filter` or `labelSelector`, an object that starts to match is ADDED, one that stops is DELETED.
   *
   * @throws {WatchError} CLOSED once it has stopped; INVALID_ARGUMENT for an invalid option; INVALID_SELECTOR; the reason of `signal`.
   */
  watch(options: InformerWatchOptions<T> = {}): Watch<ObjectEvent<T>> {
    const { labelSelector, overflow, signal, onGap, capacity } = checkOptions(options, WATCH_OPTIONS);
    checkQueue(options);
    const own = deciding('filter', options.filter);
    const selects = labelFilter(labelSelector);
    const matches = own && selects ? (object: T) => selects(object) && own(object) : (selects ?? own);
    const watch = this.#live.join({ overflow, capacity, signal, onGap, matches });
    return filter(watch, (event) => toObjectEvent(event, matches));
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  #moved(): void {
    if (this.#isStopping) return; // because `onError` was called for an object of this very write
    this.#synced.open(); // a list is the first thing that the reflector reports
    this.#versions.reach(this.#live.resourceVersion);
  }

  /**
   * Each handler has the period that it asks for, or the informer's. Upstream looks at fixed intervals instead, and so rounds
   * periods up to the informer's, and to a second.
   */
  #plan(registration: Registration<T>): void {
    if (registration.periodMs > 0) this.#resyncs.after(registration, registration.periodMs);
  }

  #resync(registration: Registration<T>): void {
    this.#plan(registration);
    if (registration.resync()) this.#live.wake(registration);
  }

  /** An error that it throws ends the run; the reflector takes care of that. */
  #sourceFailed(error: unknown, failure: ReflectorFailure): unknown {
    for (const listener of this.#listeners) listener(error);
    if (this.#onError) return this.#onError(error, failure);
    if (this.#listeners.size === 0) this.#reports.failed(error, failure);
    return undefined;
  }

  #report(error: unknown, failure: HandlerFailure<T> | ObjectFailure<T>): void {
    const print = (): void => {
      if (failure.kind === 'handler') this.#failures.failed('a handler', error);
      else if (this.#listeners.size === 0) this.#failures.failed('an object', error, nameOf(failure.object));
    };
    const tell = (): unknown => {
      if (failure.kind === 'object') for (const listener of this.#listeners) listener(error);
      return this.#onError ? this.#onError(error, failure) : print();
    };
    quietly(tell, (thrown) => this.#fail(thrown));
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#close();
  }

  /** From here on no call of a handler begins, and nothing waits. */
  #close(): void {
    if (this.#isStopping) return;
    const error = this.#failure?.error ?? new WatchError('CLOSED', 'the informer has stopped');
    this.#stopping.abort(error);
    this.#resyncs.clear();
    this.#live.close();
    this.#synced.reject(error);
    this.#versions.end(error);
    for (const registration of this.#handlers) registration.end(error);
  }
}

function limitOf(options: StopOptions): number {
  const { timeoutMs = 0 } = checkOptions(options, ['timeoutMs']);
  return wholeNumber('timeoutMs', timeoutMs);
}

/** Its name alone: the rest of a Secret, for example, does not belong in a log. */
function nameOf(object: unknown): string {
  const { metadata } = (object ?? {}) as KubernetesObject;
  const name = [metadata?.namespace, metadata?.name].filter(Boolean).join('/');
  return name && ` (${name})`;
}

function checkQueue<T>({ overflow, capacity, filter: own, onGap }: HandlerOptions<T>): void {
  if (overflow !== undefined) oneOf('overflow', overflow, HANDLER_OVERFLOWS);
  if (capacity !== undefined) wholeNumber('capacity', capacity, 1);
  callable('filter', own);
  callable('onGap', onGap);
}
