import { byId, say } from './elements.ts';
import { RateChart } from './rate-chart.ts';
import type { PipeStats } from './stats.ts';
import { short, size } from './words.ts';

/** The stream as a whole: events per second, as accepted by the server and as received by this page, and the totals. */
export class Overview {
  private readonly chart: RateChart = new RateChart('Events');

  /** `received` is the number of events this page has received. */
  show(stats: PipeStats, received: number): void {
    this.sums(stats, received);
    this.chart.show({ all: stats.accepted, here: received, sentBytes: stats.total.sentBytes });
  }

  private sums({ accepted, clients, total, recovered }: PipeStats, received: number): void {
    sayTotals({
      accepted,
      received,
      watching: clients.length,
      delivered: total.delivered,
      // What a client got after all is not lost, here as in the history of this page.
      dropped: Math.max(0, total.dropped - recovered),
      recovered,
      resumes: total.resumes,
      cut: total.cut,
      refused: total.refused,
    });
    say(byId('total-sent'), size(total.sentBytes));
    byId('total-cut').title = words(total.cuts);
    byId('total-refused').title = words(total.refusals);
  }
}

/** Shows numbers in the tiles of these names. */
export function sayTotals(numbers: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(numbers)) {
    const element = byId(`total-${name}`);
    say(element, short(value));
    element.classList.toggle('some', value > 0);
  }
}

/** Counts in words, such as `429: 3, 503: 1`. */
export function words(counts: Readonly<Partial<Record<string, number>>>): string {
  return Object.entries(counts)
    .map(([reason, value]) => `${reason}: ${value}`)
    .join(', ');
}
