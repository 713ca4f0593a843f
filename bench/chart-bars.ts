import type { ChartRow } from './chart-input.ts';
import {
  classOf,
  figure,
  LEGEND_TOP,
  legend,
  looks,
  MARGIN,
  nameOf,
  type Picture,
  picture,
  roleOf,
  round,
  text,
  WIDTH,
  widthOf,
} from './chart-parts.ts';

export interface Bar extends Pick<ChartRow, 'median' | 'min' | 'max'> {
  /** Text before the bar, if a contender has several. */
  readonly label?: string | undefined;
}

/** A contender and its bars. */
export interface Group extends Pick<ChartRow, 'contender' | 'queue'> {
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

export interface BarChart extends Pick<Picture, 'id' | 'title' | 'subtitle' | 'footer'> {
  readonly sections: readonly Section[];
}

const BAR = 14;
const ROW = 24;
const ROW_IN_GROUP = 19;
const NOTE_WIDTH = 96;
const VALUE_WIDTH = 56;
const CAP = 4;
const GAP = 12;

interface Columns {
  readonly id: string;
  /** X positions: the ends of names and labels, the start of bars, and the maximum length of a bar. */
  readonly names: number;
  readonly labels: number;
  readonly start: number;
  readonly length: number;
  /** The value of the longest bar. */
  readonly most: number;
}

function columnsOf({ id, sections }: BarChart): Columns {
  const groups = sections.flatMap((section) => section.groups);
  const bars = groups.flatMap((group) => group.bars);
  const names = MARGIN + Math.max(...groups.map((group) => widthOf(nameOf(group))));
  const widest = Math.max(...bars.map(({ label = '' }) => widthOf(label)));
  const labels = names + (widest === 0 ? 0 : widest + 14);
  const start = labels + 10;
  const length = WIDTH - MARGIN - NOTE_WIDTH - VALUE_WIDTH - start;
  return { id, names, labels, start, length, most: Math.max(...bars.map(({ max, median }) => Math.max(max, median))) || 1 };
}

/** The fill patterns of bars in each colour: hatched for unbounded queues, dotted for lossy ones. */
function patterns(id: string): string {
  return ['ours', 'peer']
    .flatMap((role) => {
      const look = role === 'ours' ? 'ours' : 'unbounded';
      return [
        `<pattern id="${id}-${role}-unbounded" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`,
        `<path class="${look}" stroke-width="2.5" d="M3 0V6"/></pattern>`,
        `<pattern id="${id}-${role}-lossy" width="5" height="5" patternUnits="userSpaceOnUse">`,
        `<circle class="fill ${role === 'ours' ? 'ours' : 'dot'}" stroke="none" cx="2.5" cy="2.5" r="1.2"/></pattern>`,
      ];
    })
    .join('');
}

type Box = { readonly x: number; readonly y: number; readonly width: number; readonly height: number };

/** Solid if bounded, hatched if unbounded, dotted if lossy, empty without a queue, dashed for the control. */
function box(id: string, row: Pick<ChartRow, 'contender' | 'queue'>, { x, y, width, height }: Box): string {
  const role = roleOf(row);
  const at = `x="${round(x)}" y="${round(y)}" width="${Math.max(1, round(width))}" height="${height}"`;
  if (role === 'control' || row.queue === 'none') return `<rect class="bar ${classOf(row)}" ${at}/>`;
  if (row.queue === 'bounded') return `<rect class="bar fill ${classOf(row)}" ${at}/>`;
  return `<rect class="bar ${classOf(row)}" style="fill:url(#${id}-${role}-${row.queue})" ${at}/>`;
}

/** Draws a bar, its spread and its value. */
function drawBar(
  { id, labels, start, length, most }: Columns,
  { group, bar, y }: { group: Group; bar: Bar; y: number },
): string[] {
  const at = (value: number): number => round(start + (Math.max(0, value) / most) * length);
  const middle = round(y + BAR / 2);
  const [least, greatest] = [at(bar.min), at(bar.max)];
  const style = classOf(group) === 'ours' ? 'ours' : undefined;
  return [
    box(id, group, { x: start, y, width: at(bar.median) - start, height: BAR }),
    `<path class="whisker" d="M${least} ${middle - CAP}v${2 * CAP}M${least} ${middle}H${greatest}M${greatest} ${middle - CAP}v${2 * CAP}"/>`,
    text(figure(bar.median), { x: Math.max(greatest, at(bar.median)) + 7, y: middle + 4, style }),
    ...(bar.label === undefined ? [] : [text(bar.label, { x: labels, y: middle + 4, style: 'soft end' })]),
  ];
}

/** Draws a contender's name, its bars below each other, and its note. Returns the drawing, and where the next group starts. */
function drawGroup(columns: Columns, group: Group, top: number): { readonly parts: readonly string[]; readonly bottom: number } {
  const { bars, note } = group;
  const several = bars.length > 1;
  const pitch = several ? ROW_IN_GROUP : ROW;
  const y = top + (pitch * bars.length) / 2 + 4;
  const style = classOf(group) === 'ours' ? 'end ours' : 'end';
  const parts = [
    text(nameOf(group), { x: columns.names, y, style }),
    text(note, { x: WIDTH - MARGIN, y, style }),
    ...bars.flatMap((bar, at) => drawBar(columns, { group, bar, y: top + at * pitch + (pitch - BAR) / 2 })),
  ];
  return { parts, bottom: top + pitch * bars.length + (several ? GAP : 0) };
}

function drawSection(columns: Columns, { heading, noteName, groups }: Section, top: number) {
  const parts = [text(noteName, { x: WIDTH - MARGIN, y: top + 14, style: 'soft end' })];
  if (heading !== undefined) parts.push(text(heading, { x: MARGIN, y: top + 14, style: 'heading' }));
  const from = top + 26;
  let y = from;
  for (const group of groups) {
    const drawn = drawGroup(columns, group, y);
    parts.push(...drawn.parts);
    y = drawn.bottom;
  }
  const to = (groups.at(-1)?.bars.length ?? 0) > 1 ? y - GAP : y;
  parts.push(`<path class="axis" d="M${columns.start} ${from}V${to}"/>`);
  return { parts, bottom: to + GAP };
}

function inWords({ subtitle, sections }: BarChart): string {
  const bar = ({ median, label }: Bar): string => (label === undefined ? figure(median) : `${figure(median)} at ${label}`);
  const group = (each: Group): string => `${nameOf(each)}: ${each.bars.map(bar).join(', ')}`;
  const section = ({ heading, groups }: Section): string =>
    `${heading === undefined ? '' : `${heading}. `}${groups.map(group).join('; ')}.`;
  return [`${subtitle}.`, ...sections.map(section)].join(' ');
}

/** Horizontal bars from 0, in the given order, with whiskers from the minimum to the maximum. */
export function barChart(chart: BarChart): string {
  const columns = columnsOf(chart);
  const rows = chart.sections.flatMap(({ groups }) => groups);
  const items = looks(rows).map(({ row, label }) => ({
    sign: (x: number, y: number) => box(chart.id, row, { x, y: y - 6, width: 18, height: 12 }),
    label,
  }));
  const { parts, bottom } = legend(items, LEGEND_TOP);
  const body = [...parts];
  let y = bottom;
  for (const section of chart.sections) {
    const drawn = drawSection(columns, section, y);
    body.push(...drawn.parts);
    y = drawn.bottom;
  }
  return picture({ ...chart, description: inWords(chart), height: y + GAP, defs: patterns(chart.id), body });
}
