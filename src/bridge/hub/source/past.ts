import { Envelope, type Keeper } from '../../events/envelope.ts';
import { Semaphore } from '../semaphore.ts';
import { parse } from './follower.ts';
import type { PastEvent } from './past-event.ts';
import type { HubSource, SourceEvent, SourcePosition } from './source.ts';
import { toSourceVersion } from './source.ts';
import type { SourceFeed } from './source-feed.ts';

/** How many entries are read at once, for all clients that need any of them. */
const PAGE_ITEMS = 256;
const PAGE_BYTES = 1_048_576;
/** Pages that are kept for the next client, in bytes of their events' texts and of compressed copies of these. */
const KEPT_BYTES = 16_777_216;

interface Page {
  readonly entries: readonly PastEvent[];
  bytes: number;
}

/** Limits of {@link Past}. */
interface PastLimits {
  readonly maxReads: number;
  /** A longer event is skipped. */
  readonly maxEventBytes: number;
}

/**
 * What a hub reads from its source, for clients that are further behind than it remembers. After a restart, thousands of them ask for
 * the same stretch at once, so the stream is read in fixed pages, each once, and the last ones are kept.
 *
 *     stream   |1 .. 256|257 .. 512|513 .. 768|769 ..
 *     client a      ^ after 200: the rest of page 0, then page 1 ...
 *     client b              ^ after 300: the rest of page 1: no read
 *
 * What is kept is valid for as long as the hub can continue in the stream. Once it has begun again elsewhere, all of it is
 * forgotten; not before, because until then it is not known how much of the stream is lost.
 */
export class Past {
  private readonly source: HubSource;
  private readonly feed: Pick<SourceFeed, 'epoch' | 'sequence' | 'restarts' | 'placeBefore'>;
  private readonly slots: Semaphore;
  private readonly maxEventBytes: number;
  private readonly pages: Map<number, Page> = new Map();
  private readonly reading: Map<number, Promise<Page | undefined>> = new Map();
  private readonly ended: AbortController = new AbortController();
  private bytes: number = 0;
  /** The start of the feed to which the pages belong. */
  private restarts: number = 0;

  constructor(source: HubSource, feed: Past['feed'], { maxReads, maxEventBytes }: PastLimits) {
    this.source = source;
    this.feed = feed;
    this.slots = new Semaphore(maxReads);
    this.maxEventBytes = maxEventBytes;
  }

  /** Ends every read. */
  stop(): void {
    this.ended.abort();
    this.forget();
  }

  /**
   * Returns entries right after a position: at least one, or none if there is none yet. Resolves to undefined if the stream does not hold the
   * entry of that position, or another one in its place, or not the next one.
   */
  async after({ epoch, sequence, mark }: SourcePosition): Promise<readonly PastEvent[] | undefined> {
    const isLater = ({ position }: PastEvent): boolean => position.sequence > sequence;
    const page = sequence === 0 ? EMPTY : await this.pageWith(epoch, sequence);
    const own = page?.entries.find(({ position }) => position.sequence === sequence)?.position.mark;
    if (mark !== (sequence === 0 ? '0' : own)) return undefined;
    let later = page?.entries.filter(isLater);
    if (later?.length === 0) later = (await this.pageWith(epoch, sequence + 1))?.entries.filter(isLater);
    if (later === undefined) return undefined;
    const next = consecutive(later, sequence);
    return next.length > 0 || later.length === 0 ? next : undefined;
  }

  /** Returns the page that holds a sequence, or what there is in its place; undefined if the stream is another one. */
  private async pageWith(epoch: string, sequence: number): Promise<Page | undefined> {
    const number = Math.floor((sequence - 1) / PAGE_ITEMS);
    const page = await (epoch === this.feed.epoch ? this.shared(epoch, number) : this.read(epoch, firstOf(number)));
    // With large events, the page may have ended before it. How many bytes they take, only the source knows.
    const last = page?.entries.at(-1)?.position.sequence ?? sequence;
    return last < sequence ? this.read(epoch, sequence) : page;
  }

  private shared(epoch: string, number: number): Promise<Page | undefined> | Page {
    const { restarts } = this.feed;
    if (restarts !== this.restarts) this.forget();
    const kept = this.pages.get(number);
    if (kept !== undefined) {
      // The one that was needed last is forgotten last.
      this.pages.delete(number);
      this.pages.set(number, kept);
      return kept;
    }
    const running = this.reading.get(number);
    if (running !== undefined) return running;
    const reading = this.read(epoch, firstOf(number)).then((page) => {
      // What comes after the hub's own position may still grow, or be lost without the hub's notice.
      const isWhole = page !== undefined && (number + 1) * PAGE_ITEMS <= this.feed.sequence;
      if (isWhole && restarts === this.feed.restarts) this.keep(number, page);
      return page;
    });
    const done = (): void => {
      if (this.reading.get(number) === reading) this.reading.delete(number);
    };
    reading.then(done, done);
    this.reading.set(number, reading);
    return reading;
  }

  private forget(): void {
    this.restarts = this.feed.restarts;
    this.pages.clear();
    this.reading.clear();
    this.bytes = 0;
  }

  private keep(number: number, page: Page): void {
    this.pages.set(number, page);
    this.bytes += page.bytes;
    this.trim();
  }

  /** An event of a page holds so many bytes more. */
  private grew(page: Page, bytes: number): void {
    page.bytes += bytes;
    if (![...this.pages.values()].includes(page)) return;
    this.bytes += bytes;
    this.trim();
  }

  /** Forgets pages that have not been needed for long, but never the last one. */
  private trim(): void {
    for (const [oldest, { bytes }] of this.pages) {
      if (this.bytes <= KEPT_BYTES || this.pages.size === 1) break;
      this.pages.delete(oldest);
      this.bytes -= bytes;
    }
  }

  private async read(epoch: string, first: number): Promise<Page | undefined> {
    const { signal } = this.ended;
    // A separate signal: hundreds of listeners on one would look like a leak. A read that waits when all ends soon has its turn.
    await this.slots.enter(new AbortController().signal);
    try {
      signal.throwIfAborted();
      const events = await this.source.read({ epoch, first }, { items: PAGE_ITEMS, bytes: PAGE_BYTES, signal });
      return events && this.toPage(events, epoch);
    } finally {
      this.slots.leave();
    }
  }

  private toPage(events: readonly SourceEvent[], epoch: string): Page {
    const entries: PastEvent[] = [];
    const page: Page = { entries, bytes: 0 };
    const keeper: Keeper = { grew: (_, bytes) => this.grew(page, bytes) };
    for (const { sequence, mark, json, topics } of events) {
      const position = { epoch, sequence, mark };
      const event = parse(json);
      const place = { sequence: this.feed.placeBefore(sequence), version: toSourceVersion(position), json, keeper };
      const envelope = event && new Envelope(event, place);
      const fits = envelope !== undefined && envelope.bytes.length <= this.maxEventBytes;
      page.bytes += fits ? envelope.bytes.length : 0;
      entries.push({ position, topics, envelope: fits ? envelope : undefined });
    }
    return page;
  }
}

const EMPTY: Page = { entries: [], bytes: 0 };

/** The sequence of the first entry of a page. */
function firstOf(number: number): number {
  return number * PAGE_ITEMS + 1;
}

/** Returns the entries up to a gap. */
function consecutive(entries: readonly PastEvent[], after: number): readonly PastEvent[] {
  const gap = entries.findIndex((entry, i) => entry.position.sequence !== after + 1 + i);
  return gap < 0 ? entries : entries.slice(0, gap);
}
