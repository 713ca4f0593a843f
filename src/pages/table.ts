import type { FetchLike } from '../bridge/client.ts';
import { filter } from '../broadcast/filter.ts';
import { toList, toObject } from '../cache/http/answer.ts';
import { accepted, Exchange, named, toHttpSettings, wholeText } from '../cache/http/exchange.ts';
import { createListWatcher, toListUrl } from '../cache/http/http-list-watcher.ts';
import type { ListOptions, ListWatcher, ListWatchOptions } from '../cache/list-watcher.ts';
import { type KubernetesObject, metadataOf, type ObjectMeta } from '../cache/object.ts';
import { segment } from '../cache/resource-client.ts';
import { ask } from '../kubernetes/ask.ts';
import type { ObjectEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import { excerpt } from './words.ts';

/** A collection, and how to ask for it. */
export interface Target {
  readonly url: URL;
  readonly fetch: FetchLike;
  /** Whether objects of several namespaces may be in it, so that each is shown with its own. */
  readonly manyNamespaces: boolean;
}

/** A collection, of which one object can be read where the rest may not be. */
export interface Source<T = KubernetesObject> extends ListWatcher<T> {
  get(name: string, signal: AbortSignal): Promise<T | undefined>;
}

/** A collection whose objects are rows: cells instead of content, which is a small part of the bytes. */
export class TableSource implements Source<Row> {
  readonly #target: Target;
  readonly #timeoutMs: number;
  readonly #shown: Shown = new Shown();

  constructor(target: Target, responseTimeoutMs: number) {
    this.#target = target;
    this.#timeoutMs = responseTimeoutMs;
  }

  /** The columns that the server has named; undefined: it makes no tables. */
  get columns(): readonly string[] | undefined {
    return this.#shown.columns;
  }

  async list(options: ListOptions = {}): Promise<Page> {
    return toPage(await this.#text(toListUrl(this.#target.url, options), options.signal), this.#shown);
  }

  async get(name: string, signal: AbortSignal): Promise<Row | undefined> {
    const object = toObject<object>(await this.#text(urlOf(this.#target, name), signal));
    return object && toRow(object, this.#shown);
  }

  async #text(url: URL, signal: AbortSignal | undefined): Promise<string> {
    const means = toHttpSettings({ fetch: this.#target.fetch, responseTimeoutMs: this.#timeoutMs });
    const exchange = new Exchange(means, signal);
    try {
      const response = await accepted(exchange, url, { accept: TABLE });
      const limit = { what: 'the list', option: 'maxListBytes', bytes: means.maxListBytes } as const;
      return await wholeText(exchange, response, limit);
    } catch (error) {
      throw named(error, this.#target.url, signal);
    } finally {
      exchange.end();
    }
  }

  async watch(options?: ListWatchOptions): Promise<Watch<ObjectEvent<Row>>> {
    const { fetch, url } = this.#target;
    const asTable: FetchLike = (to, init) => fetch(to, { ...init, headers: { ...init.headers, accept: TABLE } });
    const source = createListWatcher<KubernetesObject>(url, { fetch: asTable, responseTimeoutMs: this.#timeoutMs });
    return filter(await source.watch(options), (event) => {
      return event.type === 'ERROR'
        ? event
        : ({ type: event.type, object: toRow(event.object, this.#shown) } as ObjectEvent<Row>);
    });
  }
}

/** A collection of whole objects. */
export function objectSource(target: Target, responseTimeoutMs: number): Source {
  const { fetch, url } = target;
  const means = toHttpSettings({ fetch, responseTimeoutMs });
  return Object.assign(createListWatcher<KubernetesObject>(url, { fetch, responseTimeoutMs }), {
    get: (name: string, signal: AbortSignal) => ask<KubernetesObject>(means, urlOf(target, name), { signal }),
  });
}

/** The URL of one object. */
function urlOf({ url }: Target, name: string): URL {
  const one = new URL(url);
  one.pathname = `${url.pathname.replace(/\/$/, '')}/${segment('name', name)}`;
  return one;
}

/**
 * Objects as rows. A Kubernetes server makes tables itself, with columns that fit the kind, if it is asked for one; other servers
 * ignore the request, and send objects. From these, rows with the name and the age are made here.
 */

/** Asks for a table, or else for JSON. */
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

/** One object, as a row. It has metadata, so it can be kept and compared as an object is. */
export interface Row extends KubernetesObject {
  readonly metadata: ObjectMeta;
  /** Absent if the server has made none. */
  readonly cells?: readonly string[] | undefined;
}

/** A page of rows. */
interface Page {
  readonly columns: readonly string[] | undefined;
  readonly items: readonly Row[];
  readonly resourceVersion: string;
  readonly continue?: string | undefined;
}

/** What a server sends as a table. Upstream: `metav1.Table`. It comes over the wire, so no member is certain. */
interface Table {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly columnDefinitions?: unknown;
  readonly rows?: unknown;
}

const isTable = (value: unknown): value is Table => (value as { kind?: unknown } | null)?.kind === 'Table';

/** Which cells are shown, as the server's `priority` says: the others are for users who ask for all. */
export class Shown {
  #columns: readonly string[] | undefined;
  #shown: readonly boolean[] = [];

  get columns(): readonly string[] | undefined {
    return this.#columns;
  }

  /** Later tables of one stream do not repeat their columns. */
  learn({ columnDefinitions }: Table): void {
    if (!Array.isArray(columnDefinitions)) return;
    const all = columnDefinitions as ({ name?: unknown; priority?: unknown } | null)[];
    this.#shown = all.map((column) => !column?.priority);
    this.#columns = all.filter((_, at) => this.#shown[at]).map((column) => clean(column?.name).toUpperCase());
  }

  rows({ rows }: Table): Row[] {
    const all = Array.isArray(rows) ? (rows as ({ cells?: unknown; object?: unknown } | null)[]) : [];
    return all.map((row) => {
      const cells = Array.isArray(row?.cells) ? row.cells : [];
      return { metadata: metadataOf(row?.object), cells: cells.filter((_, at) => this.#shown[at] !== false).map(clean) };
    });
  }
}

/** Reads a list, in either form. */
export function toPage(text: string, shown: Shown): Page {
  const value: unknown = text.startsWith('{') ? safely(text) : undefined;
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
export function toRow(object: unknown, shown: Shown): Row {
  if (!isTable(object)) return { metadata: metadataOf(object) };
  shown.learn(object);
  const [row] = shown.rows(object);
  const { resourceVersion } = metadataOf(object);
  return { ...row, metadata: { ...(resourceVersion && { resourceVersion }), ...row?.metadata } };
}

function safely(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // toList says what is wrong
  }
}

/** A cell on one line, without characters that a terminal would act on. */
export function clean(cell: unknown): string {
  if (cell === null || cell === undefined) return '<none>';
  return excerpt(typeof cell === 'object' ? JSON.stringify(cell) : String(cell), 200);
}

const [S, M, H, D, Y] = [1, 60, 3_600, 86_400, 365 * 86_400];
/** Up to a limit, in seconds: a large unit, and a small one next to it. */
const UNITS: readonly (readonly [limit: number, large: number, small?: number])[] = [
  [2 * M, S],
  [10 * M, M, S],
  [3 * H, M],
  [8 * H, H, M],
  [2 * D, H],
  [8 * D, D, H],
  [2 * Y, D],
  [8 * Y, Y, D],
  [Infinity, Y],
];
const LETTERS: ReadonlyMap<number, string> = new Map([
  [S, 's'],
  [M, 'm'],
  [H, 'h'],
  [D, 'd'],
  [Y, 'y'],
]);

/** How long ago a time was, such as `5m30s`. Upstream: `duration.HumanDuration`. */
export function age(time: string | Date | undefined, nowMs: number): string {
  const seconds = Math.floor((nowMs - Date.parse(String(time))) / 1_000);
  if (Number.isNaN(seconds)) return '<unknown>';
  const passed = Math.max(0, seconds);
  const [, large, small] = UNITS.find(([limit]) => passed < limit) ?? [0, Y];
  const rest = small === undefined ? 0 : Math.floor((passed % large) / small);
  const part = (count: number, unit: number): string => `${count}${LETTERS.get(unit)}`;
  return part(Math.floor(passed / large), large) + (rest > 0 ? part(rest, small as number) : '');
}
