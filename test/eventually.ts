import { getCurrentTest } from 'vitest/suite';

/** The limit of a wait: a little less than a test has, so that what fails is the assertion, and says why. vitest.config.ts has both. */
export const PATIENCE_MS = 25_000;
/** How much sooner it ends than a test that has more time. */
const SOONER_MS = 5_000;

// Tests may replace them.
const { setImmediate, setTimeout, performance } = globalThis;

/**
 * Repeats an assertion until it holds. It has no limit of its own but the test's: how long something takes depends on how busy the
 * machine is, and is nobody's question here. The first looks may follow each other in turns of the event loop.
 */
export async function eventually<T>(
  assertion: () => T | Promise<T>,
  { intervalMs = 10, quickLooks = 0 }: { intervalMs?: number; quickLooks?: number } = {},
): Promise<T> {
  const endMs = performance.now() + Math.max(PATIENCE_MS, (getCurrentTest()?.timeout ?? 0) - SOONER_MS);
  for (let looks = 1; ; looks++) {
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() > endMs) throw error;
    }
    await new Promise<void>((resolve) => {
      if (looks <= quickLooks) setImmediate(resolve);
      else setTimeout(resolve, intervalMs);
    });
  }
}

/** Waits for a condition. */
export async function until(condition: () => unknown): Promise<void> {
  await eventually(
    async () => {
      if (!(await condition())) throw new Error(`never came true: ${condition}`);
    },
    { intervalMs: 2, quickLooks: 100 },
  );
}
