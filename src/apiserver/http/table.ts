/**
 * Objects as rows of a table, which is what `kubectl get` prints: the server defines the columns, so kubectl can show kinds that
 * it does not know. Upstream: `metav1.Table`, and `tableconvertor.go` for custom resources.
 *
 *     NAME   COUNT   AGE          <- columnDefinitions: the name, then the columns of the kind; the age if it has none
 *     a      3       5m           <- a row: cells, and the object's metadata beside them, so that it can be named and deleted
 *
 * A watch sends a table of one row with each event. The columns are in the first one, and are null in those that follow. A
 * bookmark is also a table: its version is in the table's metadata, and its annotations are in the row's object.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { badRequest } from '../../storage/statuses.ts';
import { getOrMake } from '../../watch/errors.ts';
import type { CellContext, PrinterColumn, ResourceDefinition } from '../definition.ts';
import { AGE } from '../kinds/common.ts';
import { jsonStart } from '../validation/causes.ts';
import { humanDuration } from './duration.ts';

/** What a list says about itself. Upstream: `metav1.ListMeta`. */
export interface ListMeta {
  readonly resourceVersion?: string | undefined;
  readonly continue?: string | undefined;
  readonly remainingItemCount?: number | undefined;
}

/** The version of `meta.k8s.io` that a client knows. */
export type MetaVersion = 'v1' | 'v1beta1';

/** The metadata of an object. Upstream: `metav1.PartialObjectMetadata`. */
export function toPartial({ metadata = {} }: KubernetesObject, version: MetaVersion = 'v1'): object {
  return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata };
}

/** The metadata of a list's objects, and the list's own. */
export function toPartialList(
  objects: readonly KubernetesObject[],
  { version = 'v1', metadata = {} }: { version?: MetaVersion | undefined; metadata?: ListMeta | undefined } = {},
): object {
  const items = objects.map((each) => toPartial(each, version));
  return { kind: 'PartialObjectMetadataList', apiVersion: `meta.k8s.io/${version}`, metadata, items };
}

/** How much of an object comes with the cells of its row. Upstream: `metav1.IncludeObjectPolicy`. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** One column. Upstream: `metav1.TableColumnDefinition`. */
type TableColumn = Readonly<Record<'name' | 'type' | 'format' | 'description', string> & { priority: number }>;

/** One row. Upstream: `metav1.TableRow`. */
interface TableRow {
  readonly cells: readonly (string | number | boolean | null)[];
  readonly object: object | null;
}

/** Upstream: `metav1.Table`. */
interface Table {
  readonly kind: 'Table';
  readonly apiVersion: string;
  readonly metadata: ListMeta;
  readonly columnDefinitions: readonly TableColumn[] | null;
  readonly rows: readonly TableRow[];
}

interface TableOptions {
  /** The time, for ages. */
  readonly now: number;
  /** Default `Metadata`. */
  readonly includeObject?: IncludeObject | undefined;
  /** Default `v1`. */
  readonly version?: MetaVersion | undefined;
  /** The list's metadata. Default: the version of the only object. */
  readonly metadata?: ListMeta | undefined;
  /** Called with the failure of a column, once for each column. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** All objects of the list, if it is one. */
  readonly list?: readonly KubernetesObject[] | undefined;
  /** Whether to include the columns. Default true; false for all events of a watch but the first. */
  readonly columns?: boolean | undefined;
}

/** The part of a definition that is needed: its columns. */
type Columns = Pick<ResourceDefinition, 'columns'>;

const NAME: TableColumn = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within a namespace.',
  priority: 0,
};

export function toTable(definition: Columns, objects: readonly KubernetesObject[], options: TableOptions): Table {
  const [first] = objects;
  const { version = 'v1', metadata = { resourceVersion: first?.metadata?.resourceVersion } } = options;
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${version}`,
    metadata,
    columnDefinitions: options.columns === false ? null : toColumns(definition),
    rows: objects.map((object) => toRow(definition, object, options)),
  };
}

/** Makes a table of a BOOKMARK, whose cells are empty. */
export function toBookmarkTable(definition: Columns, bookmark: KubernetesObject, options: TableOptions): Table {
  const table = toTable(definition, [], { ...options, metadata: { resourceVersion: bookmark.metadata?.resourceVersion } });
  const cells = toColumns(definition).map((_, at) => (at === 0 ? '' : null));
  // Sent even to a client that wants no objects: it says where the initial events end.
  return { ...table, rows: [{ cells, object: toPartial(bookmark, options.version) }] };
}

function toColumns(definition: Columns): TableColumn[] {
  const columns = columnsOf(definition).map(({ name, type, format = '', description = '', priority = 0 }) => ({
    ...{ name, type, format, description, priority },
  }));
  return hasName(definition) ? columns : [NAME, ...columns];
}

/** Whether the kind has its own column for names, as events do, whose names nobody reads. */
const hasName = (definition: Columns): boolean => columnsOf(definition).some(({ format }) => format === NAME.format);

export function toRow(definition: Columns, object: KubernetesObject, options: TableOptions): TableRow {
  const { now, list = [] } = options;
  const cells = columnsOf(definition).map((column) => {
    try {
      return toCell(column, object, { now, list });
    } catch (error) {
      // A column that fails for one object must not prevent the listing of all others.
      if (options.onError && isFirst(definition, column)) options.onError(failure(column, object, error));
      return null;
    }
  });
  const row = { cells: hasName(definition) ? cells : [object.metadata?.name ?? '', ...cells] };
  const { includeObject = 'Metadata', version } = options;
  if (includeObject === 'None') return { ...row, object: null };
  return { ...row, object: includeObject === 'Object' ? object : toPartial(object, version) };
}

/**
 * Reads the query parameter `includeObject`.
 *
 * @throws {WatchError} REFUSED with 400.
 */
export function toIncludeObject(value: string | null | undefined): IncludeObject {
  if (value === undefined || value === null || value === '') return 'Metadata';
  if (value === 'None' || value === 'Metadata' || value === 'Object') return value;
  const shown = JSON.stringify(value.slice(0, 80));
  const expected = "must be 'Metadata', 'Object', 'None', or empty";
  throw badRequest(`Unable to convert to Table as requested: includeObject: Invalid value: ${shown}: ${expected}`);
}

function columnsOf({ columns = [AGE] }: Columns): readonly PrinterColumn[] {
  return columns;
}

type Cell = TableRow['cells'][number];

function toCell(column: PrinterColumn, object: KubernetesObject, about: CellContext): Cell {
  const value = column.value(object, about);
  if (column.type !== 'date' || value === null) return toJsonCell(value);
  const isTime = typeof value === 'string' || typeof value === 'number' || value instanceof Date;
  const at = isTime ? new Date(value).getTime() : Number.NaN;
  if (!Number.isNaN(at)) return humanDuration(about.now - at);
  return typeof value === 'string' && value !== '' ? '<invalid>' : '<unknown>';
}

/** The longest JSON in a cell: a list may have ten thousand rows, and an object megabytes. */
const MAX_CELL_CHARS = 1_024;

/** A JSON value: for a BigInt, the number if that is exact, otherwise its text; for a value that is not a cell, its text. */
function toJsonCell(value: unknown): Cell {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value instanceof Date) return value.toJSON();
  if (typeof value === 'object' && value !== null) {
    const text = jsonStart(value, MAX_CELL_CHARS + 1);
    return text.length > MAX_CELL_CHARS ? `${text.slice(0, MAX_CELL_CHARS)}...` : text;
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
}

/** The failed columns of each server. A column that fails for one object usually fails for all, in each list. */
const failed: WeakMap<Columns, Set<PrinterColumn>> = new WeakMap();

function isFirst(definition: Columns, column: PrinterColumn): boolean {
  const known = getOrMake(failed, definition, () => new Set());
  return known.size < known.add(column).size;
}

function failure({ name }: PrinterColumn, { metadata }: KubernetesObject, cause: unknown): Error {
  return new Error(`the column ${name} failed for ${metadata?.name}; further failures are not reported`, { cause });
}
