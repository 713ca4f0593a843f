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

/** A watch that is already over: what a failed watch looks like to a caller that should simply watch again. Upstream: `NewEmptyWatch`. */
export function emptyWatch<E>(): Watch<E> {
  return new EmptyWatch<E>();
}
