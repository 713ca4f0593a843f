import type { Status } from '../../../src/watch/event.ts';

/** What one client has received, in numbers. */
export interface Received {
  /** Different events. */
  readonly delivered: number;
  readonly duplicates: number;
  readonly outOfOrder: number;
  /** Missed events that a 410 reports. */
  readonly told: number;
  /** Missed events that nothing reports. */
  readonly silent: number;
  /** 410s by which the server refused a version. */
  readonly expired: number;
  /** 410s of the client: the connection broke before there was a version. */
  readonly blind: number;
  /** 410s for a version that was already refused. */
  readonly repeated: number;
  /** Other ERRORs. */
  readonly failures: readonly string[];
}

/** Judges what one client receives. Events are numbered from 1, and it was connected before the first. */
export class DeliveryChecker implements Received {
  delivered: number = 0;
  duplicates: number = 0;
  outOfOrder: number = 0;
  told: number = 0;
  silent: number = 0;
  expired: number = 0;
  blind: number = 0;
  repeated: number = 0;
  readonly failures: string[] = [];
  /** The highest number so far. */
  last: number = 0;
  private gone: boolean = false;
  private readonly seen: Set<number> = new Set();
  private readonly refusals: Set<string> = new Set();

  take(n: number): void {
    if (this.seen.has(n)) this.duplicates++;
    else {
      this.seen.add(n);
      this.delivered++;
      if (n < this.last) this.outOfOrder++;
    }
    if (n <= this.last) return;
    const missed = n - this.last - 1;
    if (this.gone) this.told += missed;
    else this.silent += missed;
    this.last = n;
    this.gone = false;
  }

  refused({ code, message }: Status): void {
    if (code !== 410) {
      this.failures.push(`${code} ${message}`);
      return;
    }
    const blind = message.includes('no version');
    if (blind) this.blind++;
    else this.expired++;
    // The message contains the version.
    if (!blind && this.refusals.has(message)) this.repeated++;
    this.refusals.add(message);
    this.gone = true;
  }
}

/** Adds up the numbers of many clients. */
export function sumOf(all: readonly Received[]): Received {
  const sum = (of: (one: Received) => number): number => all.reduce((so, one) => so + of(one), 0);
  return {
    delivered: sum(({ delivered }) => delivered),
    duplicates: sum(({ duplicates }) => duplicates),
    outOfOrder: sum(({ outOfOrder }) => outOfOrder),
    told: sum(({ told }) => told),
    silent: sum(({ silent }) => silent),
    expired: sum(({ expired }) => expired),
    blind: sum(({ blind }) => blind),
    repeated: sum(({ repeated }) => repeated),
    failures: all.flatMap(({ failures }) => failures),
  };
}
