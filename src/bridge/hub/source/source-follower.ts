import { isTooDeep } from '../../../decode/codec.ts';
import { whenAborted } from '../../../watch/abort.ts';
import { Backoff } from '../../../watch/backoff.ts';
import { bisect } from '../../../watch/bisect.ts';
import { invalid, isWatchError, tried } from '../../../watch/errors.ts';
import type { WatchEvent } from '../../../watch/event.ts';
import { HubLog, type Lifetime } from '../hub-log.ts';
import type { HubSettings } from '../hub-options.ts';
import type { Publisher } from '../publisher.ts';
import type { HubParts, HubSessions } from '../sessions.ts';
import {
  type Following,
  type HubSource,
  type SourceEvent,
  type SourcePosition,
  type SourceStats,
  toPosition,
  toSourceVersion,
} from './source.ts';

/**
 * The place of the first event that a hub with a source distributes. Earlier events get places, too, when a client catches up
 * from the source: such a place must not be 0, which means no place. To V8, all are small integers.
 */
const FIRST_PLACE = 2 ** 28;

const BEFORE_ALL: SourcePosition = { epoch: 'none', sequence: 0, mark: '0' };

/**
 * The events of a hub with a source. Places count the events in this process; versions are those of the stream. Both grow together,
 * but not in step: an entry of the stream that is not an event has a version and no place. So the place of a version is looked up
 * among the events that are kept.
 *
 *     stream     41  42  43  44  45          43 is not an event
 *     place       6   7       8   9          after version 43: not found here, so the source is asked
 */
export class SourceLog extends HubLog {
  /** The position, and the topics, of the event that is being published. They come from the stream. */
  next: SourcePosition = BEFORE_ALL;
  topics: readonly string[] = [];
  /** How often it has started at a position that does not continue what was before. */
  restarts: number = 0;
  private position: SourcePosition = BEFORE_ALL;
  private last: string = toSourceVersion(this.position);
  /** Anything before it belongs to another stream. */
  private floor: number = FIRST_PLACE;

  constructor(settings: HubSettings<WatchEvent>, lifetime: Lifetime) {
    super(settings, lifetime);
    this.mux.begin(FIRST_PLACE);
  }

  /** Continues at a position of another stream: nothing from before is known any longer. */
  restart(position: SourcePosition): void {
    this.restarts++;
    this.floor = this.head;
    this.reach(position);
  }

  /** The last event is at this position. */
  reach(position: SourcePosition): void {
    this.position = position;
    this.last = toSourceVersion(position);
  }

  override distributed(): void {
    this.reach(this.next);
  }

  override get accepted(): number {
    return this.head - FIRST_PLACE;
  }

  /** Its stream, and its position there. */
  get epoch(): string {
    return this.position.epoch;
  }

  get sequence(): number {
    return this.position.sequence;
  }

  override get oldest(): number {
    return Math.max(this.floor, super.oldest);
  }

  override get version(): string {
    return this.last;
  }

  override versionOf(place: number): string | undefined {
    if (place === this.head) return this.last;
    return place > this.oldest ? this.mux.log.at(place - 1).version : undefined;
  }

  override placeOf(version: string): number | undefined {
    if (version === this.last) return this.head;
    const sequence = sequenceOf(version);
    const place = bisect(this.oldest, this.head, (at) => sequenceOf(this.versionOf(at)) < sequence);
    // The same sequence is not enough: after a loss, it may be another event.
    return this.versionOf(place) === version ? place : undefined;
  }

  /** Returns a place for an event of the stream that is not kept here, at most that of any later event. */
  placeBefore(sequence: number): number {
    return this.head - (this.position.sequence - sequence);
  }

  protected override topicsOf(): readonly string[] {
    return this.topics;
  }
}

function sequenceOf(version: string = ''): number {
  return toPosition(version)?.sequence ?? 0;
}

/** What the parts of a hub with a source have in common. */
export interface SourceParts extends HubParts {
  readonly source: HubSource;
  readonly log: SourceLog;
  readonly publisher: Publisher;
  readonly sessions: HubSessions;
  /** The stream cannot be continued. Everybody must be notified, in this synchronous step. */
  readonly onReset: () => void;
}

const BACKOFF = { minMs: 50, maxMs: 2_000, factor: 2 } as const;
/**
 * How long nothing may arrive before the end is reached: the last event may have been removed in the meantime, and will never
 * come. Doubles.
 */
const QUIET_MS = 5_000;
const MAX_QUIET_MS = 80_000;

/**
 * Brings the events of a source into a hub, in order and without a gap, for as long as the hub lives.
 *
 *     waiting --follow--> caught up with the end? --> following --connection lost--> reconnecting --follow after position--.
 *        ^                                               ^                               |                                 |
 *        |                                               '-------------------------------+---- it continues exactly there -'
 *        '---- reset: everybody gets 410, nothing is known <-----------------------------'---- it does not; a sequence is skipped
 *
 * Invariant: `position` is the last event that was distributed, or undefined before the first and after a reset. So each event comes
 * right after the one before it, or after a reset.
 */
export class SourceFollower {
  /** This hub's position in the stream. */
  position: SourcePosition | undefined = undefined;
  /** The end of the stream was reached since the last reset, so clients can begin. */
  ready: boolean = false;
  private resets: number = 0;
  private skipped: number = 0;
  private error: unknown = undefined;
  private connected: boolean = false;
  private stopped: boolean = false;
  /** The stream must be asked again: the current request came too early. */
  private isAskedAgain: boolean = false;
  private attempt: AbortController = new AbortController();
  private wake: (() => void) | undefined = undefined;
  private quietMs: number = QUIET_MS;
  private readonly backoff: Backoff;
  private readonly checks: Set<() => void> = new Set();
  private readonly parts: SourceParts;

  constructor(parts: SourceParts) {
    this.parts = parts;
    this.backoff = new Backoff({ ...BACKOFF, random: parts.settings.random });
    void this.run();
  }

  stats(): SourceStats {
    const { resets, skipped, error } = this;
    const working = this.connected ? 'following' : 'reconnecting';
    const phase = this.stopped ? 'stopped' : this.ready ? working : 'waiting';
    return { phase, resets, skipped, ...(error !== undefined && { error }) };
  }

  /** Ends everything. Nothing is pending afterwards, unless the source does not let go. */
  stop(): void {
    this.stopped = true;
    this.attempt.abort();
    this.wake?.();
    this.changed();
  }

  /**
   * Asks the source again whether it is still the same stream. The current request is not broken off, or it would never be
   * answered.
   */
  renew(): void {
    if (this.connected) this.attempt.abort();
    this.isAskedAgain = true;
    this.wake?.();
  }

  /** Resolves to true once a condition holds; to false if `gone` aborts, or the hub ends, before that. */
  until(condition: () => boolean, gone: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      let leave = (): void => {};
      const check = (): void => {
        const holds = !gone.aborted && !this.stopped && condition();
        if (!holds && !gone.aborted && !this.stopped) return;
        this.checks.delete(check);
        leave();
        resolve(holds);
      };
      this.checks.add(check);
      leave = whenAborted(gone, check);
      check();
    });
  }

  private changed(): void {
    for (const check of [...this.checks]) check();
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      this.attempt = new AbortController();
      this.isAskedAgain = false;
      let expired = false;
      try {
        expired = !(await this.follow(this.attempt.signal));
      } catch (error) {
        if (!this.attempt.signal.aborted) {
          this.error = error;
          this.parts.tally.failed(error, 'source');
        }
      }
      this.connected = false;
      this.attempt.abort();
      if (this.stopped) return;
      await this.pause(this.backoff.failed({ expired, curable: expired }));
    }
  }

  /** Resolves to false if the stream cannot be continued where this hub is. */
  private async follow(signal: AbortSignal): Promise<boolean> {
    const { source, log, settings } = this.parts;
    const following = await source.follow(this.position ?? { last: settings.replayItems }, signal);
    if (signal.aborted) return true;
    if (following === undefined) {
      this.reset();
      return false;
    }
    if (this.isAskedAgain) return true; // asked for after this request
    if (this.position === undefined) {
      this.position = following.position;
      log.restart(following.position);
    }
    this.connected = true;
    this.error = undefined;
    this.parts.tally.sourceWorks();
    this.reached(following);
    let cancel = this.askAgainLater();
    try {
      for await (const batch of following.batches) {
        cancel();
        this.quietMs = QUIET_MS;
        for (const event of batch) {
          if (signal.aborted) return true;
          if (event.sequence !== this.position.sequence + 1) this.skipTo(event.sequence, following.position.epoch);
          await this.take(event, following.position.epoch);
        }
        this.backoff.healthy();
        this.reached(following);
        cancel = this.askAgainLater();
      }
    } finally {
      cancel();
    }
    return true;
  }

  /**
   * Clients wait until the end is reached. If nothing arrives, asks again where the end is; less and less often, as a source
   * may be slow.
   */
  private askAgainLater(): () => void {
    if (this.ready) return () => {};
    return this.parts.settings.clock.schedule(this.quietMs, () => {
      this.quietMs = Math.min(2 * this.quietMs, MAX_QUIET_MS);
      this.renew();
    });
  }

  private reached({ last }: Following): void {
    if (this.position !== undefined && this.position.sequence >= last) this.ready = true;
    this.changed();
  }

  private async take({ sequence, mark, json, topics }: SourceEvent, epoch: string): Promise<void> {
    const { log, publisher } = this.parts;
    const position = { epoch, sequence, mark };
    const version = checkedVersion(position);
    const event = parse(json);
    this.position = position;
    if (event === undefined) {
      this.skip(position);
      return;
    }
    log.next = position;
    log.topics = topics;
    try {
      await publisher.publish(event, json, version);
    } catch (error) {
      // It would end each client that gets it. Its publisher was not refused, because it came from elsewhere.
      if (!isWatchError(error, 'FRAME_TOO_LARGE')) throw error;
      this.error = error;
      this.skip(position);
    }
  }

  private skip(position: SourcePosition): void {
    this.skipped++;
    this.parts.log.reach(position);
  }

  /** An event is missing before this one. A client that has not seen it cannot continue; this hub starts over after the gap. */
  private skipTo(sequence: number, epoch: string): void {
    this.reset();
    this.position = { epoch, sequence: sequence - 1, mark: 'unknown' };
    this.parts.log.restart(this.position);
  }

  private reset(): void {
    this.ready = false;
    if (this.position === undefined) return; // nobody was told anything yet
    this.resets++;
    this.position = undefined;
    this.parts.onReset();
  }

  private pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.parts.settings.clock.schedule(delayMs, () => this.wake?.());
      this.wake = () => {
        cancel();
        this.wake = undefined;
        resolve();
      };
    });
  }
}

/**
 * Returns the version of a position. Throws INVALID_ARGUMENT for one that clients could not send back without getting a 400.
 */
function checkedVersion(position: SourcePosition): string {
  const version = toSourceVersion(position);
  if (toPosition(version) !== undefined) return version;
  throw invalid('the position of the source', version, 'an epoch and a mark as `SourcePosition` describes them');
}

/** Returns the event of a JSON text. Others may also write to a stream: undefined for anything but an event. */
export function parse(json: string): WatchEvent | undefined {
  if (isTooDeep(json)) return undefined;
  const event = tried(() => JSON.parse(json) as WatchEvent | null);
  const isEvent = typeof event?.type === 'string' && event.type !== '' && 'object' in event && json.trimStart().startsWith('{');
  return isEvent ? event : undefined;
}
