// What README.md and docs/ say matches the code; their links lead somewhere.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { ApiServer } from '../src/apiserver/index.ts';
import { Hub } from '../src/bridge/hub/hub.ts';
import { DEFAULTS } from '../src/bridge/protocol.ts';
import { MemoryStorage } from '../src/storage/index.ts';
import { GUARANTEES } from '../src/testing/checkers/guarantees.ts';
import { OVERFLOWS } from '../src/watch/overflow.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const pages = readdirSync(join(root, 'docs')).map((file) => `docs/${file}`);
const documents = [...readdirSync(root).filter((file) => file.endsWith('.md')), ...pages];

const section = (text: string, heading: string): string =>
  text.split(/^##+ /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
/** A table's rows, without its head. */
const rows = (text: string): string[][] =>
  Array.from(text.matchAll(/^\s*(?:\* )?\|(.*)\|$/gm), ([, row = '']) => row.split('|').map((cell) => cell.trim())).slice(2);

describe('the facts in the documents', () => {
  test('README.md is short', () => {
    expect(Buffer.byteLength(read('README.md'))).toBeLessThanOrEqual(14_000);
  });

  test('the index and README.md name every page', () => {
    const others = pages.filter((page) => page !== 'docs/README.md');
    expect(others.length).toBeGreaterThan(10);
    expect(others.filter((page) => !read('README.md').includes(`](${page})`))).toEqual([]);
    expect(others.filter((page) => !read('docs/README.md').includes(`](${posix.basename(page)})`))).toEqual([]);
  });

  test('links lead to files and headings that exist', () => {
    /** A heading's anchor, as GitHub makes it. */
    const anchorOf = (heading: string): string =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-');
    const anchors = (path: string): string[] => Array.from(read(path).matchAll(/^#+ (.*)$/gm), ([, text = '']) => anchorOf(text));
    let count = 0;
    const broken = documents.flatMap((document) =>
      Array.from(read(document).matchAll(/\]\(([^)\s:]+)\)/g), ([, link = '']) => {
        count++;
        const [file = '', anchor] = link.split('#');
        const path = file === '' ? document : posix.join(dirname(document), file);
        const leads = existsSync(join(root, path)) && (anchor === undefined || anchors(path).includes(anchor));
        return leads ? [] : [`${document}: ${link}`];
      }).flat(),
    );
    expect(broken).toEqual([]);
    expect(count).toBeGreaterThan(60);
  });

  test('the guarantees are those of the checkers', () => {
    const listed = Array.from(
      read('docs/guarantees.md').matchAll(/^- \*\*(\w+)\.\*\* (.*(?:\n {2}.*)*)/gm),
      ([, name, text = '']) => [name, text.replaceAll('\n  ', ' ')],
    );
    expect(Object.fromEntries(listed)).toEqual(GUARANTEES);
  });

  test('the list of errors matches the table in the code', () => {
    const listed = Array.from(
      section(read('docs/embed.md'), 'Errors').matchAll(/^- \*\*(`\w+`):\*\* (.*(?:\n {2}.*)*)/gm),
      ([, code, text = '']) => {
        const [when, data = ''] = text.replaceAll('\n  ', ' ').replace(/\.$/, '').split('. Data: ');
        return [code, when, data];
      },
    );
    expect(listed.length).toBeGreaterThan(4);
    expect(listed).toEqual(rows(read('src/watch/errors.ts')));
  });

  test('the policies are all in their table, in the order of the code, and README.md names them all', () => {
    const policies = OVERFLOWS.map((policy) => `\`${policy}\``);
    expect(rows(read('docs/policies.md')).map(([policy]) => policy)).toEqual(policies);
    const listed =
      section(read('README.md'), 'Overflow policies')
        .match(/^- .*$/gm)
        ?.join() ?? '';
    expect(policies.filter((policy) => !listed.includes(policy))).toEqual([]);
  });

  test('the limits match the code', () => {
    const [hub = '', client = ''] = read('docs/limits.md').split('\n## Client\n');
    const table = new Map(rows(hub).map(([name, , value]) => [name?.replaceAll('`', ''), value]));
    // These two are part of the protocol, and nobody's option.
    const { maxParameterChars, retryMs, ...options } = DEFAULTS;
    expect([maxParameterChars, retryMs]).toEqual([256, 2_000]);
    for (const [name, value] of Object.entries(options)) {
      expect(`${name} ${table.get(name)}`).toBe(`${name} ${value.toLocaleString('en')}`);
    }
    const numbers = (
      path: string,
      names: readonly string[],
      found: ReadonlyMap<string | undefined, string | undefined>,
    ): void => {
      for (const name of names) {
        const [, value] = new RegExp(`\\b${name}(?: =|:) ([\\d_]+)`).exec(read(path)) ?? [];
        expect(`${name} ${found.get(name)}`).toBe(`${name} ${Number(value?.replaceAll('_', '')).toLocaleString('en')}`);
      }
    };
    numbers('src/broadcast/broadcaster.ts', ['capacity', 'incoming', 'maxPending'], table);
    const own = new Map(rows(client).map(([name, value]) => [name?.replaceAll('`', ''), value]));
    numbers('src/bridge/client/connect.ts', ['capacity', 'maxBufferedBytes', 'maxFrameChars', 'connectTimeoutMs'], own);
  });

  test('the metrics are those of a hub and of pipe', () => {
    const table = rows(section(read('docs/monitoring.md'), 'Metrics of a hub'));
    const listed = table.flatMap(([names = '', types = '']) =>
      Array.from(names.matchAll(/`(\w+)(?:\{\w+\})?`/g), ([, name]) => `watchmux_${name} ${types}`),
    );
    const page = new Hub().metrics();
    const served = Array.from(page.matchAll(/^# TYPE (.*)$/gm), ([, metric]) => metric);
    const pipe = Array.from(
      read('src/cli/server/server.ts').matchAll(/counter\('(\w+)'/g),
      ([, name]) => `watchmux_${name} counter`,
    );
    expect(pipe).toHaveLength(2);
    expect(listed).toEqual([...served, ...pipe]);
  });

  test('the metrics, limits and events of an API server are those of the code', async () => {
    const monitoring = read('docs/monitoring.md');
    const listed = rows(section(monitoring, 'Metrics of an API server')).flatMap(([names = '', type = '']) =>
      Array.from(names.matchAll(/`(\w+)(?:\{\w+\})?`/g), ([, name]) => `watchmux_apiserver_${name} ${type}`),
    );
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [] });
    await server.ready;
    expect(listed).toEqual(Array.from(server.metrics.matchAll(/^# TYPE (.*)$/gm), ([, metric]) => metric));
    await server.shutdown();
    const options = read('src/apiserver/options.ts');
    for (const [page, heading] of [
      ['docs/operation.md', 'Limits per address and tenant'],
      ['docs/apiserver.md', 'Limits'],
    ] as const) {
      const cells = rows(section(read(page), heading))
        .flat()
        .join(' ');
      expect(cells).toContain('`maxWatchersPerTenant`');
      for (const [, name = ''] of cells.matchAll(/`(max\w+|\w+Ms)`/g)) {
        const [, shared, value] = new RegExp(`\\b${name}: \\{ default: (?:DEFAULTS\\.(\\w+)|([\\d_]+))`).exec(options) ?? [];
        const told = new Map<string | undefined, number>(Object.entries(DEFAULTS)).get(shared) ?? value?.replaceAll('_', '');
        // These two are given in MiB.
        if (told !== undefined && !['maxBodyBytes', 'maxBufferedBytes'].includes(name)) {
          expect(cells).toContain(Number(told).toLocaleString('en'));
        }
      }
    }
    const events = rows(section(monitoring, 'Logs of an API server')).flatMap(([names = '']) =>
      Array.from(names.matchAll(/`([\w-]+)`/g), ([, name]) => name),
    );
    const code = ['serve', 'serve-events', 'storages', 'health-monitor', 'log']
      .map((file) => read(`src/cli/serve/${file}.ts`))
      .join();
    const logged = Array.from(code.matchAll(/(?:log\.(?:info|warn|error)\(|line\('warn', )'([\w-]+)'/g), ([, name]) => name);
    expect(new Set(events)).toEqual(new Set(logged));
  });

  test('the sizes are those that size-limit enforces', () => {
    const table = section(read('README.md'), 'Entry points and sizes');
    const limits = manifest['size-limit'].map(({ limit }) => limit);
    const said = Array.from(table.matchAll(/[\d.]+ KB/g), ([size]) => size);
    expect(said.sort()).toEqual(limits.sort());
    for (const entryPoint of Object.keys(manifest.exports)) {
      if (entryPoint !== './package.json') expect(table).toContain(`\`${entryPoint.replace('.', 'watchmux')}\``);
    }
  });
});
