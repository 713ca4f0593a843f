import type { ClientStats } from '../../bridge/hub/connection.ts';
import type { HubTotals } from '../../bridge/hub/tally.ts';
import type { Overflow } from '../../watch/overflow.ts';

/** A client that is connected. */
export interface PipeClient extends ClientStats {
  /** Events that earlier connections of this client dropped, and that it has got since. */
  readonly recovered: number;
}

/** The content of `/stats`. */
export interface PipeStats {
  readonly version: string;
  readonly accepted: number;
  /** The queue length of every client, and what happens when a queue is full. */
  readonly capacity: number;
  readonly overflow: Overflow;
  /** Of the dropped events, those that clients got after all, because they came back and resumed. */
  readonly recovered: number;
  readonly clients: readonly PipeClient[];
  readonly total: HubTotals;
}

/** The parameter with which the page limits how fast it is served, in bytes per second; 0 means no limit. */
export const SLOW = 'slow';

/** The header that tells a page which of the clients it is. */
export const CLIENT_HEADER = 'watchmux-client';
