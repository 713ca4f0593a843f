/**
 * What is read of a file of SQLite: its rows as entries and changes, decoded when they are needed, and the log from a cursor on.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import type { Change, ChangeBatch, Changes, ChangesOptions, Entry, RequestOptions } from '../backend.ts';
import { behind, toBytes, toText } from '../key-bytes.ts';
import { toObject } from '../stored.ts';
import type { Row, Statement } from './sqlite-file.ts';

/** The most that is read at once. */
const MAX_ROWS = 500;
export const MAX_READ_BYTES = 8_388_608;

const CHANGES = `
  SELECT change.revision, change.key, deleted, previous_revision, iif(?4, previous, NULL) AS previous,
    coalesce(objects.value, (SELECT previous FROM log WHERE key = change.key AND revision > change.revision ORDER BY revision LIMIT 1))
      AS value
  FROM log AS change LEFT JOIN objects ON objects.key = change.key AND objects.revision = change.revision
  WHERE change.revision > ?1 AND change.key >= ?2 AND change.key < ?3 ORDER BY change.revision LIMIT ${MAX_ROWS}`;

/** What changes with each write. */
export interface State {
  readonly revision: number;
  readonly compacted: number;
}

/** What changes use of their backend. */
export interface SqliteReads {
  snapshot<R>(context: RequestOptions & { readonly what: string }, read: (state: State) => R): Promise<R>;
  sql(text: string): Statement;
  checked(version: string, state: State): number;
  left(changes: object): void;
}

/** The changes of a file, from a cursor on. */
export class SqliteChanges<T extends KubernetesObject> implements Changes<T> {
  readonly #backend: SqliteReads;
  readonly #options: ChangesOptions;
  #at: string;
  #isOver: boolean = false;
  #owesProgress: boolean = false;
  #isStale: boolean = true;
  #wake: (() => void) | undefined;

  constructor(backend: SqliteReads, after: string, options: ChangesOptions) {
    this.#backend = backend;
    this.#at = after;
    this.#options = options;
  }

  async open(): Promise<void> {
    await this.#backend.snapshot({ what: this.#what }, (state) => this.#backend.checked(this.#at, state));
  }

  async next(): Promise<ChangeBatch<T> | undefined> {
    while (!this.#isOver) {
      if (this.#isStale || this.#owesProgress) {
        const batch = await this.#read();
        if (this.#isOver) break;
        if (batch) return batch;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        this.#wake = undefined;
      }
    }
    return undefined;
  }

  /** Nothing comes by itself: `next` reads it. */
  poll(): undefined {}

  /** There may be something new. */
  wake(): void {
    this.#isStale = true;
    this.#wake?.();
  }

  requestProgress(): void {
    this.#owesProgress = true;
    this.#wake?.();
  }

  close(): void {
    this.#isOver = true;
    this.#wake?.();
    this.#backend.left(this);
  }

  get #what(): string {
    return `watch ${this.#options.prefix}`;
  }

  async #read(): Promise<ChangeBatch<T> | undefined> {
    const { prefix, previous } = this.#options;
    this.#isStale = false;
    const isAsked = this.#owesProgress;
    const values = [startOf(prefix), endOf(prefix), previous ? 1 : 0];
    const { changes, isAll, revision } = await this.#backend.snapshot({ what: this.#what }, (state) => {
      const found: SqliteChange<T>[] = [];
      let bytes = 0;
      for (const row of this.#backend.sql(CHANGES).iterate(this.#backend.checked(this.#at, state), ...values)) {
        found.push(new SqliteChange<T>(row));
        for (const value of [row.value, row.previous]) bytes += (value as Uint8Array | null)?.byteLength ?? 0;
        if (bytes >= MAX_READ_BYTES) break;
      }
      const whole = found.length < MAX_ROWS && bytes < MAX_READ_BYTES;
      return { changes: found, isAll: whole, revision: `${state.revision}` };
    });
    this.#at = isAll ? revision : (changes.at(-1)?.revision ?? revision);
    if (!isAll) this.#isStale = true;
    if (!isAll || !isAsked) return changes.length > 0 ? { changes } : undefined;
    this.#owesProgress = false;
    return { changes, progress: revision };
  }
}

/** A row of the state, decoded when it is needed. */
export class SqliteEntry<T extends KubernetesObject> implements Entry<T> {
  readonly #row: Row;

  constructor(row: Row) {
    this.#row = row;
  }

  get key(): string {
    return toText(this.#row.key as Uint8Array);
  }

  get object(): T {
    const { value, revision } = this.#row;
    return toObject<T>(value as Uint8Array, { key: this.key, revision: `${revision}` });
  }
}

/** A row of the log, decoded when it is needed. */
class SqliteChange<T extends KubernetesObject> implements Change<T> {
  readonly #row: Row;

  constructor(row: Row) {
    this.#row = row;
  }

  get type(): Change<T>['type'] {
    return this.#row.deleted === 1 ? 'DELETED' : this.#row.previous_revision === null ? 'ADDED' : 'MODIFIED';
  }

  get key(): string {
    return toText(this.#row.key as Uint8Array);
  }

  get revision(): string {
    return `${this.#row.revision}`;
  }

  get object(): T | undefined {
    return this.type === 'DELETED' ? undefined : toObject<T>(this.#row.value as Uint8Array, this);
  }

  get previous(): T | undefined {
    const { previous, previous_revision: revision } = this.#row;
    return previous === null ? undefined : toObject<T>(previous as Uint8Array, { key: this.key, revision: `${revision}` });
  }
}

/** The first key that begins with a prefix. No bytes would be NULL. */
export function startOf(prefix: string): Uint8Array {
  return prefix === '' ? FIRST : toBytes(prefix);
}

/** The first key after all that begin with a prefix. */
export function endOf(prefix: string): Uint8Array {
  return prefix === '' ? LAST : behind(toBytes(prefix));
}

const FIRST = Uint8Array.of(0);
/** No key begins with this byte. */
const LAST = Uint8Array.of(0xff);
