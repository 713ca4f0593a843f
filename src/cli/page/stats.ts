import type { ClientStats } from '../../bridge/client-info.ts';
import type { HubTotals } from '../../bridge/tally.ts';

/** What `/stats` says. */
export interface PipeStats {
  readonly version: string;
  readonly accepted: number;
  /** What every client's queue holds, and what happens when it is full. */
  readonly capacity: number;
  readonly overflow: string;
  readonly clients: readonly ClientStats[];
  readonly total: HubTotals;
}

/** The parameter by which the page asks to be sent no more than so many bytes a second; 0: all there are. */
export const SLOW = 'slow';

/** The header that tells a page which of the clients it is. */
export const CLIENT_HEADER = 'watchmux-client';
