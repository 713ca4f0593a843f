/** The limit of a wait: a little less than a test has, so that what fails is the assertion, and says why. vitest.config.ts has both. */
export const PATIENCE_MS = 25_000;

// Tests may replace them.
const { setTimeout, performance } = globalThis;

/**
 * Repeats an assertion until it holds. It has no limit of its own but the test's: how long something takes depends on how busy the
 * machine is, and is nobody's question here.
 */
export async function eventually<T>(
  assertion: () => T | Promise<T>,
  { intervalMs = 10 }: { intervalMs?: number } = {},
): Promise<T> {
  for (const endMs = performance.now() + PATIENCE_MS; ; ) {
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() > endMs) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}

/** Waits for a condition. */
export async function until(condition: () => unknown): Promise<void> {
  await eventually(
    async () => {
      if (!(await condition())) throw new Error(`never came true: ${condition}`);
    },
    { intervalMs: 2 },
  );
}
