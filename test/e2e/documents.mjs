// The documents of the package, and the blocks of code in them.
//
// A block `ts` is a program: it runs, and prints the block `text` behind it. A comment before a block says what else to do with it:
//
//     <!-- test: types -->             only check its types
//     <!-- test: packages -->          run it; it needs packages that the tests of the tarball do not install
//     <!-- test: browser -->           browser.test.ts runs it in a page
//     <!-- test: vite -->              vite.test.ts runs it
//     <!-- test: frameworks page.html -->   frameworks.test.ts runs it, with this file name
//     <!-- test: react orders.tsx -->    react.test.ts runs it, with this file name
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export const readDocument = (path) => readFileSync(join(ROOT, path), 'utf8');

/** README.md and every page of docs/. */
export const PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => `docs/${file}`),
];

const BLOCK = /^(?:<!-- test: ([^\n]*?) -->\n)?```(\w+)\n(.*?)^```\n(?=(?:\n(?:[^\n`]+\n\n)?```text\n(.*?)^```\n)?)/gms;

function blocksOf(page) {
  const text = readDocument(page);
  return Array.from(text.matchAll(BLOCK), ({ 1: mark, 2: language = '', 3: code = '', 4: prints, index }) => {
    const heading = Array.from(text.slice(0, index).matchAll(/^##* (.*)$/gm)).at(-1)?.[1] ?? '';
    return { page, heading, language, code, mark, prints };
  });
}

export const BLOCKS = PAGES.flatMap(blocksOf);

/** The programs among them, also those that only browsers or bundlers run. */
export const PROGRAMS = BLOCKS.filter(({ language }) => language === 'ts' || language === 'tsx');

/** The one block with this mark. */
export function markedBlock(mark) {
  const [block, ...more] = BLOCKS.filter((each) => each.mark === mark);
  if (block === undefined || more.length > 0)
    throw new Error(`expected one block with the mark "${mark}", got ${more.length + 1}`);
  return block;
}
