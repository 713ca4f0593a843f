/** Counts the abort listeners on a signal, from now on. It replaces two methods of the signal, so use it in tests only. */
export class ListenerCount {
  private readonly standing: Set<unknown> = new Set();

  constructor(signal: AbortSignal) {
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (type: string, listener: EventListener, options?: AddEventListenerOptions): void => {
      if (type === 'abort') this.standing.add(listener);
      addEventListener.call(signal, type, listener, options);
    };
    signal.removeEventListener = (type: string, listener: EventListener): void => {
      if (type === 'abort') this.standing.delete(listener);
      removeEventListener.call(signal, type, listener);
    };
  }

  /** Number of listeners. One with `once` counts until it is removed explicitly. */
  get count(): number {
    return this.standing.size;
  }
}
