import { keyOf } from '../../cache/object.ts';
import { arrange, byId, clone, make, say, TabStops } from '../elements.ts';
import { age, type TableRow } from '../table.ts';
import { count, plural, visible } from '../words.ts';
import { openDetail } from './detail/index.ts';
import type { RowFollower } from './follower.ts';

/** Rows in the table. */
const MAX_ROWS = 500;
/** If more rows than this have changed at once, none is marked: if everything blinks, nothing stands out. */
const MAX_MARKED = 20;
const MARK_MS = 1_200;
/** What a server shows as the age of an object: `5m30s`. A column of this name may have another meaning. */
const DURATION = /^(\d+[smhdy])+$/;

/** What the table needs. */
interface ObjectTableMeans {
  readonly follower: RowFollower;
}

interface ShownRow {
  readonly element: HTMLTableRowElement;
  row: TableRow;
  /** The cell that says how old the object is. */
  age: Element | undefined;
}

/**
 * The objects of a collection, in the order of their keys, at most {@link MAX_ROWS}. A row that stays keeps its element and its
 * place, so the focus also stays, while others come and go around it.
 *
 * Keyboard: the rows are one tab stop. Arrow keys, Home and End move between them, Enter opens one.
 */
export class ObjectTable {
  private readonly body: HTMLTableSectionElement = byId<HTMLTableSectionElement>('object-rows');
  private readonly text: HTMLInputElement = byId<HTMLInputElement>('text');
  private readonly means: ObjectTableMeans;
  private readonly stops: TabStops;
  private readonly shown: Map<string, ShownRow> = new Map();
  private columns: readonly string[] = [];
  /** The index of the name's column; the namespace, if it is shown, is before it. */
  private nameAt: number = 0;
  private open: string | undefined = undefined;

  constructor(means: ObjectTableMeans) {
    this.means = means;
    const { body, text } = this;
    this.stops = new TabStops(body);
    text.addEventListener('input', () => this.draw());
    body.addEventListener('click', ({ target }) => {
      const row = (target as Element).closest('tr');
      if (row?.dataset.id !== undefined && String(getSelection()) === '') this.choose(row.dataset.id);
    });
  }

  /** Another collection is followed: what was shown is removed. */
  clear(): void {
    this.shown.clear();
    this.body.replaceChildren();
    this.draw();
  }

  /** Shows what there is now. */
  draw(): void {
    const { follower } = this.means;
    const changed = follower.takeChanged();
    this.layOut();
    const text = this.text.value.trim().toLowerCase();
    const { rows, matching } = chooseRows(follower.rows, {
      text,
      max: MAX_ROWS,
      pinned: this.open === undefined ? undefined : follower.get(this.open),
    });
    this.keepFocus(() => {
      const elements = rows.flatMap((row) => this.elementsOf(row));
      arrange(this.body, elements);
    });
    const keys = new Set(rows.map(keyOf));
    for (const key of this.shown.keys()) if (!keys.has(key)) this.shown.delete(key);
    this.stops.keep();
    this.mark(changed);
    this.tell({ total: follower.size, matching, shown: rows.length, searched: text !== '' });
  }

  /** Time has passed. */
  grow(): void {
    const now = Date.now();
    for (const { age: cell, row } of this.shown.values()) if (cell) say(cell, age(row.metadata.creationTimestamp, now));
  }

  /** Makes the head, and all rows again, if the columns have changed. */
  private layOut(): void {
    const { scope, columns = ['NAME', 'AGE'] } = this.means.follower;
    const hasNamespace = scope?.resource.namespaced === true && scope.namespace === '';
    const names = [...(hasNamespace ? ['namespace'] : []), ...columns.map((each) => each.toLowerCase())];
    if (names.join('\n') === this.columns.join('\n') && this.nameAt === Number(hasNamespace)) return;
    this.columns = names;
    this.nameAt = Number(hasNamespace);
    const heads = names.map((name, at) => {
      const th = make('th', { text: visible(name), name: this.classOf(at) });
      th.scope = 'col';
      return th;
    });
    byId('object-head').replaceChildren(...heads);
    this.shown.clear();
    this.body.replaceChildren();
  }

  private elementsOf(row: TableRow): readonly HTMLTableRowElement[] {
    const key = keyOf(row);
    let shown = this.shown.get(key);
    if (shown === undefined) {
      shown = { element: clone<HTMLTableRowElement>('object-row'), row, age: undefined };
      shown.element.dataset.id = key;
      this.shown.set(key, shown);
      this.fill(shown);
    } else if (shown.row !== row) {
      shown.row = row;
      this.fill(shown);
    }
    return [shown.element];
  }

  private fill(shown: ShownRow): void {
    const { element, row } = shown;
    const { namespace = '', name = '', creationTimestamp, deletionTimestamp } = row.metadata;
    const own = row.cells ?? [name, ''];
    const texts = this.nameAt === 1 ? [namespace, ...own] : own;
    for (const at of this.columns.keys()) {
      const cell = element.cells[at] ?? element.insertCell();
      cell.className = this.classOf(at);
      // The server says how old it was then.
      const isAge = cell.className === 'age' && DURATION.test(texts[at] ?? '');
      if (isAge) shown.age = cell;
      if (at === this.nameAt) this.fillName(cell, { name, namespace, open: this.open === keyOf(row) });
      else say(cell, isAge ? age(creationTimestamp, Date.now()) : visible(texts[at] ?? ''));
    }
    element.classList.toggle('leaving', deletionTimestamp !== undefined);
  }

  private fillName(cell: Element, { name, namespace, open }: { name: string; namespace: string; open: boolean }): void {
    const button = cell.querySelector('button') ?? cell.appendChild(make('button'));
    button.type = 'button';
    button.setAttribute('aria-expanded', String(open));
    button.setAttribute('aria-label', visible(`${namespace === '' ? '' : `${namespace}/`}${name}: detail`));
    say(button, visible(name));
  }

  /** The element that had the focus may be gone. It continues at the row that has taken its place. */
  private keepFocus(change: () => void): void {
    const { body } = this;
    const row = body.contains(document.activeElement) ? document.activeElement?.closest('tr') : undefined;
    const at = row ? row.sectionRowIndex : -1;
    change();
    if (at < 0 || body.contains(document.activeElement)) return;
    body.rows[Math.min(at, body.rows.length - 1)]?.querySelector('button')?.focus();
  }

  private mark(changed: ReadonlySet<string>): void {
    if (changed.size > MAX_MARKED || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    const tint = getComputedStyle(document.documentElement).getPropertyValue('--tint');
    for (const key of changed) {
      for (const cell of this.shown.get(key)?.element.cells ?? []) {
        cell.animate([{ backgroundColor: tint }, { backgroundColor: 'transparent' }], { duration: MARK_MS, easing: 'ease-out' });
      }
    }
  }

  private tell({
    total,
    matching,
    shown,
    searched,
  }: {
    total: number;
    matching: number;
    shown: number;
    searched: boolean;
  }): void {
    const empty = byId('none');
    const { hasSynced, scope } = this.means.follower;
    const cut = matching > MAX_ROWS;
    const found = searched ? `${count(matching)} of ${plural(total, 'object')}` : plural(total, 'object');
    say(
      byId('note'),
      !hasSynced
        ? ''
        : cut
          ? `showing the first ${count(MAX_ROWS)} of ${count(matching)}${searched ? ' that match' : ''}`
          : found,
    );
    empty.toggleAttribute('hidden', shown > 0 || scope === undefined);
    const none = scope?.labelSelector ? 'No object has these labels.' : 'No objects yet. They appear here as they are created.';
    say(empty, !hasSynced ? 'Reading \u2026' : searched ? 'Nothing matches.' : none);
  }

  /** The columns that every kind has look the same in all. */
  private classOf(at: number): string {
    if (at <= this.nameAt) return at === this.nameAt ? 'name' : 'namespace';
    return this.columns[at] === 'age' ? 'age' : 'more';
  }

  private choose(key: string): void {
    const { resource } = this.means.follower.scope ?? {};
    const { namespace, name = '', uid } = this.shown.get(key)?.row.metadata ?? {};
    if (resource !== undefined) openDetail({ resource, namespace, name, uid });
  }

  /** Which object's detail is shown. */
  setOpen(key: string | undefined): void {
    this.open = key;
    for (const [each, { element }] of this.shown)
      element.querySelector('button')?.setAttribute('aria-expanded', String(each === key));
  }

  /** Moves the focus to a row, if it is there. */
  focusRow(key: string): void {
    this.shown.get(key)?.element.querySelector('button')?.focus();
  }
}

/** Which rows are shown. */
interface Choice {
  /** Only objects in whose namespace/name this is, in lower case; empty for all. */
  readonly text: string;
  /** Not more than this. */
  readonly max: number;
  /** A row that is shown in any case, because the user reads it. */
  readonly pinned?: TableRow | undefined;
}

/** The rows that are shown, in the order of their keys, and how many there are. */
interface ChosenRows {
  readonly rows: readonly TableRow[];
  readonly matching: number;
}

/**
 * Chooses the first rows by key. Of a hundred thousand rows, most are compared only once, with the last of those chosen so far;
 * sorting all of them for each change would take too long.
 */
export function chooseRows(all: Iterable<TableRow>, { text, max, pinned }: Choice): ChosenRows {
  let first: Map<string, TableRow> = new Map();
  let last: string | undefined;
  let matching = 0;
  const sort = (): void => {
    const sorted = [...first].sort(([one], [other]) => (one < other ? -1 : 1));
    first = new Map(sorted.slice(0, max));
    last = sorted[max - 1]?.[0];
  };
  for (const row of all) {
    const key = keyOf(row);
    if (text !== '' && !key.toLowerCase().includes(text)) continue;
    matching++;
    if (last === undefined || key <= last) first.set(key, row);
    if (first.size >= 2 * max) sort();
  }
  sort();
  if (pinned !== undefined && !first.has(keyOf(pinned))) {
    first.set(keyOf(pinned), pinned);
    max++;
    sort();
  }
  return { rows: [...first.values()], matching };
}
