import { checkCredentials, toUrl } from '../../bridge/client/transport.ts';
import type { Codec } from '../../decode/codec.ts';
import { decoderOf } from '../../decode/decoder.ts';
import { NewlineFramer } from '../../decode/framing.ts';
import { StreamWatcher } from '../../decode/stream-watcher.ts';
import { callable, checkOptions, checkText, oneOf, wholeNumber } from '../../watch/errors.ts';
import { isInitialEventsEnd, type ObjectEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../list-watcher.ts';
import type { KubernetesObject } from '../object.ts';
import { type Prepare, takesPrepare } from '../pager.ts';
import { eventCodec, ListParts } from './answer.ts';
import { accepted, Exchange, type HttpSettings, type ListWatcherOptions, named, toHttpSettings, tooLong } from './exchange.ts';

/**
 * Creates a {@link ListWatcher} over a collection of any server that speaks Kubernetes' list/watch protocol, such as
 * `https://host/api/v1/namespaces/default/pods`. Runs wherever `fetch` does. In a web page, the URL may be relative. Its
 * parameters are sent with every request.
 *
 *     const pods = createListWatcher<Pod>('https://host/api/v1/pods', { headers: { authorization: `Bearer ${token}` } });
 *     const { items, resourceVersion } = await pods.list();
 *     for await (const event of await pods.watch({ resourceVersion })) console.log(event.type, event.object);
 *
 * With `headers`, redirects are refused, not followed, because the headers would be sent to another place.
 *
 * Nothing is retried here; a reflector does that. Errors name the URL, without its query. What can happen:
 *
 * | what | `list`, `watch` | an open watch |
 * |---|---|---|
 * | the server refuses | rejects with REFUSED and its `status` | one ERROR with that Status, as the server sends it |
 * | the response is not a list, not an event, or not JSON | rejects with INVALID_FRAME | one ERROR with code 500, then the end |
 * | the response is too long | rejects with FRAME_TOO_LARGE | one ERROR with code 413, then the end |
 * | the server does not answer in time | rejects with TIMEOUT | |
 * | the connection cannot be made, or breaks | rejects with an error whose `cause` is that of `fetch` | ends |
 * | the signal aborts | rejects with its reason | ends |
 *
 * A `Retry-After`, in seconds or as a date, is in `status.details.retryAfterSeconds`, at most 300. Items of a list get the `kind`
 * and `apiVersion` that events have and lists leave out.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option, and for a URL that is not http(s) or,
 * unless `fetch` is given, has credentials in it.
 */
export function createListWatcher<T = KubernetesObject>(url: string | URL, options: ListWatcherOptions = {}): ListWatcher<T> {
  const names = ['fetch', 'headers', 'maxListBytes', 'maxFrameBytes', 'responseTimeoutMs', 'clock'] as const;
  const means = toHttpSettings(checkOptions(options, names));
  const collection = toUrl(url, 'http(s)');
  checkCredentials(collection, means.fetch, 'headers');
  return new HttpListWatcher<T>(collection, means);
}

class HttpListWatcher<T> implements ListWatcher<T> {
  readonly #collection: URL;
  readonly #means: HttpSettings;

  constructor(collection: URL, means: HttpSettings) {
    takesPrepare(HttpListWatcher.prototype.list);
    this.#collection = collection;
    this.#means = means;
  }

  async list(options: ListOptions = {}, prepare?: Prepare<T>): Promise<List<T>> {
    const url = toListUrl(this.#collection, options);
    const exchange = new Exchange(this.#means, options.signal);
    const limit = { what: 'the list', option: 'maxListBytes', bytes: this.#means.maxListBytes } as const;
    try {
      const response = await accepted(exchange, url);
      const list = new ListParts<T>(prepare);
      let bytes = 0;
      const onPart = (part: Uint8Array): void => {
        bytes += part.length;
        list.push(part);
      };
      await exchange.parts(response, limit, onPart);
      // Not enumerable: a list compares and prints as the server sent it.
      return Object.defineProperty(list.end(), 'bytes', { value: bytes });
    } catch (error) {
      throw named(error, url, options.signal);
    } finally {
      exchange.end();
    }
  }

  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<T>>> {
    const url = toWatchUrl(this.#collection, options);
    const exchange = new Exchange(this.#means, options.signal);
    try {
      const response = await accepted(exchange, url);
      exchange.signal.throwIfAborted(); // no await from here on, so a later abort finds the watch
      exchange.disarmTimeout();
      return this.#open(exchange, response, options);
    } catch (error) {
      exchange.end();
      throw named(error, url, options.signal);
    }
  }

  /** The watch ends with its exchange, and vice versa. */
  #open(exchange: Exchange, { body }: Response, options: ListWatchOptions): Watch<ObjectEvent<T>> {
    const { maxFrameBytes, maxInitialBytes } = this.#means;
    const source = body ?? new ReadableStream<Uint8Array>({ start: (controller) => controller.close() });
    const decoder = decoderOf(
      source,
      new NewlineFramer({ maxFrameBytes }),
      limited(eventCodec<T>(options.stored), options, maxInitialBytes),
    );
    const watch = new StreamWatcher<ObjectEvent<T>>({
      decode: () => decoder.decode(),
      poll: () => decoder.poll(),
      close: () => {
        // A stop would drop the ERROR that a failed watch still holds.
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

/** The same codec, which counts bytes, and limits those of the initial state as those of a list. */
function limited<T>(
  codec: Codec<ObjectEvent<T>>,
  { sendInitialEvents, onBytes }: ListWatchOptions,
  maxInitialBytes: number,
): Codec<ObjectEvent<T>> {
  if (!sendInitialEvents && !onBytes) return codec;
  let initialBytes = sendInitialEvents ? 0 : undefined;
  return {
    ...codec,
    decode: (frame) => {
      onBytes?.(frame.length);
      if (initialBytes !== undefined) {
        initialBytes += frame.length;
        if (initialBytes > maxInitialBytes)
          tooLong({ what: 'the initial state', option: 'maxListBytes', bytes: maxInitialBytes });
      }
      const event = codec.decode(frame);
      if (event && isInitialEventsEnd(event)) initialBytes = undefined;
      return event;
    },
  };
}

const TEXTS = ['labelSelector', 'fieldSelector', 'resourceVersion', 'continue'] as const;
const NUMBERS = ['limit', 'timeoutSeconds'] as const;
const COMMON = ['labelSelector', 'fieldSelector', 'resourceVersion', 'resourceVersionMatch', 'timeoutSeconds', 'signal'] as const;

/** The URL of a list. Parameters of the collection's own URL stay, unless an option says otherwise. */
export function toListUrl(collection: URL, options: ListOptions): URL {
  checkOptions(options, [...COMMON, 'limit', 'continue']);
  const url = new URL(collection);
  url.searchParams.delete('watch');
  setCommon(url.searchParams, options);
  return url;
}

/** The URL of a watch. Kubernetes requires what `sendInitialEvents` implies. */
function toWatchUrl(collection: URL, options: ListWatchOptions): URL {
  checkOptions(options, [...COMMON, 'sendInitialEvents', 'allowWatchBookmarks', 'stored', 'onBytes']);
  callable('stored', options.stored);
  callable('onBytes', options.onBytes);
  const { sendInitialEvents, allowWatchBookmarks = sendInitialEvents } = options;
  const url = new URL(collection);
  const { searchParams } = url;
  searchParams.set('watch', 'true');
  if (sendInitialEvents !== undefined) searchParams.set('resourceVersionMatch', 'NotOlderThan');
  setCommon(searchParams, options);
  if (sendInitialEvents !== undefined) searchParams.set('sendInitialEvents', `${sendInitialEvents}`);
  if (allowWatchBookmarks !== undefined) searchParams.set('allowWatchBookmarks', `${allowWatchBookmarks}`);
  return url;
}

/** Sets what is given; an empty text means the same as none. */
function setCommon(parameters: URLSearchParams, options: ListOptions): void {
  for (const name of TEXTS) {
    const text = options[name];
    if (text !== undefined && checkText(name, text)) parameters.set(name, text);
  }
  for (const name of NUMBERS) {
    const number = options[name];
    if (number !== undefined) parameters.set(name, `${wholeNumber(name, number)}`);
  }
  const { resourceVersionMatch } = options;
  if (resourceVersionMatch !== undefined) {
    parameters.set('resourceVersionMatch', oneOf('resourceVersionMatch', resourceVersionMatch, ['Exact', 'NotOlderThan']));
  }
}
