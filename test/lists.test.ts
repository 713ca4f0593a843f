// Every list of names stands in one place. What cannot be derived from it (a document, the other end of a wire) is compared with it
// here, and text that repeats it is found here: whoever adds a name learns of every place that does not know it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { VERBS } from '../src/apiserver/request/path.ts';
import { TRANSPORTS } from '../src/bridge/client/client-options.ts';
import { CLIENT_POLICIES } from '../src/bridge/client/connect.ts';

import { POLICIES } from '../src/broadcast/policies.ts';
import { HANDLER_OVERFLOWS } from '../src/cache/informer/informer.ts';
import type { HandlerOverflow } from '../src/cache/informer/informer-options.ts';
import type { ListOptions } from '../src/cache/list-watcher.ts';
import { PATCH_MEDIA_TYPES } from '../src/cache/resource-client.ts';
import { helpText } from '../src/cli/help.ts';
import { COMMANDS } from '../src/cli/usage.ts';
import { LIST_NAMES, WATCH_NAMES } from '../src/storage/requests.ts';
import type { StorageWatchOptions } from '../src/storage/storage.ts';
import { CACHE_CHECKERS } from '../src/testing/checkers/cache/cache-checkers.ts';
import { CHECKERS } from '../src/testing/checkers/checkers.ts';
import { GUARANTEES, RULES } from '../src/testing/checkers/history.ts';
import type { WatchErrorCode } from '../src/watch/errors.ts';
import { CHANGES, type ObjectEvent } from '../src/watch/event.ts';
import { type CuttingOverflow, OVERFLOWS, type Overflow, type WaitingOverflow } from '../src/watch/overflow.ts';
import { IMPLEMENTERS } from './contract/watch.contract.ts';
import { policiesWith } from './policies.ts';
import { planArb } from './property/actors.ts';
import { claim, type Equal } from './types/assert.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const filesIn = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.m?ts$|\.mjs$/.test(file))
    .map((file) => `${folder}/${file}`);

/** The names that follow each other as words in quotes, at least three of them: no word, colon or semicolon stands in between. */
function listsIn(text: string, name: string): { readonly names: readonly string[]; readonly line: number }[] {
  const quoted = `(?:'(?:${name})'|"(?:${name})")`;
  const runs = text.matchAll(new RegExp(`${quoted}(?:(?:[^A-Za-z:;'"]|\\bas const\\b)+${quoted}){2,}`, 'g'));
  return [...runs].flatMap(({ 0: run, index }) => {
    const names = [...new Set(run.match(/(?<=['"])[\w+./-]+(?=['"])/g))];
    return names.length < 3 ? [] : [{ names, line: text.slice(0, index).split('\n').length }];
  });
}

interface List {
  readonly names: readonly string[];
  /** Where it stands. */
  readonly home: readonly string[];
  /** Where else nobody may write it down. Default: in src and test. */
  readonly folders?: readonly string[];
  /** Files that repeat it, and must repeat all of it. */
  readonly whole?: RegExp;
  /** Files that mean some of the names, with the reason why these are not derived. */
  readonly parts?: Readonly<Record<string, string>>;
}

const LISTS: Readonly<Record<string, List>> = {
  'overflow policies': {
    names: OVERFLOWS,
    home: ['src/watch/overflow.ts'],
    // The first has only the built package, which does not export the list.
    whole: /^test\/runtimes\/core\.mjs$/,
    parts: {
      'src/cache/informer/informer.ts': 'the policies that do not wait; compared below',
      'test/types/watch.test.ts': 'the public types are claimed to be what is written there',
    },
  },
  transports: {
    names: TRANSPORTS,
    home: ['src/bridge/client/client-options.ts'],
    // These run as users do, with nothing but the built package.
    whole: /^test\/e2e\//,
  },
  'types of events': {
    names: [...CHANGES, 'BOOKMARK', 'ERROR'],
    home: ['src/watch/event.ts'],
    folders: ['src'], // in tests, they are events that are expected
  },
  'verbs of an API server': {
    names: VERBS,
    home: ['src/apiserver/request/path.ts'],
    folders: ['src'],
    parts: {
      'src/workqueue/leader-elector.ts': 'the methods of a store of leases',
    },
  },
  commands: { names: COMMANDS, home: ['src/cli/usage.ts'] },
};

const files = ['src', 'test'].flatMap(filesIn).filter((file) => file !== 'test/lists.test.ts');
const TEXTS: ReadonlyMap<string, string> = new Map(files.map((file) => [file, read(file)]));

describe.each(Object.entries(LISTS))('the list of %s', (_, { names, home, folders = ['src', 'test'], whole, parts = {} }) => {
  const found = [...TEXTS]
    .filter(([file]) => folders.some((folder) => file.startsWith(`${folder}/`)))
    .flatMap(([file, text]) => listsIn(text, names.join('|')).map((list) => ({ file, ...list })));
  const isWhole = (list: (typeof found)[number]): boolean => names.every((name) => list.names.includes(name));

  test('is written down nowhere else', () => {
    const others = found.filter(({ file }) => !home.includes(file) && !(file in parts) && !whole?.test(file));
    expect(others.map((list) => `${list.file}:${list.line}: ${list.names.join(', ')}`)).toEqual([]);
  });

  test('is whole where it has to be repeated', () => {
    const repeated = found.filter(({ file }) => whole?.test(file));
    expect(repeated.filter((list) => !isWhole(list)).map(({ file, line }) => `${file}:${line}`)).toEqual([]);
    expect(repeated.length > 0).toBe(whole !== undefined);
  });

  test('has no exception that is none', () => {
    const excused = [...home, ...Object.keys(parts)];
    expect(excused.filter((file) => !found.some((list) => list.file === file))).toEqual([]);
  });
});

/**
 * Lists of three names and more that stand in two files of src, and why. If one of the two changes, its list is no longer here: then
 * look at the other one, too.
 */
const TWICE: Readonly<Record<string, string>> = {
  'clock compareVersions fields keyOf onError random': 'options of a cacher, and which of them a server does not pass on',
  'labelSelector fieldSelector resourceVersion resourceVersionMatch timeoutSeconds signal':
    'what a list and a watch have in common, to a client, a storage and a server: one list would make the entry points larger',
  'sendInitialEvents allowWatchBookmarks stored onBytes': 'options of a watch, to a client and a server',
  'apiVersion kind name uid': 'an owner reference: its schema, and its check',
  'allOf anyOf oneOf': 'words of JSON Schema, for different ends',
  'definitions patternProperties properties': 'words of JSON Schema, for different ends',
  'error info warn': 'levels of a log, and the methods of a log that has all of them',
};

test('no other list stands in two files of the source', () => {
  const at: Record<string, Set<string>> = {};
  for (const [file, text] of TEXTS) {
    if (!file.startsWith('src/')) continue;
    for (const { names } of listsIn(text.replace(/^import [^;]*;/gm, ''), '[A-Za-z][\\w+./-]+')) {
      const list = [...names].sort().join(' ');
      at[list] = (at[list] ?? new Set()).add(file);
    }
  }
  const twice = Object.entries(at).filter(([, places]) => places.size > 1);
  expect(Object.keys(at).length).toBeGreaterThan(100);
  expect(twice.map(([names]) => names).sort()).toEqual(
    Object.keys(TWICE)
      .map((names) => names.split(' ').sort().join(' '))
      .sort(),
  );
});

describe('every overflow policy', () => {
  /** What the compiler takes it for. */
  const DOES: { [P in Overflow]: P extends WaitingOverflow ? 'waits' : P extends CuttingOverflow ? 'cuts' : 'drops' } = {
    wait: 'waits',
    'drop-newest': 'drops',
    'drop-oldest': 'drops',
    disconnect: 'cuts',
    coalesce: 'cuts',
  };

  test('is the same to the compiler, the engine and the checkers', () => {
    for (const policy of OVERFLOWS) {
      const { waits, cuts, folds, dropsOldest } = RULES[policy];
      const { holdsPublisher, folds: foldsIn, keepsLatest } = POLICIES[policy];
      expect([policy, waits, folds, dropsOldest]).toEqual([policy, holdsPublisher, foldsIn, keepsLatest]);
      expect([policy, waits ? 'waits' : cuts ? 'cuts' : 'drops']).toEqual([policy, DOES[policy]]);
    }
    claim<Equal<HandlerOverflow, Exclude<Overflow, WaitingOverflow>>>();
    expect(HANDLER_OVERFLOWS).toEqual(policiesWith({ waits: false }));
    // Folding is the server's to do.
    expect(Object.keys(CLIENT_POLICIES)).toEqual(policiesWith({ folds: false }));
  });

  test('is drawn by the plans of the properties, and has the contract of a watch', () => {
    const drawn = fc.sample(planArb(), 500).flatMap(({ readers }) => readers.map(({ overflow }) => overflow));
    expect([...new Set(drawn)].sort()).toEqual([...OVERFLOWS].sort());
    const names = IMPLEMENTERS.map(({ name }) => name);
    expect(OVERFLOWS.filter((policy) => !names.includes(`Broadcaster, ${policy}`))).toEqual([]);
  });

  /** Where each document says what a policy does. */
  const SAID: Readonly<Record<string, { readonly text: string; readonly as: (policy: string) => string }>> = {
    'docs/policies.md': { text: read('docs/policies.md'), as: (policy) => `\n| \`${policy}\` | ` },
    'README.md': { text: read('README.md'), as: (policy) => `\`${policy}\`` },
    'PROTOCOL.md': {
      text:
        read('PROTOCOL.md')
          .match(/^\|.*\|$/gm)
          ?.join('\n') ?? '',
      as: (policy) => `\`${policy}\``,
    },
    'docs/command-line.md or pipe --help': { text: helpText('pipe'), as: (policy) => `\n${' '.repeat(23)}${policy} ` },
    'src/watch/overflow.ts': { text: read('src/watch/overflow.ts').split('*/')[0] ?? '', as: (policy) => `\`${policy}\`` },
    'test/runtimes/core.mjs': { text: read('test/runtimes/core.mjs'), as: (policy) => `\n  ${policy}: [` },
  };

  test.each(Object.entries(SAID))('is in %s', (_, { text, as }) => {
    const plain = text.replace(/^( {2})'([\w-]+)':/gm, '$1$2:');
    expect(OVERFLOWS.filter((policy) => !plain.includes(as(policy)))).toEqual([]);
  });

  test('is counted where the documents count them', () => {
    const words = ['none', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];
    for (const page of ['README.md', 'docs/policies.md']) {
      const counts = (pattern: RegExp): number[] =>
        Array.from(read(page).matchAll(pattern), ([, word = '']) => words.indexOf(word));
      for (const count of counts(/\bmix all (\w+)/g)) expect(count).toBe(OVERFLOWS.length);
      for (const count of counts(/\bother (\w+)\s+policies\b/g)) expect(count).toBe(policiesWith({ waits: false }).length);
    }
  });

  test('is in the table of its page, in the order of the list', () => {
    const rows = Array.from(read('docs/policies.md').matchAll(/^\| `([\w-]+)` \|/gm), ([, policy]) => policy);
    expect(rows).toEqual(OVERFLOWS);
  });
});

describe('other lists', () => {
  test('the errors in the table of the codes are all that there are', () => {
    const codes: Readonly<Record<WatchErrorCode, 1>> = {
      ...{ CLOSED: 1, OVERLOADED: 1, INVALID_ARGUMENT: 1, FRAME_TOO_LARGE: 1, INVALID_FRAME: 1 },
      ...{ QUEUE_FULL: 1, INVALID_SELECTOR: 1, REFUSED: 1, TIMEOUT: 1 },
    };
    const table = Array.from(read('src/watch/errors.ts').matchAll(/^ \* \| `(\w+)` \|/gm), ([, code]) => code);
    expect(table).toEqual(Object.keys(codes));
  });

  test('the documents name each type of patch', () => {
    const types = Object.keys(PATCH_MEDIA_TYPES);
    expect(types).toHaveLength(4);
    for (const type of types) {
      const word = type === 'json' ? 'JSON patch' : type === 'apply' ? 'server-side apply' : `${type} (?:merge )?patch`;
      expect(read('docs/apiserver.md')).toMatch(new RegExp(word));
      expect(read('docs/kubernetes.md')).toContain(`\`${type}\``);
    }
  });

  test('the types of events are those of the type, and the options of a list and a watch are all', () => {
    claim<Equal<ObjectEvent<unknown>['type'], (typeof CHANGES)[number] | 'BOOKMARK' | 'ERROR'>>();
    const list: Readonly<Record<keyof ListOptions, 1>> = {
      ...{ labelSelector: 1, fieldSelector: 1, resourceVersion: 1, resourceVersionMatch: 1, timeoutSeconds: 1, signal: 1 },
      ...{ limit: 1, continue: 1 },
    };
    const { limit, continue: token, ...common } = list;
    const watch: Readonly<Record<keyof StorageWatchOptions<unknown>, 1>> = {
      ...common,
      ...{ sendInitialEvents: 1, allowWatchBookmarks: 1, stored: 1, onBytes: 1, previousOf: 1 },
    };
    expect(LIST_NAMES).toEqual(Object.keys(list));
    expect(WATCH_NAMES).toEqual(Object.keys(watch));
  });

  test('the transports are in the protocol, on their page, and in the help of the command that takes one', () => {
    const words: Readonly<Record<(typeof TRANSPORTS)[number], RegExp>> = {
      http: /HTTP/,
      sse: /SSE|Server-Sent/,
      websocket: /WebSocket/,
    };
    for (const transport of TRANSPORTS) {
      expect(helpText('watch')).toMatch(new RegExp(`--transport T.*\\b${transport}\\b`));
      for (const page of ['PROTOCOL.md', 'docs/transports.md']) expect(read(page)).toMatch(words[transport]);
    }
  });

  test('every command has its help, and is in the general one', () => {
    for (const command of COMMANDS) {
      expect(helpText(command)).toContain(`watchmux ${command}`);
      expect(helpText(undefined)).toMatch(new RegExp(`^ .*watchmux ${command}\\b`, 'm'));
    }
  });

  test('every guarantee has a checker, or a test that the page of guarantees names', () => {
    const checked = [...Object.keys(CHECKERS), ...Object.keys(CACHE_CHECKERS)];
    const others = Object.keys(GUARANTEES).filter((name) => !checked.includes(name));
    expect(checked.filter((name) => !(name in GUARANTEES))).toEqual([]);
    expect(others).toEqual(['Resumable', 'Transitional', 'Serial', 'Linearizable', 'Fair', 'Owned']);
  });
});
