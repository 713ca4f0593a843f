/**
 * The requests of a reflector to its source, one after the other, each an {@link ReflectorAttempt}; and their results, until the store
 * gets them.
 *
 * How dead connections are noticed. A half-open connection looks like a collection in which nothing happens, and BOOKMARKs are not a
 * heartbeat: a server sends none while its version stands still. So each watch asks the server to end it after a time, and one that
 * outlives that time is dead. `idleTimeoutMs` is for sources that are known to send more often. Probing a connection is up to
 * the transport.
 */
import { WatchError } from '../../watch/errors.ts';
import type { BookmarkEvent, ErrorEvent, ObjectEvent } from '../../watch/event.ts';
import type { ListOptions, ListWatcher, ListWatchOptions, ObjectLookup } from '../list-watcher.ts';
import { checkTotal, preparedList, readAll } from '../pager.ts';
import { type Outcome, ReflectorAttempt } from './attempt.ts';
import { fromErrorEvent, isOlder, type SourceFailure, shapeOf, toFailure, toSilence, toUnended, versionIn } from './events.ts';
import type { MachineInput } from './machine.ts';
import type { ReflectorSettings } from './reflector-options.ts';

/** The whole state of a collection. */
interface WholeState<T> {
  readonly items: Iterable<T>;
  readonly resourceVersion: string;
}

/** An event that the machine has decided to collect. */
type WatchedChange<T> = Parameters<InitialState<T>['take']>[0];

/** What a reflector adds to its settings. */
interface RequestsHost<T> {
  /** A state may not be older than this version. */
  readonly oldest: () => string;
  /** Called with each event that is skipped. */
  readonly onBroken: (event: ObjectEvent<T>) => void;
  /** Looks up objects that the store holds as the source delivered them. */
  readonly stored: ObjectLookup | undefined;
  /** The store's `prepare`, for objects of a list as soon as they have arrived. */
  readonly prepare: ((object: T) => T) | undefined;
}

/** How much longer than its time a watch may live. */
const LATE_MS = 10_000;
/** How long a stream may be silent within its initial state. A kube-apiserver is silent for up to 3 s. */
const SILENT_STREAM_MS = 30_000;
/**
 * How much of its initial state a stream must bring in each period: so many objects that are new in it, or so many bytes. A slow
 * connection brings more than a source that sends only what happens, and a state that comes more slowly is better listed in pages.
 */
const SLOW_STREAM_MS = 60_000;
const SLOW_STREAM_OBJECTS = 600;
const SLOW_STREAM_BYTES = 2 ** 18;

export class Requests<T> {
  /** The current request. */
  attempt: ReflectorAttempt<T, MachineInput>;
  /** When the source last answered or sent something. */
  contactMs: number | undefined;
  readonly #source: ListWatcher<T>;
  readonly #settings: ReflectorSettings<T>;
  readonly #host: RequestsHost<T>;
  /** What was listed or streamed, until it is taken. */
  #whole: WholeState<T> | undefined;
  #streamed: InitialState<T> | undefined;
  /** The bytes of what was streamed, as far as the source reports them. */
  #streamedBytes: number = 0;
  #event: ObjectEvent<T> | undefined;
  /** Whether the watch has delivered nothing but broken events. */
  #empty: boolean = true;

  constructor(source: ListWatcher<T>, settings: ReflectorSettings<T>, host: RequestsHost<T>) {
    this.#source = source;
    this.#settings = settings;
    this.#host = host;
    this.attempt = new ReflectorAttempt(settings.clock);
  }

  /** Ends the current request, and waits. */
  async wait(delayMs: number): Promise<MachineInput> {
    const attempt = this.#begin();
    attempt.after(delayMs, () => attempt.interrupt({ type: 'due' }));
    return await attempt.rest();
  }

  list(resourceVersion: string, pageSize: number): Promise<MachineInput> {
    const { labelSelector, fieldSelector, maxObjects, maxTotalListBytes } = this.#settings;
    const { signal } = this.#begin();
    const { prepare } = this.#host;
    // Without the match, pages show exactly that version: a list would fail again and again with the same state.
    const match = pageSize > 0 && resourceVersion > '0' && ({ resourceVersionMatch: 'NotOlderThan' } as const);
    const selection = { resourceVersion, ...match, labelSelector, fieldSelector, signal };
    const listing = readAll(this.#source, { selection, pageSize, maxObjects, maxTotalListBytes, prepare });
    return this.#listed(listing, (list) => {
      this.#whole = list;
      return list.paged;
    });
  }

  /** Asks whether the source has reached a version: requests the smallest possible list at that version. */
  check(resourceVersion: string): Promise<MachineInput> {
    const { labelSelector, fieldSelector } = this.#settings;
    const { signal } = this.#begin();
    const version: ListOptions = { resourceVersion, resourceVersionMatch: 'NotOlderThan' };
    const listing = preparedList(this.#source, { ...version, labelSelector, fieldSelector, signal, limit: 1 }, undefined);
    return this.#listed(listing, () => false);
  }

  async #listed<L extends { readonly resourceVersion: string }>(
    listing: Promise<L>,
    take: (list: L) => boolean,
  ): Promise<MachineInput> {
    const outcome = await this.attempt.during(listing);
    if (outcome.is === 'interrupted') return outcome.reason;
    if (outcome.is === 'error') return this.#failed('refused', toFailure(outcome.error));
    this.#contact();
    const failure = checkList(outcome.value, this.#host.oldest());
    return failure ? this.#failed('refused', failure) : { type: 'listed', paged: take(outcome.value) };
  }

  /** Opens a watch; `initial`: one that begins with the state. */
  async watch(resourceVersion: string, initial: boolean): Promise<MachineInput> {
    const attempt = this.#begin();
    const { labelSelector, fieldSelector, minWatchTimeoutMs, idleTimeoutMs, random } = this.#settings;
    const timeoutSeconds = Math.floor((minWatchTimeoutMs + random() * minWatchTimeoutMs) / 1_000);
    attempt.after(timeoutSeconds * 1_000 + LATE_MS, () => attempt.interrupt(this.#ended()));
    if (idleTimeoutMs > 0) attempt.limitSilence(idleTimeoutMs, () => this.#silent(idleTimeoutMs));
    if (initial) {
      this.#streamed = new InitialState(this.#settings.keyOf, this.#host.prepare);
      this.#streamedBytes = 0;
      // A server that does not know streams may accept one, and never end the initial state.
      const what = `the watch was silent for ${SILENT_STREAM_MS} ms within its initial state`;
      attempt.limitSilence(SILENT_STREAM_MS, () => this.#streamed && this.#unended(what, SILENT_STREAM_MS));
    }
    const { stored } = this.#host;
    const options: ListWatchOptions = {
      resourceVersion,
      allowWatchBookmarks: true,
      timeoutSeconds,
      labelSelector,
      fieldSelector,
      ...(stored && { stored }),
    };
    const onBytes = (bytes: number): void => {
      this.#streamedBytes += bytes;
    };
    const stream: ListWatchOptions = { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', onBytes };
    const outcome = await attempt.open(this.#source, initial ? { ...options, ...stream } : options);
    if (outcome.is === 'interrupted') return outcome.reason;
    if (outcome.is === 'error') return this.#failed('refused', toFailure(outcome.error));
    this.#contact();
    if (initial) this.#limitSlowness(attempt, { size: 0, bytes: 0 });
    return { type: 'opened' };
  }

  /** The same for one that sends what happens instead of the state. `before`: what had come when the period began. */
  #limitSlowness(attempt: ReflectorAttempt<T, MachineInput>, before: { readonly size: number; readonly bytes: number }): void {
    attempt.after(SLOW_STREAM_MS, () => {
      if (!this.#streamed || this.#whole) return;
      const [{ size }, bytes] = [this.#streamed, this.#streamedBytes];
      const isSlow = size - before.size < SLOW_STREAM_OBJECTS && bytes - before.bytes < SLOW_STREAM_BYTES;
      const what = `${size} objects came in ${attempt.ranMs} ms, and no end of the initial state`;
      if (isSlow) attempt.interrupt(this.#unended(what, SLOW_STREAM_MS));
      else this.#limitSlowness(attempt, { size, bytes });
    });
  }

  /** Gets the next event, at once if there is one. */
  read(): MachineInput | Promise<MachineInput> {
    const { attempt } = this;
    let event: ObjectEvent<T> | undefined;
    try {
      event = attempt.poll();
    } catch (error) {
      return this.#failed('error', toFailure(error));
    }
    // Its errors come from `onError`, and are not failures of the watch.
    return event === undefined ? attempt.next().then((outcome) => this.#gotLater(outcome)) : this.#got(event);
  }

  #gotLater(outcome: Outcome<IteratorResult<ObjectEvent<T>, undefined>, MachineInput>): MachineInput {
    if (outcome.is === 'interrupted') return outcome.reason;
    if (outcome.is === 'error') return this.#failed('error', toFailure(outcome.error));
    const { done, value } = outcome.value;
    return done ? this.#ended() : this.#got(value);
  }

  #got(event: ObjectEvent<T>): MachineInput {
    this.#contact();
    const shape = shapeOf(event);
    if (shape === 'error') return this.#failed('error', fromErrorEvent(event.object));
    if (shape === 'broken') {
      this.#host.onBroken(event);
      // A watch that resumed before it would get it again.
      return { type: 'stored', resourceVersion: versionIn(event) };
    }
    this.#empty = false;
    this.#event = event;
    if (shape === 'initialEnd' && this.#streamed) {
      const resourceVersion = versionIn(event);
      const failure = checkList({ resourceVersion }, this.#host.oldest());
      if (failure) return this.#failed('error', failure);
      this.#whole = { items: this.#streamed.objects, resourceVersion };
    }
    return { type: shape === 'change' ? 'event' : shape, resourceVersion: versionIn(event) };
  }

  /** The event belongs to the state that is being streamed. */
  collect(): MachineInput {
    const streamed = this.#streamed as InitialState<T>;
    const event = this.takeEvent() as WatchedChange<T>;
    if (event.type !== 'ADDED' && !streamed.knows(event.object)) {
      return this.#unended(`the watch began with ${event.type} of an object that it had not ADDED`);
    }
    streamed.take(event);
    const { maxObjects, maxTotalListBytes } = this.#settings;
    try {
      checkTotal('maxObjects', streamed.size, maxObjects);
      checkTotal('maxTotalListBytes', this.#streamedBytes, maxTotalListBytes);
    } catch (error) {
      return this.#failed('error', toFailure(error));
    }
    return { type: 'stored', resourceVersion: '' };
  }

  /** The event that was read. */
  takeEvent(): ObjectEvent<T> {
    const event = this.#event as ObjectEvent<T>;
    this.#event = undefined;
    return event;
  }

  /** What was listed or streamed. */
  takeWhole(): WholeState<T> {
    const whole = this.#whole as WholeState<T>;
    this.#whole = this.#streamed = undefined;
    return whole;
  }

  /** Ends the current request, and drops its results. */
  close(): void {
    this.attempt.close();
    this.#event = this.#whole = this.#streamed = undefined;
    this.#empty = true;
  }

  /** Begins a request: the previous one ends. */
  #begin(): ReflectorAttempt<T, MachineInput> {
    this.close();
    this.attempt = new ReflectorAttempt(this.#settings.clock);
    return this.attempt;
  }

  #contact(): void {
    this.contactMs = this.#settings.clock.now();
  }

  #failed(type: 'refused' | 'error' | 'silent', failure: SourceFailure): MachineInput {
    return { type, ...failure, ranMs: this.attempt.ranMs };
  }

  #ended(): MachineInput {
    return { type: 'ended', ranMs: this.attempt.ranMs, empty: this.#empty };
  }

  #silent(limit: number): MachineInput {
    return this.#failed('silent', toSilence(limit));
  }

  #unended(what: string, limit?: number): MachineInput {
    return this.#failed('silent', toUnended(what, limit));
  }
}

/** Refuses a list that has no version, or one that is older than it may be: the store would go back in time. */
function checkList({ resourceVersion }: { readonly resourceVersion: string }, oldest: string): SourceFailure | undefined {
  if (typeof resourceVersion !== 'string' || resourceVersion === '') {
    return { kind: 'other', error: new WatchError('INVALID_FRAME', 'a list without a version') };
  }
  if (!isOlder(resourceVersion, oldest)) return undefined; // nothing is older than no version
  const text = `the list has version ${resourceVersion}, which is older than ${oldest}`;
  return { kind: 'expired', error: new WatchError('INVALID_FRAME', text) };
}

/**
 * The state of a collection while it is being streamed, until its end is reported. That may take a while, so changes arrive in
 * between. Upstream: the temporary store of `watchList`.
 */
export class InitialState<T> {
  readonly #objects: Map<unknown, T> = new Map();
  readonly #keyOf: (object: T) => string;
  readonly #prepare: (object: T) => T;

  /** `prepare` is called with each object; the result is held in its place. */
  constructor(keyOf: (object: T) => string, prepare: (object: T) => T = (object) => object) {
    this.#keyOf = keyOf;
    this.#prepare = prepare;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** All objects, in the order of their arrival. */
  get objects(): Iterable<T> {
    return this.#objects.values();
  }

  /** Only changes of objects belong to it. */
  take({ type, object }: Exclude<ObjectEvent<T>, BookmarkEvent | ErrorEvent>): void {
    const key = this.#key(object);
    if (type === 'DELETED') this.#objects.delete(key);
    else this.#objects.set(key, this.#prepare(object));
  }

  /** Whether it has the object, or cannot tell. */
  knows(object: T): boolean {
    const key = this.#key(object);
    return key === object || this.#objects.has(key);
  }

  /** An object without a key stands for itself. The store decides whether to accept it. */
  #key(object: T): unknown {
    try {
      return this.#keyOf(object);
    } catch {
      return object;
    }
  }
}
