// What both pages are made of, in the browser: elements, JSON, rows of figures, charts; the state of their connection, its
// history, and the numbers they poll.
import { type Clock, systemClock } from '../watch/clock.ts';
import { getOrMake } from '../watch/errors.ts';
import { jsonOf, plural, rate, short, size, timeOf, visible } from './words.ts';

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
  // By default, a button would submit the form that it is in.
  if (tag === 'button') (element as HTMLElement as HTMLButtonElement).type = 'button';
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

/** Copies a text. Over HTTP, `navigator.clipboard` exists only on localhost. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = make('textarea', { name: 'hidden' });
    area.value = text;
    const back = document.activeElement as HTMLElement | null;
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    back?.focus({ preventScroll: true });
    return copied;
  }
}

/** Saves a file, as a browser downloads it. */
export function saveAs(name: string, content: Blob): void {
  const link = make('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser reads it now; there is no way to tell when it is done.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
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
  const json = jsonOf(value, 2);
  pre.append(paint(visible(json.slice(0, SHOWN_CHARS))));
  if (json.length > SHOWN_CHARS) pre.append(` \u2026 ${plural(json.length - SHOWN_CHARS, 'more character')}`);
  return pre;
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
  private readonly charts: Map<string, ChartSeries> = new Map();

  constructor(template: string) {
    this.element = clone<HTMLTableRowElement>(template);
  }

  part(name: string): HTMLElement {
    return this.element.querySelector(`[data-part=${name}]`) as HTMLElement;
  }

  say(name: string, text: string): void {
    say(this.part(name), text);
  }

  /** Adds a value to the chart of this name. `top` turns the largest value into that at the upper edge, at least 1. */
  draw(name: string, value: number, { top = (max) => max, as = area }: ChartLooks = {}): void {
    const series = getOrMake(this.charts, name, () => new ChartSeries(ROW_POINTS));
    series.push(value);
    const path = as(series, ROW_BOX, Math.max(top(series.max), 1));
    this.element.querySelector(`[data-chart=${name}] path`)?.setAttribute('d', path);
  }
}

interface ChartLooks {
  readonly top?: (max: number) => number;
  readonly as?: typeof area;
}

/** Makes these elements the rows of a table, in this order. Rows that are already in place are not touched. */
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
export class ChartSeries {
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
export function line({ values, room }: ChartSeries, { width, height }: Box, top: number): string {
  const step = width / Math.max(1, room - 1);
  const from = width - (values.length - 1) * step;
  const points = values.map((value, at) => {
    const y = height - (Math.min(value, top) / Math.max(top, Number.MIN_VALUE)) * height;
    return `${(from + at * step).toFixed(1)} ${y.toFixed(1)}`;
  });
  return points.length < 2 ? '' : `M${points.join('L')}`;
}

export function area(series: ChartSeries, box: Box, top: number): string {
  const path = line(series, box, top);
  // Back along the lower edge, to where the line begins.
  return path && `${path}V${box.height}H${path.slice(1, path.indexOf(' '))}Z`;
}

/** Draws one bar per value, for occasional events. */
export function bars({ values, room }: ChartSeries, { width, height }: Box, top: number): string {
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

/** Totals since the server, or this page, started. */
interface Totals {
  /** Of the server. */
  readonly all: number;
  /** Of this page. */
  readonly here: number;
  readonly sentBytes: number;
}

/** What is counted, per second, as a number and as two lines: of the server, and of this page. */
class RateChart {
  private readonly all: ChartSeries = new ChartSeries(POINTS);
  private readonly here: ChartSeries = new ChartSeries(POINTS);
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

/** The colour of the state. */
type Light = 'live' | 'slow' | 'connecting' | 'off';

/** The state of the connection in the header: a light and a few words, or a countdown to the next attempt. */
export class StateLine {
  private timer: ReturnType<typeof setInterval> | undefined = undefined;

  /** `retry`: whether it makes sense to try at once. */
  show(light: Light, text: string, { retry = false }: { readonly retry?: boolean } = {}): void {
    clearInterval(this.timer);
    byId('state').dataset.state = light;
    byId('retry').toggleAttribute('hidden', !retry);
    say(byId('state'), text);
  }

  /** `what`: the state until the next attempt. */
  countDown(delayMs: number, what: string = 'not connected'): void {
    const until = performance.now() + delayMs;
    const words = (): string => {
      const seconds = Math.ceil((until - performance.now()) / 1_000);
      return seconds > 0 ? `${what}, next attempt in ${plural(seconds, 'second')}` : `${what}, trying`;
    };
    this.show('off', words(), { retry: true });
    this.timer = setInterval(() => say(byId('state'), words()), 1_000);
  }
}

type HistoryKind = 'good' | 'cut' | 'loss' | 'note';

/** Entries in the history. */
const MAX_HISTORY = 30;

/** The minimum time between two announcements. */
const PAUSE_MS = 3_000;

/**
 * What has happened to this page's connection, newest first. It is announced to screen readers, too. They read out every change of a
 * polite live region, so it must change seldom: of several messages during a pause only the last is announced, when the pause is over.
 */
export class PageHistory {
  private repeats: { readonly text: string; readonly times: number } = { text: '', times: 0 };
  private next: string | undefined = undefined;
  private resting: boolean = false;

  add(text: string, kind: HistoryKind): void {
    const list = byId('history');
    const entry = make('li', { name: kind });
    const { repeats } = this;
    // While a server is away, every attempt fails: show one entry with a count.
    const times = repeats.text === text ? repeats.times + 1 : 1;
    if (times > 1) list.firstElementChild?.remove();
    this.repeats = { text, times };
    entry.append(make('time', { text: timeOf(new Date()) }), ` ${text}${times > 1 ? ` (${times} times)` : ''}`);
    list.prepend(entry);
    while (list.children.length > MAX_HISTORY) list.lastElementChild?.remove();
    this.tell(text);
  }

  /** Announces a text that does not belong in the history. */
  tell(text: string): void {
    this.next = text;
    if (!this.resting) this.announce();
  }

  private announce(): void {
    this.resting = this.next !== undefined;
    if (this.next === undefined) return;
    say(byId('announcer'), this.next);
    this.next = undefined;
    setTimeout(() => this.announce(), PAUSE_MS);
  }
}

interface PollOptions<T> {
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly onAnswer: (answer: T) => void;
  readonly onFault: () => void;
  readonly intervalMs: number;
  /** The longest pause after consecutive failures. */
  readonly maxIntervalMs: number;
  /** A request that takes longer has failed. */
  readonly timeoutMs: number;
  readonly clock?: Clock | undefined;
}

/**
 * Asks repeatedly, one request at a time. The pause doubles after each failure, up to its limit; an answer resets it. `stop`
 * aborts the current request; after that nothing is asked, called or scheduled.
 */
export class Poller<T> {
  private readonly options: PollOptions<T>;
  private readonly clock: Clock;
  private failures: number = 0;
  private round: AbortController | undefined = undefined;
  private cancelTimer: () => void = () => {};

  constructor(options: PollOptions<T>) {
    this.options = options;
    this.clock = options.clock ?? systemClock;
  }

  /** Asks now, and then at the configured interval. Also ends a pause early. */
  start(): void {
    this.stop();
    void this.ask();
  }

  stop(): void {
    this.cancelTimer();
    this.round?.abort();
    this.round = undefined;
  }

  private async ask(): Promise<void> {
    const round = new AbortController();
    this.round = round;
    const { ask, onAnswer, onFault, timeoutMs } = this.options;
    this.cancelTimer = this.clock.schedule(timeoutMs, () => round.abort());
    let answer: { readonly is: T } | undefined;
    try {
      answer = { is: await ask(round.signal) };
    } catch {
      // If the error persists, the next request will show it.
    }
    // Stopped or restarted while the request was pending.
    if (this.round !== round) return;
    this.cancelTimer();
    this.failures = answer === undefined ? this.failures + 1 : 0;
    this.cancelTimer = this.clock.schedule(this.pauseMs, () => void this.ask());
    if (answer === undefined) onFault();
    else onAnswer(answer.is);
  }

  private get pauseMs(): number {
    const { intervalMs, maxIntervalMs } = this.options;
    return Math.min(maxIntervalMs, intervalMs * 2 ** this.failures);
  }
}

/** Polls the numbers of a server. Old ones must not look like current ones, so they are marked while there is no answer. */
export function pollNumbers<T>({
  ask,
  onAnswer,
  onFault,
}: {
  readonly ask: (signal: AbortSignal) => Promise<T>;
  /** `wasAway`: there was no answer before. */
  readonly onAnswer: (answer: T, wasAway: boolean) => void;
  readonly onFault?: () => void;
}): Poller<T> {
  const { classList } = document.body;
  return new Poller<T>({
    ask,
    onAnswer: (answer) => {
      const wasAway = classList.contains('stale');
      classList.remove('stale');
      onAnswer(answer, wasAway);
    },
    onFault: () => {
      classList.add('stale');
      onFault?.();
    },
    ...{ intervalMs: 1_000, maxIntervalMs: 15_000, timeoutMs: 5_000 },
  });
}

/** What a page does when it is left, when it comes back from the back/forward cache, and when it becomes visible. */
interface PageLife {
  readonly leave: () => void;
  readonly comeBack: () => void;
  /** Browsers throttle the timers of a hidden page: it catches up at once. */
  readonly seen: () => void;
}

export function onPageLife({ leave, comeBack, seen }: PageLife): void {
  addEventListener('pagehide', leave);
  addEventListener('pageshow', ({ persisted }) => persisted && comeBack());
  document.addEventListener('visibilitychange', () => document.hidden || seen());
}

/** The minimum time between two redraws of a table; a slow one is followed by a longer pause. */
const DRAW_MS = 120;
const DRAW_SHARE = 8;

/** Returns a function that draws soon, however often it is called. */
export function drawingSoon(draw: () => void): () => void {
  let waiting = false;
  let lastMs = 0;
  return () => {
    if (waiting) return;
    waiting = true;
    setTimeout(
      () => {
        waiting = false;
        const begun = performance.now();
        draw();
        lastMs = performance.now() - begun;
      },
      Math.max(DRAW_MS, lastMs * DRAW_SHARE),
    );
  };
}

/** How long work may keep the page from anything else. */
const SLICE_MS = 10;

/** Work in steps, of which no task does more than a slice. New work replaces work that is not done. */
export class SlicedWork {
  private current: Iterator<void, void> | undefined = undefined;

  get isBusy(): boolean {
    return this.current !== undefined;
  }

  /** Calls `done` when all steps have been done: at once, if they are few, and otherwise in a task of its own. */
  begin(steps: Iterator<void, void>, done: () => void): void {
    this.current = steps;
    this.goOn(steps, done);
  }

  cancel(): void {
    this.current = undefined;
  }

  private goOn(steps: Iterator<void, void>, done: () => void): void {
    if (this.current !== steps) return;
    const fromMs = performance.now();
    let isDone = false;
    while (!isDone && performance.now() < fromMs + SLICE_MS) isDone = steps.next().done === true;
    if (isDone && performance.now() < fromMs + SLICE_MS / 4) {
      this.current = undefined;
      done();
    } else {
      setTimeout(() => this.goOn(steps, done)); // an iterator that is done says so again
    }
  }
}
