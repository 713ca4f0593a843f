// The order of the rows of a page, as people expect it, kept while objects change.
//
//     cell --'order-10'--> order-0(2)10    text: runs of digits by their value, so order-2 is before order-10
//            '512Mi', '3'--> 536870912, 3   quantities: if all cells of the column are some
//            '5m30s', a time --> ms         spans and ages: likewise
//
// Of 10,000 rows only a few change between two drawings, so the rows stay sorted: what has changed is sorted, and merged. Sorting all of
// them takes longer than a frame, so that is done in steps: runs are sorted, and then merged, two by two.

import { keyOf } from '../../cache/object.ts';
import { byCodeUnit } from '../../selectors/syntax.ts';
import { merge } from '../../watch/bisect.ts';
import type { TableRow } from '../table-source.ts';

/** A row, and when this page got it. */
export interface PageRow extends TableRow {
  readonly atMs?: number | undefined;
}

/** A row's value in a column. */
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

/** What servers write for a missing value. Such rows come last in both directions. */
const NOTHING = new Set(['', '<none>', '<unknown>', '<unset>', '<invalid>']);

/** A text whose order by code units is the one people expect: `a2` is before `a10`, and before `B1`. */
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
}

/** How the cells of a column are compared: by what all of them are. */
type Measure = 'quantity' | 'span' | 'text';

/** The same, with its sort keys. */
class SortedEntry implements Entry {
  readonly row: PageRow;
  readonly key: string;
  /** The natural order of namespaces and names. */
  readonly place: string;
  /** Of its cell in the column by which the table is sorted. */
  empty: boolean = true;
  text: string = '';
  quantity: number = Number.NaN;
  span: number = Number.NaN;

  constructor(row: PageRow, key: string) {
    const { namespace = '', name = '' } = row.metadata;
    this.row = row;
    this.key = key;
    this.place = `${naturalKey(namespace)}\0${naturalKey(name)}`;
  }

  read({ text, timeMs }: Cell): void {
    this.text = naturalKey(text);
    this.empty = timeMs === undefined && NOTHING.has(text);
    this.quantity = quantityOf(text);
    // The older, the longer.
    this.span = timeMs === undefined ? spanOf(text) : -timeMs;
  }
}

type Compare = (one: SortedEntry, other: SortedEntry) => number;

/** How many rows are read, sorted or merged in one step. */
const STEP_ROWS = 500;

/** Sorts rows, and keeps them sorted while some of them change. */
export class SortedRows {
  private entries: Map<string, SortedEntry> = new Map();
  private sorted: readonly SortedEntry[] = [];
  private sorting: Sorting = { descending: false, cellOf: () => ({ text: '' }) };
  private measure: Measure = 'text';
  /** The entries whose cells are not empty, and how many of these are neither quantities nor spans. */
  private filled: number = 0;
  private noQuantity: number = 0;
  private noSpan: number = 0;

  get all(): readonly Entry[] {
    return this.sorted;
  }

  /**
   * Sorts these rows, by default those that it has, and keeps this order from now on. Until it is done, `all` stays as it was,
   * and no other method may be called, except this one again.
   */
  *sort(sorting: Sorting, rows?: readonly PageRow[]): Generator<void, void> {
    this.sorting = sorting;
    this.filled = this.noQuantity = this.noSpan = 0;
    const entries = rows === undefined ? this.entries : new Map<string, SortedEntry>();
    for (const [at, row] of (rows ?? []).entries()) {
      if (at % STEP_ROWS === 0) yield;
      const key = keyOf(row);
      const known = this.entries.get(key);
      entries.set(key, known?.row === row ? known : new SortedEntry(row, key));
    }
    const all = [...entries.values()];
    for (const [at, entry] of all.entries()) {
      if (at % STEP_ROWS === 0) yield;
      this.read(entry);
    }
    this.measure = this.toMeasure();
    const sorted = yield* sortedInSteps(all, this.compare);
    this.entries = entries;
    this.sorted = sorted;
  }

  /** Updates some of the rows; those that `get` does not have are gone. */
  change(keys: Iterable<string>, get: (key: string) => PageRow | undefined): void {
    const fresh: SortedEntry[] = [];
    const gone = new Set<SortedEntry>();
    for (const key of keys) {
      const row = get(key);
      const old = this.entries.get(key);
      if (old?.row === row) continue;
      if (old !== undefined) {
        gone.add(old);
        this.count(old, -1);
        this.entries.delete(key);
      }
      if (row === undefined) continue;
      const entry = new SortedEntry(row, key);
      this.entries.set(key, entry);
      this.read(entry);
      fresh.push(entry);
    }
    if (gone.size === 0 && fresh.length === 0) return;
    const stayed = gone.size === 0 ? this.sorted : this.sorted.filter((entry) => !gone.has(entry));
    if (this.toMeasure() !== this.measure) {
      this.measure = this.toMeasure();
      this.sorted = [...stayed, ...fresh].sort(this.compare);
    } else this.sorted = merge(stayed, fresh.sort(this.compare), this.compare);
  }

  private read(entry: SortedEntry): void {
    entry.read(this.sorting.cellOf(entry.row));
    this.count(entry, 1);
  }

  private count({ empty, quantity, span }: SortedEntry, by: 1 | -1): void {
    if (empty) return;
    this.filled += by;
    if (Number.isNaN(quantity)) this.noQuantity += by;
    if (Number.isNaN(span)) this.noSpan += by;
  }

  private toMeasure(): Measure {
    if (this.filled === 0) return 'text';
    return this.noSpan === 0 ? 'span' : this.noQuantity === 0 ? 'quantity' : 'text';
  }

  private get compare(): Compare {
    const { measure } = this;
    const sign = this.sorting.descending ? -1 : 1;
    return (one, other) => {
      if (one.empty !== other.empty) return one.empty ? 1 : -1;
      const values = measure === 'text' || one.empty ? byCodeUnit(one.text, other.text) : one[measure] - other[measure];
      return sign * values || byCodeUnit(one.place, other.place) || byCodeUnit(one.key, other.key);
    };
  }
}

function* sortedInSteps(entries: readonly SortedEntry[], compare: Compare): Generator<void, readonly SortedEntry[]> {
  let runs: SortedEntry[][] = [];
  for (let at = 0; at < entries.length; at += STEP_ROWS) {
    runs.push(entries.slice(at, at + STEP_ROWS).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const longer: SortedEntry[][] = [];
    for (let at = 0; at < runs.length; at += 2) {
      longer.push(yield* mergedInSteps(runs[at] as SortedEntry[], runs[at + 1] ?? [], compare));
    }
    runs = longer;
  }
  return runs[0] ?? [];
}

function* mergedInSteps(
  some: readonly SortedEntry[],
  more: readonly SortedEntry[],
  compare: Compare,
): Generator<void, SortedEntry[]> {
  const merged: SortedEntry[] = [];
  let [at, to] = [0, 0];
  while (at < some.length || to < more.length) {
    const [one, other] = [some[at], more[to]];
    if (one !== undefined && (other === undefined || compare(one, other) <= 0)) {
      merged.push(one);
      at++;
    } else {
      merged.push(other as SortedEntry);
      to++;
    }
    if (merged.length % STEP_ROWS === 0) yield;
  }
  return merged;
}
