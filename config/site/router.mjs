// Where pages are, and the navigation: documents where they are in the repository, the reference by entry point.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { BaseRouter, DefaultTheme } from 'typedoc';
import { anchorOf, GROUPS } from './pages.mjs';

/** `docs/bridge.md` is `docs/bridge.html`; `Hub` of watchmux/http is `reference/http/Hub.html`. */
export class SiteRouter extends BaseRouter {
  /** Anchors of sections that the search finds, by what stands for them in its index. */
  sections = new Map();

  getIdealBaseName(reflection) {
    if (reflection.isDocument()) return reflection.path.replace(/(^|\/)README\.md$/, '$1index').replace(/\.md$/, '');
    const names = [];
    let each = reflection;
    for (; !each.parent.isProject(); each = each.parent) names.unshift(each.name.replace(/[^\w$-]/g, '_'));
    return ['reference', each.slug, ...(names.length === 0 ? ['index'] : names)].join('/');
  }

  /** The start page and the list of modules are one thing to TypeDoc, so both are at the root. */
  getFileName(baseName) {
    return super.getFileName(baseName === 'modules' ? 'reference' : baseName);
  }

  getFullUrl(target) {
    return this.sections.get(target) ?? super.getFullUrl(target);
  }

  /** Headings have the anchors that GitHub gives them, so that a link works in both places. */
  buildPages(project) {
    const pages = super.buildPages(project);
    for (const slugger of this.sluggers.values()) slugger.serialize = anchorOf;
    return pages;
  }
}

/** The module that something belongs to. */
export function moduleOf(reflection) {
  return reflection.parent.isProject() ? reflection : moduleOf(reflection.parent);
}

export class SiteTheme extends DefaultTheme {
  /** All documents and entry points, and the exports of one: with those of all, a page would take long to show its navigation. */
  buildNavigation(project, shown) {
    const leaf = (reflection) => ({
      text: reflection.name,
      path: this.router.getFullUrl(reflection),
      kind: reflection.kind,
      class: this.getReflectionClasses(reflection),
    });
    const documents = new Map(project.documents.map((document) => [document.path, document]));
    const groups = GROUPS.map(({ title, documents: paths }) => ({
      text: title,
      children: paths.map((path) => leaf(documents.get(path))),
    }));
    const exportsOf = (module) =>
      module.children.filter((child) => !child.isReference() && this.router.hasOwnDocument(child)).map(leaf);
    // What opens and closes is no link as well: nobody could tell what Enter does.
    const modules = project.children.map((module) =>
      module === shown
        ? { text: module.name, children: [{ ...leaf(module), text: 'All exports' }, ...exportsOf(module)] }
        : leaf(module),
    );
    const all = { text: 'All entry points', path: this.router.getFullUrl(project) };
    return [...groups, { text: 'Reference', children: [all, ...modules] }];
  }
}

/** Writes the navigation of the pages of each entry point. */
export function writeNavigations(app) {
  app.renderer.postRenderAsyncJobs.push(async ({ project, outputDirectory }) => {
    for (const module of project.children) {
      const data = deflateSync(JSON.stringify(app.renderer.theme.buildNavigation(project, module))).toString('base64');
      writeFileSync(join(outputDirectory, `assets/navigation-${module.slug}.js`), `window.navigationData = "${data}"\n`);
    }
  });
}
