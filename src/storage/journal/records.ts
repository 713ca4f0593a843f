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

/**
 * Records as lines: one with the key, and one with the object's JSON as it is, so that an object's bytes are made once and read
 * back unchanged. JSON has no line breaks.
 *
 *     {"r":8,"k":"orders/a"}              {"r":9,"k":"orders/a","d":true}        a deletion has no second line
 *     {"metadata":{"name":"a", ...
 *
 *     {"r":5000,"k":"","d":true}          another life begins: nothing was written, and nobody was given what lies between
 *
 * A file begins with the line of its snapshot, `{"journal":1,"r":7,"items":2}`, and so many records; what follows came after it.
 */

/** The first line of a file. */
export interface Title {
  readonly revision: number;
  /** The number of records of the snapshot. */
  readonly items: number;
}

const FORMAT = 1;
const NEWLINE = 10;
const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

export function titleLine({ revision, items }: Title): Uint8Array {
  return encoder.encode(`${JSON.stringify({ journal: FORMAT, r: revision, items })}\n`);
}

/** The lines of a record. `now`: the time of the day in ms, from which its time to live becomes a deadline. */
export function linesOf({ revision, key, json, ttlMs }: JournalRecord, now: number): Uint8Array[] {
  const line = {
    r: revision,
    k: key,
    ...(json === undefined && { d: true }),
    ...(ttlMs !== undefined && { x: Math.ceil(now + ttlMs) }),
  };
  const own = encoder.encode(`${JSON.stringify(line)}\n`);
  return json === undefined ? [own] : [own, json, Uint8Array.of(NEWLINE)];
}

/** A body's lines, one by one. */
export class Lines {
  readonly #body: Uint8Array;
  #at: number = 0;

  constructor(body: Uint8Array) {
    this.#body = body;
  }

  /** Where the next line begins. */
  get at(): number {
    return this.#at;
  }

  get isEmpty(): boolean {
    return this.#at >= this.#body.byteLength;
  }

  /** @throws {Error} if this is not the first line of a journal. */
  title(): Title {
    const { journal, r, items } = this.#parsed();
    if (journal !== FORMAT) throw new Error(`not a journal of format ${FORMAT}`);
    return { revision: wholeNumber(r), items: wholeNumber(items) };
  }

  /**
   * The JSON is a part of the body: copy what is to be kept.
   *
   * @throws {Error} for lines that are not a record.
   */
  record(now: number): JournalRecord {
    const { r, k, d, x } = this.#parsed();
    if (typeof k !== 'string') throw new Error('a record has no key');
    const json = d === true ? undefined : this.#line();
    return { revision: wholeNumber(r), key: k, json, ...(x !== undefined && { ttlMs: Math.max(0, wholeNumber(x) - now) }) };
  }

  #parsed(): Record<string, unknown> {
    return Object(JSON.parse(decoder.decode(this.#line())));
  }

  #line(): Uint8Array {
    const end = this.#body.indexOf(NEWLINE, this.#at);
    if (end < 0) throw new Error('a line has no end');
    const line = this.#body.subarray(this.#at, end);
    this.#at = end + 1;
    return line;
  }
}

function wholeNumber(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new Error(`${String(value)} is not a whole number`);
  return value as number;
}
