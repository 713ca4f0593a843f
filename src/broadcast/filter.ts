import { deciding, notLater } from '../watch/abort.ts';
import { callable, checkOptions, invalid, requireMethod } from '../watch/errors.ts';
import type { ObjectOf, WatchEvent } from '../watch/event.ts';
import { PullWatch } from '../watch/pull-watch.ts';
import type { Watch } from '../watch/watch.ts';
import { objectKey } from './fold.ts';

/** The watch that {@link filter} returns. It reads upstream only while it is read itself. */
class FilterWatch<E, F> extends PullWatch<F> {
  private readonly watch: Watch<E>;

  constructor(watch: Watch<E>, fn: (event: E) => F | undefined) {
    requireMethod('watch', watch, 'tryNext', 'a Watch');
    if (typeof fn !== 'function') throw invalid('fn', fn, 'a function');
    super({
      async pull() {
        for (;;) {
          const { done, value } = await watch.next();
          if (done) return { done, value };
          const kept = notLater('fn', fn(value), 'an event or undefined');
          if (kept !== undefined) return { done: false, value: kept };
        }
      },
      poll() {
        for (;;) {
          const event = watch.tryNext();
          if (event === undefined) return undefined;
          const kept = notLater('fn', fn(event), 'an event or undefined');
          if (kept !== undefined) return kept;
        }
      },
      cancel: () => void watch.return(),
    });
    this.watch = watch;
  }

  override get stopped(): boolean {
    return super.stopped || this.watch.stopped;
  }

  override get queued(): number {
    return super.queued + this.watch.queued;
  }

  override get dropped(): number {
    return super.dropped + this.watch.dropped;
  }

  /** Upstream ends, and with it this watch, once what is queued there has been read. */
  protected override end(): void {
    this.watch.stop();
  }

  // Polling upstream has already started its source. A read left pending there would take an event out of upstream's queue.
  protected override idle(): void {}
}

/** What {@link filter} returns for an async function, which it refuses when it is read: nothing that could be read. */
export interface NoAsyncFilter {
  readonly fn: 'may not be async: a promise is neither an event nor undefined';
}

/**
 * Returns a watch of the results of `fn`, which returns the event, another one in its place, or undefined to drop it.
 *
 * - Lazy: `fn` runs when the result is read, once per upstream event, in order, never concurrently. The result has no queue of
 *   its own. A pending read requests at most one upstream event; a batch takes all queued events.
 * - `stop` is forwarded: events queued upstream still come through, then the end. `return` (or `break`) returns upstream.
 * - If `fn` throws, one read rejects with that error after the events that passed before, the result ends, and upstream is
 *   returned. Other readers of the same source are not affected.
 * - `dropped` is what upstream lost, plus a passed event that `return` discarded. Events that `fn` drops are not counted.
 *   `queued` is an upper bound, because `fn` has not seen those events yet. `stopped` follows upstream.
 *
 * An event of `undefined` cannot be distinguished from a dropped one. To follow a selector, use `filterTransitions`: `filter`
 * does not change event types, so an object that starts or stops matching appears as a change of an unknown object, or not at
 * all.
 *
 * Upstream: `watch.Filter`; this one cannot get stuck on a consumer that stopped without draining.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a watch and a function. A read rejects with it if `fn` returns a promise.
 */
export function filter<E, P extends PromiseLike<unknown>>(
  watch: Watch<E>,
  fn: (event: E) => P,
): [P] extends [never] ? Watch<P> : 0 extends 1 & P ? Watch<P> : NoAsyncFilter; // any and never are promises, too
export function filter<E, F = E>(watch: Watch<E>, fn: (event: E) => F | undefined): Watch<F>;
export function filter<E, F = E>(watch: Watch<E>, fn: (event: E) => F | undefined): Watch<F> {
  return new FilterWatch(watch, fn);
}

/**
 * A watch that records every event that passes through it, for tests and diagnosis. It keeps all of them until it is discarded,
 * so do not leave one on an endless watch. Reads, `stop` and errors work as in {@link filter}.
 *
 * Upstream: `watch.Recorder`.
 */
export class Recorder<E> extends FilterWatch<E, E> {
  private readonly seen: E[];

  constructor(watch: Watch<E>) {
    const seen: E[] = [];
    super(watch, (event) => {
      seen.push(event);
      return event;
    });
    this.seen = seen;
  }

  /** Returns the events recorded so far, in order: a new array of the same event objects. */
  events(): E[] {
    return [...this.seen];
  }
}

/** Options of {@link filterTransitions}: how it knows whether an object matched before its change. */
export interface TransitionOptions<E extends WatchEvent> {
  /**
   * Returns the object as it was before this change, or undefined if there was none or it is unknown. With this option nothing is
   * remembered between events. A DELETED event without a previous object is judged by its own, which is the last state. Not for a
   * watch that drops events: the object before a change must be the one that this watch delivered last. A fold of `coalesce` has
   * the `previous` of its first event, which is that object.
   */
  previousOf?: ((event: E) => ObjectOf<E> | undefined) | undefined;
  /**
   * Without `previousOf`: returns the key of an object. Default: namespace and name in `object.metadata`, which objects of
   * several kinds may share.
   */
  keyOf?: ((event: E) => unknown) | undefined;
}

/**
 * Follows the objects that match `predicate`: an object that starts to match is ADDED, one that stops is DELETED
 * (**Transitional**).
 *
 * | matched before | matches now | result |
 * |---|---|---|
 * | no  | yes | ADDED |
 * | yes | yes | MODIFIED |
 * | yes | no, or it was deleted | DELETED, with its last matching content and the resourceVersion of this change |
 * | no  | no, or it was deleted | nothing |
 *
 * Only the two objects count, not the event's type: MODIFIED of an unknown object that matches becomes ADDED, ADDED of a known
 * one becomes MODIFIED. An event that needs no change is passed on as it is; otherwise a new event with only `type` and `object`
 * is created. Objects are never modified: a new resourceVersion goes on a plain, shallow copy of the object and its metadata.
 * BOOKMARK, ERROR and custom types pass through.
 *
 * Without `previousOf` the last matching object of each key is kept, so memory grows with the number of matching objects. It
 * knows only the events that pass through, so the watch must start at the initial state. If `predicate` changes its answer for an
 * unchanged object, that shows at the object's next change. An object without a name fails with INVALID_ARGUMENT. That error, and
 * any error thrown by `predicate`, `previousOf` or `keyOf`, ends this watch only. Everything else is as in {@link filter}.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a watch and a function, and for an invalid option.
 *
 * Upstream: the event typing of the cacher and of the storage watcher, which `watch.Filter` cannot do.
 */
export function filterTransitions<E extends WatchEvent>(
  watch: Watch<E>,
  predicate: (object: ObjectOf<E>) => boolean,
  options: TransitionOptions<E> = {},
): Watch<E> {
  const { previousOf, keyOf = objectKey } = checkOptions(options, ['previousOf', 'keyOf']);
  const fits = deciding('predicate', predicate ?? null) as typeof predicate;
  callable('previousOf', previousOf);
  callable('keyOf', keyOf);
  const within = new Map<unknown, ObjectOf<E>>();
  return filter(watch, (event) => {
    const { type, object } = event;
    const deleted = type === 'DELETED';
    if (!deleted && type !== 'ADDED' && type !== 'MODIFIED') return event;
    let key: unknown;
    let before: boolean;
    let last: ObjectOf<E> | undefined;
    if (previousOf) {
      last = previousOf(event) ?? (deleted ? object : undefined);
      before = last !== undefined && fits(last);
    } else {
      key = keyOf(event);
      last = within.get(key);
      before = within.has(key);
    }
    if (!deleted && fits(object)) {
      if (!previousOf) within.set(key, object);
      return retyped(event, before ? 'MODIFIED' : 'ADDED', object);
    }
    within.delete(key);
    return before ? retyped(event, 'DELETED', withVersionOf(last, object)) : undefined;
  });
}

function retyped<E extends WatchEvent>(event: E, type: string, object: unknown): E {
  // The type is one of those that E has for its objects, which TypeScript cannot infer.
  return event.type === type && event.object === object ? event : ({ type, object } as E);
}

/** Returns the object with the resourceVersion of a change; the same object if it has that version or the change has none. */
export function withVersionOf(object: unknown, change: unknown): unknown {
  const metadata = (object as Versioned)?.metadata;
  const resourceVersion = (change as Versioned)?.metadata?.resourceVersion;
  if (metadata == null || resourceVersion === undefined || metadata.resourceVersion === resourceVersion) return object;
  return { ...(object as object), metadata: { ...metadata, resourceVersion } };
}

type Versioned = { metadata?: { resourceVersion?: unknown } | null };
