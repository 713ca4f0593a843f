/** The deepest nesting of objects and lists in a JSON text that is read; as in Go, beyond it the text is refused. */
export const MAX_DEPTH = 10_000;

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OBJECT, END_OF_OBJECT, LIST, END_OF_LIST] = [0x7b, 0x7d, 0x5b, 0x5d];

/**
 * Whether a JSON text is nested deeper than {@link MAX_DEPTH} levels. `JSON.parse` takes any depth, but whatever walks through its
 * result, such as `JSON.stringify`, needs a stack. Looks at long texts only: each level takes two characters.
 */
export function isTooDeep(text: string): boolean {
  if (text.length <= 2 * MAX_DEPTH) return false;
  let [depth, inText] = [0, false];
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (inText) {
      if (char === BACKSLASH) at++;
      else if (char === QUOTE) inText = false;
    } else if (char === QUOTE) inText = true;
    else if (char === OBJECT || char === LIST) {
      if (++depth > MAX_DEPTH) return true;
    } else if (char === END_OF_OBJECT || char === END_OF_LIST) depth--;
  }
  return false;
}
