/**
 * Lines of columns. Their widths are those of the first lines that are printed together; later ones may only make them wider,
 * because printed lines stay. So a list of any length is printed page by page.
 */
export class AlignedColumns {
  readonly #widths: number[] = [];

  /** Returns these rows as lines. */
  lines(rows: readonly (readonly string[])[]): string {
    for (const row of rows) {
      for (const [at, cell] of row.entries()) this.#widths[at] = Math.max(this.#widths[at] ?? 0, cell.length);
    }
    const padded = rows.map((row) => row.map((cell, at) => cell.padEnd(this.#widths[at] ?? 0)));
    return padded.map((row) => `${row.join(GAP).trimEnd()}\n`).join('');
  }
}

const GAP = '   ';
