import type { WatchOptions } from '../../../broadcast/broadcaster.ts';
import { toTopics } from '../../../broadcast/topics.ts';
import { checkOptions, invalid, WatchError } from '../../../watch/errors.ts';
import type { WatchEvent } from '../../../watch/event.ts';
import { type Envelope, toText } from '../../events/envelope.ts';
import { newEpoch } from '../../protocol.ts';
import type { PublishOptions } from '../hub-options.ts';
import type { HubSession } from '../hub-session.ts';
import type { ParsedQuery } from '../query.ts';
import { CatchUpWatch, SourcePages } from './catch-up.ts';
import { type CatchUpStart, type SourcePosition, toPosition } from './source.ts';
import { SourceFollower, type SourceParts } from './source-follower.ts';

/** Characters of an id: those of a header's value, without spaces. */
const ID = /^[\x21-\x7e]{1,256}$/;
/** The most that a version adds to a text. */
const VERSION_BYTES = 128;

const utf8 = new TextEncoder();

/**
 * How a hub uses its source. What is published goes to the stream, and comes back from there like the events of any other hub.
 *
 *     publish --> stream --+--> follower --> the hub's log
 *                          '--> pages -----> clients that are further behind than the log
 */
export class SourceAccess {
  readonly follower: SourceFollower;
  private readonly pages: SourcePages;
  private readonly parts: SourceParts;
  /** Number of publishes that are not stored yet. */
  private pending: number = 0;

  constructor(parts: SourceParts) {
    const { source, log, settings } = parts;
    this.parts = parts;
    this.pages = new SourcePages(source, log, settings);
    this.follower = new SourceFollower(parts);
  }

  /** Appends an event to the stream. */
  async publish(event: WatchEvent, options: string | PublishOptions = {}): Promise<void> {
    const { source, publisher, lifetime, settings } = this.parts;
    const { topicsOf, maxPending: limit } = settings;
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

  /** The watch of a client that catches up from the source. */
  watch(start: CatchUpStart, own: WatchOptions<Envelope>, session: () => HubSession): CatchUpWatch {
    const { log, sessions, settings } = this.parts;
    return new CatchUpWatch({ start, own, session, log, sessions, pages: this.pages, maxBytes: settings.maxCatchUpBytes });
  }

  /** Whether this hub can answer a request by itself, now. */
  knows({ resourceVersion, sendInitialEvents, isBack = false }: ParsedQuery): boolean {
    if (!this.follower.ready) return false;
    if (resourceVersion === undefined || (sendInitialEvents === true && !isBack)) return true;
    return this.parts.log.placeOf(resourceVersion) !== undefined || toPosition(resourceVersion) === undefined;
  }

  /**
   * Resolves to where in the stream a client continues if this hub does not keep its version, or to undefined when this hub can
   * answer by itself. Waits until this hub is ready. Rejects if the source cannot be reached.
   *
   *     version --> kept here? -----------------------------> continue here
   *        |          '-- ask the stream --> unknown -------> 410
   *        |                '-- known, too far behind ------> 410
   *        |                '-- known, this hub is behind --> wait for this hub, again
   *        |                '-- known ----------------------> CatchUp
   *
   * A client that comes from another replica may be ahead of this one, so a version from the future is not an error here.
   */
  async locate(asked: ParsedQuery, gone: AbortSignal): Promise<CatchUpStart | undefined> {
    const { follower } = this;
    for (;;) {
      if (!(await follower.until(() => follower.ready, gone)) || this.knows(asked)) return undefined;
      const version = asked.resourceVersion as string;
      const position = toPosition(version) as SourcePosition;
      const page = await this.pages.after(position);
      if (page === undefined || gone.aborted) return undefined;
      const own = follower.position;
      if (this.knows(asked)) return undefined;
      if (own?.epoch !== position.epoch || own.sequence === position.sequence) {
        // The stream has been replaced, or has lost events, and this hub has not noticed.
        if (own !== undefined) await this.renewed(own, gone);
      } else if (own.sequence < position.sequence) {
        await follower.until(() => (follower.position?.sequence ?? Infinity) >= position.sequence, gone);
      } else if (page.length === 0 || own.sequence - position.sequence > this.parts.settings.maxCatchUpItems) return undefined;
      else return { version, position, page };
    }
  }

  stop(): void {
    this.follower.stop();
    this.pages.stop();
  }

  /** Asks the follower to look at the stream again, and waits for the outcome. */
  private async renewed(own: SourcePosition, gone: AbortSignal): Promise<void> {
    this.follower.renew();
    await this.follower.until(() => this.follower.position !== own && this.follower.ready, gone);
  }
}
