import type { FetchLike } from '../../bridge/client.ts';
import { filter } from '../../broadcast/filter.ts';
import { Exchange, named } from '../../cache/http/exchange.ts';
import { createListWatcher } from '../../cache/http/http-list-watcher.ts';
import { accepted, toHttpSettings, wholeText } from '../../cache/http/means.ts';
import { toListUrl } from '../../cache/http/query.ts';
import type { ListOptions, ListWatcher, ListWatchOptions } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { ObjectEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import { type Page, type Row, Shown, TABLE, toPage, toRow } from './table.ts';
import type { Target } from './target.ts';

/** A collection whose objects are rows: cells instead of content, which is a small part of the bytes. */
export class TableSource implements ListWatcher<Row> {
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
    const { fetch, url } = this.#target;
    const means = toHttpSettings({ fetch, responseTimeoutMs: this.#timeoutMs });
    const exchange = new Exchange(means, options.signal);
    try {
      const response = await accepted(exchange, toListUrl(url, options), { accept: TABLE });
      const limit = { what: 'the list', option: 'maxListBytes', bytes: means.maxListBytes } as const;
      return toPage(await wholeText(exchange, response, limit), this.#shown);
    } catch (error) {
      throw named(error, url, options.signal);
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
export function objectSource({ fetch, url }: Target, responseTimeoutMs: number): ListWatcher<KubernetesObject> {
  return createListWatcher<KubernetesObject>(url, { fetch, responseTimeoutMs });
}
