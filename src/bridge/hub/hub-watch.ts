import { concerns, toTopicSet } from '../../broadcast/topics.ts';
import { verdictOf, whenAborted } from '../../watch/abort.ts';
import { callable, checkOptions, invalid, WatchError, wholeNumber } from '../../watch/errors.ts';
import type { ErrorEvent, WatchEvent } from '../../watch/event.ts';
import { toExpired } from '../../watch/event.ts';
import { PullWatch } from '../../watch/pull-watch.ts';
import type { Watch } from '../../watch/watch.ts';
import { Envelope } from '../events/envelope.ts';
import type { HubCore } from './hub-core.ts';
import type { ReadableWatch } from './hub-session.ts';
import { type CatchUpStart, toSourceVersion } from './source/source.ts';

/** What a watch of a hub in this process delivers: the events with their versions, and an ERROR if it cannot continue. */
export type HubEvent<E extends WatchEvent = WatchEvent> = (E & { readonly resourceVersion: string }) | ErrorEvent;

/** Options of a watch of a hub in this process. */
export interface HubWatchOptions<E extends WatchEvent = WatchEvent> {
  /** Begin right after this version; default: with the next event. */
  readonly after?: string | undefined;
  /** Only events that have one of these topics; see `topicsOf`. */
  readonly topics?: readonly string[] | undefined;
  /** Only events that it accepts. If it throws, the watch fails with that error. */
  readonly filter?: ((event: E) => boolean) | undefined;
  /** How many events may wait in this watch before it goes back to what the hub keeps; at least 1, default that of the hub. */
  readonly capacity?: number | undefined;
  /** Stops the watch when it aborts. */
  readonly signal?: AbortSignal | undefined;
}

const OPTIONS = ['after', 'topics', 'filter', 'capacity', 'signal'] as const;

export function watchHub<E extends WatchEvent>(core: HubCore, options: HubWatchOptions<E>): Watch<HubEvent<E>> {
  const { after, topics, filter, capacity, signal } = checkOptions(options, OPTIONS);
  if (after !== undefined && (typeof after !== 'string' || after === '')) throw invalid('after', after, 'a version of a hub');
  if (topics !== undefined && !core.hasTopics) throw invalid('topics', topics, 'none, because the hub has no topicsOf');
  if (capacity !== undefined) wholeNumber('capacity', capacity, 1);
  callable('filter', filter);
  if (core.lifetime.closing) throw new WatchError('CLOSED', 'watch: the hub is shut down');
  signal?.throwIfAborted();
  const own = { topics: topics && toTopicSet(topics), capacity };
  const reader = new HubReader(core, { after, ...own, filter: filter as HubWatchOptions['filter'] });
  const watch = new PullWatch<WatchEvent>({
    pull: () => reader.next(),
    poll: () => reader.poll(),
    cancel: () => reader.cancel(),
  });
  if (signal !== undefined) {
    const leave = whenAborted(signal, () => watch.stop());
    reader.gone.signal.addEventListener('abort', leave, { once: true });
  }
  return watch as unknown as Watch<HubEvent<E>>;
}

/**
 * Reads a hub at a consumer's pace: from the live events as long as it keeps up, otherwise from what the hub keeps, otherwise from
 * the hub's source. Whatever it reads from, `version` is that of the last event it looked at.
 *
 *     live --more than capacity behind--> find version: kept here --> live again
 *      ^                                      |-- in the source --> a page, then find again
 *      '--------------------------------------'-- nowhere --> ERROR 410, the end
 */
class HubReader {
  readonly gone: AbortController = new AbortController();
  private readonly core: HubCore;
  private readonly options: HubWatchOptions;
  private version: string | undefined;
  private live: ReadableWatch<Envelope> | undefined = undefined;
  private page: Envelope[] = [];
  /** The version at the end of the page, which may be that of an event this consumer does not get. */
  private pageEnd: string | undefined = undefined;
  private over: boolean = false;
  /** Why it cannot continue. */
  private lost: string | undefined = undefined;

  constructor(core: HubCore, options: HubWatchOptions) {
    this.core = core;
    core.readers.add(this);
    this.options = options;
    this.version = options.after;
    if (this.find() || this.version !== undefined) return;
    // It begins where the hub is when it becomes ready, not where it is at the first read.
    void core.source?.follower.until(() => this.version !== undefined || this.find(), this.gone.signal);
  }

  /** What follows does not continue what has been read. */
  lose(why: string): void {
    // Without a version it has read nothing yet, and can begin anywhere.
    if (this.version === undefined) return;
    this.lost ??= why;
    const { live } = this;
    this.live = undefined;
    this.page = [];
    this.pageEnd = undefined;
    void live?.return();
  }

  /** Returns an event that is available without waiting. */
  poll(): WatchEvent | undefined {
    for (;;) {
      const envelope = this.page.shift() ?? this.live?.tryNext();
      if (envelope === undefined) break;
      const event = this.look(envelope);
      if (event !== undefined) return event;
    }
    this.version = this.pageEnd ?? this.version;
    this.pageEnd = undefined;
    return undefined;
  }

  async next(): Promise<IteratorResult<WatchEvent, undefined>> {
    while (!this.over) {
      const event = this.poll();
      if (event !== undefined) return { done: false, value: event };
      if (this.lost !== undefined) return { done: false, value: this.end(this.lost) };
      if (this.live === undefined && !this.find()) {
        const lost = await this.readOn();
        if (lost !== undefined) return { done: false, value: lost };
        continue;
      }
      const result = await (this.live as ReadableWatch<Envelope>).next();
      if (result.done === true) {
        if (this.lost !== undefined) continue;
        break;
      }
      const seen = this.look(result.value);
      if (seen !== undefined) return { done: false, value: seen };
    }
    return { done: true, value: undefined };
  }

  cancel(): void {
    this.over = true;
    this.page = [];
    this.core.readers.delete(this);
    this.gone.abort();
    void this.live?.return();
  }

  /** Moves to the live events, if all that follow are kept here. */
  private find(): boolean {
    const { core } = this;
    if (this.live !== undefined) return true;
    if (this.lost !== undefined || core.lifetime.closing || core.source?.follower.ready === false) return false;
    this.version ??= core.version;
    const { topics, capacity } = this.options;
    this.live = core.watchAfter(this.version, { topics, capacity, overflow: 'disconnect' });
    return this.live !== undefined;
  }

  /** Returns what the consumer gets for an event, if anything. */
  private look(envelope: Envelope): WatchEvent | undefined {
    // Not an event of the hub, but the ERROR of a watch that has fallen behind.
    if (!(envelope instanceof Envelope)) {
      // The event it read last may no longer be kept, although all unread ones are: events of other topics lie between them.
      this.version = this.core.versionOf(this.live?.position) ?? this.version;
      this.live = undefined;
      return undefined;
    }
    this.version = envelope.version;
    const { type, object } = envelope;
    const { filter } = this.options;
    if (filter && !verdictOf('filter', filter(envelope))) return undefined;
    return { type, object, resourceVersion: envelope.version } as WatchEvent;
  }

  /** Reads a page from the source. Returns the ERROR that ends this watch, if there is nothing to continue with. */
  private async readOn(): Promise<ErrorEvent | undefined> {
    const { core, version } = this;
    if (core.lifetime.closing) return this.readRest();
    let found: CatchUpStart | undefined;
    try {
      found = await core.locate({ resourceVersion: version }, this.gone.signal);
    } catch {
      // The source cannot be reached now.
      await core.pause(this.gone.signal);
      return undefined;
    }
    if (found !== undefined && !this.over) {
      this.take(found);
      return undefined;
    }
    if (core.lifetime.closing || this.over || this.lost !== undefined || this.find()) return undefined;
    return this.end(notKept(version));
  }

  /** The hub shuts down. Without a source, its stream ends: the events it keeps are read, and missing ones are reported. */
  private async readRest(): Promise<ErrorEvent | undefined> {
    const { core, version, options } = this;
    const rest = core.source || version === undefined ? [] : await core.rest(version, options.topics);
    if (this.over) return undefined;
    if (rest === undefined) return this.end(notKept(version));
    this.page = [...rest];
    this.over = rest.length === 0;
    return undefined;
  }

  private end(why: string): ErrorEvent {
    this.cancel();
    return { type: 'ERROR', object: toExpired(`${why}; watch again from a fresh state`) };
  }

  private take({ page }: CatchUpStart): void {
    const { topics: own } = this.options;
    for (const { position, envelope, topics } of page) {
      this.pageEnd = toSourceVersion(position);
      if (envelope !== undefined && (!own || concerns(topics, own))) this.page.push(envelope);
    }
  }
}

function notKept(version: string | undefined): string {
  return `the events after version ${version} are not kept`;
}
