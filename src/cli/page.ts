import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { pageHtml } from './page-html.ts';
import { STYLE } from './page-style.ts';

/** The live page, and the content security policy that allows it and nothing else. */
export interface LivePage {
  readonly html: string;
  readonly policy: string;
}

/**
 * Creates the page that `watchmux pipe` serves at `/`: incoming events, the other clients, and the state of the page's own
 * connection. It is one file that loads nothing, so it works without a network. Data is inserted only as text, never as markup.
 *
 * Its script is `page/main.ts` with its imports, bundled when this package is built. Its heading is `title`; default: the name of
 * this program.
 */
export function livePage(script: string = builtScript(), title?: string): LivePage {
  // The only sequences that an inline script must not contain. The replacements mean the same in JavaScript.
  const safe = script.replaceAll('</script', '<\\/script').replaceAll('<!--', '\\x3c!--');
  const policy = [
    "default-src 'none'",
    `style-src ${hashOf(STYLE)}`,
    `script-src ${hashOf(safe)}`,
    "connect-src 'self'",
    // Allows the empty icon, which keeps browsers from requesting one.
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return { html: pageHtml({ style: STYLE, script: safe, title }), policy: policy.join('; ') };
}

/** It is next to the built command line. */
function builtScript(): string {
  return readFileSync(new URL('live-page.js', import.meta.url), 'utf8');
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
