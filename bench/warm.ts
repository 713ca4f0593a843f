const AT_MOST = 4;

/**
 * Returns a function that says whether a contender should continue to warm up: until it has used this many milliseconds of
 * processor time. On a busy machine that takes longer, which the concurrent compiler needs.
 */
export function warmingUp(warmMs: number): () => boolean {
  const began = performance.now();
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 < warmMs && performance.now() - began < warmMs * AT_MOST;
  };
}
