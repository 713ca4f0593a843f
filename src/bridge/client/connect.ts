import { systemClock } from '../../watch/clock.ts';
import { checkOptions, invalid } from '../../watch/errors.ts';
import type { WatchEvent } from '../../watch/event.ts';
import { toOpener } from './attempt.ts';
import {
  type Backoff,
  type ClientOverflow,
  type ClientWatch,
  type ConnectOptions,
  type PerAttempt,
  TRANSPORTS,
} from './client-options.ts';
import type { FetchLike } from './stream.ts';
import type { WebSocketConstructor } from './transport.ts';
import { Client, type ClientEvent } from './watch.ts';

/**
 * Watches a hub at a URL. In a browser the URL may be relative, as for `fetch`. The client connects at once, and reconnects
 * whenever the connection is lost.
 *
 * If `url` is a function, it is called before each attempt, for example for a URL with a fresh token. If it throws or rejects,
 * that is a failed attempt like any other. The wait for it is part of `connectTimeoutMs`. A `resourceVersion` in its URL counts
 * for the first attempt only.
 *
 *     connect(async ({ signal }) => `wss://example.org/watch?token=${await token(signal)}`)
 *
 * Refusals such as 400, 401, 403 and 404 are final: the watch delivers one ERROR event with the server's Status, then ends. After
 * 408, 429, 5xx and network failures the client tries again. A frame that is not a valid event is also final, because the next
 * connection would deliver it again; so is a URL or a header that is invalid when a function returns it.
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

/** Default settings. */
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
const WORDS: Readonly<Record<string, string>> = {
  transport: TRANSPORTS.join(', '),
  overflow: Object.keys(CLIENT_POLICIES).join(', '),
  onExpired: 'fail, restart',
};

const BACKOFF: readonly (keyof Backoff)[] = [...(['minMs', 'maxMs', 'factor'] as const)];
/** The names of all options: records, so that none can be forgotten. */
const names: Record<Exclude<keyof ConnectOptions<never>, keyof Defaults>, 1> = {
  signal: 1,
  resourceVersion: 1,
  transport: 1,
  onGap: 1,
  onStateChange: 1,
  headers: 1,
  backoff: 1,
  idleTimeoutMs: 1,
  onExpired: 1,
  codec: 1,
};
const OPTIONS = Object.keys({ ...defaults(), ...names }) as (keyof ConnectOptions<never>)[];

type Defaults = ReturnType<typeof defaults>;
type Settings<E> = Omit<ConnectOptions<E>, keyof Defaults> & Defaults;

function toSettings<E>(options: ConnectOptions<E>): Settings<E> {
  const settings: Record<string, unknown> = defaults();
  const backoff = checkOptions(options.backoff ?? {}, BACKOFF);
  for (const [name, value] of Object.entries({ ...checkOptions(options, OPTIONS), ...backoff })) {
    if (value === undefined) continue;
    const words = WORDS[name];
    const whole = name === 'capacity';
    // Nothing fits in a queue of length 0.
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
