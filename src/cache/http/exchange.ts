/**
 * One request over `fetch`, from its start until its body has been read or dropped. It ends once, by whichever comes first: the
 * caller is done with it, the caller's signal aborts, or the server is silent for too long. After that nothing is pending, no
 * timer runs, no listener is left, and the connection is released, even if a custom `fetch` ignores its signal.
 */

import type { PerAttempt } from '../../bridge/client/client-options.ts';
import type { FetchLike } from '../../bridge/client/stream.ts';
import { headersOf, messageOf } from '../../bridge/client/transport.ts';
import { untilAborted, whenAborted } from '../../watch/abort.ts';
import { type Clock, systemClock } from '../../watch/clock.ts';
import { callable, isWatchError, WatchError, wholeNumbers } from '../../watch/errors.ts';
import { MAX_TOTAL_LIST_BYTES } from '../pager.ts';
import { checkType, shownUrl, toRefused } from './answer.ts';

/** What a request asks for, in addition to its URL. Default: a GET of JSON. */
export interface RequestSpec {
  readonly method?: string;
  readonly body?: string;
  readonly contentType?: string;
  readonly accept?: string;
}

/** A `fetch` that is given the method and the body, if there are any: each function of type {@link FetchLike} is one. */
type FetchAny = (url: URL, init: Parameters<FetchLike>[1] & { method?: string; body?: string }) => Promise<Response>;

/** What is needed to make requests. */
interface ExchangeSettings {
  readonly fetch: FetchAny;
  readonly headers: PerAttempt<Readonly<Record<string, string>>> | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

export class Exchange {
  readonly #means: ExchangeSettings;
  readonly #abort: AbortController = new AbortController();
  readonly #leave: () => void;
  #cancelTimer: (() => void) | undefined;
  #body: Response['body'] | undefined;
  #url: URL | undefined;

  /** @throws the reason of `outer` if it has aborted. */
  constructor(means: ExchangeSettings, outer: AbortSignal | undefined) {
    outer?.throwIfAborted();
    this.#means = means;
    this.#leave = whenAborted(outer, (reason) => this.end(reason));
    this.rearmTimeout();
  }

  /** Aborts at the end. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The server has sent something: the time limit starts again. */
  rearmTimeout(): void {
    const { clock, timeoutMs } = this.#means;
    this.disarmTimeout();
    if (this.signal.aborted || timeoutMs === 0) return;
    this.#cancelTimer = clock.schedule(timeoutMs, () => {
      this.end(new WatchError('TIMEOUT', `the server was silent for ${timeoutMs} ms`, { limit: timeoutMs }));
    });
  }

  /** From now on the server may be silent, as it may in a watch. */
  disarmTimeout(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  /** Ends the exchange. Idempotent: the first reason counts. */
  end(reason?: unknown): void {
    this.disarmTimeout();
    this.#leave();
    this.#abort.abort(reason);
    // For a `fetch` that ignores signals. If the body is being read, its reader releases it.
    this.#body?.cancel().catch(() => {});
  }

  async send(url: URL, question: RequestSpec = {}): Promise<Response> {
    const { fetch, headers } = this.#means;
    const own = await this.during(Promise.resolve(typeof headers === 'function' ? headers({ signal: this.signal }) : headers));
    const { accept = 'application/json', contentType, ...rest } = question;
    const all = { ...headersOf(own ?? undefined), accept, ...(contentType && { 'content-type': contentType }) };
    const init = { ...rest, headers: all, signal: this.signal, cache: 'no-store' } as const;
    this.#url = url;
    // `fetch` would pass on the caller's headers, all but `authorization`, to wherever a redirect leads.
    const answer = Promise.resolve(fetch(url, own ? { ...init, redirect: 'manual' } : init)).catch(this.#broken);
    // The response may come too late, from a `fetch` that ignores signals.
    answer.then(({ body }) => this.signal.aborted && void body?.cancel().catch(() => {})).catch(() => {});
    const response = await this.during(answer);
    this.#body = response.body;
    this.rearmTimeout();
    return response;
  }

  /**
   * Reads the whole body as text. That of a refusal may break off, or have an unreadable encoding: its code has arrived by
   * then, and a network error instead would say that the server cannot be reached.
   */
  async text(response: Response, limit: Limit): Promise<string> {
    const utf8 = new TextDecoder();
    const parts: string[] = [];
    try {
      await this.parts(response, limit, (bytes) => parts.push(utf8.decode(bytes, { stream: true })));
    } catch (error) {
      if (limit.option || (this.signal.aborted && !isWatchError(error, 'TIMEOUT'))) throw error;
    }
    return parts.join('') + utf8.decode();
  }

  /** Reads the whole body, part by part. Rejects with FRAME_TOO_LARGE if it is too long, or drops the rest. */
  async parts(response: Response, limit: Limit, onPart: (bytes: Uint8Array) => void): Promise<void> {
    if (!response.body) return;
    const reader = response.body.getReader();
    let bytes = 0;
    try {
      for (;;) {
        const { done, value } = await this.during(reader.read().catch(this.#broken));
        if (done) break;
        this.rearmTimeout();
        bytes += value.byteLength;
        if (bytes > limit.bytes) {
          if (limit.option) tooLong(limit);
          break;
        }
        onPart(value);
      }
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  /** Says where the network failed, and why: `fetch` hides that in the cause. */
  readonly #broken = (error: unknown): never => {
    if (isWatchError(error)) throw error;
    const { message, code, cause } = (error ?? {}) as Failed;
    const why = [message || code || (error && messageOf(error)), cause?.message || cause?.code].filter(Boolean).join(': ');
    const url = this.#url as URL;
    const shown = shownUrl(url);
    throw Object.assign(new Error(`${why.replaceAll(url.href, shown)} (${shown})`, { cause: error }), code && { code });
  };

  /** The same promise, but rejected as soon as the exchange ends. */
  during<R>(promise: Promise<R>): Promise<R> {
    return untilAborted(promise, this.signal);
  }
}

/** The members of network errors. */
type Failed = Partial<{ message: string; code: string; cause: Failed }>;

/** The same error, naming the URL that was requested. Errors that are not ours stay as they are. */
export function named(error: unknown, url: URL, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted || !isWatchError(error)) return error;
  // After the first line, so that a caret under a character of a selector stays below it.
  return new WatchError(
    error.code,
    error.message.replace(/\n|$/, (end) => ` (${shownUrl(url)})${end}`),
    error,
  );
}

// Shared by all requests over `fetch`: options, the check of the answer, and limits.

/** Options of {@link createListWatcher}. */
export interface ListWatcherOptions {
  /** The fetch function; default: the host's own. */
  readonly fetch?: FetchLike | undefined;
  /**
   * Headers of every request. A function is called before each one, so that it can refresh a token. With headers, redirects are
   * refused, because the headers are meant only for the URL's server.
   */
  readonly headers?: PerAttempt<Readonly<Record<string, string>>> | undefined;
  /**
   * The longest body of a list, or of one page of it, in bytes after decompression; default 256 MiB (268,435,456). It also limits
   * the initial state of a watch, which ends with an ERROR with code 413 if that is longer; there the default is 1 GiB
   * (1,073,741,824), because such a list has no pages, and is not held here.
   */
  readonly maxListBytes?: number | undefined;
  /** The longest event of a watch, in bytes; default 16 MiB (16,777,216). A longer one ends the watch with an ERROR with code 413. */
  readonly maxFrameBytes?: number | undefined;
  /**
   * How long a server may be silent before it answers, and in the middle of a list, in milliseconds; default 60,000. 0:
   * forever. An open watch may be silent forever.
   */
  readonly responseTimeoutMs?: number | undefined;
  /** Source of time, for tests. */
  readonly clock?: Clock | undefined;
}

const MAX_LIST_BYTES = 268_435_456;
const MAX_FRAME_BYTES = 16_777_216;
const RESPONSE_TIMEOUT_MS = 60_000;
/** The rest of a longer refusal is dropped. */
const MAX_REFUSAL_BYTES = 65_536;

/** What is needed to make requests and to read their answers. */
export interface HttpSettings extends ExchangeSettings {
  readonly maxListBytes: number;
  /** The same for the initial state of a watch. */
  readonly maxInitialBytes: number;
  readonly maxFrameBytes: number;
}

const LIMITS = {
  responseTimeoutMs: [RESPONSE_TIMEOUT_MS],
  maxListBytes: [MAX_LIST_BYTES, 1],
  maxFrameBytes: [MAX_FRAME_BYTES, 1],
} as const;

/** Checks the options, whose names have been checked, and adds the defaults. */
export function toHttpSettings(options: ListWatcherOptions): HttpSettings {
  const { fetch = globalThis.fetch as FetchLike, headers, clock = systemClock, ...limits } = options;
  if (typeof headers !== 'function') new Headers(headers); // throws for an invalid header
  const { responseTimeoutMs: timeoutMs, ...most } = wholeNumbers(limits, LIMITS);
  return {
    fetch: callable('fetch', fetch ?? null),
    headers,
    clock,
    timeoutMs,
    ...most,
    maxInitialBytes: limits.maxListBytes ?? MAX_TOTAL_LIST_BYTES,
  };
}

/** Sends a request, and resolves with a response of JSON. Any other answer rejects with the server's error. */
export async function accepted(exchange: Exchange, url: URL, question?: RequestSpec): Promise<Response> {
  const response = await exchange.send(url, question);
  // A list and a watch are answered with 200 only; a write may be answered with 201 or 202.
  const fine = question?.method ? response.ok : response.status === 200;
  if (!fine) throw toRefused(response, await exchange.text(response, { what: 'the refusal', bytes: MAX_REFUSAL_BYTES }), url);
  checkType(response);
  return response;
}

/** How long an answer may be. */
interface Limit {
  readonly what: string;
  readonly bytes: number;
  /** The option that sets it. Absent: the rest of a longer answer is dropped. */
  readonly option?: 'maxListBytes' | 'maxFrameBytes';
}

/** Throws FRAME_TOO_LARGE. */
export function tooLong({ what, option, bytes }: Limit): never {
  throw new WatchError('FRAME_TOO_LARGE', `${what} is longer than ${option} (${bytes})`, { limit: bytes });
}

/** What to ask, and when to stop. */
interface AskOptions<R> {
  readonly question?: RequestSpec | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The option that limits the answer. Default `maxFrameBytes`. */
  readonly limit?: 'maxListBytes' | 'maxFrameBytes' | undefined;
  readonly read: (text: string) => R;
}

/** One request with one whole answer. Rejects with FRAME_TOO_LARGE if it is too long. */
export async function ask<R>(
  means: HttpSettings,
  url: URL,
  { question, signal, limit: option = 'maxFrameBytes', read }: AskOptions<R>,
): Promise<R> {
  const exchange = new Exchange(means, signal);
  try {
    const limit = { what: option === 'maxListBytes' ? 'the list' : 'the object', option, bytes: means[option] };
    return read(await exchange.text(await accepted(exchange, url, question), limit));
  } catch (error) {
    throw named(error, url, signal);
  } finally {
    exchange.end();
  }
}
