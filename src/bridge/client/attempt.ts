import { invalid } from '../../watch/errors.ts';
import type { Attempt, ConnectOptions, Open, PerAttempt } from './client-options.ts';
import { LOST } from './machine.ts';
import { type FetchLike, openStream } from './stream.ts';
import { type Connection, messageOf, type Receiver, type WebSocketConstructor } from './transport.ts';
import { checkWebSocket, openWebSocket } from './websocket.ts';

/** What is needed to open connections. */
export interface Means extends Pick<ConnectOptions<never>, 'transport' | 'headers'> {
  readonly maxFrameChars: number;
  readonly fetch: FetchLike;
  readonly WebSocket: WebSocketConstructor | undefined;
}

type Headed = Readonly<Record<string, string>> | undefined;

/**
 * Returns a function that opens one connection. Fixed values are checked now. What functions return is checked at each attempt,
 * and an invalid result is final: the function would return the same the next time.
 */
export function toOpener(url: PerAttempt<string | URL>, means: Means): Open {
  const { headers } = means;
  const target = typeof url === 'function' ? undefined : toUrl(url);
  check(target, headers, means);
  return (complete, receiver) => {
    const begin = (to: URL, head: Headed): Connection => {
      const { searchParams } = to;
      complete(searchParams);
      const transport = transportOf(to, means);
      const socket = transport === 'websocket';
      to.protocol = to.protocol.replace(/ws|http/, socket ? 'ws' : 'http');
      to.hash = '';
      const opening = { ...means, url: to, headers: head };
      return socket
        ? openWebSocket({ ...opening, WebSocket: means.WebSocket as WebSocketConstructor }, receiver)
        : openStream({ ...opening, sse: transport === 'sse' }, receiver);
    };
    if (target && typeof headers !== 'function') return begin(new URL(target), headers);
    return openLater(async (attempt) => {
      const [to, head] = await Promise.all([ask(url, attempt), ask(headers, attempt)]);
      return () => {
        const checked = toUrl(to);
        check(checked, head, means);
        return begin(checked, head);
      };
    }, receiver);
  };
}

/** Async, so that what a function throws also becomes a rejection. */
async function ask<T>(value: PerAttempt<T>, attempt: Attempt): Promise<T> {
  return typeof value === 'function' ? (value as (attempt: Attempt) => T)(attempt) : value;
}

/** Opens a connection as soon as its URL and headers are known. Until then, it can be closed like any other. */
function openLater(prepare: (attempt: Attempt) => Promise<() => Connection>, receiver: Receiver): Connection {
  const abort = new AbortController();
  const { signal } = abort;
  let connection: Connection | undefined;
  const fail = (code: number, error: unknown): void => {
    if (!signal.aborted) receiver.over({ code, why: messageOf(error) });
  };
  const run = (begin: () => Connection): void => {
    if (signal.aborted) return;
    try {
      connection = begin();
      // User code, such as a custom `fetch`, may have stopped the watch.
      if (signal.aborted) connection.close();
    } catch (error) {
      fail(400, error);
    }
  };
  prepare({ signal }).then(run, (error) => fail(LOST, error));
  return {
    get pause() {
      return connection?.pause;
    },
    close: () => {
      abort.abort();
      connection?.close();
    },
  };
}

/** Throws if no connection can be made to this URL with these headers. Without a URL, its scheme is not known yet. */
function check(url: URL | undefined, headers: Means['headers'], means: Means): void {
  const [header] = typeof headers === 'function' ? [headers] : new Headers(headers).keys();
  const transport = transportOf(url, means);
  const socket = transport === 'websocket';
  if (socket) checkWebSocket(means.WebSocket, header);
  // If the host has none, a later attempt would fail as well.
  const needed = socket ? 'WebSocket' : 'fetch';
  if (transport && !means[needed]) throw invalid(needed, means[needed], 'a function');
}

function transportOf(url: URL | undefined, { transport }: Means): Means['transport'] {
  return transport ?? (url && (url.protocol[0] === 'w' ? 'websocket' : 'http'));
}

/** The used part of a page's global object. Its base may differ from its location. */
interface Page {
  readonly document: { readonly baseURI: string };
  readonly location: { readonly href: string };
}

/** Resolves a URL, a relative one against the page. Throws INVALID_ARGUMENT for schemes other than those of the web. */
export function toUrl(url: string | URL): URL {
  // A worker has no document.
  const { document, location } = globalThis as Partial<Page>;
  try {
    const target = new URL(url, document?.baseURI ?? location?.href);
    if (/^(ws|http)s?:$/.test(target.protocol)) return target;
  } catch {
    // Not a URL.
  }
  throw invalid('url', url, 'an http(s) or ws(s) URL');
}
