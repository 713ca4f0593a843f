import { systemClock } from '../watch/clock.ts';
import { invalid } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import type { ClientEvent, ConnectOptions } from './client-options.ts';
import type { ClientOverflow, ClientWatch, Open } from './client-settings.ts';
import type { WebSocketConstructor, WebSocketOpening } from './client-socket.ts';
import type { FetchLike } from './client-stream.ts';
import { openStream } from './client-stream.ts';
import { Client } from './client-watch.ts';
import { checkWebSocket, openWebSocket } from './client-websocket.ts';

/**
 * Watches a hub at a URL; in a browser the URL may be relative. The connection is made at once, and made again when it is lost.
 * 400, 401, 403, 404 and the like are final: one ERROR event with the server's Status, then the end. 408, 429, 5xx and whatever the
 * network does are not. A frame that is no event is final, too: the next connection would bring it again.
 *
 * The client runs until it is stopped, also if nobody reads it.
 *
 * @throws {WatchError} INVALID_ARGUMENT for a URL, a number or a choice that is none; TypeError for headers that are none; and the
 * reason of a `signal` that has aborted.
 */
export function connect<E extends WatchEvent = WatchEvent>(
  url: string | URL,
  options: ConnectOptions<E> = {},
): ClientWatch<ClientEvent<E>> {
  const settings = toSettings(options);
  const target = toUrl(url);
  const { searchParams } = target;
  const position = options.resourceVersion || searchParams.get('resourceVersion') || '0';
  // Kubernetes: `0` is any version, and so is none.
  const begin = position === '0' ? undefined : position;
  if (begin) searchParams.delete('resourceVersion');
  const asked = searchParams.get('allowWatchBookmarks');
  if (settings.bookmarks && asked === null) searchParams.set('allowWatchBookmarks', 'true');
  const open = opener(target, settings, begin);
  settings.signal?.throwIfAborted();
  return new Client<ClientEvent<E>>({ ...settings, bookmarks: asked === 'true' }, open, begin);
}

/** What holds unless an option says otherwise. */
const defaults = ({ fetch, WebSocket } = globalThis) => ({
  capacity: 1_000,
  maxBufferedBytes: 16_777_216,
  maxFrameChars: 16_777_216,
  connectTimeoutMs: 10_000,
  factor: 2,
  minMs: 500,
  maxMs: 5_000,
  maxAttempts: Infinity,
  overflow: 'wait' as ClientOverflow,
  bookmarks: true,
  reconnectOnEnd: true,
  clock: systemClock,
  random: Math.random,
  fetch: fetch as FetchLike,
  WebSocket: WebSocket as WebSocketConstructor | undefined,
});

/** The options that are one of a few words. */
const WORDS: Readonly<Record<string, string>> = {
  transport: 'websocket, sse, http',
  overflow: 'wait, drop-newest, drop-oldest, disconnect',
  onExpired: 'fail, restart',
};

type Defaults = ReturnType<typeof defaults>;
type Settings<E> = Omit<ConnectOptions<E>, keyof Defaults> & Defaults;

function toSettings<E>(options: ConnectOptions<E>): Settings<E> {
  const settings: Record<string, unknown> = defaults();
  for (const [name, value] of Object.entries({ ...options, ...options.backoff })) {
    if (value === undefined) continue;
    const words = WORDS[name];
    const whole = name === 'capacity';
    // Nothing fits a queue of length 0.
    const min = whole || name === 'maxBufferedBytes' ? 1 : 0;
    const isNumber = typeof settings[name] === 'number' || name === 'idleTimeoutMs';
    const fits = words
      ? words.split(', ').includes(value as string)
      : !isNumber || ((whole ? Number.isInteger(value) : typeof value === 'number') && (value as number) >= min);
    if (!fits) throw invalid(name, value, words ? `one of ${words}` : `a ${whole ? 'whole ' : ''}number >= ${min}`);
    settings[name] = value;
  }
  return settings as Settings<E>;
}

/** What makes a connection from a version on. */
function opener<E>(target: URL, settings: Settings<E>, begin: string | undefined): Open {
  const { WebSocket, transport = target.protocol[0] === 'w' ? 'websocket' : 'http' } = settings;
  const [header] = new Headers(settings.headers).keys();
  const socket = transport === 'websocket';
  if (socket) checkWebSocket(WebSocket, header);
  target.protocol = target.protocol.replace(/ws|http/, socket ? 'ws' : 'http');
  target.hash = '';
  return (from, receiver) => {
    const url = new URL(target);
    if (from) {
      url.searchParams.set('resourceVersion', from);
      // A snapshot that was asked for has come; from here on it would only repeat itself.
      if (from !== begin) url.searchParams.delete('sendInitialEvents');
    }
    const opening = { ...settings, url, sse: transport === 'sse' };
    return socket ? openWebSocket(opening as WebSocketOpening, receiver) : openStream(opening, receiver);
  };
}

function toUrl(url: string | URL): URL {
  try {
    const target = new URL(url, (globalThis as { location?: { href: string } }).location?.href);
    if (/^(ws|http)s?:$/.test(target.protocol)) return target;
  } catch {
    // No URL of any kind.
  }
  throw invalid('url', url, 'an http(s) or ws(s) URL');
}
