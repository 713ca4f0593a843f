// What every request over `fetch` has in common, whatever it asks for: options, the check of the answer, and limits.
import type { PerAttempt } from '../../bridge/client/client-options.ts';
import type { FetchLike } from '../../bridge/client/stream.ts';
import { type Clock, systemClock } from '../../watch/clock.ts';
import { callable, WatchError, wholeNumber } from '../../watch/errors.ts';
import { MAX_TOTAL_LIST_BYTES } from '../pager.ts';
import { checkType, toRefused } from './answer.ts';
import type { Exchange, ExchangeSettings, RequestSpec } from './exchange.ts';

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
   * How long a server may be silent before it answers, and in the middle of a list, in milliseconds; default 60,000. 0: for ever.
   * An open watch may be silent for ever.
   */
  readonly responseTimeoutMs?: number | undefined;
  /** Source of time, for tests. */
  readonly clock?: Clock | undefined;
}

const MAX_LIST_BYTES = 268_435_456;
const MAX_FRAME_BYTES = 16_777_216;
const RESPONSE_TIMEOUT_MS = 60_000;
/** The rest of a longer refusal is of no interest. */
const MAX_REFUSAL_BYTES = 65_536;

/** What is needed to make requests and to read their answers. */
export interface HttpSettings extends ExchangeSettings {
  readonly maxListBytes: number;
  /** The same for the initial state of a watch. */
  readonly maxInitialBytes: number;
  readonly maxFrameBytes: number;
}

/** Checks the options, whose names have been checked, and adds the defaults. */
export function toHttpSettings(options: ListWatcherOptions): HttpSettings {
  const { fetch = globalThis.fetch as FetchLike, headers, clock = systemClock, ...limits } = options;
  if (typeof headers !== 'function') new Headers(headers); // throws for an invalid header
  const { maxListBytes } = limits;
  return {
    fetch: callable('fetch', fetch ?? null),
    headers,
    clock,
    timeoutMs: wholeNumber('responseTimeoutMs', limits.responseTimeoutMs ?? RESPONSE_TIMEOUT_MS),
    maxListBytes: wholeNumber('maxListBytes', maxListBytes ?? MAX_LIST_BYTES, 1),
    maxInitialBytes: maxListBytes ?? MAX_TOTAL_LIST_BYTES,
    maxFrameBytes: wholeNumber('maxFrameBytes', limits.maxFrameBytes ?? MAX_FRAME_BYTES, 1),
  };
}

/** Sends a request, and resolves with a response of JSON. Any answer but success rejects with what the server says. */
export async function accepted(exchange: Exchange, url: URL, question?: RequestSpec): Promise<Response> {
  const response = await exchange.send(url, question);
  // A list and a watch are answered with 200 only; a write may be answered with 201 or 202.
  const fine = question?.method ? response.ok : response.status === 200;
  if (!fine) throw toRefused(response, await exchange.text(response, MAX_REFUSAL_BYTES, () => {}), url);
  checkType(response);
  return response;
}

/** How long an answer may be, and how to say that it is longer. */
export interface Limit {
  readonly what: string;
  readonly option: 'maxListBytes' | 'maxFrameBytes';
  readonly bytes: number;
}

/** Reads a whole answer. Rejects with FRAME_TOO_LARGE if it is too long. */
export function wholeText(exchange: Exchange, response: Response, limit: Limit): Promise<string> {
  return exchange.text(response, limit.bytes, () => tooLong(limit));
}

/** The same, part by part. */
export function partsOf(
  exchange: Exchange,
  response: Response,
  { limit, onPart }: { readonly limit: Limit; readonly onPart: (bytes: Uint8Array) => void },
): Promise<void> {
  return exchange.parts(response, { maxBytes: limit.bytes, onTooLong: () => tooLong(limit), onPart });
}

/** Throws FRAME_TOO_LARGE. */
export function tooLong({ what, option, bytes }: Limit): never {
  throw new WatchError('FRAME_TOO_LARGE', `${what} is longer than ${option} (${bytes})`, { limit: bytes });
}
