// docs/limits.md says what an adversary may spend, line by line; each line names the test that holds it.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), 'utf8');

const [, part = ''] = read('docs/limits.md').split('## What an adversary may spend\n');
const budget = Array.from(part.matchAll(/^\|(.*)\|$/gm), ([, row = '']) => row.split('|').map((cell) => cell.trim())).slice(2);

test('the table has a line for each entry point', () => {
  expect(budget.length).toBeGreaterThan(15);
  for (const entry of ['list', 'watch', 'body', 'JSON patch', 'selector', 'pattern', '/metrics', 'hub', 'pipe', 'informer']) {
    expect([entry, budget.some(([what = '']) => what.includes(entry))]).toEqual([entry, true]);
  }
});

test.each(budget.map(([what, ...cells]): [string, string] => [String(what), String(cells.at(-1))]))(
  '%s: its test is there',
  (_, cell) => {
    const [, file = '', title = ''] = /^`(test\/[\w./-]+)`: (.+)$/.exec(cell) ?? [];
    expect([cell, existsSync(fileURLToPath(new URL(`../${file}`, import.meta.url)))]).toEqual([cell, true]);
    expect(read(file)).toContain(title);
  },
);
