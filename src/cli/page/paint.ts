import { make } from './elements.ts';

/** Longer text is not coloured, because it would need too many elements. */
const MAX_PAINTED_CHARS = 20_000;

/** A key, a string, or another scalar, in the output of JSON.stringify. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Formats JSON with different colours for keys, strings and other values, as text nodes in elements. */
export function paint(json: string): DocumentFragment {
  const painted = document.createDocumentFragment();
  if (json.length > MAX_PAINTED_CHARS) {
    painted.append(json);
    return painted;
  }
  let from = 0;
  for (const match of json.matchAll(TOKEN)) {
    const [whole, string, colon] = match;
    const text = string ?? whole;
    const name = colon !== undefined ? 'key' : string !== undefined ? 'string' : 'number';
    painted.append(json.slice(from, match.index), make('span', { text, name }));
    from = match.index + text.length;
  }
  painted.append(json.slice(from));
  return painted;
}
