// No text that people read breaks off: help, messages, metrics, tables and paragraphs of documents.
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { ApiServer } from '../src/apiserver/index.ts';
import { Hub } from '../src/bridge/hub/hub.ts';
import { parseCommand, READERS } from '../src/cli/args.ts';
import { helpText } from '../src/cli/help.ts';
import { COMMANDS } from '../src/cli/usage.ts';
import { OperatorMetrics } from '../src/operator/metrics.ts';
import { MemoryStorage } from '../src/storage/index.ts';
import { cellsOf, withoutCode } from './markdown.ts';
import { fault } from './sentences.ts';
import { DOCUMENTS, FILES, readText } from './tracked.ts';

/** The widest line of a help text. */
const MAX_WIDTH = 127;

const HELP: readonly (readonly [string, string])[] = [undefined, ...COMMANDS].map((topic) => [
  topic ?? 'watchmux',
  helpText(topic),
]);

interface Entry {
  /** What is described; empty for a paragraph. */
  readonly term: string;
  readonly text: string;
}

/** The entries and paragraphs of a help text. A term stands at the left of its text, or on the line above. */
function entriesOf(help: string): Entry[] {
  const entries: { term: string; text: string; column: number }[] = [];
  let last: (typeof entries)[number] | undefined;
  for (const line of help.split('\n')) {
    const [, indent = '', term = '', gap = '', text = ''] = /^( *)(\S(?:.*?\S)?)(?:( {2,})(\S.*))?$/.exec(line.trimEnd()) ?? [];
    if (line === '') {
      last = undefined;
    } else if (last !== undefined && gap === '' && indent.length >= (last.column || 1) && last.term !== '') {
      last.text = `${last.text} ${term}`.trim();
      last.column ||= indent.length;
    } else if (indent === '' && last?.term === '') {
      last.text += ` ${line}`;
    } else {
      last =
        indent === ''
          ? { term: '', text: line, column: 0 }
          : { term, text, column: text === '' ? 0 : indent.length + term.length + gap.length };
      entries.push(last);
    }
  }
  return entries;
}

function faultsOf(help: string): string[] {
  const wide = help
    .split('\n')
    .filter((line) => line.length > MAX_WIDTH || line !== line.trimEnd())
    .map((line) => `too wide, or ends in a space: ${line}`);
  const broken = entriesOf(help).flatMap(({ term, text }) => {
    // Usage and examples are commands alone.
    const found = term !== '' && text === '' && !term.startsWith('-') ? fault(term) : fault(text);
    return found === undefined ? [] : [`${found}: ${term} | ${text}`];
  });
  return [...wide, ...broken];
}

/** Paragraphs, without code, headings, lists and tables; each with the line behind it. */
function paragraphsOf(page: string): { readonly text: string; readonly next: string }[] {
  const blocks = withoutCode(page, '\n\n<code>\n\n')
    .replace(/<!--.*?-->/gs, '')
    .replace(/^#.*$/gm, '#\n')
    .split(/\n\s*\n/)
    .map((block) => block.replace(/^\n+/, ''))
    .filter((block) => block.trim() !== '');
  return blocks
    .map((text, at) => ({ text, next: blocks[at + 1] ?? '' }))
    .filter(({ text }) => /^[\p{L}*`"([]/u.test(text) && !/^[*-] |^!?\[[^\]]*\]\([^)]*\)$/.test(text));
}

function faultOfParagraph({ text, next }: { readonly text: string; readonly next: string }): string | undefined {
  if (/[.?!:](?:\*\*|["*)`])*$/.test(text.trimEnd())) return fault(text.replaceAll('**', ''));
  return /^(?:[-*|]|\d+\.)/.test(next) ? undefined : 'it ends without a full stop';
}

/** Texts in the source that are whole messages or descriptions: not a part that something is put behind. */
function messagesOf(file: string): string[] {
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
      const part = ts.isBinaryExpression(node.parent) || ts.isConditionalExpression(node.parent);
      const { text } = node;
      if (!part && text.split(/\s+/).length >= 3 && !/[<>=]|^\s|\s$/.test(text)) texts.push(text);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, readText(file), ts.ScriptTarget.Latest, true));
  return texts;
}

describe('texts that break off', () => {
  test.each([
    ['', 'it is empty'],
    ['  ', 'it is empty'],
    ['only the latest state of each object is kept; all lines without a name are', 'it ends in the middle'],
    ['the events of the.', 'it ends in the middle'],
    ['events, and', 'it ends in the middle'],
    ['the port to listen on, or', 'it ends in the middle'],
    ['limits the size of', 'it ends in the middle'],
    ['at most 5 objects with', 'it ends in the middle'],
    ['no client (or', 'a ( or ) is alone'],
    ['default 5)', 'a ( or ) is alone'],
    ['one of [a, b', 'a [ or ] is alone'],
    ['prints "listening', 'a " is open'],
    ['see `--port', 'a ` is open'],
    ['events,', 'it ends in the middle'],
    ['see [limits](limits.md) for', 'it ends in the middle'],
  ])('%j', (text, found) => expect(fault(text)).toBe(found));

  test.each([
    'each one is passed on',
    'it is kept as it is',
    'the address that it listens to',
    'one event per line',
    'what a list holds; the message shows where',
    'text (the default), or json',
    'is sent again, and so on.',
    'Which topics is it of?',
  ])('not %j', (text) => expect(fault(text)).toBeUndefined());
});

describe('help', () => {
  test('a text with accidents is not taken', () => {
    const help =
      'Options\n  --port P   port, default\n             8080, or\n  --host H\n             address (of\n  --raw      \n\nIt ends with\nthe\n';
    expect(faultsOf(help)).toEqual([
      'too wide, or ends in a space:   --raw      ',
      'it ends in the middle: --port P | port, default 8080, or',
      'a ( or ) is alone: --host H | address (of',
      'it is empty: --raw | ',
      'it ends in the middle:  | It ends with the',
    ]);
    expect(faultsOf(`a${' b'.repeat(MAX_WIDTH / 2)} c`)).toHaveLength(1);
  });

  test.each(HELP)('%s --help', (_, help) => {
    expect(entriesOf(help).length).toBeGreaterThan(5);
    expect(faultsOf(help)).toEqual([]);
  });

  test.each(COMMANDS)('%s: every option has an entry, and every entry is an option', (command) => {
    const options = Object.keys(READERS[command][0]).map((name) => `--${name}`);
    const told = entriesOf(helpText(command)).flatMap(({ term }) =>
      /^\s*-/.test(term) ? Array.from(term.matchAll(/--[a-z-]+/g), ([name]) => name) : [],
    );
    expect([...told].sort()).toEqual([...options].sort());
    const own = helpText(command).replace(/^ *kubectl .*$/gm, '');
    for (const [option] of own.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)) {
      const parse = (): unknown => parseCommand([command, option, '1']);
      expect(parse, option).not.toThrow(/Unknown option/);
    }
  });
});

describe('metrics and messages', () => {
  test('what a metric is', async () => {
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [] });
    await server.ready;
    const state = { running: true, leads: false, kinds: [], controllers: [] };
    const operator = new OperatorMetrics().toText({ state, lease: 'a', requests: [] });
    const pages = [new Hub().metrics(), server.metrics, operator].join('\n');
    await server.shutdown();
    const helps = Array.from(pages.matchAll(/^# HELP (\S+) ?(.*)$/gm), ([, name, text = '']) => [
      name,
      // A page of metrics is read one by one, in any order.
      fault(text) ?? /\b(?:these|those|this(?! (?:instance|package))|so(?! far)|them|the same|such)\b/i.exec(text)?.[0],
    ]);
    expect(helps.length).toBeGreaterThan(45);
    expect(helps.filter(([, found]) => found !== undefined)).toEqual([]);
    expect(helps.map(([name]) => name)).toEqual(Array.from(pages.matchAll(/^# TYPE (\S+)/gm), ([, name]) => name));
  });

  test('texts in the source', () => {
    // The contracts have titles of tests there, and lists of events.
    const sources = FILES.filter((file) => /^src\/.*\.ts$/.test(file) && !file.startsWith('src/testing/contracts/'));
    const messages = sources.flatMap((file) => messagesOf(file).map((text) => ({ file, text, found: fault(text) })));
    expect(messages.length).toBeGreaterThan(500);
    expect(messages.filter(({ found }) => found !== undefined)).toEqual([]);
  });
});

describe('documents', () => {
  test('accidents are found', () => {
    expect(cellsOf('| a | of |\n|---|---|\n| b | the size of |\n| `c\\|d` | |\n').map(fault)).toEqual([
      undefined,
      'it ends in the middle',
      undefined,
      'it is empty',
    ]);
    const page = '# A\n\nIt is.\nNow the\n\n```sh\nrun the\n```\n\nThese are\n\n- a, and\n\n**It** (is.\n';
    expect(paragraphsOf(page).map(faultOfParagraph)).toEqual(['it ends without a full stop', undefined, 'a ( or ) is alone']);
  });

  test('cells of tables', () => {
    const cells = DOCUMENTS.flatMap((path) => cellsOf(readText(path)).map((cell) => ({ path, cell, found: fault(cell) })));
    expect(cells.length).toBeGreaterThan(1_000);
    // A cell may be empty: nothing is to be said there.
    expect(cells.filter(({ cell, found }) => cell !== '' && found !== undefined)).toEqual([]);
  });

  test('paragraphs', () => {
    const paragraphs = DOCUMENTS.flatMap((path) =>
      paragraphsOf(readText(path)).map((each) => ({ path, text: each.text, found: faultOfParagraph(each) })),
    );
    expect(paragraphs.length).toBeGreaterThan(400);
    expect(paragraphs.filter(({ found }) => found !== undefined)).toEqual([]);
  });
});
