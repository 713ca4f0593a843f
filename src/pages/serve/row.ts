import { clone, make, say } from '../elements.ts';
import { age } from '../table-source.ts';
import { visible } from '../words.ts';
import { type Column, wordsOf } from './columns.ts';
import type { Entry } from './sorting.ts';

/** Labels of an object that are shown. */
const MAX_CHIPS = 6;
/** Longer texts may not fit: pointing at them shows them in full. */
const SHORT_CHARS = 14;

/** What the rows of a table have in common. */
interface RowLooks {
  readonly columns: readonly Column[];
  readonly nowMs: number;
  /** Labels that are marked, because the selector asks for them. */
  readonly asked: ReadonlySet<string>;
}

export class RowView {
  readonly element: HTMLTableRowElement = clone<HTMLTableRowElement>('object-row');
  readonly elements: readonly HTMLTableRowElement[] = [this.element];
  /** The button that opens the object. */
  readonly opener: HTMLButtonElement = make('button');
  /** What is shown. */
  entry: Entry | undefined = undefined;
  private isOpen: boolean = false;
  /** The cells that say how long ago something was. */
  private timed: (readonly [cell: Element, timeMs: number])[] = [];
  private rowIndex: number = 0;

  constructor() {
    this.opener.tabIndex = -1;
    this.opener.setAttribute('aria-expanded', 'false');
  }

  /** Which row of the table it is, from 1. */
  placeAt(index: number): void {
    // Setting an attribute, even to the same value, makes the browser recalculate the row's style.
    if (index === this.rowIndex) return;
    this.rowIndex = index;
    this.element.setAttribute('aria-rowindex', String(index));
  }

  /** Shows a row, and tells how many characters the cells have. */
  fill(entry: Entry, { columns, nowMs, asked }: RowLooks, onLength: (at: number, chars: number) => void): void {
    const { element } = this;
    const { row, key } = entry;
    this.entry = entry;
    this.timed = [];
    element.dataset.id = key;
    for (const [at, { role, isNumber, cellOf }] of columns.entries()) {
      const cell = element.cells[at] ?? element.insertCell();
      const content = cellOf(row);
      const text = wordsOf(content, nowMs);
      cell.className = isNumber ? `${role} number` : role;
      if (content.timeMs !== undefined) this.timed.push([cell, content.timeMs]);
      if (role === 'labels') chips(cell, row.metadata.labels ?? {}, asked);
      else if (role === 'name') this.name(cell, text);
      else say(cell, text);
      const title = text.length > SHORT_CHARS && role !== 'labels' ? text : '';
      if (cell.title !== title) cell.title = title;
      onLength(at, text.length);
    }
    element.classList.toggle('leaving', row.metadata.deletionTimestamp !== undefined);
  }

  /** Time has passed. */
  grow(nowMs: number): void {
    for (const [cell, timeMs] of this.timed) say(cell, age(new Date(timeMs), nowMs));
  }

  /** Whether the detail of the object is shown. */
  open(is: boolean): void {
    if (is === this.isOpen) return;
    this.isOpen = is;
    this.element.classList.toggle('open', is);
    this.opener.setAttribute('aria-expanded', String(is));
  }

  private name(cell: Element, text: string): void {
    const { opener } = this;
    if (opener.parentElement !== cell) cell.append(opener);
    const { namespace = '' } = this.entry?.row.metadata ?? {};
    opener.setAttribute('aria-label', `${text}${namespace && `, ${visible(namespace)}`}: detail`);
    say(opener, text);
  }
}

/** Labels as buttons that filter. A button stays while its text is the same, and keeps the focus. */
function chips(cell: HTMLElement, labels: Readonly<Record<string, unknown>>, asked: ReadonlySet<string>): void {
  const all = Object.keys(labels)
    .sort()
    .map((key) => `${key}=${labels[key]}`);
  const shown = all.slice(0, MAX_CHIPS);
  const known = all.map((label) => `${asked.has(label) ? '+' : ' '}${label}`).join('\n');
  if (cell.dataset.labels === known) return;
  cell.dataset.labels = known;
  const buttons = shown.map((label) => {
    const button = make('button', { text: visible(label), name: 'chip', title: visible(label) });
    button.tabIndex = -1;
    button.dataset.label = label;
    button.setAttribute('aria-pressed', String(asked.has(label)));
    return button;
  });
  const rest = all.slice(MAX_CHIPS);
  const more = rest.length === 0 ? [] : [make('span', { text: `+${rest.length}`, title: visible(rest.join(', ')), name: 'dim' })];
  cell.replaceChildren(...buttons, ...more);
}
