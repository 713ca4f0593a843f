import { GCProfiler } from 'node:v8';
import { collectGarbage } from './heap.ts';

/**
 * Says how many bytes of the heap code allocates, whether they are garbage by now or not: what the heap grows by between any two
 * garbage collections. Buffers are not in the heap, but strings are.
 */
export async function allocatedBy(code: () => Promise<void>): Promise<number> {
  await collectGarbage();
  const profiler = new GCProfiler();
  profiler.start();
  let from = process.memoryUsage().heapUsed;
  await code();
  const to = process.memoryUsage().heapUsed;
  let sum = 0;
  for (const { beforeGC, afterGC } of profiler.stop()?.statistics ?? []) {
    sum += beforeGC.heapStatistics.usedHeapSize - from;
    from = afterGC.heapStatistics.usedHeapSize;
  }
  return sum + to - from;
}
