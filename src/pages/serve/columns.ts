// Which columns a table of objects has: those of the server, and those that every kind has.
import { printLabels } from '../../selectors/label-selector.ts';
import { age, type ColumnDefinition } from '../table-source.ts';
import { visible } from '../words.ts';
import { type Cell, type PageRow, spanOf } from './sorting.ts';

/** How many columns are shown: name and age; those that fit most screens; all. */
export const BREADTHS = ['few', 'usual', 'all'] as const;
export type Breadth = (typeof BREADTHS)[number];

export interface Column {
  /** In URLs, and as the heading. */
  readonly name: string;
  /** Columns of a role look the same in all tables. */
  readonly role: 'namespace' | 'name' | 'labels' | 'age' | 'more';
  readonly title: string;
  /** Which of the server's columns it is; -1: none of these. */
  readonly at: number;
  readonly isNumber: boolean;
  readonly cellOf: (row: PageRow) => Cell;
}

/** What servers without tables have. */
const PLAIN: readonly ColumnDefinition[] = ['Name', 'Age'].map((name) => {
  return { name, type: 'string', format: name === 'Name' ? 'name' : '', description: '', wide: false };
});

/** What is known about a collection. */
interface Known {
  /** The columns of the server; undefined: it makes no tables. */
  readonly definitions: readonly ColumnDefinition[] | undefined;
  /** Whether the objects of several namespaces are shown. */
  readonly hasNamespaces: boolean;
  readonly breadth: Breadth;
}

/** Columns of the server that are shown: each makes every row slower to draw, and nobody reads two hundred. */
const MAX_COLUMNS = 30;

/** Chooses the columns. The first of them that names the object opens it. */
export function toColumns(known: Known): readonly Column[] {
  const { hasNamespaces, breadth } = known;
  const own = wantedColumns(known).filter(({ role }, at) => at < MAX_COLUMNS || role === 'name');
  // The most important column comes first: a kind whose names nobody reads has them last.
  const columns = breadth === 'few' ? own.sort((one, other) => Number(other.role === 'name') - Number(one.role === 'name')) : own;
  return [...(hasNamespaces ? [NAMESPACE] : []), ...columns, ...(breadth === 'few' ? [] : [LABELS])];
}

/** How many columns of the server are not shown because there are too many. */
export function columnsLeftOut(known: Known): number {
  return wantedColumns(known).filter(({ role }, at) => at >= MAX_COLUMNS && role !== 'name').length;
}

function wantedColumns({ definitions = PLAIN, breadth }: Known): Column[] {
  const named = definitions.findIndex(({ format }) => format === 'name');
  const nameAt = named < 0 ? 0 : named;
  const all = definitions.map((definition, at) => ({ definition, column: toColumn(definition, { at, isName: at === nameAt }) }));
  return all
    .filter(({ definition, column: { role } }) => {
      if (role === 'name') return true;
      return breadth === 'all' || (!definition.wide && (breadth === 'usual' || role === 'age'));
    })
    .map(({ column }) => column);
}

const COMMON = { at: -1, isNumber: false, title: '' };

const NAMESPACE: Column = {
  ...COMMON,
  name: 'namespace',
  role: 'namespace',
  cellOf: ({ metadata }) => ({ text: metadata.namespace ?? '' }),
};

const LABELS: Column = {
  ...COMMON,
  name: 'labels',
  role: 'labels',
  cellOf: ({ metadata }) => ({ text: printLabels(metadata.labels ?? {}) }),
};

function toColumn({ name, type, description }: ColumnDefinition, { at, isName }: { at: number; isName: boolean }): Column {
  const column = {
    ...{ name: visible(name.toLowerCase()), title: visible(description), at },
    isNumber: type === 'integer' || type === 'number',
  };
  if (isName) return { ...column, role: 'name', cellOf: ({ metadata }) => ({ text: metadata.name ?? '' }) };
  const textOf = ({ cells }: PageRow): string => cells?.[at] ?? '';
  // Another kind may call something else its age: that is not a span of time.
  if (column.name === 'age') return { ...column, role: 'age', cellOf: (row) => ageCell(textOf(row), row) };
  return {
    ...column,
    role: 'more',
    cellOf: type === 'date' ? (row) => dateCell(textOf(row), row) : (row) => ({ text: textOf(row) }),
  };
}

function ageCell(text: string, { metadata, cells }: PageRow): Cell {
  const timeMs = Date.parse(String(metadata.creationTimestamp));
  const isAge = !Number.isNaN(timeMs) && (cells === undefined || !Number.isNaN(spanOf(text)));
  return isAge ? { text, timeMs } : { text };
}

/** The server says how long ago it was when it answered. */
function dateCell(text: string, { atMs }: PageRow): Cell {
  const span = spanOf(text);
  return atMs === undefined || Number.isNaN(span) ? { text } : { text, timeMs: atMs - span };
}

export function wordsOf({ text, timeMs }: Cell, nowMs: number): string {
  return timeMs === undefined ? visible(text) : age(new Date(timeMs), nowMs);
}
