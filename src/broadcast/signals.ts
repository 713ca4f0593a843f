import { whenAborted } from '../watch/abort.ts';

/** The watchers that one signal stops, in the order in which they joined. */
class Stops<W extends { stop(): void }> extends Set<W> {
  leave: () => void = () => {};
}

/**
 * Stops watchers when a consumer's signal aborts. It listens once per signal, however many watches share it.
 *
 * Invariant: a signal has a listener only while a watcher here depends on it.
 */
export class Signals<W extends { stop(): void }> {
  readonly #signals: Map<W, AbortSignal> = new Map();
  readonly #listeners: Map<AbortSignal, Stops<W>> = new Map();

  add(watcher: W, signal: AbortSignal): void {
    let stops = this.#listeners.get(signal);
    if (!stops) {
      const all: Stops<W> = new Stops();
      all.leave = whenAborted(signal, () => {
        for (const each of all) each.stop(); // each one leaves, and so is deleted from this set
      });
      this.#listeners.set(signal, all);
      stops = all;
    }
    stops.add(watcher);
    this.#signals.set(watcher, signal);
  }

  delete(watcher: W): void {
    const signal = this.#signals.get(watcher);
    if (!signal) return;
    const stops = this.#listeners.get(signal) as Stops<W>;
    this.#signals.delete(watcher);
    stops.delete(watcher);
    if (stops.size > 0) return;
    this.#listeners.delete(signal);
    stops.leave();
  }

  clear(): void {
    for (const watcher of this.#signals.keys()) this.delete(watcher);
  }
}
