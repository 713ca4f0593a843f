// What the documents say matches the code; their links lead somewhere.
import { existsSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { ApiServer } from '../src/apiserver/index.ts';
import { Hub } from '../src/bridge/hub/hub.ts';
import { DEFAULTS } from '../src/bridge/protocol.ts';
import { Broadcaster } from '../src/broadcast/broadcaster.ts';
import { parseCommand } from '../src/cli/args.ts';
import { helpText } from '../src/cli/help.ts';
import type { CommandName } from '../src/cli/usage.ts';
import { MemoryStorage } from '../src/storage/index.ts';
import { GUARANTEES } from '../src/testing/checkers/history.ts';
import { OVERFLOWS } from '../src/watch/overflow.ts';
import { anchorOf } from './markdown.ts';
import { DOCUMENTS, readText as read, ROOT as root } from './tracked.ts';

const pages = DOCUMENTS.filter((path) => path.startsWith('docs/'));

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
    const anchors = (path: string): string[] => Array.from(read(path).matchAll(/^#+ (.*)$/gm), ([, text = '']) => anchorOf(text));
    let count = 0;
    const broken = DOCUMENTS.flatMap((document) =>
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

  test('what `tryPublish` loses beside a slow watcher is what docs/embed.md says', async () => {
    const orders = new Broadcaster();
    const watches = [orders.watch({ capacity: 10 }), orders.watch({ capacity: 10_000 })];
    let lost = 0;
    for (let object = 0; object < 5_000; object++) if (!orders.tryPublish({ type: 'placed', object })) lost++;
    expect(read('docs/embed.md')).toContain(` ${lost.toLocaleString('en')} of these events are lost`);
    for (const watch of watches) await watch.return();
  });

  test('SECURITY.md names the optional peers', () => {
    const [, list = ''] = /optional peer dependencies \(([^)]*)\)/.exec(read('SECURITY.md')) ?? [];
    const named = Array.from(list.matchAll(/`([^`]+)`/g), ([, name = '']) => name.replace(/\*$/, ''));
    const peers = Object.keys(manifest.peerDependencies);
    const means = (name: string, peer: string): boolean => peer === name || (name.endsWith('/') && peer.startsWith(name));
    expect(peers.filter((peer) => !named.some((name) => means(name, peer)))).toEqual([]);
    expect(named.filter((name) => !peers.some((peer) => means(name, peer)))).toEqual([]);
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
        const [, shared, value] = new RegExp(`\\b${name}: \\[(?:DEFAULTS\\.(\\w+)|([\\d_]+))`).exec(options) ?? [];
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
    const code = ['serve', 'serve-events', 'crd-files', 'storages', 'reload', 'log']
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

  test('the defaults in the help are those of the commands', async () => {
    /** The numbers behind the first "default" behind an option. */
    const told = (command: CommandName, option: string): number[] => {
      const help = helpText(command);
      const from = help.indexOf(`--${option} `);
      expect(from, option).toBeGreaterThan(0);
      const [, list = ''] = /\b[dD]efault ([\d, and]+)/.exec(help.slice(from)) ?? [];
      return Array.from(list.matchAll(/\d+/g), ([digits]) => Number(digits));
    };
    const first = (command: CommandName, option: string): number | undefined => told(command, option)[0];
    expect(parseCommand(['pipe'])).toMatchObject({
      port: first('pipe', 'port'),
      capacity: first('pipe', 'capacity'),
      maxQueuedBytes: first('pipe', 'max-queued-bytes'),
      replay: first('pipe', 'replay'),
      window: first('pipe', 'window'),
      drainMs: (first('pipe', 'drain') ?? 0) * 1_000,
    });
    expect(parseCommand(['demo'])).toMatchObject({ durationMs: (first('demo', 'seconds') ?? 0) * 1_000 });
    expect(parseCommand(['get', 'pods'])).toMatchObject({ responseTimeoutMs: (first('get', 'timeout') ?? 0) * 1_000 });
    expect(parseCommand(['serve'])).toMatchObject({
      port: first('serve', 'port'),
      drainMs: (first('serve', 'drain') ?? 0) * 1_000,
      drainDelayMs: (first('serve', 'drain-delay') ?? 0) * 1_000,
    });
    const { maxClients, maxClientsPerAddress } = DEFAULTS;
    expect(told('serve', 'max-watchers')).toEqual([
      maxClients,
      maxClientsPerAddress,
      ofServer('maxConcurrentRequestsPerAddress'),
    ]);
    expect(told('serve', 'max-watchers-per-tenant')).toEqual(
      ['maxWatchersPerTenant', 'maxConcurrentRequestsPerTenant', 'maxWritesPerSecondPerTenant'].map(ofServer),
    );
  });
});

/** The default of an option of `ApiServer`, from its source. */
function ofServer(option: string): number {
  const [, value = ''] = new RegExp(`\\b${option}: \\[([\\d_]+)`).exec(read('src/apiserver/options.ts')) ?? [];
  return Number(value.replaceAll('_', ''));
}

interface Floor {
  readonly name: string;
  readonly atLeast?: number;
  readonly atMost?: number;
}

interface Measured {
  readonly workload: string;
  readonly shape: Readonly<Record<string, unknown>>;
  readonly rows: readonly { readonly median: number; readonly rounds: readonly number[] }[];
}

describe('the figures in the documents', () => {
  const { floors }: { floors: readonly Floor[] } = JSON.parse(read('bench/budgets.json'));
  const { workloads }: { workloads: readonly Measured[] } = JSON.parse(read('bench/results/stack-figures.json'));
  const page = read('docs/performance.md');

  /** The rows of the table of floors: words of the first cell, and how the floors in budgets.json begin that it is about. */
  const FLOORS: readonly (readonly [RegExp, readonly string[]])[] = [
    [/`for await`.*`events\.on`/, ['for await against events.on']],
    [/one event per turn/, ['one event per turn']],
    [/`for await`.*bounded peer/, ['for await against the best bounded peer']],
    [/`batches\(\)`.*`events\.on`/, ['batches() against events.on']],
    [/`batches\(\)`.*Go/, ["batches() against Go's Broadcaster"]],
    [/`observe`/, ['observe against a bare RxJS Subject']],
    [/`publish` with 10,000/, ['publish with 10,000 laggards against 1']],
    [/stalled/, ['live watchers beside a stalled one']],
    [/`JSON\.parse`/, ['decoding against JSON.parse']],
    [/p99/, ['latency p99']],
    [/not read$/, ['idle watcher, bytes']],
    [/270 bytes.*`ws\.send`/, ['bridge: WebSocket, bursts of 16, against a ws.send loop']],
    [
      /ready bytes/,
      ['bridge: WebSocket, bursts of 16, against the bytes', 'bridge: WebSocket, bursts of 16 of 10 KB, against the bytes'],
    ],
    [/`compression: true`/, ['bridge: WebSocket with permessage-deflate, bursts of 16 of 10 KB, against a ws.send loop without']],
    [/better-sse/, ['bridge: SSE, bursts of 16, against better-sse']],
    [/of a topic/, ['topics: an event']],
    [/of one topic/, ['topics: idle watcher']],
    [/Socket\.IO/, ["bridge: rooms, bursts of 16 in each, against Socket.IO's"]],
    [/idle WebSocket client/, ['bridge: idle WebSocket client']],
    [/idle watch of an API server/, ['server: idle watcher over HTTP']],
  ];

  test('the table of floors is that of budgets.json', () => {
    const table = rows(page).filter((row) => row.length === 2);
    expect(table.length).toBe(FLOORS.length);
    for (const [comparison = '', told = ''] of table) {
      const [, names, ...more] = FLOORS.filter(([pattern]) => pattern.test(comparison)).flat();
      expect([comparison, more]).toEqual([comparison, []]);
      const values = floors
        .filter(({ name }) => (names as readonly string[]).some((begin) => name.startsWith(begin)))
        .flatMap(({ atLeast, atMost }) => atLeast ?? atMost ?? []);
      expect(values.length, comparison).toBeGreaterThan(0);
      const said = Array.from(
        told.matchAll(/[\d.]+(?: KB)?/g),
        ([text]) => Number.parseFloat(text) * (text.endsWith('KB') ? 1_024 : 1),
      );
      // "at most as long" has no number.
      expect(`${comparison}: ${said.length === 0 ? 1 : said}`).toBe(
        `${comparison}: ${said.length > 1 ? values : [...new Set(values)]}`,
      );
    }
  });

  test('what an idle watcher may cost is the same everywhere', () => {
    const most = floors.find(({ name }) => name === 'idle watcher, bytes')?.atMost;
    expect(
      /idle watchers, which may cost (?:at most )?(\d+) bytes each/.exec(read('ARCHITECTURE.md').replaceAll('\n', ' '))?.[1],
    ).toBe(`${most}`);
  });

  test('measured figures are those of stack-figures.json', () => {
    const rowsOf = (workload: string, shape: Readonly<Record<string, string>>): Measured['rows'] =>
      workloads.find(
        (each) => each.workload === workload && Object.entries(shape).every(([key, value]) => each.shape[key] === value),
      )?.rows ?? [];
    const list = (values: readonly string[]): string => `${values.slice(0, -1).join(', ')} and ${values.at(-1)}`;
    const clock = rowsOf('replicas', { what: 'write', of: 'clock' }).map(({ median }) => median.toFixed(1));
    const etcd = rowsOf('replicas', { what: 'write', of: 'etcd' }).map(({ median }) => (median / 1_000).toFixed(2));
    expect([clock.length, etcd.length]).toEqual([3, 3]);
    const text = page.replaceAll('\n', ' ');
    expect(text).toContain(`${list(clock)} ms`);
    expect(text).toContain(`${list(etcd)} ms`);
    const [watchmux] = rowsOf('storm', { what: 'cut', of: 'all live' });
    const seconds = [Math.min(...(watchmux?.rounds ?? [])), Math.max(...(watchmux?.rounds ?? []))].map((ms) =>
      (ms / 1_000).toFixed(1),
    );
    expect(read('docs/scaling.md').replaceAll('\n', ' ')).toContain(`${seconds.join(' to ')} s`);
  });
});
