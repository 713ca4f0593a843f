// What an accident leaves behind: markers of a merge, notes of an author, placeholders.
import { describe, expect, test } from 'vitest';
import { FILES, isText, readText, walk } from './tracked.ts';

/** Names that stand for the one who publishes the package, and the files that may say them. CONTRIBUTING.md explains them. */
const PLACEHOLDERS: readonly (readonly [RegExp, readonly string[]])[] = [
  [/\bOWNER\b/, []],
  [/\bgithub\.com\/you\b/, ['CONTRIBUTING.md', 'config/release.mjs']],
];

const NOTES = /\b(?:TO-?DO|FIX-?ME|X{3,}|TBD|TBC|WIP|HACK|CHANGE-?ME)\b|\blorem ipsum\b|<(?:your|insert|placeholder)\b[^>\n]*>/;

/** All but lists of other people's packages, and this file, which has to name what it looks for. */
const OURS = FILES.filter((path) => !/(?:^|\/)(?:package-lock\.json|go\.sum|Cargo\.lock|accidents\.test\.ts)$/.test(path));

function linesWith(text: string, what: RegExp): number[] {
  return text.split('\n').flatMap((line, at) => (what.test(line) ? [at + 1] : []));
}

/** Lines that a merge writes around what it could not merge. No text here underlines a heading with seven signs. */
const markersIn = (text: string): number[] => linesWith(text, /^(?:<{7}|>{7}|\|{7})(?: |\r?$)|^={7}\r?$/);

/** Where something is in our files: `file:line`. */
function placesOf(find: (text: string) => number[], files: readonly string[]): string[] {
  return files.filter(isText).flatMap((path) => find(readText(path)).map((line) => `${path}:${line}`));
}

describe('markers of a merge', () => {
  const marker = (sign: string): string => sign.repeat(7);

  test('all four are found, alone and together', () => {
    const conflict = [`${marker('<')} HEAD`, 'a', `${marker('|')} base`, 'b', marker('='), 'c', `${marker('>')} 08230eb`];
    expect(markersIn(conflict.join('\n'))).toEqual([1, 3, 5, 7]);
    expect(markersIn(conflict.join('\r\n'))).toEqual([1, 3, 5, 7]);
    for (const sign of '<>|=') expect(markersIn(`a\n${marker(sign)}\n`), sign).toEqual([2]);
  });

  test('what only looks like one is left alone', () => {
    for (const line of [' <<<<<<< a', '<<<<<<<<', '=======-', '========', 'a >>>>>>> b', '|||', '> > >'])
      expect(markersIn(line), line).toEqual([]);
  });

  test('none is in any file', () => {
    expect(placesOf(markersIn, FILES)).toEqual([]);
  });
});

describe('notes and placeholders', () => {
  test('they are found', () => {
    for (const note of ['TODO', 'FIXME', 'XXX', 'TBD', 'CHANGEME', 'lorem ipsum', '<your name>'])
      expect(linesWith(`a\n// ${note}: b`, NOTES), note).toEqual([2]);
    for (const text of ['a todo list', 'XX', '<version>', 'hacks']) expect(linesWith(text, NOTES), text).toEqual([]);
  });

  test('none is in any file', () => {
    expect(placesOf((text) => linesWith(text, NOTES), OURS)).toEqual([]);
  });

  test.each(PLACEHOLDERS)('%s is only where it is explained', (word, files) => {
    expect(OURS.filter((path) => isText(path) && word.test(readText(path)))).toEqual(files);
  });
});

describe('the list of files', () => {
  test('has all that is read and run, and nothing that is installed or built', () => {
    expect(FILES.length).toBeGreaterThan(1_000);
    for (const path of ['README.md', 'src/index.ts', '.ci/run', 'test/accidents.test.ts']) expect(FILES).toContain(path);
    expect(FILES.filter((path) => /^(?:dist|reports)\/|(?:^|\/)node_modules\//.test(path))).toEqual([]);
  });

  test('is the same without git, apart from what git ignores', () => {
    const walked = new Set(walk());
    expect(FILES.filter((path) => !walked.has(path))).toEqual([]);
  });
});
