/** Returns the element with this id. Throws if there is none: page and script belong together, so that is a bug. */
export function byId<T extends Element = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found as Element as T;
}

/** Properties of a new element. Its text is set as text, so data from the network never becomes markup. */
export interface Looks {
  readonly text?: string | undefined;
  readonly name?: string | undefined;
  readonly title?: string | undefined;
}

/** Creates an element. */
export function make<K extends keyof HTMLElementTagNameMap>(tag: K, looks: Looks = {}): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (looks.text !== undefined) element.textContent = looks.text;
  if (looks.name !== undefined) element.className = looks.name;
  if (looks.title !== undefined) element.title = looks.title;
  return element;
}

/** Clones the content of one of the page's templates. */
export function clone<T extends Element>(template: string): T {
  return byId<HTMLTemplateElement>(template).content.firstElementChild?.cloneNode(true) as T;
}

/** Sets a text if it has changed. Unchanged text is neither laid out nor read out again. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
