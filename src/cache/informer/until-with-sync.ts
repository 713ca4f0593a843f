import { filter } from '../../broadcast/filter.ts';
import { systemClock } from '../../watch/clock.ts';
import { callable } from '../../watch/errors.ts';
import { type BookmarkEvent, isInitialEventsEnd, type ObjectEvent } from '../../watch/event.ts';
import { checkOptions } from '../../watch/options.ts';
import type { ListWatcher } from '../list-watcher.ts';
import { type UntilCondition, type UntilOptions, until } from '../reflector/until.ts';
import { Informer } from './informer.ts';
import type { InformerOptions, InformerStore } from './options.ts';

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
 * Resolves with the last event, or with undefined if `precondition` was true, once the informer has stopped. Rejects as `until`
 * does, and with what `precondition` throws. Upstream: `watch.UntilWithSync`.
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
      if (precondition(informer.store)) return undefined;
    }
    const changes = filter(informer.watch(), (event) => (event.type === 'BOOKMARK' ? undefined : event));
    const rest = timeoutMs > 0 ? Math.max(1, Math.ceil(timeoutMs - (clock.now() - start))) : timeoutMs;
    return await until(changes, conditions, { ...limits, timeoutMs: rest });
  } finally {
    await informer.stop();
    await ends;
  }
}
