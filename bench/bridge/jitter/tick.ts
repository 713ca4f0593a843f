import type { WatchEvent } from '../../../src/watch/event.ts';

/** The published event: a number, counted from 1, and a time. */
export type Tick = WatchEvent<'MODIFIED', { readonly n: number; readonly at: number; readonly filler: string }>;

/** Milliseconds on a clock that all processes of a machine share. */
export const now = (): number => performance.timeOrigin + performance.now();
