/**
 * The part of a long list that is in the document: the rows in view, and some before and after them. Two empty bodies stand for
 * the others, as high as those rows are likely to be. Rows may differ in height, and may come and go: what is in view stays
 * where it is, unless that is the beginning of the list.
 *
 *     above (empty) | rows from .. to, of which some are in view | below (empty)
 */
import { arrange, byId, make } from './elements.ts';

/** A list of rows, from the one at the top. */
interface Rows<Id, Row extends ShownRow> {
  readonly length: number;
  readonly idAt: (at: number) => Id;
  /** The place of a row; -1 if it is not in the list. */
  readonly placeOf: (id: Id) => number;
  /** Creates a row, or updates the one in the document. */
  readonly show: (at: number, shown: Row | undefined) => Row;
}

/** A row in the document. Its first element represents it; the others are detail. */
interface ShownRow {
  readonly elements: readonly HTMLTableRowElement[];
}

/** Screens of rows in the document at a time: few, because a table is laid out as a whole. */
const SCREENS = 3;
/** Rows at least, for each screen, and at most. */
const MIN_ROWS = 20;
const MAX_ROWS = 300;
/** The height of a row, until it has been measured. */
const ROW_PX = 27;

/** What is in view. */
interface InView {
  readonly first: number;
  /** How many rows fit into it. */
  readonly inView: number;
  /** Of the list. */
  readonly length: number;
  readonly screens?: number | undefined;
}

/** Which rows are in the document. */
export function rowsAround({ first, inView, length, screens = SCREENS }: InView): {
  readonly start: number;
  readonly end: number;
} {
  const room = Math.ceil(Math.max(screens * MIN_ROWS, Math.min(MAX_ROWS, screens * inView)));
  const before = Math.floor(Math.max(0, room - inView) / 2);
  const start = Math.max(0, Math.min(first - before, length - room));
  return { start, end: Math.min(length, start + room) };
}

export class RowWindow<Id extends number | string, Row extends ShownRow> {
  readonly body: HTMLTableSectionElement;
  private readonly scroll: HTMLElement;
  private readonly above: HTMLElement = space();
  private readonly below: HTMLElement = space();
  private readonly rows: Rows<Id, Row>;
  private readonly screens: number | undefined;
  /** The rows in the document, in order. */
  private made: Map<Id, Row> = new Map();
  private start: number = 0;
  private rowPx: number = ROW_PX;

  /** `scroll` and `body` are ids of elements: of what scrolls, and of the body with the rows. Default of `screens`: 3. */
  constructor(
    { scroll, body, screens }: { readonly scroll: string; readonly body: string; readonly screens?: number },
    rows: Rows<Id, Row>,
  ) {
    this.screens = screens;
    this.scroll = byId(scroll);
    this.body = byId<HTMLTableSectionElement>(body);
    this.rows = rows;
    this.body.before(bodyOf(this.above));
    this.body.after(bodyOf(this.below));
  }

  /** The place of the first row in view. */
  get first(): number {
    const at = this.anchor();
    return at === undefined ? this.estimated : this.start + at;
  }

  /** How many rows a key for a page moves by: one less than are in view. */
  get pageRows(): number {
    return Math.max(1, Math.floor((this.scroll.clientHeight - this.headPx) / this.rowPx) - 1);
  }

  /** The rows in the document, in order. */
  get shown(): ReadonlyMap<Id, Row> {
    return this.made;
  }

  /** Drops all rows, because they look different now. */
  clear(): void {
    this.made.clear();
  }

  /** Goes to the beginning. */
  toStart(): void {
    this.scroll.scrollTop = 0;
  }

  /** Puts the rows that belong there into the document. `force`: the list has changed. */
  draw(force: boolean = true): void {
    if (!force && this.isEnough()) return;
    const held = this.held();
    const before = held?.element.offsetTop ?? 0;
    const { screens } = this;
    const { length } = this.rows;
    const inView = this.scroll.clientHeight / this.rowPx;
    const { start, end } = rowsAround({ first: held?.at ?? this.estimated, inView, length, screens });
    this.start = start;
    const made = new Map<Id, Row>();
    for (let at = start; at < end; at++) {
      const id = this.rows.idAt(at);
      made.set(id, this.rows.show(at, this.made.get(id)));
    }
    this.made = made;
    this.arrange();
    this.reserve(length - end);
    // The layout is read once, unless rows are higher than expected.
    if (this.measure(made.size)) this.reserve(length - end);
    if (held?.element.isConnected) this.scroll.scrollTop += held.element.offsetTop - before;
  }

  /** Puts the elements that are known into the document, in order. */
  arrange(): void {
    arrange(
      this.body,
      [...this.made.values()].flatMap(({ elements }) => elements),
    );
  }

  /** Scrolls so that a row is in view. */
  reveal(at: number): void {
    const id = this.rows.idAt(at);
    if (!this.made.has(id)) {
      this.scroll.scrollTop = at * this.rowPx;
      this.draw();
    }
    this.made.get(id)?.elements[0]?.scrollIntoView({ block: 'nearest' });
  }

  /** The row that stays where it is: the first in view that is still in the list; none at the beginning. */
  private held(): { readonly at: number; readonly element: HTMLElement } | undefined {
    const from = this.scroll.scrollTop < this.rowPx ? undefined : this.anchor();
    if (from === undefined) return undefined;
    for (const [id, { elements }] of [...this.made].slice(from)) {
      const at = this.rows.placeOf(id);
      if (at >= 0) return { at, element: elements[0] as HTMLElement };
    }
    return undefined;
  }

  private get estimated(): number {
    return Math.min(Math.max(0, this.rows.length - 1), Math.floor(this.scroll.scrollTop / this.rowPx));
  }

  /** Of the rows in the document, the first one that is in view; undefined if none is. */
  private anchor(): number | undefined {
    const { scrollTop, clientHeight } = this.scroll;
    const top = this.body.offsetTop - this.headPx;
    if (this.made.size === 0 || top > scrollTop + clientHeight || top + this.body.offsetHeight <= scrollTop) return undefined;
    let at = 0;
    for (const { elements } of this.made.values()) {
      const last = elements.at(-1) as HTMLElement;
      if (last.offsetTop + last.offsetHeight - this.headPx > scrollTop) return at;
      at++;
    }
    return undefined;
  }

  /** The head stays in view, so it covers what is below it. */
  private get headPx(): number {
    return (this.body.parentElement as HTMLTableElement).tHead?.offsetHeight ?? 0;
  }

  /** Whether there are rows for a part of a screen in both directions, or no more rows. */
  private isEnough(): boolean {
    const { scrollTop, clientHeight } = this.scroll;
    const top = this.body.offsetTop - this.headPx;
    const end = this.start + this.made.size;
    const before = this.start === 0 || top <= scrollTop - clientHeight / 4;
    return before && (end >= this.rows.length || top + this.body.offsetHeight >= scrollTop + clientHeight * 1.25);
  }

  /** Sets the heights of the empty bodies. */
  private reserve(after: number): void {
    this.above.style.height = `${this.start * this.rowPx}px`;
    this.below.style.height = `${after * this.rowPx}px`;
  }

  /** Returns whether rows have another height than expected. */
  private measure(rows: number): boolean {
    if (rows === 0 || this.body.querySelector('.detail') !== null) return false;
    const px = this.body.offsetHeight / rows;
    // A constantly changing estimate would move the scroll bar.
    if (!(px > 0 && Math.abs(px - this.rowPx) > 1)) return false;
    this.rowPx = px;
    return true;
  }
}

function space(): HTMLElement {
  // In one column: in a table with a fixed layout, a cell that spans more columns than exist creates new ones.
  return make('td');
}

function bodyOf(cell: HTMLElement): HTMLElement {
  const body = make('tbody', { name: 'space' });
  body.setAttribute('aria-hidden', 'true');
  const row = make('tr');
  row.append(cell);
  body.append(row);
  return body;
}
