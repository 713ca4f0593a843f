// Writes the site with TypeDoc: documents and reference in one project, so that it resolves the links between them, indexes both for the
// search, and writes only relative addresses. What TypeDoc does not do is in the parts of this folder: its pages have addresses by entry
// point (router.mjs), code in a text becomes a link (links.mjs), a search finds sections (search.mjs), and screen readers and keyboards can use
// them (access.mjs).
import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { Application, Converter, LiteralType, MinimalSourceFile, PageEvent, ReflectionKind, UnionType } from 'typedoc';
import { improveAccess, improveResults } from './access.mjs';
import { linkNames } from './links.mjs';
import { DOCUMENTS, ENTRY_POINTS, linkedFiles, ROOT, replaceOnce, titleOf } from './pages.mjs';
import { moduleOf, SiteRouter, SiteTheme, writeNavigations } from './router.mjs';
import { improveSearch, indexSections } from './search.mjs';

const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

/** The repository has no address until config/release.mjs writes it: until then nothing links to it. */
export const HAS_REPOSITORY = manifest.repository !== undefined; // a release fills it in

const LANGUAGES =
  'bash console css go html http ini javascript js json jsonc jsx nginx python sh svelte systemd toml ts tsx typescript vue yaml';

/** Files that are pages, by the language of their code. */
const LANGUAGE_OF = {
  '.mjs': 'js',
  '.service': 'systemd',
  '.json': 'json',
  '.ts': 'ts',
  '.tsx': 'tsx',
  '.yaml': 'yaml',
  '.js': 'js',
};

/** Exports whose types name something that has no export: readers need only what is written at the name itself. */
const NOT_EXPORTED = JSON.parse(readFileSync(new URL('not-exported.json', import.meta.url), 'utf8'));

function options(out) {
  const at = (path) => join(ROOT, path);
  return {
    name: manifest.name,
    includeVersion: true,
    entryPoints: ENTRY_POINTS.map(({ source }) => at(source)),
    tsconfig: at('tsconfig.json'),
    basePath: ROOT,
    readme: at('README.md'),
    projectDocuments: DOCUMENTS.map(at),
    out,
    // npm run typecheck does that, with the newest compiler.
    skipErrorChecking: true,
    disableGit: true,
    ...(HAS_REPOSITORY
      ? { sourceLinkTemplate: `${manifest.homepage.replace(/#.*/, '')}/blob/v${manifest.version}/{path}#L{line}` }
      : { disableSources: true }),
    excludePrivate: true,
    excludeProtected: true,
    excludeInternal: true,
    excludeExternals: true,
    intentionallyNotExported: NOT_EXPORTED,
    validation: { notExported: true, invalidLink: true, invalidPath: true },
    router: 'site',
    theme: 'site',
    sort: ['kind', 'alphabetical'],
    sortEntryPoints: false,
    visibilityFilters: {},
    includeHierarchySummary: false,
    hideGenerator: true,
    // Socket.IO is no address.
    markdownItOptions: { html: true, linkify: false },
    highlightLanguages: LANGUAGES.split(' '),
    customCss: join(ROOT, 'config/site/site.css'),
    customJs: join(ROOT, 'config/site/site.js'),
    favicon: join(ROOT, 'config/site/favicon.svg'),
  };
}

/** Documents are called by their headings, files by their paths, and modules by what one imports. */
function nameEverything(app) {
  app.converter.on(Converter.EVENT_BEGIN, ({ project }) => {
    for (const path of linkedFiles()) app.converter.addDocument(project, new MinimalSourceFile('', join(ROOT, path)), path);
  });
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, document) => {
    const path = document.project.files.getReflectionPath(document).slice(ROOT.length);
    const text = readFileSync(join(ROOT, path), 'utf8');
    document.path = path;
    document.text = text;
    document.name = (path.endsWith('.md') ? titleOf(text) : undefined) ?? path;
    if (path.endsWith('.md')) return;
    const language = LANGUAGE_OF[extname(path)] ?? 'text';
    document.content = [{ kind: 'text', text: `# ${path}\n\n\`\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\`\n` }];
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children ?? []) {
      const entry = ENTRY_POINTS.find(({ source }) => source.replace(/(?:\/index)?\.tsx?$/, '') === module.name);
      if (entry === undefined) throw new Error(`TypeDoc made a module ${module.name}, which is no entry point`);
      module.name = entry.name;
      module.slug = entry.name.split('/')[1] ?? entry.name;
    }
  });
}

/** A type such as `(typeof OVERFLOWS)[number]` or an `Exclude` tells a reader nothing: the literals that it stands for do. */
function showLiterals(app) {
  const found = new Map();
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    if (!reflection.kindOf(ReflectionKind.TypeAlias)) return;
    const symbol = context.resolveAliasedSymbol(context.getSymbolFromReflection(reflection));
    const type = context.checker.getDeclaredTypeOfSymbol(symbol);
    const types = type.types ?? [type];
    if (types.every((each) => each.isLiteral())) found.set(reflection, types);
  });
  // TypeDoc sets the type after it has told of the declaration.
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, () => {
    for (const [reflection, types] of found) reflection.type = new UnionType(types.map(({ value }) => new LiteralType(value)));
  });
}

const plain = (text) =>
  text
    .replace(/<!--.*?-->/gs, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .replace(/\s+/g, ' ')
    .trim();

/** What a page is about, for search engines and previews of links: at most 160 characters. */
function descriptionOf(model) {
  if (model.isProject()) return manifest.description;
  const comment = model.comment ?? model.signatures?.[0]?.comment;
  const first = model.isDocument()
    ? (model.text.split(/\n{2,}/).find((part) => /^[A-Z`]/.test(part) && !part.startsWith('On this page')) ?? '')
    : (comment?.summary ?? [])
        .map(({ text }) => text)
        .join('')
        .split(/\n{2,}/)[0];
  const text = plain(first);
  if (text === '') return `${model.name} of ${model.parent?.isProject() ? manifest.name : model.parent?.name}`;
  return text.length <= 160 ? text : `${text.slice(0, text.lastIndexOf(' ', 157))} …`;
}

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]);

/** The guides are open until the reader closes them. */
const OPEN_GUIDES = 'localStorage.getItem("tsd-accordion-Guides") ?? localStorage.setItem("tsd-accordion-Guides", "true");';

/** Pages show at once, load the index of the search when somebody searches, say what they are about, and have one title each. */
function improvePages(app) {
  app.renderer.on(PageEvent.END, (page) => {
    const { model, url } = page;
    let html = page.contents;
    html = replaceOnce(html, /document\.body\.style\.display="none";/, OPEN_GUIDES);
    html = replaceOnce(html, /setTimeout\(\(\) => window\.app.*?,500\)/, '');
    html = replaceOnce(
      html,
      /<meta name="description" content="[^"]*"\/>/,
      `<meta name="description" content="${escaped(descriptionOf(model))}"/>`,
    );
    html = replaceOnce(html, /async src="(?=[^"]*" id="tsd-search-script")/, 'data-src="');
    if (!model.isProject() && !model.isDocument())
      html = replaceOnce(html, /assets\/navigation\.js/, `assets/navigation-${moduleOf(model).slug}.js`);
    if (url === 'reference.html') {
      html = replaceOnce(html, /(?<=<title>)(?=watchmux)/, 'Reference | ');
      html = replaceOnce(html, /(?<=<h1>)watchmux[^<]*/, 'Reference');
    }
    // Documents have titles of their own.
    if (model.isDocument() || url === 'index.html') html = replaceOnce(html, /<div class="tsd-page-title">.*?<\/div>/, '');
    page.contents = improveAccess(html);
  });
}

/** Exports without TSDoc. A class and its constructor, which have one name, need one. */
function undocumented({ children }) {
  // Links to guides have been added: they are no comment.
  const hasComment = ({ comment, signatures = [] }) =>
    [comment, ...signatures.map((each) => each.comment)].some((each) => each?.summary.length > 0);
  return children.flatMap((module) => {
    const documented = new Set(module.children.filter(hasComment).map(({ name }) => name));
    const own = module.children.filter((child) => !child.isReference());
    return own.filter(({ name }) => !documented.has(name)).map(({ name }) => `${name} of ${module.name} has no TSDoc`);
  });
}

/** Writes the site to a folder. Returns all that TypeDoc complains about. */
export async function write(out, say) {
  const app = await Application.bootstrap(options(out));
  const complaints = [];
  app.logger.addContext = (message) => message;
  const log = app.logger.log.bind(app.logger);
  app.logger.log = (message, level) => (level >= 2 ? complaints.push(message) : level === 1 ? say(message) : log(message, level));
  app.renderer.defineRouter('site', SiteRouter);
  app.renderer.defineTheme('site', SiteTheme);
  nameEverything(app);
  showLiterals(app);
  linkNames(app);
  indexSections(app);
  improvePages(app);
  writeNavigations(app);
  say('reading the sources');
  const project = await app.convert();
  if (project === undefined) throw new Error(`TypeDoc could not read the sources:\n${complaints.join('\n')}`);
  app.validate(project);
  complaints.push(...undocumented(project));
  say('writing the pages');
  // They have their place in the navigation: the page of the reference lists the entry points.
  project.groups = project.groups.filter(({ title }) => title !== 'Documents');
  await app.generateDocs(project, out);
  improveSearch(out);
  improveResults(out);
  return complaints;
}
