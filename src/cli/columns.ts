/** Two columns of text, each filled from the top independently; in colour on a terminal. */
export class Columns {
  private readonly write: (text: string) => void;
  private readonly colour: boolean;
  private readonly width: number;
  private readonly startMs: number = performance.now();

  constructor(output: { write(text: string): unknown; isTTY?: boolean; columns?: number }) {
    this.write = (text) => void output.write(`${text.trimEnd()}\n`);
    this.colour = output.isTTY === true && !process.env.NO_COLOR;
    this.width = Math.max(26, Math.min(48, Math.floor(((output.columns ?? 80) - 12) / 2)));
  }

  /** Writes a line across both columns. */
  line(text: string = ''): void {
    this.write(text);
  }

  head(left: readonly string[], right: readonly string[]): void {
    for (let row = 0; row < Math.max(left.length, right.length); row++) {
      this.write(`${' '.repeat(8)}  ${this.paint(this.fit(left[row] ?? ''), 'bold')}  ${this.paint(right[row] ?? '', 'bold')}`);
    }
    this.write(`${' '.repeat(8)}  ${'─'.repeat(this.width)}  ${'─'.repeat(this.width)}`);
  }

  left(text: string, style: Style): void {
    this.write(`${this.time()}  ${this.paint(this.fit(text), style)}`);
  }

  right(text: string, style: Style): void {
    this.write(`${this.time()}  ${' '.repeat(this.width)}  ${this.paint(text, style)}`);
  }

  private time(): string {
    return this.paint(`${((performance.now() - this.startMs) / 1000).toFixed(2)} s`.padStart(8), 'dim');
  }

  private fit(text: string): string {
    return text.length > this.width ? `${text.slice(0, this.width - 1)}…` : text.padEnd(this.width);
  }

  private paint(text: string, style: Style): string {
    return this.colour ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text;
  }
}

/** How a text is highlighted. */
export type Style = 'added' | 'changed' | 'removed' | 'lost' | 'bold' | 'dim';

const CODES: Readonly<Record<Style, string>> = { added: '32', changed: '33', removed: '31', lost: '1;35', bold: '1', dim: '2' };
