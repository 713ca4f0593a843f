import type { List, ListOptions } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { SelectionPredicate } from '../../selectors/index.ts';
import { callable, invalid, WatchError, wholeNumber } from '../../watch/errors.ts';
import { checkOptions } from '../../watch/options.ts';
import { inPieces, type Pace, paceOf, type Soon, through } from '../../watch/pace.ts';
import { isPromise } from '../../watch/promises.ts';
import type { Watch } from '../../watch/watch.ts';
import { continueAfter, encodeContinue } from '../continue.ts';
import { checkKey, checkPrefix } from '../keys.ts';
import { CREATE_NAMES, DELETE_NAMES, KEYS_NAMES, LIST_NAMES, UPDATE_NAMES, WATCH_NAMES } from '../option-names.ts';
import { unmetPrecondition } from '../preconditions.ts';
import { parseVersion, planList, planWatch, predicateOf } from '../selection.ts';
import { alreadyExists, badRequest, expired, expiredContinue, foreign, notFound } from '../statuses.ts';
import type {
  CreateOptions,
  DeleteOptions,
  FieldFunctions,
  GetOptions,
  KeysOptions,
  ScopeOptions,
  Storage,
  StorageEvent,
  StorageWatchOptions,
  UpdateOptions,
} from '../storage.ts';
import type { Change } from './change.ts';
import type { Core } from './core.ts';
import type { Range } from './history.ts';
import type { HistoryWatch } from './history-watch.ts';
import { comparingContent, copying, type Draft, drafting, isLarge } from './value.ts';

/** For what must be done in this turn of the event loop. */
const AT_A_STRETCH: Pace = { turn: () => undefined, pause: () => undefined };

/** What a list reads, and how. `left`: how many objects there are, if that is known. */
interface Page {
  readonly range: Range;
  readonly limit: number;
  readonly left: number | undefined;
  readonly pace: Pace;
  readonly signal: AbortSignal | undefined;
}

/** What is under a key, as a write finds it. */
type Head<T> = Change<T> | undefined;

/** The part of a `MemoryStorage` whose keys begin with a prefix. The whole is the part whose prefix is empty. */
export class MemoryScope<T extends KubernetesObject = KubernetesObject> implements Storage<T> {
  /** Objects of every type are in one history: the code that writes under a prefix determines their type. */
  readonly #core: Core;
  readonly #prefix: string;
  readonly #fields: FieldFunctions<T>;

  constructor(core: Core, { prefix, fields }: { readonly prefix: string; readonly fields: FieldFunctions<T> }) {
    this.#core = core;
    this.#prefix = prefix;
    this.#fields = fields;
  }

  async get(key: string, options: GetOptions = {}): Promise<T | undefined> {
    const { resourceVersion, signal } = checkOptions(options, ['resourceVersion', 'signal']);
    this.#core.pending.check(signal);
    const place = this.#prefix + checkKey(key);
    this.#check(parseVersion(resourceVersion));
    return this.#core.history.get(place) as T | undefined;
  }

  async list(options: ListOptions = {}): Promise<List<T>> {
    const { limit = 0, signal } = checkOptions(options, LIST_NAMES);
    this.#core.pending.check(signal);
    wholeNumber('limit', limit);
    const predicate = predicateOf<T>(options, this.#fields);
    const { exact, atLeast, from } = planList(options);
    const start = from?.start ?? '';
    this.#check(atLeast);
    const read = (pace: Pace): Soon<List<T> | undefined> => {
      const revision = this.#revisionOf(from ? from.revision : exact, from && encodeContinue({ revision: undefined, start }));
      const range = { prefix: this.#prefix, from: this.#prefix + start, revision };
      return this.#page(predicate, { range, limit, left: from?.left, pace, signal });
    };
    // If the history has dropped the newest state meanwhile, the one that is the newest then is read at a stretch.
    const page = read(paceOf(signal));
    return (isPromise(page) ? await page : page) ?? (read(AT_A_STRETCH) as List<T>);
  }

  async watch(options: StorageWatchOptions<T> = {}): Promise<Watch<StorageEvent<T>>> {
    const { signal } = checkOptions(options, WATCH_NAMES);
    const { pending, history } = this.#core;
    pending.check(signal);
    const predicate = predicateOf<T>(options, this.#fields);
    const { after, atLeast, marksEnd, bookmarks } = planWatch(options);
    this.#check(after ?? atLeast);
    const start = {
      prefix: this.#prefix,
      predicate: predicate as HistoryPredicate,
      after: after === undefined ? history.visible : Number(after),
      // Only an explicit false leaves out the state.
      initial: after === undefined && options.sendInitialEvents !== false && (marksEnd ? ('marked' as const) : true),
      bookmarks,
    };
    return this.#core.watch(start, options) as unknown as HistoryWatch<T>;
  }

  async create(key: string, object: T, options: CreateOptions = {}): Promise<T> {
    const { ttlSeconds = 0, signal } = checkOptions(options, CREATE_NAMES);
    wholeNumber('ttlSeconds', ttlSeconds);
    this.#core.pending.check(signal);
    const place = this.#prefix + checkKey(key);
    if (object?.metadata?.resourceVersion) {
      throw badRequest('resourceVersion should not be set on objects to be created');
    }
    if (this.#core.history.head(place)) throw await this.#core.sure(alreadyExists(key));
    let draft = inPieces(drafting(object), { pace: paceOf(signal), signal });
    if (isPromise(draft)) {
      draft = await draft;
      this.#core.pending.check(signal);
      if (this.#core.history.head(place)) throw await this.#core.sure(alreadyExists(key));
    }
    const stored = this.#write(place, draft, ttlSeconds);
    await this.#core.safe();
    return stored;
  }

  async update(key: string, change: (current: T) => T | Promise<T>, options: UpdateOptions<T> = {}): Promise<T> {
    const { ttlSeconds = 0, createIfMissing = false, signal } = checkOptions(options, UPDATE_NAMES);
    wholeNumber('ttlSeconds', ttlSeconds);
    if (callable('change', change) === undefined) throw invalid('change', change, 'a function');
    const place = this.#prefix + checkKey(key);
    const terms = { pace: paceOf(signal), signal };
    for (;;) {
      this.#core.pending.check(signal);
      const head = this.#head(place);
      if (!head && !createIfMissing) throw await this.#core.sure(notFound(key));
      const unmet = unmetPrecondition(key, head?.object, options);
      if (unmet) throw await this.#core.sure(unmet);
      // A synchronous change is written in the same turn: nothing can come in between, so it never has to be repeated. A large
      // object is an exception: a copy, a change and a write of it would block everybody together.
      if (head && isLarge(head.object as T)) await terms.pace.heavy?.(signal as AbortSignal);
      const copy = head && inPieces(copying(head.object as T), terms);
      const answer = change((isPromise(copy) ? await copy : copy) as T);
      const changed = isPromise(answer) ? await this.#core.pending.until(answer, signal) : answer;
      const drafted = inPieces(drafting(changed), terms);
      const draft = isPromise(drafted) ? await drafted : drafted;
      const compared = head !== undefined && inPieces(comparingContent(draft.copy, head.object as T), terms);
      const isSame = isPromise(compared) ? await compared : compared;
      this.#core.pending.check(signal);
      if (this.#head(place) !== head) continue;
      const stored = isSame ? (head?.object as T) : this.#write(place, draft, ttlSeconds);
      await this.#core.safe();
      return stored;
    }
  }

  async delete(key: string, options: DeleteOptions<T> = {}): Promise<T> {
    const { validate, signal } = checkOptions(options, DELETE_NAMES);
    callable('validate', validate);
    const place = this.#prefix + checkKey(key);
    for (;;) {
      this.#core.pending.check(signal);
      const head = this.#head(place);
      if (!head) throw await this.#core.sure(notFound(key));
      const unmet = unmetPrecondition(key, head.object, options);
      if (unmet) throw await this.#core.sure(unmet);
      const answer = validate?.(head.object as T);
      if (isPromise(answer)) await this.#core.pending.until(answer, signal);
      this.#core.pending.check(signal);
      if (this.#head(place) !== head) continue;
      const { left } = this.#core.write(place, undefined);
      await this.#core.safe();
      return left.object as T;
    }
  }

  async currentVersion(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<string> {
    this.#core.pending.check(checkOptions(options, ['signal']).signal);
    return `${this.#core.history.visible}`;
  }

  async hasGiven(version: string): Promise<boolean> {
    this.#core.pending.check(undefined);
    return this.#isOwn(parseVersion(version));
  }

  async pastVersion(changes: number): Promise<string> {
    this.#core.pending.check(undefined);
    return `${this.#core.history.ago(wholeNumber('changes', changes))}`;
  }

  async checkHealth(): Promise<void> {
    this.#core.pending.check(undefined);
    const { failure } = this.#core;
    if (failure) throw new WatchError('CLOSED', 'the journal has failed: open the storage again', { cause: failure.error });
  }

  async keys(options: KeysOptions): Promise<readonly string[]> {
    const { from = '', limit, signal } = checkOptions(options, KEYS_NAMES);
    this.#core.pending.check(signal);
    const keys: string[] = [];
    const range = { prefix: this.#prefix, from: this.#prefix + from, revision: this.#core.history.visible };
    this.#core.history.scan(range, (key) => keys.push(key.slice(this.#prefix.length)) < limit);
    return keys;
  }

  async requestProgress(): Promise<void> {
    this.#core.pending.check(undefined);
    this.#core.progress(this.#prefix);
  }

  scope<U extends KubernetesObject = T>(prefix: string, options: ScopeOptions<U> = {}): Storage<U> {
    const { fields = this.#fields as unknown as FieldFunctions<U> } = checkOptions(options, ['fields']);
    return new MemoryScope<U>(this.#core, { prefix: this.#prefix + checkPrefix(prefix), fields });
  }

  async close(): Promise<void> {}

  #head(place: string): Head<T> {
    return this.#core.history.head(place) as Head<T>;
  }

  /** Writes what has been decided in this turn. Wait until that is safe. */
  #write(place: string, draft: Draft<T>, ttlSeconds: number): T {
    const value = this.#core.valueOf(draft as Draft<KubernetesObject>);
    return this.#core.write(place, value, ttlSeconds).object as T;
  }

  /** The first selected objects of a range; undefined if the history has dropped its state while it was read in pieces. */
  #page(predicate: SelectionPredicate<T>, { range, limit, left, pace, signal }: Page): Soon<List<T> | undefined> {
    const items: T[] = [];
    let last = '';
    let more = 0;
    // An unknown number is counted, unless something is selected: then it is enough to know that there is one more.
    const counts = predicate.isEmpty && left === undefined;
    const visit = ({ key, object }: { readonly key: string; readonly object: T | undefined }): boolean => {
      if (object === undefined || !this.#selects(predicate, object)) return true;
      if (limit > 0 && items.length === limit) {
        more++;
        return counts;
      }
      items.push(object);
      last = key;
      return true;
    };
    const made = (): List<T> | undefined => {
      const revision = `${range.revision}`;
      if (this.#core.history.compacted > range.revision) return undefined;
      if (more === 0) return { items, resourceVersion: revision };
      const remaining = !predicate.isEmpty ? undefined : left === undefined ? more : Math.max(1, left - items.length);
      const token = continueAfter(last.slice(this.#prefix.length), { revision, left: remaining });
      const page = { items, resourceVersion: revision, continue: token };
      return remaining === undefined ? page : { ...page, remainingItemCount: remaining };
    };
    const entries = this.#core.history.entries(range) as Iterable<{ key: string; object: T | undefined }>;
    const reading = through(entries, visit, { pace, signal });
    return reading ? this.#core.pending.until(reading, signal).then(made) : made();
  }

  #selects(predicate: SelectionPredicate<T>, object: T): boolean {
    return predicate.isEmpty || this.#core.guard(() => predicate.matches(object));
  }

  #isOwn(version: string | undefined): boolean {
    return version === undefined || this.#core.history.mayHave(Number(version));
  }

  /** @throws {WatchError} REFUSED with code 410 for a version that this storage cannot have given. */
  #check(version: string | undefined): void {
    if (!this.#isOwn(version)) throw foreign(version as string, `${this.#core.history.visible}`);
  }

  /** The revision that a list reads; the newest if none is given. */
  #revisionOf(version: string | undefined, token: string | undefined): number {
    const { visible, compacted } = this.#core.history;
    if (version === undefined) return visible;
    const isOwn = this.#isOwn(version);
    if (isOwn && Number(version) >= compacted) return Number(version);
    if (token !== undefined) throw expiredContinue(token);
    throw isOwn ? expired(version, `${compacted}`) : foreign(version, `${visible}`);
  }
}

type HistoryPredicate = Parameters<Core['watch']>[0]['predicate'];
