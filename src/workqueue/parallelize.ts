import { wholeNumber } from '../watch/errors.ts';
import { checkOptions } from '../watch/options.ts';

/** Options of {@link parallelizeUntil}. */
export interface ParallelizeOptions {
  /** How many pieces are processed at the same time; at least 1. */
  readonly workers: number;
  /** How many pieces a worker takes at a time, one after the other; default 1. */
  readonly chunkSize?: number | undefined;
  /** When it aborts, no further chunk is started. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Processes the pieces 0 to `pieces - 1` with several workers, and resolves when everything that was started has ended. An abort
 * is not an error; some pieces were then not started. Upstream: `ParallelizeUntil`.
 *
 * @throws The first error of `work`. No further chunk is started then, but running ones are waited for. INVALID_ARGUMENT for an
 *   invalid number.
 */
export async function parallelizeUntil(
  pieces: number,
  work: (piece: number) => unknown,
  options: ParallelizeOptions,
): Promise<void> {
  const { workers, chunkSize = 1, signal } = checkOptions(options, ['workers', 'chunkSize', 'signal']);
  wholeNumber('workers', workers, 1);
  wholeNumber('chunkSize', chunkSize, 1);
  const chunks = Math.ceil(wholeNumber('pieces', pieces) / chunkSize);
  let next = 0;
  let failure: { readonly error: unknown } | undefined;
  const loop = async (): Promise<void> => {
    while (next < chunks && !failure && !signal?.aborted) {
      const from = next++ * chunkSize;
      for (let piece = from; piece < Math.min(from + chunkSize, pieces) && !failure; piece++) await work(piece);
    }
  };
  const stop = (error: unknown): void => {
    failure ??= { error };
  };
  await Promise.all(Array.from({ length: Math.min(workers, chunks) }, () => loop().catch(stop)));
  if (failure) throw failure.error;
}
