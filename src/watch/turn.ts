/** Calls back in the next turn of the event loop, after socket I/O. */
export type Turn = (callback: () => void) => void;

const { setImmediate: immediate } = globalThis as { setImmediate?: Turn };

/** The host's `setImmediate`, or a timer if there is none. */
export const nextTurn: Turn =
  immediate === undefined ? (callback) => void setTimeout(callback, 0) : (callback) => immediate(callback);

const SETTLED: Promise<void> = Promise.resolve();

/** Runs `code` at the end of this turn. Node's queueMicrotask creates an AsyncResource per call and costs three times as much. */
export function soon(code: () => void): void {
  void SETTLED.then(code);
}
