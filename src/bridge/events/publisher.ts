import type { Broadcaster } from '../../broadcast/broadcaster.ts';
import { WatchError } from '../../watch/errors.ts';
import type { WatchEvent } from '../../watch/event.ts';
import { toVersion } from '../protocol.ts';
import { Envelope } from './envelope.ts';
import type { Turn } from './turn.ts';

/** Options of a {@link Publisher}. */
export interface PublisherOptions {
  readonly broadcaster: Broadcaster<Envelope>;
  readonly epoch: string;
  /** The default queue length of a client. */
  readonly capacity: number;
  readonly maxPending: number;
  /** Set if clients get snapshots, which can be ahead of the events. */
  readonly snapshot?: unknown;
  readonly nextTurn: Turn;
  /** Writes to every client what is available for it. */
  readonly flush: () => void;
  /** The most events that have come for one client since the last flush: clients may see the events of some topics only. */
  readonly most: () => number;
}

/**
 * Accepts events: numbers and encodes them, one at a time. An event that is not published uses no number.
 *
 *     publish --> envelope n+1 --> broadcaster
 *                    half of a client's queue since the last flush? flush now : the bell will
 *                    half a queue since the last pause? connections get a turn of the event loop
 *
 * So a burst of any length does not overflow the queue of a client that reads.
 */
export class Publisher {
  /** Clients are flushed at the latest after this many events: half of the smallest queue. */
  private pace: number;
  /** The paces of clients with a queue length of their own, and the number of clients with each. */
  private readonly paces: Map<number, number> = new Map();
  private sequence: number = 0;
  private pending: number = 0;
  private unflushed: number = 0;
  private unyielded: number = 0;
  /** Set while an event is encoded or filtered. That runs user code, which may publish itself. */
  private busy: boolean = false;
  private readonly options: PublisherOptions;

  constructor(options: PublisherOptions) {
    this.options = options;
    this.pace = paceOf(options.capacity);
  }

  async publish(event: WatchEvent, json: string | undefined): Promise<void> {
    // If none may wait, it is not known yet whether this publish would.
    if (this.pending > 0) this.refuseOverload();
    // Called from inside a filter or a toJSON: the event being published comes before this one.
    if (this.busy) await this.turn();
    const envelope = this.envelop(event, json);
    if (this.pending > 0 || !this.accepts(envelope)) {
      this.refuseOverload();
      await this.wait(envelope);
    }
    if (++this.unyielded < this.pace) return;
    this.unyielded = 0;
    await this.turn();
  }

  tryPublish(event: WatchEvent, json: string | undefined): boolean {
    if (this.pending > 0 || this.busy) return false;
    return this.accepts(this.envelop(event, json));
  }

  /** Takes a client's own queue length into account. Returns a function to call when the client is gone. */
  heed(capacity: number): () => void {
    const pace = paceOf(capacity);
    const count = (by: number): void => {
      const clients = (this.paces.get(pace) ?? 0) + by;
      if (clients > 0) this.paces.set(pace, clients);
      else this.paces.delete(pace);
      this.pace = Math.min(paceOf(this.options.capacity), ...this.paces.keys());
    };
    count(1);
    return () => count(-1);
  }

  /** Called when every client has been flushed. */
  flushed(): void {
    this.unflushed = 0;
  }

  private envelop(event: WatchEvent, json: string | undefined): Envelope {
    const sequence = this.sequence + 1;
    const { epoch, snapshot } = this.options;
    this.busy = true;
    try {
      return new Envelope(event, {
        sequence,
        version: toVersion(epoch, sequence),
        json,
        reportsDeletion: snapshot !== undefined,
      });
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
    if (++this.unflushed >= this.pace && this.options.most() >= this.pace) this.options.flush();
    return true;
  }

  /** Waits for room. The event has its number already. */
  private async wait(envelope: Envelope): Promise<void> {
    this.sequence = envelope.sequence;
    this.pending++;
    try {
      await this.line(envelope);
    } finally {
      this.pending--;
    }
  }

  /** Waiting publishes may have been accepted without having been told yet. Filters are then asked about this event now. */
  private line(envelope: Envelope): Promise<void> {
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

function paceOf(capacity: number): number {
  return Math.min(1_024, Math.max(1, Math.floor(capacity / 2)));
}
