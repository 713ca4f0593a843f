import type { ApiServerStats } from '../../../apiserver/stats.ts';
import { byId, say } from '../../page/elements.ts';
import { RateChart, sayTotals, words } from '../../page/rate-chart.ts';
import { size } from '../../page/words.ts';

/** The server as a whole: changes per second, as taken by its caches and as received by this page, and the totals. */
export class ServerOverview {
  private readonly chart: RateChart = new RateChart('Changes');

  /** `received` is the number of changes this page has received. */
  show(stats: ApiServerStats, received: number): void {
    const { requests, resources, watchers, watchersStalled, events, sentBytes } = stats;
    const changes = sum(resources, ({ cache }) => cache?.changes ?? 0);
    const refusals = Object.fromEntries(Object.entries(requests).filter(([code]) => Number(code) >= 400));
    sayTotals({
      objects: sum(resources, ({ cache }) => cache?.objects ?? 0),
      changes,
      watchers,
      behind: sum(resources, ({ behind }) => behind),
      cut: watchersStalled,
      delivered: events,
      requests: sum(Object.values(requests), (each) => each),
      refused: sum(Object.values(refusals), (each) => each),
      expired: sum(resources, ({ cache }) => cache?.fellBehind ?? 0),
    });
    say(byId('total-sent'), size(sentBytes));
    byId('total-refused').title = words(refusals);
    this.chart.show({ all: changes, here: received, sentBytes });
  }
}

function sum<T>(values: readonly T[], read: (value: T) => number): number {
  return values.reduce((total, each) => total + read(each), 0);
}
