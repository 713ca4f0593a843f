/**
 * SQLite as a backend: a file that several processes on one machine may have open.
 *
 *     txn --> queue --> one transaction for all that wait --> fsync --> answers, and wakes followers
 *     get, range ----> a snapshot
 *     changesAfter --> the log, from a cursor on <---- woken by own writes immediately, by others' within `pollMs`
 *
 * SQLite runs in this thread: each write takes as long as the disk does. It never blocks on a lock, though: an operation that
 * finds the file locked is retried after a while, until `busyTimeoutMs` have passed.
 *
 * Invariants
 * - A revision is issued within the transaction that stores it, so no two processes issue the same one.
 * - The log has every change after `compacted`. A version is in `objects`, or in the log's row of the change that replaced it.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { Backoff } from '../../watch/backoff.ts';
import { type Clock, upkeepClock } from '../../watch/clock.ts';
import { getOrMake, refusalCode, WatchError } from '../../watch/errors.ts';
import { nextTurn } from '../../watch/turn.ts';
import type {
  Backend,
  Changes,
  ChangesOptions,
  Entry,
  GetResult,
  RangeRequest,
  RangeResult,
  ReadOptions,
  RequestOptions,
  Txn,
  TxnResult,
} from '../backend.ts';
import { after, toBytes } from '../keys.ts';
import { Pending } from '../life.ts';
import { expired, foreign, tooLargeObject, tooManyRequests } from '../statuses.ts';
import {
  type Database,
  endOf,
  isBusy,
  isDamaged,
  isDiskError,
  MAX_READ_BYTES,
  type OpenFile,
  openFile,
  type Row,
  rollback,
  SqliteChanges,
  SqliteEntry,
  type SqliteReads,
  type State,
  type Statement,
  startOf,
  toError,
  tryToWrite,
  type Value,
} from './sqlite-file.ts';

/** The options of a `SqliteStorage` with their defaults. */
export interface SqliteSettings {
  readonly file: string;
  readonly synchronous: 'FULL' | 'NORMAL';
  readonly pollMs: number;
  readonly busyTimeoutMs: number;
  readonly maxObjectBytes: number;
  readonly history: { readonly maxItems: number; readonly maxBytes: number; readonly maxAgeMs: number };
  readonly clock: Clock;
  readonly now: () => number;
  readonly random: () => number;
}

/** The most writes of one transaction, the size at which it is closed, and the most bytes that may wait. */
const MAX_WRITES = 500;
const ENOUGH_WRITE_BYTES = 8_388_608;
const MAX_QUEUED_BYTES = 67_108_864;
/** The overhead of a change, or a waiting write, besides its key and value. */
const ROW_BYTES = 100;
/** How often it looks for objects that a process which has died should have expired. */
const EXPIRY_MS = 10_000;
/** The first delay before it retries to expire something after a failed write. */
const EXPIRY_RETRY_MS = 500;

/** The state at a revision: the current object, or the one that the key's first later change replaced. */
const NOW = 'SELECT key, value, revision FROM objects WHERE key >= ? AND key < ? ORDER BY key LIMIT ?';
const PAST = `
  SELECT * FROM (
    SELECT key, value, revision FROM objects WHERE key >= ? AND key < ? AND revision <= ? ORDER BY key LIMIT ?)
  UNION ALL SELECT * FROM (
    SELECT key, previous, previous_revision FROM log AS change
    WHERE key >= ? AND key < ? AND revision > ? AND previous IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM log WHERE key = change.key AND revision > ? AND revision < change.revision)
    ORDER BY key LIMIT ?)
  ORDER BY key LIMIT ?`;
const COUNT = 'SELECT count(*) AS n FROM objects WHERE key >= ? AND key < ?';

interface Queued {
  readonly write: Txn<KubernetesObject>;
  readonly bytes: number;
  readonly resolve: (result: TxnResult<KubernetesObject>) => void;
  readonly reject: (error: unknown) => void;
}

export class SqliteBackend implements Backend, SqliteReads {
  readonly settings: SqliteSettings;
  readonly pending: Pending = new Pending();
  readonly #followers: Set<SqliteChanges<never>> = new Set();
  readonly #statements: Map<string, Statement> = new Map();
  #open: OpenFile | undefined;
  #queue: Queued[] = [];
  #queuedBytes: number = 0;
  #isFlushing: boolean = false;
  /** Why the last write has failed, and its size. */
  #failure: { readonly error: unknown; readonly bytes: number } | undefined;
  /** What was found when the file was damaged, which it stays. */
  #damage: { readonly error: unknown } | undefined;
  /** The file may have objects that expired before it was opened. */
  #isStale: boolean = false;
  #stopPolling: (() => void) | undefined;
  #dataVersion: Value | undefined;
  #stopExpiry: (() => void) | undefined;
  readonly #expiryBackoff: Backoff;

  constructor(settings: SqliteSettings) {
    this.settings = settings;
    const { random } = settings;
    this.#expiryBackoff = new Backoff({ minMs: EXPIRY_RETRY_MS, maxMs: EXPIRY_MS, factor: 2, random, apart: true });
  }

  get<T extends KubernetesObject>(key: string, { what = `get ${key}`, signal }: ReadOptions = {}): Promise<GetResult<T>> {
    return this.snapshot({ what, signal }, ({ revision }) => ({ entry: this.#entry<T>(toBytes(key)), revision: `${revision}` }));
  }

  range<T extends KubernetesObject>(request: RangeRequest): Promise<RangeResult<T>> {
    const { prefix, from = prefix, limit, keysOnly, what = `list ${prefix}`, signal } = request;
    const first = request.after ? after(toBytes(request.after.key)) : startOf(from);
    return this.snapshot({ what, signal }, (state) => {
      const at = request.revision === undefined ? state.revision : this.checked(request.revision, state);
      const isNow = at === state.revision;
      const all = isNow ? NOW : PAST;
      const states = keysOnly ? `SELECT key, zeroblob(0) AS value, revision FROM (${all}) ORDER BY key` : all;
      const wanted = Math.min(limit, Number.MAX_SAFE_INTEGER);
      const entries: Entry<T>[] = [];
      let [last, bytes, isAll] = [first, 0, true];
      // Not numbered: Node 22.13 does not bind numbered parameters in order.
      const [end, most] = [endOf(prefix), wanted + 1];
      const values = isNow ? [first, end, most] : [first, end, at, most, first, end, at, at, most, most];
      // One more than wanted shows whether there is more; for a past state, nothing else is known.
      for (const row of this.sql(states).iterate(...values)) {
        isAll = entries.length < wanted && bytes < MAX_READ_BYTES;
        if (!isAll) break;
        const { key, value } = row as { key: Uint8Array; value: Uint8Array };
        entries.push(new SqliteEntry<T>(row));
        last = key;
        bytes += value.byteLength;
      }
      if (isAll) return { entries, revision: `${at}`, left: 0, bytes };
      if (!isNow) return { entries, revision: `${at}`, left: 1, isLeftCounted: false, bytes };
      const left = this.sql(COUNT).get(after(last), endOf(prefix))?.n as number;
      return { entries, revision: `${at}`, left, bytes };
    });
  }

  txn<T extends KubernetesObject>(write: Txn<T>): Promise<TxnResult<T>> {
    const valueBytes = write.put?.value.byteLength ?? 0;
    const bytes = ROW_BYTES + write.key.length + valueBytes;
    const { maxObjectBytes } = this.settings;
    if (valueBytes > maxObjectBytes) return Promise.reject(tooLargeObject(valueBytes, maxObjectBytes));
    if (this.#queuedBytes + bytes > MAX_QUEUED_BYTES) {
      return Promise.reject(tooManyRequests(`more than ${MAX_QUEUED_BYTES} bytes wait to be written`, 1));
    }
    const done = new Promise<TxnResult<KubernetesObject>>((resolve, reject) => {
      this.pending.check(write.signal);
      this.#queuedBytes += bytes;
      this.#queue.push({ write: write as Txn<KubernetesObject>, bytes, resolve, reject });
      if (!this.#isFlushing) void this.#flush();
    });
    return this.pending.until(done, write.signal) as Promise<TxnResult<T>>;
  }

  changesAfter<T extends KubernetesObject>(revision: string, options: ChangesOptions): Changes<T> {
    return new SqliteChanges<T>(this, revision, options);
  }

  /** From now on, these changes are woken. */
  follow(changes: object): void {
    this.#followers.add(changes as SqliteChanges<never>);
    this.#stopPolling ??= this.#poll();
  }

  /** Nobody reads these changes any more. */
  left(changes: object): void {
    this.#followers.delete(changes as SqliteChanges<never>);
    if (this.#followers.size > 0) return;
    this.#stopPolling?.();
    this.#stopPolling = undefined;
  }

  revision({ what = 'read the revision', signal }: RequestOptions = {}): Promise<string> {
    return this.snapshot({ what, signal }, ({ revision }) => `${revision}`);
  }

  hasGiven(version: string): Promise<boolean> {
    return this.snapshot({ what: 'read the revision' }, (state) => !this.#isForeign(Number(version), state));
  }

  pastRevision(changes: number): Promise<string> {
    const past = 'SELECT revision FROM log WHERE seq = (SELECT max(seq) FROM log) - ?';
    return this.snapshot({ what: 'read the log' }, (state) => `${this.sql(past).get(changes)?.revision ?? state.compacted}`);
  }

  /** Whether the file can be read. After a failed write, tries whether another one of its size would fail, too. */
  async checkHealth(): Promise<void> {
    if (this.#damage) throw this.#damage.error;
    const failed = this.#failure;
    await this.#run({ what: 'try to write' }, () => {
      if (!failed) return this.sql('SELECT revision FROM state').get();
      tryToWrite(this.settings.file, failed.bytes);
      return this.#transaction(() => this.sql('UPDATE state SET revision = revision').run());
    });
    if (this.#failure === failed) this.#failure = undefined;
  }

  async close(): Promise<void> {
    this.pending.close();
    this.#queue = [];
    for (const each of this.#followers) each.close();
    this.#stopExpiry?.();
    this.#statements.clear();
    this.#open?.database.close();
    this.#open = undefined;
  }

  /** Reads in one state of the file. */
  snapshot<R>(context: RequestOptions & { readonly what: string }, read: (state: State) => R): Promise<R> {
    return this.#run(context, (database) => {
      database.exec('BEGIN');
      try {
        return read(this.sql('SELECT revision, compacted FROM state').get() as unknown as State);
      } finally {
        rollback(database);
      }
    });
  }

  sql(text: string): Statement {
    return getOrMake(this.#statements, text, () => (this.#open as OpenFile).database.prepare(text));
  }

  /** @throws {WatchError} 410 for a revision whose state is gone, or that was never issued. */
  checked(version: string, state: State): number {
    const revision = Number(version);
    if (this.#isForeign(revision, state)) throw foreign(version, `${state.revision}`);
    if (revision < state.compacted) throw expired(version, `${state.compacted}`);
    return revision;
  }

  #isForeign(revision: number, state: State): boolean {
    return (
      revision > state.revision ||
      this.sql('SELECT 1 FROM gaps WHERE last < ? AND ? < first').get(revision, revision) !== undefined
    );
  }

  #entry<T extends KubernetesObject>(key: Uint8Array): Entry<T> | undefined {
    const row = this.sql('SELECT key, value, revision FROM objects WHERE key = ?').get(key);
    return row && new SqliteEntry<T>(row);
  }

  /** Does something with the file, and retries if another process has locked it. */
  async #run<R>({ what, signal }: RequestOptions & { readonly what: string }, work: (database: Database) => R): Promise<R> {
    const { clock, random, busyTimeoutMs } = this.settings;
    const deadlineMs = clock.now() + busyTimeoutMs;
    const backoff = new Backoff({ minMs: 1, maxMs: 100, factor: 2, random });
    for (;;) {
      this.pending.check(signal);
      try {
        if (!this.#open) {
          this.#open = openFile(this.settings);
          this.#isStale = true;
          this.#schedule();
        }
        this.#open.check();
        this.#isStale &&= this.#isDue();
        if (!this.#isStale) return work(this.#open.database);
        this.#transaction(() => new Transaction(this).write([]));
        await new Promise<void>((resolve) => nextTurn(resolve)); // there may be any number of them
        continue;
      } catch (error) {
        if (!isBusy(error)) {
          const failure = toError(what, error);
          if (isDamaged(error)) this.#damage = { error: failure };
          throw failure;
        }
        const late = `${what}: other processes have had the file locked for ${busyTimeoutMs} ms`;
        if (clock.now() >= deadlineMs) throw tooManyRequests(late, 1);
      }
      await this.pending.pause(backoff.failed({}), { clock, signal });
    }
  }

  #transaction<R>(work: () => R): R {
    const open = this.#open as OpenFile;
    const { database } = open;
    database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      commit(open);
      return result;
    } catch (error) {
      rollback(database);
      throw error;
    }
  }

  /** Writes what waits, and deletes what has expired, until nothing is left to write. */
  async #flush(): Promise<void> {
    this.#isFlushing = true;
    let restMs = 0;
    do {
      // Everything that is requested in this turn goes into the same transaction.
      await Promise.resolve();
      // Taken before the file is opened: if that fails, these writes are rejected.
      let batch = this.#batch([]);
      try {
        const results = await this.#run({ what: 'write' }, () => {
          batch = this.#batch(batch);
          return this.#transaction(() => new Transaction(this).write(batch.map(({ write }) => write)));
        });
        this.#failure = undefined;
        this.#expiryBackoff.healthy();
        restMs = 0;
        for (const [at, { write, resolve }] of batch.entries()) resolve(this.#resultOf(write, results[at] as Written));
        for (const each of this.#followers) each.wake();
      } catch (error) {
        restMs = this.#expiryBackoff.failed({});
        // A lock of another process is not a failure.
        if (refusalCode(error) !== 429) this.#failure = { error, bytes: batch.reduce((sum, each) => sum + each.bytes, 0) };
        for (const { reject } of batch) reject(error);
      }
    } while (this.#queue.length > 0);
    this.#isFlushing = false;
    if (this.#open) this.#schedule(restMs);
  }

  /** What the next transaction writes: these, except aborted ones, and those that have come since. */
  #batch(before: readonly Queued[]): Queued[] {
    const batch = before.filter(({ write }) => !write.signal?.aborted);
    let size = batch.reduce((sum, { bytes }) => sum + bytes, 0);
    let taken = 0;
    for (const next of this.#queue) {
      if (batch.length >= MAX_WRITES || size >= ENOUGH_WRITE_BYTES) break;
      taken++;
      this.#queuedBytes -= next.bytes;
      if (next.write.signal?.aborted) continue;
      size += next.bytes;
      batch.push(next);
    }
    this.#queue.splice(0, taken);
    return batch;
  }

  #resultOf({ put }: Txn<KubernetesObject>, { revision, current }: Written): TxnResult<KubernetesObject> {
    if (revision === undefined) return { succeeded: false, current: current && new SqliteEntry(current) };
    return { succeeded: true, revision: `${revision}`, object: put?.at(`${revision}`) };
  }

  /** Looks for others' writes, as long as somebody follows. */
  #poll(): () => void {
    const { clock, pollMs } = this.settings;
    let cancel: () => void;
    const again = (): void => {
      cancel = clock.schedule(pollMs, () => {
        again();
        this.#look();
      });
    };
    again();
    return () => cancel();
  }

  #look(): void {
    if (!this.#open) return;
    try {
      this.#open.check();
      const version = this.sql('PRAGMA data_version').get()?.data_version;
      if (version === this.#dataVersion) return;
      this.#dataVersion = version;
    } catch {
      // Readers will get the error.
    }
    for (const each of this.#followers) each.wake();
  }

  /** Waits until the next object expires, and at least so long. */
  #schedule(restMs: number = 0): void {
    const { clock, now } = this.settings;
    this.#stopExpiry?.();
    let waitMs = EXPIRY_MS;
    try {
      const next = this.sql('SELECT min(deadline_ms) AS at FROM objects WHERE deadline_ms IS NOT NULL').get()?.at;
      if (typeof next === 'number') waitMs = Math.min(Math.max(next - now(), restMs), EXPIRY_MS);
    } catch {
      // It looks again later.
    }
    this.#stopExpiry = upkeepClock(clock).schedule(waitMs, () => this.#expire());
  }

  #expire(): void {
    if (!this.#open || this.#isFlushing) return;
    let isDue = false;
    try {
      isDue = this.#isDue();
    } catch {
      // It looks again later.
    }
    if (isDue) void this.#flush();
    else this.#schedule();
  }

  #isDue(): boolean {
    return this.sql('SELECT 1 FROM objects WHERE deadline_ms <= ? LIMIT 1').get(this.settings.now()) !== undefined;
  }
}

/** The result of a write: its revision, or the current object that prevented it. */
interface Written {
  readonly revision?: number;
  readonly current?: Row | undefined;
}

/** What happens between BEGIN and COMMIT. */
class Transaction {
  readonly #backend: SqliteBackend;
  readonly #nowMs: number;
  readonly #first: number;
  #revision: number;
  #totalBytes: number;

  constructor(backend: SqliteBackend) {
    this.#backend = backend;
    this.#nowMs = Math.floor(backend.settings.now());
    this.#revision = this.#first = backend.sql('SELECT revision FROM state').get()?.revision as number;
    this.#totalBytes = (backend.sql('SELECT total_bytes AS n FROM log ORDER BY seq DESC LIMIT 1').get()?.n ?? 0) as number;
  }

  write(writes: readonly Txn<KubernetesObject>[]): Written[] {
    const due = this.#backend.sql(`SELECT key, value, revision FROM objects WHERE deadline_ms <= ? LIMIT ${MAX_WRITES}`);
    for (const row of due.all(this.#nowMs)) this.#apply(row.key as Uint8Array, row, undefined);
    const results = writes.map((write) => this.#one(write));
    if (this.#revision > this.#first) {
      this.#backend.sql('UPDATE state SET revision = ?').run(this.#revision);
      this.#compact();
    }
    return results;
  }

  #one({ key, expected, put, ttlSeconds = 0 }: Txn<KubernetesObject>): Written {
    const bytes = toBytes(key);
    const current = this.#backend.sql('SELECT key, value, revision FROM objects WHERE key = ?').get(bytes);
    if (`${current?.revision ?? 0}` !== expected) return { current };
    if (!current && !put) return { revision: this.#revision };
    const deadlineMs = ttlSeconds > 0 ? this.#nowMs + ttlSeconds * 1_000 : null;
    return { revision: this.#apply(bytes, current, put && { value: put.value, deadlineMs }) };
  }

  #apply(key: Uint8Array, current: Row | undefined, put: { value: Uint8Array; deadlineMs: number | null } | undefined): number {
    const backend = this.#backend;
    const revision = ++this.#revision;
    this.#totalBytes += ROW_BYTES + key.byteLength + ((current?.value as Uint8Array | undefined)?.byteLength ?? 0);
    const [previous, previousRevision] = [current?.value ?? null, current?.revision ?? null];
    const change = [revision, key, put ? 0 : 1, this.#nowMs, this.#totalBytes, previousRevision, previous];
    backend.sql('INSERT INTO log VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)').run(...change);
    const set = 'INSERT OR REPLACE INTO objects (key, revision, deadline_ms, value) VALUES (?, ?, ?, ?)';
    if (put) backend.sql(set).run(key, revision, put.deadlineMs, put.value);
    else backend.sql('DELETE FROM objects WHERE key = ?').run(key);
    return revision;
  }

  /** Drops the oldest changes that are too many, too large or too old: a few more than were added. */
  #compact(): void {
    const backend = this.#backend;
    const { maxItems, maxBytes, maxAgeMs } = backend.settings.history;
    const last = backend.sql('SELECT max(seq) AS n FROM log').get()?.n as number;
    const isOld = ({ seq, start_bytes: startBytes, at_ms: atMs }: Row): boolean =>
      (seq as number) <= last - maxItems ||
      (startBytes as number) < this.#totalBytes - maxBytes ||
      (atMs as number) < this.#nowMs - maxAgeMs;
    let dropped: Row | undefined;
    const start = `total_bytes - ${ROW_BYTES} - length(key) - coalesce(length(previous), 0) AS start_bytes`;
    const rows = backend.sql(`SELECT seq, revision, at_ms, ${start} FROM log ORDER BY seq LIMIT ?`);
    for (const row of rows.iterate(2 * (this.#revision - this.#first) + 10)) {
      if (!isOld(row)) break;
      dropped = row;
    }
    if (!dropped) return;
    backend.sql('DELETE FROM log WHERE seq <= ?').run(dropped.seq as number);
    backend.sql('UPDATE state SET compacted = ?').run(dropped.revision as number);
  }
}

/** If the disk fails at that moment, or the file has been moved, the outcome is unknown. */
function commit({ database, check }: OpenFile): void {
  let isCommitted = false;
  try {
    database.exec('COMMIT');
    isCommitted = true;
    check();
  } catch (cause) {
    if (!isCommitted && !isDiskError(cause)) throw cause;
    throw new WatchError('TIMEOUT', `write: ${(cause as Error).message}; it may have happened anyway`, { cause });
  }
}
