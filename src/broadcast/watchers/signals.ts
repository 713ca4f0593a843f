/** The watchers that one signal stops, in the order in which they joined. */
class Stops<W extends { stop(): void }> extends Set<W> {
  handleEvent(): void {
    for (const watcher of this) watcher.stop(); // each one leaves, and so is deleted from this set
  }
}

/**
 * Stops watchers when a consumer's signal aborts. It adds one listener per signal, however many watches share it: an EventTarget
 * checks all its listeners when it adds one, and Node 20 warns of a leak from the eleventh on.
 *
 * Invariant: a signal has a listener only while a watcher here depends on it.
 */
export class Signals<W extends { stop(): void }> {
  readonly #signals: Map<W, AbortSignal> = new Map();
  readonly #listeners: Map<AbortSignal, Stops<W>> = new Map();

  add(watcher: W, signal: AbortSignal): void {
    const stops = this.#listeners.get(signal) ?? new Stops();
    this.#listeners.set(signal, stops.add(watcher));
    this.#signals.set(watcher, signal);
    signal.addEventListener('abort', stops); // adding the same listener again has no effect
  }

  delete(watcher: W): void {
    const signal = this.#signals.get(watcher);
    if (!signal) return;
    const stops = this.#listeners.get(signal) as Stops<W>;
    this.#signals.delete(watcher);
    stops.delete(watcher);
    if (stops.size > 0) return;
    this.#listeners.delete(signal);
    signal.removeEventListener('abort', stops);
  }

  clear(): void {
    for (const watcher of this.#signals.keys()) this.delete(watcher);
  }
}
