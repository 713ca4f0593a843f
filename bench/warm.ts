const AT_MOST = 4;

/**
 * Says whether a contender is to run on before it is timed: until it has had so many milliseconds of a processor. On a busy
 * machine that takes longer by the clock, and the compiler, which works beside it, needs that.
 */
export function warmingUp(warmMs: number): () => boolean {
  const began = performance.now();
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 < warmMs && performance.now() - began < warmMs * AT_MOST;
  };
}
