import { getOrMake } from '../../watch/errors.ts';
import { byId, make, SlicedWork, say } from '../elements.ts';
import { RowWindow } from '../row-window.ts';
import { count, plural } from '../words.ts';
import { BREADTHS, type Breadth, type Column, columnsLeftOut, toColumns } from './columns.ts';
import { labelsIn } from './filters.ts';
import type { RowFollower } from './follower.ts';
import { type DetailRef, goTo, type PagePlace } from './place.ts';
import { RowView } from './row.ts';
import { type Entry, type PageRow, SortedRows } from './sorting.ts';

/** If more rows than this have changed at once, none is marked: if everything blinks, nothing stands out. */
const MAX_MARKED = 20;
const MARK_MS = 1_200;
/** A column is as wide as its longest text in view, but not wider than this. */
const MAX_CHARS = 36;
const MAX_CHARS_NARROW = 20;
const MIN_CHARS = 5;
/** A user who is still typing has not finished: what was found is announced then. */
const TYPING_MS = 700;
/** Rows whose texts are made in one step. */
const STEP_TEXTS = 500;

interface ObjectTableDeps {
  readonly follower: RowFollower;
  /** The time at which the table is correct. */
  readonly nowMs: () => number;
  /** Announces something to screen readers. */
  readonly tell: (text: string) => void;
  /** A label was clicked, such as `app=web`. */
  readonly onLabel: (label: string) => void;
  /** An object was chosen. */
  readonly onObject: (ref: DetailRef) => void;
}

/**
 * The objects of a collection, sorted by any column; only those in view are in the document. A row that stays keeps its
 * element, and the focus; rows that come and go above those in view do not move them.
 *
 *     follower --rows--> SortedRows --entries--> text filter --> RowWindow --> RowView: those in view
 *
 * Keyboard: the rows are one tab stop. Up, down, Page Up, Page Down, Home and End move between them, left and right between the name
 * and the labels of one, Enter opens it.
 */
export class ObjectTable {
  private readonly deps: ObjectTableDeps;
  /** There is room for few columns. */
  private readonly narrow: MediaQueryList = matchMedia('(max-width: 40rem)');
  private readonly text: HTMLInputElement = byId<HTMLInputElement>('text');
  private readonly breadth: HTMLSelectElement = byId<HTMLSelectElement>('breadth');
  private readonly list: HTMLElement = byId('object-list');
  private readonly window: RowWindow<string, RowView>;
  private readonly sorted: SortedRows = new SortedRows();
  private readonly work: SlicedWork = new SlicedWork();
  private columns: readonly Column[] = [];
  /** The labels that the selector asks for. */
  private asked: ReadonlySet<string> = new Set();
  /** How many more there are. */
  private leftOut: number = 0;
  /** Characters of each column. */
  private widths: number[] = [];
  private sort: { readonly column: string; readonly descending: boolean } = { column: '', descending: false };
  private entries: readonly Entry[] = [];
  /** The rows have not been read as a whole yet. */
  private isNew: boolean = true;
  /** They have been sorted, but not in the order wanted now. */
  private isUnsorted: boolean = false;
  /** The searched text of each row; whether it is known for all rows. */
  private texts: WeakMap<PageRow, string> = new WeakMap();
  private isSearchable: boolean = false;
  /** The row that has the focus, or had it last. */
  private active: string | undefined = undefined;
  private stop: HTMLButtonElement | undefined = undefined;
  private open: string | undefined = undefined;
  private announcing: ReturnType<typeof setTimeout> | undefined = undefined;

  constructor(deps: ObjectTableDeps) {
    this.deps = deps;
    const entries = (): readonly Entry[] => this.entries;
    // Its rows have more content than others, so fewer are drawn in advance.
    const ids = { scroll: 'object-list', body: 'object-rows', screens: 2.25 };
    this.window = new RowWindow(ids, {
      get length() {
        return entries().length;
      },
      idAt: (at) => (this.entries[at] as Entry).key,
      placeOf: (key) => this.placeOf(key),
      show: (at, shown) => this.view(at, shown),
    });
    this.text.addEventListener('input', () => this.search());
    this.breadth.addEventListener('change', () => {
      goTo({ columns: this.breadth.value });
      this.draw();
    });
    this.narrow.addEventListener('change', () => this.draw());
    const { body } = this.window;
    body.addEventListener('click', ({ target }) => this.onClick(target as Element));
    body.addEventListener('focusin', ({ target }) => this.onFocus(target as HTMLButtonElement));
    const { list } = this;
    list.addEventListener('keydown', (event) => this.onKey(event));
    list.addEventListener('scroll', () => this.render(false), { passive: true });
    new ResizeObserver(() => this.render(false)).observe(list);
  }

  /** Takes over what a URL says. */
  restore({ search, sort, columns }: PagePlace): void {
    this.text.value = search;
    this.breadth.value = (BREADTHS as readonly string[]).includes(columns) ? columns : '';
    this.sort = { column: sort.replace(/^-/, ''), descending: sort.startsWith('-') };
    this.columns = [];
  }

  /** Another collection is followed: what was shown is removed. */
  clear(): void {
    this.work.cancel();
    this.window.clear();
    this.asked = labelsIn(this.deps.follower.scope?.labelSelector ?? '');
    this.columns = [];
    this.isNew = true;
    this.window.toStart();
    this.draw();
  }

  /** Shows the current state: at once, or when all rows have been sorted. */
  draw(): void {
    this.layOut();
    if (!this.work.isBusy) this.work.begin(this.prepare(), () => this.show());
  }

  /** The work that takes time in proportion to all rows. */
  private *prepare(): Generator<void, void> {
    const { follower } = this.deps;
    const { sortColumn } = this;
    if (sortColumn !== undefined && (this.isNew || this.isUnsorted)) {
      const { hasSynced } = follower;
      if (this.isNew) follower.takeChanged();
      const descending = this.sort.column === sortColumn.name && this.sort.descending;
      yield* this.sorted.sort({ cellOf: sortColumn.cellOf, descending }, this.isNew ? follower.rows : undefined);
      // From then on, every change of a row is reported.
      this.isNew = !hasSynced;
      this.isUnsorted = false;
    }
    if (this.isSearchable || this.wanted === '') return;
    for (const [at, { row }] of this.sorted.all.entries()) {
      if (at % STEP_TEXTS === 0) yield;
      this.textOf(row);
    }
    this.isSearchable = true;
  }

  private show(): void {
    const { follower } = this.deps;
    const changed = follower.takeChanged();
    this.sorted.change(changed, (key) => follower.get(key));
    this.entries = this.found(this.sorted.all);
    this.render();
    this.mark(changed);
    this.tell();
  }

  /** Time has passed. */
  grow(): void {
    const now = this.deps.nowMs();
    for (const view of this.window.shown.values()) view.grow(now);
  }

  /** Which object's detail is shown. */
  setOpen(key: string | undefined): void {
    this.open = key;
    for (const [each, view] of this.window.shown) view.open(each === key);
  }

  /** Moves the focus to the row of an object; to the first row if it is gone. */
  focusRow(key: string): void {
    this.focusAt(this.placeOf(key));
  }

  /** Makes the head, and all rows again, if the columns have changed. */
  private layOut(): void {
    const { scope, definitions } = this.deps.follower;
    const hasNamespaces = scope?.resource.namespaced === true && scope.namespace === '';
    const breadth = (this.breadth.value || (this.narrow.matches ? 'few' : 'usual')) as Breadth;
    const known = { definitions, hasNamespaces, breadth };
    const columns = toColumns(known);
    const namesOf = (some: readonly Column[]): string => some.map(({ name, role, at }) => `${role} ${at} ${name}`).join('\n');
    if (namesOf(columns) === namesOf(this.columns)) return;
    this.columns = columns;
    this.leftOut = columnsLeftOut(known);
    this.texts = new WeakMap();
    this.isSearchable = false;
    this.widths = [];
    this.window.clear();
    byId('object-columns').replaceChildren(...columns.map(() => make('col')));
    byId('object-head').replaceChildren(...columns.map((column) => this.heading(column)));
    for (const [at, { name }] of columns.entries()) this.widen(at, name.length + 2);
    this.applySort();
  }

  private heading({ name, role, title, isNumber }: Column): HTMLTableCellElement {
    const th = make('th', { name: isNumber ? `${role} number` : role });
    th.scope = 'col';
    const button = make('button', { text: name, title });
    button.addEventListener('click', () => {
      const { column, descending } = this.sort;
      this.sort = { column: name, descending: this.sortColumn?.name === name && (column === name ? !descending : true) };
      goTo({ sort: `${this.sort.descending ? '-' : ''}${name}` });
      this.applySort();
      this.window.toStart();
      this.draw();
    });
    th.append(button);
    return th;
  }

  /** The column by which the table is sorted: by default the first, of namespaces or names. */
  private get sortColumn(): Column | undefined {
    const { columns, sort } = this;
    return (
      columns.find(({ name }) => name === sort.column) ?? columns.find(({ role }) => role === 'namespace' || role === 'name')
    );
  }

  private applySort(): void {
    const { sortColumn, sort } = this;
    if (sortColumn === undefined) return;
    this.work.cancel();
    this.isUnsorted = true;
    const descending = sort.column === sortColumn.name && sort.descending;
    for (const [at, th] of [...byId<HTMLTableRowElement>('object-head').cells].entries()) {
      if (this.columns[at] === sortColumn) th.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
      else th.removeAttribute('aria-sort');
    }
  }

  private search(): void {
    goTo({ search: this.text.value.trim() });
    this.window.toStart();
    this.draw();
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => this.deps.tell(byId('note').textContent ?? ''), TYPING_MS);
  }

  private get wanted(): string {
    return this.text.value.trim().toLowerCase();
  }

  /** The rows in which the text is, in any of the cells that are shown. */
  private found(entries: readonly Entry[]): readonly Entry[] {
    const { wanted } = this;
    return wanted === '' ? entries : entries.filter(({ row }) => this.textOf(row).includes(wanted));
  }

  private textOf(row: PageRow): string {
    return getOrMake(this.texts, row, () => {
      // Ages change all the time.
      const cells = this.columns.map(({ cellOf }) => cellOf(row)).filter(({ timeMs }) => timeMs === undefined);
      return [row.metadata.namespace ?? '', row.metadata.name ?? '', ...cells.map((cell) => cell.text)].join('\n').toLowerCase();
    });
  }

  private placeOf(key: string | undefined): number {
    return this.entries.findIndex((entry) => entry.key === key);
  }

  /** Puts the rows in view into the document. `force`: they have changed. */
  private render(force: boolean = true): void {
    this.keepFocus(() => this.window.draw(force));
    const table = byId('objects-table');
    const rowCount = String(this.entries.length + 1);
    if (table.getAttribute('aria-rowcount') !== rowCount) table.setAttribute('aria-rowcount', rowCount);
    this.keepStop();
    // Names need not stick unless the table scrolls sideways: each sticky one is a layer of its own, moved and painted
    // separately.
    table.classList.toggle('wide', this.list.scrollWidth > this.list.clientWidth);
  }

  private view(at: number, view: RowView = new RowView()): RowView {
    const entry = this.entries[at] as Entry;
    if (view.entry?.row !== entry.row) {
      const looks = { columns: this.columns, nowMs: this.deps.nowMs(), asked: this.asked };
      view.fill(entry, looks, (column, chars) => this.widen(column, chars));
    }
    view.open(entry.key === this.open);
    // The head is the first row.
    view.placeAt(at + 2);
    return view;
  }

  private widen(at: number, chars: number): void {
    const most = this.narrow.matches ? MAX_CHARS_NARROW : MAX_CHARS;
    const wanted = Math.max(MIN_CHARS, Math.min(chars, most));
    if (wanted <= (this.widths[at] ?? 0)) return;
    this.widths[at] = wanted;
    const col = byId('object-columns').children[at] as HTMLElement | undefined;
    if (col !== undefined) col.style.width = `calc(${wanted}ch + 1.2rem)`;
  }

  /**
   * The focused element loses the focus if it has moved; its row may also be out of view, or gone. Then the row in its place
   * gets the focus, or the list, from which the keys continue where it was.
   */
  private keepFocus(change: () => void): void {
    const { body } = this.window;
    const focused = document.activeElement;
    const row = body.contains(focused) ? focused?.closest('tr') : undefined;
    const at = row ? row.sectionRowIndex : -1;
    change();
    if (row === undefined || row === null || document.activeElement === focused) return;
    if (row.isConnected) (focused as HTMLElement).focus({ preventScroll: true });
    else if (this.entries.some(({ key }) => key === row.dataset.id)) this.list.focus({ preventScroll: true });
    else {
      const next = body.rows[Math.min(at, body.rows.length - 1)]?.querySelector<HTMLButtonElement>('.name button');
      (next ?? this.list).focus({ preventScroll: true });
    }
  }

  /** One button of the rows can be reached by the tab key. */
  private keepStop(button?: HTMLButtonElement): void {
    const { body } = this.window;
    const kept = this.stop !== undefined && body.contains(this.stop) ? this.stop : undefined;
    const [first] = this.window.shown.values();
    const stop = button ?? kept ?? this.window.shown.get(this.active ?? '')?.opener ?? first?.opener;
    // Without rows, their headings may still have to be scrolled.
    this.list.tabIndex = stop === undefined ? 0 : -1;
    if (stop === this.stop) return;
    if (this.stop !== undefined) this.stop.tabIndex = -1;
    if (stop !== undefined) stop.tabIndex = 0;
    this.stop = stop;
  }

  private onFocus(button: HTMLButtonElement): void {
    this.active = button.closest('tr')?.dataset.id;
    this.keepStop(button);
  }

  private onKey(event: KeyboardEvent): void {
    const button = (event.target as Element).closest('button');
    if (button !== null && !this.window.body.contains(button)) return;
    const { key } = event;
    if (key === 'ArrowLeft' || key === 'ArrowRight') {
      const all = [...(button?.closest('tr')?.querySelectorAll('button') ?? [])];
      const next = all[all.indexOf(button as HTMLButtonElement) + (key === 'ArrowLeft' ? -1 : 1)];
      next?.focus();
      if (next !== undefined) event.preventDefault();
      return;
    }
    const at = this.placeOf(this.active);
    const page = this.window.pageRows;
    const moves: Readonly<Record<string, number>> = {
      ...{ ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.entries.length - 1 },
    };
    const to = moves[key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.focusAt(to);
  }

  private focusAt(index: number): void {
    if (this.entries.length === 0) {
      this.list.focus({ preventScroll: true });
      return;
    }
    const at = Math.max(0, Math.min(this.entries.length - 1, index));
    this.window.reveal(at);
    this.render();
    this.window.shown.get(this.entries[at]?.key ?? '')?.opener.focus({ preventScroll: true });
  }

  private onClick(target: Element): void {
    const { label } = target.closest<HTMLElement>('[data-label]')?.dataset ?? {};
    if (label !== undefined) {
      this.deps.onLabel(label);
      return;
    }
    const row = this.window.shown.get(target.closest('tr')?.dataset.id ?? '')?.entry?.row;
    const { resource } = this.deps.follower.scope ?? {};
    if (row === undefined || resource === undefined || String(getSelection()) !== '') return;
    const { namespace, name = '', uid } = row.metadata;
    this.deps.onObject({ resource, namespace, name, uid });
  }

  private mark(changed: ReadonlySet<string>): void {
    if (changed.size > MAX_MARKED) return;
    const views = [...changed].flatMap((key) => this.window.shown.get(key) ?? []);
    if (views.length === 0 || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    const tint = getComputedStyle(document.documentElement).getPropertyValue('--tint');
    const frames = [{ backgroundColor: tint }, { backgroundColor: 'transparent' }];
    for (const { element } of views) element.animate(frames, { duration: MARK_MS, easing: 'ease-out' });
  }

  /** Says how many there are, or why there are none. */
  private tell(): void {
    const { hasSynced, scope, size: total } = this.deps.follower;
    const searched = this.text.value.trim() !== '';
    const matching = this.entries.length;
    const objects = searched ? `${count(matching)} of ${plural(total, 'object')}` : plural(total, 'object');
    const more = this.leftOut === 0 ? '' : `; ${plural(this.leftOut, 'column')} not shown`;
    say(byId('note'), hasSynced ? objects + more : '');
    const isSelected = scope !== undefined && (scope.labelSelector !== '' || scope.fieldSelector !== '');
    const none = isSelected
      ? 'No object is selected.'
      : scope?.version
        ? 'There were none.'
        : 'No objects yet. They appear here as they are created.';
    byId('none').toggleAttribute('hidden', matching > 0 || scope === undefined);
    say(byId('none'), !hasSynced ? 'Reading \u2026' : searched && total > 0 ? 'Nothing matches.' : none);
  }
}
