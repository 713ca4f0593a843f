// The obviously right work queue: arrays, searched from end to end. No promise, no heap, no timer.

/** A key in the line. */
interface Queued {
  readonly key: string;
  readonly priority: number;
  readonly sinceMs: number;
}

/** A key in work. `again` is the priority of the run that is owed when it is done. */
interface Hand {
  readonly key: string;
  readonly priority: number;
  again: number | undefined;
}

export class QueueModel {
  nowMs: number = 0;
  ending: boolean = false;
  queued: Queued[] = [];
  delays: { readonly key: string; readonly dueAtMs: number; readonly priority: number }[] = [];
  hands: Hand[] = [];
  readonly failures: Map<string, number> = new Map();
  /** How many reads wait, and what reads have got, in their order. */
  waiting: number = 0;
  readonly got: (string | undefined)[] = [];
  private readonly agingMs: number;

  constructor(agingMs: number) {
    this.agingMs = agingMs;
  }

  get isDrained(): boolean {
    return this.ending && this.queued.length === 0 && this.hands.length === 0;
  }

  add(key: string, priority: number): void {
    if (this.ending) return;
    const hand = this.hands.find((each) => each.key === key);
    const at = this.queued.findIndex((each) => each.key === key);
    if (hand) hand.again = Math.max(hand.again ?? priority, priority);
    else if (at < 0) this.queued.push({ key, priority, sinceMs: this.nowMs });
    else this.queued[at] = { ...(this.queued[at] as Queued), priority: Math.max((this.queued[at] as Queued).priority, priority) };
    this.serve();
  }

  addAfter(key: string, delayMs: number, priority: number): void {
    if (this.ending) return;
    if (delayMs <= 0) {
      this.add(key, priority);
      return;
    }
    const before = this.delays.find((each) => each.key === key);
    const dueAtMs = this.nowMs + delayMs;
    if (before && before.dueAtMs <= dueAtMs) {
      const raised = { ...before, priority: Math.max(before.priority, priority) };
      this.delays = this.delays.map((each) => (each === before ? raised : each));
      return;
    }
    const moved = { key, dueAtMs, priority: Math.max(before?.priority ?? priority, priority) };
    this.delays = before ? this.delays.map((each) => (each === before ? moved : each)) : [...this.delays, moved];
  }

  /** Exponential from 1 ms, as the rate limiter of the real queue. */
  addRateLimited(key: string): void {
    if (this.ending) return;
    const failures = this.failures.get(key) ?? 0;
    this.failures.set(key, failures + 1);
    const hand = this.hands.find((each) => each.key === key);
    this.addAfter(key, 2 ** failures, hand?.again ?? hand?.priority ?? 0);
  }

  cancel(key: string): boolean {
    const found = this.delays.some((each) => each.key === key);
    this.delays = this.delays.filter((each) => each.key !== key);
    return found;
  }

  /** One millisecond after the other. */
  advance(ms: number): void {
    for (let i = 0; i < ms; i++) {
      this.nowMs++;
      const due = this.delays.filter(({ dueAtMs }) => dueAtMs <= this.nowMs);
      this.delays = this.delays.filter((each) => !due.includes(each));
      for (const { key, priority } of due) this.add(key, priority);
    }
  }

  get(): void {
    this.waiting++;
    this.serve();
  }

  done(key: string): void {
    const hand = this.hands.find((each) => each.key === key);
    if (!hand) return;
    this.hands = this.hands.filter((each) => each !== hand);
    if (hand.again !== undefined) this.queued.push({ key, priority: hand.again, sinceMs: this.nowMs });
    this.serve();
  }

  end(): void {
    this.ending = true;
    this.delays = [];
    this.serve();
  }

  private serve(): void {
    while (this.waiting > 0 && (this.queued.length > 0 || this.ending)) {
      this.waiting--;
      const next = this.next();
      this.queued = this.queued.filter((each) => each !== next);
      if (next) this.hands.push({ key: next.key, priority: next.priority, again: undefined });
      this.got.push(next?.key);
    }
  }

  /** The one with most levels: its own, and one for each `agingMs` that it waits. The first of equals. */
  private next(): Queued | undefined {
    const levels = ({ priority, sinceMs }: Queued): number => priority * this.agingMs + (this.nowMs - sinceMs);
    return this.queued.reduce<Queued | undefined>(
      (best, each) => (best && levels(best) >= levels(each) ? best : each),
      undefined,
    );
  }
}
