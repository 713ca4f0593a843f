// What tests read of a document's Markdown.

/** The rows of all tables, each with its cells. */
export function tablesOf(page: string): string[][][] {
  const tables: string[][][] = [];
  let isInside = false;
  for (const line of page.split('\n')) {
    const [, row] = /^\s*\|(.*)\|$/.exec(line) ?? [];
    if (row !== undefined && !isInside) tables.push([]);
    isInside = row !== undefined;
    if (row !== undefined) tables.at(-1)?.push(row.split(/(?<!\\)\|/).map((cell) => cell.trim()));
  }
  return tables;
}

/** The cells of all tables, without their heads and the lines below them. */
export function cellsOf(page: string): string[] {
  return tablesOf(page).flatMap((rows) => rows.slice(2).flat());
}

/** The text without its blocks of code. */
export function withoutCode(page: string, instead: string = ''): string {
  return page.replace(/^( *)```.*?^\1```$/gms, instead);
}

/** The headings of a level, from 1 on. */
export function headingsOf(page: string, level: number): string[] {
  return Array.from(withoutCode(page).matchAll(/^(#+) (.*)$/gm), ([, signs = '', text = '']) => ({ signs, text }))
    .filter(({ signs }) => signs.length === level)
    .map(({ text }) => text);
}

/** A heading's anchor, as GitHub makes it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
