import { setImmediate } from 'node:timers/promises';

/** Everything that can be collected is. */
export async function collectGarbage(): Promise<void> {
  if (globalThis.gc === undefined) throw new Error('this needs node --expose-gc');
  // Promises that were settled let go of their reactions, and WeakRefs of what they were asked for, when the turn is over.
  for (let i = 0; i < 2; i++) {
    await setImmediate();
    globalThis.gc();
  }
}

/** What the heap holds when everything was collected that can be. */
export async function heapBytes(): Promise<number> {
  await collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
