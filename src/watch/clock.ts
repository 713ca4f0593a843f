/** Time as a parameter: whatever waits takes a clock, so that tests own the time. */
export interface Clock {
  /** Milliseconds since some fixed point; never goes backwards. */
  now(): number;
  /** Calls back once after `delayMs`; the function that comes back cancels it. */
  schedule(delayMs: number, callback: () => void): () => void;
}

/** A timer that is told to wait longer than this does not wait at all. */
const LONGEST_MS = 2_147_483_647;

/** The clock of the host. Nothing waits for longer than 24 days: what should, comes then. */
export const systemClock: Clock = {
  now: () => performance.now(),
  schedule: (delayMs, callback) => {
    const timer = setTimeout(callback, Math.min(delayMs, LONGEST_MS));
    return () => clearTimeout(timer);
  },
};

/** Resolves after `delayMs`, or rejects with the signal's reason; leaves neither a timer nor a listener behind. */
export function sleep(
  delayMs: number,
  options: { clock?: Clock | undefined; signal?: AbortSignal | undefined } = {},
): Promise<void> {
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
