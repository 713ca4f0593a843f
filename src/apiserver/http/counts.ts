import type { QuotaReason } from '../quotas/place.ts';

/** A server's counters. Each of them only grows, except `watchers`. */
export class ApiCounts {
  private readonly byCode: Map<string, number> = new Map();
  private readonly byVerb: Map<string, number> = new Map();
  private readonly limitedBy: Map<string, number> = new Map();
  watchers: number = 0;
  watchersOpened: number = 0;
  watchersStalled: number = 0;
  /** Of streams that have ended, as are `sentBytes`. */
  events: number = 0;
  sentBytes: number = 0;

  answered(code: number, verb: string = 'none'): void {
    this.byCode.set(`${code}`, (this.byCode.get(`${code}`) ?? 0) + 1);
    this.byVerb.set(verb, (this.byVerb.get(verb) ?? 0) + 1);
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

  get requestsByVerb(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.byVerb);
  }
}
