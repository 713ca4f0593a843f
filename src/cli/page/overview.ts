import { byId, say } from './elements.ts';
import { RateChart, sayTotals, words } from './rate-chart.ts';
import type { PipeStats } from './stats.ts';
import { size } from './words.ts';

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
