/**
 * One member of etcd, by HTTP/2: a session that is made when it is needed, and again after it broke. gRPC is little more than
 * HTTP/2 with five bytes before each message, so Node's own client will do, at half the cost of a gRPC library; see docs/etcd.md.
 *
 * Sessions with watches are pinged, including those that take no new calls: otherwise a paused member or a dead link would go
 * unnoticed. etcd ends sessions that are pinged more often than every five seconds, or without an open call: so a session without
 * watches is not pinged, but given up when it has left requests unanswered for as long.
 */
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders, type SecureClientSessionOptions } from 'node:http2';
import { whenAborted } from '../../../watch/abort.ts';
import type { Clock } from '../../../watch/clock.ts';
import { CallStream } from './call-stream.ts';
import { CODE, type Failure, type Outcome } from './outcome.ts';

/** What a connection needs to know. */
export interface ConnectionConfig {
  /** A function is called for each session. */
  readonly tls: SecureClientSessionOptions | (() => SecureClientSessionOptions);
  readonly clock: Clock;
  readonly connectTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly maxResponseBytes: number;
}

/** Limits of one call. */
export interface CallOptions {
  readonly headers: OutgoingHttpHeaders;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** How much a server may send of one call before it is read. */
const WINDOW_BYTES = 1_048_576;
const SESSION_WINDOW_BYTES = 8_388_608;
/** Node's own limit of what a session holds, in MB. The limits that count are ours. */
const SESSION_MEMORY = 4_096;

/** What is known of a session. */
interface Use {
  watches: number;
  /** Watches among them. */
  calls: number;
  /** When it was first asked something after its last answer. Infinity: it has answered. */
  askedMs: number;
}

export class Connection {
  readonly endpoint: string;
  readonly #config: ConnectionConfig;
  #session: ClientHttp2Session | undefined;
  /** Open sessions, including those that take no new calls because etcd is about to end them. */
  readonly #open: Map<ClientHttp2Session, Use> = new Map();
  #cancelTimer: (() => void) | undefined;
  /** Why the last call got no answer: the next one may only hear that its session has ended. */
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
    if ('failure' in outcome && outcome.failure.code === CODE.unavailable) this.#why = outcome.failure.message;
    signal?.throwIfAborted();
    return outcome;
  }

  /** Opens a call of many messages, which goes on until either side ends it. */
  stream(path: string, headers: OutgoingHttpHeaders): CallStream | Failure {
    const opened = this.#begin(path, headers, true);
    if (!('code' in opened) && !this.#cancelTimer) this.#keepAlive();
    return opened;
  }

  /** Ends the session and every call on it. The next call makes a new one. */
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
          // A session has 2^30 numbers for its calls. The first call that gets none is its last.
          if (session.connecting || !(isSilent || stream.id === undefined)) return;
          this.#session = undefined;
        }
        // It is not used again, and its other calls go on.
        if (use.calls === 0) session.destroy();
      };
      return new CallStream(stream, { maxBytes: maxResponseBytes, onEnd });
    } catch (error) {
      this.close();
      const { code, message } = error as NodeJS.ErrnoException;
      const why = code === 'ERR_HTTP2_INVALID_SESSION' ? (this.#why ?? message) : message;
      return { code: CODE.unavailable, message: `${this.endpoint}: ${why}`, sent: false };
    }
  }

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
      session.setLocalWindowSize(SESSION_WINDOW_BYTES);
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

  /** The sessions that have watches. */
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
