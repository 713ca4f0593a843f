import type { Codec } from '../../decode/codec.ts';
import { systemClock } from '../../watch/clock.ts';
import { checkOptions, invalid } from '../../watch/errors.ts';
import type { WatchEvent } from '../../watch/event.ts';
import {
  type Attempt,
  type Backoff,
  type ClientOverflow,
  type ClientSettings,
  type ClientWatch,
  type ConnectOptions,
  type Open,
  type PerAttempt,
  TRANSPORTS,
} from './client-options.ts';
import { LOST } from './machine.ts';
import { type FetchLike, openStream } from './stream.ts';
import {
  type Connection,
  checkCredentials,
  headersOf,
  messageOf,
  type Receiver,
  toUrl,
  type WebSocketConstructor,
} from './transport.ts';
import { Client, type ClientEvent } from './watch.ts';
import { checkWebSocket, openWebSocket } from './websocket.ts';

/**
 * Watches a hub at a URL. In a browser the URL may be relative, as for `fetch`. The client connects at once, and reconnects
 * whenever the connection is lost.
 *
 * `url` and the options `token` and `headers` may be functions, which are called before each attempt. If one throws or rejects, that is
 * a failed attempt like any other. The wait for them is part of `connectTimeoutMs`. A `resourceVersion` in a function's URL counts for
 * the first attempt only.
 *
 *     connect('wss://example.org/watch', { token: ({ signal }) => freshToken(signal) })
 *
 * Refusals such as 400, 401, 403 and 404 are final: the watch delivers one ERROR event with the server's Status, then ends. After
 * 408, 429, 5xx and network failures the client tries again. A frame that is not a valid event is also final, because the next
 * connection would deliver it again; so is an invalid URL or header from a function.
 *
 * The client runs until it is stopped, even if nobody reads it.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an invalid URL or option; TypeError for invalid headers; the reason of `signal` if it
 * has aborted.
 */
export function connect<E extends WatchEvent = WatchEvent>(
  url: PerAttempt<string | URL>,
  options: ConnectOptions<E> = {},
): ClientWatch<ClientEvent<E>> {
  const settings = toSettings(options);
  const open = toOpener(url, settings);
  settings.signal?.throwIfAborted();
  return new Client<ClientEvent<E>>(settings, open);
}

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

/** The policies of a client: a record, so that none can be forgotten. */
export const CLIENT_POLICIES: Readonly<Record<ClientOverflow, 1>> = {
  wait: 1,
  'drop-newest': 1,
  'drop-oldest': 1,
  disconnect: 1,
};

/** The options that accept one of a few words. */
const WORDS: Readonly<Record<string, readonly unknown[]>> = {
  transport: TRANSPORTS,
  overflow: Object.keys(CLIENT_POLICIES),
  onExpired: ['fail', 'restart'],
};

const BACKOFF: readonly (keyof Backoff)[] = ['minMs', 'maxMs', 'factor'];

/** What an option is that has no default, or one of the host: a record, so that none can be forgotten. Empty: checked elsewhere. */
const KINDS: Readonly<Record<Exclude<keyof ConnectOptions<never>, keyof Defaults> | 'fetch' | 'WebSocket', string>> = {
  signal: '',
  resourceVersion: 'string',
  transport: '',
  onGap: 'function',
  onStateChange: 'function',
  headers: 'function or object',
  token: 'function or string',
  backoff: '',
  idleTimeoutMs: 'number',
  onExpired: '',
  codec: 'codec',
  fetch: 'function',
  WebSocket: 'function',
};
export const CONNECT_OPTIONS: readonly (keyof ConnectOptions<never>)[] = Object.keys({
  ...defaults(),
  ...KINDS,
}) as (keyof ConnectOptions<never>)[];

type Defaults = ReturnType<typeof defaults>;
/** Fills in the defaults. Throws INVALID_ARGUMENT for a wrong value. */
export function toSettings<E>(options: ConnectOptions<E>): ClientSettings<E> & AttemptSettings {
  const settings: Record<string, unknown> = defaults();
  const { backoff } = checkOptions(options, CONNECT_OPTIONS);
  for (const [name, value] of Object.entries({ ...options, ...checkOptions(backoff ?? {}, BACKOFF) })) {
    const kind: string | undefined = KINDS[name as keyof typeof KINDS];
    if (value === undefined || (value === null && kind !== undefined && kind !== 'number')) continue;
    const expected = expectedOf(name, value, kind ?? typeof settings[name]);
    if (expected !== undefined) throw invalid(name, value, expected);
    settings[name] = value;
  }
  return settings as unknown as ClientSettings<E> & AttemptSettings;
}

/** What an option should be, if it is not. */
function expectedOf(name: string, value: unknown, kind: string): string | undefined {
  const words = WORDS[name];
  if (words) return words.includes(value) ? undefined : `one of ${words.join(', ')}`;
  if (kind !== 'number') {
    const fits = kind === 'codec' ? !!(value as Codec<unknown>).decode : kind === '' || kind.includes(typeof value);
    return fits ? undefined : `a ${kind}`;
  }
  const whole = name === 'capacity' ? 'whole ' : '';
  // Nothing fits in a queue of length 0.
  const min = whole || name === 'maxBufferedBytes' ? 1 : 0;
  const fits = (whole ? Number.isInteger(value) : typeof value === 'number') && (value as number) >= min;
  return fits ? undefined : `a ${whole}number >= ${min}`;
}

/** What is needed to open connections. */
interface AttemptSettings extends Pick<ConnectOptions<never>, 'transport' | 'headers' | 'token'> {
  readonly maxFrameChars: number;
  readonly fetch: FetchLike;
  readonly WebSocket: WebSocketConstructor | undefined;
}

type Headed = Readonly<Record<string, string>> | undefined;

/**
 * Returns a function that opens one connection. Fixed values are checked now. What functions return is checked at each attempt,
 * and an invalid result is final: the function would return the same the next time.
 */
function toOpener(url: PerAttempt<string | URL>, means: AttemptSettings): Open {
  const { headers, token } = means;
  const target = typeof url === 'function' ? undefined : toUrl(url);
  check(target, means);
  return (complete, receiver) => {
    const begin = (to: URL, head: Headed, secret: string | undefined): Connection => {
      const { searchParams } = to;
      complete(searchParams);
      const transport = transportOf(to, means);
      const socket = transport === 'websocket';
      to.protocol = to.protocol.replace(/ws|http/, socket ? 'ws' : 'http');
      to.hash = '';
      const opening = { ...means, url: to, headers: headersOf(head, secret), token: secret };
      return socket
        ? openWebSocket({ ...opening, WebSocket: means.WebSocket as WebSocketConstructor }, receiver)
        : openStream({ ...opening, sse: transport === 'sse' }, receiver);
    };
    if (target && typeof headers !== 'function' && typeof token !== 'function') return begin(new URL(target), headers, token);
    return openLater(async (attempt) => {
      const [to, head, secret] = await Promise.all([ask(url, attempt), ask(headers, attempt), ask(token, attempt)]);
      return () => {
        const checked = toUrl(to);
        check(checked, { ...means, headers: head, token: secret });
        return begin(checked, head, secret);
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

/** Throws if no connection can be made to this URL with these settings. Without a URL, its scheme is not known yet. */
function check(url: URL | undefined, means: AttemptSettings): void {
  const { headers, token } = means;
  const names: unknown[] = typeof headers === 'function' ? [headers] : Object.keys({ ...headersOf(headers) });
  // The message does not contain the token.
  if (token && typeof token !== 'function' && (!/^[!-~]+$/.test(token) || names.includes('authorization')))
    throw invalid('token', typeof token, 'visible ASCII, and no header authorization beside it');
  const transport = transportOf(url, means);
  const socket = transport === 'websocket';
  if (url && !socket) checkCredentials(url, means.fetch, 'token or headers');
  if (socket) checkWebSocket(means.WebSocket, names[0]);
  // If the host has none, a later attempt would fail as well.
  const needed = socket ? 'WebSocket' : 'fetch';
  if (transport && !means[needed]) throw invalid(needed, means[needed], 'a function');
}

function transportOf(url: URL | undefined, { transport }: AttemptSettings): AttemptSettings['transport'] {
  return transport ?? (url && (url.protocol[0] === 'w' ? 'websocket' : 'http'));
}
