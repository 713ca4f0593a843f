import type { WatchEvent } from '../../../src/watch/event.ts';

/** What is published: a number, which counts from 1, and when. */
export type Tick = WatchEvent<'MODIFIED', { readonly n: number; readonly at: number; readonly filler: string }>;

/** Milliseconds, the same for all processes of a machine. */
export const now = (): number => performance.timeOrigin + performance.now();
