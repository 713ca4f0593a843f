import type { WatchOptions } from '../../../broadcast/broadcaster.ts';
import { concerns } from '../../../broadcast/topics.ts';
import { type ErrorEvent, toExpired } from '../../../watch/event.ts';
import { Envelope, type Keeper } from '../../events/envelope.ts';
import type { HubSession, SessionWatch } from '../hub-session.ts';
import type { HubSessions } from '../sessions.ts';
import { Semaphore } from '../snapshot.ts';
import {
  type CatchUpStart,
  type HubSource,
  type SourceEntry,
  type SourceEvent,
  type SourcePosition,
  toSourceVersion,
} from './source.ts';
import { parse, type SourceLog } from './source-follower.ts';

interface CatchUpOptions {
  readonly start: CatchUpStart;
  readonly log: SourceLog;
  readonly pages: SourcePages;
  /** How many bytes may be read for this client. */
  readonly maxBytes: number;
  /** How the client watches, and what it may see. */
  readonly own: WatchOptions<Envelope>;
  readonly sessions: HubSessions;
  /** Its session, which is made after its watch. */
  readonly session: () => HubSession;
}

/**
 * The watch of a client that is further behind than its hub remembers. It reads the stream page by page, as fast as the client
 * takes it, until it reaches what the hub keeps; from then on it is an ordinary watch.
 *
 *     stream   |41 42 43 44|45 46 47 48|49 50 51 52 53 54
 *              page         page              ^window ... head
 *                                       joins here: the rest comes from the hub
 *
 * A client costs one page at most. Where it joins is decided in one synchronous step, by the version of the last event of a
 * page, so nothing is missed or repeated.
 */
export class CatchUpWatch implements SessionWatch<Envelope> {
  private readonly options: CatchUpOptions;
  /** The last event that was looked at. */
  private at: SourcePosition;
  private page: readonly SourceEntry[] | undefined;
  private inner: SessionWatch<Envelope> | undefined = undefined;
  /** The ERROR that ends it, once everything before has been read. */
  private notice: ErrorEvent | undefined = undefined;
  /** The error of its client's filter, once everything before has been read. */
  private failure: { readonly error: unknown } | undefined = undefined;
  private over: boolean = false;
  private reading: boolean = false;
  private bytes: number = 0;

  constructor(options: CatchUpOptions) {
    this.options = options;
    this.at = options.start.position;
    this.page = options.start.page;
  }

  /** It has not reached the live events, so the hub's version is not its client's. */
  get behind(): boolean {
    return this.inner === undefined;
  }

  /** Its client's place in the hub's log, before what the log keeps. */
  get startPlace(): number {
    const { log, start } = this.options;
    return log.placeBefore(start.position.sequence);
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
      } else if (this.failure !== undefined) {
        this.finish();
        throw this.failure.error;
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

  /** Switches to the live events, if this hub keeps all that follow. */
  private join(): boolean {
    const { log, own, sessions, session } = this.options;
    const place = log.placeOf(toSourceVersion(this.at));
    if (place === undefined) return false;
    this.inner = log.watchAfter(place, own);
    sessions.add(session());
    return true;
  }

  /** Returns what the client may see of a page, up to where this hub itself is. */
  private turnPage(page: readonly SourceEntry[]): readonly Envelope[] {
    const { log, maxBytes } = this.options;
    const batch: Envelope[] = [];
    this.page = undefined;
    for (const { position, envelope, topics } of page) {
      if (position.sequence > log.sequence) break;
      this.at = position;
      if (envelope === undefined) continue;
      this.bytes += envelope.bytes.length;
      try {
        if (this.accepts(envelope, topics)) batch.push(envelope);
      } catch (error) {
        // What comes before it is still for the client.
        this.failure = { error };
        break;
      }
    }
    if (this.bytes > maxBytes) this.notice = toNotice(`more than ${maxBytes} bytes would have to be read`);
    return batch;
  }

  private accepts(envelope: Envelope, topics: readonly string[]): boolean {
    const { own } = this.options;
    return (!own.topics || concerns(topics, own.topics)) && (own.filter?.(envelope) ?? true);
  }

  private readOn(): void {
    if (this.reading) return;
    this.reading = true;
    this.options.pages.after(this.at).then(
      (page) => this.got(page),
      () => this.options.session().stop('goingAway'),
    );
  }

  private got(page: readonly SourceEntry[] | undefined): void {
    this.reading = false;
    if (this.over) return;
    // Nothing, although the hub has more: there is a gap between what the stream holds and what the hub keeps.
    if (page === undefined || page.length === 0) this.notice = toNotice('the stream no longer holds the events after it');
    else this.page = page;
    const { sessions, session } = this.options;
    sessions.ready(session());
  }
}

function toNotice(why: string): ErrorEvent {
  return { type: 'ERROR', object: toExpired(`too far behind: ${why}; watch again from a fresh state`) };
}

/** How many entries are read at once, for all clients that need any of them. */
const PAGE_ITEMS = 256;
const PAGE_BYTES = 1_048_576;
/** Pages that are kept for the next client, in bytes of their events' texts and of compressed copies of these. */
const KEPT_BYTES = 16_777_216;

interface Page {
  readonly entries: readonly SourceEntry[];
  bytes: number;
}

interface SourcePagesLimits {
  readonly maxReads: number;
  /** A longer event is skipped. */
  readonly maxEventBytes: number;
}

/**
 * What a hub reads from its source, for clients that are further behind than it remembers. After a restart, thousands of them
 * ask for the same range at once, so the stream is read in fixed pages, each once, and the last ones are kept.
 *
 *     stream   |1 .. 256|257 .. 512|513 .. 768|769 ..
 *     client a      ^ after 200: the rest of page 0, then page 1 ...
 *     client b              ^ after 300: the rest of page 1: no read
 *
 * The pages are valid while the hub can continue in the stream. Once it has started over elsewhere, all pages are dropped; not
 * earlier, because until then it is not known how much of the stream is lost.
 */
export class SourcePages {
  private readonly source: HubSource;
  private readonly log: Pick<SourceLog, 'epoch' | 'sequence' | 'restarts' | 'placeBefore'>;
  private readonly slots: Semaphore;
  private readonly maxEventBytes: number;
  private readonly pages: Map<number, Page> = new Map();
  private readonly reading: Map<number, Promise<Page | undefined>> = new Map();
  private readonly ended: AbortController = new AbortController();
  private bytes: number = 0;
  /** The start of the log to which the pages belong. */
  private restarts: number = 0;

  constructor(source: HubSource, log: SourcePages['log'], { maxReads, maxEventBytes }: SourcePagesLimits) {
    this.source = source;
    this.log = log;
    this.slots = new Semaphore(maxReads);
    this.maxEventBytes = maxEventBytes;
  }

  /** Ends every read. */
  stop(): void {
    this.ended.abort();
    this.forget();
  }

  /**
   * Returns entries right after a position, or none if there is none yet. Resolves to undefined if the stream no longer holds
   * the entry at that position, holds another in its place, or lacks the next one.
   */
  async after({ epoch, sequence, mark }: SourcePosition): Promise<readonly SourceEntry[] | undefined> {
    const isLater = ({ position }: SourceEntry): boolean => position.sequence > sequence;
    const page = sequence === 0 ? EMPTY : await this.pageWith(epoch, sequence);
    const own = page?.entries.find(({ position }) => position.sequence === sequence)?.position.mark;
    if (mark !== (sequence === 0 ? '0' : own)) return undefined;
    let later = page?.entries.filter(isLater);
    if (later?.length === 0) later = (await this.pageWith(epoch, sequence + 1))?.entries.filter(isLater);
    if (later === undefined) return undefined;
    const next = consecutive(later, sequence);
    return next.length > 0 || later.length === 0 ? next : undefined;
  }

  /** Returns the page that holds a sequence, or should hold it; undefined if the stream is a different one. */
  private async pageWith(epoch: string, sequence: number): Promise<Page | undefined> {
    const number = Math.floor((sequence - 1) / PAGE_ITEMS);
    const page = await (epoch === this.log.epoch ? this.shared(epoch, number) : this.read(epoch, firstOf(number)));
    // With large events, the page may have ended before it. Only the source knows how many bytes they take.
    const last = page?.entries.at(-1)?.position.sequence ?? sequence;
    return last < sequence ? this.read(epoch, sequence) : page;
  }

  private shared(epoch: string, number: number): Promise<Page | undefined> | Page {
    const { restarts } = this.log;
    if (restarts !== this.restarts) this.forget();
    const kept = this.pages.get(number);
    if (kept !== undefined) {
      // The page used last is dropped last.
      this.pages.delete(number);
      this.pages.set(number, kept);
      return kept;
    }
    const running = this.reading.get(number);
    if (running !== undefined) return running;
    const reading = this.read(epoch, firstOf(number)).then((page) => {
      // What comes after the hub's own position may still grow, or be lost without the hub noticing.
      const isWhole = page !== undefined && (number + 1) * PAGE_ITEMS <= this.log.sequence;
      if (isWhole && restarts === this.log.restarts) this.keep(number, page);
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
    this.restarts = this.log.restarts;
    this.pages.clear();
    this.reading.clear();
    this.bytes = 0;
  }

  private keep(number: number, page: Page): void {
    this.pages.set(number, page);
    this.bytes += page.bytes;
    this.trim();
  }

  /** An event of a page holds this many bytes more. */
  private grew(page: Page, bytes: number): void {
    page.bytes += bytes;
    if (![...this.pages.values()].includes(page)) return;
    this.bytes += bytes;
    this.trim();
  }

  /** Drops the pages that were used least recently, but never the last one. */
  private trim(): void {
    for (const [oldest, { bytes }] of this.pages) {
      if (this.bytes <= KEPT_BYTES || this.pages.size === 1) break;
      this.pages.delete(oldest);
      this.bytes -= bytes;
    }
  }

  private async read(epoch: string, first: number): Promise<Page | undefined> {
    const { signal } = this.ended;
    // A separate signal: hundreds of listeners on one would look like a leak. A read that waits when everything ends gets its
    // turn soon.
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
    const entries: SourceEntry[] = [];
    const page: Page = { entries, bytes: 0 };
    const keeper: Keeper = { grew: (_, bytes) => this.grew(page, bytes) };
    for (const { sequence, mark, json, topics } of events) {
      const position = { epoch, sequence, mark };
      const event = parse(json);
      const place = { sequence: this.log.placeBefore(sequence), version: toSourceVersion(position), json, keeper };
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
function consecutive(entries: readonly SourceEntry[], after: number): readonly SourceEntry[] {
  const gap = entries.findIndex((entry, i) => entry.position.sequence !== after + 1 + i);
  return gap < 0 ? entries : entries.slice(0, gap);
}
