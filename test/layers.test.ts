// The structure of the source: which file may import which, what the root entry point may reach, and how long a file may be.
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import entryPoints from '../config/entry-points.json' with { type: 'json' };
import { FILES, readText } from './tracked.ts';

/** An import may point to a lower rank, or stay in its folder. Two folders of one rank do not know each other. */
const RANKS: Readonly<Record<string, number>> = {
  watch: 0,
  selectors: 1,
  opentelemetry: 1,
  decode: 1,
  broadcast: 1,
  adapters: 2, // above the engine: `observe` and `fromObservable` are made of a Broadcaster
  bridge: 3,
  react: 4, // above the bridge, whose client's stores it shows
  nats: 4, // above the bridge, whose hubs it feeds
  cache: 4, // above the bridge, whose client's requests and decisions it shares
  storage: 5,
  kubernetes: 5,
  workqueue: 5, // above the cache: a controller has informers
  apply: 6, // above the storages, whose JSON it shares; below the API server, which applies
  apiserver: 7,
  operator: 8, // above the API server, whose types of admission its webhooks share
  testing: 9, // above the operators, which it tests
  pages: 10,
  cli: 11,
};

/**
 * The same within the bridge, which has two ends. They share only the words on the wire (protocol.ts): the client knows nothing of
 * the hub, and the hub nothing of sockets. The files beside the folders, but for protocol.ts, are the entry points.
 */
const BRIDGE: Readonly<Record<string, number>> = { 'protocol.ts': 0, events: 1, client: 1, hub: 2, transport: 3 };
const BRIDGE_ENTRY_POINTS = ['client.ts', 'fetch.ts', 'http.ts', 'websocket.ts'];

/** Which file may import what from outside `src`. Node's builtins stand for themselves. */
const OUTSIDE: Readonly<Record<string, readonly string[]>> = {
  'adapters/rxjs.ts': ['rxjs'],
  'adapters/node-stream.ts': ['node:stream'],
  'apiserver/validation/patterns.ts': ['re2js'], // loaded late
  'apiserver/validation/rules.ts': ['@marcbachmann/cel-js'], // loaded late
  'apiserver/validation/schema.ts': ['ajv'], // loaded late
  'bridge/transport/frames.ts': ['node:events', 'node:stream'],
  'bridge/transport/handshakes.ts': ['node:crypto', 'node:http', 'node:stream', 'node:zlib'],
  'bridge/http.ts': ['node:diagnostics_channel', 'node:http'],
  'bridge/transport/http-sink.ts': ['node:http'],
  'bridge/transport/upgrades.ts': ['node:http', 'node:net', 'node:stream'],
  'bridge/websocket.ts': ['node:diagnostics_channel', 'node:http', 'ws'], // its types
  'apiserver/request/yaml.ts': ['yaml'], // its types, and loaded late
  'apiserver/webhooks/calls.ts': ['node:http', 'node:https'], // its types, and loaded late
  'apiserver/http/gzip.ts': ['node:stream', 'node:zlib'],
  'apiserver/http/node-host.ts': ['node:http'],
  'apiserver/http/upgrade.ts': ['node:http', 'node:stream'],
  'watch/process-metrics.ts': ['../../package.json'],
  'apiserver/server.ts': ['node:events', 'node:http', 'node:stream'],
  'apiserver/garbage-collector.ts': ['node:events'],
  'apiserver/terminating.ts': ['node:events'],
  'kubernetes/cluster.ts': ['node:https'], // its types
  'kubernetes/credentials.ts': ['node:fs/promises', 'node:http', 'node:https', 'node:tls', 'node:util'],
  'kubernetes/exec-plugin.ts': ['node:child_process'],
  'kubernetes/kube-config.ts': ['node:fs/promises', 'node:net', 'node:os', 'node:path', 'yaml'],
  'kubernetes/node-fetch.ts': [
    'https-proxy-agent',
    'node:http',
    'node:https',
    'node:net',
    'node:stream',
    'node:zlib',
    'socks-proxy-agent',
  ],
  'operator/health.ts': ['node:http', 'node:net'], // types, and loaded late
  'nats/connection.ts': ['@nats-io/jetstream', '@nats-io/transport-node'],
  'nats/nats-stream.ts': ['@nats-io/jetstream', '@nats-io/transport-node'],
  'nats/nats-options.ts': ['@nats-io/transport-node'], // its types
  'operator/event-recorder.ts': ['node:os'],
  'operator/operator.ts': ['node:os'],
  'operator/webhooks/from-files.ts': ['node:fs', 'node:fs/promises', 'node:tls'],
  'operator/webhooks/webhook-server.ts': ['node:http', 'node:https', 'node:net'],
  'operator/webhooks/webhooks.ts': ['node:http'],
  'react/index.ts': ['react'],
  'pages/document.ts': ['node:crypto', 'node:fs'],
  'opentelemetry/index.ts': ['@opentelemetry/api'],
  'storage/journal/file-journal.ts': ['node:fs/promises'],
  'storage/journal/records.ts': ['node:zlib'],
  'storage/journal/load.ts': ['node:fs', 'node:fs/promises'],
  'storage/journal/files.ts': ['node:crypto', 'node:fs/promises', 'node:net', 'node:path'],
  'storage/sqlite/sqlite-file.ts': ['node:fs', 'node:path'],
  'storage/etcd/options.ts': ['node:http2'],
  'storage/etcd/wire/call-stream.ts': ['node:http2'],
  'storage/etcd/wire/channel.ts': ['node:http2'],
  'cli/documents.ts': ['yaml'], // loaded late
  'cli/main.ts': ['../../package.json'],
  'cli/new/new.ts': ['../../../package.json'],
  'cli/serve/serve-events.ts': ['../../../package.json'],
  'cli/watch.ts': ['ws'], // loaded late
};

/** Whose files may use every builtin of Node: nothing of it can be imported by anyone. */
const OF_NODE = 'cli/';

const MAX_LINES = 600;
const MIN_LINES = 60;

/** One of the two is exported to users, or both are; and a storage has a writer, as a write of an object has. */
const TWO_THINGS = ['Backoff', 'Collection', 'NodeRequest', 'Resource', 'Store', 'Writer'];

const src = fileURLToPath(new URL('../src', import.meta.url));

interface Import {
  readonly from: string;
  /** A file of `src`, or what was written if it is none. */
  readonly to: string;
}

const files: readonly string[] = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.startsWith('cli/new/template/')) // that is another project
  .map((path) => path.replaceAll('\\', '/'))
  .sort();

/** All imports as written, those of types among them: what reads like a cycle is one. */
const imports: readonly Import[] = files.flatMap((from) =>
  ts.preProcessFile(readFileSync(join(src, from), 'utf8'), true, true).importedFiles.map(({ fileName }) => {
    const inside = posix.join(dirname(from), fileName);
    return { from, to: fileName.startsWith('.') && files.includes(inside) ? inside : fileName };
  }),
);

const inside: readonly Import[] = imports.filter(({ to }) => files.includes(to));
const outside: readonly Import[] = imports.filter(({ to }) => !files.includes(to));
const folderOf = (file: string): string => (file.includes('/') ? (file.split('/')[0] as string) : '');
const shown = ({ from, to }: Import): string => `src/${from} imports ${to}`;

/** All files that one reaches, itself among them. */
function reached(from: string, found: Set<string> = new Set()): Set<string> {
  if (found.has(from)) return found;
  found.add(from);
  for (const each of inside) if (each.from === from) reached(each.to, found);
  return found;
}

/** One cycle as a path, or undefined. */
function cycle(): string | undefined {
  const clean = new Set<string>();
  const visit = (file: string, path: readonly string[]): string | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file].join(' -> ');
    if (clean.has(file)) return undefined;
    for (const each of inside) {
      const found = each.from === file ? visit(each.to, [...path, file]) : undefined;
      if (found !== undefined) return found;
    }
    clean.add(file);
    return undefined;
  };
  for (const file of files) {
    const found = visit(file, []);
    if (found !== undefined) return found;
  }
  return undefined;
}

describe('layers', () => {
  test('there are files to check', () => {
    expect(files.length).toBeGreaterThan(40);
    expect(inside.length).toBeGreaterThan(100);
    expect(inside).toContainEqual({ from: 'cli/serve/storages.ts', to: 'storage/sqlite/index.ts' }); // an import() counts
    expect(inside).toContainEqual({ from: 'broadcast/broadcast-watch.ts', to: 'broadcast/cursor.ts' }); // and so does one of types
  });

  test('every folder has a rank; beside them there is only index.ts', () => {
    expect(files.filter((file) => !(folderOf(file) in RANKS))).toEqual(['index.ts']);
  });

  test('an import points to a lower rank, or stays in its folder', () => {
    const rank = (file: string): number => RANKS[folderOf(file)] ?? Number.POSITIVE_INFINITY;
    const wrong = inside.filter(({ from, to }) => folderOf(from) !== folderOf(to) && rank(to) >= rank(from));
    expect(wrong.map(shown)).toEqual([]);
  });

  test('within the bridge, an import points to a lower rank, or stays in its folder', () => {
    const within = imports.filter(
      ({ from, to }) => folderOf(from) === 'bridge' && folderOf(to) === 'bridge' && files.includes(to),
    );
    const part = (file: string): string => file.split('/')[1] as string;
    expect(new Set(files.filter((file) => folderOf(file) === 'bridge').map(part))).toEqual(
      new Set([...Object.keys(BRIDGE), ...BRIDGE_ENTRY_POINTS]),
    );
    const rank = (file: string): number => BRIDGE[part(file)] ?? Number.POSITIVE_INFINITY;
    const wrong = within.filter(({ from, to }) => part(from) !== part(to) && rank(to) >= rank(from));
    expect(within.length).toBeGreaterThan(100);
    expect(wrong.map(shown)).toEqual([]);
  });

  test('nobody imports index.ts', () => {
    expect(inside.filter(({ to }) => to === 'index.ts').map(shown)).toEqual([]);
  });

  test('there are no cycles', () => {
    expect(cycle()).toBeUndefined();
  });

  test('a relative import names an existing file of src, with its extension', () => {
    const wrong = outside.filter(({ from, to }) => to.startsWith('.') && !OUTSIDE[from]?.includes(to));
    expect(wrong.map(shown)).toEqual([]);
  });

  test('external imports occur only where they are allowed', () => {
    const wrong = outside.filter(
      ({ from, to }) => !OUTSIDE[from]?.includes(to) && !(from.startsWith(OF_NODE) && isBuiltin(to) && to.startsWith('node:')),
    );
    expect(wrong.map(shown)).toEqual([]);
  });

  test('every allowed external import is used', () => {
    const unused = Object.entries(OUTSIDE).flatMap(([from, allowed]) =>
      allowed.filter((to) => !outside.some((each) => each.from === from && each.to === to)).map((to) => shown({ from, to })),
    );
    expect(unused).toEqual([]);
  });

  test('no server needs ws: the hub uses its types, and a client of the command line loads it late', () => {
    const importers = outside.filter(({ to }) => to === 'ws').map(({ from }) => from);
    expect(importers.sort()).toEqual(['bridge/websocket.ts', 'cli/watch.ts']);
    expect(readFileSync(join(src, 'bridge/websocket.ts'), 'utf8')).toContain(
      "import type { WebSocket, WebSocketServer } from 'ws';",
    );
    expect(readFileSync(join(src, 'cli/watch.ts'), 'utf8')).toContain("await import('ws')");
  });

  test('the root entry point reaches neither a dependency nor a builtin of Node', () => {
    const reach = reached('index.ts');
    expect(reach.size).toBeGreaterThan(15);
    expect(outside.filter(({ from }) => reach.has(from)).map(shown)).toEqual([]);
    const globals = [...reach].filter((file) => /\b(process|Buffer|setImmediate|__dirname|require)\b[.(]/.test(code(file)));
    expect(globals).toEqual([]);
  });

  test('the entry point for hosts without Node reaches neither a dependency nor a builtin of Node', () => {
    const reach = reached('bridge/fetch.ts');
    expect(reach).toContain('bridge/hub/hub.ts');
    expect(outside.filter(({ from }) => reach.has(from)).map(shown)).toEqual([]);
    expect([...reach].filter((file) => /\b(process|Buffer|setImmediate|require)\(/.test(code(file)))).toEqual([]);
  });

  test('the entry point for caches runs in browsers: it reaches neither a dependency nor a builtin of Node', () => {
    const reach = reached('cache/index.ts');
    expect(reach).toContain('cache/store/indexer.ts');
    expect(outside.filter(({ from }) => reach.has(from)).map(shown)).toEqual([]);
    expect([...reach].filter((file) => /\b(process\.|(Buffer|setImmediate|require)\()/.test(code(file)))).toEqual([]);
  });

  test('the scripts of the pages run in browsers, and the command line reaches nothing of the DOM', () => {
    for (const script of ['pages/pipe/main.ts', 'pages/serve/main.ts']) {
      const reach = reached(script);
      expect(reach).toContain('pages/elements.ts');
      expect(outside.filter(({ from }) => reach.has(from)).map(shown)).toEqual([]);
    }
    const reach = reached('cli/main.ts');
    expect(reach).toContain('pages/document.ts');
    expect(reach).not.toContain('pages/elements.ts');
  });

  test('every export is imported: by another file of src, a test or a benchmark', () => {
    const imported = new Set<string>();
    for (const path of FILES.filter((file) => /^(?:src|test|bench|config)\/.*\.m?[jt]sx?$/.test(file))) {
      const text = readText(path);
      const add = (file: string, name: string): unknown => imported.add(`${posix.join(dirname(path), file)}#${name}`);
      for (const [, names = '', file = ''] of text.matchAll(/\{([^{}]*)\} from '(\.[^']+)'/g))
        for (const name of names.split(',')) add(file, name.trim().replace(/^type | as .*/g, ''));
      for (const [, file = ''] of text.matchAll(/\* as \w+ from '(\.[^']+)'/g)) add(file, '*');
      for (const [, file = ''] of text.matchAll(/\bimport\('(\.[^']+)'\)/g)) add(file, '*');
    }
    const exported = files
      .filter((file) => !Object.values(entryPoints).includes(`src/${file}`))
      .flatMap((file) =>
        Array.from(
          code(file).matchAll(/^export (?:abstract |async )?(?:class|interface|type|const|let|function\*?) (\w+)/gm),
          ([, name]) => `src/${file}#${name}`,
        ),
      );
    expect(exported.length).toBeGreaterThan(1_000);
    expect(exported.filter((each) => !imported.has(each) && !imported.has(each.replace(/#.*/, '#*')))).toEqual([]);
  });

  test('the name of an exported class is that of nothing else that is exported, but for what users know', () => {
    const exported = files.flatMap((file) =>
      Array.from(code(file).matchAll(/^export (?:abstract )?(class|interface|type) (\w+)/gm), ([, what = '', name = '']) => ({
        what,
        name,
      })),
    );
    const classes = new Set(exported.flatMap(({ what, name }) => (what === 'class' ? [name] : [])));
    const twice = exported.map(({ name }) => name).filter((name, at, all) => classes.has(name) && all.indexOf(name) !== at);
    expect(classes.size).toBeGreaterThan(200);
    expect(twice.sort()).toEqual(TWO_THINGS);
  });

  test(`a file of fewer than ${MIN_LINES} lines has several importers, or an entry point: otherwise it lives with its importer`, () => {
    const alone = files.filter((file) => {
      const importers = [...new Set(inside.filter(({ to }) => to === file).map(({ from }) => `src/${from}`))];
      const [only = ''] = importers;
      const open = Object.values(entryPoints);
      return importers.length === 1 && !open.includes(only) && !open.includes(`src/${file}`) && linesOf(file) < MIN_LINES;
    });
    expect(alone).toEqual([]);
  });

  test(`no file is longer than ${MAX_LINES} lines`, () => {
    const lengths = files.map((file) => ({ file, lines: linesOf(file) }));
    const long = lengths.filter(({ lines }) => lines > MAX_LINES);
    expect(long.map(({ file, lines }) => `src/${file} has ${lines} lines, ${lines - MAX_LINES} too many`)).toEqual([]);
  });
});

describe('ARCHITECTURE.md', () => {
  const text = readFileSync(join(src, '../ARCHITECTURE.md'), 'utf8');

  test('lists the same ranks', () => {
    const table = Array.from(text.matchAll(/^\| (\d+) \| `src\/(\w+)` \|/gm), ([, rank, folder = '']) => [folder, Number(rank)]);
    const existing = Object.entries(RANKS).filter(([folder]) => files.some((file) => folderOf(file) === folder));
    expect(Object.fromEntries(table)).toEqual(Object.fromEntries(existing));
    const rows = text.match(/^\| \d+ \| `src\/.*$/gm)?.join('\n') ?? '';
    const named = new Set(Array.from(rows.matchAll(/`watchmux(?:\/([\w-]+))?`/g), ([, name = 'index']) => name));
    expect([...named].sort()).toEqual(Object.keys(entryPoints).sort());
  });

  test('names no file twice for one question', () => {
    const twice = text.split('\n').filter((line) => {
      const named = line.startsWith('| ') ? (line.match(/`[a-z-]+\/[a-z/-]+\.ts`/g) ?? []) : [];
      return new Set(named).size < named.length;
    });
    expect(twice).toEqual([]);
  });

  test('names only existing files', () => {
    const named = Array.from(text.matchAll(/`((?:[a-z-]+\/)+[a-z-]+\.ts)`/g), ([, file]) => file?.replace('src/', '')).filter(
      (file) => !file?.startsWith('test/'),
    );
    expect(named.length).toBeGreaterThan(25);
    expect(named.filter((file) => file !== undefined && !files.includes(file))).toEqual([]);
  });
});

const linesOf = (file: string): number => readFileSync(join(src, file), 'utf8').split('\n').length - 1;

/** A file without its comments. */
function code(file: string): string {
  return readFileSync(join(src, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
}
