/** An element. */
export interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: Element[];
  text: string;
}

const ENTITY = /&(?:#(\d+)|lt|gt|amp|quot|apos);/g;

function unescaped(raw: string): string {
  if (/[<&]/.test(raw.replace(ENTITY, ''))) throw new Error(`a bare character of markup in ${raw}`);
  return raw.replace(ENTITY, (entity, code) => (code === undefined ? entity : String.fromCharCode(Number(code))));
}

/** Parses the subset of XML that charts use. Throws if it is not well-formed. */
export function parseXml(xml: string): Element {
  const root: Element = { name: '', attributes: {}, children: [], text: '' };
  const open: Element[] = [root];
  let at = 0;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML does not allow
  if (/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/.test(xml)) throw new Error('a character that XML does not have');
  for (const tag of xml.matchAll(/<(\/?)([a-zA-Z]+)((?:\s+[a-zA-Z:-]+="[^"<]*")*)\s*(\/?)>/g)) {
    const [whole, closing, name = '', attributes = '', empty] = tag;
    const parent = open.at(-1) as Element;
    parent.text += unescaped(xml.slice(at, tag.index));
    at = tag.index + whole.length;
    if (closing === '/') {
      if (parent.name !== name) throw new Error(`</${name}> closes <${parent.name}>`);
      open.pop();
      continue;
    }
    const pairs = Array.from(attributes.matchAll(/([a-zA-Z:-]+)="([^"]*)"/g), ([, key = '', value = '']) => [
      key,
      unescaped(value),
    ]);
    if (new Set(pairs.map(([key]) => key)).size < pairs.length) throw new Error(`an attribute twice in ${whole}`);
    const element: Element = { name, attributes: Object.fromEntries(pairs), children: [], text: '' };
    parent.children.push(element);
    if (empty !== '/') open.push(element);
  }
  root.text += unescaped(xml.slice(at));
  if (open.length > 1) throw new Error(`<${open.at(-1)?.name}> stays open`);
  if (root.children.length !== 1 || root.text.trim() !== '') throw new Error('there is not one root');
  return root.children[0] as Element;
}

/** Returns all elements of a tree, in document order. */
export function all(element: Element): Element[] {
  return [element, ...element.children.flatMap(all)];
}

/** Whether an element has a class. */
export function has(element: Element, style: string): boolean {
  return (element.attributes.class ?? '').split(' ').includes(style);
}
