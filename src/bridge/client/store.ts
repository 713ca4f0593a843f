import { callable, invalid } from '../../watch/errors.ts';
import type { MissingAdded, WatchEvent } from '../../watch/event.ts';
import { identityOf, type SharedOptions, type Source } from './feed.ts';
import { Fold, Handle, type Store, type StorePlan, toPlan } from './fold.ts';
import type { ConnectionState } from './shown-connection.ts';

/** Options of {@link toStore}. */
export interface StoreOptions<E extends WatchEvent, S> extends SharedOptions<E> {
  /** The state before the first event, and where it begins again when the source does. */
  readonly initial: S;
  /**
   * Returns the state after an event; must not change the one it gets. It gets neither BOOKMARKs nor the ERRORs of the connection. What
   * it throws ends the store, as its `error`.
   */
  readonly reduce: (state: S, event: E | MissingAdded<E>) => S;
}

/** What a store shows. */
export interface Folded<S> {
  readonly state: S;
  /** Whether the state of the source is in it. Stays true while the connection is away. */
  readonly ready: boolean;
  /** What `reduce` has thrown: `state` is the one before that, and stays. */
  readonly error?: unknown;
}

/** A state that events add up to. */
export interface EventStore<S> extends Store<Folded<S>> {
  /** The state of the connection. */
  readonly connection: Store<ConnectionState>;
  /** Equal for stores with the same source and connection options. Has them in clear text, a token, too: do not show it. */
  readonly key: string;
}

const STORE_NAMES = ['initial', 'reduce'];

/**
 * Folds the events of a source into a state, in the form that `useSyncExternalStore` of React, and its like elsewhere, take.
 *
 *     const count = toStore('/watch', { initial: 0, reduce: (count) => count + 1 });
 *     const leave = count.subscribe(() => show(count.getSnapshot().state));
 *
 * It connects when the first subscriber comes, and closes the connection `lingerMs` after the last has left; then its state is
 * forgotten. Stores with the same source and connection options share one connection if they are subscribed to at the same time, and
 * one state if `initial` and `reduce` are the same, too. After the source has begun again, because its server has restarted, the old
 * state stays until the new one is complete. Without `reduce`, there is only the connection.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option.
 */
export function toStore<E extends WatchEvent, S>(source: Source<E>, options: StoreOptions<E, S>): EventStore<S>;
export function toStore<E extends WatchEvent>(source: Source<E>, options?: SharedOptions<E>): EventStore<undefined>;
export function toStore<E extends WatchEvent, S>(
  source: Source<E>,
  options: Partial<StoreOptions<E, S>> = {},
): EventStore<S | undefined> {
  const { initial, reduce } = options;
  callable('reduce', reduce);
  if (!reduce && initial !== undefined) throw invalid('reduce', reduce, 'a function');
  const fold = reduce ? `${identityOf(reduce)} ${identityOf(initial)}` : '';
  const plan = toPlan(source, options, { names: STORE_NAMES, fold });
  const create = (): EventFold<E, S | undefined> =>
    new EventFold<E, S | undefined>(plan, initial, reduce as StoreOptions<E, S | undefined>['reduce'] | undefined);
  const handle = new Handle(plan, create, options.onError);
  const first: Folded<S | undefined> = { state: initial, ready: false };
  return { ...handle.store((own) => own?.shown ?? first), connection: handle.connection, key: handle.key };
}

class EventFold<E extends WatchEvent, S> extends Fold<E> {
  override readonly isIdle: boolean;
  shown: Folded<S> | undefined;
  readonly #initial: S;
  readonly #reduce: StoreOptions<E, S>['reduce'] | undefined;
  #state: S;
  /** The state that begins anew. */
  #next: { state: S } | undefined;

  constructor(plan: StorePlan<E>, initial: S, reduce: StoreOptions<E, S>['reduce'] | undefined) {
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
