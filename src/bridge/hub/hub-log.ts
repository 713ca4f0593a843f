import type { BroadcastWatch } from '../../broadcast/broadcast-watch.ts';
import { Broadcaster, muxOf, type WatchOptions } from '../../broadcast/broadcaster.ts';
import { objectKey } from '../../broadcast/fold.ts';
import type { Mux } from '../../broadcast/mux.ts';
import { concerns, EVERY_TOPIC, type Routing } from '../../broadcast/topics.ts';
import type { View } from '../../broadcast/view.ts';
import { wholeNumber } from '../../watch/errors.ts';
import { type ErrorEvent, type Status, toStatus, type WatchEvent } from '../../watch/event.ts';
import type { Envelope } from '../events/envelope.ts';
import { type Ending, toVersion } from '../protocol.ts';
import type { ClientOptions, HubSettings } from './hub-options.ts';
import { invalidQuery, type ParsedQuery, readVersion } from './query.ts';
import type { CatchUpStart } from './source/source.ts';

/**
 * The events of a hub: a broadcaster that keeps its last ones.
 *
 *     publisher --> broadcaster --+--> watches of clients, the flush signal
 *                                 '--> its window --> what a client has missed
 *
 * The event with sequence n is the n-th of the broadcaster, so a sequence is a place in its log: a client that has seen n events
 * continues after place n. A caller that runs `start` and `watch` in one synchronous step gets missed and live events without a gap
 * or a repetition.
 */
export class HubLog {
  readonly broadcaster: Broadcaster<Envelope, ErrorEvent>;
  /** Whether clients may be limited to topics. */
  readonly hasTopics: boolean;
  protected readonly settings: HubSettings<WatchEvent>;
  protected readonly mux: Mux<Envelope>;

  constructor(settings: HubSettings<WatchEvent>, lifetime: Lifetime) {
    const { capacity, overflow, keyOf, topicsOf, maxPending, replayItems, replayBytes } = settings;
    this.settings = settings;
    this.hasTopics = topicsOf !== undefined;
    // With an incoming queue, an event could be accepted but not distributed. A new client would not see it.
    this.broadcaster = new Broadcaster<Envelope>({
      capacity,
      overflow,
      maxPending,
      incoming: 0,
      stalledMs: 0, // a client that takes nothing is cut
      keyOf: (event) => eventKey(event, keyOf),
      topicsOf: topicsOf && ((event) => (lifetime.isFailure(event) ? EVERY_TOPIC : this.topicsOf(event))),
      replay: replayItems,
      replayBytes,
      sizeOf: (event) => event.heldBytes,
    });
    this.mux = muxOf(this.broadcaster);
    this.mux.quota = 1;
  }

  /** Sequence of the last distributed event. */
  get head(): number {
    return this.mux.log.head;
  }

  /** Sequence of the next event that is accepted. Those that wait for room have theirs. */
  get nextSequence(): number {
    return this.mux.log.end + this.mux.pending + 1;
  }

  /** Accepts the next event that waits, as soon as there is room: called for each one, once clients have been able to read it. */
  acceptNext(): void {
    this.mux.quota = 1;
    this.mux.pump();
  }

  /** How many events have been distributed. */
  get accepted(): number {
    return this.head;
  }

  /** Called with each event that has been distributed, before clients are written to. */
  distributed(): void {}

  /** Watches all events from now on. */
  watch(options: WatchOptions<Envelope>): BroadcastWatch<Envelope> {
    return this.broadcaster.watch(options) as BroadcastWatch<Envelope>;
  }

  /** Watches all events after a place, which {@link placeOf} has returned in this synchronous step. */
  watchAfter(place: number, options: WatchOptions<Envelope>): BroadcastWatch<Envelope> {
    // A hub that keeps no events can still continue at its end.
    return this.watch(place === this.head ? options : { ...options, after: place });
  }

  /** An event holds this many bytes more than when it was published. They count if it is kept for clients that come back. */
  grew(envelope: Envelope, bytes: number): void {
    this.mux.grew(envelope.sequence - 1, bytes);
  }

  /** Calls back for each view that has got an event; see broadcast/view.ts. */
  whenVisible(callback: (view: View<Envelope>) => void): void {
    this.mux.whenVisible(callback);
  }

  /**
   * Returns where a client with this request starts. Without a version: with the snapshot, the last events, or live events. With a
   * version: right after it, or a Status of code 410 if any later event is missing, never with only some of them. Code 400 if
   * it asks for a snapshot and there is none.
   */
  start(asked: ParsedQuery, topics: readonly string[] | undefined): Start | Status {
    const { replay, snapshot } = this.settings;
    const { resourceVersion: version, sendInitialEvents, isBack = false } = asked;
    const beginsAnew = sendInitialEvents === true && !isBack;
    if (beginsAnew && snapshot === undefined)
      return invalidQuery('sendInitialEvents', 'true', 'false, because this server has no snapshot');
    if (version === undefined || beginsAnew) {
      if (snapshot !== undefined && sendInitialEvents !== false) return { ...FROM_NOW, snapshot: true };
      return { ...FROM_NOW, missed: this.since(Math.max(this.oldest, this.head - replay), topics) ?? [] };
    }
    const place = this.placeOf(version);
    const missed = place === undefined ? undefined : this.since(place, topics);
    if (missed !== undefined) return { ...FROM_NOW, missed, resumed: true };
    const message = `cannot resume after version ${version}: start over without a version`;
    return toStatus({ code: 410, reason: 'Expired', message });
  }

  /** Returns the events after a sequence, in a new array; undefined if not all of them are known. */
  since(sequence: number, topics?: readonly string[]): readonly Envelope[] | undefined {
    const { log } = this.mux;
    if (sequence < this.oldest || sequence > log.head) return undefined;
    const events: Envelope[] = [];
    for (let at = sequence; at < log.head; at++) {
      if (!topics || concerns((log.noteAt(at) as Routing).topics, topics)) events.push(log.at(at));
    }
    return events;
  }

  /** The sequence before the first event that is kept. */
  get oldest(): number {
    return this.mux.all.window?.start ?? this.head;
  }

  /** The version of the last distributed event. */
  get version(): string {
    return this.versionOf(this.head) as string;
  }

  /** Returns the version of a sequence; undefined if it is not known. */
  versionOf(sequence: number): string | undefined {
    return toVersion(this.settings.epoch(), sequence);
  }

  /** Returns the sequence of a version, if everything after it is known. */
  placeOf(version: string): number | undefined {
    const { epoch, sequence } = readVersion(version) ?? {};
    if (epoch !== this.settings.epoch() || sequence === undefined) return undefined;
    return sequence < this.oldest || sequence > this.head ? undefined : sequence;
  }

  /** The topics of an event that is being published. */
  protected topicsOf(event: Envelope): string | readonly string[] | undefined {
    return this.settings.topicsOf?.(event);
  }
}

/** Where a client starts: what it gets before live events. */
export interface Start {
  readonly missed: readonly Envelope[];
  /** It resumes after a version. */
  readonly resumed: boolean;
  readonly snapshot: boolean;
  /** It resumes before what the hub keeps, so it first catches up from the hub's source. */
  readonly catchUp?: CatchUpStart | undefined;
}

/** Starts with live events: no replay, no snapshot. */
export const FROM_NOW: Start = { missed: [], resumed: false, snapshot: false };

/**
 * Not a failure: the stream has ended, and the client has received everything. Over HTTP, a response without a body, after which
 * an EventSource stops reconnecting.
 */
export const COMPLETE: Status = toStatus({ code: 204, reason: 'Complete', message: 'the stream has ended' });

/** Returns the missed events that a client's filter accepts. If the filter throws, returns its error and no events. */
export function permitted(
  missed: readonly Envelope[],
  filter: ClientOptions['filter'],
): { readonly missed: readonly Envelope[]; readonly thrown?: { readonly error: unknown } } {
  if (filter === undefined) return { missed };
  try {
    // An event without a position is the server's own message to this client, such as an expired version.
    return { missed: missed.filter((envelope) => envelope.sequence === 0 || filter(envelope)) };
  } catch (error) {
    return { missed: [], thrown: { error } };
  }
}

/** Returns the key by which events fold. An event without a name folds with no other: its key is its position. */
function eventKey<E extends WatchEvent>(envelope: Envelope, keyOf: ((event: E) => string) | undefined): string {
  if (keyOf !== undefined) return keyOf(envelope as WatchEvent as E);
  const { metadata } = (envelope.object ?? {}) as { metadata?: { name?: unknown } | null };
  return typeof metadata?.name === 'string' ? objectKey(envelope) : `#${envelope.sequence}`;
}

/**
 * The lifetime of a hub, and how its clients learn of its end.
 *
 *     open --close--> closing --all distributed--> ended --last client gone--> gone
 *
 * There are two kinds of end. If the stream ends, the hub still serves the events that it keeps. If the server is going away
 * (`retryAfterMs`), new clients are refused, and should ask another server.
 */
export class Lifetime {
  /** Every event has been distributed, and no more will follow. */
  ended: boolean = false;
  /** The Status that tells clients about a failed source. It passes every filter. */
  failure: Status | undefined = undefined;
  private gone: Promise<void> | undefined = undefined;
  private retryAfterMs: number | undefined = undefined;
  /** Callbacks of clients that wait for admission and will be refused. */
  private readonly unsettled: Set<() => void> = new Set();
  private readonly random: () => number;

  constructor(random: () => number) {
    this.random = random;
  }

  /** No more events are accepted. */
  get closing(): boolean {
    return this.gone !== undefined;
  }

  /** No new client can be served: the last events are not distributed yet, or the server is going away. */
  get leaving(): boolean {
    return this.closing && (!this.ended || this.retryAfterMs !== undefined);
  }

  /** Whether this is the ERROR that tells every client about a failed source. */
  isFailure(event: WatchEvent): boolean {
    return this.failure !== undefined && event.object === this.failure;
  }

  /** Starts the end, once; the first call decides its kind. Resolves when `drain` has finished. */
  close(drain: () => Promise<void>, retryAfterMs: number | undefined): Promise<void> {
    if (this.gone === undefined) {
      if (retryAfterMs !== undefined) this.retryAfterMs = wholeNumber('retryAfterMs', retryAfterMs);
      this.gone = drain();
      for (const callback of this.unsettled) callback();
      this.unsettled.clear();
    }
    return this.gone;
  }

  /** Calls back when the hub starts to close. Returns a function that cancels this. */
  whenClosing(callback: () => void): () => void {
    this.unsettled.add(callback);
    return () => void this.unsettled.delete(callback);
  }

  /** Returns how streams end after their last event. When the server goes away, each client gets a random delay. */
  endOfStream(): { how: Ending; retryMs: number | undefined } {
    const { retryAfterMs } = this;
    if (retryAfterMs === undefined) return { how: 'complete', retryMs: undefined };
    return { how: 'goingAway', retryMs: Math.floor(this.random() * retryAfterMs) };
  }
}
