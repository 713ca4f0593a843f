// Reads the site as it was written: every link leads to a page and an anchor that are there, whatever the base path, and nothing is
// loaded from elsewhere; every piece of code can be copied.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { inflateSync } from 'node:zlib';

const decoded = (text) =>
  text.replace(/&(amp|quot|#39|lt|gt);/g, (_, name) => ({ amp: '&', quot: '"', '#39': "'", lt: '<', gt: '>' })[name]);

/** The values of an attribute of some tags. */
const attributes = (html, tag, name) =>
  Array.from(html.matchAll(new RegExp(`<(?:${tag})\\b[^>]*?\\s${name}="([^"]*)"`, 'g')), ([, value]) => decoded(value));

/** What the script of the navigation or of the search holds. */
function dataOf(folder, file) {
  const packed = /"([^"]+)"/.exec(readFileSync(join(folder, file), 'utf8'))?.[1] ?? '';
  return JSON.parse(inflateSync(Buffer.from(packed, 'base64')).toString());
}

const pathsIn = (elements) =>
  elements.flatMap(({ path, children = [] }) => [...(path === undefined ? [] : [path]), ...pathsIn(children)]);

/** The pages of a site, each with its anchors and links. */
function readPages(folder) {
  const pages = new Map();
  for (const file of readdirSync(folder, { recursive: true })) {
    if (!file.endsWith('.html')) continue;
    const html = readFileSync(join(folder, file), 'utf8');
    pages.set(file.replaceAll('\\', '/'), {
      html,
      ids: new Set(attributes(html, '[\\w-]+', 'id')),
      links: attributes(html, 'a|link', 'href'),
      loads: [
        ...attributes(html, 'script|img|iframe|source', 'src'),
        ...attributes(html, 'link', 'href'),
        ...attributes(html, 'script', 'data-src'),
      ],
    });
  }
  return pages;
}

/** Why a link of a page leads nowhere; undefined if it does. */
function faultOf(link, page, { folder, pages }) {
  if (/^(?:https?|mailto):/.test(link)) return undefined;
  if (/^[a-z]+:|^\//i.test(link)) return 'works from one base path only';
  const [path, anchor] = link.split('#');
  const file = path.split('?')[0];
  const target = file === '' ? page : posix.join(posix.dirname(page), decodeURIComponent(file));
  if (target.startsWith('..') || !existsSync(join(folder, target))) return 'no such page';
  const leaf = statSync(join(folder, target)).isDirectory() ? posix.join(target, 'index.html') : target;
  if (!existsSync(join(folder, leaf))) return 'no such page';
  if (anchor === undefined || anchor === '') return undefined;
  return pages.get(leaf)?.ids.has(decodeURIComponent(anchor)) ? undefined : 'no such anchor';
}

/** Every fault of the site, one a line, and how much was read. */
export function check(folder, { forbidden = [] } = {}) {
  const pages = readPages(folder);
  const faults = new Set();
  let links = 0;
  for (const [page, { html, links: own, loads }] of pages) {
    for (const link of own) {
      links++;
      const fault = faultOf(link, page, { folder, pages });
      if (fault !== undefined) faults.add(`${page}: ${link}: ${fault}`);
    }
    for (const load of loads) {
      if (/^(?:[a-z]+:)?\/\//i.test(load)) faults.add(`${page}: loads ${load}`);
      else if (!load.startsWith('data:') && faultOf(load, page, { folder, pages })) faults.add(`${page}: ${load}: no such file`);
    }
    for (const word of forbidden)
      if (own.some((link) => /^https?:/.test(link) && link.includes(word))) faults.add(`${page}: links to ${word}`);
    if (!/<title>[^<]+<\/title>/.test(html)) faults.add(`${page}: no title`);
    for (const [code] of html.matchAll(/<pre\b.*?<\/pre>/gs))
      if (!code.includes('<button')) faults.add(`${page}: no button copies ${code.replace(/<[^>]*>/g, '').slice(0, 40)}`);
  }
  for (const file of readdirSync(join(folder, 'assets')).filter((name) => name.endsWith('.css')))
    if (/@import|url\(["']?(?:[a-z]+:)?\/\//i.test(readFileSync(join(folder, 'assets', file), 'utf8')))
      faults.add(`assets/${file}: loads something`);
  const navigation = readdirSync(join(folder, 'assets')).filter((file) => file.startsWith('navigation'));
  const listed = [
    ...navigation.flatMap((file) => pathsIn(dataOf(folder, `assets/${file}`))),
    ...dataOf(folder, 'assets/search.js').rows.map(({ url }) => url),
  ];
  for (const link of listed) {
    links++;
    const fault = faultOf(link, 'index.html', { folder, pages });
    if (fault !== undefined) faults.add(`navigation or search: ${link}: ${fault}`);
  }
  return { faults: [...faults], pages: pages.size, links };
}
