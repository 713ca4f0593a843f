import type { Envelope } from './envelope.ts';

/**
 * The last events, for those who come back: at most so many, and at most so many bytes.
 *
 *     gone | e.18 e.19 e.20 |
 *            ^first         ^head = 20       after 17: all three; after 20: none, and nothing is missed; after 16: too late
 *
 * What lies between a version and the head is either here as a whole, or the answer is that it is not.
 */
export class ReplayWindow {
  /** The place of the last event; 0 before the first. */
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
    // Some passed by unseen: what is from before them is of no use to anybody.
    if (envelope.sequence !== this.head + 1) this.clear();
    this.head = envelope.sequence;
    this.envelopes.push(envelope);
    this.bytes += envelope.bytes.length;
    while (this.size > this.maxItems || this.bytes > this.maxBytes) this.shift();
  }

  /** What came after a place, in an array of the caller's own; undefined if that is not known any more, or not yet. */
  since(sequence: number): Envelope[] | undefined {
    const missed = this.head - sequence;
    return missed >= 0 && missed <= this.size ? this.last(missed) : undefined;
  }

  /** The last so many events, or fewer. */
  last(count: number): Envelope[] {
    return this.envelopes.slice(Math.max(this.dead, this.envelopes.length - count));
  }

  private get size(): number {
    return this.envelopes.length - this.dead;
  }

  private shift(): void {
    this.bytes -= (this.envelopes[this.dead] as Envelope).bytes.length;
    (this.envelopes as (Envelope | undefined)[])[this.dead++] = undefined;
    // The dead are never more than the living: O(1) for each event, amortized.
    if (this.dead * 2 <= this.envelopes.length) return;
    this.envelopes = this.envelopes.slice(this.dead);
    this.dead = 0;
  }

  private clear(): void {
    this.envelopes = [];
    this.dead = this.bytes = 0;
  }
}
