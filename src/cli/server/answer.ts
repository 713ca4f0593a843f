/** An answer is served again for at least this time. */
export const MIN_AGE_MS = 10;
/** An answer is never older than this. */
export const MAX_AGE_MS = 250;
/** Making an answer takes at most this part of the time. */
const SHARE = 1 / 20;

/**
 * The body of an answer that takes time in proportion to the number of clients. It is made once per interval, and requests in
 * between get the same bytes. So no number of requests costs more than a small part of the processor, and while there are few
 * clients the numbers are current.
 */
export class Answer {
  private readonly make: () => string;
  private readonly now: () => number;
  private made: { readonly body: Uint8Array; readonly untilMs: number } | undefined = undefined;

  constructor(make: () => string, now: () => number = () => performance.now()) {
    this.make = make;
    this.now = now;
  }

  get body(): Uint8Array {
    const startMs = this.now();
    if (this.made !== undefined && startMs < this.made.untilMs) return this.made.body;
    const body = Buffer.from(this.make());
    const endMs = this.now();
    const ageMs = Math.min(MAX_AGE_MS, Math.max(MIN_AGE_MS, (endMs - startMs) / SHARE));
    this.made = { body, untilMs: endMs + ageMs };
    return body;
  }
}
