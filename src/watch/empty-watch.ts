import { done } from './iteration.ts';
import { fromAsyncIterable } from './pull-watch.ts';
import type { Watch } from './watch.ts';

/**
 * Creates a watch that has already ended. Return it when starting a watch failed and the caller should simply watch again.
 * Upstream: `NewEmptyWatch`.
 */
export function emptyWatch<E>(): Watch<E> {
  const watch = fromAsyncIterable<E>({ next: () => Promise.resolve(done()) });
  watch.stop();
  return watch;
}
