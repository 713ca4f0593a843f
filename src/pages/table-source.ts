/**
 * Objects as rows. A Kubernetes server makes tables itself, with columns that fit the kind, if it is asked for one; other servers
 * ignore the request, and send objects. From these, rows with the name and the age are made here.
 */
import { humanDuration } from '../apiserver/http/duration.ts';
import type { FetchLike } from '../bridge/client.ts';
import { filter } from '../broadcast/filter.ts';
import { toList, toObject } from '../cache/http/answer.ts';
import { ask, toHttpSettings } from '../cache/http/exchange.ts';
import { createListWatcher, toListUrl } from '../cache/http/http-list-watcher.ts';
import type { ListOptions, ListWatcher, ListWatchOptions } from '../cache/list-watcher.ts';
import { type KubernetesObject, metadataOf, type ObjectMeta } from '../cache/object.ts';
import { segment } from '../cache/resource-client.ts';
import { tried } from '../watch/errors.ts';
import type { ObjectEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import { excerpt } from './words.ts';

/** A collection, and how to ask for it. */
export interface CollectionTarget {
  readonly url: URL;
  readonly fetch: FetchLike;
  /** Whether objects of several namespaces may be in it, so that each is shown with its own. */
  readonly manyNamespaces: boolean;
  /** Whether to keep the cells of all columns, including those that a server marks as wide. Default false. */
  readonly wide?: boolean | undefined;
}

/** A collection of which one object can be read even if the rest may not be. */
export interface TableCollection<T = KubernetesObject> extends ListWatcher<T> {
  get(name: string, signal: AbortSignal): Promise<T | undefined>;
}

/** A collection whose objects are rows: cells instead of content, which is a small part of the bytes. */
export class TableSource implements TableCollection<TableRow> {
  readonly #target: CollectionTarget;
  readonly #timeoutMs: number;
  readonly #shown: ShownColumns;

  constructor(target: CollectionTarget, responseTimeoutMs: number) {
    this.#target = target;
    this.#timeoutMs = responseTimeoutMs;
    this.#shown = new ShownColumns(target.wide);
  }

  /** The columns that the server has named; undefined: it makes no tables. */
  get columns(): readonly string[] | undefined {
    return this.#shown.columns;
  }

  /** The same, as the server describes them. */
  get definitions(): readonly ColumnDefinition[] | undefined {
    return this.#shown.definitions;
  }

  async list(options: ListOptions = {}): Promise<TablePage> {
    return this.#ask(toListUrl(this.#target.url, options), options.signal, (text) => toPage(text, this.#shown));
  }

  async get(name: string, signal: AbortSignal): Promise<TableRow | undefined> {
    return this.#ask(urlOf(this.#target, name), signal, (text) => {
      const object = toObject<object>(text);
      return object && toRow(object, this.#shown);
    });
  }

  #ask<R>(url: URL, signal: AbortSignal | undefined, read: (text: string) => R): Promise<R> {
    const means = toHttpSettings({ fetch: this.#target.fetch, responseTimeoutMs: this.#timeoutMs });
    return ask(means, url, { question: { accept: TABLE }, signal, limit: 'maxListBytes', read });
  }

  async watch(options?: ListWatchOptions): Promise<Watch<ObjectEvent<TableRow>>> {
    const { fetch, url } = this.#target;
    const asTable: FetchLike = (to, init) => fetch(to, { ...init, headers: { ...init.headers, accept: TABLE } });
    const source = createListWatcher<KubernetesObject>(url, { fetch: asTable, responseTimeoutMs: this.#timeoutMs });
    return filter(await source.watch(options), (event) => {
      return event.type === 'ERROR'
        ? event
        : ({ type: event.type, object: toRow(event.object, this.#shown) } as ObjectEvent<TableRow>);
    });
  }
}

export function objectSource(target: CollectionTarget, responseTimeoutMs: number): TableCollection {
  const { fetch, url } = target;
  const means = toHttpSettings({ fetch, responseTimeoutMs });
  return Object.assign(createListWatcher<KubernetesObject>(url, { fetch, responseTimeoutMs }), {
    get: (name: string, signal: AbortSignal) => ask(means, urlOf(target, name), { signal, read: toObject<KubernetesObject> }),
  });
}

function urlOf({ url }: CollectionTarget, name: string): URL {
  const one = new URL(url);
  one.pathname = `${url.pathname.replace(/\/$/, '')}/${segment('name', name)}`;
  return one;
}

/** Asks for a table, or else for JSON. */
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

/** One object, as a row. It has metadata, so it can be kept and compared like an object. */
export interface TableRow extends KubernetesObject {
  readonly metadata: ObjectMeta;
  /** Absent if the server has made none. */
  readonly cells?: readonly string[] | undefined;
}

interface TablePage {
  readonly columns: readonly string[] | undefined;
  readonly items: readonly TableRow[];
  readonly resourceVersion: string;
  readonly continue?: string | undefined;
}

/** What a server sends as a table. Upstream: `metav1.WireTable`. It comes over the wire, so no member is certain. */
interface WireTable {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly columnDefinitions?: unknown;
  readonly rows?: unknown;
}

const isTable = (value: unknown): value is WireTable => (value as { kind?: unknown } | null)?.kind === 'Table';

/** A column, as a server describes it. Upstream: `metav1.TableColumnDefinition`. */
export interface ColumnDefinition {
  readonly name: string;
  /** Such as `integer`, or `date`. */
  readonly type: string;
  /** `name`: these are the names of the objects. */
  readonly format: string;
  readonly description: string;
  /** For users who ask for all columns. */
  readonly wide: boolean;
}

/** Which cells are shown, as the server's `priority` says: the others are for users who ask for all. */
export class ShownColumns {
  readonly #wide: boolean;
  #definitions: readonly ColumnDefinition[] | undefined;
  #shown: readonly boolean[] = [];

  constructor(wide: boolean = false) {
    this.#wide = wide;
  }

  get columns(): readonly string[] | undefined {
    return this.#definitions?.map(({ name }) => name.toUpperCase());
  }

  get definitions(): readonly ColumnDefinition[] | undefined {
    return this.#definitions;
  }

  /** Later tables of one stream do not repeat their columns. */
  learn({ columnDefinitions }: WireTable): void {
    if (!Array.isArray(columnDefinitions)) return;
    const all = columnDefinitions as (Readonly<Record<string, unknown>> | null)[];
    this.#shown = all.map((column) => this.#wide || !column?.priority);
    const kept = all.filter((_, at) => this.#shown[at]);
    this.#definitions = kept.map((column) => {
      const { name, type = '', format = '', description = '', priority } = column ?? {};
      const [named, typed, formatted, described] = [name, type, format, description].map(clean) as [
        string,
        string,
        string,
        string,
      ];
      return { name: named, type: typed, format: formatted, description: described, wide: Boolean(priority) };
    });
  }

  rows({ rows }: WireTable): TableRow[] {
    const all = Array.isArray(rows) ? (rows as ({ cells?: unknown; object?: unknown } | null)[]) : [];
    return all.map((row) => {
      const cells = Array.isArray(row?.cells) ? row.cells : [];
      return { metadata: metadataOf(row?.object), cells: cells.filter((_, at) => this.#shown[at] !== false).map(clean) };
    });
  }
}

/** Reads a list, in either form. */
export function toPage(text: string, shown: ShownColumns): TablePage {
  const value: unknown = text.startsWith('{') ? tried(() => JSON.parse(text)) : undefined; // toList says what is wrong
  if (!isTable(value)) {
    const { items, ...rest } = toList<KubernetesObject>(text);
    return { ...rest, columns: undefined, items: items.map((item) => ({ metadata: metadataOf(item) })) };
  }
  shown.learn(value);
  const { resourceVersion, continue: next } = value.metadata ?? {};
  return {
    columns: shown.columns,
    items: shown.rows(value),
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : '',
    continue: typeof next === 'string' && next ? next : undefined,
  };
}

/** The row of the object of an event, in either form; the version of a BOOKMARK is in the table's own metadata. */
export function toRow(object: unknown, shown: ShownColumns): TableRow {
  if (!isTable(object)) return { metadata: metadataOf(object) };
  shown.learn(object);
  const [row] = shown.rows(object);
  const { resourceVersion } = metadataOf(object);
  return { ...row, metadata: { ...(resourceVersion && { resourceVersion }), ...row?.metadata } };
}

/** A cell on one line, without characters that a terminal would act on. */
export function clean(cell: unknown): string {
  if (cell === null || cell === undefined) return '<none>';
  return excerpt(typeof cell === 'object' ? JSON.stringify(cell) : String(cell), 200);
}

/** How long ago a time was, such as `5m30s`. */
export function age(time: string | Date | undefined, nowMs: number): string {
  const spanMs = nowMs - Date.parse(String(time));
  return Number.isNaN(spanMs) ? '<unknown>' : humanDuration(Math.max(0, spanMs));
}
