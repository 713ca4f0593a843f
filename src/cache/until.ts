import { filter } from '../broadcast/filter.ts';
import { verdictOf, whenAborted } from '../watch/abort.ts';
import { type Clock, systemClock } from '../watch/clock.ts';
import { callable, checkOptions, invalid, requireMethod, WatchError, wholeNumber } from '../watch/errors.ts';
import { type BookmarkEvent, isInitialEventsEnd, type ObjectEvent, type WatchEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import { Informer } from './informer/informer.ts';
import type { InformerOptions, InformerStore } from './informer/informer-options.ts';
import type { ListWatcher } from './list-watcher.ts';
import { RetryWatcher, type RetryWatcherOptions } from './reflector/retry-watcher.ts';

/** Whether an event meets the condition. If it throws, the wait ends with that error. */
export type UntilCondition<E> = (event: E) => boolean;

/** Where {@link until} gets its events from if not a watch: a collection, and the version after which to begin. */
export interface UntilSource<T> extends Omit<RetryWatcherOptions, 'signal'> {
  readonly source: ListWatcher<T>;
}

/** Options of {@link until}. */
export interface UntilOptions {
  /** Ends the wait: it rejects with the reason. */
  readonly signal?: AbortSignal | undefined;
  /** How long to wait, in milliseconds; default 0: forever. */
  readonly timeoutMs?: number | undefined;
  /** Source of time. Default: the host's. */
  readonly clock?: Clock | undefined;
}

/**
 * Waits until events have met all conditions, one after the other, and resolves with the last event; without conditions, with
 * undefined. An event that has met a condition is also passed to the next one. Conditions get all events, including BOOKMARK and
 * ERROR.
 *
 *     const { items, resourceVersion } = await pods.list();
 *     const event = await until({ source: pods, resourceVersion }, [({ type, object }) => type === 'MODIFIED' && isReady(object)]);
 *
 * A watch is read until then, and is ended whatever happens. With a source, conditions get every event after the version, across
 * reconnects (see {@link RetryWatcher}).
 *
 * Upstream: `watch.UntilWithoutRetry` for a watch, `watch.Until` for a source.
 *
 * @throws {WatchError} (rejects) CLOSED if the watch ends before that, and TIMEOUT with `limit` after `timeoutMs`, both with the
 * last event as `cause`; INVALID_ARGUMENT for an invalid or unknown option. Also the reason of an aborted signal, what a
 * condition throws, and the error of the watch.
 */
export async function until<E extends WatchEvent>(
  watch: Watch<E>,
  conditions: readonly UntilCondition<E>[],
  options?: UntilOptions,
): Promise<E | undefined>;
export async function until<T>(
  source: UntilSource<T>,
  conditions: readonly UntilCondition<ObjectEvent<T>>[],
  options?: UntilOptions,
): Promise<ObjectEvent<T> | undefined>;
export async function until(
  from: Watch<WatchEvent> | UntilSource<unknown>,
  conditions: readonly UntilCondition<never>[],
  options: UntilOptions = {},
): Promise<WatchEvent | undefined> {
  const watch = toWatch(from, options?.clock);
  let why: (() => unknown) | undefined;
  let last: WatchEvent | undefined;
  let leave: (() => void) | undefined;
  let cancel: (() => void) | undefined;
  const end = (reason: () => unknown): void => {
    why ??= reason;
    watch.return().catch(() => {}); // settles the pending read
  };
  const next = async (): Promise<WatchEvent> => {
    const { done, value } = why ? { done: true, value: undefined } : await watch.next();
    if (why) throw why();
    if (done) throw new WatchError('CLOSED', 'the watch ended before all conditions were met', { cause: last });
    return value as WatchEvent;
  };
  try {
    const { signal, timeoutMs = 0, clock = systemClock } = checkOptions(options, ['signal', 'timeoutMs', 'clock']);
    wholeNumber('timeoutMs', timeoutMs);
    if (!Array.isArray(conditions)) throw invalid('conditions', conditions, 'an array of functions');
    for (const condition of conditions) callable('condition', condition ?? null);
    const inVain = (): WatchError =>
      new WatchError('TIMEOUT', `not all conditions were met within ${timeoutMs} ms`, { limit: timeoutMs, cause: last });
    leave = whenAborted(signal, (reason) => end(() => reason));
    signal?.throwIfAborted(); // even if there is nothing to wait for
    if (timeoutMs > 0) cancel = clock.schedule(timeoutMs, () => end(inVain));
    for (const condition of conditions as readonly UntilCondition<WatchEvent>[]) {
      if (last !== undefined && !why && verdictOf('condition', condition(last))) continue;
      do last = await next();
      while (!verdictOf('condition', condition(last)));
    }
    return last;
  } finally {
    cancel?.();
    leave?.();
    await watch.return();
  }
}

function toWatch(from: Watch<WatchEvent> | UntilSource<unknown>, clock: Clock | undefined): Watch<WatchEvent> {
  if (typeof (from as Partial<Watch<WatchEvent>> | undefined)?.next === 'function') return from as Watch<WatchEvent>;
  const { source, ...options } = requireMethod('watch', from as UntilSource<unknown>, 'valueOf' as never, 'a watch, or a source');
  return new RetryWatcher(source, { clock, ...options });
}

/** Options of {@link untilWithSync}. */
export interface UntilWithSyncOptions<T> extends UntilOptions {
  /** Called once, when the state is in the store: if it returns true, there is nothing to wait for. */
  readonly precondition?: ((store: InformerStore<T>) => boolean) | undefined;
  /** The `onError` of its informer. */
  readonly onError?: InformerOptions<T>['onError'];
}

/** The events that conditions get: those of objects. */
export type ChangeEvent<T> = Exclude<ObjectEvent<T>, BookmarkEvent>;

/**
 * Like `until`, but with its own informer: it survives every failure of the source, even the loss of its history. Conditions get
 * the current state as ADDED, and then the latest state of each object, perhaps without intermediate states.
 *
 *     await untilWithSync(pods, [({ type }) => type === 'DELETED'], { precondition: (store) => store.get('default/web') === undefined });
 *
 * Resolves with the last event, or with undefined if `precondition` was true, once the informer has stopped. Rejects like
 * `until`, and with an error that `precondition` throws. Upstream: `watch.UntilWithSync`.
 */
export async function untilWithSync<T>(
  source: ListWatcher<T>,
  conditions: readonly UntilCondition<ChangeEvent<T>>[],
  options: UntilWithSyncOptions<T> = {},
): Promise<ChangeEvent<T> | undefined> {
  const { precondition, onError, ...limits } = checkOptions(options, ['precondition', 'onError', 'signal', 'timeoutMs', 'clock']);
  callable('precondition', precondition);
  const { clock = systemClock, timeoutMs = 0 } = limits;
  const start = clock.now();
  const informer = new Informer(source, { clock, onError });
  const ends = informer.run();
  try {
    if (precondition) {
      await until(informer.watch(), [isInitialEventsEnd], limits);
      if (verdictOf('precondition', precondition(informer.store))) return undefined;
    }
    const changes = filter(informer.watch(), (event) => (event.type === 'BOOKMARK' ? undefined : event));
    const rest = timeoutMs > 0 ? Math.max(1, Math.ceil(timeoutMs - (clock.now() - start))) : timeoutMs;
    return await until(changes, conditions, { ...limits, timeoutMs: rest });
  } finally {
    await informer.stop();
    await ends;
  }
}
