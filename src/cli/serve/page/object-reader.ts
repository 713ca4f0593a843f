import type { Clock } from '../../../watch/clock.ts';
import { systemClock } from '../../../watch/clock.ts';

/** What there is to show of an object. */
export type Content =
  | { readonly is: 'object'; readonly text: string }
  | { readonly is: 'gone' }
  | { readonly is: 'failed'; readonly message: string };

/** Options of an {@link ObjectReader}. */
export interface ReaderOptions {
  /** Reads the object as it is now. */
  readonly read: (signal: AbortSignal) => Promise<Content>;
  readonly onContent: (content: Content) => void;
  readonly clock?: Clock | undefined;
}

/** An object that changes all the time is read this often. */
const REST_MS = 250;

/**
 * Keeps the content of one object up to date. A row says that the object has changed, but not what it is now; so it is read
 * again, one read at a time. Changes that come meanwhile become one more read.
 *
 *     idle --changed--> reading --answer--> resting --REST_MS--> idle, or reading if it has changed again
 */
export class ObjectReader {
  private readonly options: ReaderOptions;
  private readonly clock: Clock;
  private readonly closing: AbortController = new AbortController();
  private busy: boolean = false;
  private stale: boolean = false;
  private cancelRest: () => void = () => {};

  constructor(options: ReaderOptions) {
    this.options = options;
    this.clock = options.clock ?? systemClock;
    this.changed();
  }

  /** Reads it, now or when the current read is over. */
  changed(): void {
    if (this.closing.signal.aborted) return;
    this.stale = true;
    if (!this.busy) void this.read();
  }

  /** Nothing is read or called from here on. */
  close(): void {
    this.closing.abort();
    this.cancelRest();
  }

  private async read(): Promise<void> {
    const { signal } = this.closing;
    this.busy = true;
    this.stale = false;
    const content = await this.options.read(signal).catch((error: Error): Content => ({ is: 'failed', message: error.message }));
    if (signal.aborted) return;
    this.options.onContent(content);
    this.cancelRest = this.clock.schedule(REST_MS, () => {
      this.busy = false;
      if (this.stale) void this.read();
    });
  }
}
