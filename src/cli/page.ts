import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A page, and the content security policy that allows it and nothing else. */
export interface LivePage {
  readonly html: string;
  readonly policy: string;
}

/** What a page is made of. */
interface Parts {
  readonly style: string;
  readonly script: string;
}

/**
 * Makes a page of one file that loads nothing, so it works without a network. Data is inserted only as text, never as markup.
 */
export function inOneFile({ script, style, toHtml }: Parts & { readonly toHtml: (parts: Parts) => string }): LivePage {
  // The only sequences that an inline script must not contain. The replacements mean the same in JavaScript.
  const safe = script.replaceAll('</script', '<\\/script').replaceAll('<!--', '\\x3c!--');
  const policy = [
    "default-src 'none'",
    `style-src ${hashOf(style)}`,
    `script-src ${hashOf(safe)}`,
    "connect-src 'self'",
    // Allows the empty icon, which keeps browsers from requesting one.
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return { html: toHtml({ style, script: safe }), policy: policy.join('; ') };
}

/** Returns a script that was bundled when this package was built. It is next to the built command line. */
export function builtScript(name: string): string {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
