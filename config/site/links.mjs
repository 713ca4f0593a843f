// Links both ways: code in a text that names an export leads to its reference, and the reference names the guides that explain it.
import { Comment, CommentTag, Converter, PageEvent } from 'typedoc';
import { importsOf, mentionsIn, Names } from './mentions.mjs';
import { moduleOf } from './router.mjs';

/** Guides that name a lot, and explain little of it. */
const LISTS = /\/(?:README|clients|comparison|limits|migrate|performance|platforms)\.md$/;
const EXPLAINING = 3;

/** Adds to each export the guides that speak of it most. */
function addGuides(project, names) {
  const guides = new Map();
  for (const document of project.documents) {
    if (!document.path.startsWith('docs/') || !document.path.endsWith('.md') || LISTS.test(document.path)) continue;
    for (const [target, weight] of mentionsIn(document.text, names)) {
      const found = guides.get(target) ?? [];
      guides.set(target, found);
      found.push({ document, weight });
    }
  }
  for (const [target, found] of guides) {
    const best = found.sort((a, b) => b.weight - a.weight).slice(0, EXPLAINING);
    const owner = target.signatures?.[0] ?? target;
    owner.comment ??= new Comment();
    owner.comment.blockTags.push(
      new CommentTag(
        '@explainedIn',
        best.flatMap(({ document }, i) => [
          { kind: 'text', text: i === 0 ? '' : ', ' },
          { kind: 'inline-tag', tag: '@link', text: document.name, target: document },
        ]),
      ),
    );
  }
}

/** Whether the token is in a link, by Markdown or by a tag. */
function isLinked(tokens, index) {
  let depth = 0;
  for (const { type, content } of tokens.slice(0, index)) {
    if (type === 'link_open' || (type === 'html_inline' && /^<a\b/.test(content))) depth++;
    if (type === 'link_close' || (type === 'html_inline' && /^<\/a/.test(content))) depth--;
  }
  return depth > 0;
}

/** Whether the page is this target's own: it need not link to itself. */
const isOwn = (target, model) => target === model || target.parent === model || target === model.parent;

export function linkNames(app) {
  let names;
  let page;
  let imports = new Map();
  // After the links of the comments are resolved, and the exports without a comment are known.
  app.converter.on(Converter.EVENT_END, ({ project }) => {
    names = new Names(project.children);
    addGuides(project, names);
  });
  app.renderer.on(PageEvent.BEGIN, ({ model }) => {
    page = model;
    imports = importsOf(model.isDocument() ? model.text : '');
  });
  app.options.setValue('markdownItLoader', (parser) => {
    const render = parser.renderer.rules.code_inline;
    parser.renderer.rules.code_inline = (tokens, index, ...rest) => {
      const html = render(tokens, index, ...rest);
      if (tokens[index].isHeading || isLinked(tokens, index)) return html;
      const target = names.find(tokens[index].content, { imports, module: page.isProject() ? undefined : moduleOf(page).name });
      const { router } = app.renderer;
      if (target === undefined || isOwn(target, page) || !router.hasUrl(target)) return html;
      return `<a href="${router.relativeUrl(page, target)}">${html}</a>`;
    };
    // Code that is indented, as in TSDoc, gets what code between fences gets: colours, and a button that copies it.
    parser.renderer.rules.code_block = (tokens, index, { highlight }) => {
      const { content } = tokens[index];
      return highlight(content, /;\s*(?:\/\/.*)?$|=> |^(?:const|new) /m.test(content) ? 'ts' : 'text');
    };
    // TypeDoc leaves code out of the anchors of headings; GitHub does not.
    parser.core.ruler.push('code-in-headings', ({ tokens, Token }) => {
      tokens.forEach(({ type, children }, i) => {
        if (type !== 'inline' || tokens[i - 1]?.type !== 'heading_open') return;
        for (const child of children.filter((each) => each.type === 'code_inline')) {
          child.isHeading = true;
          child.children = [Object.assign(new Token('text', '', 0), { content: child.content })];
        }
      });
    });
  });
}
