/**
 * The members of one etcd as if they were one: requests go to one member until it fails, then to the next. After each round of
 * failures, it waits, longer each time and with jitter, until the request has run out of time.
 *
 *     ask ---> member 1 --fails--> member 2 --fails--> wait ---> member 1 ...      until an answer, a refusal, or the time is up
 *
 * A read may be repeated. A write is repeated only if the last attempt was never sent, or was refused because etcd is busy:
 * otherwise, its outcome is unknown.
 *
 * Before the first request on a session, its member's version is checked, and a token is obtained for the user, if there is one.
 */

import { type ClientHttp2Session, connect, type OutgoingHttpHeaders, type SecureClientSessionOptions } from 'node:http2';
import { whenAborted } from '../../../watch/abort.ts';
import { Backoff } from '../../../watch/backoff.ts';
import type { Clock } from '../../../watch/clock.ts';
import { WatchError } from '../../../watch/errors.ts';
import { internalError } from '../../statuses.ts';
import { CallStream, CODE, type Failure, isPassing, isStaleToken, mayBeDone, type Outcome } from './call-stream.ts';
import { readText, writeAuthenticate } from './messages.ts';

/** What a channel needs to know. */
export interface ChannelConfig extends ConnectionConfig {
  readonly endpoints: readonly string[];
  readonly user: string | undefined;
  /** A function is called for each token. */
  readonly password: string | (() => string) | undefined;
  readonly clock: Clock;
  readonly random: () => number;
  readonly requestTimeoutMs: number;
}

/** How a request may be made. */
interface AskOptions {
  /** Whether it changes something, and so must not be repeated. */
  readonly isWrite?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

export const RANGE = '/etcdserverpb.KV/Range';
export const TXN = '/etcdserverpb.KV/Txn';
export const WATCH = '/etcdserverpb.Watch/Watch';
export const LEASE_GRANT = '/etcdserverpb.Lease/LeaseGrant';
export const STATUS = '/etcdserverpb.Maintenance/Status';
const AUTHENTICATE = '/etcdserverpb.Auth/Authenticate';

const NONE: Record<string, string> = {};
const MIN_WAIT_MS = 50;
const MAX_WAIT_MS = 2_000;

export class Channel {
  readonly #config: ChannelConfig;
  readonly #connections: readonly Connection[];
  /** Sessions whose member has an acceptable version. */
  readonly #checked: WeakSet<object> = new WeakSet();
  #current: number = 0;
  #token: string | undefined;
  /** End the waits between attempts. */
  readonly #waits: Set<() => void> = new Set();
  #closed: boolean = false;

  constructor(config: ChannelConfig) {
    this.#config = config;
    this.#connections = config.endpoints.map((endpoint) => new Connection(endpoint, config));
  }

  /** The delays after failures of members, for this channel and for callers that do their own retries. */
  backoff(): Backoff {
    return new Backoff({ minMs: MIN_WAIT_MS, maxMs: MAX_WAIT_MS, factor: 2, random: this.#config.random });
  }

  /** Makes a request until it is answered or refused, or its time is up. Rejects only with the reason of its signal. */
  async ask(path: string, message: Uint8Array, options: AskOptions = {}): Promise<Outcome> {
    const { clock, requestTimeoutMs } = this.#config;
    const deadline = clock.now() + requestTimeoutMs;
    let backoff: Backoff | undefined;
    let before: Failure | undefined;
    for (let attempts = 1; ; attempts++) {
      if (this.#closed) return CLOSED;
      const connection = this.#connection;
      const outcome = await (this.#isPrepared(connection)
        ? connection.ask(path, message, {
            headers: NONE,
            timeoutMs: this.#timeout(deadline, options.isWrite),
            signal: options.signal,
          })
        : this.#attempt(connection, { path, message, options, deadline }));
      if ('answer' in outcome || !isPassing(outcome.failure)) return outcome;
      if (this.#closed) return CLOSED;
      this.leave(connection);
      if (options.isWrite && mayBeDone(outcome.failure)) return outcome;
      // The last attempt may have had no time left; the failure before it says more.
      before = outcome.failure.code === CODE.deadlineExceeded && before ? before : outcome.failure;
      backoff ??= this.backoff();
      const waitMs = attempts % this.#connections.length === 0 ? backoff.failed({}) : 0;
      if (clock.now() + waitMs >= deadline) return { failure: before };
      if (waitMs > 0) await this.wait(waitMs, options.signal);
    }
  }

  /** Opens a watch's call at the current member, which must just have answered a request: see `../etcd-changes.ts`. */
  stream(path: string): { readonly call: CallStream; readonly leave: () => void } | { readonly failure: Failure } {
    if (this.#closed) return CLOSED;
    const connection = this.#connection;
    const call = connection.stream(path, { ...this.#headers(), hasleader: 'true' });
    if ('code' in call) {
      this.leave(connection);
      return { failure: call };
    }
    return { call, leave: () => this.leave(connection) };
  }

  /** Switches to the next member, unless that has already been done. */
  leave(connection: Connection = this.#connection): void {
    if (connection === this.#connection) this.#current = (this.#current + 1) % this.#connections.length;
  }

  /** Forgets the token: the next request gets a new one. */
  forgetToken(): void {
    this.#token = undefined;
  }

  /** Waits between two attempts. Ends early when this is closed; rejects with the reason of the signal. */
  async wait(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.#closed) return;
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#waits.add(end);
    const cancel = this.#config.clock.schedule(waitMs, end);
    const leave = whenAborted(signal, end);
    await ended;
    cancel();
    leave();
    this.#waits.delete(end);
    signal?.throwIfAborted();
  }

  /** Ends pending requests; later ones fail. */
  close(): void {
    this.#closed = true;
    for (const end of this.#waits) end();
    for (const each of this.#connections) each.close();
  }

  get #connection(): Connection {
    return this.#connections[this.#current] as Connection;
  }

  /** Whether a request can be made right away: the common case, without a user. */
  #isPrepared({ session }: Connection): boolean {
    return this.#config.user === undefined && session !== undefined && this.#checked.has(session);
  }

  #headers(): Record<string, string> {
    return this.#token === undefined ? {} : { token: this.#token };
  }

  async #attempt(
    connection: Connection,
    { path, message, options, deadline }: { path: string; message: Uint8Array; options: AskOptions; deadline: number },
  ): Promise<Outcome> {
    const { signal, isWrite } = options;
    let asked = path;
    const ask = async (to: string, body: Uint8Array): Promise<Outcome> => {
      if (this.#closed) return CLOSED;
      asked = to;
      const timeoutMs = this.#timeout(deadline, isWrite && to === path);
      return connection.ask(to, body, { headers: this.#headers(), timeoutMs, signal });
    };
    const attempt = async (): Promise<Outcome> => {
      const failure = await this.#prepare(connection, ask);
      return failure ? { failure } : ask(path, message);
    };
    const outcome = await attempt();
    // If the request for a token was refused, there is no stale token.
    if (this.#config.user === undefined || asked === AUTHENTICATE) return outcome;
    if ('answer' in outcome || !isStaleToken(outcome.failure)) return outcome;
    // etcd has not processed the request, so it may be repeated, with a new token.
    this.forgetToken();
    return attempt();
  }

  /** The timeout of an attempt. A read leaves time for the other members. */
  #timeout(deadline: number, isWrite: boolean | undefined): number {
    const leftMs = Math.max(Math.ceil(deadline - this.#config.clock.now()), 1);
    return isWrite ? leftMs : Math.ceil(leftMs / this.#connections.length);
  }

  /** Does what a session needs before its first request. Returns the failure, if any: then the request was not sent. */
  async #prepare(
    connection: Connection,
    ask: (path: string, body: Uint8Array) => Promise<Outcome>,
  ): Promise<Failure | undefined> {
    const { user, password = '' } = this.#config;
    if (user !== undefined && this.#token === undefined) {
      const secret = typeof password === 'function' ? password() : password;
      const outcome = await ask(AUTHENTICATE, writeAuthenticate(user, secret));
      if ('failure' in outcome) return { ...outcome.failure, sent: false };
      this.#token = readText(outcome.answer);
    }
    if (connection.session && this.#checked.has(connection.session)) return undefined;
    const outcome = await ask(STATUS, new Uint8Array(0));
    if ('failure' in outcome) return { ...outcome.failure, sent: false };
    const version = readText(outcome.answer);
    if (isTooOld(version)) return tooOld(connection.endpoint, version);
    if (connection.session) this.#checked.add(connection.session);
    return undefined;
  }
}

const CLOSED: { readonly failure: Failure } = {
  failure: {
    code: CODE.unavailable,
    message: 'closed',
    sent: false,
    error: new WatchError('CLOSED', 'the storage is closed'),
  },
};

function tooOld(endpoint: string, version: string): Failure {
  const seen = version.slice(0, 40) || 'of no version';
  const message = `${endpoint} is etcd ${seen}: 3.4.31, 3.5.13 or newer is needed, whose progress notifications can be trusted`;
  return { code: CODE.invalidArgument, message, sent: false, error: internalError(message) };
}

/** The first release of each line that answers a progress request only after all pending events. */
const FIRST: Readonly<Record<string, number>> = { '3.4': 31, '3.5': 13 };

/** Whether an etcd of this version may answer a progress request before pending events, so that a cache would lose them. */
export function isTooOld(version: string): boolean {
  const found = /^v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})/.exec(version);
  if (!found) return true;
  const [major = 0, minor = 0, patch = 0] = found.slice(1).map(Number);
  const first = FIRST[`${major}.${minor}`];
  if (first !== undefined) return patch < first;
  return major < 3 || (major === 3 && minor < 4);
}

/** What a connection needs to know. */
interface ConnectionConfig {
  /** A function is called for each session. */
  readonly tls: SecureClientSessionOptions | (() => SecureClientSessionOptions);
  readonly clock: Clock;
  readonly connectTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly maxResponseBytes: number;
}

interface CallOptions {
  readonly headers: OutgoingHttpHeaders;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** How much of one call a server may send before it is read. */
const WINDOW_BYTES = 1_048_576;
const SESSION_WINDOW_BYTES = 8_388_608;
/** Node's own limit for a session, in MB. Our own limits apply first. */
const SESSION_MEMORY = 4_096;

interface Use {
  watches: number;
  /** How many of its calls are watches. */
  calls: number;
  /** When it got its first request after its last answer. Infinity: none is unanswered. */
  askedMs: number;
}

export /**
 * One member of etcd, over HTTP/2: a session that is opened when it is needed, and again after it broke. gRPC is little more than
 * HTTP/2 with five bytes before each message, so Node's own client will do, at half the cost of a gRPC library; see docs/etcd.md.
 *
 * Sessions with watches are pinged, including those that take no new calls: otherwise, a paused member or a dead link would go
 * unnoticed. etcd ends sessions that are pinged more often than every five seconds, or without an open call, so a session without
 * watches is not pinged, but abandoned once it has left requests unanswered for that long.
 */
class Connection {
  readonly endpoint: string;
  readonly #config: ConnectionConfig;
  #session: ClientHttp2Session | undefined;
  /** Open sessions, including those that take no new calls because etcd is about to end them. */
  readonly #open: Map<ClientHttp2Session, Use> = new Map();
  #cancelTimer: (() => void) | undefined;
  /** Why the last call got no answer: the next one may only learn that its session has ended. */
  #why: string | undefined;

  constructor(endpoint: string, config: ConnectionConfig) {
    this.endpoint = endpoint;
    this.#config = config;
  }

  /** Changes with every session. Absent while there is none. */
  get session(): object | undefined {
    return this.#session;
  }

  /** Sends a request, and resolves with its answer. Rejects only with the reason of its signal. */
  async ask(path: string, message: Uint8Array, { headers, timeoutMs, signal }: CallOptions): Promise<Outcome> {
    signal?.throwIfAborted();
    const call = this.#begin(path, headers);
    if ('code' in call) return { failure: call };
    call.end(message);
    const stopClock = this.#config.clock.schedule(timeoutMs, () => {
      call.cancel({ code: CODE.deadlineExceeded, message: `no answer within ${timeoutMs} ms`, sent: true });
    });
    const leave = whenAborted(signal, () => call.cancel());
    const outcome = await call.whole();
    stopClock();
    leave();
    const isAway = 'failure' in outcome && outcome.failure.code === CODE.unavailable;
    this.#why = isAway ? outcome.failure.message : undefined;
    signal?.throwIfAborted();
    return outcome;
  }

  /** Opens a call with many messages, which lasts until either side ends it. */
  stream(path: string, headers: OutgoingHttpHeaders): CallStream | Failure {
    const opened = this.#begin(path, headers, true);
    if (!('code' in opened) && !this.#cancelTimer) this.#keepAlive();
    return opened;
  }

  /** Ends the session and every call on it. The next call opens a new one. */
  close(): void {
    this.#session = undefined;
    this.#rest();
    for (const session of this.#open.keys()) session.destroy(new Error('closed'));
  }

  #begin(path: string, headers: OutgoingHttpHeaders, isWatch: boolean = false): CallStream | Failure {
    const { clock, keepAliveMs, maxResponseBytes } = this.#config;
    try {
      this.#session ??= this.#connect();
      const session = this.#session;
      const use = this.#open.get(session) as Use;
      const all = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers', ...headers };
      const stream = session.request(all);
      use.calls++;
      if (isWatch) use.watches++;
      use.askedMs = Math.min(use.askedMs, clock.now());
      stream.on('response', () => {
        use.askedMs = Infinity;
      });
      const onEnd = (): void => {
        use.calls--;
        if (isWatch) use.watches--;
        if (isWatch && this.#watched.length === 0) this.#rest();
        // Without watches, nothing else would show that a session is dead.
        const isSilent = use.watches === 0 && clock.now() - use.askedMs >= keepAliveMs;
        if (this.#session === session) {
          // A session has 2^30 ids for its calls. The first call that gets none is its last.
          if (session.connecting || !(isSilent || stream.id === undefined)) return;
          this.#session = undefined;
        }
        // It is not used again, but its other calls go on.
        if (use.calls === 0) session.destroy();
      };
      return new CallStream(stream, { maxBytes: maxResponseBytes, onEnd, reasonOf: this.#reasonOf });
    } catch (error) {
      this.close();
      const message = `${this.endpoint}: ${this.#reasonOf(error as Error)}`;
      return { code: CODE.unavailable, message, sent: false };
    }
  }

  /** An error may only say that its session has ended. */
  readonly #reasonOf = ({ code, message }: NodeJS.ErrnoException): string =>
    code === 'ERR_HTTP2_INVALID_SESSION' ? (this.#why ?? message) : message;

  #connect(): ClientHttp2Session {
    const { tls, clock, connectTimeoutMs } = this.#config;
    const settings = { enablePush: false, initialWindowSize: WINDOW_BYTES };
    const certificates = typeof tls === 'function' ? tls() : tls;
    const session = connect(this.endpoint, { ...certificates, settings, maxSessionMemory: SESSION_MEMORY });
    const stopClock = clock.schedule(connectTimeoutMs, () => {
      session.destroy(new Error(`no connection to ${this.endpoint} within ${connectTimeoutMs} ms`));
    });
    const forget = (): void => {
      stopClock();
      if (this.#session === session) this.#session = undefined;
    };
    session.on('connect', () => {
      stopClock();
      // It may have been destroyed since it was connected, within the same tick.
      if (!session.destroyed) session.setLocalWindowSize(SESSION_WINDOW_BYTES);
    });
    // What it says of a session that is refused once it is connected, streams do not: it has ended before they begin.
    session.socket.on('error', ({ message }) => {
      this.#why = message;
    });
    session.on('goaway', forget);
    session.on('error', forget);
    session.on('close', () => {
      forget();
      this.#open.delete(session);
    });
    this.#open.set(session, { watches: 0, calls: 0, askedMs: Infinity });
    return session;
  }

  get #watched(): ClientHttp2Session[] {
    return [...this.#open.keys()].filter((session) => !session.destroyed && this.#open.get(session)?.watches);
  }

  #keepAlive(): void {
    const { clock, keepAliveMs } = this.#config;
    this.#rest();
    if (this.#watched.length > 0) this.#cancelTimer = clock.schedule(keepAliveMs, () => this.#ping());
  }

  #ping(): void {
    const { clock, keepAliveMs } = this.#config;
    // A session that is still connecting has a separate time limit.
    const silent = new Set(this.#watched.filter((session) => !session.connecting));
    const pinged = clock.schedule(keepAliveMs, () => {
      for (const session of silent) session.destroy(new Error(`${this.endpoint} was silent for ${keepAliveMs} ms`));
      this.#keepAlive();
    });
    this.#cancelTimer = pinged;
    for (const session of silent) {
      session.ping((error) => {
        if (!error) silent.delete(session);
        if (silent.size === 0 && this.#cancelTimer === pinged) this.#keepAlive();
      });
    }
  }

  #rest(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }
}
