// What the site is made of: the documents, as they are, in the order of docs/README.md, and the entry points. Nothing here needs TypeDoc.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const read = (path) => readFileSync(join(ROOT, path), 'utf8');

/** Documents beside the guides, in the order of their group. */
const PROJECT = [
  'PROTOCOL.md',
  'ARCHITECTURE.md',
  'bench/README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'bench/data/README.md',
];

/** All Markdown files of a folder, without what is installed. */
function markdownIn(folder) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : markdownIn(path);
      return entry.name.endsWith('.md') ? [path] : [];
    })
    .sort();
}

/** The guides, as docs/README.md lists them; those that it does not list come last. */
function guides() {
  const listed = Array.from(read('docs/README.md').matchAll(/\]\(([\w/-]+\.md)\)/g), ([, file]) => `docs/${file}`);
  return [...new Set(['docs/README.md', ...listed, ...markdownIn('docs')])].filter((path) => existsSync(join(ROOT, path)));
}

/** The groups of the navigation, and their documents. README.md is the start page and in no group. */
export const GROUPS = [
  { title: 'Guides', documents: guides() },
  {
    title: 'Examples',
    documents: ['examples/README.md', ...markdownIn('examples').filter((path) => path !== 'examples/README.md')],
  },
  { title: 'Project', documents: PROJECT },
];

export const DOCUMENTS = GROUPS.flatMap(({ documents }) => documents);

/** The text without its blocks of code. */
export function withoutCode(text) {
  return text.replace(/^( *)```.*?^\1```$/gms, '');
}

/** Files of text that documents link to, such as manifests: each becomes a page, so that it can be read and copied. */
export function linkedFiles() {
  const found = ['README.md', ...DOCUMENTS].flatMap((document) =>
    Array.from(withoutCode(read(document)).matchAll(/\]\(([^)\s:#]+)\)/g), ([, link]) =>
      posix.join(posix.dirname(document), link),
    ),
  );
  return [...new Set(found)].filter((path) => !/\.(?:md|svg|png|gif|webp)$/.test(path)).sort();
}

/** The entry points: what to import, and its source. */
export const ENTRY_POINTS = Object.entries(JSON.parse(read('config/entry-points.json'))).map(([name, source]) => ({
  name: name === 'index' ? 'watchmux' : `watchmux/${name}`,
  source,
}));

/** A document's first heading. */
export function titleOf(text) {
  return /^# (.*)$/m.exec(withoutCode(text))?.[1]?.replaceAll('`', '');
}

/** A heading's anchor, as GitHub makes it. */
export function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** The headings of levels 2 and 3, each with its title and the text below it. */
export function sectionsOf(text) {
  // In code, # is a comment.
  const marked = text.replace(/^( *)```.*?^\1```$/gms, (block) => block.replace(/^#/gm, ' #'));
  return marked
    .split(/^(?=#{2,3} )/m)
    .slice(1)
    .map((section) => {
      const heading = section.slice(0, section.indexOf('\n'));
      return { heading, title: heading.replace(/^#+ /, '').replaceAll('`', ''), text: section };
    });
}

/** Replaces what must be there once: another version of TypeDoc may write something else. */
export function replaceOnce(text, pattern, by) {
  const count = Array.from(text.matchAll(new RegExp(pattern, 'gs'))).length;
  if (count !== 1) throw new Error(`TypeDoc wrote ${count} of ${pattern}, not one`);
  return text.replace(new RegExp(pattern, 's'), typeof by === 'function' ? by : () => by);
}
