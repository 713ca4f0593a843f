import { NONE, Reader } from './reader.ts';
import type { Watch } from './watch.ts';

class EmptyWatch<E> extends Reader<E> {
  override readonly stopped: boolean = true;
  override readonly queued: number = 0;
  override readonly dropped: number = 0;
  protected override readonly drained: boolean = true;
  protected override failure: undefined;
  protected override take(): typeof NONE {
    return NONE;
  }
  protected override end(): void {}
  protected override discard(): void {}
}

/**
 * Creates a watch that has already ended. Return it when starting a watch failed and the caller should simply watch again.
 * Upstream: `NewEmptyWatch`.
 */
export function emptyWatch<E>(): Watch<E> {
  return new EmptyWatch<E>();
}
