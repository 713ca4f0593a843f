/** What a reader has chosen: filter, columns, wrapping. It is kept in the page's URL, so that a link shows the same. */
import { queryWith } from '../words.ts';
import type { EventRow } from './events.ts';
import { isName } from './fields.ts';
import { MAX_QUERY_CHARS, OBJECT, textOf } from './query.ts';

/** A column: what it shows, and its width in pixels if somebody has set it. */
export interface PipeColumn {
  readonly name: string;
  readonly width?: number | undefined;
}

export interface PipeView {
  readonly filter: string;
  /** Only events of this type; empty for all. */
  readonly type: string;
  readonly wrap: boolean;
  /** After the number, which is always the first; undefined: the page chooses. */
  readonly columns: readonly PipeColumn[] | undefined;
}

/** The most columns that are shown, and the limits of a width. */
export const MAX_COLUMNS = 20;
export const WIDTH: { readonly min: number; readonly max: number } = { min: 40, max: 2_000 };

const widthWithin = (width: number): number => Math.min(WIDTH.max, Math.max(WIDTH.min, Math.round(width)));

/** Columns that are not fields. */
export const OWN_COLUMNS = ['received', 'level', 'type', 'object'] as const;

export function toView(search: string): PipeView {
  const query = new URLSearchParams(search);
  const columns = query.get('columns')?.split(' ').slice(0, MAX_COLUMNS).map(toColumn);
  const known = columns?.filter((column) => column !== undefined);
  return {
    filter: (query.get('filter') ?? '').slice(0, MAX_QUERY_CHARS),
    type: query.get('type') ?? '',
    wrap: query.has('wrap'),
    columns: known === undefined || known.length === 0 ? undefined : without(known),
  };
}

/** `msg*320`. */
function toColumn(text: string): PipeColumn | undefined {
  const [name = '', width] = text.split('*');
  if (!isName(name)) return undefined;
  return Number(width) > 0 ? { name, width: widthWithin(Number(width)) } : { name };
}

/** A column is shown once. */
function without(columns: readonly PipeColumn[]): readonly PipeColumn[] {
  return columns.filter(({ name }, at) => columns.findIndex((other) => other.name === name) === at);
}

/** Returns the query of a URL with this view, and with whatever else was in it. */
export function toSearch({ filter, type, wrap, columns }: PipeView, search: string): string {
  const names = columns?.map(({ name, width }) => (width === undefined ? name : `${name}*${width}`));
  return queryWith(search, { filter, type, wrap: wrap ? 'on' : '', columns: names?.join(' ') ?? '' });
}

export function resized(columns: readonly PipeColumn[], name: string, width: number | undefined): readonly PipeColumn[] {
  return columns.map((column) =>
    column.name !== name ? column : width === undefined ? { name } : { name, width: widthWithin(width) },
  );
}

/** Returns the columns with one moved by a number of places. */
export function moved(columns: readonly PipeColumn[], name: string, by: number): readonly PipeColumn[] {
  const from = columns.findIndex((column) => column.name === name);
  const to = Math.max(0, Math.min(columns.length - 1, from + by));
  const rest = columns.filter((_, at) => at !== from);
  return from < 0 ? columns : [...rest.slice(0, to), columns[from] as PipeColumn, ...rest.slice(to)];
}

/** The name of a field's column: a field may have the name of one of the event. */
export function columnOf(field: string): string {
  return field === 'no' || (OWN_COLUMNS as readonly string[]).includes(field) ? OBJECT + field : field;
}

export function cellText(row: EventRow, column: string, timeOf: (time: Date) => string): string {
  return column === 'received' ? timeOf(row.time) : (textOf(row, column) ?? '');
}
