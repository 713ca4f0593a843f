/**
 * The failures that this package finds for itself are {@link WatchError}s with a stable `code`. Match on the code: it survives
 * two copies of the package in one program, which `instanceof` does not. What a source, user code, an abort or the host throws
 * is passed on as it is.
 *
 * | code | when | data |
 * |---|---|---|
 * | `CLOSED` | `publish`, `tryPublish` or `watch` after `shutdown`; a pending `publish` whose shutdown was given up | |
 * | `OVERLOADED` | `publish` while `maxPending` publishes pend already; `fromObservable` with `wait` when its queue is full | `limit` |
 * | `INVALID_ARGUMENT` | an option or argument of the wrong kind; the message names the value and what was expected | |
 * | `FRAME_TOO_LARGE` | a frame of a byte stream is longer than `maxFrameBytes` | `limit` |
 * | `INVALID_FRAME` | a frame is not what the codec reads: not JSON, not an event | |
 * | `QUEUE_FULL` | a fake was given more events than its queue holds | `limit` |
 */
export type WatchErrorCode = 'CLOSED' | 'OVERLOADED' | 'INVALID_ARGUMENT' | 'FRAME_TOO_LARGE' | 'INVALID_FRAME' | 'QUEUE_FULL';

/** The one error class of this package; see the table of codes. */
export class WatchError extends Error {
  override readonly name: string = 'WatchError';
  readonly code: WatchErrorCode;
  /** The limit that was reached, where there is one. */
  readonly limit?: number | undefined;

  constructor(code: WatchErrorCode, message: string, more?: { limit?: number | undefined; cause?: unknown }) {
    super(message, more);
    this.code = code;
    this.limit = more?.limit;
  }
}

/** Whether an error is a {@link WatchError}, of the given code if one is given, from whichever copy of the package. */
export function isWatchError(error: unknown, code?: WatchErrorCode): error is WatchError {
  const { name, code: own } = (error ?? {}) as Partial<WatchError>;
  return name === 'WatchError' && (code === undefined || own === code);
}

/** Refuses a value with INVALID_ARGUMENT, naming the value and what was expected. */
export function invalid(name: string, value: unknown, expected: string): WatchError {
  let shown: string;
  try {
    shown = typeof value === 'string' ? JSON.stringify(value) : String(value);
  } catch {
    shown = typeof value;
  }
  return new WatchError('INVALID_ARGUMENT', `${name}: expected ${expected}, got ${shown.slice(0, 80)}`);
}

/** A whole number from `min` up, or INVALID_ARGUMENT. */
export function wholeNumber(name: string, value: number, min: number = 0): number {
  if (!Number.isSafeInteger(value) || value < min) throw invalid(name, value, `a whole number >= ${min}`);
  return value;
}

/** A function or undefined, or INVALID_ARGUMENT. */
export function callable<F>(name: string, value: F): F {
  if (value !== undefined && typeof value !== 'function') throw invalid(name, value, 'a function');
  return value;
}

/** One of a few words, or INVALID_ARGUMENT. */
export function oneOf<W extends string>(name: string, value: W, words: readonly W[]): W {
  if (!words.includes(value)) throw invalid(name, value, `one of ${words.join(', ')}`);
  return value;
}
