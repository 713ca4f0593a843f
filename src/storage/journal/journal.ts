/**
 * The port that makes the writes of a `MemoryStorage` durable: a journal takes each of them, and says when it is safe. A write
 * that is not safe yet is not visible to anybody. `openMemoryStorage` has one in a file; others can be given as the option
 * `journal`.
 *
 *     write ---> append(record) ---> ... ---> the promise resolves ---> the write is visible, and answered
 *                `----- a group: all that came while the one before was on its way -----'
 */

/** One write. */
export interface JournalRecord {
  /** Each record has the next revision. Those of a snapshot have smaller ones, in any order. */
  readonly revision: number;
  /** An empty one: nothing is written, but revisions go on from this one, which may be much greater than the one before. */
  readonly key: string;
  /** The object's JSON in UTF-8, with its version; undefined: it was deleted. Do not write into it. */
  readonly json: Uint8Array | undefined;
  /** The object expires after this long from now, in milliseconds. */
  readonly ttlMs?: number | undefined;
}

/** The state at a revision. The JSON of a record is made each time that it is read: read it when it is written, and once. */
export interface JournalSnapshot {
  readonly revision: number;
  readonly records: readonly JournalRecord[];
}

/** Where a storage's writes go. */
export interface StorageJournal {
  /**
   * Returns what it held when it was opened: a state, and the writes after it, which are read once. Called once, before anything
   * else. To start over
   * with a compact state, it may call `snapshot` for the state at the newest revision that it has reported as safe, at any time
   * until a newer one is.
   */
  restore(snapshot: (revision: number) => JournalSnapshot): {
    readonly state: { readonly revision: number; readonly records: Iterable<JournalRecord> };
    readonly writes: Iterable<JournalRecord>;
  };
  /**
   * Appends a record. Resolves with the revision of the last record of its group when the whole group is safe; all records of a
   * group get the same promise. Groups become safe in order. After a rejection, all later ones reject. A write that is rejected may
   * have happened, unless the error is a `WatchError` with another code than TIMEOUT.
   */
  append(record: JournalRecord): Promise<number>;
  /** Makes everything appended safe, then releases all resources. */
  close(): Promise<void>;
}
