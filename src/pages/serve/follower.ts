import type { ReflectorStore } from '../../cache/list-watcher.ts';
import { keyOf } from '../../cache/object.ts';
import { listAll } from '../../cache/pager.ts';
import { isOlder } from '../../cache/reflector/events.ts';
import { Reflector } from '../../cache/reflector/reflector.ts';
import type { ReflectorFailure, ReflectorState } from '../../cache/reflector/reflector-options.ts';
import { isWatchError, refusalCode, tried, WatchError } from '../../watch/errors.ts';
import { type ColumnDefinition, TableSource } from '../table-source.ts';
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

interface RowFollowerEvents {
  /** Something has changed that can be read from the follower. */
  readonly onChange: () => void;
  readonly onState: (state: ReflectorState) => void;
  readonly onFailure: (error: unknown, failure: ReflectorFailure) => void;
  /** The past of the collection is not available. Nothing is followed. */
  readonly onNoPast: (error: unknown, scope: Scope) => void;
  /** The server requires another token. */
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
  readonly store: RowStore;
  readonly closing: AbortController;
}

/** Called when something is new, with the keys that have changed since the state was complete, if any. */
type OnChange = (keys: readonly string[]) => void;

/**
 * The rows of a collection. Not an informer, whose log serves any number of readers at any speed: this page is one reader that
 * looks only at the current state.
 */
class RowStore implements ReflectorStore<PageRow> {
  readonly prepare: typeof slim = slim;
  rows: Map<string, PageRow> = new Map();
  hasSynced: boolean = false;
  resourceVersion: string = '';
  private readonly maxObjects: number;
  private readonly onChange: OnChange;

  constructor(maxObjects: number, onChange: OnChange) {
    this.maxObjects = maxObjects;
    this.onChange = onChange;
  }

  add(row: PageRow): void {
    const key = keyIn(row);
    const slimmed = slim(row);
    if (key !== undefined && !this.rows.has(key) && this.rows.size >= this.maxObjects) {
      throw new WatchError('OVERLOADED', `expected at most ${this.maxObjects} objects`);
    }
    if (key !== undefined) this.rows.set(key, slimmed);
    this.moved(row.metadata.resourceVersion, key);
  }

  update(row: PageRow): void {
    this.add(row);
  }

  delete(row: PageRow): void {
    const key = keyIn(row);
    this.moved(row.metadata.resourceVersion, key !== undefined && this.rows.delete(key) ? key : undefined);
  }

  /** Rows of unchanged objects stay the same. */
  replace(list: Iterable<PageRow>, resourceVersion: string): void {
    // In another life of the server, the same version may be another state.
    const isOther = isOlder(resourceVersion, this.resourceVersion);
    const before = this.rows;
    this.rows = new Map();
    const changed: string[] = [];
    for (const row of list) {
      const key = keyIn(row);
      if (key === undefined) continue;
      const old = before.get(key);
      const isKept = old !== undefined && !isOther && isSame(old, row);
      this.rows.set(key, isKept ? old : row);
      if (!isKept) changed.push(key);
    }
    for (const key of before.keys()) if (!this.rows.has(key)) changed.push(key);
    this.resourceVersion = resourceVersion;
    const isFirst = !this.hasSynced;
    this.hasSynced = true;
    this.onChange(isFirst ? [] : changed);
  }

  bookmark(resourceVersion: string): void {
    this.moved(resourceVersion);
  }

  private moved(resourceVersion: string | undefined, key?: string): void {
    if (resourceVersion !== undefined) this.resourceVersion = resourceVersion;
    this.onChange(key === undefined ? [] : [key]);
  }
}

/** The key of a row; undefined if a server has sent an object without a name. */
const keyIn = (row: PageRow): string | undefined => tried(() => keyOf(row));

function isSame({ metadata: one }: PageRow, { metadata: other }: PageRow): boolean {
  return one.uid === other.uid && one.resourceVersion !== undefined && one.resourceVersion === other.resourceVersion;
}

/**
 * Shows one collection at a time: a reflector of rows, which survives broken connections and restarts of the server; or a list of
 * the rows as they were at some version.
 */
export class RowFollower {
  /** Changes that this page has received, of all collections. */
  received: number = 0;
  private changed: Set<string> = new Set();
  private run: Shown | undefined = undefined;
  private readonly access: Access;
  private readonly events: RowFollowerEvents;
  private readonly maxObjects: number;

  constructor(access: Access, events: RowFollowerEvents, maxObjects: number = MAX_OBJECTS) {
    this.access = access;
    this.events = events;
    this.maxObjects = maxObjects;
  }

  get scope(): Scope | undefined {
    return this.run?.scope;
  }

  /** The columns of the server; undefined: it has named none. */
  get definitions(): readonly ColumnDefinition[] | undefined {
    return this.run?.source.definitions;
  }

  get rows(): readonly PageRow[] {
    return [...(this.run?.store.rows.values() ?? [])];
  }

  get(key: string): PageRow | undefined {
    return this.run?.store.rows.get(key);
  }

  get size(): number {
    return this.run?.store.rows.size ?? 0;
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
    const store: RowStore = new RowStore(this.maxObjects, (keys) => this.run?.store === store && this.changes(keys));
    const run = { scope, source, store, closing: new AbortController() };
    this.run = run;
    void (scope.version === '' ? this.live(run) : this.past(run));
  }

  stop(): void {
    const { run } = this;
    this.run = undefined;
    this.changed.clear();
    run?.closing.abort();
  }

  private changes(keys: readonly string[]): void {
    this.received += keys.length;
    for (const key of keys) this.changed.add(key);
    this.events.onChange();
  }

  private live(run: Shown): Promise<void> {
    const reflector = new Reflector(run.source, run.store, {
      ...selectionOf(run.scope),
      maxObjects: this.maxObjects,
      maxMs: 10_000,
      onStateChange: (state) => this.run === run && this.events.onState(state),
      onError: (error, failure) => this.run === run && this.failed(error, failure),
    });
    return reflector.run(run.closing.signal);
  }

  /** Exactly that version, not a newer state. */
  private async past(run: Shown): Promise<void> {
    const { scope, source, store, closing } = run;
    try {
      const { items } = await listAll(source, {
        ...{ ...selectionOf(scope), resourceVersion: scope.version, resourceVersionMatch: 'Exact', pageSize: PAGE_SIZE },
        ...{ maxObjects: this.maxObjects, signal: closing.signal },
      });
      if (this.run === run) store.replace(items.map(slim), scope.version);
    } catch (error) {
      if (this.run !== run) return;
      if (isDenied(error)) this.denied();
      else this.events.onNoPast(error, scope);
    }
  }

  private failed(error: unknown, failure: ReflectorFailure): void {
    if (isDenied(error)) this.denied();
    else if (isWatchError(error, 'OVERLOADED')) {
      this.stop();
      this.events.onTooMany(this.maxObjects);
    } else this.events.onFailure(error, failure);
  }

  private denied(): void {
    this.stop();
    this.events.onDenied();
  }
}

const isDenied = (error: unknown): boolean => refusalCode(error) === 401;

function selectionOf({ labelSelector, fieldSelector }: Scope): { labelSelector?: string; fieldSelector?: string } {
  return { ...(labelSelector && { labelSelector }), ...(fieldSelector && { fieldSelector }) };
}

/** A page needs little of the metadata, whose annotations can be as long as the object. */
function slim({ metadata, cells }: PageRow): PageRow {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, labels } = metadata;
  const kept = { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp, labels };
  return { metadata: kept, cells, atMs: Date.now() };
}
