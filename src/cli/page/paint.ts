import { make } from './elements.ts';

/** Text that is longer is not painted: one element per word would be too many. */
const MAX_PAINTED_CHARS = 20_000;

/** A key, a string, or a number and the like, in JSON that JSON.stringify has written. */
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Pretty JSON with its keys, strings and numbers told apart by colour, as text nodes in elements. */
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
