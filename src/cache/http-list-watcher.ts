import { toUrl } from '../bridge/client/attempt.ts';
import type { PerAttempt } from '../bridge/client/options.ts';
import type { FetchLike } from '../bridge/client/stream.ts';
import { toDecoder } from '../decode/decoder.ts';
import { StreamWatcher } from '../decode/stream-watcher.ts';
import { type Clock, systemClock } from '../watch/clock.ts';
import { callable, invalid, WatchError, wholeNumber } from '../watch/errors.ts';
import type { ObjectEvent } from '../watch/event.ts';
import { known } from '../watch/options.ts';
import type { Watch } from '../watch/watch.ts';
import { checkType, eventCodec, toList, toRefused } from './http-answer.ts';
import { Exchange, type ExchangeMeans } from './http-exchange.ts';
import { toListUrl, toWatchUrl } from './http-query.ts';
import type { List, ListOptions, ListWatcher, ListWatchOptions } from './list-watcher.ts';
import type { KubernetesObject } from './object.ts';

/** Options of {@link createListWatcher}. */
export interface ListWatcherOptions {
  /** The fetch function; default: the host's own. */
  readonly fetch?: FetchLike | undefined;
  /** Headers of every request. A function is asked before each one, so that it can refresh a token. */
  readonly headers?: PerAttempt<Readonly<Record<string, string>>> | undefined;
  /** The longest body of a list, or of one page of it, in bytes after decompression; default 256 MiB (268,435,456). */
  readonly maxListBytes?: number | undefined;
  /** The longest event of a watch, in bytes; default 16 MiB (16,777,216). A longer one ends the watch with an ERROR of code 413. */
  readonly maxFrameBytes?: number | undefined;
  /**
   * How long a server may be silent before it answers, and in the middle of a list; default 60,000. 0: for ever. A watch that is
   * open may be silent for ever.
   */
  readonly responseTimeoutMs?: number | undefined;
  /** Source of time, for tests. */
  readonly clock?: Clock | undefined;
}

const MAX_LIST_BYTES = 268_435_456;
const MAX_FRAME_BYTES = 16_777_216;
const RESPONSE_TIMEOUT_MS = 60_000;
/** Of a refusal, more is of no interest. */
const MAX_REFUSAL_BYTES = 65_536;

/**
 * Creates a {@link ListWatcher} over a collection of any server that speaks Kubernetes' list/watch protocol, such as
 * `https://host/api/v1/namespaces/default/pods`. Runs wherever `fetch` does. The URL may be relative in a page; parameters that it
 * has are sent with every request.
 *
 *     const pods = createListWatcher<Pod>('https://host/api/v1/pods', { headers: { authorization: `Bearer ${token}` } });
 *     const { items, resourceVersion } = await pods.list();
 *     for await (const event of await pods.watch({ resourceVersion })) console.log(event.type, event.object);
 *
 * Nothing is retried here; that is a reflector's work. What can happen:
 *
 * | what | `list`, `watch` | a watch that is open |
 * |---|---|---|
 * | the server refuses | rejects with REFUSED and its `status` | one ERROR with that Status, as the server sends it |
 * | the answer is no list, no event, or no JSON | rejects with INVALID_FRAME | one ERROR of code 500, then the end |
 * | the answer is too long | rejects with FRAME_TOO_LARGE | one ERROR of code 413, then the end |
 * | the server does not answer in time | rejects with TIMEOUT | |
 * | the connection cannot be made, or breaks | rejects with the error of `fetch` | ends |
 * | the signal aborts | rejects with its reason | ends |
 *
 * A `Retry-After`, in seconds or as a date, is in `status.details.retryAfterSeconds`, at most 300. Items of a list get the `kind`
 * and `apiVersion` that events have and lists leave out.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option, and for a URL that is not http(s).
 */
export function createListWatcher<T = KubernetesObject>(url: string | URL, options: ListWatcherOptions = {}): ListWatcher<T> {
  const names = ['fetch', 'headers', 'maxListBytes', 'maxFrameBytes', 'responseTimeoutMs', 'clock'] as const;
  const { fetch = globalThis.fetch as FetchLike, headers, clock = systemClock, ...limits } = known(options, names);
  const collection = toUrl(url);
  if (!collection.protocol.startsWith('http')) throw invalid('url', url, 'an http(s) URL');
  if (typeof headers !== 'function') new Headers(headers); // throws for what is no header
  const timeoutMs = wholeNumber('responseTimeoutMs', limits.responseTimeoutMs ?? RESPONSE_TIMEOUT_MS);
  return new HttpListWatcher<T>(collection, {
    fetch: callable('fetch', fetch ?? null),
    headers,
    clock,
    timeoutMs,
    maxListBytes: wholeNumber('maxListBytes', limits.maxListBytes ?? MAX_LIST_BYTES, 1),
    maxFrameBytes: wholeNumber('maxFrameBytes', limits.maxFrameBytes ?? MAX_FRAME_BYTES, 1),
  });
}

interface Means extends ExchangeMeans {
  readonly maxListBytes: number;
  readonly maxFrameBytes: number;
}

class HttpListWatcher<T> implements ListWatcher<T> {
  readonly #collection: URL;
  readonly #means: Means;

  constructor(collection: URL, means: Means) {
    this.#collection = collection;
    this.#means = means;
  }

  async list(options: ListOptions = {}): Promise<List<T>> {
    const url = toListUrl(this.#collection, options);
    const exchange = new Exchange(this.#means, options.signal);
    const limit = this.#means.maxListBytes;
    try {
      const response = await this.#accepted(exchange, url);
      const text = await exchange.text(response, limit, () => {
        throw new WatchError('FRAME_TOO_LARGE', `the list is longer than maxListBytes (${limit})`, { limit });
      });
      return toList<T>(text);
    } finally {
      exchange.end();
    }
  }

  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<T>>> {
    const url = toWatchUrl(this.#collection, options);
    const exchange = new Exchange(this.#means, options.signal);
    try {
      const response = await this.#accepted(exchange, url);
      exchange.signal.throwIfAborted(); // no await from here on, so whatever comes later finds the watch
      exchange.patient();
      return this.#open(exchange, response);
    } catch (error) {
      exchange.end();
      throw error;
    }
  }

  /** Sends a request, and resolves with a response of JSON. */
  async #accepted(exchange: Exchange, url: URL): Promise<Response> {
    const response = await exchange.send(url);
    if (response.status !== 200) throw toRefused(response, await exchange.text(response, MAX_REFUSAL_BYTES, () => {}));
    checkType(response);
    return response;
  }

  /** The end of the watch is that of its exchange, and the other way round. */
  #open(exchange: Exchange, { body }: Response): Watch<ObjectEvent<T>> {
    const { maxFrameBytes } = this.#means;
    const source = body ?? new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });
    const decoder = toDecoder<ObjectEvent<T>>(source, { maxFrameBytes, codec: eventCodec<T>() });
    const watch = new StreamWatcher<ObjectEvent<T>>({
      decode: () => decoder.decode(),
      poll: () => decoder.poll(),
      close: () => {
        // A stop would drop the ERROR that a watch which has failed holds.
        exchange.signal.removeEventListener('abort', stop);
        decoder.close();
        exchange.end();
      },
    });
    const stop = (): void => watch.stop();
    exchange.signal.addEventListener('abort', stop);
    return watch;
  }
}
