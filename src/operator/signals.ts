/** By signal, the exit code of a process that it ends at once. SIGHUP: its terminal was closed. */
const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;

type EndSignal = keyof typeof EXIT_CODES;
const SIGNALS = Object.keys(EXIT_CODES) as readonly EndSignal[];

/** The part of `process` that {@link endUnheard} needs. */
type OwnProcess = Pick<NodeJS.Process, 'pid' | 'on' | 'listenerCount' | 'exit'>;

/**
 * Ends the process on a signal that nobody else listens to. That happens by itself, except for the first process of a
 * container: the kernel drops its signals, so neither Ctrl-C nor an orderly stop would end it.
 */
export function endUnheard(own: OwnProcess = process): void {
  if (own.pid !== 1) return;
  for (const signal of SIGNALS) {
    own.on(signal, () => {
      if (own.listenerCount(signal) === 1) own.exit(EXIT_CODES[signal]);
    });
  }
}

/**
 * Calls `end` on the first of these signals, by default all three; a second one exits at once. Returns a function that restores the
 * previous behaviour.
 *
 * `nohup` makes no difference: it tells the kernel to ignore SIGHUP, but Node silently undoes that when it starts.
 */
export function onSignals(end: (signal: NodeJS.Signals) => void, signals: readonly EndSignal[] = SIGNALS): () => void {
  let asked = false;
  const listener = (signal: NodeJS.Signals): void => {
    if (asked) process.exit(EXIT_CODES[signal as EndSignal]);
    asked = true;
    end(signal);
  };
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}
