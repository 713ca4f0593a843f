import type { Broadcaster } from '../../broadcast/broadcaster.ts';
import { WatchError } from '../../watch/errors.ts';
import type { WatchEvent } from '../../watch/event.ts';
import type { Turn } from '../../watch/turn.ts';
import { toVersion } from '../protocol.ts';
import { checkSize, Envelope, type Keeper } from './envelope.ts';

/** Options of a {@link Publisher}. */
interface PublisherOptions {
  readonly broadcaster: Pick<Broadcaster<Envelope>, 'publish' | 'tryPublish'>;
  readonly epoch: string;
  /** The number of the last event; default 0. */
  readonly sequence?: number | undefined;
  /** The default queue length of a client. */
  readonly capacity: number;
  /** The default limit of the bytes in it. */
  readonly maxQueuedBytes: number;
  readonly maxPending: number;
  /** The longest event, in bytes of its text. */
  readonly maxEventBytes: number;
  /** Who keeps the events. */
  readonly keeper?: Keeper | undefined;
  /** Set if clients get snapshots, which can be ahead of the events. */
  readonly snapshot?: unknown;
  readonly nextTurn: Turn;
  /** Writes to every client what is available for it. */
  readonly flush: () => void;
  /** Gets the size of each event that has been distributed, and may then look for queues that hold too much. */
  readonly backlog: { grow(bytes: number): void; check(): void };
  /** Called with each event that has been distributed, before clients are written to. */
  readonly accepted?: ((envelope: Envelope) => void) | undefined;
  /** The most events that have come for one client since the last flush: clients may see the events of some topics only. */
  readonly most: () => number;
}

/** Even if queues hold more: a flush is soon after its events, and bursts leave connections their turns. */
const MOST_EVENTS = 1_024;
const MOST_BYTES = 4_194_304;

/**
 * Accepts events: numbers and encodes them, one at a time. An event that is not published uses no number. One that clients would
 * refuse is refused here, because it would end each of them, again and again.
 *
 *     publish --> envelope n+1 --> broadcaster
 *                    half of a client's queue since the last flush? flush now : the flush signal will
 *                    half a queue since the last pause? connections get a turn of the event loop
 *
 * So a burst of any length does not overflow the queue of a client that reads.
 */
export class Publisher {
  /** Clients are flushed at the latest after this many events, and after this many bytes. */
  readonly pace: Pace;
  readonly bytePace: Pace;
  /** Events that were refused, because they are too long for clients. */
  oversize: number = 0;
  private sequence: number;
  private pending: number = 0;
  private unflushed: number = 0;
  private unflushedBytes: number = 0;
  private unyielded: number = 0;
  private unyieldedBytes: number = 0;
  /** Set while an event is encoded or filtered. That runs user code, which may publish itself. */
  private busy: boolean = false;
  private readonly options: PublisherOptions;

  constructor(options: PublisherOptions) {
    this.options = options;
    this.sequence = options.sequence ?? 0;
    this.pace = new Pace(options.capacity, MOST_EVENTS);
    this.bytePace = new Pace(options.maxQueuedBytes, MOST_BYTES);
  }

  /** `version` is the event's, if it has one of another stream already. */
  async publish(event: WatchEvent, json: string | undefined, version?: string): Promise<void> {
    // If none may wait, it is not known yet whether this publish would.
    if (this.pending > 0) this.refuseOverload();
    // Called from inside a filter or a toJSON: the event being published comes before this one.
    if (this.busy) await this.turn();
    const envelope = this.toEnvelope(event, json, version);
    if (this.pending > 0 || !this.accepts(envelope)) {
      this.refuseOverload();
      await this.wait(envelope);
    }
    this.unyieldedBytes += envelope.bytes.length;
    if (++this.unyielded < this.pace.value && this.unyieldedBytes < this.bytePace.value) return;
    this.unyielded = this.unyieldedBytes = 0;
    await this.turn();
  }

  tryPublish(event: WatchEvent, json: string | undefined): boolean {
    if (this.pending > 0 || this.busy) return false;
    return this.accepts(this.toEnvelope(event, json));
  }

  /** Called when every client has been flushed. */
  flushed(): void {
    this.unflushed = this.unflushedBytes = 0;
  }

  /** Counts and refuses an event whose text is too long. */
  checkSize(bytes: number): void {
    try {
      checkSize('the event', bytes, this.options.maxEventBytes);
    } catch (error) {
      this.oversize++;
      throw error;
    }
  }

  private toEnvelope(event: WatchEvent, json: string | undefined, version?: string): Envelope {
    const sequence = this.sequence + 1;
    const { epoch, snapshot, keeper } = this.options;
    this.busy = true;
    try {
      const envelope = new Envelope(event, {
        sequence,
        version: version ?? toVersion(epoch, sequence),
        json,
        reportsDeletion: snapshot !== undefined,
        keeper,
      });
      this.checkSize(envelope.bytes.length);
      return envelope;
    } finally {
      this.busy = false;
    }
  }

  private accepts(envelope: Envelope): boolean {
    this.busy = true;
    try {
      if (!this.options.broadcaster.tryPublish(envelope)) return false;
    } finally {
      this.busy = false;
    }
    this.sequence = envelope.sequence;
    this.options.accepted?.(envelope);
    this.options.backlog.grow(envelope.bytes.length);
    this.unflushedBytes += envelope.bytes.length;
    const isHalf = ++this.unflushed >= this.pace.value && this.options.most() >= this.pace.value;
    if (isHalf || this.unflushedBytes >= this.bytePace.value) this.options.flush();
    return true;
  }

  /** Waits for room. The event has its number already. */
  private async wait(envelope: Envelope): Promise<void> {
    this.sequence = envelope.sequence;
    this.pending++;
    try {
      await this.publishLater(envelope);
      this.options.accepted?.(envelope);
      this.options.backlog.grow(envelope.bytes.length);
      this.options.backlog.check(); // the flush may have come before
    } finally {
      this.pending--;
    }
  }

  /** Waiting publishes may have been accepted without having resolved yet. Filters are then asked about this event now. */
  private publishLater(envelope: Envelope): Promise<void> {
    this.busy = true;
    try {
      return this.options.broadcaster.publish(envelope);
    } finally {
      this.busy = false;
    }
  }

  private refuseOverload(): void {
    const { maxPending: limit } = this.options;
    if (this.pending >= limit)
      throw new WatchError('OVERLOADED', `publish: ${limit} publishes are already pending (maxPending)`, { limit });
  }

  private turn(): Promise<void> {
    return new Promise((resolve) => this.options.nextTurn(resolve));
  }
}

/**
 * How much a publisher accepts before it writes to its clients, and gives their connections a turn: half of what the smallest
 * queue holds, so that a burst does not overflow it, and no more than `most`.
 */
class Pace {
  /** Events, or bytes. */
  value: number;
  private readonly most: number;
  /** The paces of clients with a limit of their own, and the number of clients with each. */
  private readonly own: Map<number, number> = new Map();
  private readonly common: number;

  /** `limit` is what the queue of a client without a limit of its own holds. */
  constructor(limit: number, most: number) {
    this.most = most;
    this.common = this.half(limit);
    this.value = this.common;
  }

  /** Takes a client's own limit into account. Returns a function to call when the client is gone. */
  include(limit: number): () => void {
    const pace = this.half(limit);
    this.count(pace, 1);
    return () => this.count(pace, -1);
  }

  private count(pace: number, by: number): void {
    const clients = (this.own.get(pace) ?? 0) + by;
    if (clients > 0) this.own.set(pace, clients);
    else this.own.delete(pace);
    this.value = Math.min(this.common, ...this.own.keys());
  }

  private half(limit: number): number {
    return Math.min(this.most, Math.max(1, Math.floor(limit / 2)));
  }
}
