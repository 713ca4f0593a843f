import type { WatchOptions } from '../../../broadcast/broadcaster.ts';
import { concerns, toTopics } from '../../../broadcast/topics.ts';
import { checkOptions, invalid, WatchError } from '../../../watch/errors.ts';
import type { WatchEvent } from '../../../watch/event.ts';
import { type Envelope, toText } from '../../events/envelope.ts';
import type { Publisher } from '../../events/publisher.ts';
import { newEpoch } from '../../protocol.ts';
import type { HubSettings, PublishOptions } from '../hub-options.ts';
import type { ParsedQuery } from '../query.ts';
import type { Session } from '../session.ts';
import type { Tally } from '../tally.ts';
import { CatchUpWatch, Past } from './catch-up.ts';
import { Follower } from './follower.ts';
import { type CatchUp, type HubSource, type SourcePosition, toPosition } from './source.ts';
import type { SourceFeed } from './source-feed.ts';

/** Options of {@link Sourced}. */
interface SourcedOptions {
  readonly source: HubSource;
  readonly feed: SourceFeed;
  readonly publisher: Publisher;
  readonly settings: HubSettings<WatchEvent>;
  readonly tally: Pick<Tally, 'failed' | 'sourceWorks'>;
  /** The source cannot be continued. Everybody must be notified, in this synchronous step. */
  readonly onReset: () => void;
}

/** What is notified when a client has come to the live events, or cannot. */
export interface CatchUpListener {
  readonly ready: (session: Session) => void;
  readonly joined: (session: Session) => void;
}

/** The parts that only a hub with a source has: one follows it, one reads its past, and one finds a client's place in it. */
export class Sourced {
  readonly feed: SourceFeed;
  readonly follower: Follower;
  readonly locator: Locator;
  private readonly past: Past;
  private readonly maxBytes: number;

  constructor({ source, feed, publisher, settings, tally, onReset }: SourcedOptions) {
    this.feed = feed;
    this.maxBytes = settings.maxCatchUpBytes;
    this.past = new Past(source, feed, settings);
    this.follower = new Follower({ ...settings, source, feed, publisher, tally, last: settings.replayItems, onReset });
    this.locator = new Locator(this.past, { feed, follower: this.follower, limits: settings });
  }

  /** An event was distributed. */
  reached(): void {
    const { position } = this.follower;
    if (position !== undefined) this.feed.reach(position);
  }

  /** The watch of a client that is brought up from the source. */
  watch(
    start: CatchUp,
    own: WatchOptions<Envelope>,
    { session, ...listener }: CatchUpListener & { session: () => Session },
  ): CatchUpWatch {
    return new CatchUpWatch({
      start,
      feed: this.feed,
      maxBytes: this.maxBytes,
      read: (after) => this.past.after(after),
      accepts: (envelope, topics) => (!own.topics || concerns(topics, own.topics)) && (own.filter?.(envelope) ?? true),
      live: (place) => this.feed.watchAfter(place, own),
      ready: () => listener.ready(session()),
      joined: () => listener.joined(session()),
      failed: () => session().stop('goingAway'),
    });
  }

  stop(): void {
    this.follower.stop();
    this.past.stop();
  }
}

/** Limits of what is read for clients. */
interface CatchUpLimits {
  /** How many events, and bytes, one client may be behind. */
  readonly maxCatchUpItems: number;
  readonly maxCatchUpBytes: number;
  /** How many reads there may be at a time. */
  readonly maxReads: number;
}

/**
 * Finds where in the stream a client continues if this hub does not keep its version.
 *
 *     version --> kept here? -----------------------------> continue here
 *        |          '-- ask the stream --> unknown -------> 410
 *        |                '-- known, too far behind ------> 410
 *        |                '-- known, this hub is behind --> wait for this hub, again
 *        |                '-- known ----------------------> CatchUp
 *
 * A client that comes from another replica may be ahead of this one, so a version from the future is not an error here.
 */
class Locator {
  private readonly past: Past;
  private readonly feed: SourceFeed;
  private readonly follower: Follower;
  private readonly limits: CatchUpLimits;

  constructor(past: Past, parts: { feed: SourceFeed; follower: Follower; limits: CatchUpLimits }) {
    this.past = past;
    this.feed = parts.feed;
    this.follower = parts.follower;
    this.limits = parts.limits;
  }

  /** Whether this hub can answer a request by itself, now. */
  knows({ resourceVersion, sendInitialEvents, isBack = false }: ParsedQuery): boolean {
    if (!this.follower.ready) return false;
    if (resourceVersion === undefined || (sendInitialEvents === true && !isBack)) return true;
    return this.feed.placeOf(resourceVersion) !== undefined || toPosition(resourceVersion) === undefined;
  }

  /**
   * Resolves to where a client is in the stream, or to undefined when this hub can answer by itself, be it with 410. Waits until
   * this hub is ready. Rejects if the source cannot be reached.
   */
  async locate(asked: ParsedQuery, gone: AbortSignal): Promise<CatchUp | undefined> {
    for (;;) {
      if (!(await this.follower.until(() => this.follower.ready, gone)) || this.knows(asked)) return undefined;
      const version = asked.resourceVersion as string;
      const position = toPosition(version) as SourcePosition;
      const page = await this.past.after(position);
      if (page === undefined || gone.aborted) return undefined;
      const own = this.follower.position;
      if (this.knows(asked)) return undefined;
      if (own?.epoch !== position.epoch || own.sequence === position.sequence) {
        // The stream knows what this hub does not: it has been replaced, or has lost events, and the hub has not noticed.
        if (own !== undefined) await this.renewed(own, gone);
      } else if (own.sequence < position.sequence) {
        const passed = (): boolean => (this.follower.position?.sequence ?? Infinity) >= position.sequence;
        await this.follower.until(passed, gone);
      } else if (page.length === 0 || own.sequence - position.sequence > this.limits.maxCatchUpItems) return undefined;
      else return { version, position, page };
    }
  }

  /** Asks the follower to look at the stream again, and waits for the outcome. */
  private async renewed(own: SourcePosition, gone: AbortSignal): Promise<void> {
    this.follower.renew();
    await this.follower.until(() => this.follower.position !== own && this.follower.ready, gone);
  }
}

/** Options of an {@link Outbox}. */
interface OutboxOptions extends Pick<HubSettings<WatchEvent>, 'topicsOf' | 'maxPending'> {
  readonly source: HubSource;
  /** Refuses a text that is too long for clients. */
  readonly publisher: { checkSize(bytes: number): void };
  readonly lifetime: { readonly closing: boolean };
}

/** Characters of an id: those of a header's value, without spaces. */
const ID = /^[\x21-\x7e]{1,256}$/;
/** What the version adds to a text, at most. */
const VERSION_BYTES = 128;

const utf8 = new TextEncoder();

/** What a hub with a source publishes: events go to the stream, and come back from there like those of any other hub. */
export class Outbox {
  private readonly options: OutboxOptions;
  private pending: number = 0;

  constructor(options: OutboxOptions) {
    this.options = options;
  }

  async publish(event: WatchEvent, options: string | PublishOptions = {}): Promise<void> {
    const { source, publisher, lifetime, topicsOf, maxPending: limit } = this.options;
    const { json, id = newEpoch() + newEpoch() } =
      typeof options === 'string' ? { json: options } : checkOptions(options, ['json', 'id']);
    if (lifetime.closing) throw new WatchError('CLOSED', 'publish: the hub is shut down');
    if (typeof id !== 'string' || !ID.test(id)) throw invalid('id', id, '1 to 256 printable ASCII characters without spaces');
    if (this.pending >= limit)
      throw new WatchError('OVERLOADED', `publish: ${limit} publishes are already pending (maxPending)`, { limit });
    const text = toText(event, json);
    publisher.checkSize(utf8.encode(text).length + VERSION_BYTES);
    const topics = toTopics(topicsOf?.(event)) ?? [];
    this.pending++;
    try {
      await source.publish({ json: text, topics: typeof topics === 'string' ? [topics] : topics, id });
    } finally {
      this.pending--;
    }
  }
}
