/** The value of WATCHMUX_RUNS at which each property runs as often as its test says. */
const ALL = 1_500;

/**
 * How often a property runs, of which its test wants `all` runs: fewer or more, in proportion, if WATCHMUX_RUNS is not 1,500, and never
 * fewer than `least`, where a test counts what it has seen. WATCHMUX_RUNS=300 gives a fifth of all runs, for a quick answer;
 * WATCHMUX_RUNS=100000 is for nights.
 */
export function runs(all: number, { least = 1 }: { least?: number } = {}): number {
  const wanted = Number(process.env.WATCHMUX_RUNS ?? ALL);
  if (!(wanted > 0)) throw new Error(`WATCHMUX_RUNS is ${process.env.WATCHMUX_RUNS}, and should be a number above 0`);
  return Math.max(least, Math.ceil((all * wanted) / ALL));
}
