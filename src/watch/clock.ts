/** Time as a parameter: whatever waits takes a clock, so that tests own the time. */
export interface Clock {
  /** Milliseconds since some fixed point; never goes backwards. */
  now(): number;
  /** Calls back once after `delayMs`; the function that comes back cancels it. */
  schedule(delayMs: number, callback: () => void): () => void;
}

/** The clock of the host. */
export const systemClock: Clock = {
  now: () => performance.now(),
  schedule: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Resolves after `delayMs`, or rejects with the signal's reason; leaves neither a timer nor a listener behind. */
export function sleep(delayMs: number, options: { clock?: Clock; signal?: AbortSignal } = {}): Promise<void> {
  const { clock = systemClock, signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const cancel = clock.schedule(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
