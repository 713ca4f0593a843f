import type { ChartInput, ChartRow, ChartTable } from './chart-input.ts';
import { digits } from './report.ts';
import type { Queue } from './workload.ts';

/** The width of every chart: that at which GitHub shows a picture in a README without shrinking it. */
export const WIDTH = 720;
export const MARGIN = 20;
/** The vertical centre of the legend's first row. */
export const LEGEND_TOP = 74;
const FOOTER_PITCH = 16;

/** How a contender is highlighted. Colour is never the only difference: shape, pattern or label differ, too. */
export type Role = 'ours' | 'control' | 'peer';

const CONTROL = /^bare loop$|ready lines|\bcontrol\b/i;

export function roleOf({ contender }: Pick<ChartRow, 'contender'>): Role {
  if (contender.startsWith('watchmux')) return 'ours';
  return CONTROL.test(contender) ? 'control' : 'peer';
}

/** The name of a row in charts. */
export function nameOf(row: Pick<ChartRow, 'contender'>): string {
  return roleOf(row) === 'control' && !/control/i.test(row.contender) ? `${row.contender} (control)` : row.contender;
}

/** The CSS class with the colours of a row. */
export function classOf(row: Pick<ChartRow, 'contender' | 'queue'>): string {
  const role = roleOf(row);
  return role === 'peer' ? row.queue : role;
}

const QUEUE_NAMES: Readonly<Record<Queue, string>> = {
  bounded: 'bounded queue',
  unbounded: 'unbounded queue',
  lossy: 'lossy',
  none: 'no queue: calls consumers',
};

/** Returns each look in a chart with its meaning, ours first. The control is named instead. */
export function looks<R extends Pick<ChartRow, 'contender' | 'queue'>>(
  rows: readonly R[],
): { readonly row: R; readonly label: string }[] {
  const queues = Object.keys(QUEUE_NAMES) as Queue[];
  const first = (role: Role, queue: Queue): R | undefined => rows.find((row) => roleOf(row) === role && row.queue === queue);
  return [
    ...queues.map((queue) => ({ row: first('ours', queue), label: `watchmux, ${QUEUE_NAMES[queue]}` })),
    ...queues.map((queue) => ({ row: first('peer', queue), label: QUEUE_NAMES[queue] })),
  ].flatMap(({ row, label }) => (row === undefined ? [] : [{ row, label }]));
}

const LIGHT = {
  page: '#ffffff',
  ink: '#1f2328',
  soft: '#59636e',
  grid: '#d8dee4',
  ours: '#0969da',
  warm: '#bc4c00',
  gray: '#6e7781',
};
const DARK = {
  page: '#0d1117',
  ink: '#e6edf3',
  soft: '#9198a1',
  grid: '#2b323b',
  ours: '#4493f8',
  warm: '#e0823d',
  gray: '#8b949e',
};

/** The colours for light and dark mode. Written out twice, because not every SVG renderer supports CSS variables. */
function theme({ page, ink, soft, grid, ours, warm, gray }: typeof LIGHT): string {
  return [
    `.page{fill:${page}}text{fill:${ink}}.soft{fill:${soft}}.grid{stroke:${grid}}.axis,.leader{stroke:${soft}}.whisker{stroke:${ink}}`,
    `.control{stroke:${ink}}.ours{stroke:${ours}}.bounded{stroke:${warm}}.unbounded,.lossy,.none{stroke:${gray}}`,
    `.fill.ours{fill:${ours}}.fill.bounded{fill:${warm}}.dot{fill:${gray};stroke:none}.hollow{fill:${page}}`,
    `text.ours{fill:${ours};stroke:none}`,
  ].join('');
}

const STYLE = [
  'text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;stroke:none}',
  '.title{font-size:16px;font-weight:600}.heading{font-weight:600}.small{font-size:11px}text.ours{font-weight:600}.end{text-anchor:end}.middle{text-anchor:middle}',
  '.grid,.axis,.leader,.whisker{stroke-width:1;fill:none}.leader{opacity:.6}.line{fill:none;stroke-width:1.5;stroke-linejoin:round}.line.ours{stroke-width:3}',
  '.line.none{stroke-dasharray:1 3;stroke-linecap:round}.line.control{stroke-dasharray:7 4}',
  '.fill,.hollow{stroke-width:1.5}.bar{fill:none;stroke-width:1.25}.bar.control{stroke-dasharray:5 3}',
  theme(LIGHT),
  `@media(prefers-color-scheme:dark){${theme(DARK)}}`,
].join('');

export interface Picture {
  /** Prefix of the ids in the chart, so that several charts can be inlined in one page. */
  readonly id: string;
  readonly title: string;
  readonly subtitle: string;
  /** The whole chart in words and numbers. */
  readonly description: string;
  readonly footer: readonly string[];
  /** Without the footer. */
  readonly height: number;
  readonly defs?: string | undefined;
  readonly body: readonly string[];
}

/**
 * A picture with a name and a description. It has its own light or dark background, because it follows the system's preference,
 * which may differ from that of the page around it.
 */
export function picture({ id, title, subtitle, description, footer, defs = '', body, ...rest }: Picture): string {
  const height = rest.height + footer.length * FOOTER_PITCH + 10;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="${id}-title ${id}-desc">`,
    `<title id="${id}-title">${escapeXml(title)}</title>`,
    `<desc id="${id}-desc">${escapeXml(description)}</desc>`,
    `<style>${STYLE}</style>`,
    ...(defs === '' ? [] : [`<defs>${defs}</defs>`]),
    `<rect class="page" width="${WIDTH}" height="${height}" rx="6"/>`,
    text(title, { x: MARGIN, y: 30, style: 'title' }),
    text(subtitle, { x: MARGIN, y: 50, style: 'soft' }),
    ...body,
    ...footer.map((line, at) => text(line, { x: MARGIN, y: rest.height + at * FOOTER_PITCH + 8, style: 'soft small' })),
    '</svg>\n',
  ].join('\n');
}

/** Escapes text from a file, and removes characters that XML does not allow. */
export function escapeXml(raw: string): string {
  return raw.replace(/[\p{Cc}\p{Cs}\uFFFE\uFFFF]/gu, ' ').replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

export function text(raw: string, { x, y, style = '' }: { x: number; y: number; style?: string | undefined }): string {
  return `<text x="${round(x)}" y="${round(y)}"${style === '' ? '' : ` class="${style}"`}>${escapeXml(raw)}</text>`;
}

export function round(pixels: number): number {
  return Math.round(pixels * 10) / 10;
}

/** Estimates the width of a text at 12 px, in a wide font; highlighted names are bold. */
export function widthOf(raw: string): number {
  return raw.length * (raw.startsWith('watchmux ') ? 7.9 : 7);
}

export interface LegendItem {
  /** Draws the symbol, 18 px wide and centred on y. */
  readonly sign: (x: number, y: number) => string;
  readonly label: string;
}

/** Symbols and their meanings, in as many rows as necessary. */
export function legend(
  items: readonly LegendItem[],
  top: number,
): { readonly parts: readonly string[]; readonly bottom: number } {
  let x = MARGIN;
  let y = top;
  const parts = items.flatMap(({ sign, label }) => {
    const width = 24 + widthOf(label) + 14;
    if (x + width > WIDTH && x > MARGIN) {
      x = MARGIN;
      y += 20;
    }
    const drawn = [sign(x, y), text(label, { x: x + 24, y: y + 4, style: 'soft' })];
    x += width;
    return drawn;
  });
  return { parts, bottom: y + 22 };
}

/** What the figures are, and where and when they were measured. */
export function footerOf(
  { node, cpu, cores, date }: ChartInput,
  { tables, spread }: { tables: readonly ChartTable[]; spread: string },
): readonly string[] {
  const counts = tables.flatMap(({ rows }) => rows.map(({ rounds }) => rounds.length));
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  const rounds = least === most ? `${least} rounds` : `${least} to ${most} rounds`;
  return [
    `Median of ${rounds}${spread}.`,
    `Node ${node.replace(/^v/, '')}, ${cores} cores, ${cpu.slice(0, 60)}, ${date.slice(0, 10)}.`,
  ];
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
