/**
 * The objects of a kind that the server may not have, or not yet, or no longer: a source for an informer, which outlives the kind's
 * definition.
 *
 *     not asked for ---> waiting ---> there ---- deleted: lists are 404, and the server says that it has no such kind ----.
 *                         ^   asks again, later every five to ten seconds                                                 |
 *                         '------------- empty lists: its followers delete what they hold --------------------------------'
 *
 * Invariants
 * - A list waits while the kind does not exist, so an informer is not synced before it has existed. After that, each list asks again
 *   whether it is there, and is empty if not; its version is none that is older than one that was told before.
 * - A 404 alone empties nothing: the server must also say, twice, some seconds apart, that it has no version of the kind. A
 *   server that only lags or is unavailable, or no longer serves this version, is an error like any other: the informer keeps
 *   its objects, and tries again.
 * - A list never mixes two kinds: if the kind is deleted or renamed between two pages, the list ends with 410.
 * - A watch of a kind that has come back ends with 410, so its objects are listed, without any of the earlier ones.
 * - A kind may be replaced so quickly that no list gets a 404. If its scope has changed, its objects show that: the server is asked.
 */
import { filter } from '../broadcast/filter.ts';
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../cache/list-watcher.ts';
import { type KubernetesObject, namespaceOf, versionOf } from '../cache/object.ts';
import { type Prepare, preparedList, takesPrepare } from '../cache/pager.ts';
import { isOlder } from '../cache/reflector/events.ts';
import { nameOf, type ResourceClient, type ResourceSource } from '../cache/resource-client.ts';
import { refused } from '../storage/statuses.ts';
import { SharedWork } from '../watch/abort.ts';
import { Backoff } from '../watch/backoff.ts';
import { type Clock, sleep, systemClock } from '../watch/clock.ts';
import { checkOptions, isWatchError, requireMethod, WatchError } from '../watch/errors.ts';
import type { ObjectEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import { type FullType, fullType, type KindName, queryOf, textOf, typeOf } from './kinds.ts';

/** Options of a {@link FollowedKind}. */
export interface FollowedKindOptions {
  /** Only objects of this namespace, if the kind has namespaces. */
  readonly namespace?: string | undefined;
  /** Called once each time the server does not have the kind, and when it does again: `waiting` has just changed. */
  readonly tell?: ((text: string) => void) | undefined;
  /**
   * Called with each failure to ask what the server has; then it is asked again. Default: the list or the `resolve` rejects.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: (() => number) | undefined;
}

/** A kind, and its current name on the server. */
interface Found<T extends object> {
  readonly type: FullType;
  readonly client: ResourceClient<T>;
  /** The server was asked about objects of another scope, and says that this is the kind's. */
  readonly asked?: boolean;
}

/** How long until the server is asked again, at first and in the end; as much may be added at random. */
const [MIN_MS, MAX_MS] = [500, 5_000];
/** How long a kind must be gone before its objects count as gone, because one of several servers may not know it yet. */
const CONFIRM_MS = 3_000;

/** Reads and watches the objects of a kind whenever the server has it. See the top of this file. */
export class FollowedKind<T extends object = KubernetesObject> implements ListWatcher<T> {
  /** As texts name it, such as `websites.example.com/v1`. */
  readonly name: string;
  readonly #source: ResourceSource;
  readonly #kind: KindName<T>;
  readonly #options: FollowedKindOptions;
  #found: Found<T> | undefined;
  #finding: SharedWork<Found<T>> | undefined;
  /** Whether the server must be asked, even if everything is known about the kind. */
  #unsure: boolean = false;
  /** Whether there has been a list or stream, whose objects a list must remove if the kind is gone. */
  #held: boolean = false;
  /** The last version that the server has told. */
  #version: string = '0';
  /** Whether an object of another scope was seen since the server was asked. */
  #strange: boolean = false;
  #waiting: boolean = false;
  #error: unknown;

  /** @throws {WatchError} INVALID_ARGUMENT for anything that names no kind, and for an unknown option. */
  constructor(source: ResourceSource, kind: KindName<T>, options: FollowedKindOptions = {}) {
    takesPrepare(FollowedKind.prototype.list);
    queryOf(kind);
    this.name = textOf(kind);
    this.#source = requireMethod('source', source, 'resource', 'a Cluster or an ApiServer');
    this.#kind = kind;
    this.#options = checkOptions(options, ['namespace', 'tell', 'onError', 'clock', 'random']);
  }

  /** Whether the server was asked, and does not have it. */
  get waiting(): boolean {
    return this.#waiting;
  }

  /** The last failure to ask what the server has, until it answers. */
  get error(): unknown {
    return this.#error;
  }

  /** Its objects in all namespaces; undefined while the kind does not exist, or before it was asked for. */
  get client(): ResourceClient<T> | undefined {
    return this.#found?.client;
  }

  /** Its type on the server; undefined while the kind does not exist, or before it was asked for. */
  get type(): FullType | undefined {
    return this.#found?.type ?? (this.#unsure ? undefined : fullType(this.#kind));
  }

  /** Resolves with its type when the server has it. */
  async resolve(signal?: AbortSignal): Promise<FullType> {
    return (await this.#find(signal)).type;
  }

  list(options?: ListOptions): Promise<List<T>>;
  async list(options: ListOptions = {}, prepare?: Prepare<T>): Promise<List<T>> {
    for (;;) {
      const isGone = this.#held && !this.#found;
      const found = isGone ? await this.#search(options.signal, true) : await this.#find(options.signal);
      if (!found) {
        // A caller that only checks for a version must not mistake this for the current objects.
        if (options.resourceVersionMatch) throw refused(410, 'Expired', `${this.name} has been deleted`);
        return { items: [], resourceVersion: options.resourceVersion || this.#version };
      }
      try {
        let strange = false;
        // What `prepare` makes of an object need not be one.
        const seen: Prepare<T> = (object) => {
          strange ||= !fits(found, object);
          return prepare && !strange ? prepare(object) : object;
        };
        const list = await preparedList(this.#within(found), options, seen);
        if (!strange) {
          this.#held = true;
          this.#version = list.resourceVersion;
          return list;
        }
        this.#strange = true;
      } catch (error) {
        if (!isWatchError(error, 'REFUSED') || error.status?.code !== 404) throw error;
        await this.#checkGone(found, error, options.signal);
      }
      if (options.continue) throw refused(410, 'Expired', `${this.name} has been deleted since its first page`);
    }
  }

  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<T>>> {
    const before = this.#found;
    if (before) {
      const found = this.#strange ? await this.#find(options.signal) : before;
      const rescoped = (): WatchError => refused(410, 'Expired', `${this.name} has another scope by now`);
      if (!sameKind(found, before) && !options.sendInitialEvents) throw rescoped();
      const watch = await this.#within(found).watch(options);
      if (options.sendInitialEvents) this.#held = true;
      return filter(watch, (event) => {
        if (event.type === 'ERROR') return event;
        if (event.type === 'BOOKMARK' || fits(found, event.object)) {
          const version = versionOf(event.object);
          if (isOlder(this.#version, version)) this.#version = version; // those of initial events are older
          return event;
        }
        this.#strange = true;
        throw rescoped();
      });
    }
    // A stream cannot wait, but a list can.
    if (options.sendInitialEvents) throw refused(404, 'NotFound', `the server does not have ${this.name}`);
    await this.#find(options.signal);
    throw refused(410, 'Expired', `${this.name} has been defined in the meantime`);
  }

  #within({ type, client }: Found<T>): ResourceClient<T> {
    const { namespace } = this.#options;
    return namespace !== undefined && type.namespaced ? client.in(namespace) : client;
  }

  async #find(signal: AbortSignal | undefined): Promise<Found<T>> {
    if (this.#found && !this.#strange) return this.#found;
    if (!this.#finding?.pending) this.#finding = new SharedWork(async (own) => (await this.#search(own)) as Found<T>);
    return await this.#finding.join(signal);
  }

  /** Asks until the server has it; `once`: or until it answers, with undefined if it does not have it. */
  async #search(signal: AbortSignal | undefined, once: boolean = false): Promise<Found<T> | undefined> {
    const { clock = systemClock, random = Math.random } = this.#options;
    const backoff = new Backoff({ minMs: MIN_MS, maxMs: MAX_MS, factor: 2, random, apart: true });
    for (;;) {
      const found = await this.#askAgain(signal);
      if (found) {
        const wasWaiting = this.#waiting;
        this.#waiting = false;
        const asked = this.#strange && this.#found && sameKind(found, this.#found);
        this.#strange = false;
        this.#found = asked ? { ...found, asked } : found;
        if (wasWaiting) this.#options.tell?.(`the server has ${this.name} now`);
        return this.#found;
      }
      if (once && this.#error === undefined) return undefined;
      await sleep(backoff.failed({}), { clock, signal });
      // Of a kind that was there, a list shows whether it has gone.
      if (this.#found) return this.#found;
    }
  }

  async #askAgain(signal: AbortSignal | undefined): Promise<Found<T> | undefined> {
    const { onError } = this.#options;
    try {
      const found = await this.#ask(signal);
      if (!found) this.#wait(this.#absence);
      this.#error = undefined;
      return found;
    } catch (error) {
      if (!onError || signal?.aborted) throw error;
      this.#error = error;
      onError(error);
      return undefined;
    }
  }

  get #absence(): string {
    return `waits for ${this.name}: the server does not have it yet`;
  }

  #wait(text: string): void {
    const wasWaiting = this.#waiting;
    this.#waiting = true;
    if (!wasWaiting) this.#options.tell?.(text);
  }

  /** Undefined: the server does not have it. */
  async #ask(signal: AbortSignal | undefined): Promise<Found<T> | undefined> {
    const full = this.#unsure ? undefined : fullType(this.#kind);
    const terms = { signal, ...(this.#unsure && { maxAgeMs: 0 }) };
    this.#unsure = true;
    try {
      const client = full ? this.#source.resource<T>(full) : await this.#source.kind<T>(queryOf(this.#kind), terms);
      return { type: full ?? typeOf(client), client };
    } catch (error) {
      if (isWatchError(error, 'INVALID_ARGUMENT')) return undefined;
      throw error;
    }
  }

  /** After a 404: returns if the kind is gone, or has another name by now. Otherwise throws the error. */
  async #checkGone(found: Found<T>, error: WatchError, signal: AbortSignal | undefined): Promise<void> {
    let now = await this.#askAbout(found, error, signal);
    if (!now && this.#held) {
      await sleep(CONFIRM_MS, { clock: this.#options.clock ?? systemClock, signal });
      now = await this.#askAbout(found, error, signal);
    }
    this.#found = now;
    if (now) return;
    this.#wait(this.#held ? `${this.name} has been deleted: waits for the server to have it again` : this.#absence);
  }

  /**
   * The kind under its current name; undefined: the server has no version of it. Throws if it has the same version, or another.
   */
  async #askAbout(found: Found<T>, error: WatchError, signal: AbortSignal | undefined): Promise<Found<T> | undefined> {
    const now = await this.#ask(signal);
    if (now && sameKind(now, found)) throw error;
    // Even if it has another kind of that name: for a short name, the first group that has it counts.
    const other = await this.#otherVersion(found.type, signal);
    if (other && (!now || other !== nameOf(now.type))) {
      const { status } = error;
      throw new WatchError('REFUSED', `the server has ${other}, and no longer ${this.name}`, { status, cause: error });
    }
    return now;
  }

  async #otherVersion({ plural, group, version }: FullType, signal: AbortSignal | undefined): Promise<string | undefined> {
    try {
      // The core group has one version.
      const name = group ? `${plural}.${group}` : `${plural}/${version}`;
      return nameOf((await this.#source.kind(name, { signal, maxAgeMs: 0 })).type);
    } catch (error) {
      if (isWatchError(error, 'INVALID_ARGUMENT')) return undefined;
      throw error;
    }
  }
}

function sameKind({ type: one }: Found<object>, { type: other }: Found<object>): boolean {
  return nameOf(one) === nameOf(other) && one.namespaced === other.namespaced;
}

/** Whether an object may be one of the kind as it is known. */
function fits({ type, asked = false }: Found<object>, object: object): boolean {
  return asked || type.namespaced === (namespaceOf(object) !== '');
}
