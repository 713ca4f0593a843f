import type { Broadcaster } from '../broadcast/broadcaster.ts';
import { WatchError } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import { Envelope } from './envelope.ts';
import { toVersion } from './protocol.ts';
import type { Turn } from './turn.ts';

/** What a publisher goes by. */
export interface PublisherOptions {
  readonly broadcaster: Broadcaster<Envelope>;
  readonly epoch: string;
  /** Of a client's queue. */
  readonly capacity: number;
  readonly maxPending: number;
  readonly nextTurn: Turn;
  /** Writes to every client what is there for it. */
  readonly flush: () => void;
}

/**
 * Where events come in. They are numbered and encoded here, one at a time, and take no number that they are not published with.
 *
 *     publish --> envelope n+1 --> broadcaster
 *                    half a queue since the last flush? flush now : the bell sees to it
 *                    half a queue since the last pause? connections get a turn of the event loop
 *
 * So a burst of any length is no overflow to a client that reads.
 */
export class Publisher {
  /** Clients are flushed after so many events at the latest: half of the smallest queue. */
  private pace: number;
  /** Those of clients whose queue has a length of its own, and how many they are. */
  private readonly paces: Map<number, number> = new Map();
  private sequence: number = 0;
  private pending: number = 0;
  private unflushed: number = 0;
  private unyielded: number = 0;
  /** An event is being encoded, or looked at by filters: user code, that may publish in its turn. */
  private busy: boolean = false;
  private readonly options: PublisherOptions;

  constructor(options: PublisherOptions) {
    this.options = options;
    this.pace = paceOf(options.capacity);
  }

  async publish(event: WatchEvent, json: string | undefined): Promise<void> {
    // Where none may pend, it is not known before whether this one would.
    if (this.pending > 0) this.refuseOverload();
    // From inside of a filter or a toJSON: the event that is being published has its place before this one.
    while (this.busy) await this.turn();
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

  /** A client has a queue of this length. The function that comes back is for when it has gone. */
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

  /** Every client has been flushed. */
  flushed(): void {
    this.unflushed = 0;
  }

  private envelop(event: WatchEvent, json: string | undefined): Envelope {
    const sequence = this.sequence + 1;
    this.busy = true;
    try {
      return new Envelope(event, { sequence, version: toVersion(this.options.epoch, sequence), json });
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
    if (++this.unflushed >= this.pace) this.options.flush();
    return true;
  }

  /** It has its number, and stands in line. */
  private async wait(envelope: Envelope): Promise<void> {
    this.sequence = envelope.sequence;
    this.pending++;
    try {
      await this.line(envelope);
    } finally {
      this.pending--;
    }
  }

  /** Those who waited may have been accepted and not been told yet: then filters are asked about this one now. */
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
    if (this.pending >= limit) throw new WatchError('OVERLOADED', `publish: ${limit} publishes pend already`, { limit });
  }

  private turn(): Promise<void> {
    return new Promise((resolve) => this.options.nextTurn(resolve));
  }
}

function paceOf(capacity: number): number {
  return Math.min(1_024, Math.max(1, capacity >> 1));
}
