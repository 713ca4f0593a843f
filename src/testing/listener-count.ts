/** Counts the abort listeners that stand on a signal, from now on. It wraps the signal's two methods, so signals for tests only. */
export class ListenerCount {
  private readonly standing: Set<unknown> = new Set();

  constructor(signal: AbortSignal) {
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (type: string, listener: EventListener, options?: AddEventListenerOptions): void => {
      this.standing.add(listener);
      addEventListener.call(signal, type, listener, options);
    };
    signal.removeEventListener = (type: string, listener: EventListener): void => {
      this.standing.delete(listener);
      removeEventListener.call(signal, type, listener);
    };
  }

  /** How many stand. One that waits for a single call counts until it is removed or called. */
  get count(): number {
    return this.standing.size;
  }
}
