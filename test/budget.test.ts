// docs/limits.md says what an adversary may spend, line by line; each line names the test that holds it.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../${path}`, import.meta.url)), 'utf8');

const [, part = ''] = read('docs/limits.md').split('## What an adversary may spend\n');
const budget = Array.from(part.matchAll(/^\|(.*)\|$/gm), ([, row = '']) => row.split('|').map((cell) => cell.trim())).filter(
  (cells) => cells.at(-1)?.startsWith('`test'),
);

test('the table has a line for each entry point', () => {
  expect(budget.length).toBeGreaterThan(15);
  for (const entry of ['list', 'watch', 'body', 'JSON patch', 'selector', 'pattern', '/metrics', 'hub', 'pipe', 'informer']) {
    expect([entry, budget.some(([what = '']) => what.includes(entry))]).toEqual([entry, true]);
  }
});

test.each(budget.map(([what, ...cells]): [string, string] => [String(what), String(cells.at(-1))]))(
  '%s: its test is there: %s',
  (_, cell) => {
    const [, file = '', title = ''] = /^`(test\/[\w./-]+)`: (.+)$/.exec(cell) ?? [];
    expect([cell, existsSync(fileURLToPath(new URL(`../${file}`, import.meta.url)))]).toEqual([cell, true]);
    const titles = read(file)
      .split('\n')
      .filter((line) => /(?:\b(?:test|it)\b.*\(|\bname: |^ *(?:\]\)\()?)['"`]/.test(line));
    expect([cell, titles.some((line) => line.includes(title))]).toEqual([cell, true]);
  },
);

/** What a line says, by the constants of a file. */
const FIGURES: readonly (readonly [entry: string, file: string, names: readonly string[]])[] = [
  ['all requests', 'src/apiserver/options.ts', ['maxConcurrentRequestsPerAddress', 'maxConcurrentRequestsPerTenant']],
  ['all requests', 'src/apiserver/options.ts', ['maxWritesPerSecondPerTenant']],
  ['API server: a selector', 'src/apiserver/options.ts', ['maxSelectorLength']],
  ['API server: a watch', 'src/apiserver/options.ts', ['maxWatchersPerTenant']],
  ['the options of a deletion', 'src/apiserver/http/verbs-over-http.ts', ['MAX_OPTIONS_BYTES']],
  ['a body, read', 'src/apiserver/request/json.ts', ['MAX_DEPTH', 'MAX_PARTS']],
  ['labels, annotations', 'src/apiserver/verbs/metadata.ts', ['MAX_MAP_ITEMS', 'MAX_FINALIZERS']],
  ['a JSON patch', 'src/apiserver/patch/patch.ts', ['MAX_OPERATIONS']],
  ['a pattern', 'src/apiserver/validation/patterns.ts', ['MAX_MATCHED_CHARS']],
  ['hub: a client', 'src/bridge/protocol.ts', ['maxClientsPerAddress']],
  ['hub: what', 'src/bridge/protocol.ts', ['maxInboundMessagesPerSecond']],
  ['hub: a snapshot', 'src/bridge/protocol.ts', ['maxSnapshots']],
  ['a connection', 'src/cli/server/server.ts', ['MAX_CONNECTIONS_PER_ADDRESS']],
];

test.each(FIGURES)('%s: as in %s', (entry, file, names) => {
  const row = budget.find(([what = '']) => what.includes(entry))?.join(' ');
  for (const name of names) {
    const [, value = ''] = new RegExp(`\\b${name}(?::| =) \\[?([\\d_]+)`).exec(read(file)) ?? [];
    expect(row).toMatch(new RegExp(`(?<![\\d,])${Number(value.replaceAll('_', '')).toLocaleString('en')}(?![\\d,])`));
  }
});
