// What tests read of a document's Markdown.

/** The cells of all tables, without their heads and the lines below them. */
export function cellsOf(page: string): string[] {
  const cells: string[] = [];
  let place = 0;
  for (const line of page.split('\n')) {
    place = /^\s*\|.*\|$/.test(line) ? place + 1 : 0;
    if (place > 2)
      cells.push(
        ...line
          .trim()
          .slice(1, -1)
          .split(/(?<!\\)\|/),
      );
  }
  return cells.map((cell) => cell.trim());
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
