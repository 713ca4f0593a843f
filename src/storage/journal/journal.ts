/**
 * The port of what makes the writes of a `MemoryStorage` last: a journal takes each of them, and says when it is safe. What is not
 * safe yet is not shown to anybody. `openMemoryStorage` has one in a file; others can be given as the option `journal`.
 *
 *     write ---> append(record) ---> ... ---> the promise resolves ---> the write is visible, and answered
 *                `----- a group: all that came while the one before was on its way -----'
 */

/** One write. */
export interface JournalRecord {
  /** Each record has the next revision. Those of a snapshot have smaller ones, in any order. */
  readonly revision: number;
  readonly key: string;
  /** The object's JSON in UTF-8, with its version; undefined: it was deleted. Do not write into it. */
  readonly json: Uint8Array | undefined;
  /** It will be deleted by itself after so long from now. */
  readonly ttlMs?: number | undefined;
}

/** What there is at a revision. */
export interface JournalSnapshot {
  readonly revision: number;
  readonly records: readonly JournalRecord[];
}

/** Where a storage's writes go. */
export interface StorageJournal {
  /**
   * What it held when it was opened: a state, and the writes after it. Called once, before anything else. `snapshot` is where it can
   * get the state at a revision that it has called safe, to begin anew with that: at any time while no newer one is.
   */
  restore(snapshot: (revision: number) => JournalSnapshot): {
    readonly state: JournalSnapshot;
    readonly writes: readonly JournalRecord[];
  };
  /**
   * Takes a record. Resolves with the revision of the last record of its group when all of the group is safe: the same promise for
   * all of them. Groups become safe in order. After a rejection all later ones reject.
   */
  append(record: JournalRecord): Promise<number>;
  /** Makes safe what was appended, then lets go of everything. */
  close(): Promise<void>;
}
