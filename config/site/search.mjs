// The index of the search has the sections of the documents, not whole documents: a result leads to the place.
import { DocumentReflection, IndexEvent } from 'typedoc';
import { anchorOf, sectionsOf } from './pages.mjs';

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
      texts.set(
        document,
        sections.length === 0 ? document.text : document.text.slice(0, document.text.indexOf(sections[0].text.slice(0, 200))),
      );
      const own = anchors(sections.map(({ heading }) => heading.replaceAll('`', '')));
      sections.forEach(({ heading, text }, i) => {
        const section = new DocumentReflection(`${document.name} › ${heading.replaceAll('`', '')}`, document.parent, [], {});
        router.sections.set(section, `${router.getFullUrl(document)}#${own[i]}`);
        texts.set(section, text);
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
