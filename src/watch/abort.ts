/**
 * Calls `callback` with the signal's reason when it aborts; at once if it has. Returns what stops that, which must be called in the
 * end: signals may live longer than what listens to them.
 */
export function whenAborted(signal: AbortSignal | undefined, callback: (reason: unknown) => void): () => void {
  const onAbort = (): void => callback(signal?.reason);
  if (signal?.aborted) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  return () => signal?.removeEventListener('abort', onAbort);
}

/** The same promise, but rejected with the signal's reason as soon as that aborts, whatever the promise does. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = whenAborted(signal, reject);
    promise.then(resolve, reject).then(leave, leave);
  });
}
