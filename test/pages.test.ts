// Documents can be read: no table has a paragraph in a cell, and a long page begins with a list of its sections.
import { describe, expect, test } from 'vitest';
import { anchorOf, cellsOf, headingsOf, tablesOf, withoutCode } from './markdown.ts';
import { DOCUMENTS, readText } from './tracked.ts';

/** Characters from which a cell is a paragraph. */
const TOO_LONG = 200;
/** Lines up to which a page needs no list of its sections, and lines within which it has to be. */
const SHORT_PAGE = 230;
const TOP = 40;

const longCells = (page: string): string[] => cellsOf(page).filter((cell) => cell.length >= TOO_LONG);

/** The rows that have more or fewer cells than the head of their table. */
const crookedRows = (page: string): string[] =>
  tablesOf(withoutCode(page)).flatMap(([head, ...rows]) =>
    rows.filter((row) => row.length !== head?.length).map((row) => row.join(' | ').slice(0, 80)),
  );

/** The sections that are not in the list at the top, in their order; none if the page is short. */
function unlisted(page: string): string[] {
  const lines = page.trimEnd().split('\n');
  if (lines.length <= SHORT_PAGE) return [];
  const links = Array.from(
    lines
      .slice(0, TOP)
      .join('\n')
      .matchAll(/\]\(#([^)]+)\)/g),
    ([, anchor = '']) => anchor,
  );
  const anchors = headingsOf(page, 2).map(anchorOf);
  const missing = anchors.filter((anchor) => !links.includes(anchor));
  const order = [...new Set(links)].filter((link) => anchors.includes(link));
  if (missing.length === 0 && order.join() !== anchors.join()) return ['in another order'];
  return missing;
}

describe('documents', () => {
  test('a long cell is found', () => {
    const row = (length: number): string => `| a | b |\n|---|---|\n| c | ${'x'.repeat(length)} |\n`;
    expect([longCells(row(199)).length, longCells(row(200)).length]).toEqual([0, 1]);
  });

  test('a row that is not like the others is found', () => {
    expect(crookedRows('| a | b |\n|---|---|\n| c | `\\|` |\n\n| d |\n|---|\n| e |\n')).toEqual([]);
    expect(crookedRows('| a | b |\n|---|---|\n| c |\n| d | e | f |\n')).toEqual(['c', 'd | e | f']);
  });

  test('a section that is not listed is found', () => {
    const page = (list: string, lines: number = 240): string =>
      `# A\n\n${list}\n\n## One\n\n\`\`\`sh\n## no heading\n\`\`\`\n\n## The \`two\`, and more\n${'x\n'.repeat(lines)}`;
    expect(unlisted(page('[One](#one), [two](#the-two-and-more)'))).toEqual([]);
    expect(unlisted(page('[One](#one), [two](#the-two-and-more). See [One](#one)'))).toEqual([]);
    expect(unlisted(page('[One](#one)'))).toEqual(['the-two-and-more']);
    expect(unlisted(page('[two](#the-two-and-more), [One](#one)'))).toEqual(['in another order']);
    expect(unlisted(page(`${'x\n'.repeat(40)}[One](#one), [two](#the-two-and-more)`))).toHaveLength(2);
    expect(unlisted(page('', 100))).toEqual([]);
  });

  test('no cell of a table is a paragraph', () => {
    const found = DOCUMENTS.flatMap((path) => longCells(readText(path)).map((cell) => `${path}: ${cell.slice(0, 60)}`));
    expect(found).toEqual([]);
  });

  test.each(DOCUMENTS)('%s has whole tables', (path) => {
    expect(crookedRows(readText(path))).toEqual([]);
  });

  test.each(DOCUMENTS)('%s begins with its sections, if it is long', (path) => {
    expect(unlisted(readText(path))).toEqual([]);
  });
});
