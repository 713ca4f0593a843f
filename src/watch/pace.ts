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

/** Work that yields every few hundred steps, where it may be interrupted. */
export type Work<R> = Generator<undefined, R>;

/** Now, or later if it takes long. */
export type Soon<R> = R | Promise<R>;

/** By what work goes on. */
export interface Terms {
  readonly pace: Pace;
  readonly signal?: AbortSignal | undefined;
}

/** The most steps of work between two yields. */
export const STRIDE = 256;

/** Does work at a stretch. */
export function atOnce<R>(work: Work<R>): R {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** Does work, and gives way every few milliseconds. Done at once if that takes no longer; otherwise it rejects if the signal aborts. */
export function inPieces<R>(work: Work<R>, terms: Terms): Soon<R> {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    const pause = terms.pace.pause();
    if (pause) return resumed(work, pause, terms);
  }
}

async function resumed<R>(work: Work<R>, first: Promise<void>, { pace, signal }: Terms): Promise<R> {
  for (let pause: Promise<void> | undefined = first; ; pause = pace.pause()) {
    if (pause) await pause;
    signal?.throwIfAborted();
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** Shows things one by one until `visit` returns false, in pieces. Undefined: it is done. */
export function through<T>(things: Iterable<T>, visit: (thing: T) => boolean, terms: Terms): Promise<void> | undefined {
  return inPieces(visiting(things, visit), terms) as Promise<void> | undefined;
}

function* visiting<T>(things: Iterable<T>, visit: (thing: T) => boolean): Work<void> {
  let steps = 0;
  for (const thing of things) {
    if (!visit(thing)) return;
    if (++steps % STRIDE === 0) yield;
  }
}
