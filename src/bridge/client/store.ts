/**
 * The state that a source's events add up to, for subscribers that want to hear of changes. `Fold` holds a state and knows when
 * it is complete; its subclasses know how an event changes it. A program holds a `Handle`, which creates a fold for its first
 * subscriber, or joins an existing one, and so costs nothing until then.
 *
 *     feed --- events ---> state ---- a flush ----> version, subscribers
 *                            ^
 *                            '-- the end of a snapshot: replaces it at once
 *     next <-- events after an ERROR, which start over
 *
 * Invariants
 * - After the source has started over, the old state stays until the new one is complete: at a BOOKMARK, or at an event that is
 *   not part of a snapshot, because a source without a snapshot sends nothing else. A broadcaster has no snapshot: its first
 *   event is enough.
 * - What is shown changes in `flush` alone, at most once per `flushIntervalMs`; changes of the connection do not wait.
 * - A fold whose function has thrown is no longer shared: the next subscriber starts over.
 */

import { upkeepClock } from '../../watch/clock.ts';
import { callable, checkOptions, invalid } from '../../watch/errors.ts';
import { isErrorEvent, type MissingAdded, type WatchEvent } from '../../watch/event.ts';
import { Failures } from '../../watch/failures.ts';
import type { ConnectOptions } from './client-options.ts';
import { CONNECT_OPTIONS, toSettings } from './connect.ts';
import {
  beginsNow,
  type Feed,
  type FeedOptions,
  type FeedReader,
  identityOf,
  type Keys,
  type SharedOptions,
  type Source,
  share,
  sharedOf,
  TAKEN,
  textOf,
  toShownKey,
  unshare,
} from './feed.ts';
import { type ConnectionState, toShown } from './shown-connection.ts';

/** A value that changes, in the form that React's `useSyncExternalStore` takes. Its functions need no `this`. */
export interface Store<Snapshot> {
  /**
   * Calls `listener` after each change. Returns a function that unsubscribes it. A store is connected while it has subscribers.
   */
  readonly subscribe: (listener: () => void) => () => void;
  /** The current value: the same object until something changes. Before there is a subscriber, the initial value. */
  readonly getSnapshot: () => Snapshot;
  /** The initial value, which is also what a server renders. */
  readonly getServerSnapshot: () => Snapshot;
}

interface Subscriber {
  changed(): void;
  readonly onError: SharedOptions['onError'];
}

/** A shared state. See the top of this file. */
export abstract class StoreFold<E extends WatchEvent> implements FeedReader<E> {
  feed: Feed<E> | undefined;
  readonly isIdle: boolean = false;
  /** Grows with each flush. */
  version: number = 0;
  /** The state of the source has arrived. */
  ready: boolean = false;
  /** The error that a user's function threw. */
  fault: { readonly error: unknown } | undefined;
  readonly #plan: StorePlan<E>;
  readonly #beginsNow: boolean;
  readonly #subscribers: Set<Subscriber> = new Set();
  readonly #failures: Failures;
  #isDirty: boolean = false;
  #isPending: boolean = false;
  #flushedMs: number = -Infinity;
  #cancelFlush: (() => void) | undefined;
  #cancelLeave: (() => void) | undefined;
  /** What a failed fold shows as its connection: it no longer has one. */
  #lost: ConnectionState | undefined;

  constructor(plan: StorePlan<E>) {
    this.#plan = plan;
    this.#beginsNow = beginsNow(plan.feed.source);
    this.#failures = new Failures('store', plan.feed);
  }

  /** The events start over: what follows belongs to a new state, which is not shown yet. */
  protected abstract begin(): void;
  /** What has arrived since `begin` is now the state. */
  protected abstract commit(): void;
  /** May throw what a function of the user throws. */
  protected abstract apply(event: E): void;
  /** Shows the current state. */
  protected abstract show(): void;

  get connection(): ConnectionState | undefined {
    return this.#lost ?? this.feed?.connection.state;
  }

  take(events: readonly E[]): void {
    if (this.fault || this.isIdle) return;
    try {
      for (const event of events) this.#take(event);
    } catch (error) {
      this.#fail(error);
    }
    this.#touch();
  }

  restart(): void {
    this.#isPending = true;
    this.begin();
  }

  connectionChanged(): void {
    this.#tellAll();
  }

  tell(error: unknown): boolean {
    const heard = [...this.#subscribers].filter(({ onError }) => onError);
    for (const { onError } of heard) new Failures('store', { onError }).failed('', error);
    return heard.length > 0;
  }

  enter(subscriber: Subscriber): void {
    this.#cancelLeave?.();
    this.#cancelLeave = undefined;
    this.#subscribers.add(subscriber);
    if (this.feed || this.fault) return;
    if (this.#beginsNow) this.#complete();
    share(this.#plan.keys, this, this.#plan.feed);
    this.#touch();
  }

  /** Returns whether it was subscribed. */
  exit(subscriber: Subscriber): boolean {
    const { feed, lingerMs } = this.#plan;
    const was = this.#subscribers.delete(subscriber);
    if (was && this.#subscribers.size === 0)
      this.#cancelLeave = upkeepClock(feed.clock).schedule(this.fault ? 0 : lingerMs, () => this.#leave());
    return was;
  }

  /** Reports an error of user code to all who listen for failures. */
  report(error: unknown): void {
    if (!this.tell(error)) this.#failures.failed('', error);
  }

  #take(event: E): void {
    const version = (event as { resourceVersion?: string }).resourceVersion;
    if (version === undefined && isErrorEvent(event)) {
      // Should nothing follow, the old state stays.
      this.restart();
      return;
    }
    const isMark = event.type === 'BOOKMARK';
    if (isMark || version || event.type !== 'ADDED' || this.#beginsNow) this.#complete();
    if (isMark) return;
    this.apply(event);
    this.#isDirty = true;
  }

  #complete(): void {
    if (this.ready && !this.#isPending) return;
    if (this.#isPending) this.commit();
    this.#isPending = false;
    this.ready = this.#isDirty = true;
  }

  #fail(error: unknown): void {
    this.fault = { error };
    this.#isDirty = true;
    this.#lost = { ...CONNECTING, status: 'gone', error: toShown(error) };
    unshare(this.#plan.keys, this);
    this.report(error);
  }

  #touch(): void {
    if (!this.#isDirty || this.#cancelFlush) return;
    const { feed, flushIntervalMs } = this.#plan;
    const waitMs = this.#flushedMs + flushIntervalMs - feed.clock.now();
    if (waitMs <= 0) this.#flush();
    else this.#cancelFlush = upkeepClock(feed.clock).schedule(waitMs, () => this.#flush());
  }

  #flush(): void {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    this.#flushedMs = this.#plan.feed.clock.now();
    this.#isDirty = false;
    this.version++;
    this.show();
    this.#tellAll();
  }

  #tellAll(): void {
    for (const subscriber of [...this.#subscribers]) {
      if (!this.#subscribers.has(subscriber)) continue; // an earlier listener has unsubscribed it
      try {
        subscriber.changed();
      } catch (error) {
        this.report(error);
      }
    }
  }

  #leave(): void {
    this.#cancelFlush?.();
    unshare(this.#plan.keys, this);
  }
}

/** What a handle needs to make a fold, or to find it. */
export interface StorePlan<E extends WatchEvent> extends Pick<SharedOptions<E>, 'onError'> {
  readonly keys: Keys;
  readonly feed: FeedOptions<E>;
  readonly lingerMs: number;
  readonly flushIntervalMs: number;
}

/** The options that are not for the connection. */
const OWN = ['graceMs', 'offlineMs', 'lingerMs', 'flushIntervalMs', 'onError'] as const;

/** Reads the options that all stores have. `names`: those of this store, whose values make its folds differ from others. */
export function toPlan<E extends WatchEvent>(
  source: Source<E>,
  options: SharedOptions<E>,
  { names, fold }: { readonly names: readonly string[]; readonly fold: string },
): StorePlan<E> {
  if (typeof source !== 'string' && Object(source) !== source)
    throw invalid('source', source, 'a URL, a function or something to watch');
  const given = CONNECT_OPTIONS.filter((name) => !TAKEN.includes(name)) as (keyof SharedOptions<E>)[];
  checkOptions(options, [...given, ...OWN, ...names] as (keyof SharedOptions<E>)[]);
  const { graceMs = 2_000, offlineMs = 20_000, lingerMs = 1_000, flushIntervalMs = 16, onError } = options;
  callable('onError', onError);
  for (const [name, value] of Object.entries({ graceMs, offlineMs, lingerMs, flushIntervalMs }))
    if (!(value >= 0)) throw invalid(name, value, 'a number >= 0');
  const connect: ConnectOptions<E> = Object.fromEntries(given.map((name) => [name, options[name]]));
  const { clock } = toSettings(connect); // refuses a wrong value here, rather than at the first subscriber
  const key = `${identityOf(source instanceof URL ? source.href : source)} ${textOf({ ...connect, graceMs, offlineMs })}`;
  return {
    keys: [key, `${fold} ${lingerMs} ${flushIntervalMs}`],
    feed: { source, connect, clock, graceMs, offlineMs },
    lingerMs,
    flushIntervalMs,
    onError,
  };
}

const CONNECTING: ConnectionState = { status: 'connecting', reconnect: () => {} };

/** Makes folds, finds them, and counts who uses them. */
export class Handle<E extends WatchEvent, F extends StoreFold<E>> {
  readonly connection: Store<ConnectionState>;
  /** Equal for stores that share a connection. */
  readonly key: string;
  readonly #plan: StorePlan<E>;
  readonly #create: () => F;
  #fold: F | undefined;
  #count: number = 0;

  constructor(plan: StorePlan<E>, create: () => F) {
    this.key = toShownKey(plan.keys[0]);
    this.#plan = plan;
    this.#create = create;
    this.connection = this.store((fold) => fold?.connection ?? CONNECTING);
  }

  /** A store of what `read` makes of the fold. Without a fold, that is the initial value, which must always be the same. */
  store<Snapshot>(read: (fold: F | undefined) => Snapshot): Store<Snapshot> {
    const getSnapshot = (): Snapshot => read(this.#fold ?? sharedOf<F>(this.#plan.keys));
    return {
      getSnapshot,
      getServerSnapshot: () => read(undefined),
      subscribe: (listener) => this.#subscribe(listener, getSnapshot),
    };
  }

  #subscribe(listener: () => void, getSnapshot: () => unknown): () => void {
    this.#fold ??= sharedOf<F>(this.#plan.keys) ?? this.#create();
    const fold = this.#fold;
    let last = getSnapshot();
    const subscriber: Subscriber = {
      onError: this.#plan.onError,
      changed: () => {
        const now = getSnapshot();
        if (now === last) return;
        last = now;
        listener();
      },
    };
    this.#count++;
    fold.enter(subscriber);
    return () => {
      if (fold.exit(subscriber) && --this.#count === 0) this.#fold = undefined;
    };
  }
}

/** Options of {@link toStore}. */
export interface StoreOptions<E extends WatchEvent, S> extends SharedOptions<E> {
  /** The state before the first event, and again when the source starts over. */
  readonly initial: S;
  /**
   * Returns the state after an event; must not change the one it gets. It gets neither BOOKMARKs nor the ERRORs of the
   * connection. If it throws, the store ends with that `error`.
   */
  readonly reduce: (state: S, event: E | MissingAdded<E>) => S;
}

/** What a store shows. */
export interface Folded<S> {
  readonly state: S;
  /**
   * Whether `state` contains the source's: from a BOOKMARK on, or from the first event that is not part of a snapshot, because
   * it has a version or is not an ADDED. What is published into, such as a broadcaster, has no snapshot and is ready at once.
   * Stays true while the connection is lost.
   */
  readonly ready: boolean;
  /** The error that `reduce` threw; `state` stays as it was before. */
  readonly error?: unknown;
}

/** A state that events add up to. */
export interface EventStore<S> extends Store<Folded<S>> {
  /** The state of the connection. */
  readonly connection: Store<ConnectionState>;
  /** Equal for stores with the same source and connection options, in one process. It reveals neither. */
  readonly key: string;
}

const STORE_NAMES = ['initial', 'reduce'];

/**
 * Folds the events of a source into a state, in the form that React's `useSyncExternalStore` and its like take.
 *
 *     const count = toStore('/watch', { initial: 0, reduce: (count) => count + 1 });
 *     const leave = count.subscribe(() => show(count.getSnapshot().state));
 *
 * It connects when the first subscriber comes, and closes the connection `lingerMs` after the last has left; then its state is
 * forgotten. Stores with the same source and connection options share one connection if they are subscribed to at the same time, and
 * one state if `initial` and `reduce` are the same, too. After the source has started over, because its server has restarted,
 * the old state stays until the new one is complete. Without `reduce`, there is only the connection.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option.
 */
export function toStore<E extends WatchEvent, S>(source: Source<E>, options: StoreOptions<E, S>): EventStore<S>;
export function toStore<E extends WatchEvent>(source: Source<E>, options?: SharedOptions<E>): EventStore<undefined>;
export function toStore<E extends WatchEvent, S>(
  source: Source<E>,
  options: Partial<StoreOptions<E, S>> = {},
): EventStore<S | undefined> {
  const { initial, reduce } = options ?? {};
  callable('reduce', reduce);
  if (!reduce && initial !== undefined) throw invalid('reduce', reduce, 'a function');
  const fold = reduce ? `${identityOf(reduce)} ${identityOf(initial)}` : '';
  const plan = toPlan(source, options, { names: STORE_NAMES, fold });
  const own = { initial, reduce } as Reduction<E, S | undefined>;
  const handle = new Handle(plan, () => new EventFold(plan, own));
  const first: Folded<S | undefined> = { state: initial, ready: false };
  return { ...handle.store((fold) => fold?.shown ?? first), connection: handle.connection, key: handle.key };
}

/** How events are folded. Without `reduce`, they are not. */
type Reduction<E extends WatchEvent, S> = Pick<StoreOptions<E, S>, 'initial'> & Partial<Pick<StoreOptions<E, S>, 'reduce'>>;

class EventFold<E extends WatchEvent, S> extends StoreFold<E> {
  override readonly isIdle: boolean;
  shown: Folded<S> | undefined;
  readonly #initial: S;
  readonly #reduce: StoreOptions<E, S>['reduce'] | undefined;
  #state: S;
  /** The state of a source that has started over, until it is complete. */
  #next: { state: S } | undefined;

  constructor(plan: StorePlan<E>, { initial, reduce }: Reduction<E, S>) {
    super(plan);
    this.#initial = this.#state = initial;
    this.#reduce = reduce;
    this.isIdle = !reduce;
  }

  protected override begin(): void {
    this.#next = { state: this.#initial };
  }

  protected override commit(): void {
    if (this.#next) this.#state = this.#next.state;
    this.#next = undefined;
  }

  protected override apply(event: E): void {
    if (!this.#reduce) return;
    if (this.#next) this.#next.state = this.#reduce(this.#next.state, event);
    else this.#state = this.#reduce(this.#state, event);
  }

  protected override show(): void {
    const { ready, fault, shown } = this;
    const state = this.#state;
    if (shown?.state !== state || shown.ready !== ready || fault) this.shown = { state, ready, ...fault };
  }
}
