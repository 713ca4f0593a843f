import type { Bookmark } from '../protocol.ts';
import { BOOKMARK_INTERVAL, fromAnnotation, RETRY_AFTER } from '../protocol.ts';

/** A connection without data is lost after this many intervals between BOOKMARKs. */
const IDLE_INTERVALS = 5;
/** That interval if the server does not report it, and the limits of what it can report. */
const DEFAULT_INTERVAL_MS = 30_000;
const MIN_INTERVAL_MS = 3_000;
const MAX_INTERVAL_MS = 86_400_000;

/** What the server has said about its timing. */
export class ServerTiming {
  /**
   * A connection without data for this long is lost; 0 (never) before the first sign of life. Outlasts a connection: the server
   * of the next one is expected to do the same.
   */
  idleTimeoutMs: number = 0;
  /** When to reconnect, if this connection's last BOOKMARK has said that its server goes away. */
  retryAfterMs: number | undefined;

  /** The server has sent a sign of life that carries nothing else. */
  heartbeat(): void {
    this.idleTimeoutMs ||= IDLE_INTERVALS * DEFAULT_INTERVAL_MS;
  }

  /** The server has sent a BOOKMARK, and goes on to do so. */
  learn(bookmark: Partial<Bookmark>): void {
    const intervalMs = fromAnnotation(bookmark, BOOKMARK_INTERVAL) ?? DEFAULT_INTERVAL_MS;
    this.idleTimeoutMs = IDLE_INTERVALS * Math.min(Math.max(intervalMs, MIN_INTERVAL_MS), MAX_INTERVAL_MS);
    this.retryAfterMs = fromAnnotation(bookmark, RETRY_AFTER);
  }
}
