import { setImmediate } from 'node:timers/promises';

/** Collects all garbage. */
export async function collectGarbage(): Promise<void> {
  if (globalThis.gc === undefined) throw new Error('this needs node --expose-gc');
  // At the end of a turn, settled promises release their reactions, and dereferenced WeakRefs their targets.
  for (let i = 0; i < 2; i++) {
    await setImmediate();
    globalThis.gc();
  }
}

/** Size of the heap after garbage collection. */
export async function heapBytes(): Promise<number> {
  await collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
