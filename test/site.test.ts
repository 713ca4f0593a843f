// What `npm run docs` makes a site of: every document and every entry point, and no dead link. test/e2e/site.test.ts looks at the site.
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  anchorOf,
  check,
  DOCUMENTS,
  ENTRY_POINTS,
  GROUPS,
  importsOf,
  linkedFiles,
  mentionsIn,
  Names,
  type Reflection,
  sectionsOf,
} from '../config/site/parts.mjs';
import manifest from '../package.json' with { type: 'json' };
import * as markdown from './markdown.ts';
import { ROOT, readText, DOCUMENTS as TRACKED } from './tracked.ts';

describe('the site has', () => {
  test('every document in its navigation, once, the guides as their index lists them', () => {
    // The start page, and a file of what `watchmux new` writes.
    const others = ['README.md', 'src/cli/new/template/README.md'];
    expect([...DOCUMENTS].sort()).toEqual(TRACKED.filter((path) => !others.includes(path)));
    expect(GROUPS[0]?.documents.slice(0, 3)).toEqual(['docs/README.md', 'docs/embed.md', 'docs/policies.md']);
  });

  test('every entry point in its reference', () => {
    const exported = Object.keys(manifest.exports).filter((name) => name !== './package.json');
    expect(ENTRY_POINTS.map(({ name }) => name).sort()).toEqual(exported.map((name) => name.replace('.', 'watchmux')).sort());
  });

  test('a page for every file that a document links to', () => {
    expect(linkedFiles()).toContain('docs/operation/alerts.yaml');
    expect(linkedFiles().filter((path) => !statSync(join(ROOT, path)).isFile())).toEqual([]);
  });

  test("the anchors of the documents' headings, as GitHub makes them", () => {
    for (const page of DOCUMENTS.map(readText)) {
      const headings = [2, 3].flatMap((level) => markdown.headingsOf(page, level));
      expect(
        sectionsOf(page)
          .map(({ heading }) => heading.replace(/^#+ /, ''))
          .sort(),
      ).toEqual(headings.sort());
      expect(headings.map(anchorOf)).toEqual(headings.map(markdown.anchorOf));
    }
  });

  test('no link whose text does not say where it leads, as Lighthouse looks for', () => {
    const vague = /\[(click here|click this|go|here|information|learn more|more|more info|right here|start|this)\]\(/gi;
    expect(DOCUMENTS.concat('README.md').flatMap((path) => readText(path).match(vague) ?? [])).toEqual([]);
  });

  test('tools of its own, locked, without the address of a registry', () => {
    const lock = readText('config/site/package-lock.json');
    expect(lock).toContain('"node_modules/typedoc"');
    expect(lock).not.toContain('"resolved"');
  });
});

describe('code in a text', () => {
  const declared = (name: string, ...members: string[]): Reflection => ({
    name,
    children: members.map((member) => declared(member)),
    isReference: () => false,
  });
  const again = (target: Reflection): Reflection => ({
    name: target.name,
    isReference: () => true,
    getTargetReflectionDeep: () => target,
  });
  const hub = declared('Hub', 'publish', 'filter');
  const [own, other, filter, connect] = [declared('Options'), declared('Options'), declared('filter'), declared('connect')];
  const http = { ...declared('watchmux/http'), children: [hub, own] };
  const client = { ...declared('watchmux/client'), children: [connect, other, again(hub)] };
  const root = { ...declared('watchmux'), children: [filter] };
  const names = new Names([http, client, root]);

  test.each([
    ['Hub', hub],
    ['new Hub()', hub],
    ['Hub<Price>', hub],
    ['Hub.publish', hub.children?.[0]],
    ['hub.publish(event)', hub.children?.[0]],
    ['connect', connect],
    ['watchmux/http', http],
    // A call of it; without, it may be the member.
    ['filter(watch, isLarge)', filter],
    ['filter', undefined],
    // Two of them.
    ['Options', undefined],
    ['EventEmitter', undefined],
    ['hub.nothing', undefined],
    ['a b', undefined],
  ])('%s', (span, target) => {
    expect(names.find(span)).toBe(target);
  });

  test('means what the document imports, or the module that it is in', () => {
    const imports = importsOf("import { type Options, connect } from 'watchmux/client';\nimport type { Other } from 'other';");
    expect([...imports]).toEqual([
      ['Options', 'watchmux/client'],
      ['connect', 'watchmux/client'],
    ]);
    expect(names.find('Options', { imports })).toBe(other);
    expect(names.find('Options', { module: 'watchmux/http' })).toBe(own);
    expect(names.find('Hub', { module: 'watchmux/client' })).toBe(hub);
  });

  test('counts most in a heading, and not in a program', () => {
    const text = "# The `Hub`\n\nA `Hub` and `connect`.\n\n```ts\nimport { filter } from 'watchmux';\n// `Hub`\n```\n";
    const weights = mentionsIn(text, names);
    expect([hub, connect, filter, root].map((each) => weights.get(each))).toEqual([21, 1, 5, 5]);
  });
});

describe('the check of the links', () => {
  const script = (name: string, data: unknown): string =>
    `window.${name} = "${deflateSync(JSON.stringify(data)).toString('base64')}"`;
  const page = (body: string): string => `<html><head><title>t</title></head><body>${body}</body></html>`;
  const good = {
    'index.html': page('<h1 id="top">a</h1><a href="a/b.html#x">b</a> <a href="#top">t</a> <a href="https://example.com">e</a>'),
    'a/b.html': page('<p id="x"><a href="../index.html">home</a> <a href="../a/b.html">b</a> <img src="../i.svg"/></p>'),
    'i.svg': '<svg/>',
    'assets/navigation.js': script('navigationData', [{ text: 'a', children: [{ text: 'b', path: 'a/b.html' }] }]),
    'assets/search.js': script('searchData', { rows: [{ url: 'a/b.html#x' }] }),
  };

  function faults(files: Readonly<Record<string, string>>): readonly string[] {
    const folder = mkdtempSync(join(tmpdir(), 'watchmux-site-'));
    for (const [path, text] of Object.entries({ ...good, ...files })) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    try {
      return check(folder, { forbidden: ['/watchmux'] }).faults;
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  test('finds nothing in a site that is whole', () => {
    expect(faults({})).toEqual([]);
  });

  test.each([
    ['<a href="c.html">c</a>', 'a/b.html: c.html: no such page'],
    ['<a href="../index.html#y">c</a>', 'a/b.html: ../index.html#y: no such anchor'],
    ['<a class="c" href="/index.html">c</a>', 'a/b.html: /index.html: works from one base path only'],
    ['<a href="../../index.html">c</a>', 'a/b.html: ../../index.html: no such page'],
    ['<img src="c.svg"/>', 'a/b.html: c.svg: no such file'],
    ['<script src="https://cdn.example.com/a.js"></script>', 'a/b.html: loads https://cdn.example.com/a.js'],
    ['<a href="https://example.com/you/watchmux">c</a>', 'a/b.html: links to /watchmux'],
    ['<pre><code>npm <i>test</i></code></pre>', 'a/b.html: no button copies npm test'],
  ])('finds %s', (body, fault) => {
    expect(faults({ 'a/b.html': page(`<p id="x">${body}</p>`) })).toEqual([fault]);
  });

  test('finds a style that loads a font from elsewhere', () => {
    const style = '@font-face { src: url("https://fonts.example.com/a.woff2"); }';
    expect(faults({ 'assets/custom.css': style })).toEqual(['assets/custom.css: loads something']);
  });

  test('finds what the navigation and the search lead to', () => {
    const away = script('navigationData', [{ text: 'a', path: 'c.html' }]);
    expect(faults({ 'assets/navigation-http.js': away })).toEqual(['navigation or search: c.html: no such page']);
    expect(faults({ 'assets/search.js': script('searchData', { rows: [{ url: 'a/b.html#y' }] }) })).toEqual([
      'navigation or search: a/b.html#y: no such anchor',
    ]);
  });
});
