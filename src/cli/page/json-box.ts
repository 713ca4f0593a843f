import { make } from './elements.ts';
import { paint } from './paint.ts';
import { jsonOf, plural, visible } from './words.ts';

/** Characters of an object that are shown. */
const SHOWN_CHARS = 100_000;

/** Creates a box with a value as JSON. It can have the focus, so that its content can be scrolled by keyboard. */
export function jsonBox(value: unknown): HTMLPreElement {
  const pre = make('pre');
  pre.tabIndex = 0;
  pre.setAttribute('aria-label', 'object');
  showJson(pre, value);
  return pre;
}

/** Shows another value in such a box. */
export function showJson(pre: HTMLPreElement, value: unknown): void {
  const json = jsonOf(value, 2);
  pre.replaceChildren(paint(visible(json.slice(0, SHOWN_CHARS))));
  if (json.length > SHOWN_CHARS) pre.append(` \u2026 ${plural(json.length - SHOWN_CHARS, 'more character')}`);
}
