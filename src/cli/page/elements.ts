/** The element of that id. The page is written in one piece with this script: a missing one is a mistake in it. */
export function byId<T extends Element = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found as Element as T;
}

/** What an element is like. Its text is set as text: nothing that comes over the wire ever becomes markup. */
export interface Looks {
  readonly text?: string | undefined;
  readonly name?: string | undefined;
  readonly title?: string | undefined;
}

/** A new element. */
export function make<K extends keyof HTMLElementTagNameMap>(tag: K, looks: Looks = {}): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (looks.text !== undefined) element.textContent = looks.text;
  if (looks.name !== undefined) element.className = looks.name;
  if (looks.title !== undefined) element.title = looks.title;
  return element;
}

/** A copy of what stands in a template of the page. */
export function clone<T extends Element>(template: string): T {
  return byId<HTMLTemplateElement>(template).content.firstElementChild?.cloneNode(true) as T;
}

/** Sets a text if it has changed: what stands still is not laid out again, nor read out. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
