/**
 * The events that match, newest first. Of up to ten thousand, only a window is in the document. Matching runs in slices, so
 * that neither a new filter nor a flood blocks the page.
 *
 * Nothing moves while the user reads: on request, or while a row is open or has the keyboard's focus, or while the newest rows are
 * not in view, the table stands still and counts new events.
 *
 * Keyboard: the rows are one tab stop. Arrow keys, Page Up and Page Down, Home and End move between them, Enter opens one.
 */
import { byId, clone, copyText, jsonBox, make, say } from '../elements.ts';
import { RowWindow } from '../row-window.ts';
import { count, plural, timeOf, visible } from '../words.ts';
import { toRuns, withStyles } from './ansi.ts';
import type { EventRow, ListedRow, PipeEvents } from './events.ts';
import { withoutStyles } from './fields.ts';
import { matches, type Term } from './query.ts';
import { cellText, type PipeColumn } from './view.ts';

/** A filter for rows. */
interface Wanted {
  readonly terms: readonly Term[];
  /** Empty for all. */
  readonly type: string;
}

/** Characters of an event in its row, and if lines are wrapped. */
const SHOWN_CHARS = 300;
const WRAPPED_CHARS = 2_000;
/** Characters of a text below its row. */
const DETAIL_CHARS = 100_000;
/** How long the page may be busy with matching at a stretch, and after how many rows, or KiB of text, it looks at the clock. */
const SLICE_MS = 8;
const SLICE_ROWS = 256;
/** How long after the last step of scrolling the tab key leads to a row in view. */
const REST_MS = 150;

/** What the table tells the page. */
interface TableEvents {
  /** An event with a level has matched. */
  readonly onLevel: () => void;
  /** A text was copied, or could not be. */
  readonly onCopied: (text: string) => void;
}

/** A row of the table: its element, and that of its detail if it is open. */
interface EventView {
  readonly elements: HTMLTableRowElement[];
}

export class EventTable {
  private readonly scroll: HTMLElement = byId('scroll');
  private readonly body: HTMLTableSectionElement = byId<HTMLTableSectionElement>('rows');
  private readonly pause: HTMLElement = byId('pause');
  private readonly store: PipeEvents;
  private readonly events: TableEvents;
  private readonly window: RowWindow<number, EventView>;
  private wanted: Wanted = { terms: [], type: '' };
  private columns: readonly PipeColumn[] = [];
  private wrap: boolean = false;
  /** The rows that match, oldest first. */
  private list: ListedRow[] = [];
  private gaps: number = 0;
  /** Rows with a smaller id have been matched. */
  private next: number = 0;
  private slice: ReturnType<typeof setTimeout> | undefined = undefined;
  /** Why the table stands still. */
  private asked: boolean = false;
  private focused: boolean = false;
  private scrolled: boolean = false;
  private readonly open: Set<number> = new Set();
  /** The focus moves from row to row, and may be nowhere in between. */
  private moving: boolean = false;
  /** The row that the tab key leads to. */
  private active: number | undefined = undefined;
  private stop: HTMLButtonElement | null = null;
  private resting: ReturnType<typeof setTimeout> | undefined = undefined;

  constructor(store: PipeEvents, events: TableEvents) {
    this.store = store;
    this.events = events;
    const { body, pause, scroll } = this;
    const ids = { scroll: 'scroll', body: 'rows' };
    this.window = new RowWindow(ids, {
      get length() {
        return list().length;
      },
      idAt: (at) => this.at(at).id,
      placeOf: (id) => this.placeOf(id),
      show: (at, shown) => shown ?? { elements: this.make(this.at(at)) },
    });
    const list = (): readonly ListedRow[] => this.list;
    pause.addEventListener('click', () => this.onPause());
    scroll.addEventListener('scroll', () => this.onScroll(), { passive: true });
    body.addEventListener('click', (event) => this.onClick(event));
    body.addEventListener('keydown', (event) => this.onKey(event));
    body.addEventListener('focusin', ({ target }) => this.onFocus(target as Element));
    body.addEventListener('focusout', ({ relatedTarget }) => {
      if (!this.focused || this.moving || body.contains(relatedTarget as Element | null)) return;
      this.focused = false;
      // If the focus moves to that button, the button keeps its label.
      if (relatedTarget === pause) this.asked = true;
      this.release();
    });
  }

  /** Shows events that match, and nothing else. Rows that were open are closed. */
  filter(wanted: Wanted): void {
    this.wanted = wanted;
    this.next = 0;
    this.open.clear();
    this.window.clear();
    this.window.toStart();
    this.scrolled = false;
    this.match(true);
  }

  /** Shows other columns, or whole lines. */
  arrange(columns: readonly PipeColumn[], wrap: boolean): void {
    this.columns = columns;
    this.wrap = wrap;
    this.body.parentElement?.classList.toggle('wrap', wrap);
    this.window.clear();
    this.redraw();
  }

  /** Shows what has arrived since the last call. */
  draw(): void {
    if (this.held) this.sayPaused();
    else this.match();
    this.sayNote();
  }

  /** The events that are shown, oldest first. */
  *shown(): Generator<EventRow, void> {
    for (const row of this.list) if (row.kind === 'event') yield row;
  }

  /** Number of events that are shown. */
  get found(): number {
    return this.list.length - this.gaps;
  }

  private get held(): boolean {
    return this.asked || this.focused || this.scrolled || this.open.size > 0;
  }

  private get filtered(): boolean {
    return this.wanted.terms.length > 0 || this.wanted.type !== '';
  }

  /** The row at a place, from the newest. */
  private at(place: number): ListedRow {
    return this.list[this.list.length - 1 - place] as ListedRow;
  }

  /** Matches the rows that have arrived, in slices. What was shown stays until a new list is complete. */
  private match(anew: boolean = false): void {
    if (anew) clearTimeout(this.slice);
    else if (this.slice !== undefined) return;
    const list: ListedRow[] = anew ? [] : this.list;
    const work = (): void => {
      this.slice = undefined;
      const until = performance.now() + SLICE_MS;
      let left = SLICE_ROWS;
      for (const row of this.store.from(this.next)) {
        this.next = row.id + 1;
        if (this.isWanted(row)) list.push(row);
        left -= row.kind === 'event' ? 1 + row.text.length / 1_024 : 1;
        if (left > 0) continue;
        left = SLICE_ROWS;
        if (performance.now() < until) continue;
        this.slice = setTimeout(work);
        return;
      }
      this.next = this.store.head;
      this.show(list);
    };
    work();
  }

  private isWanted(row: ListedRow): boolean {
    if (row.kind === 'gap') return !this.filtered;
    const { terms, type } = this.wanted;
    if ((type !== '' && row.type !== type) || !matches(row, terms)) return false;
    // Not for each: a line without a level takes longest.
    if ((row.id & LEVEL_SAMPLE) === 0 || this.list.length < LEVEL_SAMPLE) if (row.level !== undefined) this.events.onLevel();
    return true;
  }

  /** Shows a list that is complete, without the rows that are no longer held. */
  private show(list: ListedRow[]): void {
    const { oldest } = this.store;
    let from = 0;
    while (from < list.length && (list[from] as ListedRow).id < oldest) from++;
    this.list = from > 0 ? list.slice(from) : list;
    this.gaps = this.filtered ? 0 : this.list.reduce((sum, { kind }) => sum + Number(kind === 'gap'), 0);
    this.redraw();
    this.sayPaused();
    this.sayNote();
  }

  private redraw(): void {
    const { body } = this;
    const focused = body.contains(document.activeElement);
    this.window.draw();
    byId('events-table').setAttribute('aria-rowcount', String(this.list.length + 1));
    const newest = this.list.length > 0 ? this.at(0) : undefined;
    // A column of a fixed width depends on how long the numbers are.
    const digits = newest?.kind === 'event' ? (newest.place ?? 0) : this.store.received;
    body.parentElement?.style.setProperty('--digits', String(String(digits).length));
    this.keepStop();
    // The element that had the focus is gone. The newest row gets it.
    if (focused && !body.contains(document.activeElement)) body.querySelector('button')?.focus();
  }

  /** Of the rows, one is reachable by the tab key: the one that had the focus last, or the first in view. */
  private keepStop(): void {
    const { body, active } = this;
    const chosen = active === undefined ? undefined : this.window.shown.get(active)?.elements[0];
    const place = this.list.length > 0 ? this.window.first : -1;
    const first = place < 0 ? undefined : this.window.shown.get(this.at(place).id)?.elements[0];
    const stop = (chosen ?? first)?.querySelector<HTMLButtonElement>('.open') ?? body.querySelector<HTMLButtonElement>('.open');
    // Without rows, their headings may still have to be scrolled.
    this.scroll.tabIndex = stop === null ? 0 : -1;
    if (stop === this.stop) return;
    if (this.stop !== null) this.stop.tabIndex = -1;
    if (stop !== null) stop.tabIndex = 0;
    this.stop = stop;
  }

  private onPause(): void {
    if (!this.held) this.asked = true;
    else {
      this.asked = false;
      this.focused = false;
      this.scrolled = false;
      this.open.clear();
      this.window.clear();
      this.window.toStart();
    }
    this.release();
  }

  /** A reason to stand still has come or gone. */
  private release(): void {
    this.sayPaused();
    if (!this.held) this.match();
  }

  private sayPaused(): void {
    const { held } = this;
    const waiting = held ? this.store.head - this.next : 0;
    // Its label says what it does next. A pressed state would mean the opposite.
    this.pause.classList.toggle('on', held);
    say(this.pause, !held ? 'Pause' : waiting > 0 ? `Continue, ${count(waiting)} new` : 'Continue');
  }

  private sayNote(): void {
    const kept = `the last ${plural(this.store.events, 'event')}`;
    say(byId('note'), this.filtered ? `${count(this.found)} of ${kept}` : kept);
    const empty = byId('none');
    empty.toggleAttribute('hidden', this.list.length > 0);
    say(empty, this.filtered ? 'Nothing matches.' : 'No events yet. They appear here as they arrive.');
  }

  private onScroll(): void {
    const scrolled = this.scroll.scrollTop > 8;
    this.window.draw(false);
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.keepStop(), REST_MS);
    if (scrolled === this.scrolled) return;
    this.scrolled = scrolled;
    this.release();
  }

  private onFocus(target: Element): void {
    const id = target.closest('tr')?.dataset.id;
    if (id !== undefined) this.active = Number(id);
    if (this.focused || !target.matches('.open:focus-visible')) return;
    this.focused = true;
    this.release();
  }

  private onKey(event: KeyboardEvent): void {
    const target = event.target as Element;
    const id = target.closest('tr')?.dataset.id;
    if (id === undefined || !target.matches('.open')) return;
    const at = this.placeOf(Number(id));
    const last = this.list.length - 1;
    const { key } = event;
    const { pageRows } = this.window;
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: pageRows, PageUp: -pageRows, Home: -last, End: last }[key];
    if (at < 0 || by === undefined) return;
    event.preventDefault();
    let to = Math.max(0, Math.min(last, at + by));
    // A gap is not a stop.
    while (this.at(to).kind === 'gap' && to > 0 && to < last) to += Math.sign(by);
    this.moving = true;
    this.window.reveal(to);
    this.window.shown.get(this.at(to).id)?.elements[0]?.querySelector<HTMLButtonElement>('.open')?.focus({ preventScroll: true });
    this.moving = false;
    this.keepStop();
  }

  /** The place of a row, from the newest; -1 if it is not in the list. */
  private placeOf(id: number): number {
    const at = this.list.findIndex((row) => row.id === id);
    return at < 0 ? -1 : this.list.length - 1 - at;
  }

  private onClick({ target }: Event): void {
    const row = (target as Element).closest('tr');
    if (row?.dataset.id !== undefined && String(getSelection()) === '') this.toggle(row, Number(row.dataset.id));
  }

  private toggle(element: HTMLTableRowElement, id: number): void {
    const elements = this.window.shown.get(id)?.elements;
    const place = this.placeOf(id);
    if (elements === undefined || place < 0) return;
    const opens = !this.open.delete(id);
    element.querySelector('.open')?.setAttribute('aria-expanded', String(opens));
    if (opens) {
      this.open.add(id);
      elements.push(this.toDetail(this.at(place) as EventRow));
    } else elements.length = 1;
    this.window.arrange();
    this.release();
  }

  private make(row: ListedRow): HTMLTableRowElement[] {
    const span = this.columns.length + 1;
    if (row.kind === 'event') {
      const isOpen = this.open.has(row.id);
      const element = this.toRow(row, isOpen);
      return isOpen ? [element, this.toDetail(row)] : [element];
    }
    const tr = make('tr', { name: 'gap' });
    const missed =
      row.missed === undefined ? 'the server has restarted' : `${plural(row.missed, 'event')} did not reach this page`;
    const td = make('td', { text: missed });
    td.colSpan = span;
    tr.append(td);
    return [tr];
  }

  private toRow(row: EventRow, isOpen: boolean): HTMLTableRowElement {
    const tr = clone<HTMLTableRowElement>('row');
    const { place, level } = row;
    tr.dataset.id = String(row.id);
    tr.dataset.type = row.type;
    if (level !== undefined) tr.dataset.level = level;
    const button = tr.querySelector('button') as HTMLButtonElement;
    button.textContent = place === undefined ? '-' : String(place);
    button.setAttribute('aria-expanded', String(isOpen));
    button.setAttribute('aria-label', `${place === undefined ? 'no number' : place}, ${visible(row.type)}: detail`);
    for (const { name } of this.columns) tr.append(this.toCell(row, name));
    return tr;
  }

  private toCell(row: EventRow, name: string): HTMLTableCellElement {
    const isField = name !== 'received' && name !== 'level' && name !== 'type';
    const td = make('td', { name: isField ? (name === 'object' ? 'field object' : 'field') : name });
    const text = cellText(row, name, timeOf);
    const line = name === 'object' && typeof row.event.object !== 'string' ? withStyles(text.slice(0, DETAIL_CHARS)) : text;
    const span = make('span');
    span.append(styled(line, this.wrap ? WRAPPED_CHARS : SHOWN_CHARS));
    td.append(span);
    return td;
  }

  private toDetail(row: EventRow): HTMLTableRowElement {
    const tr = make('tr', { name: 'detail' });
    const td = make('td');
    td.colSpan = this.columns.length + 1;
    const { event, time, text } = row;
    const version = event.resourceVersion ?? 'none: sent to this client only';
    td.append(make('p', { text: `type ${visible(event.type)}` }));
    td.append(make('p', { text: `version ${version}, received at ${time.toISOString()}, ${plural(text.length, 'character')}` }));
    const copies = make('p', { name: 'row' });
    copies.append(
      this.copier('Copy text', () => this.columns.map(({ name }) => withoutStyles(cellText(row, name, timeOf))).join('\t')),
      this.copier('Copy JSON', () => row.toJson()),
    );
    td.append(copies, typeof row.value === 'string' ? textBox(row.value) : jsonBox(row.value));
    tr.append(td);
    return tr;
  }

  private copier(label: string, text: () => string): HTMLButtonElement {
    const button = make('button', { text: label });
    button.addEventListener('click', () => {
      void copyText(text()).then((copied) => this.events.onCopied(copied ? `${label}: done.` : `${label}: the browser refuses.`));
    });
    return button;
  }
}

/** One in sixteen of the rows that match is checked for a level, as are the first ones. */
const LEVEL_SAMPLE = 15;

/** A text with its styles as classes, cut to a length. */
function styled(text: string, maxChars: number): DocumentFragment {
  const fragment = document.createDocumentFragment();
  const { runs, cut } = toRuns(text, maxChars);
  for (const run of runs)
    fragment.append(run.name === '' ? visible(run.text) : make('span', { text: visible(run.text), name: run.name }));
  if (cut) fragment.append(' \u2026');
  return fragment;
}

/** A line of text, in full. It can have the focus, so that its content can be scrolled by keyboard. */
function textBox(text: string): HTMLPreElement {
  const pre = make('pre');
  pre.tabIndex = 0;
  pre.setAttribute('aria-label', 'text');
  pre.append(styled(text, DETAIL_CHARS));
  return pre;
}
