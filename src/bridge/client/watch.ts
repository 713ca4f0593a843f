import { whenAborted } from '../../watch/abort.ts';
import {
  type BookmarkEvent,
  type ErrorEvent,
  isErrorEvent,
  isStatus,
  type MissingAdded,
  type MissingError,
  type WatchEvent,
} from '../../watch/event.ts';
import { quietly } from '../../watch/failures.ts';
import { BOOKMARK_INTERVAL, type Bookmark, fromAnnotation, isInitialEventsEnd, RETRY_AFTER } from '../protocol.ts';
import type { ClientSettings, ClientWatch, Open, StateDetail } from './client-options.ts';
import { type Action, ClientMachine, type ClientState, ENDED, LOST, type Loss, toFailure } from './machine.ts';
import { ClientQueue, ClientReads } from './reads.ts';
import { checkLength } from './stream.ts';
import { type Connection, type ConnectionEnd, messageOf, type Receiver } from './transport.ts';

/**
 * A thin shell around {@link ClientMachine}. It opens connections, owns the queue and the only timer, and performs the machine's
 * actions.
 *
 *     connection --frame--> decode -> machine.accept -> queue -> next(), batches() ...
 *          '-----over, timer--> machine -> Action         '--- room again: resume, or connect
 */
export class Client<E extends WatchEvent> extends ClientReads<E> implements ClientWatch<E>, Receiver {
  dropped: number = 0;
  readonly #settings: ClientSettings<E>;
  readonly #machine: ClientMachine;
  protected readonly queue: ClientQueue<E>;
  readonly #open: Open;
  #connection: Connection | undefined;
  refusal: (() => ConnectionEnd) | undefined;
  #cancelTimer: (() => void) | undefined;
  #told: ClientState = 'connecting';
  /** The queue is full. The connection is paused or closed until there is room. */
  #blocked: boolean = false;
  /** The first version that has arrived on any connection. A requested snapshot is complete by then. */
  #first: string | undefined;
  /** It is known where the watch begins: a version in the URL of a later attempt does not count. */
  #begun: boolean;
  /** This connection has asked for BOOKMARKs. */
  #asks: boolean = false;
  /** The reader sees BOOKMARKs that only keep the version current. */
  #shows: boolean = false;
  readonly #timing: ServerTiming = new ServerTiming();
  lastContactMs: number | undefined;
  #openedMs: number = 0;
  readonly #leave: () => void;
  readonly #leavePage: () => void;

  constructor(settings: ClientSettings<E>, open: Open) {
    super();
    const { resourceVersion } = settings;
    // In Kubernetes, `0` means any version, so it is the same as none.
    const position = resourceVersion === '0' ? undefined : resourceVersion || undefined;
    this.#settings = settings;
    this.#begun = !!resourceVersion;
    this.#machine = new ClientMachine(settings, position);
    this.queue = new ClientQueue(settings);
    this.queue.readVersion = position;
    this.#open = open;
    this.#leave = whenAborted(settings.signal, () => this.stop());
    this.#leavePage = listenToPage({ network: () => this.#look(false), shown: () => this.#look(true) });
    this.#connect();
  }

  get state(): ClientState {
    return this.#machine.state;
  }

  get resourceVersion(): string | undefined {
    return this.queue.allRead ? this.#machine.position : this.queue.readVersion;
  }

  get stopped(): boolean {
    return this.state === 'closed';
  }

  protected override onGap(missed: number): void {
    this.#call(() => this.#settings.onGap?.(missed));
  }

  protected override served(): void {
    if (!this.#blocked) return;
    if (!this.#connection) {
      // Not at the first free place: a new connection per event would be expensive.
      if (this.queue.load <= 0.5) this.#connect();
    } else if (this.queue.load < 1) {
      this.#blocked = false;
      this.#awaitSign();
      this.#connection.pause!(false);
    }
  }

  /** There is no room, and nothing may be lost. */
  get #full(): boolean {
    return this.queue.load >= 1 && this.#settings.overflow === 'wait';
  }

  stop(): void {
    this.#perform(this.#machine.close());
  }

  protected override discard(): void {
    this.dropped += this.queued;
    this.queue.clear();
    this.stop();
  }

  reconnect(): void {
    if (this.#connection) this.over({ code: LOST, why: 'reconnect', planned: 'client' });
    if (this.state === 'waiting') this.#connect();
  }

  /** The page tells of its network, or is shown again (`isBack`). Keeps a connection that could not be continued. */
  #look(isBack: boolean): void {
    const silentMs = this.#settings.clock.now() - (this.lastContactMs ?? 0);
    const isFine = isBack && (this.#blocked || silentMs < ASK_SHARE * (this.#idleTimeoutMs || Infinity));
    const { state } = this;
    if (state === 'open' ? this.#machine.position && !isFine : state === 'waiting' || !isBack) this.reconnect();
  }

  get #idleTimeoutMs(): number {
    return this.#settings.idleTimeoutMs ?? this.#timing.idleTimeoutMs;
  }

  opened(): void {
    this.#machine.opened();
    this.#openedMs = this.#settings.clock.now();
    this.alive();
    this.#tell();
  }

  alive(isHeartbeat: boolean = false): void {
    if (isHeartbeat) this.#timing.heartbeat();
    this.lastContactMs = this.#settings.clock.now();
    this.#awaitSign();
  }

  #awaitSign(): void {
    // Before `open`, the connect timeout applies. While the queue is full, only data already on its way arrives, so no timeout
    // applies.
    if (this.state !== 'open' || this.#blocked) return;
    const idleTimeoutMs = this.#idleTimeoutMs;
    // Users should not have to wait long. A new connection shows whether the server can be reached.
    const asks = this.#settings.idleTimeoutMs === undefined && this.#machine.position && isShown();
    this.#expect(asks ? ASK_SHARE * idleTimeoutMs : idleTimeoutMs, asks ? () => this.reconnect() : undefined);
  }

  frame(text: string, id?: string): void {
    const event = toEvent(text, this.#settings);
    if (!event || this.stopped) return;
    const { resourceVersion } = event as { resourceVersion?: string };
    // The server's own ERROR, to this client only, is the one without a version. Nothing follows. Any other is an event like others.
    if (resourceVersion === undefined && isErrorEvent(event)) this.#refused(event);
    else this.#accept(event, { chars: text.length, version: resourceVersion || id || undefined });
  }

  over(end: ConnectionEnd, event?: E): void {
    const { code, why, hintMs, planned } = this.refusal?.() ?? end;
    const { clock, maxMs } = this.#settings;
    if (this.state === 'open' && clock.now() - this.#openedMs >= maxMs) this.#machine.lasted();
    const error = isStatus(why) ? why : toFailure(code, why);
    // Not every host of a server can break off a response. A server that has said when to reconnect has not ended its stream.
    const { retryAfterMs } = this.#timing;
    const isPlanned = retryAfterMs !== undefined && (code === ENDED || code === LOST);
    const loss: Loss = {
      code: isPlanned ? LOST : code,
      error,
      planned: planned ?? (isPlanned ? 'server' : undefined),
      // Without a hint it is NaN, which means none.
      hintMs: hintMs || (error.details?.retryAfterSeconds as number) * 1_000 || retryAfterMs,
    };
    this.#perform(this.#machine.over(loss), event);
  }

  #refused(event: ErrorEvent & E): void {
    const { code, details, reason } = event.object;
    // A client that was cut for being too slow reconnects. It gets what it missed if the server still has it.
    const back = details?.missed ?? details?.retryAfterSeconds;
    // A snapshot that fails before its first object: nothing is lost.
    if (reason === 'ServerTimeout') this.#machine.refused();
    this.over({ code: back === undefined ? Math.min(code, 410) : LOST, why: event.object }, event);
  }

  #accept(event: E, more: { chars: number; version: string | undefined }): void {
    const { version } = more;
    const object = event.object as Partial<Bookmark> | undefined;
    const mark = event.type === 'BOOKMARK' && version && object?.metadata?.resourceVersion === version;
    const shown = !mark || this.#shows || isInitialEventsEnd(event);
    if (this.#settings.overflow === 'disconnect' && this.queue.load >= 1 && shown) {
      this.dropped++;
      this.#perform(this.#machine.close(toFailure(410, 'the reader is too slow')));
      return;
    }
    // The position may have come with a BOOKMARK that the reader does not see.
    if (this.queue.allRead) this.queue.readVersion = this.#machine.position;
    const order = this.#machine.accept(version);
    this.#first ||= version;
    // A snapshot ends with a BOOKMARK even for clients that have not asked for any, and get no other one.
    if (mark && this.#asks) {
      this.#timing.learn(object);
      this.alive();
    }
    if (order === 'foreign') this.over({ code: 410, why: `${version} does not follow ${this.#machine.position}` });
    else if (shown && (mark || order === 'next')) this.#push(event, { ...more, version: this.#machine.position });
  }

  #push(event: E, more: { chars: number; version: string | undefined }): void {
    const { overflow } = this.#settings;
    const queue = this.queue;
    while (queue.load >= 1 && overflow !== 'wait') {
      this.dropped++;
      if (overflow === 'drop-newest') {
        queue.miss();
        return;
      }
      overflow satisfies 'drop-oldest' | 'disconnect'; // the second has ended it before
      queue.drop();
    }
    queue.push(event, more);
    this.serve();
    if (this.#full) this.#block();
  }

  #block(): void {
    if (this.#connection?.pause) {
      this.#blocked = true;
      this.#expect(0);
      this.#connection.pause(true);
    } else if (this.#machine.full(this.queue.weight >= 1)) {
      this.#hangUp();
      this.#blocked = true;
      this.#tell();
    } else if (this.queue.weight >= 1) this.over({ code: 410, why: 'the reader is too slow' });
  }

  #perform(action: Action | undefined, event?: E): void {
    if (!action) return;
    const { error, delayMs, notice } = action;
    this.#hangUp();
    if (notice) this.queue.pushError(event ?? ({ type: 'ERROR', object: error } as WatchEvent as E));
    if (this.stopped) {
      this.#leave();
      this.#leavePage();
    } else this.#cancelTimer = this.#settings.clock.schedule(delayMs as number, () => this.#connect());
    this.#tell({ error, delayMs });
    this.serve();
  }

  #connect(): void {
    // Every new connection would add to a full queue.
    this.#blocked = this.#full;
    if (this.#blocked) return;
    this.#machine.connect();
    this.#timing.retryAfterMs = undefined;
    this.#expect(this.#settings.connectTimeoutMs);
    try {
      this.#connection = this.#open((query) => this.#complete(query), this);
      // User code, such as a custom `fetch`, may have stopped the watch.
      if (this.stopped) this.#hangUp();
    } catch (error) {
      // For example, a page may not open an unencrypted connection. Trying again would not help.
      this.over({ code: 400, why: messageOf(error) });
    }
    this.#tell();
  }

  /** Adds to the query of an attempt where to resume, and whether to send BOOKMARKs. */
  #complete(query: URLSearchParams): void {
    const machine = this.#machine;
    const given = query.get('resourceVersion');
    if (given && given !== '0') {
      if (!this.#begun) machine.position = this.queue.readVersion = given;
      query.delete('resourceVersion');
    }
    this.#begun = true;
    this.#shows = isTrue(query, BOOKMARKS);
    if (this.#settings.bookmarks && !query.has(BOOKMARKS)) query.set(BOOKMARKS, 'true');
    this.#asks = isTrue(query, BOOKMARKS);
    if (machine.position) {
      query.set('resourceVersion', machine.position);
      // The requested snapshot has arrived. A new connection must not ask for it again.
      if (this.#first) query.delete(SNAPSHOT);
    }
    machine.copying = isTrue(query, SNAPSHOT);
  }

  #hangUp(): void {
    this.#expect(0);
    this.#blocked = false;
    this.#connection?.close();
    this.#connection = this.refusal = undefined;
  }

  /** Declares the connection lost if nothing arrives in time; 0: no limit. The delay between connections uses the same timer. */
  #expect(timeoutMs: number, late?: () => void): void {
    this.#cancelTimer?.();
    if (timeoutMs > 0) {
      const why = `no data for ${timeoutMs} ms`;
      this.#cancelTimer = this.#settings.clock.schedule(timeoutMs, late ?? (() => this.over({ code: LOST, why })));
    }
  }

  /** Reports a state change, after it has happened. */
  #tell(detail: StateDetail = {}): void {
    const { state } = this;
    if (state === this.#told) return;
    this.#told = state;
    this.#call(() => this.#settings.onStateChange?.(state, detail));
  }

  /** Calls user code, which may be async. If it throws, the watch ends and its reader gets the error. */
  #call(code: () => unknown): void {
    quietly(code, (error) => {
      this.failure = { error };
      this.#told = 'closed';
      this.discard();
    });
  }
}

/** After this share of the idle timeout without data, a page that is shown makes a new connection. */
const ASK_SHARE = 0.4;

/** The parameters that ask for BOOKMARKs, and for the snapshot. */
const BOOKMARKS = 'allowWatchBookmarks';
const SNAPSHOT = 'sendInitialEvents';

function isTrue(query: URLSearchParams, name: string): boolean {
  return /^(true|1)$/.test(query.get(name) ?? '');
}

/**
 * The events that a client delivers: a hub's own events, the objects of a snapshot as ADDED, the BOOKMARK that ends it, and an ERROR
 * when the watch cannot continue. A client cannot know whether the hub has a snapshot.
 */
export type ClientEvent<E extends WatchEvent = WatchEvent> = E | MissingAdded<E> | MissingBookmark<E> | MissingError<E>;

/** The BOOKMARK, unless it is an `E` already. */
type MissingBookmark<E> = BookmarkEvent extends E ? never : BookmarkEvent;

/** Decodes the event in a frame; undefined if the codec finds none. Throws for a frame that is invalid or too long. */
function toEvent<E extends WatchEvent>(text: string, settings: ClientSettings<E>): E | undefined {
  const { codec, maxFrameChars } = settings;
  checkLength(text.length, maxFrameChars);
  // Created only when it is needed, so that the client can be loaded where there is no TextEncoder, such as in Jest's jsdom.
  if (codec) return codec.decode(new TextEncoder().encode(text));
  const value = JSON.parse(text) as Partial<WatchEvent> | null;
  if (typeof value?.type === 'string' && value.type && 'object' in value) return value as E;
  throw new Error(`no event: ${text.slice(0, 80)}`);
}

/** A connection without data is lost after this many intervals between BOOKMARKs. */
const IDLE_INTERVALS = 5;
/** That interval if the server does not report it, and the limits of what it can report. */
const DEFAULT_INTERVAL_MS = 30_000;
const MIN_INTERVAL_MS = 3_000;
const MAX_INTERVAL_MS = 86_400_000;

/** What the server has said about its timing. */
class ServerTiming {
  /**
   * A connection without data for this long is lost; 0 (never) before the first sign of life. Outlasts a connection: the server
   * of the next one is expected to do the same.
   */
  idleTimeoutMs: number = 0;
  /** When to reconnect, if this connection's last BOOKMARK has said that its server is going away. */
  retryAfterMs: number | undefined;

  /** The server has sent a sign of life that carries nothing else. */
  heartbeat(): void {
    this.idleTimeoutMs ||= IDLE_INTERVALS * DEFAULT_INTERVAL_MS;
  }

  /** The server has sent a BOOKMARK, and will send more. */
  learn(bookmark: Partial<Bookmark>): void {
    const intervalMs = fromAnnotation(bookmark, BOOKMARK_INTERVAL) ?? DEFAULT_INTERVAL_MS;
    this.idleTimeoutMs = IDLE_INTERVALS * Math.min(Math.max(intervalMs, MIN_INTERVAL_MS), MAX_INTERVAL_MS);
    this.retryAfterMs = fromAnnotation(bookmark, RETRY_AFTER);
  }
}

/** The part of the global object of a page, or of its workers, that tells of its network. Elsewhere it does not exist. */
interface Page {
  addEventListener?(type: string, listener: () => void, options: { signal: AbortSignal }): void;
  readonly document?: { readonly visibilityState: string };
}

/** What a client is told about the page that it runs in. */
interface PageListener {
  /** The network has come, gone or changed. */
  network(): void;
  /** The page is shown again. */
  shown(): void;
}

/** Whether somebody may be looking at the page. */
function isShown(): boolean {
  return (globalThis as Page).document?.visibilityState === 'visible';
}

/** Tells a listener about the page. Returns a function that removes the listener. */
function listenToPage({ network, shown }: PageListener): () => void {
  const page = globalThis as Page;
  const end = new AbortController();
  const { signal } = end;
  const onVisibility = (): void => {
    if (isShown()) shown();
  };
  page.addEventListener?.('online', network, { signal });
  page.addEventListener?.('offline', network, { signal });
  page.addEventListener?.('visibilitychange', onVisibility, { signal });
  return () => end.abort();
}
