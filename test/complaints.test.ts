import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const here = new URL('.', import.meta.url);
const sections = readFileSync(new URL('complaints.md', here), 'utf8')
  .split(/^## /m)
  .slice(1)
  .map((section) => ({ heading: section.split('\n', 1)[0] as string, rows: rowsOf(section) }));

function rowsOf(section: string): { file: string; title: string }[] {
  return section
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| excluded by'))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(([, , file = '', title = '']) => ({ file: file.replaceAll('`', ''), title }));
}

/** The titles of the tests of a file, as they are written there: behind `it(`, or behind the table of an `it.each`. */
function titlesOf(file: string): string[] {
  return found(file, /(?:\b(?:it|test)|\))\(\s*(['"`])([^\n]*?)\1,/g);
}

/** The same for titles that are in such a table: they come first in a row. */
function casesOf(file: string): string[] {
  return found(file, /\[\s*(['"`])([^\n]*?)\1,/g);
}

function found(file: string, pattern: RegExp): string[] {
  const source = readFileSync(new URL(file, here), 'utf8');
  return [...source.matchAll(pattern)].map((match) => match[2] as string);
}

describe('the ten complaints', () => {
  it('have a section each, which begins with a history of the complaint itself', () => {
    expect(sections.map(({ heading }) => Number.parseInt(heading, 10))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for (const { rows } of sections) expect(rows[0]?.file).toBe('unit/complaints.test.ts');
  });

  it('are shown by every test of the file that tells their histories', () => {
    const listed = sections.flatMap(({ rows }) => rows).filter(({ file }) => file === 'unit/complaints.test.ts');
    expect(listed.map(({ title }) => title).sort()).toEqual(titlesOf('unit/complaints.test.ts').sort());
  });

  it.each(sections)('$heading', ({ rows }) => {
    for (const { file, title } of rows) expect([...titlesOf(file), ...casesOf(file)], file).toContain(title);
  });
});
