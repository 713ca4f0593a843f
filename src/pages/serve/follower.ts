import { Informer } from '../../cache/informer/informer.ts';
import type { InformerFailure, InformerState } from '../../cache/informer/informer-options.ts';
import { keyOf } from '../../cache/object.ts';
import { listAll } from '../../cache/pager.ts';
import { isWatchError } from '../../watch/errors.ts';
import { type ColumnDefinition, TableSource } from '../table.ts';
import { type Access, collectionPath, type PageResource } from './api.ts';
import type { PageRow } from './sorting.ts';

/** What is shown. */
export interface Scope {
  readonly resource: PageResource;
  /** Empty for all. */
  readonly namespace: string;
  readonly labelSelector: string;
  readonly fieldSelector: string;
  /** The collection as it was at this version; empty: as it is, live. */
  readonly version: string;
}

/** The callbacks of a {@link RowFollower}. */
interface RowFollowerEvents {
  /** Something has changed that can be read from the follower. */
  readonly onChange: () => void;
  readonly onState: (state: InformerState) => void;
  readonly onFailure: (error: unknown, failure: InformerFailure<PageRow>) => void;
  /** The past of the collection cannot be had. Nothing is followed. */
  readonly onNoPast: (error: unknown, scope: Scope) => void;
  /** The server wants another token. */
  readonly onDenied: () => void;
  /** There are more objects than a page can hold. Following has ended. */
  readonly onTooMany: (limit: number) => void;
}

/** Objects that a page holds. Each is a row, without its content. */
const MAX_OBJECTS = 100_000;
const ANSWER_MS = 20_000;
const PAGE_SIZE = 1_000;

/** A collection that is shown, live or as it was. */
interface Shown {
  readonly scope: Scope;
  readonly source: TableSource;
  readonly store: {
    list(): readonly PageRow[];
    get(key: string): PageRow | undefined;
    readonly size: number;
    readonly hasSynced: boolean;
    readonly resourceVersion: string;
  };
  readonly stop: () => void;
}

/**
 * Shows one collection at a time: an informer of rows, which survives broken connections and restarts of the server; or a list of
 * the rows as they were at some version.
 */
export class RowFollower {
  /** Changes that this page has received, of all collections. */
  received: number = 0;
  private changed: Set<string> = new Set();
  private run: Shown | undefined = undefined;
  private readonly access: Access;
  private readonly events: RowFollowerEvents;

  constructor(access: Access, events: RowFollowerEvents) {
    this.access = access;
    this.events = events;
  }

  get scope(): Scope | undefined {
    return this.run?.scope;
  }

  /** The columns of the server; undefined: it has named none. */
  get definitions(): readonly ColumnDefinition[] | undefined {
    return this.run?.source.definitions;
  }

  get rows(): readonly PageRow[] {
    return this.run?.store.list() ?? [];
  }

  /** The row of an object; undefined if there is none. */
  get(key: string): PageRow | undefined {
    return this.run?.store.get(key);
  }

  get size(): number {
    return this.run?.store.size ?? 0;
  }

  get hasSynced(): boolean {
    return this.run?.store.hasSynced ?? false;
  }

  get resourceVersion(): string {
    return this.run?.store.resourceVersion ?? '';
  }

  /** Returns the keys of what has changed since the last call. */
  takeChanged(): ReadonlySet<string> {
    const { changed } = this;
    this.changed = new Set();
    return changed;
  }

  /** Shows another collection, or the same from the start. */
  follow(scope: Scope): void {
    this.stop();
    const url = new URL(collectionPath(scope.resource, scope.namespace), location.origin);
    const source = new TableSource({ url, fetch: this.access.fetch, manyNamespaces: true, wide: true }, ANSWER_MS);
    if (scope.version === '') this.live(scope, source);
    else void this.past(scope, source);
  }

  stop(): void {
    const { run } = this;
    this.run = undefined;
    this.changed.clear();
    run?.stop();
  }

  private live(scope: Scope, source: TableSource): void {
    const isCurrent = (): boolean => this.run?.source === source;
    const informer = new Informer<PageRow>(source, {
      ...selectionOf(scope),
      maxObjects: MAX_OBJECTS,
      maxMs: 10_000,
      transform: slim,
      onStateChange: (state) => isCurrent() && this.events.onState(state),
      onError: (error, failure) => isCurrent() && this.failed(error, failure),
    });
    const { store } = informer;
    this.run = {
      ...{ scope, source, stop: () => void informer.stop() },
      store: {
        ...{ list: () => store.list(), get: (key) => store.get(key) },
        get size() {
          return store.size;
        },
        get hasSynced() {
          return informer.hasSynced;
        },
        get resourceVersion() {
          return informer.resourceVersion;
        },
      },
    };
    void this.read(informer, isCurrent);
    void informer.run();
  }

  /** Exactly that version: a newer state is not what was asked for. */
  private async past(scope: Scope, source: TableSource): Promise<void> {
    const closing = new AbortController();
    const rows = new Map<string, PageRow>();
    const store = { list: () => [...rows.values()], get: (key: string) => rows.get(key), resourceVersion: scope.version };
    const stop = (): void => closing.abort();
    const reading = { scope, source, stop, store: { ...store, size: 0, hasSynced: false } };
    this.run = reading;
    try {
      const { items } = await listAll(source, {
        ...{ ...selectionOf(scope), resourceVersion: scope.version, resourceVersionMatch: 'Exact', pageSize: PAGE_SIZE },
        ...{ maxObjects: MAX_OBJECTS, signal: closing.signal },
      });
      if (this.run !== reading) return;
      for (const item of items) rows.set(keyOf(item), slim(item));
      this.run = { ...reading, store: { ...store, size: rows.size, hasSynced: true } };
      this.events.onChange();
    } catch (error) {
      if (this.run !== reading) return;
      if (isDenied(error)) this.denied();
      else this.events.onNoPast(error, scope);
    }
  }

  private async read(informer: Informer<PageRow>, isCurrent: () => boolean): Promise<void> {
    // Objects that exist already are not changes; a BOOKMARK ends them.
    let begun = false;
    for await (const batch of informer.watch().batches()) {
      if (!isCurrent()) return;
      for (const event of batch) {
        begun ||= event.type === 'BOOKMARK';
        if (!begun || event.type === 'BOOKMARK' || event.type === 'ERROR') continue;
        this.received++;
        this.changed.add(keyOf(event.object));
      }
      this.events.onChange();
    }
  }

  private failed(error: unknown, failure: InformerFailure<PageRow>): void {
    if (isDenied(error)) this.denied();
    else if (isWatchError(error, 'OVERLOADED')) {
      this.stop();
      this.events.onTooMany(MAX_OBJECTS);
    } else this.events.onFailure(error, failure);
  }

  private denied(): void {
    this.stop();
    this.events.onDenied();
  }
}

const isDenied = (error: unknown): boolean => isWatchError(error, 'REFUSED') && error.status?.code === 401;

function selectionOf({ labelSelector, fieldSelector }: Scope): { labelSelector?: string; fieldSelector?: string } {
  return { ...(labelSelector && { labelSelector }), ...(fieldSelector && { fieldSelector }) };
}

/** A page needs little of the metadata, whose annotations can be as long as the object. */
function slim({ metadata, cells }: PageRow): PageRow {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, labels } = metadata;
  const kept = { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, labels };
  return { metadata: kept, cells, atMs: Date.now() };
}
