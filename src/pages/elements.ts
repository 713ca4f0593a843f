// What both pages are made of, in the browser: elements, JSON, rows of figures, charts.
import { jsonOf, plural, rate, short, size, visible } from './words.ts';

/** Returns the element with this id. Throws if there is none: page and script belong together, so that is a bug. */
export function byId<T extends Element = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found as Element as T;
}

/** Properties of a new element. Its text is set as text, so data from the network never becomes markup. */
interface Looks {
  readonly text?: string | undefined;
  readonly name?: string | undefined;
  readonly title?: string | undefined;
}

/** Creates an element. */
export function make<K extends keyof HTMLElementTagNameMap>(tag: K, looks: Looks = {}): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (looks.text !== undefined) element.textContent = looks.text;
  if (looks.name !== undefined) element.className = looks.name;
  if (looks.title !== undefined) element.title = looks.title;
  return element;
}

/** Clones the content of one of the page's templates. */
export function clone<T extends Element>(template: string): T {
  return byId<HTMLTemplateElement>(template).content.firstElementChild?.cloneNode(true) as T;
}

/** Sets a text if it has changed. Unchanged text is neither laid out nor read out again. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Longer text is not coloured, because it would need too many elements. */
const MAX_PAINTED_CHARS = 20_000;

/** A key, a string, or another scalar, in the output of JSON.stringify. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Formats JSON with different colours for keys, strings and other values, as text nodes in elements. */
function paint(json: string): DocumentFragment {
  const painted = document.createDocumentFragment();
  if (json.length > MAX_PAINTED_CHARS) {
    painted.append(json);
    return painted;
  }
  let from = 0;
  for (const match of json.matchAll(TOKEN)) {
    const [whole, string, colon] = match;
    const text = string ?? whole;
    const name = colon !== undefined ? 'key' : string !== undefined ? 'string' : 'number';
    painted.append(json.slice(from, match.index), make('span', { text, name }));
    from = match.index + text.length;
  }
  painted.append(json.slice(from));
  return painted;
}

/** Characters of an object that are shown. */
const SHOWN_CHARS = 100_000;

/** Creates a box with a value as JSON. It can have the focus, so that its content can be scrolled by keyboard. */
export function jsonBox(value: unknown): HTMLPreElement {
  const pre = make('pre');
  pre.tabIndex = 0;
  pre.setAttribute('aria-label', 'object');
  showJson(pre, value);
  return pre;
}

/** Shows another value in such a box. */
export function showJson(pre: HTMLPreElement, value: unknown): void {
  const json = jsonOf(value, 2);
  pre.replaceChildren(paint(visible(json.slice(0, SHOWN_CHARS))));
  if (json.length > SHOWN_CHARS) pre.append(` \u2026 ${plural(json.length - SHOWN_CHARS, 'more character')}`);
}

/**
 * The buttons of a table as one stop of the tab key: arrow keys, Home and End move between them.
 */
export class TabStops {
  private readonly body: HTMLElement;

  constructor(body: HTMLElement) {
    this.body = body;
    body.addEventListener('keydown', (event) => this.onKey(event));
  }

  /** Makes one button reachable by the tab key: the one with the focus, or the first. Call it when rows have come or gone. */
  keep(chosen?: HTMLButtonElement): void {
    const { all } = this;
    const stop = chosen ?? all.find((each) => each === document.activeElement) ?? all[0];
    for (const each of all) each.tabIndex = each === stop ? 0 : -1;
  }

  private get all(): readonly HTMLButtonElement[] {
    return [...this.body.querySelectorAll<HTMLButtonElement>('button')];
  }

  private onKey(event: KeyboardEvent): void {
    const { all } = this;
    const at = all.indexOf(event.target as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = all[Math.max(0, Math.min(all.length - 1, to))];
    next?.focus();
    this.keep(next);
  }
}

/** Points of a chart in a row: one minute, at one sample per second. */
const ROW_POINTS = 60;
const ROW_BOX = { width: 64, height: 20 };

/** A row of figures, made from a template whose parts have names; some of them are charts. */
export class FigureRow {
  readonly element: HTMLTableRowElement;
  private readonly charts: Map<string, Series> = new Map();

  constructor(template: string) {
    this.element = clone<HTMLTableRowElement>(template);
  }

  part(name: string): HTMLElement {
    return this.element.querySelector(`[data-part=${name}]`) as HTMLElement;
  }

  say(name: string, text: string): void {
    say(this.part(name), text);
  }

  /** Adds a value to the chart of this name. `top` makes the value at the upper edge, at least 1, of the largest one. */
  draw(name: string, value: number, { top = (max) => max, as = area }: ChartLooks = {}): void {
    const series = this.charts.get(name) ?? new Series(ROW_POINTS);
    this.charts.set(name, series);
    series.push(value);
    const path = as(series, ROW_BOX, Math.max(top(series.max), 1));
    this.element.querySelector(`[data-chart=${name}] path`)?.setAttribute('d', path);
  }
}

interface ChartLooks {
  readonly top?: (max: number) => number;
  readonly as?: typeof area;
}

/** Makes the rows of a table those of these elements, in this order. Rows that are where they belong are not touched. */
export function arrange(body: HTMLTableSectionElement, elements: readonly HTMLTableRowElement[]): void {
  const wanted = new Set(elements);
  for (const row of [...body.rows]) if (!wanted.has(row)) row.remove();
  let next = body.firstElementChild;
  for (const element of elements) {
    if (element === next) next = next.nextElementSibling;
    else body.insertBefore(element, next);
  }
}

/** The most recent values of a number that is sampled repeatedly. */
export class Series {
  readonly values: number[] = [];
  /** The maximum number of values. */
  readonly room: number;

  constructor(room: number) {
    this.room = room;
  }

  push(value: number): void {
    this.values.push(value);
    if (this.values.length > this.room) this.values.shift();
  }

  get max(): number {
    return Math.max(0, ...this.values);
  }
}

/** The size of a drawing, in its own units. */
interface Box {
  readonly width: number;
  readonly height: number;
}

/** Draws a series as a line that ends at the right, as SVG path data. `top` is the value at the upper edge. */
export function line({ values, room }: Series, { width, height }: Box, top: number): string {
  const step = width / Math.max(1, room - 1);
  const from = width - (values.length - 1) * step;
  const points = values.map((value, at) => {
    const y = height - (Math.min(value, top) / Math.max(top, Number.MIN_VALUE)) * height;
    return `${(from + at * step).toFixed(1)} ${y.toFixed(1)}`;
  });
  return points.length < 2 ? '' : `M${points.join('L')}`;
}

/** Draws the line of a series and the area below it. */
export function area(series: Series, box: Box, top: number): string {
  const path = line(series, box, top);
  // Back along the lower edge, to where the line begins.
  return path && `${path}V${box.height}H${path.slice(1, path.indexOf(' '))}Z`;
}

/** Draws one bar per value, for occasional events. */
export function bars({ values, room }: Series, { width, height }: Box, top: number): string {
  const step = width / Math.max(1, room);
  const from = width - values.length * step;
  const bar = (value: number, at: number): string => {
    if (value <= 0) return '';
    const tall = Math.max(1.5, (Math.min(value, top) / top) * height);
    return `M${(from + at * step).toFixed(1)} ${height}v${(-tall).toFixed(1)}h${(step * 0.8).toFixed(1)}V${height}Z`;
  };
  return values.map(bar).join('');
}

/** Rounds up to one of 1, 2, 5, 10, 20, 50 ..., so that the chart's upper edge does not move with every value. */
export function roundUp(value: number, least: number): number {
  const wanted = Math.max(value, least);
  const power = 10 ** Math.floor(Math.log10(wanted));
  const factor = [1, 2, 5, 10].find((one) => one * power >= wanted) ?? 10;
  return factor * power;
}

/** Two minutes, at one sample per second. */
const POINTS = 120;
const BOX = { width: 600, height: 96 };
/** Samples between two updates of the chart's description for screen readers. */
const DESCRIBED_EVERY = 5;

/** Totals since the server, or this page, has started. */
interface Totals {
  /** Of the server. */
  readonly all: number;
  /** Of this page. */
  readonly here: number;
  readonly sentBytes: number;
}

/** What is counted, per second, as a number and as two lines: of the server, and of this page. */
class RateChart {
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

/** The first section of a page: a rate, and totals in tiles. */
export class Overview {
  private readonly chart: RateChart;

  /** What is counted per second: `Events`. */
  constructor(unit: string) {
    this.chart = new RateChart(unit);
  }

  /** `why` explains totals: how many of each reason, such as `429: 3, 503: 1`. */
  show(rates: Totals, totals: Readonly<Record<string, number>>, why: Readonly<Record<string, Counts>>): void {
    for (const [name, value] of Object.entries(totals)) {
      const element = byId(`total-${name}`);
      say(element, short(value));
      element.classList.toggle('some', value > 0);
    }
    for (const [name, counts] of Object.entries(why)) {
      const reasons = Object.entries(counts).map(([reason, value]) => `${reason}: ${value}`);
      byId(`total-${name}`).title = reasons.join(', ');
    }
    say(byId('total-sent'), size(rates.sentBytes));
    this.chart.show(rates);
  }
}

type Counts = Readonly<Partial<Record<string, number>>>;
