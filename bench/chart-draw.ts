// Draws charts as SVG: bars with whiskers, and lines on two axes. Plot does it in a document of its own, without a browser.
import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';
import type { ChartRow } from './chart-input.ts';
import { digits } from './report.ts';
import type { Queue } from './workload.ts';

/** What every chart has. */
interface Picture {
  /** Prefix of the ids in the chart, so that several charts can be inlined in one page. */
  readonly id: string;
  readonly title: string;
  readonly subtitle: string;
  readonly footer: readonly string[];
}

type Contender = Pick<ChartRow, 'contender' | 'queue'>;

interface Bar extends Pick<ChartRow, 'median' | 'min' | 'max'> {
  /** Text before the bar, if a contender has several. */
  readonly label?: string | undefined;
}

/** A contender and its bars. */
export interface Group extends Contender {
  readonly bars: readonly Bar[];
  /** Text of the last column. */
  readonly note: string;
}

/** Groups that are compared with each other, with a heading if there are several sections. */
export interface Section {
  readonly heading?: string | undefined;
  /** Heading of the notes. */
  readonly noteName: string;
  readonly groups: readonly Group[];
}

interface BarChart extends Picture {
  readonly sections: readonly Section[];
}

/** One contender's line. Points are in order of x; both numbers are greater than 0, or at least 0 on linear axes. */
export interface Line extends Contender {
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

interface LineChart extends Picture {
  readonly lines: readonly Line[];
  readonly xName: string;
  /** Whether both axes are linear, from 0: a course over time, whose points are too many to be marked. */
  readonly linear?: boolean;
}

/** The width of every chart: that at which GitHub shows a picture in a README without shrinking it. */
const WIDTH = 720;
const MARGIN = 20;
const ROW = 21;
/** Where the legend begins, and the distance of its rows. */
const TOP = 62;

const CONTROL = /^bare loop$|ready lines|\bcontrol\b/i;
const QUEUES: Readonly<Record<Queue, string>> = {
  bounded: 'bounded queue',
  unbounded: 'unbounded queue',
  lossy: 'lossy',
  none: 'no queue: calls consumers',
};

/** How a contender looks, as a CSS class. Colour is never the only difference: shape, pattern or label differ, too. */
function classOf({ contender, queue }: Contender): string {
  return contender.startsWith('watchmux') ? 'ours' : CONTROL.test(contender) ? 'control' : queue;
}

function nameOf({ contender }: Contender): string {
  return CONTROL.test(contender) && !/^watchmux|control/i.test(contender) ? `${contender} (control)` : contender;
}

/** Three significant digits, or two below 1: 297, 20.1, 0.32, 0.0016. */
export function figure(value: number): string {
  if (value >= 1 || value <= 0) return digits(value);
  return value < 0.995 ? value.toPrecision(2) : '1.00';
}

/** Formats 10000 as 10,000. */
export function whole(value: number): string {
  return value.toLocaleString('en');
}

const theme = ([page, ink, soft, grid, ours, warm, gray]: readonly string[]): string =>
  `.page,.hollow{fill:${page}}text{fill:${ink}}.soft,.soft text{fill:${soft}}.plot{color:${soft}}.grid{stroke:${grid};stroke-opacity:1}.axis,.leader{stroke:${soft}}.whisker{stroke:${ink}}` +
  `.control{stroke:${ink}}.ours{stroke:${ours}}.bounded{stroke:${warm}}.unbounded,.lossy,.none{stroke:${gray}}` +
  `.fill.ours,.ours text{fill:${ours}}.fill.bounded{fill:${warm}}.dots.ours{fill:${ours}}.dots.peer{fill:${gray}}`;
/** Colours are written out for light and dark, because not every renderer of SVG supports CSS variables. */
const STYLE = [
  'text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;stroke:none}',
  '.title{font-size:16px;font-weight:600}.small{font-size:11px}',
  '.leader{opacity:.6}.line{stroke-width:1.5}.line.ours{stroke-width:3}.line.none{stroke-dasharray:1 3}.control{stroke-dasharray:6 4}.bar,.fill,.hollow{stroke-width:1.25}',
  theme(['#ffffff', '#1f2328', '#59636e', '#d8dee4', '#0969da', '#bc4c00', '#6e7781']),
  `@media(prefers-color-scheme:dark){${theme(['#0d1117', '#e6edf3', '#9198a1', '#2b323b', '#4493f8', '#e0823d', '#8b949e'])}}`,
  '.heading text,.ours text{font-weight:600}',
].join('');

/** The fill patterns of bars: hatched for unbounded queues, dotted for lossy ones. */
const patterns = (id: string): string =>
  ['ours', 'peer']
    .map((who) => {
      const look = who === 'ours' ? who : 'unbounded';
      const size = 'width="6" height="6" patternUnits="userSpaceOnUse"';
      return `<pattern id="${id}-${who}-unbounded" ${size} patternTransform="rotate(45)"><path class="${look}" stroke-width="2.5" d="M3 0V6"/></pattern><pattern id="${id}-${who}-lossy" ${size}><circle class="dots ${who}" cx="3" cy="3" r="1.2"/></pattern>`;
    })
    .join('');

/** A file may have characters that XML does not. */
const clean = (raw: string): string => raw.replace(/[\p{Cc}\p{Cs}\uFFFE\uFFFF]/gu, ' ');
const escaped = (raw: string): string => clean(raw).replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);

/** One text, at a place in the data or at an edge of the frame. */
const words = (text: string, options: Plot.Options): Plot.Mark =>
  Plot.text([clean(text)], { textAnchor: 'start', lineWidth: Number.POSITIVE_INFINITY, ...options });

/** The width of a text at 12 px, in a wide font, estimated; ours is bold. */
const widthOf = (raw: string): number => raw.length * (raw.startsWith('watchmux ') ? 7.9 : 7);

/** What Plot has drawn, with at most one decimal in numbers, and without its names of marks: the picture has a description. */
function drawn(options: Plot.Options): string {
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  const svg = Plot.plot({ document, width: WIDTH, ...options });
  svg.querySelector('style')?.remove();
  for (const element of svg.querySelectorAll('*')) {
    for (const { name, value } of [...element.attributes]) {
      if (/^(aria-|stroke-(miter|line))/.test(name)) element.removeAttribute(name);
      if (/^(d|[xy][12]?|c[xy]|r|width|height|transform)$/.test(name)) {
        element.setAttribute(
          name,
          value.replace(/-?\d+\.\d+(?!\d*em)/g, (number) => String(Math.round(Number(number) * 10) / 10)),
        );
      }
    }
  }
  return svg.innerHTML;
}

interface Drawing {
  /** The whole chart in words and numbers. */
  readonly description: string;
  readonly contenders: readonly Contender[];
  /** The mark of a contender in the legend, in a box of 18 by 12. */
  readonly sign: (of: Contender, x: number, y: number) => readonly Plot.Mark[];
  /** The chart below the legend, in these many pixels. */
  readonly height: number;
  readonly plot: Plot.Options;
}

/** Each look in a chart with its meaning, ours first. The control is named instead. Returns the marks, and the number of rows. */
function legend(contenders: readonly Contender[], sign: Drawing['sign']): { readonly marks: Plot.Mark[]; readonly rows: number } {
  const queues = Object.keys(QUEUES) as Queue[];
  const looks = [
    ...queues.map((queue) => ({ queue, look: 'ours', label: `watchmux, ${QUEUES[queue]}` })),
    ...queues.map((queue) => ({ queue, look: queue, label: QUEUES[queue] })),
  ];
  let [x, row] = [MARGIN, 0];
  const marks = looks.flatMap(({ queue, look, label }) => {
    const one = contenders.find((each) => classOf(each) === look && each.queue === queue);
    if (one === undefined) return [];
    const width = 38 + widthOf(label);
    if (x + width > WIDTH) [x, row] = [MARGIN, row + 1];
    const [at, y] = [x, 12 + row * 20];
    x += width;
    return [...sign(one, at, y), words(label, { x: [at + 24], y: [y], className: 'soft' })];
  });
  return { marks, rows: row + 1 };
}

/**
 * A picture with a name and a description. It has its own light or dark background, because it follows the system's preference,
 * which may differ from that of the page around it.
 */
function picture({ id, title, subtitle, footer }: Picture, { description, contenders, sign, height, plot }: Drawing): string {
  const { marks, rows } = legend(contenders, sign);
  const top = TOP + rows * 20 + 6;
  const end = top + height + 10;
  const whole = end + footer.length * 16 + 4;
  const pixels = { x: { type: 'identity' }, y: { type: 'identity' }, axis: null } as const;
  const text = (raw: string, y: number, look: string): string =>
    `<text x="${MARGIN}" y="${y}" class="${look}">${escaped(raw)}</text>`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${whole}" viewBox="0 0 ${WIDTH} ${whole}" role="img" aria-labelledby="${id}-title ${id}-desc">`,
    `<title id="${id}-title">${escaped(title)}</title>`,
    `<desc id="${id}-desc">${escaped(description)}</desc>`,
    `<style>${STYLE}</style>`,
    `<defs>${patterns(id)}</defs>`,
    `<rect class="page" width="${WIDTH}" height="${whole}" rx="6"/>`,
    text(title, 30, 'title'),
    text(subtitle, 50, 'soft'),
    `<g class="plot" text-anchor="middle" transform="translate(0,${TOP})">${drawn({ ...pixels, height: rows * 20, marks })}</g>`,
    `<g class="plot" text-anchor="middle" transform="translate(0,${top})">${drawn({ height, ...plot })}</g>`,
    ...footer.map((line, at) => text(line, end + at * 16, 'soft small')),
    '</svg>\n',
  ].join('\n');
}

/** Solid if bounded, hatched if unbounded, dotted if lossy, empty without a queue, dashed for the control. */
function looksOf(id: string, row: Contender): Plot.Options {
  const look = classOf(row);
  if (look === 'control' || row.queue === 'none') return { className: `bar ${look}`, fill: 'none' };
  if (row.queue === 'bounded') return { className: `bar fill ${look}` };
  return { className: `bar ${look}`, fill: `url(#${id}-${look === 'ours' ? look : 'peer'}-${row.queue})` };
}

/** Horizontal bars from 0, in the given order, with whiskers from the minimum to the maximum. */
export function barChart(chart: BarChart): string {
  const { id, subtitle, sections } = chart;
  const groups = sections.flatMap((section) => section.groups);
  const bars = groups.flatMap((group) => group.bars);
  const widest = Math.max(...bars.map(({ label = '' }) => widthOf(label)));
  const names = 10 + (widest === 0 ? 0 : widest + 14);
  const left = MARGIN + names + Math.max(...groups.map((group) => widthOf(nameOf(group))));
  const right = 172;
  const notes = { frameAnchor: 'right', dx: right - MARGIN, textAnchor: 'end' };
  const marks: Plot.Mark[] = [];
  let top = 0;
  for (const { heading = '', noteName, groups } of sections) {
    const y = [top + 10];
    marks.push(words(heading, { y, frameAnchor: 'left', dx: MARGIN - left, className: 'heading' }));
    marks.push(words(noteName, { y, ...notes, className: 'soft' }));
    top += ROW;
    const begin = top;
    for (const group of groups) {
      const className = classOf(group) === 'ours' ? 'ours' : 'name';
      const middle = [top + (group.bars.length * ROW) / 2];
      const name = { y: middle, frameAnchor: 'left', dx: -names, textAnchor: 'end', className };
      marks.push(words(nameOf(group), name), words(group.note, { y: middle, ...notes, className }));
      for (const { median, min, max, label = '' } of group.bars) {
        const at = top + ROW / 2;
        const y = [at];
        marks.push(
          Plot.rect([0], { x1: [0], x2: [median], y1: [at - 7], y2: [at + 7], ...looksOf(id, group) }),
          Plot.ruleY([0], { x1: [min], x2: [max], y, className: 'whisker' }),
          Plot.ruleX([0, 0], { x: [min, max], y1: [at - 4, at - 4], y2: [at + 4, at + 4], className: 'whisker' }),
          words(figure(median), { x: [Math.max(max, median)], y, dx: 7, className }),
          words(label, { y, frameAnchor: 'left', dx: -10, textAnchor: 'end', className: 'soft' }),
        );
        top += ROW;
      }
      if (group.bars.length > 1) top += 10;
    }
    marks.push(Plot.ruleX([0], { x: [0], y1: [begin], y2: [top], className: 'axis' }));
    top += 10;
  }
  const most = Math.max(...bars.map(({ max, median }) => Math.max(max, median))) || 1;
  const told = ({ median, label }: Bar): string => figure(median) + (label === undefined ? '' : ` at ${label}`);
  const section = ({ heading, groups: each }: Section): string =>
    `${heading === undefined ? '' : `${heading}. `}${each.map((one) => `${nameOf(one)}: ${one.bars.map(told).join(', ')}`).join('; ')}.`;
  return picture(chart, {
    description: [`${subtitle}.`, ...sections.map(section)].join(' '),
    contenders: groups,
    sign: (of, x, y) => [Plot.rect([0], { x1: [x], x2: [x + 18], y1: [y - 6], y2: [y + 6], ...looksOf(id, of) })],
    height: top,
    plot: {
      ...{ marginLeft: left, marginRight: right, marginTop: 0, marginBottom: 0 },
      ...{ x: { domain: [0, most], axis: null }, y: { type: 'identity', axis: null }, marks },
    },
  });
}

/** Filled if the queue is bounded, a square if there is none, a diamond if it loses. */
function dots(of: Contender, at: Plot.Options): Plot.Mark {
  const symbol = { bounded: 'circle', unbounded: 'circle', lossy: 'diamond', none: 'square' }[of.queue];
  const className = `${of.queue === 'bounded' ? 'fill' : 'hollow'} ${classOf(of)}`;
  return Plot.dot((at.x as number[]).map(Number), { ...at, symbol, r: classOf(of) === 'ours' ? 4 : 3, className });
}

/** Moves labels apart, and into the plot. */
function apart(wanted: readonly number[], bottom: number): number[] {
  const order = [...wanted.keys()].sort((a, b) => (wanted[a] as number) - (wanted[b] as number));
  const placed = [...wanted];
  let last = Number.NEGATIVE_INFINITY;
  for (const at of order) placed[at] = last = Math.max(placed[at] as number, last + 16);
  last = bottom + 16;
  for (const at of order.reverse()) placed[at] = last = Math.min(placed[at] as number, last - 16);
  return placed;
}

/** One line per contender on two logarithmic axes, or on two linear ones, with its name at its end. Ours is on top. */
export function lineChart(chart: LineChart): string {
  const { linear = false, subtitle, xName } = chart;
  const lines = [...chart.lines].sort((a, b) => Number(classOf(a) === 'ours') - Number(classOf(b) === 'ours'));
  const [xs, ys] = [
    lines.flatMap(({ points }) => points.map(({ x }) => x)),
    lines.flatMap(({ points }) => points.map(({ y }) => y)),
  ];
  const counts = [...new Set(xs)].sort((a, b) => a - b);
  const [height, left, right] = [390, 56, 224];
  const bottom = height - 44;
  const scale = {
    type: linear ? 'linear' : 'log',
    domain: [linear ? 0 : Math.min(...ys) / 1.15, Math.max(...ys) * (linear ? 1.05 : 1.15)],
    range: [bottom, 6],
  };
  const powers = [0.001, 0.01, 0.1, 1, 10, 100, 1_000, 10_000].filter((tick) => tick >= (scale.domain[0] ?? 0));
  const ticks = linear ? 5 : powers.filter((tick) => tick <= (scale.domain[1] ?? 0));
  const across = { type: scale.type, domain: [linear ? 0 : Math.min(...counts), Math.max(...counts)] };
  const y = Plot.scale({ y: scale });
  const beside = [Plot.scale({ x: { ...across, range: [left, WIDTH - right] } }).invert(WIDTH - right + 16)];
  const ends = lines.map(({ points }) => points.at(-1) as Line['points'][number]);
  const places = apart(
    ends.map((end) => y.apply(end.y)),
    bottom,
  );
  const marks = lines.flatMap((line, at) => {
    const [end, look] = [ends[at] as Line['points'][number], classOf(line)];
    const [x, up] = [line.points.map((point) => point.x), line.points.map((point) => point.y)];
    const place = [y.invert(places[at] as number)];
    return [
      Plot.link([0], { x1: [end.x], y1: [end.y], x2: beside, y2: place, className: 'leader' }),
      Plot.line(line.points, { x, y: up, className: `line ${look}` }),
      ...(look === 'control' || linear ? [] : [dots(line, { x, y: up })]),
      words(nameOf(line), { x: beside, y: place, dx: 5, className: look === 'ours' ? 'ours' : 'name' }),
    ];
  });
  const told = (line: Line): string =>
    line.points
      .filter((point) => point.y > 0)
      .map((point) => `${figure(point.y)} at ${whole(point.x)}`)
      .join(', ');
  return picture(chart, {
    description: `${subtitle}. By ${xName}. ${lines.map((line) => `${nameOf(line)}: ${told(line)}`).join('; ')}.`,
    contenders: chart.lines,
    sign: (of, x, at) => [
      Plot.link([0], { x1: [x], x2: [x + 18], y1: [at], y2: [at], className: `line ${classOf(of)}` }),
      dots(of, { x: [x + 9], y: [at] }),
    ],
    height,
    plot: {
      ...{ marginLeft: left, marginRight: right, marginTop: 6, marginBottom: 44 },
      x: across,
      y: scale,
      marks: [
        Plot.gridY({ className: 'grid', ticks }),
        Plot.axisY({ label: null, tickSize: 0, ticks, tickFormat: linear ? whole : String }),
        Plot.axisX({
          label: xName,
          labelAnchor: 'center',
          labelArrow: 'none',
          tickFormat: whole,
          ...(!linear && { ticks: counts }),
        }),
        ...marks,
      ],
    },
  });
}
