import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { pageHtml } from './page-html.ts';
import { STYLE } from './page-style.ts';

/** The live page, and the content security policy that lets it and nothing else run. */
export interface LivePage {
  readonly html: string;
  readonly policy: string;
}

/**
 * The page that `watchmux pipe` serves at `/`: events as they come, who else is watching, and what this page's own connection
 * goes through. One file, nothing to load, so it works without a network; data gets into it as text only, never as markup.
 *
 * Its script is `page/main.ts` and what that imports, made into one file when this package is built.
 */
export function livePage(script: string = builtScript()): LivePage {
  // The one thing that an inline script may not contain; in JavaScript it says the same.
  const safe = script.replaceAll('</script', '<\\/script').replaceAll('<!--', '\\x3c!--');
  const policy = [
    "default-src 'none'",
    `style-src ${hashOf(STYLE)}`,
    `script-src ${hashOf(safe)}`,
    "connect-src 'self'",
    // The empty icon that keeps browsers from asking for one.
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return { html: pageHtml({ style: STYLE, script: safe }), policy: policy.join('; ') };
}

/** Lies beside the built command line. */
function builtScript(): string {
  return readFileSync(new URL('live-page.js', import.meta.url), 'utf8');
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
