/**
 * How long work goes on before it gives way, and to whom. Code that works for a request finds its pace by the request's signal,
 * so that no option has to carry it through storages; work without one gives way to everything else in the process.
 */
import { FairQueue } from './fair-queue.ts';

/** Says when work may go on. */
export interface Pace {
  /** Before work that cannot be cut: resolves when it is its turn; undefined: it is now. */
  turn(): Promise<void> | undefined;
  /** Within work, every few hundred steps: resolves when it may go on; undefined: it may now. */
  pause(): Promise<void> | undefined;
  /** Before work on something large: resolves when few enough others of its client are worked on; undefined: now. */
  heavy?(signal: AbortSignal): Promise<void> | undefined;
}

const paces: WeakMap<AbortSignal, Pace> = new WeakMap();
const queue: FairQueue = new FairQueue();
const NOBODY = { tenant: '', address: '' };
const OWN: Pace = { turn: () => queue.turn(NOBODY), pause: () => queue.pause(NOBODY) };

/** Work with this signal has this pace from now on. */
export function setPace(signal: AbortSignal, pace: Pace): void {
  paces.set(signal, pace);
}

/** The pace of the request with a signal; undefined for work that has none of its own. */
export function requestPace(signal: AbortSignal | undefined): Pace | undefined {
  return signal && paces.get(signal);
}

/** The pace of the work with a signal. */
export function paceOf(signal: AbortSignal | undefined): Pace {
  return requestPace(signal) ?? OWN;
}

/** Steps between two looks at the clock. */
const STRIDE = 256;

/**
 * Shows things one by one until `visit` returns false, and gives way every few milliseconds. Done at once, with undefined, if
 * that takes no longer; otherwise it rejects if the signal aborts.
 */
export function through<T>(
  things: Iterable<T>,
  visit: (thing: T) => boolean,
  { pace, signal }: { readonly pace: Pace; readonly signal?: AbortSignal | undefined },
): Promise<void> | undefined {
  const iterator = things[Symbol.iterator]();
  const stretch = (): Promise<void> | undefined => {
    for (let step = 1; ; step++) {
      const { done, value } = iterator.next();
      if (done || !visit(value)) return undefined;
      const pause = step % STRIDE === 0 ? pace.pause() : undefined;
      if (pause) return pause;
    }
  };
  const first = stretch();
  return first && resumed(first, stretch, signal);
}

async function resumed(
  first: Promise<void>,
  stretch: () => Promise<void> | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (let pause: Promise<void> | undefined = first; pause; pause = stretch()) {
    await pause;
    signal?.throwIfAborted();
  }
}
