import type { WireEvent } from '../../bridge/protocol.ts';
import { byId, clone, jsonBox, make, say, TabStops } from '../elements.ts';
import { count, epochOf, jsonOf, placeOf, plural, timeOf, visible } from '../words.ts';

/** An event held by the page. */
interface EventRow {
  readonly kind: 'event';
  /** Counts the rows of this page, including those not held. */
  readonly id: number;
  readonly event: WireEvent;
  readonly time: Date;
  /** Its sequence in the stream; undefined if it has none. */
  readonly place: number | undefined;
  /** Its object as one line of text. */
  readonly text: string;
}

/** A place where events are missing. */
interface GapRow {
  readonly kind: 'gap';
  readonly id: number;
  /** How many events; undefined if that is unknown. */
  readonly missed: number | undefined;
}

/** A row of the table. */
type ListedRow = EventRow | GapRow;

/** A filter for rows. */
interface Wanted {
  /** In lower case; empty for all. */
  readonly text: string;
  /** Empty for all. */
  readonly type: string;
}

/** The limits of an {@link EventStore}. */
interface StoreLimits {
  readonly maxRows: number;
  readonly maxChars: number;
}

/**
 * The most recent events, as many as the limits allow, with a gap wherever the stream's sequence jumps.
 *
 * Invariants
 * - It holds at most `maxRows` rows, and at most `maxChars` characters unless there is only one row.
 * - Rows are in the order in which they came, and their ids increase.
 */
export class EventStore {
  /** The event types seen, up to a limit. */
  readonly types: Set<string> = new Set();
  received: number = 0;
  private rows: ListedRow[] = [];
  private chars: number = 0;
  private kept: number = 0;
  private nextId: number = 0;
  private last: string | undefined = undefined;
  private readonly limits: StoreLimits;

  constructor(limits: StoreLimits) {
    this.limits = limits;
  }

  /** The id of the next row. */
  get head(): number {
    return this.nextId;
  }

  /** Number of events held. */
  get events(): number {
    return this.kept;
  }

  /** Adds a batch. If it is longer than the store, only its end is kept. */
  push(batch: readonly WireEvent[]): void {
    const time = new Date();
    const first = batch.length - this.limits.maxRows;
    for (const [at, event] of batch.entries()) {
      this.received++;
      this.follow(event);
      if (at >= first) this.keep(event, time);
      else this.nextId++;
    }
    this.trim();
  }

  /** Returns the rows after a given id that match, newest first. */
  *newest(wanted: Wanted, after: number = -1): Generator<ListedRow, void> {
    for (let at = this.rows.length - 1; at >= 0; at--) {
      const row = this.rows[at] as ListedRow;
      if (row.id <= after) return;
      if (matches(row, wanted)) yield row;
    }
  }

  /** Number of matching events, without gaps. */
  matching(wanted: Wanted): number {
    let found = 0;
    for (const row of this.rows) if (row.kind === 'event' && matches(row, wanted)) found++;
    return found;
  }

  /** Compares an event's sequence with that of the event before, and adds a gap if they are not consecutive. */
  private follow({ resourceVersion }: WireEvent): void {
    if (resourceVersion === undefined) return;
    const { last } = this;
    this.last = resourceVersion;
    if (last === undefined) return;
    if (epochOf(last) !== epochOf(resourceVersion)) {
      this.rows.push({ kind: 'gap', id: this.nextId++, missed: undefined });
      return;
    }
    const missed = (placeOf(resourceVersion) ?? 0) - (placeOf(last) ?? 0) - 1;
    if (!(missed > 0)) return;
    this.rows.push({ kind: 'gap', id: this.nextId++, missed });
  }

  private keep(event: WireEvent, time: Date): void {
    const text = typeof event.object === 'string' ? event.object : jsonOf(event.object);
    this.rows.push({ kind: 'event', id: this.nextId++, event, time, place: placeOf(event.resourceVersion), text });
    this.chars += text.length;
    this.kept++;
    if (this.types.size < MAX_TYPES) this.types.add(event.type);
  }

  private trim(): void {
    const { maxRows, maxChars } = this.limits;
    let from = 0;
    while (this.rows.length - from > maxRows || (this.chars > maxChars && this.rows.length - from > 1)) {
      const row = this.rows[from++] as ListedRow;
      if (row.kind === 'gap') continue;
      this.chars -= row.text.length;
      this.kept--;
    }
    if (from > 0) this.rows = this.rows.slice(from);
  }
}

/** Types offered by the filter. */
const MAX_TYPES = 50;

function matches(row: ListedRow, { text, type }: Wanted): boolean {
  if (row.kind === 'gap') return text === '' && type === '';
  if (type !== '' && row.event.type !== type) return false;
  return text === '' || row.text.toLowerCase().includes(text) || row.event.type.toLowerCase().includes(text);
}

/** Rows in the table. */
const MAX_ROWS = 200;
/** Characters of an event in its row. */
const SHOWN_CHARS = 300;

/** Why a table stands still. */
type Why = 'asked' | 'open' | 'focus';

/**
 * The newest matching events, at most {@link MAX_ROWS}. Only rows that will be displayed are created. Nothing moves while the
 * user reads: on request, or while a row is open or has the keyboard's focus, the table stands still and counts new events.
 *
 * Keyboard: the rows are one tab stop. Arrow keys, Home and End move between them, Enter opens one.
 */
export class EventTable {
  private readonly body: HTMLTableSectionElement = byId<HTMLTableSectionElement>('rows');
  private readonly pause: HTMLElement = byId('pause');
  private readonly text: HTMLInputElement = byId<HTMLInputElement>('text');
  private readonly type: HTMLSelectElement = byId<HTMLSelectElement>('type');
  private readonly store: EventStore;
  private readonly stops: TabStops;
  /** Rows with an id up to this one are drawn, or do not match. */
  private drawn: number = -1;
  /** Why the table stands still: on request, or because a row is open or has the focus. */
  private paused: Why | undefined = undefined;
  private types: number = 0;

  constructor(store: EventStore) {
    this.store = store;
    const { body, pause, text, type } = this;
    this.stops = new TabStops(body);
    const redraw = (): void => this.redraw();
    text.addEventListener('input', redraw);
    type.addEventListener('change', redraw);
    pause.addEventListener('click', () => this.hold(this.paused === undefined ? 'asked' : undefined));
    body.addEventListener('click', (event) => this.onClick(event));
    body.addEventListener('focusin', ({ target }) => {
      if (this.paused === undefined && (target as Element).matches('button:focus-visible')) this.hold('focus');
    });
    body.addEventListener('focusout', ({ relatedTarget }) => {
      if (this.paused !== 'focus' || body.contains(relatedTarget as Element | null)) return;
      // If the focus moves to that button, the button keeps what it said.
      this.hold(relatedTarget === pause ? 'asked' : undefined);
    });
  }

  /** Shows what has arrived since the last call. */
  draw(): void {
    this.offerTypes();
    if (this.paused === undefined) this.prepend();
    else this.sayPaused();
    this.sayNote();
  }

  private get wanted(): Wanted {
    return { text: this.text.value.trim().toLowerCase(), type: this.type.value };
  }

  private redraw(): void {
    this.drawn = -1;
    this.body.replaceChildren();
    this.prepend();
    this.sayNote();
    // The row that was open is closed now.
    if (this.paused === 'open') this.hold(undefined);
  }

  private prepend(): void {
    const { body } = this;
    const fresh = document.createDocumentFragment();
    let made = 0;
    for (const row of this.store.newest(this.wanted, this.drawn)) {
      if (made++ === MAX_ROWS) break;
      fresh.append(toRow(row));
    }
    this.drawn = this.store.head - 1;
    if (made === 0) return;
    body.prepend(fresh);
    // A column of a fixed width depends on how long the numbers are.
    const digits = body.querySelector('button')?.textContent?.length ?? 1;
    body.parentElement?.style.setProperty('--digits', String(digits));
    const focused = body.contains(document.activeElement);
    while (body.rows.length > MAX_ROWS) body.deleteRow(-1);
    this.stops.keep();
    // The element that had the focus is gone. It continues at the newest row.
    if (focused && !body.contains(document.activeElement)) body.querySelector('button')?.focus();
  }

  private hold(paused: Why | undefined): void {
    this.paused = paused;
    const { pause } = this;
    // Its name says what it does next. Saying also that it is pressed would mean the opposite.
    pause.classList.toggle('on', paused !== undefined);
    if (paused === undefined) say(pause, 'Pause');
    this.draw();
  }

  private sayPaused(): void {
    const waiting = this.store.head - 1 - this.drawn;
    say(this.pause, waiting > 0 ? `Continue, ${count(waiting)} new` : 'Continue');
  }

  private sayNote(): void {
    const { body, wanted, store } = this;
    const empty = byId('none');
    const filtered = wanted.text !== '' || wanted.type !== '';
    const kept = `the last ${plural(store.events, 'event')}`;
    say(byId('note'), filtered ? `${count(store.matching(wanted))} of ${kept}` : kept);
    empty.toggleAttribute('hidden', body.rows.length > 0);
    say(empty, filtered ? 'Nothing matches.' : 'No events yet. They appear here as they arrive.');
  }

  private offerTypes(): void {
    const { type } = this;
    const { types } = this.store;
    if (types.size === this.types) return;
    this.types = types.size;
    const chosen = type.value;
    const options = [...types].sort().map((name) => new Option(visible(name), name));
    type.replaceChildren(new Option('all types', ''), ...options);
    type.value = chosen;
  }

  private onClick({ target }: Event): void {
    const row = (target as Element).closest('tr');
    if (row?.dataset.id !== undefined && String(getSelection()) === '') this.toggle(row);
  }

  private toggle(row: HTMLTableRowElement): void {
    const button = row.querySelector('button');
    const next = row.nextElementSibling;
    const open = next?.classList.contains('detail') === true;
    button?.setAttribute('aria-expanded', String(!open));
    if (open) {
      next?.remove();
      if (this.paused === 'open' && this.body.querySelector('.detail') === null) this.hold(undefined);
      return;
    }
    const found = [...this.store.newest({ text: '', type: '' })].find(({ id }) => id === Number(row.dataset.id));
    row.after(toDetail(found));
    if (this.paused !== 'asked') this.hold('open');
  }
}

function toRow(row: ListedRow): HTMLTableRowElement {
  if (row.kind === 'event') return toEventRow(row);
  const tr = make('tr', { name: 'gap' });
  const missed = row.missed === undefined ? 'the server has restarted' : `${plural(row.missed, 'event')} did not reach this page`;
  const td = make('td', { text: missed });
  td.colSpan = 4;
  tr.append(td);
  return tr;
}

function toEventRow({ id, event, place, text, time }: EventRow): HTMLTableRowElement {
  const tr = clone<HTMLTableRowElement>('row');
  tr.dataset.id = String(id);
  tr.dataset.type = event.type;
  const [number, at, type, object] = tr.cells as unknown as [Element, Element, Element, Element];
  const button = number.querySelector('button') as HTMLButtonElement;
  button.textContent = place === undefined ? '-' : String(place);
  button.setAttribute('aria-label', `${place === undefined ? 'no number' : place}, ${visible(event.type)}: detail`);
  at.textContent = timeOf(time);
  type.textContent = visible(event.type);
  const shown = visible(text.slice(0, SHOWN_CHARS));
  (object.firstElementChild as Element).textContent = text.length > SHOWN_CHARS ? `${shown} \u2026` : shown;
  return tr;
}

function toDetail(row: ListedRow | undefined): HTMLTableRowElement {
  const tr = make('tr', { name: 'detail' });
  const td = make('td');
  td.colSpan = 4;
  if (row?.kind === 'event') {
    const { event, time, text } = row;
    const version = event.resourceVersion ?? 'none: sent to this client only';
    td.append(make('p', { text: `type ${visible(event.type)}` }));
    td.append(make('p', { text: `version ${version}, received at ${time.toISOString()}, ${plural(text.length, 'character')}` }));
    td.append(jsonBox(event.object));
  } else td.append(make('p', { text: 'This event is no longer kept.' }));
  tr.append(td);
  return tr;
}
