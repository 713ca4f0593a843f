/**
 * A watch of a storage: the state, if it is asked for, then the changes of a {@link WatchLink}, as events. It reads from etcd when
 * its consumer reads, so that a slow consumer holds up nobody: etcd keeps its place, and re-reads the past for it.
 *
 *     [ parts of the list at 7 ] ---> BOOKMARK 7 ---> changes after 7, BOOKMARKs of progress ---> ERROR, or stop
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { isWatchError } from '../../watch/errors.ts';
import { type BookmarkEvent, INITIAL_EVENTS_END, type Status, toStatus } from '../../watch/event.ts';
import { type PullSource, PullWatch } from '../../watch/pull-watch.ts';
import { NONE } from '../../watch/reader.ts';
import type { WatchPlan } from '../selection.ts';
import type { StorageEvent } from '../storage.ts';
import { PreviousObjects } from './before.ts';
import type { EtcdClient } from './etcd-client.ts';
import { toBytes } from './key-bytes.ts';
import { type Part, PartReader } from './lists.ts';
import { objectOf } from './objects.ts';
import { toEvent } from './transitions.ts';
import { type LinkUpdate, WatchLink } from './watch-link.ts';
import type { Header, KeyEvent, KeyValue } from './wire/messages.ts';

/** What a watch delivers, and where it is. */
export interface EtcdWatchOptions<T> {
  readonly prefix: string;
  readonly plan: WatchPlan;
  readonly selects: ((object: T) => boolean) | undefined;
  /** The consumer's current object under a key, asked for instead of etcd's. */
  readonly previousOf: ((key: string) => T | undefined) | undefined;
  /** Called once, at the end. */
  readonly onEnd: () => void;
}

/** What waits to be delivered: decoded when it is its turn. */
type Waiting<T> = { readonly initial: KeyValue } | { readonly change: KeyEvent } | StorageEvent<T>;

export class EtcdWatchSource<T extends KubernetesObject> implements PullSource<StorageEvent<T>> {
  readonly #client: EtcdClient;
  readonly #options: EtcdWatchOptions<T>;
  readonly #abort: AbortController = new AbortController();
  readonly #before: PreviousObjects<T> | undefined;
  #waiting: Waiting<T>[] = [];
  #at: number = 0;
  /** The rest of the state. */
  #parts: PartReader | undefined;
  #link: WatchLink | undefined;
  #owesProgress: boolean = false;
  #over: boolean = false;

  constructor(client: EtcdClient, options: EtcdWatchOptions<T>) {
    this.#client = client;
    this.#options = options;
    const { previousOf, selects, prefix } = options;
    // The consumer does not have what a selector hides.
    if (previousOf && !selects) this.#before = new PreviousObjects(previousOf, toBytes(prefix));
  }

  /** Reads the first part of the state, or opens the watch. Rejects if that is refused. */
  async open(): Promise<void> {
    const { prefix, plan } = this.#options;
    if (plan.after !== undefined) {
      this.#link = this.#linkAfter(BigInt(plan.after));
      await this.#link.open();
      return;
    }
    const { signal } = this.#abort;
    const read = { exact: undefined, atLeast: plan.atLeast, from: undefined };
    this.#parts = new PartReader(this.#client, { prefix, plan: read, signal });
    this.#took(await this.#parts.next(Number.POSITIVE_INFINITY));
  }

  async pull(): Promise<IteratorResult<StorageEvent<T>, undefined>> {
    this.#before?.taken();
    for (;;) {
      const value = this.poll();
      if (value) return { done: false, value };
      if (this.#over || this.#abort.signal.aborted) return { done: true, value: undefined };
      if (this.#parts) await this.#readPart(this.#parts);
      else if (this.#link) this.#told(await this.#link.next());
    }
  }

  poll(): StorageEvent<T> | undefined {
    for (;;) {
      while (this.#at < this.#waiting.length) {
        const event = this.#deliver(this.#waiting[this.#at++] as Waiting<T>);
        if (event) return event;
      }
      const told = this.#over || this.#parts ? undefined : this.#link?.poll();
      if (!told) return undefined;
      this.#told(told);
    }
  }

  /**
   * The undelivered events of the last delivered event's revision: a caller that resumes after that revision misses none of them.
   */
  rest(): StorageEvent<T>[] {
    const last = this.#waiting[this.#at - 1];
    const events: StorageEvent<T>[] = [];
    if (!last || !('change' in last)) return events;
    for (let waiting = this.#waiting[this.#at]; waiting && 'change' in waiting; waiting = this.#waiting[this.#at]) {
      if (waiting.change.kv.modRevision !== last.change.kv.modRevision) break;
      this.#at++;
      const event = this.#deliver(waiting);
      if (event) events.push(event);
    }
    return events;
  }

  /** Ends the watch: settles pending reads, and cancels it at etcd. */
  cancel(reason?: unknown): void {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort(reason);
    this.#link?.close();
    this.#options.onEnd();
  }

  requestProgress(): void {
    if (!this.#options.plan.bookmarks || this.#over) return;
    if (this.#link) this.#link.requestProgress();
    else this.#owesProgress = true;
  }

  async #readPart(parts: PartReader): Promise<void> {
    try {
      this.#took(await parts.next(Number.POSITIVE_INFINITY));
    } catch (error) {
      this.#abort.signal.throwIfAborted();
      this.#fail(error);
    }
  }

  #took({ kvs, left, revision, header }: Part): void {
    this.#put(kvs.map((initial) => ({ initial })));
    if (left > 0) return;
    this.#parts = undefined;
    if (this.#options.plan.marksEnd) this.#waiting.push(toBookmark(revision, { [INITIAL_EVENTS_END]: 'true' }));
    // It has no call yet: the first read of a change opens it.
    this.#link = this.#linkAfter(revision, header);
    if (this.#owesProgress) this.#link.requestProgress();
  }

  #linkAfter(after: bigint, head?: Header): WatchLink {
    const { prefix } = this.#options;
    return new WatchLink(this.#client, { prefix, previous: !this.#before, after, head, signal: this.#abort.signal });
  }

  #told(told: LinkUpdate): void {
    if ('error' in told) this.#fail(told.error);
    else if ('events' in told) this.#put(told.events.map((change) => ({ change })));
    else if (this.#options.plan.bookmarks) this.#put([toBookmark(told.progress)]);
  }

  #put(waiting: Waiting<T>[]): void {
    this.#waiting = waiting;
    this.#at = 0;
  }

  /** The event of what waits, if there is one. */
  #deliver(waiting: Waiting<T>): StorageEvent<T> | undefined {
    const { selects } = this.#options;
    try {
      if ('change' in waiting) {
        return toEvent(waiting.change, { objectOf: (kv) => this.#objectOf(kv), before: this.#before, selects });
      }
      if (!('initial' in waiting)) return waiting;
      const object = objectOf<T>(waiting.initial);
      return !selects || selects(object) ? { type: 'ADDED', object } : undefined;
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** There is one object for a key and a revision, whether a write or a watch has made it. */
  #objectOf(kv: KeyValue): T {
    const { recent } = this.#client;
    const known = recent.find(kv);
    if (known !== undefined) return known as T;
    const object = objectOf<T>(kv);
    recent.add(kv.modRevision, object);
    return object;
  }

  /** Nothing comes after the ERROR. */
  #fail(error: unknown): void {
    this.#over = true;
    this.#link?.close();
    // What this etcd refuses to its own storage is not told to those who watch.
    if (isWatchError(error, 'REFUSED') && error.cause !== undefined) this.#client.settings.onError(error);
    this.#put([{ type: 'ERROR', object: statusOf(error) }]);
  }
}

/** The watch of a source. One that is stopped within a revision still delivers the rest of it. */
export class EtcdWatch<T extends KubernetesObject> extends PullWatch<StorageEvent<T>> {
  readonly #source: EtcdWatchSource<T>;
  #rest: StorageEvent<T>[] = [];

  constructor(source: EtcdWatchSource<T>) {
    super(source);
    this.#source = source;
  }

  override get queued(): number {
    return super.queued + this.#rest.length;
  }

  protected override get drained(): boolean {
    return super.drained && this.#rest.length === 0;
  }

  protected override take(): StorageEvent<T> | typeof NONE {
    if (this.#rest.length === 0 || this.held !== NONE) return super.take();
    return this.#rest.shift() as StorageEvent<T>;
  }

  protected override end(): void {
    // While it waits, the last revision has been delivered.
    if (!this.stopped && !this.pulling) this.#rest = this.#source.rest();
    super.end();
  }

  protected override discard(): void {
    this.wasted(this.#rest.length);
    this.#rest = [];
    super.discard();
  }
}

function toBookmark(revision: bigint, annotations?: Readonly<Record<string, string>>): BookmarkEvent {
  return { type: 'BOOKMARK', object: { metadata: { resourceVersion: `${revision}`, ...(annotations && { annotations }) } } };
}

function statusOf(error: unknown): Status {
  if (isWatchError(error) && error.status) return error.status;
  const message = error instanceof Error ? error.message : String(error);
  return toStatus({ code: 500, reason: 'InternalError', message });
}
