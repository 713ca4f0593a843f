import type { WatchOptions } from '../../../broadcast/broadcaster.ts';
import { concerns } from '../../../broadcast/topics.ts';
import type { WatchEvent } from '../../../watch/event.ts';
import type { Envelope } from '../../events/envelope.ts';
import type { Publisher } from '../../events/publisher.ts';
import type { HubSettings } from '../hub-options.ts';
import type { Session } from '../session.ts';
import type { Tally } from '../tally.ts';
import { CatchUpWatch } from './catch-up.ts';
import { Follower } from './follower.ts';
import { Locator } from './locator.ts';
import { Past } from './past.ts';
import type { CatchUp } from './past-event.ts';
import type { HubSource } from './source.ts';
import type { SourceFeed } from './source-feed.ts';

/** Options of {@link Sourced}. */
export interface SourcedOptions {
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
