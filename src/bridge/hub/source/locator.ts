import type { ParsedQuery } from '../query.ts';
import type { Follower } from './follower.ts';
import type { Past } from './past.ts';
import type { CatchUp } from './past-event.ts';
import type { SourcePosition } from './source.ts';
import { toPosition } from './source.ts';
import type { SourceFeed } from './source-feed.ts';

/** Limits of what is read for clients. */
export interface CatchUpLimits {
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
export class Locator {
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
