import type { Envelope } from './envelope.ts';

/**
 * The most recent events, for clients that reconnect; limited in number and in bytes.
 *
 *     gone | e.18 e.19 e.20 |
 *            ^first         ^head = 20       after 17: all three; after 20: none, and nothing is missed; after 16: too late
 *
 * The window returns all events between a version and the head, or reports that it does not have them. It never returns a part.
 */
export class ReplayWindow {
  /** The sequence of the last event; 0 before the first. */
  head: number = 0;
  private envelopes: Envelope[] = [];
  private dead: number = 0;
  private bytes: number = 0;
  private readonly maxItems: number;
  private readonly maxBytes: number;

  constructor(limits: { items: number; bytes: number }) {
    this.maxItems = limits.items;
    this.maxBytes = limits.bytes;
  }

  push(envelope: Envelope): void {
    // Some events were not seen here, so those before them are of no use.
    if (envelope.sequence !== this.head + 1) this.clear();
    this.head = envelope.sequence;
    this.envelopes.push(envelope);
    this.bytes += envelope.bytes.length;
    while (this.size > this.maxItems || this.bytes > this.maxBytes) this.shift();
  }

  /** Returns the events after a sequence, in a new array; undefined if they are no longer known, or not known yet. */
  since(sequence: number): Envelope[] | undefined {
    const missed = this.head - sequence;
    return missed >= 0 && missed <= this.size ? this.last(missed) : undefined;
  }

  /** Returns the last `count` events, or fewer. */
  last(count: number): Envelope[] {
    return this.envelopes.slice(Math.max(this.dead, this.envelopes.length - count));
  }

  private get size(): number {
    return this.envelopes.length - this.dead;
  }

  private shift(): void {
    this.bytes -= (this.envelopes[this.dead] as Envelope).bytes.length;
    (this.envelopes as (Envelope | undefined)[])[this.dead++] = undefined;
    // At most half of the array is dead: O(1) per event, amortized.
    if (this.dead * 2 <= this.envelopes.length) return;
    this.envelopes = this.envelopes.slice(this.dead);
    this.dead = 0;
  }

  private clear(): void {
    this.envelopes = [];
    this.dead = this.bytes = 0;
  }
}
