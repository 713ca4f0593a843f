/**
 * The part of a long list that is in the document: the rows in view, and some before and after them. The others are two empty
 * bodies, as high as those rows are likely to be. Rows may differ in height: what is in view stays where it is when rows above it
 * turn out to be higher or lower than expected.
 *
 *     above (empty) | rows from .. to, of which some are in view | below (empty)
 */
import { arrange, make } from '../elements.ts';

/** A list of rows, from the one at the top. */
interface Rows {
  readonly length: number;
  /** Identifies the row at a place. */
  readonly idAt: (at: number) => number;
  /** Creates its elements. */
  readonly make: (at: number) => HTMLTableRowElement[];
}

/** Screens of rows in the document at a time: few, because a table is laid out as a whole; and rows at least and at most. */
const SCREENS = 3;
const MIN_ROWS = 60;
const MAX_ROWS = 300;
/** The height of a row, until it has been measured. */
const ROW_PX = 27;

export class RowWindow {
  private readonly scroll: HTMLElement;
  private readonly body: HTMLTableSectionElement;
  private readonly above: HTMLElement = space();
  private readonly below: HTMLElement = space();
  private readonly rows: Rows;
  /** The elements in the document, by the id of their row. */
  private made: Map<number, HTMLTableRowElement[]> = new Map();
  private start: number = 0;
  private rowPx: number = ROW_PX;

  constructor(scroll: HTMLElement, body: HTMLTableSectionElement, rows: Rows) {
    this.scroll = scroll;
    this.body = body;
    this.rows = rows;
    body.before(bodyOf(this.above));
    body.after(bodyOf(this.below));
  }

  /** The place of the first row in view. */
  get first(): number {
    const at = this.anchor();
    return at === undefined ? this.estimated : this.start + at;
  }

  /** The elements of a row; undefined if it is not in the document. */
  get(id: number): HTMLTableRowElement[] | undefined {
    return this.made.get(id);
  }

  /** Forgets all elements: rows look differently now. */
  clear(): void {
    this.made.clear();
  }

  /** Puts the rows into the document that belong there. `force`: the list has changed. */
  draw(force: boolean = true): void {
    if (!force && this.isEnough()) return;
    const anchor = force ? undefined : this.anchor();
    const held = anchor === undefined ? undefined : this.made.get(this.rows.idAt(this.start + anchor))?.[0];
    const before = held?.offsetTop ?? 0;
    const { length } = this.rows;
    const wanted = Math.ceil((SCREENS * this.scroll.clientHeight) / this.rowPx);
    const room = Math.max(MIN_ROWS, Math.min(MAX_ROWS, wanted));
    const first = anchor === undefined ? this.estimated : this.start + anchor;
    this.start = Math.max(0, Math.min(first - Math.floor(room / SCREENS), length - room));
    const end = Math.min(length, this.start + room);
    const made = new Map<number, HTMLTableRowElement[]>();
    for (let at = this.start; at < end; at++) {
      const id = this.rows.idAt(at);
      made.set(id, this.made.get(id) ?? this.rows.make(at));
    }
    this.made = made;
    this.arrange();
    this.reserve(length - end);
    // All that is read of the layout is read once, unless rows are higher than expected.
    if (this.measure(made.size)) this.reserve(length - end);
    if (held?.isConnected) this.scroll.scrollTop += held.offsetTop - before;
  }

  /** Puts the elements that are known into the document, in order. */
  arrange(): void {
    arrange(this.body, [...this.made.values()].flat());
  }

  /** Scrolls so that a row is in view. */
  reveal(at: number): void {
    const id = this.rows.idAt(at);
    if (!this.made.has(id)) {
      this.scroll.scrollTop = at * this.rowPx;
      this.draw();
    }
    this.made.get(id)?.[0]?.scrollIntoView({ block: 'nearest' });
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
    for (const elements of this.made.values()) {
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
    // An estimate that changes all the time would move the bar that one scrolls with.
    if (!(px > 0 && Math.abs(px - this.rowPx) > 1)) return false;
    this.rowPx = px;
    return true;
  }
}

function space(): HTMLElement {
  // In one column: in a table of a fixed layout, a cell over more columns than there are makes new ones.
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
