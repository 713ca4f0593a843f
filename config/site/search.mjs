// The search: its index has the sections of the documents, not whole documents, so that a result leads to the place.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DocumentReflection, IndexEvent } from 'typedoc';
import { anchorOf, replaceOnce, sectionsOf } from './pages.mjs';

/** The anchors of headings, in order: the second of the same name gets a number. */
function anchors(headings) {
  const seen = new Map();
  return headings.map((heading) => {
    const anchor = anchorOf(heading);
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  });
}

export function indexSections(app) {
  app.renderer.on(IndexEvent.PREPARE_INDEX, (event) => {
    const { router } = app.renderer;
    const texts = new Map();
    event.searchResults = event.searchResults.filter(({ name }) => name !== '__type');
    for (const document of event.searchResults.filter((each) => each.isDocument())) {
      const sections = sectionsOf(document.text);
      const [first] = sections;
      texts.set(
        document,
        first === undefined ? document.text : document.text.slice(0, document.text.indexOf(`\n${first.heading}\n`)),
      );
      const own = anchors(sections.map(({ title }) => title));
      sections.forEach(({ title, text }, i) => {
        const section = new DocumentReflection(title, document, [], {});
        router.sections.set(section, `${router.getFullUrl(document)}#${own[i]}`);
        texts.set(section, `${document.name}\n${text}`);
        event.searchResults.push(section);
      });
    }
    event.searchFields = event.searchResults.map((each) => ({ document: texts.get(each), comment: commentOf(each) }));
  });
}

/** What a comment says, without its further tags. */
function commentOf(reflection) {
  const comment = reflection.comment ?? reflection.signatures?.[0]?.comment;
  return comment?.summary.map(({ text }) => text).join('');
}

/** Changes the script of the pages: a result has all the words, not one of them, and no sign in them is an operator of the index. */
export function improveSearch(out) {
  const path = join(out, 'assets/main.js');
  let script = readFileSync(path, 'utf8');
  script = replaceOnce(script, /\w+\.split\(" "\)(?=\.map\(\w+=>\w+\.length\?`\*)/, (split) =>
    split.replace('" "', '/[\\s:^~*+-]+/'),
  );
  script = replaceOnce(script, /(?<=\.length\?`)(?=\*\$\{\w+\}\*`)/, '+');
  script = replaceOnce(script, /(?<=\})\.(?=<\/span>)/, ' › ');
  writeFileSync(path, script);
}
