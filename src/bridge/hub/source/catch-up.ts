import { toExpired } from '../../../broadcast/cursor/cursor.ts';
import type { ErrorEvent } from '../../../watch/event.ts';
import type { Envelope } from '../../events/envelope.ts';
import type { SessionWatch } from '../session-host.ts';
import type { CatchUp, PastEvent } from './past-event.ts';
import type { SourcePosition } from './source.ts';
import { toSourceVersion } from './source.ts';
import type { SourceFeed } from './source-feed.ts';

/** Options of a {@link CatchUpWatch}. */
export interface CatchUpOptions {
  readonly start: CatchUp;
  readonly feed: SourceFeed;
  /** How many bytes may be read for this client. */
  readonly maxBytes: number;
  /** Reads on. Resolves to undefined if the stream does not continue there any more. */
  readonly read: (after: SourcePosition) => Promise<readonly PastEvent[] | undefined>;
  /** What the client may see. */
  readonly accepts: (envelope: Envelope, topics: readonly string[]) => boolean;
  /** Opens the watch that continues after a place. */
  readonly live: (place: number) => SessionWatch<Envelope>;
  /** There is something to read again. */
  readonly ready: () => void;
  /** It stands among the live events now. */
  readonly joined: () => void;
  /** The source cannot be reached: the client should come back, if it is still there. */
  readonly failed: () => void;
}

/**
 * The watch of a client that is further behind than its hub remembers. It reads the stream page by page, as fast as the client takes
 * it, until it has come to what the hub keeps, and is an ordinary watch from then on.
 *
 *     stream   |41 42 43 44|45 46 47 48|49 50 51 52 53 54
 *              page         page              ^window ... head
 *                                       joins here: the rest comes from the hub
 *
 * A client costs one page at most. Where it joins is decided in one synchronous step, by the version of the last event of a page, so
 * nothing is missed and nothing comes twice.
 */
export class CatchUpWatch implements SessionWatch<Envelope> {
  private readonly options: CatchUpOptions;
  /** The last event that was looked at. */
  private at: SourcePosition;
  private page: readonly PastEvent[] | undefined;
  private inner: SessionWatch<Envelope> | undefined = undefined;
  /** The ERROR that ends it, once everything before has been read. */
  private notice: ErrorEvent | undefined = undefined;
  private over: boolean = false;
  private reading: boolean = false;
  private bytes: number = 0;

  constructor(options: CatchUpOptions) {
    this.options = options;
    this.at = options.start.position;
    this.page = options.start.page;
  }

  /** It has not come to the live events, so the hub's version is not that of its client. */
  get behind(): boolean {
    return this.inner === undefined;
  }

  get view(): object | undefined {
    return this.inner?.view;
  }

  get stopped(): boolean {
    return this.inner?.stopped ?? this.over;
  }

  get queued(): number {
    return this.inner?.queued ?? (this.over ? 0 : Math.max(1, this.page?.length ?? 0));
  }

  get dropped(): number {
    return this.inner?.dropped ?? 0;
  }

  sizeOfQueue(sizeOf: (event: Envelope) => number): number {
    return this.inner?.sizeOfQueue?.(sizeOf) ?? 0;
  }

  tryBatch(): readonly Envelope[] | undefined {
    while (this.inner === undefined && !this.over) {
      if (this.page !== undefined) {
        const batch = this.turnPage(this.page);
        if (batch.length > 0) return batch;
      } else if (this.notice !== undefined) {
        const { notice } = this;
        this.finish();
        return [notice as unknown as Envelope];
      } else if (!this.join()) {
        this.readOn();
        return undefined;
      }
    }
    return this.inner?.tryBatch();
  }

  stop(): void {
    if (this.inner === undefined) this.finish();
    else this.inner.stop();
  }

  return(): Promise<IteratorResult<Envelope, undefined>> {
    this.finish();
    void this.inner?.return();
    return Promise.resolve({ done: true, value: undefined });
  }

  private finish(): void {
    this.over = true;
    this.page = undefined;
  }

  /** Goes over to the live events, if this hub keeps all that follow. */
  private join(): boolean {
    const place = this.options.feed.placeOf(toSourceVersion(this.at));
    if (place === undefined) return false;
    this.inner = this.options.live(place);
    this.options.joined();
    return true;
  }

  /** Returns what the client may see of a page, as far as this hub has come itself. */
  private turnPage(page: readonly PastEvent[]): readonly Envelope[] {
    const { feed, accepts, maxBytes } = this.options;
    const batch: Envelope[] = [];
    this.page = undefined;
    for (const { position, envelope, topics } of page) {
      if (position.sequence > feed.sequence) break;
      this.at = position;
      if (envelope === undefined) continue;
      this.bytes += envelope.bytes.length;
      if (accepts(envelope, topics)) batch.push(envelope);
    }
    if (this.bytes > maxBytes) this.notice = toNotice(`more than ${maxBytes} bytes would have to be read`);
    return batch;
  }

  private readOn(): void {
    if (this.reading) return;
    this.reading = true;
    this.options.read(this.at).then(
      (page) => this.got(page),
      () => this.options.failed(),
    );
  }

  private got(page: readonly PastEvent[] | undefined): void {
    this.reading = false;
    if (this.over) return;
    // Nothing, although the hub has more: what it keeps and what the stream holds do not meet.
    if (page === undefined || page.length === 0) this.notice = toNotice('the stream holds no more of it');
    else this.page = page;
    this.options.ready();
  }
}

function toNotice(why: string): ErrorEvent {
  return { type: 'ERROR', object: toExpired(`too far behind: ${why}; watch again from a fresh state`) };
}
