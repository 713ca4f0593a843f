/** The deepest nesting of objects and lists in a JSON text that is read; as in Go, beyond it the text is refused. */
export const MAX_DEPTH = 10_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** A bit that tells a brace from a bracket. */
const BRACE = 0x20;
const OPENS = 0x7b;
const CLOSES = 0x7d;

/** How often a character occurs, at most once more than the limit. Far faster than to look at each character. */
function countOf(text: string, char: string): number {
  let count = 0;
  for (let at = text.indexOf(char); at >= 0 && count <= MAX_DEPTH; at = text.indexOf(char, at + 1)) count++;
  return count;
}

/**
 * Whether a JSON text is nested deeper than {@link MAX_DEPTH} levels. `JSON.parse` takes any depth, but whatever walks through its
 * result, such as `JSON.stringify`, needs a stack. Looks at long texts only: each level takes two characters.
 */
export function isTooDeep(text: string): boolean {
  if (text.length <= 2 * MAX_DEPTH || countOf(text, '{') + countOf(text, '[') <= MAX_DEPTH) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      for (let next = 0; at < text.length && next !== QUOTE; ) {
        next = text.charCodeAt(++at);
        if (next === BACKSLASH) at++;
      }
    } else if ((char | BRACE) === OPENS) {
      if (++depth > MAX_DEPTH) return true;
    } else if ((char | BRACE) === CLOSES) depth--;
  }
  return false;
}
