// What TypeDoc's pages lack for those who do not see them, or use no mouse. test/e2e/site.test.ts lets axe-core look for more.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceOnce } from './pages.mjs';

/** Landmarks, levels of headings without a gap, and no link within what opens and closes. */
export function improveAccess(html) {
  let page = replaceOnce(html, /<div class="col-content">/, '<main class="col-content">');
  page = replaceOnce(page, /<\/div>(?=\s*<div class="col-sidebar">)/, '</main>');
  page = replaceOnce(page, /<div class="page-menu">/, '<div class="page-menu" role="region" aria-label="This page">');
  page = page.replace(/<summary\b.*?<\/summary>/gs, (summary) =>
    summary.replace(/<a\b[^>]*class="tsd-anchor-icon">.*?<\/a>/gs, ''),
  );
  return levelHeadings(page);
}

/** A heading looks as TypeDoc wants it, and is one level below the one that it belongs to. */
function levelHeadings(html) {
  const above = [];
  return html.replace(/<h([1-6])(?=[ >])/g, (tag, digit) => {
    const level = Number(digit);
    while (above.length > 0 && above.at(-1) >= level) above.pop();
    above.push(level);
    return above.length === level ? tag : `${tag} aria-level="${above.length}"`;
  });
}

/** A result of the search is an option and a link in one. Of a link within an option, no screen reader would tell. */
export function improveResults(out) {
  change(join(out, 'assets/main.js'), (script) => {
    let text = replaceOnce(script, /(?<=let \w+=document\.createElement\(")li(?="\);\w+\.id=`tsd-search:)/, 'a');
    text = replaceOnce(
      text,
      /let (\w+)=document\.createElement\("a"\);\1\.tabIndex=-1,\1\.href=([^,]+),(?=\1\.innerHTML=.{0,99}?(\w+)\.append\(\1\))/,
      (_, inner, url, option) =>
        `let ${inner}=document.createElement("span");${inner}.className="result",${option}.tabIndex=-1,${option}.href=${url},`,
    );
    return replaceOnce(text, /(?<=\w+)\?\.querySelector\("a"\)(?=\?\.click\(\))/, '');
  });
  change(join(out, 'assets/style.css'), (style) =>
    style
      .replaceAll('#tsd-search-results > li > a', '#tsd-search-results > a > .result')
      .replaceAll('#tsd-search-results > li', '#tsd-search-results > a'),
  );
}

function change(path, by) {
  writeFileSync(path, by(readFileSync(path, 'utf8')));
}
