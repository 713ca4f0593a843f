import type { Histogram } from '../../bridge/hub/metrics.ts';
import type { QuotaReason } from '../quotas/place.ts';

/** In seconds: from an answer out of memory to the longest time that a request may take by default. */
const BOUNDS: readonly number[] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Durations by how long they were. */
class Durations implements Histogram {
  readonly bounds: readonly number[] = BOUNDS;
  readonly counts: number[] = [...BOUNDS, Number.POSITIVE_INFINITY].map(() => 0);
  sum: number = 0;

  add(seconds: number): void {
    const at = BOUNDS.findIndex((bound) => seconds <= bound);
    const index = at < 0 ? BOUNDS.length : at;
    this.counts[index] = (this.counts[index] ?? 0) + 1;
    this.sum += seconds;
  }
}

/** A server's counters. Each of them only grows, except `watchers`. */
export class ApiCounts {
  private readonly byCode: Map<string, number> = new Map();
  private readonly byVerb: Map<string, number> = new Map();
  private readonly durations: Map<string, Durations> = new Map();
  private readonly limitedBy: Map<string, number> = new Map();
  watchers: number = 0;
  watchersOpened: number = 0;
  watchersStalled: number = 0;
  /** Of streams that have ended, as are `sentBytes`. */
  events: number = 0;
  sentBytes: number = 0;

  answered(code: number, { verb = 'none', durationMs }: { verb?: string | undefined; durationMs: number }): void {
    this.byCode.set(`${code}`, (this.byCode.get(`${code}`) ?? 0) + 1);
    this.byVerb.set(verb, (this.byVerb.get(verb) ?? 0) + 1);
    const durations = this.durations.get(verb) ?? new Durations();
    this.durations.set(verb, durations);
    durations.add(Math.max(0, durationMs) / 1_000);
  }

  /**
   * A request was refused with 429 for its address, its tenant, or because all places are taken; or its connection was closed,
   * because earlier ones of it are unanswered.
   */
  limited(reason: QuotaReason | 'pipelined'): void {
    this.limitedBy.set(reason, (this.limitedBy.get(reason) ?? 0) + 1);
  }

  /** Answered requests, by status code. */
  get requests(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.byCode);
  }

  /** Requests beyond a limit, by the limit. */
  get requestsLimited(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.limitedBy);
  }

  /** How long answered requests took until their answers began, by verb. */
  get durationsByVerb(): Readonly<Record<string, Histogram>> {
    return Object.fromEntries(this.durations);
  }

  get requestsByVerb(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.byVerb);
  }
}
