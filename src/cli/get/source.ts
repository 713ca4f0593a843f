import type { FetchLike } from '../../bridge/client.ts';
import { filter } from '../../broadcast/filter.ts';
import { toObject } from '../../cache/http/answer.ts';
import { Exchange, named } from '../../cache/http/exchange.ts';
import { createListWatcher } from '../../cache/http/http-list-watcher.ts';
import { accepted, toHttpSettings, wholeText } from '../../cache/http/means.ts';
import { toListUrl } from '../../cache/http/query.ts';
import type { ListOptions, ListWatcher, ListWatchOptions } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { segment } from '../../cache/resource-client.ts';
import { ask } from '../../kubernetes/ask.ts';
import type { ObjectEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import { type Page, type Row, Shown, TABLE, toPage, toRow } from './table.ts';
import type { Target } from './target.ts';

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
