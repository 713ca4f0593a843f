/**
 * What stores read from: sources, each opened once for all stores that use it.
 *
 *     source and options ---> Group ---> Feed: a watch, its state for people ---> folds: the state that the events add up to
 *     (a key)                   '------> Feed ...
 *
 * Who shares. Stores with the same source and connection options are in one group. If they also fold in the same way, they share one fold, and so its
 * state. Different folds share a feed until something has been read from it; a fold that comes later needs the events from the
 * start, so it gets a feed of its own.
 *
 * Invariants
 * - There is no feed without a fold, and no group without a feed.
 * - After a feed's `close` there is no connection, timer or listener, and its folds get nothing more.
 */
import { isPromise } from '../../watch/abort.ts';
import type { Clock } from '../../watch/clock.ts';
import { isRecord, isWatchError } from '../../watch/errors.ts';
import { type BookmarkEvent, type ErrorEvent, isErrorEvent, type WatchEvent } from '../../watch/event.ts';
import { Failures } from '../../watch/failures.ts';
import type { Watch } from '../../watch/watch.ts';
import type { Attempt, ClientWatch, ConnectOptions, StateDetail } from './client-options.ts';
import { connect } from './connect.ts';
import type { ClientState } from './machine.ts';
import { ShownConnection } from './shown-connection.ts';
import { toUrl } from './transport.ts';

/**
 * What a source function gets. Pass all of it to `connect`: if a client does not report its state, all that is known is that
 * events arrive.
 */
export interface OpenOptions extends Attempt {
  readonly onExpired: 'restart';
  readonly onStateChange: (state: ClientState, detail: StateDetail) => void;
}

/** What an informer says about its source. */
interface SourceState {
  readonly connected: boolean;
  readonly failures: number;
  readonly error?: unknown;
}

/** What else a watch of `E` may deliver. No store passes it on. */
type Delivered<E> = E | BookmarkEvent | ErrorEvent;

/**
 * Something that can be watched, such as an `Informer` of `watchmux/cache`, or a `Broadcaster`. The program that created it
 * runs and stops it.
 */
export interface Watchable<E> {
  watch(options: { readonly signal: AbortSignal }): Watch<Delivered<E>>;
  /** An informer's. */
  readonly state?: SourceState;
  addStateListener?(listener: () => void): () => void;
}

/**
 * Where a store gets its events: the URL of a hub; a function that returns one before each attempt, for example with a fresh
 * token; a function that opens a watch; or an object that has one, such as an informer. Two sources are the same if they are
 * the same text or the same object: create a function once, outside of components.
 */
export type Source<E> =
  | string
  | URL
  | ((options: OpenOptions) => string | URL | PromiseLike<string | URL> | Watch<Delivered<E>>)
  | Watchable<E>;

/** Connection options that a store sets itself. */
const OURS = ['signal', 'resourceVersion', 'onExpired', 'onStateChange', 'onGap', 'overflow'] as const;
export const TAKEN: readonly string[] = OURS;

/** Options of every store. Those of a connection apply only if the source is a URL, or a function that returns one. */
export interface SharedOptions<E = never> extends Omit<ConnectOptions<E>, (typeof OURS)[number]> {
  /** How long a lost connection is still shown as `live`, in milliseconds; default 2,000. */
  readonly graceMs?: number | undefined;
  /** How long there is no connection before it is shown as `offline`, in milliseconds; default 20,000. */
  readonly offlineMs?: number | undefined;
  /** How long the connection stays open after the last subscriber has left, in milliseconds; default 1,000. */
  readonly lingerMs?: number | undefined;
  /** Shortest time between two calls of a subscriber, in milliseconds; default 16, which is a frame. 0: one call per batch. */
  readonly flushIntervalMs?: number | undefined;
  /**
   * Called with every connection failure that is shown, and every error that your functions throw. Default: `console.error`,
   * once per kind.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** What a feed needs to know. */
export interface FeedOptions<E> {
  readonly source: Source<E>;
  readonly connect: ConnectOptions<E>;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly offlineMs: number;
}

export interface FeedReader<E extends WatchEvent> {
  /** The feed that it reads from now. */
  feed: Feed<E> | undefined;
  /** It needs no event, so it may begin anywhere. */
  readonly isIdle: boolean;
  take(events: readonly E[]): void;
  /** The events start over, with the state if the source has one. */
  restart(): void;
  connectionChanged(): void;
  /** Reports an error to those who listen for failures. Returns whether anybody does. */
  tell(error: unknown): boolean;
}

/** One watch, read for all who share it. */
export class Feed<E extends WatchEvent> {
  readonly readers: Set<FeedReader<E>> = new Set();
  readonly connection: ShownConnection;
  /** Something has been read. */
  isUsed: boolean = false;
  readonly #options: FeedOptions<E>;
  readonly #failures: Failures;
  #abort: AbortController = new AbortController();
  #watch: Watch<E> | undefined;

  constructor(options: FeedOptions<E>) {
    this.#options = options;
    this.#failures = new Failures('store', options);
    this.connection = new ShownConnection(options, { changed: () => this.#changed(), reconnect: () => this.#reconnect() });
  }

  open(): void {
    const { signal } = this.#abort;
    const { connection } = this;
    connection.begin();
    let last: E | undefined;
    const read = async (): Promise<void> => {
      this.#watch = this.#openWatch(signal);
      for await (const events of this.#watch.batches()) {
        if (signal.aborted) return; // these were queued before it started over
        this.isUsed = true;
        last = events.at(-1) as E;
        if (!isErrorEvent(last)) connection.heard();
        for (const reader of this.readers) reader.take(events);
      }
    };
    const ended = (error?: unknown): void => {
      if (!signal.aborted) connection.over(error ?? (last && isErrorEvent(last) ? last.object : undefined));
    };
    read().then(() => ended(), ended);
  }

  close(): void {
    this.connection.close();
    this.#abort.abort();
    void this.#watch?.return();
  }

  #reconnect(): void {
    const { signal } = this.#abort;
    if (signal.aborted) return;
    if (!this.connection.isOver) {
      (this.#watch as Partial<ClientWatch<E>> | undefined)?.reconnect?.();
      return;
    }
    this.#abort.abort();
    this.#abort = new AbortController();
    for (const reader of this.readers) reader.restart();
    this.open();
  }

  /** Opens the source, and reports how that goes. */
  #openWatch(signal: AbortSignal): Watch<E> {
    const { connection } = this;
    const { source, connect: given } = this.#options;
    const open: OpenOptions = {
      signal,
      onExpired: 'restart',
      onStateChange: (state, { error, delayMs }) => {
        if (state === 'open') connection.open();
        else if (state === 'closed') connection.over(error);
        // After a first 410 it starts over at once: a restarted server is not a failure worth showing.
        else connection.lost(delayMs || error?.code !== 410 ? error : undefined, delayMs);
      },
    };
    const settings = { ...given, ...open };
    if (isWatchable(source)) {
      const watch = source.watch({ signal }) as Watch<E>;
      this.#follow(source, signal);
      return watch;
    }
    if (typeof source !== 'function') return connect(marked(source, settings), settings) as Watch<E>;
    let first: unknown = firstOf(source, open);
    if (isRecord(first) && 'batches' in first) {
      const watch = first as unknown as Watch<E>;
      if (!('state' in watch)) connection.open();
      return watch;
    }
    const url = async (attempt: Attempt): Promise<URL> => {
      const answer = first ?? source({ ...open, ...attempt });
      first = undefined;
      return marked((await answer) as string | URL, settings);
    };
    return connect(url, settings) as Watch<E>;
  }

  /** A source without a state, such as a broadcaster, is always connected. */
  #follow(source: Watchable<E>, signal: AbortSignal): void {
    const look = (): void => {
      const { connected, failures, error } = source.state ?? { connected: true, failures: 0 };
      if (connected) this.connection.open();
      else if (failures > 0) this.connection.lost(error);
    };
    look();
    const leave = source.addStateListener?.(look);
    if (leave) signal.addEventListener('abort', leave, { once: true });
  }

  #changed(): void {
    const { status, error } = this.connection.state;
    const readers = [...this.readers];
    if (status === 'live') this.#failures.up(CONNECTION);
    else if (error && !readers.map((reader) => reader.tell(error)).includes(true)) this.#failures.down(CONNECTION, error);
    for (const reader of readers) reader.connectionChanged();
  }
}

const CONNECTION = 'the connection';

/** A function's first result. Only a wrong call is final; any other error that it throws is a failed attempt. */
function firstOf<E>(source: Extract<Source<E>, (...args: never) => unknown>, open: OpenOptions): unknown {
  try {
    const answer = source(open);
    if (isPromise(answer)) void answer.then(undefined, () => {}); // its awaiter gets the error
    return answer;
  } catch (error) {
    if (isWatchError(error, 'INVALID_ARGUMENT')) throw error;
    return Promise.reject(error);
  }
}

/** Asks for BOOKMARKs that the reader sees: the first one ends the initial state, whether the hub has a snapshot or not. */
function marked(url: string | URL, { bookmarks = true }: Pick<ConnectOptions<never>, 'bookmarks'>): URL {
  const to = new URL(toUrl(url));
  if (bookmarks && !to.searchParams.has('allowWatchBookmarks')) to.searchParams.set('allowWatchBookmarks', 'true');
  return to;
}

/** Whether a source has a watch, rather than a URL. */
function isWatchable<E>(source: Source<E>): source is Watchable<E> {
  return typeof source === 'object' && 'watch' in source;
}

/** Whether events are published into the source, as with a broadcaster or a hub: then none is from before the watch. */
export function beginsNow<E>(source: Source<E>): boolean {
  return isWatchable(source) && 'publish' in source;
}

/** Everything that reads from one source with one set of connection options. */
interface Group<E extends WatchEvent> {
  readonly folds: Map<string, FeedReader<E>>;
  readonly feeds: Set<Feed<E>>;
}

const groups: Map<string, Group<never>> = new Map();

/** The key of the connection, and that of what is built on it. */
export type Keys = readonly [connection: string, own: string];

/** What is shared under these keys, if anything. */
export function sharedOf<F>([key, own]: Keys): F | undefined {
  return groups.get(key)?.folds.get(own) as F | undefined;
}

/** Shares a reader under two keys, and lets it read. */
export function share<E extends WatchEvent>([key, own]: Keys, reader: FeedReader<E>, options: FeedOptions<E>): void {
  const group = (groups.get(key) as unknown as Group<E> | undefined) ?? { folds: new Map(), feeds: new Set() };
  groups.set(key, group as unknown as Group<never>);
  group.folds.set(own, reader);
  let feed = [...group.feeds].find(({ isUsed }) => !isUsed || reader.isIdle);
  const isNew = !feed;
  feed ??= new Feed<E>(options);
  // Readers that only look at the connection move to the new one.
  const left = isNew ? [...group.feeds].filter(({ readers }) => [...readers].every(({ isIdle }) => isIdle)) : [];
  for (const each of [reader, ...left.flatMap(({ readers }) => [...readers])]) {
    feed.readers.add(each);
    each.feed = feed;
  }
  for (const each of left) {
    group.feeds.delete(each);
    each.close();
  }
  group.feeds.add(feed);
  if (isNew) feed.open();
}

/** Undoes `share`; a feed that nobody else reads ends. Idempotent. */
export function unshare<E extends WatchEvent>([key, own]: Keys, reader: FeedReader<E>): void {
  const group = groups.get(key) as unknown as Group<E> | undefined;
  const { feed } = reader;
  if (!group || !feed?.readers.delete(reader)) return;
  if (group.folds.get(own) === reader) group.folds.delete(own);
  if (feed.readers.size > 0) return;
  group.feeds.delete(feed);
  feed.close();
  if (group.feeds.size === 0) groups.delete(key);
}

const ids: WeakMap<object, number> = new WeakMap();
let lastId = 0;

/** Returns the same text for equal values. Functions and instances of a class equal only themselves. */
export function textOf(value: unknown): string {
  if (value instanceof URL) return textOf(value.href);
  if (!isRecord(value) || Object.getPrototypeOf(value) !== Object.prototype) return identityOf(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${members.map(([name, member]) => `${name}:${textOf(member)}`).sort()}}`;
}

/** A text for this very object; of anything else, for its value. */
export function identityOf(value: unknown): string {
  if (Object(value) !== value) return typeof value === 'string' ? JSON.stringify(value) : String(value);
  const id = ids.get(value as object) ?? ++lastId;
  ids.set(value as object, id);
  return `#${id}`;
}

const IDS = /#\d+/g;
/** Keeps anybody from finding the text by trial. */
let seed: number | undefined;

/**
 * Returns the same key for the same text without revealing it, because it may contain a token. Only the numbers of objects
 * stay.
 */
export function toShownKey(text: string): string {
  seed ??= Math.random() * 2 ** 32;
  let hash = seed;
  for (const unit of text.replace(IDS, '#')) hash = Math.imul(hash ^ unit.charCodeAt(0), 0x01000193);
  return `${hash} ${text.match(IDS)}`;
}
