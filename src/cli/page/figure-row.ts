import { clone, say } from './elements.ts';

/** A row of figures, made from a template whose parts have names; some of them are charts. */
export class FigureRow {
  readonly element: HTMLTableRowElement;

  constructor(template: string) {
    this.element = clone<HTMLTableRowElement>(template);
  }

  part(name: string): HTMLElement {
    return this.element.querySelector(`[data-part=${name}]`) as HTMLElement;
  }

  say(name: string, text: string): void {
    say(this.part(name), text);
  }

  draw(name: string, path: string): void {
    this.element.querySelector(`[data-chart=${name}] path`)?.setAttribute('d', path);
  }
}

/** Makes the rows of a table those of these elements, in this order. Rows that are where they belong are not touched. */
export function arrange(body: HTMLTableSectionElement, elements: readonly HTMLTableRowElement[]): void {
  const wanted = new Set(elements);
  for (const row of [...body.rows]) if (!wanted.has(row)) row.remove();
  let next = body.firstElementChild;
  for (const element of elements) {
    if (element === next) next = next.nextElementSibling;
    else body.insertBefore(element, next);
  }
}
