/** What an abort stops, in the order in which they joined. */
class Stops<W extends { stop(): void }> extends Set<W> {
  handleEvent(): void {
    for (const watcher of this) watcher.stop(); // and so each leaves, and is deleted
  }
}

/**
 * Who stops when a consumer's signal aborts. One listener per signal, however many watches it was given to: an EventTarget looks
 * at all it has before it takes one more, and Node 20 warns of a leak from the eleventh on.
 *
 * Invariant: a signal is listened to while somebody here waits for it, and no longer.
 */
export class Signals<W extends { stop(): void }> {
  private readonly signals: Map<W, AbortSignal> = new Map();
  private readonly listeners: Map<AbortSignal, Stops<W>> = new Map();

  add(watcher: W, signal: AbortSignal): void {
    const stops = this.listeners.get(signal) ?? new Stops();
    this.listeners.set(signal, stops.add(watcher));
    this.signals.set(watcher, signal);
    signal.addEventListener('abort', stops); // once, as it is the same
  }

  delete(watcher: W): void {
    const signal = this.signals.get(watcher);
    if (!signal) return;
    const stops = this.listeners.get(signal) as Stops<W>;
    this.signals.delete(watcher);
    stops.delete(watcher);
    if (stops.size > 0) return;
    this.listeners.delete(signal);
    signal.removeEventListener('abort', stops);
  }

  clear(): void {
    for (const watcher of this.signals.keys()) this.delete(watcher);
  }
}
