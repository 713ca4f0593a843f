/**
 * A watch of a range, by as many calls as it takes: after a cut it resumes where the last call ended, at any member.
 *
 *     connect ---> read ---> read ---> cut ---> wait ---> connect ---> read ...
 *        '-- 1. ask etcd as a whole for its revision and term
 *            2. open a call at the member that answered, from the cursor on
 *
 * The first step keeps a watch away from members that have lost contact with the others, and shows whether etcd still has the
 * past that this watch has seen: if its revision or its term went back, or the last change is another one, it was started with
 * other data. Then nothing can be resumed: 410.
 */
import type { Backoff } from '../../watch/backoff.ts';
import type { WatchError } from '../../watch/errors.ts';
import { expired, foreign, unavailable } from '../statuses.ts';
import type { CallContext, EtcdClient } from './etcd-client.ts';
import { behind, toBytes } from './key-bytes.ts';
import { WatchCursor } from './watch-cursor.ts';
import type { CallStream, Read } from './wire/call-stream.ts';
import { WATCH } from './wire/channel.ts';
import {
  type Header,
  type KeyEvent,
  readWatch,
  type WatchResponse,
  writeWatchCreate,
  writeWatchProgress,
} from './wire/messages.ts';
import { CODE, type Failure, isCompacted, isFuture, isPassing, isStaleToken, toError } from './wire/outcome.ts';

/** What a link reports: changes, that everything up to a revision was delivered, or why it has ended. */
export type LinkUpdate =
  | { readonly events: readonly KeyEvent[] }
  | { readonly progress: bigint }
  | { readonly error: WatchError };

/** How long to wait for the answer to a progress request before it is made again: etcd does not answer while it owes events. */
const PROGRESS_MS = 200;
const MAX_PROGRESS_MS = 10_000;
const NO_EVENTS: LinkUpdate = { events: [] };

/** Where a link begins. */
export interface WatchLinkOptions {
  readonly prefix: string;
  /** Whether changes come with the previous value. */
  readonly previous: boolean;
  /** Everything up to this revision is known. */
  readonly after: bigint;
  /** The header of etcd's answer at that revision. */
  readonly head?: Header | undefined;
  /** Ends it. */
  readonly signal: AbortSignal;
}

export class WatchLink {
  readonly #client: EtcdClient;
  readonly #context: CallContext & { readonly signal: AbortSignal };
  readonly #prefix: string;
  readonly #previous: boolean;
  readonly #cursor: WatchCursor;
  readonly #backoff: Backoff;
  #head: Pick<Header, 'clusterId' | 'term'> | undefined;
  #link: { readonly call: CallStream; readonly leave: () => void } | undefined;
  /** The last change, copied, so that it does not keep a whole response in memory. */
  #last: { readonly key: Uint8Array; readonly revision: bigint; readonly deleted: boolean } | undefined;
  #isNew: boolean = true;
  #owesProgress: boolean = false;
  #progressMs: number = PROGRESS_MS;
  #stopClock: (() => void) | undefined;

  constructor(client: EtcdClient, { prefix, previous, after, head, signal }: WatchLinkOptions) {
    this.#client = client;
    this.#head = head;
    this.#prefix = prefix;
    this.#previous = previous;
    this.#cursor = new WatchCursor(after);
    this.#context = { what: `watch ${prefix}`, signal };
    this.#backoff = client.channel.backoff();
  }

  /** Opens the first call. Rejects if etcd refuses it, or cannot be reached within the time of a request. */
  async open(): Promise<void> {
    const head = await this.#client.head(this.#context);
    const { revision } = this.#cursor;
    if (head.revision < revision) throw foreign(`${revision}`, `${head.revision}`);
    this.#head = head;
    this.#isNew = false;
    this.#call();
  }

  /** Resolves with what comes next. */
  async next(): Promise<LinkUpdate> {
    const link = this.#link;
    if (!link) return this.#reconnect();
    return this.#take(await link.call.read());
  }

  /** What has already come. */
  poll(): LinkUpdate | undefined {
    const read = this.#link?.call.poll();
    return read && this.#take(read);
  }

  requestProgress(): void {
    // If the link has ended already, nobody would stop the timer.
    if (this.#context.signal.aborted) return;
    this.#owesProgress = true;
    // A new caller does not wait as long as one before it had to during an outage.
    if (this.#progressMs > 2 * PROGRESS_MS) this.#stopAsking();
    this.#progressMs = PROGRESS_MS;
    if (!this.#stopClock) this.#askProgress();
  }

  close(): void {
    this.#stopAsking();
    this.#owesProgress = false;
    this.#link?.call.cancel();
    this.#link = undefined;
  }

  #stopAsking(): void {
    this.#stopClock?.();
    this.#stopClock = undefined;
  }

  #askProgress(): void {
    this.#stopClock = undefined;
    if (!this.#owesProgress) return;
    // Without a call, the next one asks.
    this.#link?.call.write(writeWatchProgress());
    this.#stopClock = this.#client.settings.clock.schedule(this.#progressMs, () => this.#askProgress());
    this.#progressMs = Math.min(this.#progressMs * 2, MAX_PROGRESS_MS);
  }

  #call(): void {
    // If it was ended meanwhile, nothing would end a later call.
    if (this.#context.signal.aborted) return;
    const opened = this.#client.channel.stream(WATCH);
    if ('failure' in opened) return;
    const key = toBytes(this.#prefix);
    const startRevision = this.#cursor.resume();
    opened.call.write(writeWatchCreate({ key, end: behind(key), startRevision, previous: this.#previous }));
    this.#link = opened;
    if (this.#owesProgress) opened.call.write(writeWatchProgress());
  }

  async #reconnect(): Promise<LinkUpdate> {
    const waitMs = this.#isNew ? 0 : this.#backoff.failed({});
    if (waitMs > 0) await this.#client.channel.wait(waitMs, this.#context.signal);
    this.#isNew = false;
    const failed = await this.#resume();
    return failed ? { error: failed } : NO_EVENTS;
  }

  /** Resumes at the cursor. Returns the error if that is impossible for good. */
  async #resume(): Promise<WatchError | undefined> {
    let head: Header;
    try {
      head = await this.#client.head(this.#context);
      if (!(await this.#isKnown())) return this.#replaced(head);
    } catch (error) {
      this.#client.check(this.#context.signal);
      if ((error as WatchError).code === 'TIMEOUT') return undefined;
      return error as WatchError;
    }
    const { clusterId, term } = this.#head ?? head;
    const { revision } = this.#cursor;
    if (head.clusterId !== clusterId || head.term < term || head.revision < revision) {
      return this.#replaced(head);
    }
    this.#head = head;
    this.#call();
    return undefined;
  }

  /** Whether etcd still has the last change that it delivered, unless that has been compacted. */
  async #isKnown(): Promise<boolean> {
    if (!this.#last) return true;
    const { key, revision, deleted } = this.#last;
    const range = await this.#client.tryRange({ key, revision }, this.#context);
    if ('kvs' in range) return range.kvs[0]?.modRevision === (deleted ? undefined : revision);
    if (isFuture(range)) return false;
    if (isCompacted(range)) return true;
    throw toError(range, this.#context);
  }

  #replaced({ revision }: Header): WatchError {
    return expired(`${this.#cursor.revision}`, `etcd was started with other data, now at ${revision}`);
  }

  #take(read: Read): LinkUpdate {
    if ('ended' in read) return this.#lost(read.ended);
    let response: WatchResponse;
    try {
      response = this.#client.read(read.message, readWatch, this.#context.what);
    } catch (error) {
      return { error: error as WatchError };
    }
    if (response.canceled) return this.#cancelled(response);
    if (response.created) return NO_EVENTS;
    this.#backoff.healthy();
    const last = response.events.at(-1);
    if (last) {
      this.#last = { key: last.kv.key.slice(), revision: last.kv.modRevision, deleted: last.deleted };
      return { events: this.#cursor.events(response) };
    }
    if (!this.#cursor.progress(response.header.revision)) return NO_EVENTS;
    this.#owesProgress = false;
    return { progress: response.header.revision };
  }

  /** The call is over. Most of the time another one can go on. */
  #lost(failure: Failure | undefined): LinkUpdate {
    this.#drop();
    if (failure === undefined || isPassing(failure) || !isRefusal(failure)) return NO_EVENTS;
    if (!isStaleToken(failure)) return { error: toError(failure, this.#context) };
    this.#client.channel.forgetToken();
    return NO_EVENTS;
  }

  #cancelled({ compactRevision, cancelReason }: WatchResponse): LinkUpdate {
    this.#drop();
    if (compactRevision > 0n) return { error: expired(`${this.#cursor.revision}`, `${compactRevision}`) };
    if (cancelReason.includes('permission denied')) {
      return { error: unavailable(`${this.#context.what}: ${cancelReason}`) };
    }
    if (cancelReason.includes('auth')) this.#client.channel.forgetToken();
    return NO_EVENTS;
  }

  #drop(): void {
    this.#link?.leave();
    this.#link?.call.cancel();
    this.#link = undefined;
  }
}

/** Whether trying again will not help. Broken connections are reported in many ways. */
function isRefusal({ code, error }: Failure): boolean {
  return error !== undefined || code === CODE.permissionDenied || code === CODE.unauthenticated || code === CODE.invalidArgument;
}
