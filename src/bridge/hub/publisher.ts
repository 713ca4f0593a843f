import { WatchError } from '../../watch/errors.ts';
import type { WatchEvent } from '../../watch/event.ts';
import { checkSize, Envelope, type Keeper } from '../events/envelope.ts';
import { toVersion } from '../protocol.ts';
import type { HubLog } from './hub-log.ts';
import type { HubSettings } from './hub-options.ts';
import type { HubParts, HubSessions } from './sessions.ts';

/**
 * Accepts events: numbers and encodes them, one at a time. An event that is not published uses no number. An event that clients
 * would refuse is refused here: it would end each of them, again and again.
 *
 *     publish --> envelope n+1 --> broadcaster
 *                    half of a client's queue since the last flush? flush now : the flush signal will
 *                    half a queue since the last pause? connections get a turn of the event loop
 *                    did it wait for room? then the next that waits follows only now
 *
 * So a burst of any length does not overflow the queue of a client that reads.
 */
export class Publisher implements Keeper {
  /** Events that were refused, because they are too long for clients. */
  oversize: number = 0;
  private pending: number = 0;
  private unyielded: number = 0;
  private unyieldedBytes: number = 0;
  /** Set while an event is encoded or filtered. That runs user code, which may publish itself. */
  private busy: boolean = false;
  private readonly settings: HubSettings<WatchEvent>;
  private readonly log: HubLog;
  private readonly sessions: HubSessions;

  constructor({ settings, log }: HubParts, sessions: HubSessions) {
    this.settings = settings;
    this.log = log;
    this.sessions = sessions;
  }

  /** `version` is the event's own, if it already has one from another stream. */
  async publish(event: WatchEvent, json: string | undefined, version?: string): Promise<void> {
    // Unless others wait already, it is not known yet whether this publish has to.
    if (this.pending > 0) this.refuseOverload();
    // Called from inside a filter or a toJSON: the event being published comes before this one.
    if (this.busy) await this.turn();
    const envelope = this.toEnvelope(event, json, version);
    const waits = this.pending > 0 || !this.accepts(envelope);
    if (waits) {
      this.refuseOverload();
      await this.wait(envelope);
    }
    this.unyieldedBytes += envelope.bytes.length;
    if (++this.unyielded >= this.sessions.pace.value || this.unyieldedBytes >= this.sessions.bytePace.value) {
      this.unyielded = this.unyieldedBytes = 0;
      await this.turn();
    }
    if (waits) this.log.acceptNext();
  }

  tryPublish(event: WatchEvent, json: string | undefined): boolean {
    if (this.pending > 0 || this.busy) return false;
    return this.accepts(this.toEnvelope(event, json));
  }

  /** An event that is kept holds more bytes than when it was published. */
  grew(envelope: Envelope, bytes: number): void {
    this.log.grew(envelope, bytes);
    this.sessions.backlog.grow(bytes);
  }

  /** Counts and refuses an event whose text is too long. */
  checkSize(bytes: number): void {
    try {
      checkSize('the event', bytes, this.settings.maxEventBytes);
    } catch (error) {
      this.oversize++;
      throw error;
    }
  }

  private toEnvelope(event: WatchEvent, json: string | undefined, version?: string): Envelope {
    const sequence = this.log.nextSequence;
    const { epoch, snapshot } = this.settings;
    this.busy = true;
    try {
      const envelope = new Envelope(event, {
        sequence,
        version: version ?? toVersion(epoch(), sequence),
        json,
        reportsDeletion: snapshot !== undefined,
        keeper: this,
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
      if (!this.log.broadcaster.tryPublish(envelope)) return false;
    } finally {
      this.busy = false;
    }
    this.distributed(envelope);
    return true;
  }

  private distributed(envelope: Envelope): void {
    this.log.distributed();
    this.sessions.distributed(envelope.bytes.length);
  }

  /** Waits for room. The event has its number already. */
  private async wait(envelope: Envelope): Promise<void> {
    this.pending++;
    try {
      await this.publishLater(envelope);
      this.distributed(envelope);
    } finally {
      this.pending--;
    }
  }

  /** Waiting publishes may have been accepted without having resolved yet. Filters are then asked about this event now. */
  private publishLater(envelope: Envelope): Promise<void> {
    this.busy = true;
    try {
      return this.log.broadcaster.publish(envelope);
    } finally {
      this.busy = false;
    }
  }

  private refuseOverload(): void {
    const { maxPending: limit } = this.settings;
    if (this.pending >= limit)
      throw new WatchError('OVERLOADED', `publish: ${limit} publishes are already pending (maxPending)`, { limit });
  }

  private turn(): Promise<void> {
    return new Promise((resolve) => this.settings.nextTurn(resolve));
  }
}
