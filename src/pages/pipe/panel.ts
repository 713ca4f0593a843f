/** The bar above the events: the filter, and the choice, order and width of the columns. */
import { byId, make, saveAs, say } from '../elements.ts';
import { visible } from '../words.ts';
import type { PipeEvents } from './events.ts';
import { learnFields } from './fields.ts';
import { toQuery } from './query.ts';
import type { EventTable } from './table.ts';
import {
  columnOf,
  MAX_COLUMNS,
  moved,
  OWN_COLUMNS,
  type PipeColumn,
  type PipeView,
  resized,
  toSearch,
  toView,
  WIDTH,
} from './view.ts';

/** Events of a batch whose fields are learned. */
const LEARNED_EVENTS = 100;
/** How long after the last key the filter is put into the URL, and its result is read out. */
const SETTLED_MS = 700;
/** Widths in pixels of columns that nobody has resized. */
const WIDTHS: ReadonlyMap<string, number> = new Map(
  Object.entries({ received: 88, level: 72, type: 100, msg: 360, message: 360 }),
);
const FIELD_PX = 150;
/** Where objects have their message: pino's, Bunyan's and slog's; Winston's; journald's. */
const MESSAGES: ReadonlySet<string> = new Set(['msg', 'message', 'MESSAGE']);
/** The object takes what is left, but at least this. */
const OBJECT_PX = 240;
const HINT = 'level>=warn status=500 msg~timeout "some words"';

export class EventPanel {
  private readonly filter: HTMLInputElement = byId<HTMLInputElement>('filter');
  private readonly type: HTMLSelectElement = byId<HTMLSelectElement>('type');
  private readonly store: PipeEvents;
  private readonly table: EventTable;
  private readonly tell: (text: string) => void;
  private readonly narrow: MediaQueryList = matchMedia('(max-width: 40rem)');
  private readonly known: Set<string> = new Set();
  private view: PipeView = toView(location.search);
  private leveled: boolean = false;
  /** The fields of events before this row are known, or were skipped. */
  private learned: number = 0;
  private types: number = 0;
  private listed: string = '';
  private shown: string = '';
  private settling: ReturnType<typeof setTimeout> | undefined = undefined;

  /** `tell` reads out a text. */
  constructor(store: PipeEvents, { table, tell }: { readonly table: EventTable; readonly tell: (text: string) => void }) {
    this.store = store;
    this.table = table;
    this.tell = tell;
    const { filter, type } = this;
    filter.value = this.view.filter;
    filter.addEventListener('input', () => this.change({ filter: filter.value }));
    type.addEventListener('change', () => this.change({ type: type.value }));
    byId('wrap').addEventListener('click', () => this.change({ wrap: !this.view.wrap }));
    byId('columns').addEventListener('click', () => this.toggle());
    byId('columns-reset').addEventListener('click', () => this.change({ columns: undefined }));
    byId('download').addEventListener('click', () => download(table));
    byId('columns-panel').addEventListener('keydown', ({ key }) => {
      if (key !== 'Escape') return;
      this.toggle();
      byId('columns').focus();
    });
    this.narrow.addEventListener('change', () => this.arrange());
    this.offerTypes();
    this.arrange();
    this.search();
  }

  /** An event with a level has arrived. */
  onLevel(): void {
    if (this.leveled) return;
    this.leveled = true;
    // Not while rows are being matched.
    setTimeout(() => this.arrange());
  }

  /** Learns what there is to choose from. */
  learn(): void {
    const { head } = this.store;
    for (const row of this.store.from(Math.max(this.learned, head - LEARNED_EVENTS))) {
      if (row.kind === 'event') learnFields(row.value, this.known);
    }
    this.learned = head;
    this.offerTypes();
    this.arrange();
    if (!byId('columns-panel').hidden) this.list();
  }

  private change(changed: Partial<PipeView>): void {
    this.view = { ...this.view, ...changed };
    if (changed.filter !== undefined || changed.type !== undefined) this.search();
    else this.arrange();
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.settle(changed), SETTLED_MS);
  }

  private settle({ filter, type }: Partial<PipeView>): void {
    const search = toSearch(this.view, location.search);
    if (search !== location.search) history.replaceState(null, '', search === '' ? location.pathname : search);
    const searched = filter !== undefined || type !== undefined;
    if (searched)
      this.tell(
        this.filter.getAttribute('aria-invalid') === 'true'
          ? `Filter: ${byId('hint').textContent}`
          : `${byId('note').textContent}`,
      );
  }

  /** Filters. While the filter is not valid, the last one stays, and the page says what was expected. */
  private search(): void {
    const query = toQuery(this.view.filter);
    const hint = byId('hint');
    const fault = query.fault;
    this.filter.setAttribute('aria-invalid', String(fault !== undefined));
    hint.classList.toggle('fault', fault !== undefined);
    say(hint, fault ?? HINT);
    if (fault === undefined) this.table.filter({ terms: query.terms, type: this.view.type });
  }

  private offerTypes(): void {
    const { type, view } = this;
    const { types } = this.store;
    if (types.size === this.types && type.options.length > 0) return;
    this.types = types.size;
    const all = new Set([...types, ...(view.type === '' ? [] : [view.type])]);
    const options = [...all].sort().map((name) => new Option(visible(name), name));
    type.replaceChildren(new Option('all types', ''), ...options);
    type.value = view.type;
    type.toggleAttribute('hidden', all.size < 2);
  }

  /** The columns after the number: those chosen, or else those with content. */
  private get columns(): readonly PipeColumn[] {
    if (this.view.columns !== undefined) return this.view.columns;
    const says: Readonly<Record<string, boolean>> = {
      received: !this.narrow.matches,
      level: this.leveled,
      type: this.store.types.size > 1,
    };
    const message = this.narrow.matches ? undefined : [...this.known].find((name) => MESSAGES.has(name));
    return OWN_COLUMNS.flatMap((name) => {
      if (says[name] === false) return [];
      return name === 'object' && message !== undefined ? [{ name: message }, { name }] : [{ name }];
    });
  }

  private arrange(): void {
    const { columns, view } = this;
    const shown = JSON.stringify([columns, view.wrap]);
    if (shown === this.shown) return;
    this.shown = shown;
    byId('wrap').setAttribute('aria-pressed', String(view.wrap));
    this.head(columns);
    this.table.arrange(columns, view.wrap);
    if (!byId('columns-panel').hidden) this.list();
  }

  private head(columns: readonly PipeColumn[]): void {
    const row = byId('head');
    const [number] = row.children;
    const isChosen = this.view.columns !== undefined;
    // A message column that the user has not chosen shares the remaining width with the object.
    const isAuto = (name: string): boolean =>
      name === 'object' || columns.at(-1)?.name === name || (!isChosen && MESSAGES.has(name));
    const heads = columns.map(({ name, width }) => {
      const th = make('th', { text: name });
      th.scope = 'col';
      const px = width ?? (isAuto(name) ? undefined : (WIDTHS.get(name) ?? FIELD_PX));
      if (px !== undefined) th.style.width = `${px}px`;
      th.append(this.grip(th, name));
      return th;
    });
    row.replaceChildren(number as Element, ...heads);
    const widths = columns.map(({ name, width }) => width ?? (isAuto(name) ? OBJECT_PX : (WIDTHS.get(name) ?? FIELD_PX)));
    const sum = widths.reduce((one, other) => one + other, 0);
    const least = this.narrow.matches && !isChosen ? '' : `calc(${sum}px + 5.5rem)`;
    byId('events-table').style.minWidth = least;
  }

  /** The edge of a heading, which resizes its column. For the keyboard, the panel has fields. */
  private grip(th: HTMLElement, name: string): HTMLElement {
    const grip = make('span', { name: 'grip' });
    grip.setAttribute('aria-hidden', 'true');
    grip.addEventListener('pointerdown', (down) => {
      down.preventDefault();
      grip.setPointerCapture(down.pointerId);
      const from = th.offsetWidth;
      const widthAt = (event: PointerEvent): number => Math.max(WIDTH.min, from + event.clientX - down.clientX);
      grip.onpointermove = (move) => {
        th.style.width = `${widthAt(move)}px`;
      };
      grip.onpointerup = (up) => {
        grip.onpointermove = null;
        grip.onpointerup = null;
        this.change({ columns: resized(this.columns, name, widthAt(up)) });
      };
    });
    grip.addEventListener('dblclick', () => this.change({ columns: resized(this.columns, name, undefined) }));
    return grip;
  }

  private toggle(): void {
    const panel = byId('columns-panel');
    panel.toggleAttribute('hidden');
    byId('columns').setAttribute('aria-expanded', String(!panel.hidden));
    this.listed = '';
    if (!panel.hidden) this.list();
  }

  /** Lists the columns: those that are shown, in their order, and the others. */
  private list(): void {
    const { columns } = this;
    const others = [...OWN_COLUMNS, ...[...this.known].map(columnOf)].filter((name) => !columns.some((one) => one.name === name));
    const listed = JSON.stringify([columns.map(({ name }) => name), others]);
    const list = byId('columns-list');
    if (listed === this.listed) {
      // Only a width may have changed, and the focus must stay.
      for (const [at, input] of list.querySelectorAll<HTMLInputElement>('[type=number]').entries()) {
        input.value = String(columns[at]?.width ?? '');
      }
      return;
    }
    this.listed = listed;
    const focused = (document.activeElement as HTMLElement | null)?.dataset.key;
    list.replaceChildren(
      ...columns.map((column, at) => this.item(column, at)),
      ...others.map((name) => this.item({ name }, undefined)),
    );
    if (focused === undefined) return;
    list.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  /** `at`: its place; undefined if it is not shown. */
  private item(column: PipeColumn, at: number | undefined): HTMLLIElement {
    const { name, width } = column;
    const item = make('li');
    const label = make('label');
    const box = make('input');
    box.type = 'checkbox';
    box.checked = at !== undefined;
    box.disabled = at === undefined && this.columns.length >= MAX_COLUMNS;
    box.dataset.key = `shown ${name}`;
    box.addEventListener('change', () => {
      const { columns } = this;
      this.change({ columns: box.checked ? [...columns, { name }] : orObject(columns.filter((other) => other.name !== name)) });
    });
    label.append(box, ` ${name}`);
    item.append(label);
    if (at === undefined) return item;
    const { columns } = this;
    const move = (text: string, by: number, words: string): HTMLButtonElement => {
      const button = make('button', { text, title: words });
      button.setAttribute('aria-label', `${words}: ${name}`);
      button.dataset.key = `${words} ${name}`;
      button.setAttribute('aria-disabled', String(at + by < 0 || at + by >= columns.length));
      button.addEventListener('click', () => this.change({ columns: moved(this.columns, name, by) }));
      return button;
    };
    const wide = make('input');
    wide.type = 'number';
    Object.assign(wide, { min: String(WIDTH.min), max: String(WIDTH.max), step: '10', placeholder: 'width' });
    wide.value = width === undefined ? '' : String(width);
    wide.setAttribute('aria-label', `width in pixels: ${name}`);
    wide.dataset.key = `width ${name}`;
    wide.addEventListener('change', () => this.change({ columns: resized(this.columns, name, Number(wide.value) || undefined) }));
    item.append(move('\u2191', -1, 'earlier'), move('\u2193', 1, 'later'), wide);
    return item;
  }
}

/** A table without columns would show nothing. */
const orObject = (columns: readonly PipeColumn[]): readonly PipeColumn[] => (columns.length > 0 ? columns : [{ name: 'object' }]);

/** Saves what is shown, one event per line. */
function download(table: EventTable): void {
  const lines: string[] = [];
  for (const row of table.shown()) lines.push(`${row.toJson()}\n`);
  saveAs('events.ndjson', new Blob(lines, { type: 'application/x-ndjson' }));
}
