// Expressions that a native speaker would not write, in what is shipped: documents, comments, messages and examples.
import { describe, expect, test } from 'vitest';
import { DOCUMENTS, FILES, isText, readText } from './tracked.ts';

/** How often a file may use an expression, which may be spread over lines. */
const PHRASES: readonly (readonly [RegExp, number])[] = [
  [/\bwhoever\b/gi, 1],
  [/\bin two hands\b/gi, 0],
  [/\bhears no 410\b/gi, 0],
  [/\bis its own affair\b/gi, 0],
  [/\bone that is none\b/gi, 0],
  [/\bIt is also that\b/gi, 0],
  [/\bThose of them\b/gi, 0],
  [/(?<!\bthere )\b(?:is|are|was|were) no (?!(?:longer|more|less|other|fewer|slower|faster|one|use|such)\b)\w+/gi, 0],
];

const SHIPPED = [...new Set([...DOCUMENTS, ...FILES.filter((path) => /^(?:src|examples)\//.test(path) && isText(path))])].sort();

function tooMany(text: string): string[] {
  const line = text.replace(/\s*\n\s*(?:(?:\*|\/\/|#|>|-)\s+)?/g, ' ');
  return PHRASES.flatMap(([phrase, most]) => {
    const found = line.match(phrase) ?? [];
    return found.length > most ? [`${found[0]} (${found.length})`] : [];
  });
}

describe('expressions', () => {
  test('they are found, also over the end of a line of a comment', () => {
    const text = '// Whoever asks, and\n// whoever else. An option, one\n// that is none.\n/**\n * It is in two\n * hands.\n */';
    expect(tooMany(text)).toEqual(['Whoever (2)', 'in two hands (1)', 'one that is none (1)']);
    expect(tooMany('Whoever asks gets one of those. There is no other, and it is no longer.')).toEqual([]);
    expect(tooMany('// A gap is no\n// stop.')).toEqual(['is no stop (1)']);
  });

  test('none is in a text that is shipped', () => {
    expect(SHIPPED.length).toBeGreaterThan(350);
    expect(SHIPPED.flatMap((path) => tooMany(readText(path)).map((found) => `${path}: ${found}`))).toEqual([]);
  });
});
