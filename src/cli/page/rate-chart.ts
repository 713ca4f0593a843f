import { area, line, roundUp, Series } from './charts.ts';
import { byId, say } from './elements.ts';
import { rate, short, size } from './words.ts';

/** Two minutes, at one sample per second. */
const POINTS = 120;
const BOX = { width: 600, height: 96 };
/** Samples between two updates of the chart's description for screen readers. */
const DESCRIBED_EVERY = 5;

/** Totals since the server, or this page, has started. */
export interface Totals {
  /** Of the server. */
  readonly all: number;
  /** Of this page. */
  readonly here: number;
  readonly sentBytes: number;
}

/** What is counted, per second, as a number and as two lines: of the server, and of this page. */
export class RateChart {
  private readonly all: Series = new Series(POINTS);
  private readonly here: Series = new Series(POINTS);
  /** What is counted: `Events`. */
  private readonly unit: string;
  private last: (Totals & { readonly atMs: number }) | undefined = undefined;
  private ticks: number = 0;

  constructor(unit: string) {
    this.unit = unit;
  }

  show(totals: Totals): void {
    const atMs = performance.now();
    const { last } = this;
    this.last = { ...totals, atMs };
    // The first sample, or a restarted server: there is nothing to compare with.
    if (last === undefined || totals.all < last.all) return;
    const seconds = Math.max(0.001, (atMs - last.atMs) / 1_000);
    const perSecond = (totals.all - last.all) / seconds;
    this.all.push(perSecond);
    this.here.push((totals.here - last.here) / seconds);
    say(byId('bytes'), size(Math.max(0, totals.sentBytes - last.sentBytes) / seconds));
    this.draw(perSecond);
  }

  private draw(perSecond: number): void {
    const top = roundUp(Math.max(this.all.max, this.here.max), 1);
    say(byId('rate'), rate(perSecond));
    say(byId('rate-top'), rate(top));
    byId('rate-area').setAttribute('d', area(this.all, BOX, top * 1.08));
    byId('rate-line').setAttribute('d', line(this.all, BOX, top * 1.08));
    byId('rate-here').setAttribute('d', line(this.here, BOX, top * 1.08));
    if (this.ticks++ % DESCRIBED_EVERY > 0) return;
    const text = `${this.unit} per second in the last two minutes: now ${rate(perSecond)}, at most ${rate(this.all.max)}`;
    byId('rate-chart').setAttribute('aria-label', text);
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
