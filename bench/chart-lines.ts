import type { ChartRow } from './chart-input.ts';
import {
  classOf,
  figure,
  LEGEND_TOP,
  type LegendItem,
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
  whole,
} from './chart-parts.ts';

/** One contender's line. Points are in order of x; both numbers are greater than 0, or at least 0 on linear axes. */
export interface Line extends Pick<ChartRow, 'contender' | 'queue'> {
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

export interface LineChart extends Pick<Picture, 'id' | 'title' | 'subtitle' | 'footer'> {
  readonly lines: readonly Line[];
  readonly xName: string;
  /** Whether both axes are linear, from 0: a course over time, whose points are too many to be marked. */
  readonly linear?: boolean;
}

const LABEL_PITCH = 16;
const LEFT = 56;
const LABELS_WIDTH = 196;
const LEADER = 22;
const PLOT_HEIGHT = 330;
const AXIS_HEIGHT = 56;

interface Scale {
  readonly of: (value: number) => number;
  readonly low: number;
  readonly high: number;
}

function logScale(values: readonly number[], { from, to, room = 1 }: { from: number; to: number; room?: number }): Scale {
  const low = Math.min(...values) / room;
  const high = Math.max(...values) * room;
  const span = Math.log(high / low) || 1;
  return { low, high, of: (value) => from + ((to - from) * Math.log(value / low)) / span };
}

function linearScale(values: readonly number[], { from, to, room = 1 }: { from: number; to: number; room?: number }): Scale {
  const high = Math.max(...values) * room || 1;
  return { low: 0, high, of: (value) => from + ((to - from) * value) / high };
}

/** Round numbers from 0 on, five at most. */
function linearTicks({ high }: Scale): number[] {
  const power = 10 ** Math.floor(Math.log10(high));
  const step = [0.2, 0.5, 1, 2].map((each) => each * power).find((each) => high / each <= 5) as number;
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, at) => at * step);
}

/** Round numbers within a scale: powers of ten, and 2 and 5 times those if there are few. */
function ticks({ low, high }: Scale): number[] {
  const steps = high / low < 1000 ? [1, 2, 5] : [1];
  const all: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const step of steps) all.push(step * 10 ** power);
  }
  return all.filter((tick) => tick >= low && tick <= high);
}

/** Moves labels as little as necessary to keep them apart and within the plot. */
export function spread(
  wanted: readonly number[],
  { pitch, top, bottom }: { pitch: number; top: number; bottom: number },
): number[] {
  const order = wanted.map((_, at) => at).sort((a, b) => (wanted[a] as number) - (wanted[b] as number));
  // Labels that touch form a group, centred on the mean of their wanted positions. A new label enlarges the group, which may then
  // join the group above.
  const groups: { members: number[]; sum: number }[] = [];
  const edge = (group: { members: number[]; sum: number }): number => {
    const height = (group.members.length - 1) * pitch;
    return Math.min(Math.max(group.sum / group.members.length - height / 2, top), Math.max(top, bottom - height));
  };
  for (const at of order) {
    groups.push({ members: [at], sum: wanted[at] as number });
    for (;;) {
      const [above, last] = groups.slice(-2);
      if (above === undefined || last === undefined || edge(above) + above.members.length * pitch <= edge(last)) break;
      groups.splice(-2, 2, { members: [...above.members, ...last.members], sum: above.sum + last.sum });
    }
  }
  const placed: number[] = [];
  for (const group of groups) for (const [at, member] of group.members.entries()) placed[member] = edge(group) + at * pitch;
  return placed;
}

/** A point of a line: filled if the queue is bounded, a square if there is no queue. */
function marker({ contender, queue }: Pick<Line, 'contender' | 'queue'>, x: number, y: number): string {
  const [at, up] = [round(x), round(y)];
  const look = `class="${queue === 'bounded' ? 'fill' : 'hollow'} ${classOf({ contender, queue })}"`;
  if (queue === 'none') return `<rect ${look} x="${round(x - 2.5)}" y="${round(y - 2.5)}" width="5" height="5"/>`;
  if (queue === 'lossy')
    return `<path ${look} d="M${round(x - 4)} ${up}L${at} ${round(y - 4)}L${round(x + 4)} ${up}L${at} ${round(y + 4)}Z"/>`;
  return `<circle ${look} cx="${at}" cy="${up}" r="${roleOf({ contender }) === 'ours' ? 4 : 3}"/>`;
}

function sign(row: Pick<Line, 'contender' | 'queue'>): LegendItem['sign'] {
  return (x, y) => {
    const line = `<path class="line ${classOf(row)}" d="M${x} ${y}H${x + 18}"/>`;
    return line + marker(row, x + 9, y);
  };
}

/** The area and the scales of the plot. */
interface Plot {
  readonly x: Scale;
  readonly y: Scale;
  readonly bottom: number;
  readonly linear: boolean;
}

const RIGHT = WIDTH - MARGIN - LABELS_WIDTH;

function axes({ x, y, bottom, linear }: Plot, { counts, xName }: { counts: readonly number[]; xName: string }): string[] {
  return [
    ...(linear ? linearTicks(y) : ticks(y)).flatMap((tick) => {
      const at = round(y.of(tick));
      const label = linear ? whole(+tick.toPrecision(2)) : String(+tick.toPrecision(1));
      return [`<path class="grid" d="M${LEFT} ${at}H${RIGHT}"/>`, text(label, { x: LEFT - 8, y: at + 4, style: 'soft end' })];
    }),
    ...(linear ? linearTicks(x).map((tick) => +tick.toPrecision(2)) : counts).flatMap((count) => {
      const at = round(x.of(count));
      return [`<path class="axis" d="M${at} ${bottom}v5"/>`, text(whole(count), { x: at, y: bottom + 20, style: 'soft middle' })];
    }),
    `<path class="axis" d="M${LEFT} ${bottom}H${RIGHT}"/>`,
    text(xName, { x: (LEFT + RIGHT) / 2, y: bottom + 38, style: 'soft middle' }),
  ];
}

/** The last point of a line. Every line has one. */
function endOf({ points }: Line): Line['points'][number] {
  return points.at(-1) as Line['points'][number];
}

/** Draws a line, its points, and its name next to its end. */
function drawLine(line: Line, { x, y, linear }: Plot, labelY: number): string {
  const places = line.points.map((point) => ({ left: round(x.of(point.x)), top: round(y.of(point.y)) }));
  const end = endOf(line);
  const look = classOf(line);
  return [
    `<g><path class="leader" d="M${round(x.of(end.x) + 6)} ${round(y.of(end.y))}L${RIGHT + LEADER - 5} ${round(labelY)}"/>`,
    `<path class="line ${look}" d="M${places.map(({ left, top }) => `${left} ${top}`).join('L')}"/>`,
    ...(look === 'control' || linear ? [] : places.map(({ left, top }) => marker(line, left, top))),
    `${text(nameOf(line), { x: RIGHT + LEADER, y: labelY + 4, style: look === 'ours' ? 'ours' : undefined })}</g>`,
  ].join('\n');
}

function inWords({ subtitle, lines, xName }: LineChart): string {
  const told = ({ points }: Line): Line['points'] => points.filter(({ y }) => y > 0);
  const line = (each: Line): string =>
    `${nameOf(each)}: ${told(each)
      .map((point) => `${figure(point.y)} at ${whole(point.x)}`)
      .join(', ')}`;
  return `${subtitle}. By ${xName}. ${lines.map(line).join('; ')}.`;
}

/** One line per contender on two logarithmic axes, or on two linear ones, with its name at its end. Ours are drawn last, on top of the others. */
export function lineChart(chart: LineChart): string {
  const lines = [...chart.lines].sort((a, b) => Number(roleOf(a) === 'ours') - Number(roleOf(b) === 'ours'));
  const points = lines.flatMap((line) => line.points);
  const counts = [...new Set(points.map((point) => point.x))].sort((a, b) => a - b);
  const items = looks(chart.lines).map(({ row, label }) => ({ sign: sign(row), label }));
  const { parts, bottom: top } = legend(items, LEGEND_TOP);
  const bottom = top + PLOT_HEIGHT;
  const heights = points.map((point) => point.y);
  const { linear = false } = chart;
  const plot: Plot = {
    x: linear ? linearScale(counts, { from: LEFT, to: RIGHT - 8 }) : logScale(counts, { from: LEFT, to: RIGHT - 8 }),
    y: linear
      ? linearScale(heights, { from: bottom, to: top, room: 1.05 })
      : logScale(heights, { from: bottom - 4, to: top, room: 1.15 }),
    bottom,
    linear,
  };
  const wanted = lines.map((line) => plot.y.of(endOf(line).y));
  const labels = spread(wanted, { pitch: LABEL_PITCH, top, bottom });
  return picture({
    ...chart,
    description: inWords(chart),
    height: bottom + AXIS_HEIGHT,
    body: [
      ...parts,
      ...axes(plot, { counts, xName: chart.xName }),
      ...lines.map((line, at) => drawLine(line, plot, labels[at] as number)),
    ],
  });
}
