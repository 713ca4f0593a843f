import { dotted } from '../../pages/words.ts';

/** The part of standard output that {@link DemoColumns} needs. */
interface ColumnsOutput {
  write(text: string): unknown;
  readonly isTTY: boolean;
  /** Width in characters. */
  readonly columns: number;
}

/** Width of the time before each line, with its two spaces. */
const TIME_WIDTH = 10;
/** Width of the space between the columns. */
const GAP = '  ';

/**
 * Two columns of text, each filled from the top independently; in colour on a terminal. There, a panel stays in view below them:
 * it is erased before each line and drawn again after it. The lines above scroll as usual, and remain when the panel is removed.
 * A dumb terminal, which does not understand sequences, is written to like a file.
 */
export class DemoColumns {
  private readonly output: ColumnsOutput;
  private readonly isTerminal: boolean;
  private readonly colour: boolean;
  private readonly startMs: number = performance.now();
  private panel: () => readonly string[] = () => [];
  /** Lines of the panel on the screen now. */
  private drawn: number = 0;

  constructor(output: ColumnsOutput) {
    this.output = output;
    const { NO_COLOR, TERM } = process.env;
    this.isTerminal = output.isTTY && TERM !== 'dumb';
    this.colour = this.isTerminal && !NO_COLOR;
  }

  get width(): number {
    return Math.max(26, Math.min(48, Math.floor((this.output.columns - TIME_WIDTH - GAP.length) / 2)));
  }

  /** Seconds since the start. */
  get seconds(): number {
    return (performance.now() - this.startMs) / 1_000;
  }

  /** Keeps these lines in view below the columns, if the output is a terminal. An empty panel removes it. */
  keep(panel: () => readonly string[]): void {
    this.panel = panel;
    this.refresh();
  }

  /** Draws the panel again. */
  refresh(): void {
    if (this.isTerminal) this.output.write(this.erased() + this.shown());
  }

  /** Writes a line across both columns. */
  line(text: string = ''): void {
    this.output.write(`${this.erased()}${text.trimEnd()}\n${this.shown()}`);
  }

  /** A line of two cells, below an empty time. */
  pair(left: string, right: string): string {
    return `${' '.repeat(TIME_WIDTH)}${this.fit(left)}${GAP}${this.fit(right).trimEnd()}`;
  }

  head(left: readonly string[], right: readonly string[]): void {
    for (let row = 0; row < Math.max(left.length, right.length); row++) this.line(this.pair(left[row] ?? '', right[row] ?? ''));
    this.line(this.pair('─'.repeat(this.width), '─'.repeat(this.width)));
  }

  left(text: string, style: Style): void {
    this.line(`${this.time()}${this.paint(this.fit(text), style)}`);
  }

  right(text: string, style: Style): void {
    this.line(`${this.time()}${' '.repeat(this.width)}${GAP}${this.paint(this.fit(text).trimEnd(), style)}`);
  }

  /** Puts a text at the left edge of a column, and another one at its right edge. */
  apart(left: string, right: string): string {
    const room = this.width - right.length - 1;
    return `${cut(left, room).padEnd(room)} ${right}`;
  }

  private time(): string {
    return `${this.paint(`${this.seconds.toFixed(2)} s`.padStart(TIME_WIDTH - GAP.length), 'dim')}${GAP}`;
  }

  private fit(text: string): string {
    return cut(text, this.width).padEnd(this.width);
  }

  private erased(): string {
    const { drawn } = this;
    this.drawn = 0;
    return drawn === 0 ? '' : `\r\u001b[${drawn}A\u001b[J`;
  }

  private shown(): string {
    if (!this.isTerminal) return '';
    // A line that wraps would take two, and only one would be erased.
    const lines = this.panel().map((line) => cut(line, this.output.columns - 1).trimEnd());
    this.drawn = lines.length;
    return lines.map((line) => `${this.paint(line, 'bold')}\n`).join('');
  }

  private paint(text: string, style: Style): string {
    return this.colour ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text;
  }
}

/** How a text is highlighted. */
export type Style = 'added' | 'changed' | 'removed' | 'lost' | 'bold' | 'dim';

const CODES: Readonly<Record<Style, string>> = { added: '32', changed: '33', removed: '31', lost: '1;35', bold: '1', dim: '2' };

/** A bar of `cells` characters: how full a queue is. A queue that is not empty shows at least one. */
export function gauge(queued: number, capacity: number, cells: number): string {
  const full = Math.min(cells, Math.ceil((queued / capacity) * cells));
  return `[${'#'.repeat(full)}${'.'.repeat(cells - full)}]`;
}

/** Shortens a text, and replaces characters that a terminal would act on: file names may contain anything. */
function cut(text: string, width: number): string {
  const shown = text.length > width ? `${text.slice(0, width - 1)}…` : text;
  return dotted(shown);
}
