/**
 * A SQLite file, as `node:sqlite` opens it, and its content.
 *
 *     objects   key -> value, revision, deadline        the current state
 *     log       revision -> key, what it replaced       the past: each version is stored once
 *     gaps      the revisions that no life has issued   see life.ts
 *     state     the newest revision, and the oldest state that can still be read
 *
 * A process that finds that no other has the file open begins a new life of it, as the file may be a copy. It finds out by
 * changing the journal mode, which SQLite then allows. If two open it at the same time, both may begin one, which does no harm.
 */

import { closeSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { KubernetesObject } from '../../cache/object.ts';
import { isWatchError, tried, WatchError } from '../../watch/errors.ts';
import type { Change, ChangeBatch, Changes, ChangesOptions, RequestOptions } from '../backend.ts';
import { behind, toBytes, toText } from '../keys.ts';
import { newLife } from '../life.ts';
import { identityOf } from '../same-file.ts';
import { internalError, unavailable } from '../statuses.ts';
import { both, StoredEntry } from '../stored-entry.ts';

/** The values that SQLite accepts and returns. Revisions are below 2^53. */
export type Value = Uint8Array | number | null;
export type Row = Readonly<Record<string, Value>>;

/** The part of `node:sqlite` that is used. */
export interface Statement {
  get(...values: readonly Value[]): Row | undefined;
  all(...values: readonly Value[]): Row[];
  iterate(...values: readonly Value[]): Iterable<Row>;
  run(...values: readonly Value[]): unknown;
}
export interface Database {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}
type DatabaseClass = new (file: string) => Database;

const SCHEMA = `
  CREATE TABLE objects (key BLOB PRIMARY KEY, revision INTEGER NOT NULL, deadline_ms INTEGER, value BLOB NOT NULL);
  CREATE INDEX objects_deadline ON objects (deadline_ms) WHERE deadline_ms IS NOT NULL;
  CREATE TABLE log (
    seq INTEGER PRIMARY KEY, revision INTEGER NOT NULL UNIQUE, key BLOB NOT NULL, deleted INTEGER NOT NULL,
    at_ms INTEGER NOT NULL, total_bytes INTEGER NOT NULL, previous_revision INTEGER, previous BLOB
  );
  CREATE INDEX log_key ON log (key, revision);
  CREATE TABLE gaps (last INTEGER NOT NULL, first INTEGER NOT NULL);
  CREATE TABLE state (revision INTEGER NOT NULL, compacted INTEGER NOT NULL);
  PRAGMA user_version = 1;
`;

/** @throws {WatchError} INVALID_ARGUMENT if this runtime has no SQLite. */
export function sqliteOf(): DatabaseClass {
  const found = process.getBuiltinModule?.('node:sqlite') as { readonly DatabaseSync?: DatabaseClass } | undefined;
  if (found?.DatabaseSync) return found.DatabaseSync;
  throw new WatchError(
    'INVALID_ARGUMENT',
    `SqliteStorage: expected a runtime with node:sqlite, such as Node 22.13 or newer, got ${process.version}`,
  );
}

/** A path that stays the same when the program changes its directory, and that SQLite does not take for a URI. */
export const absolute = (file: string): string => resolve(file);

interface OpenOptions {
  readonly file: string;
  readonly synchronous: 'FULL' | 'NORMAL';
  readonly now: () => number;
}

/** An open file. `check` throws if its path does not name it any more: who opens the path later would not see what is written. */
export interface OpenFile {
  readonly database: Database;
  readonly check: () => void;
}

/** Opens a file. If it is new, only its owner can read it. Throws if another process is just opening it: see `isBusy`. */
export function openFile({ file, synchronous, now }: OpenOptions): OpenFile {
  const Sqlite = sqliteOf();
  create(file);
  const opened = fileNamed(file);
  const check = (): void => {
    if (fileNamed(file) !== opened) throw unavailable(`${file} was moved, deleted or replaced while it was open`);
  };
  const database = new Sqlite(file);
  try {
    database.exec(`PRAGMA busy_timeout = 0; PRAGMA synchronous = ${synchronous}`);
    const isNew = database.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n === 0;
    const version = database.prepare('PRAGMA user_version').get()?.user_version;
    if (!isNew && version !== 1) throw invalidFile(file, `a file of a SqliteStorage: its format has version ${version}`);
    if (leavesWal(database)) {
      database.exec('BEGIN IMMEDIATE');
      beginLife(database, now());
      database.exec('COMMIT');
    }
    const mode: unknown = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
    if (mode !== 'wal') throw invalidFile(file, `a file system for SQLite's WAL: the journal mode stays ${mode}`);
    return { database, check };
  } catch (error) {
    rollback(database);
    database.close();
    throw codeOf(error) === 26 ? invalidFile(file, 'a file of SQLite') : error;
  }
}

/** Never opens an existing file: closing it again would release all locks that this process has on it. */
function create(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function fileNamed(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && identityOf(found);
}

/**
 * Throws if there is no room for so many bytes beside the file: SQLite itself may have room left in its log, but for a smaller write.
 */
export function tryToWrite(file: string, bytes: number): void {
  const probe = `${file}-probe-${process.pid}`;
  const remove = (): void => rmSync(probe, { force: true });
  try {
    remove();
    writeFileSync(probe, new Uint8Array(bytes), { flag: 'wx', mode: 0o600, flush: true }); // follows no link
  } catch (error) {
    throw unavailable(`try to write: ${(error as Error).message}`);
  } finally {
    tried(remove);
  }
}

/** Ends a transaction, if one is open. Only since 22.16 does Node say whether SQLite has already ended it. */
export function rollback(database: Database): void {
  tried(() => database.exec('ROLLBACK')); // perhaps no transaction was open
}

/** Whether no other process has the file open: then it has left WAL mode now. */
function leavesWal(database: Database): boolean {
  try {
    return (database.prepare('PRAGMA journal_mode = DELETE').get()?.journal_mode as unknown) === 'delete';
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
}

function beginLife(database: Database, nowMs: number): void {
  if (database.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n === 0) {
    database.exec(SCHEMA);
    const first = newLife(0, nowMs);
    database.prepare('INSERT INTO state VALUES (?, ?)').run(first, first);
    return;
  }
  const last = database.prepare('SELECT revision FROM state').get()?.revision as number;
  const first = newLife(last, nowMs);
  database.prepare('INSERT INTO gaps VALUES (?, ?)').run(last, first);
  database.prepare('UPDATE state SET revision = ?').run(first);
  database.exec('DELETE FROM gaps WHERE first < (SELECT compacted FROM state)');
}

/** For the program that named the file: a server's clients learn of a failure, but not of a path. */
function invalidFile(file: string, expected: string): WatchError {
  const message = `file: expected ${expected}; got ${file}`;
  const { status, cause } = internalError(message);
  return new WatchError('INVALID_ARGUMENT', message, { status, cause });
}

/** Whether another process has the file locked: SQLITE_BUSY, or SQLITE_LOCKED. */
export function isBusy(error: unknown): boolean {
  const code = codeOf(error);
  return code === 5 || code === 6;
}

/** SQLITE_CORRUPT, or SQLITE_NOTADB. */
export function isDamaged(error: unknown): boolean {
  const code = codeOf(error);
  return code === 11 || code === 26;
}

/** SQLITE_IOERR. */
export function isDiskError(error: unknown): boolean {
  return codeOf(error) === 10;
}

/** The error of a request. SQLite's message about its file is for the operator. */
export function toError(what: string, error: unknown): unknown {
  const code = codeOf(error);
  if (isWatchError(error) || code === undefined) return error;
  const text = `${what}: ${(error as Error).message}`;
  // READONLY, IOERR, FULL, CANTOPEN: no write succeeds until somebody fixes it.
  return code === 8 || code === 10 || code === 13 || code === 14 ? unavailable(text) : internalError(text);
}

function codeOf(error: unknown): number | undefined {
  const { errcode } = (error ?? {}) as { errcode?: unknown };
  return typeof errcode === 'number' ? errcode & 0xff : undefined;
}

/** The most rows that are read at a time. */
const MAX_ROWS = 500;
export const MAX_READ_BYTES = 8_388_608;

const CHANGES = `
  SELECT change.revision, change.key, deleted, previous_revision, iif(?, previous, NULL) AS previous,
    coalesce(objects.value, (SELECT previous FROM log WHERE key = change.key AND revision > change.revision ORDER BY revision LIMIT 1))
      AS value
  FROM log AS change LEFT JOIN objects ON objects.key = change.key AND objects.revision = change.revision
  WHERE change.revision > ? AND change.key >= ? AND change.key < ? ORDER BY change.revision LIMIT ${MAX_ROWS}`;

/** The row that changes with each write. */
export interface State {
  readonly revision: number;
  readonly compacted: number;
}

/** The part of the backend that changes use. */
export interface SqliteReads {
  snapshot<R>(context: RequestOptions & { readonly what: string }, read: (state: State) => R): Promise<R>;
  sql(text: string): Statement;
  checked(version: string, state: State): number;
  follow(changes: object): void;
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
    this.#follow();
    await this.#backend.snapshot({ what: this.#what }, (state) => this.#backend.checked(this.#at, state));
  }

  async next(): Promise<ChangeBatch<T> | undefined> {
    this.#follow();
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

  /** Nothing arrives by itself: `next` reads it. */
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

  #follow(): void {
    if (!this.#isOver) this.#backend.follow(this);
  }

  get #what(): string {
    return `watch ${this.#options.prefix}`;
  }

  async #read(): Promise<ChangeBatch<T> | undefined> {
    const { prefix, previous } = this.#options;
    this.#isStale = false;
    const isAsked = this.#owesProgress;
    const { changes, isAll, revision } = await this.#backend.snapshot({ what: this.#what }, (state) => {
      const values = [previous ? 1 : 0, this.#backend.checked(this.#at, state), startOf(prefix), endOf(prefix)];
      const found: SqliteChange<T>[] = [];
      let bytes = 0;
      for (const row of this.#backend.sql(CHANGES).iterate(...values)) {
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

/** A row of the current or a past state. */
export class SqliteEntry<T extends KubernetesObject> extends StoredEntry<T> {
  readonly #row: Row;

  constructor(row: Row) {
    super();
    this.#row = row;
  }

  get key(): string {
    return toText(this.#row.key as Uint8Array);
  }

  get revision(): string {
    return `${this.#row.revision}`;
  }

  protected get value(): Uint8Array {
    return this.#row.value as Uint8Array;
  }
}

/** A row of the log, decoded when it is needed. */
class SqliteChange<T extends KubernetesObject> implements Change<T> {
  readonly type: Change<T>['type'];
  readonly #now: SqliteEntry<T>;
  readonly #before: SqliteEntry<T> | undefined;

  constructor(row: Row) {
    const { key, previous, previous_revision: before } = row;
    this.type = row.deleted === 1 ? 'DELETED' : before === null ? 'ADDED' : 'MODIFIED';
    this.#now = new SqliteEntry(row);
    if (previous !== null) this.#before = new SqliteEntry({ key, value: previous, revision: before } as Row);
  }

  get key(): string {
    return this.#now.key;
  }

  get revision(): string {
    return this.#now.revision;
  }

  get object(): T | undefined {
    return this.type === 'DELETED' ? undefined : this.#now.object;
  }

  get previous(): T | undefined {
    return this.#before?.object;
  }

  load(signal?: AbortSignal): Promise<void> | undefined {
    const now = this.type === 'DELETED' ? undefined : this.#now.load(signal);
    const before = this.#before?.load(signal);
    return both(now, before);
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
