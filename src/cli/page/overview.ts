import { area, line, roundUp, Series } from './charts.ts';
import { byId, say } from './elements.ts';
import type { PipeStats } from './stats.ts';
import { rate, short, size } from './words.ts';

/** Two minutes, at one sample per second. */
const POINTS = 120;
const BOX = { width: 600, height: 96 };
/** Samples between two updates of the chart's description for screen readers. */
const DESCRIBED_EVERY = 5;

/** The stream as a whole: events per second, as accepted by the server and as received by this page, and the totals. */
export class Overview {
  private readonly accepted: Series = new Series(POINTS);
  private readonly received: Series = new Series(POINTS);
  private last: { readonly stats: PipeStats; readonly received: number; readonly atMs: number } | undefined = undefined;
  private ticks: number = 0;

  /** `received` is the number of events this page has received. */
  show(stats: PipeStats, received: number): void {
    const atMs = performance.now();
    const { last } = this;
    this.last = { stats, received, atMs };
    this.sums(stats, received);
    // The first sample, or a restarted server: there is nothing to compare with.
    if (last === undefined || stats.accepted < last.stats.accepted) return;
    const seconds = Math.max(0.001, (atMs - last.atMs) / 1_000);
    const perSecond = (stats.accepted - last.stats.accepted) / seconds;
    this.accepted.push(perSecond);
    this.received.push((received - last.received) / seconds);
    const sentBytes = Math.max(0, stats.total.sentBytes - last.stats.total.sentBytes);
    say(byId('bytes'), size(sentBytes / seconds));
    this.draw(perSecond);
  }

  private draw(perSecond: number): void {
    const top = roundUp(Math.max(this.accepted.max, this.received.max), 1);
    say(byId('rate'), rate(perSecond));
    say(byId('rate-top'), rate(top));
    byId('rate-area').setAttribute('d', area(this.accepted, BOX, top * 1.08));
    byId('rate-line').setAttribute('d', line(this.accepted, BOX, top * 1.08));
    byId('rate-here').setAttribute('d', line(this.received, BOX, top * 1.08));
    if (this.ticks++ % DESCRIBED_EVERY > 0) return;
    const text = `Events per second in the last two minutes: now ${rate(perSecond)}, at most ${rate(this.accepted.max)}`;
    byId('rate-chart').setAttribute('aria-label', text);
  }

  private sums({ accepted, clients, total, recovered }: PipeStats, received: number): void {
    const numbers = {
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
    };
    for (const [name, value] of Object.entries(numbers)) {
      const element = byId(`total-${name}`);
      say(element, short(value));
      element.classList.toggle('some', value > 0);
    }
    say(byId('total-sent'), size(total.sentBytes));
    byId('total-cut').title = words(total.cuts);
    byId('total-refused').title = words(total.refusals);
  }
}

function words(counts: Readonly<Partial<Record<string, number>>>): string {
  return Object.entries(counts)
    .map(([reason, value]) => `${reason}: ${value}`)
    .join(', ');
}
