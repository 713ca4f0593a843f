/**
 * How much a publisher accepts before it writes to its clients, and gives their connections a turn: half of what the smallest
 * queue holds, so that a burst does not overflow it, and no more than `most`.
 */
export class Pace {
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
