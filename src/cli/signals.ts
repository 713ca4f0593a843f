const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/**
 * Calls `end` on the first SIGINT or SIGTERM; a second one exits at once. Returns a function that restores the previous
 * behaviour.
 */
export function onSignals(end: () => void): () => void {
  let asked = false;
  const listener = (signal: NodeJS.Signals): void => {
    if (asked) process.exit(EXIT_CODES[signal as keyof typeof EXIT_CODES]);
    asked = true;
    end();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, listener);
  return () => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, listener);
  };
}
