const SETTLED: Promise<void> = Promise.resolve();

/** Runs code when this turn is over. Node's queueMicrotask makes an AsyncResource for each call, and costs three times as much. */
export function soon(code: () => void): void {
  void SETTLED.then(code);
}
