// The order of the rows of a page, as people expect it, kept while objects change.
//
//     cell --'order-10'--> order-0(2)10    text: runs of digits by their value, so order-2 is before order-10
//            '512Mi', '3'--> 536870912, 3   quantities: if all cells of the column are some
//            '5m30s', a time --> ms         spans and ages: likewise
//
// Of 10,000 rows only a few change between two drawings, so the rows stay sorted: what has changed is sorted, and merged.
import { keyOf } from '../../cache/object.ts';
import { byCodeUnit } from '../../selectors/syntax.ts';
import type { TableRow } from '../table.ts';

/** A row, and when this page got it. */
export interface PageRow extends TableRow {
  readonly atMs?: number | undefined;
}

/** What a row has in a column. */
export interface Cell {
  readonly text: string;
  /** A cell that shows how long ago something was: when. */
  readonly timeMs?: number | undefined;
}

/** How a table is sorted: by the cells of one column, and then by namespace and name. */
export interface Sorting {
  readonly descending: boolean;
  readonly cellOf: (row: PageRow) => Cell;
}

/** What servers write where there is nothing. Such rows are the last in both directions. */
const NOTHING = new Set(['', '<none>', '<unknown>', '<unset>', '<invalid>']);

/** A text for which the order of code units is that of people: `a2` is before `a10`, and before `B1`. */
export function naturalKey(text: string): string {
  return text.toLowerCase().replace(/\d+/g, (digits) => {
    const value = digits.replace(/^0+(?=\d)/, '');
    return `0${String.fromCharCode(0x100 + Math.min(value.length, 0xf000))}${value}`;
  });
}

const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)([KMGTPE]i|[numkMGTPE]|%)?$/;
const POWERS: Readonly<Record<string, number>> = {
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
};

/** The value of a number or of a quantity, such as `1.5Gi`; NaN for other texts. Upstream: `resource.Quantity`. */
export function quantityOf(text: string): number {
  const [, digits, suffix = ''] = QUANTITY.exec(text) ?? [];
  return digits === undefined ? Number.NaN : Number(digits) * (POWERS[suffix] ?? 1);
}

const SPAN = /^(?:(\d+)y)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/;
const SPAN_MS = [365 * 86_400_000, 86_400_000, 3_600_000, 60_000, 1_000] as const;

/** The milliseconds of a span of time as servers show it, such as `5m30s`; NaN for other texts. */
export function spanOf(text: string): number {
  const parts = text === '' ? null : SPAN.exec(text);
  if (parts === null) return Number.NaN;
  return SPAN_MS.reduce((total, unitMs, at) => total + Number(parts[at + 1] ?? 0) * unitMs, 0);
}

/** A row among others. */
export interface Entry {
  readonly row: PageRow;
  readonly key: string;
  /** The natural order of namespaces and names. */
  readonly place: string;
  /** Of its cell in the column by which the table is sorted. */
  readonly empty: boolean;
  readonly text: string;
  readonly quantity: number;
  readonly span: number;
}

function toEntry(row: PageRow, { cellOf }: Sorting): Entry {
  const { text, timeMs } = cellOf(row);
  const { namespace = '', name = '' } = row.metadata;
  return {
    ...{ row, key: keyOf(row), place: `${naturalKey(namespace)}\0${naturalKey(name)}`, text: naturalKey(text) },
    ...{ empty: timeMs === undefined && NOTHING.has(text), quantity: quantityOf(text) },
    // The older, the longer.
    span: timeMs === undefined ? spanOf(text) : -timeMs,
  };
}

type Compare = (one: Entry, other: Entry) => number;

/** How the cells of a column are compared: by what all of them are. */
export type Measure = 'quantity' | 'span' | 'text';

/** Sorts rows, and keeps them sorted while some of them change. */
export class SortedRows {
  private entries: ReadonlyMap<PageRow, Entry> = new Map();
  private sorted: readonly Entry[] = [];
  private sorting: Sorting;
  private measure: Measure = 'text';

  constructor(sorting: Sorting) {
    this.sorting = sorting;
  }

  /** Sorts otherwise from now on. */
  sortBy(sorting: Sorting): void {
    this.sorting = sorting;
    this.entries = new Map();
    this.sorted = [];
  }

  /** Returns all of these rows, sorted. Rows that have changed are other objects than before. */
  update(rows: readonly PageRow[]): readonly Entry[] {
    const fresh: Entry[] = [];
    const entries = new Map<PageRow, Entry>();
    for (const row of rows) {
      const known = this.entries.get(row);
      const entry = known ?? toEntry(row, this.sorting);
      if (known === undefined) fresh.push(entry);
      entries.set(row, entry);
    }
    const stayed = this.sorted.filter(({ row }) => entries.has(row));
    this.entries = entries;
    if (fresh.length === 0 && stayed.length === this.sorted.length) return this.sorted;
    const measure = measureOf([stayed, fresh]);
    const compare = comparing(measure, this.sorting.descending);
    this.sorted = measure === this.measure ? merge(stayed, fresh.sort(compare), compare) : [...stayed, ...fresh].sort(compare);
    this.measure = measure;
    return this.sorted;
  }
}

function measureOf(parts: readonly (readonly Entry[])[]): Measure {
  let [quantities, spans, some] = [true, true, false];
  for (const part of parts) {
    for (const { empty, quantity, span } of part) {
      if (empty) continue;
      some = true;
      quantities &&= !Number.isNaN(quantity);
      spans &&= !Number.isNaN(span);
    }
  }
  if (!some) return 'text';
  return spans ? 'span' : quantities ? 'quantity' : 'text';
}

function comparing(measure: Measure, descending: boolean): Compare {
  const sign = descending ? -1 : 1;
  return (one, other) => {
    if (one.empty !== other.empty) return one.empty ? 1 : -1;
    const values = measure === 'text' || one.empty ? byCodeUnit(one.text, other.text) : one[measure] - other[measure];
    return sign * values || byCodeUnit(one.place, other.place) || byCodeUnit(one.key, other.key);
  };
}

function merge(some: readonly Entry[], more: readonly Entry[], compare: Compare): readonly Entry[] {
  const merged: Entry[] = [];
  let at = 0;
  for (const entry of more) {
    for (let next = some[at]; next !== undefined && compare(next, entry) <= 0; next = some[++at]) merged.push(next);
    merged.push(entry);
  }
  for (; at < some.length; at++) merged.push(some[at] as Entry);
  return merged;
}
